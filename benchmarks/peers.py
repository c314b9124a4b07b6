"""The peers, where they are installed."""

import functools
import importlib
import os
from types import ModuleType
from typing import Any


def optional(name: str) -> ModuleType | None:
    """The module, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@functools.cache
def jax_of_one_thread() -> Any:
    """JAX whose threads share one core, or None.

    XLA has no setting for that: it starts a thread for each core that the process may use when its
    first device is asked for.
    """
    jax: Any = optional("jax")
    if jax is not None and hasattr(os, "sched_setaffinity"):
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})
        try:
            jax.devices()
        finally:
            os.sched_setaffinity(0, cores)
    return jax
