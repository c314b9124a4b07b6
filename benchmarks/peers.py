"""The peers, where they are installed."""

import importlib
from types import ModuleType


def optional(name: str) -> ModuleType | None:
    """The module, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
