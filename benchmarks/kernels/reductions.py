"""Reductions of arrays, along each kind of axis, in GB/s.

Bytes are those of what goes in. The shapes are all of memory, rows that are long, middling or
short, columns that are many or few, and an axis between others; halves are summed in float32. Some
are compiled, some of a transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.kernels.row import Row
from benchmarks.peers import optional

TITLE = "reductions, one thread [GB/s]"

Axis = int | tuple[int, ...] | None

SHAPES: tuple[tuple[tuple[int, ...], Axis], ...] = (
    ((1_000_000,), None), ((1000,), None), ((1000, 333), 1), ((30_000, 33), 1), ((300_000, 3), 1),
    ((316, 316), 0), ((10, 100_000), 0), ((100_000, 10), 0), ((50, 200, 100), 1),
    ((10_000, 4, 4), (1, 2)), ((256, 64, 64), (1, 2)),
)  # fmt: skip
COMPILED: tuple[tuple[tuple[int, ...], Axis, bool], ...] = (
    ((10, 100_000), 0, False), ((1000, 333), 0, False), ((100_000, 10), 0, False),
    ((1000, 333), 0, True),
)  # fmt: skip
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int32", "int64")
OF_TORCH = {"sum": "sum", "prod": "prod", "max": "amax", "var": "var"}
FLOATING = ("float32", "float64", "float16")


def rows() -> Iterator[Row]:
    """Every row."""
    for name in OF_TORCH:
        for dtype in DTYPES if name != "var" else FLOATING:
            for shape, axis in SHAPES:
                if name != "prod" or not isinstance(axis, tuple):  # of which torch has none
                    yield _row(name, dtype, shape, axis)
    for shape, axis, turned in COMPILED:
        yield _row("sum", "float32", shape, axis, turned=turned, compiled=True)
    yield _row("sum", "float32", (1000, 333), 0, turned=True)
    yield _row("prod", "complex64", (1_000_000,), None)
    for dtype in FLOATING[:2]:
        yield _row("nansum", dtype, (1_000_000,), None)
        yield _row("nanmean", dtype, (1_000_000,), None)


def _row(
    name: str, dtype: str, shape: tuple[int, ...], axis: Axis, *, turned: bool = False,
    compiled: bool = False,
) -> Row:  # fmt: skip
    """turned: of the transpose of an array of that shape."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    a = np.random.default_rng(0).integers(-1, 2, shape).astype(kind)
    if name.startswith("nan"):
        a[..., ::7] = np.nan
    x, ours = xp.asarray(a), getattr(xp, name)
    if turned:
        a, x = a.T, xp.matrix_transpose(x)
    peers: dict[str, Callable[[], object]] = {}
    if dtype != "bfloat16":
        theirs = getattr(np, name)
        peers["numpy"] = lambda: theirs(a, axis)
    torch: Any = optional("torch")
    if torch is not None:
        t = torch.from_numpy(a if kind.kind == "c" else a.astype(np.float32)).to(
            getattr(torch, dtype)
        )
        f = getattr(torch, OF_TORCH.get(name, name))
        given = {} if axis is None else {"dim": axis}
        if name == "var":
            given["correction"] = 0
        peers["torch"] = lambda: f(t, **given)
    label = f"{name}, {dtype}, {shape}{'.T' * turned}"
    label += f", axis {axis}" if axis is not None else ""
    label = f"compiled {label}" if compiled else label
    fun: Any = ft.jit if compiled else lambda f: f
    run = fun(lambda x: ours(x, axis=axis))
    return Row(label, a.nbytes, lambda: run(x), peers)
