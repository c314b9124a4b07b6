"""Kernels against the machine's limits and the best peer, all in one run on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import ModuleType

from benchmarks.kernels import (
    attention,
    decompositions,
    dense,
    draws,
    irregular,
    large,
    mathematics,
    memory,
    quantized,
    reductions,
    rowwise,
    samples,
)
from benchmarks.kernels.row import Row, table

__all__ = ["PARTS", "Row", "run"]

FILES = (
    attention, dense, decompositions, draws, irregular, large, mathematics, memory, quantized,
    reductions, rowwise, samples,
)  # fmt: skip


def run(*files: ModuleType) -> Iterator[str]:
    """Lines of a table for each of the files, as they are measured."""
    for file in files or FILES:
        yield from table(file.TITLE, file.rows())
        yield ""


PARTS = {f.__name__.removeprefix("benchmarks."): partial(run, f) for f in FILES}
