"""What hypothesis may draw: shapes, arrays, axes, indices, and small programs."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

KINDS = ["bool", "int8", "int64", "uint16", "float32", "float64", "complex128"]
REAL = ["int64", "float32", "float64"]
FLOATING = ["float32", "float64"]


def shapes(min_rank: int = 0, max_rank: int = 3, min_side: int = 0) -> st.SearchStrategy[Any]:
    """Shapes with short sides; length 0 and 1 included."""
    side = st.integers(min_side, 4)
    return st.lists(side, min_size=min_rank, max_size=max_rank).map(tuple)


def filled(shape: tuple[int, ...], kind: str, seed: int) -> np.ndarray[Any, Any]:
    """An array of small numbers, ties and negative zeros included."""
    rng = np.random.default_rng(seed)
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.startswith(("int", "uint")):
        low = 0 if kind.startswith("u") else -5
        return np.asarray(rng.integers(low, 6, shape)).astype(kind)
    x = np.asarray(rng.normal(size=shape))
    if kind.startswith("complex"):
        return np.asarray(x + 1j * rng.normal(size=shape)).astype(kind)
    return np.where(rng.random(shape) < 0.2, np.round(x), x).astype(kind)


@st.composite
def arrays(draw: Any, kinds: list[str] | None = None, **limits: Any) -> np.ndarray[Any, Any]:
    """One ndarray."""
    kind = draw(st.sampled_from(kinds or KINDS))
    return filled(draw(shapes(**limits)), kind, draw(st.integers(0, 2**32 - 1)))


@st.composite
def with_axes(draw: Any, kinds: list[str] | None = None, **limits: Any) -> tuple[Any, Any]:
    """An ndarray and an axis argument: None, an int or a tuple, negative ones included."""
    x = draw(arrays(kinds, **limits))
    rank = x.ndim
    if not rank:
        return x, None
    one = st.integers(-rank, rank - 1)
    many = st.lists(one, max_size=rank, unique_by=lambda a: a % rank).map(tuple)
    return x, draw(st.one_of(st.none(), one, many))


@st.composite
def with_axis(draw: Any, kinds: list[str] | None = None, **limits: Any) -> tuple[Any, int]:
    """An ndarray of rank 1 or more, and one of its axes."""
    x = draw(arrays(kinds, **({"min_rank": 1} | limits)))
    return x, draw(st.integers(-x.ndim, x.ndim - 1))


@st.composite
def broadcastable(draw: Any, count: int = 2) -> list[tuple[int, ...]]:
    """Shapes that broadcast together."""
    full = draw(shapes())
    out = []
    for _ in range(count):
        tail = full[len(full) - draw(st.integers(0, len(full))) :]
        out.append(tuple([1 if draw(st.booleans()) else n for n in tail]))
    return out


def _slices(n: int) -> st.SearchStrategy[slice]:
    end = st.one_of(st.none(), st.integers(-n - 2, n + 2))
    step = st.one_of(st.none(), st.sampled_from([-3, -2, -1, 1, 2, 3]))
    return st.builds(slice, end, end, step)


@st.composite
def indices(draw: Any, shape: tuple[int, ...]) -> Any:
    """A key for an array of that shape: every basic and advanced form, mixed."""
    rank = len(shape)
    first = draw(st.integers(0, rank))
    last = draw(st.integers(first, rank))
    axes = [*range(first), *range(last, rank)]
    masked = draw(st.sampled_from([None, None, *axes]))  # a mask broadcasts with no other array
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    common = draw(shapes(max_rank=2))

    def entry(axis: int) -> Any:
        n = shape[axis]
        if axis == masked:
            return rng.integers(0, 2, n).astype(bool)
        forms = ["slice", "all"] + ["int", "zero_d"] * (n > 0)
        forms += ["array"] * (3 if n and masked is None else 0)
        form = draw(st.sampled_from(forms))
        if form == "slice":
            return draw(_slices(n))
        if form == "int":
            return draw(st.integers(-n, n - 1))
        if form == "zero_d":
            return np.asarray(draw(st.integers(-n, n - 1)))
        if form == "array":
            return rng.integers(-n, n, [1 if rng.random() < 0.2 else k for k in common])
        return slice(None)

    key = [entry(axis) for axis in range(first)]
    if last < rank or draw(st.booleans()):
        key.append(Ellipsis)
    key += [entry(axis) for axis in range(last, rank)]
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    return key[0] if len(key) == 1 and draw(st.booleans()) else tuple(key)
