"""Kernels for machine code that has their arrays' addresses later: in the body of a loop.

A job is the address of a function and the words that it is told, of which the addresses of arrays
are missing. It holds addresses of tables and of code too, so what is kept on disk is the recipe
that it is made by: whole numbers and names. Those who make jobs stand beside the kernels, and are
loaded when a job is asked for.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from funct.kernels.cpu.record import Fields

__all__ = ["Job", "alone", "job", "job_of"]

_ALONE = 1 << 22  # multiplications and additions of a step that wakes no threads
_MAKERS = {  # module: functions, by what they are asked for
    "attention": "attention.jobs:attention", "by squares": "convolution.jobs:by_squares",
    "codes": "quantized.jobs:convolution_on_codes",
    "few bits": "quantized.jobs:few_bits", "layer": "quantized.jobs:layer_on_codes",
    "gradient": "convolution.jobs:gradient",
    "gradient by squares": "convolution.jobs:gradient_by_squares",
    "line weights": "convolution.jobs:line_weights", "lines": "convolution.jobs:lines",
    "pack": "convolution.jobs:pack", "rest": "convolution.jobs:rest",
    "tiles": "convolution.jobs:tiles", "unrolled": "convolution.jobs:unrolled_images",
}  # fmt: skip


class Job(np.ndarray[Any, np.dtype[np.int64]]):
    """places: where the missing addresses go, by what is there. room: bytes that are needed while
    it runs, in which the number of cores has a part. plan: what it was made of, and points to.
    """

    recipe: tuple[Any, ...]
    places: dict[str, int]
    room: int
    plan: Any


@functools.cache
def job(kind: str, *given: Any) -> Job | None:
    """The job of a kind for shapes and what else is no array; None where it does not serve."""
    module, _, maker = _MAKERS[kind].partition(":")
    beside = importlib.import_module(f"{__package__}.{module}")
    found: Job | None = getattr(beside, maker)(*given)
    if found is not None:
        found.recipe = kind, *given
    return found


def job_of(
    entry: int, words: Any, fields: Fields, missing: tuple[str, ...], room: int, plan: Any
) -> Job:
    """The job of an entry and its words. missing: names of the addresses that come later."""
    found = np.array([entry, *words.tolist()], np.int64).view(Job)
    found.room, found.plan = room, plan
    found.places = {name: 1 + fields.place(name) for name in missing}
    return found


def alone(found: Job, fields: Fields, work: int, tasks: str = "tasks") -> Job:
    """The job, with one task for all units where the work is little."""
    if work < _ALONE:
        found[1 + fields.place(tasks)] = 1
    return found
