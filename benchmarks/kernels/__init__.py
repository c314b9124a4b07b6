"""Kernels against the machine's limits and the best peer, all in one run on one thread."""

from __future__ import annotations

from benchmarks.kernels import (
    attention,
    decompositions,
    dense,
    draws,
    irregular,
    large,
    mathematics,
    memory,
    reductions,
    rowwise,
    samples,
)
from benchmarks.kernels.row import Row, table

__all__ = ["Row", "run", "table"]

FILES = (
    attention, dense, decompositions, draws, irregular, large, mathematics, memory, reductions,
    rowwise, samples,
)  # fmt: skip


def run() -> str:
    """One table per file."""
    return "\n\n".join([table(f.TITLE, f.rows()) for f in FILES])
