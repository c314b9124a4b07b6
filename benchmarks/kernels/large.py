"""Functions of large arrays that NumPy computes number by number, in GB/s of what goes in and out.

numpy is the plain function, whose bits ours has for float16 and bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

import funct.array as xp
from benchmarks.kernels.row import Row
from benchmarks.peers import optional
from funct.core import lookup
from funct.kernels.elementwise.functions import sigmoid
from funct.kernels.table import find

TITLE = "elementwise functions and sums of 512x512 numbers [GB/s]"

_SHAPE = (512, 512)
_SOME = 1000  # of a vector in the first cache
_HALVES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
_ONE: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "isnan": np.isnan, "sigmoid": sigmoid, "sqrt": np.sqrt, "tanh": np.tanh,
}  # fmt: skip
_TWO: dict[str, Callable[..., Any]] = {
    "add": np.add, "divide": np.divide, "less": np.less, "maximum": np.maximum,
    "multiply": np.multiply,
}  # fmt: skip
_REAL = (
    "asinh", "atan2", "atanh", "erf", "expm1", "floor_divide", "hypot", "log1p", "nextafter",
    "remainder", "sin", "sinh",
)  # fmt: skip
_COMPLEX = ("asin", "atanh", "exp", "log", "log1p", "sin", "sqrt", "tanh")


def rows() -> Iterator[Row]:
    """Every row."""
    torch: Any = optional("torch")
    rng = np.random.default_rng(0)
    for real in (np.float32, np.float64):
        given = [rng.uniform(0.1, 0.9, _SHAPE).astype(real) for _ in range(2)]
        choose = find("elementwise", given[0].dtype)
        for name in _REAL:
            prim = lookup(name)
            count = len(prim.rules)
            ours, title = choose(name, prim.raw, count), f"{name} {np.dtype(real).name}"
            moved = given[0].nbytes * (count + 1)
            yield _row(title, moved, ours, prim.raw, name, tuple(given[:count]), torch)
            some = tuple([x.reshape(-1)[:_SOME].copy() for x in given[:count]])
            title, moved = f"{title}, {_SOME:,} numbers", moved * _SOME // given[0].size
            yield _row(title, moved, ours, prim.raw, name, some, torch)
        yield _limits(given[0], torch)
    for whole in (np.int32, np.int64):
        counts = [rng.integers(1, 1000, _SHAPE).astype(whole) for _ in range(2)]
        for name in ("floor_divide", "remainder"):
            plain = lookup(name).raw
            ours = find("elementwise", np.dtype(np.float64))(name, plain, 2)
            title, moved = f"{name} {np.dtype(whole).name}", 3 * counts[0].nbytes
            yield _row(title, moved, ours, plain, name, tuple(counts), torch)
    codes = rng.integers(0, 256, _SHAPE).astype(np.uint8)
    for name in ("sin", "erf"):  # float16 and float32
        plain = lookup(name).raw
        ours = find("elementwise", np.dtype(np.float16))(name, plain, 1)
        moved = codes.size + plain(codes).nbytes
        yield _row(f"{name} uint8", moved, ours, plain, name, (codes,), torch)
    z = (rng.normal(size=_SHAPE) + 1j * rng.normal(size=_SHAPE)).astype(np.complex64)
    for name in _COMPLEX:
        plain = lookup(name).raw
        ours = find("elementwise", z.real.dtype)(name, plain, 1)
        yield _row(f"{name} complex64", 2 * z.nbytes, ours, plain, name, (z,), torch)
    for kind, dtype in _HALVES.items():
        x, y = (rng.uniform(0.1, 3.0, _SHAPE).astype(dtype) for _ in range(2))
        choose = find("elementwise", x.dtype)
        for name, plain in (_ONE | _TWO).items():
            given = (x,) if name in _ONE else (x, y)
            ours = choose(name, plain, len(given))
            moved = sum([a.nbytes for a in (*given, ours(*given))])
            yield _row(f"{name} {kind}", moved, ours, plain, name, given, torch)
        mask = rng.random(_SHAPE) < 0.5
        ours = choose("where", np.where, 3)
        yield _row(
            f"where {kind}", mask.size + 3 * x.nbytes, ours, np.where, "where", (mask, x, y), torch
        )
        yield from _casts(kind, x, torch)
        yield from _reductions(kind, x, torch)


def _limits(x: Any, torch: Any) -> Row:
    array = xp.asarray(x)
    peers: dict[str, Callable[[], object]] = {"numpy": lambda: np.maximum(x, 0)}
    if torch is not None:
        t = _tensor(torch, x)
        peers["torch"] = lambda: torch.clamp_min(t, 0)
    title = f"maximum with a number {x.dtype.name}"
    return Row(title, 2 * x.nbytes, lambda: xp.maximum(array, 0), peers)


def _casts(kind: str, x: Any, torch: Any) -> Iterator[Row]:
    pairs = [(x, np.dtype(np.float32), "float32")]
    for dtype in (np.float32, np.float64, np.uint8, np.int32):
        pairs.append((np.clip(100 * x, 0, 127).astype(dtype), x.dtype, kind))
    for v, to, name in pairs:
        cast = find("cast", v.dtype)
        peers: dict[str, Callable[[], object]] = {"numpy": lambda v=v, to=to: v.astype(to)}
        if torch is not None:
            t, target = _tensor(torch, v), getattr(torch, name)
            peers["torch"] = lambda t=t, target=target: t.to(target)
        title, moved = f"astype {v.dtype.name}, to {name}", v.nbytes + v.size * to.itemsize
        yield Row(title, moved, lambda cast=cast, v=v, to=to: cast(v, to), peers)


def _reductions(kind: str, x: Any, torch: Any) -> Iterator[Row]:
    array = xp.asarray(x)
    for name, plain in (("sum", np.add.reduce), ("max", np.maximum.reduce)):
        for axis in (0, 1):
            peers: dict[str, Callable[[], object]] = {
                "numpy": lambda plain=plain, axis=axis: plain(x, axis)
            }
            if torch is not None:
                theirs = torch.sum if name == "sum" else torch.amax
                t = _tensor(torch, x)
                peers["torch"] = lambda theirs=theirs, t=t, axis=axis: theirs(t, axis)
            ours = getattr(xp, name)
            call = lambda ours=ours, axis=axis: ours(array, axis=axis)  # noqa: E731
            yield Row(f"{name} of axis {axis}, {kind}", x.nbytes, call, peers)


def _row(
    title: str, moved: int, ours: Any, plain: Any, name: str, given: tuple[Any, ...], torch: Any
) -> Row:
    peers: dict[str, Callable[[], object]] = {"numpy": lambda: plain(*given)}
    if torch is not None:
        tensors = [_tensor(torch, a) for a in given]
        theirs = getattr(torch, name)
        peers["torch"] = lambda: theirs(*tensors)
    return Row(title, moved, lambda: ours(*given), peers)


def _tensor(torch: Any, x: Any) -> Any:
    if x.dtype == ml_dtypes.bfloat16:
        return torch.asarray(x.astype(np.float32)).to(torch.bfloat16)
    return torch.asarray(x)
