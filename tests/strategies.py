"""What hypothesis may draw: shapes, arrays, axes, indices, and small programs."""

from typing import Any

import attrs
import numpy as np
from hypothesis import strategies as st

import funct.array as xp
from funct import ops

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


# Programs: every step takes (3, 3) arrays and gives one; views, scalars and broadcasts among them.

SIDE = 3
UNARY: dict[str, Any] = {
    "sin": xp.sin,
    "tanh": xp.tanh,
    "negative": lambda x: -x,
    "square": lambda x: x * x,
    "plus_number": lambda x: x + 0.3,
    "from_number": lambda x: 1.5 - x,
    "transpose": lambda x: xp.permute_dims(x, (1, 0)),
    "flip": lambda x: xp.flip(x, axis=1),
    "row": lambda x: xp.broadcast_to(x[1:2], (SIDE, SIDE)),
    "column": lambda x: xp.broadcast_to(x[:, -1:], (SIDE, SIDE)),
    "flat": lambda x: xp.reshape(xp.cos(xp.reshape(x, (-1,))), (SIDE, SIDE)),
    "slice": lambda x: x[::-1, :],
    "stop": ops.stop_gradient,
    "centre": lambda x: x - xp.mean(x, axis=0, keepdims=True),
    "norm": lambda x: x / (1.0 + xp.sum(x * x)),
    "running": lambda x: xp.cumulative_sum(x, axis=0),
    "sort": lambda x: xp.sort(x, axis=1, descending=True),
    "gather": lambda x: xp.take(x, xp.asarray([2, 0, 0]), axis=0),
    "single": lambda x: xp.astype(xp.astype(x, "float32") * 3, "float64"),
}
BINARY: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: x * y,
    "subtract": lambda x, y: x - y,
    "maximum": xp.maximum,
    "where": lambda x, y: xp.where(x > y, x, y * 0.5),
    "matmul": lambda x, y: xp.tanh(x @ xp.sin(y)),  # x @ x.T of one buffer is another BLAS call
    "row_plus": lambda x, y: x[0] + y,
    "join": lambda x, y: xp.concat([x[:1], y[1:]]),
    "outer": lambda x, y: x[:, :1] * y[:1, :],
}


@attrs.frozen
class Program:
    """A random function of two arrays; it gives several results, repeated ones too.

    more: steps of two arrays besides those above.
    """

    steps: tuple[tuple[str, int, int], ...]
    outputs: tuple[int, ...]
    more: dict[str, Any] = attrs.field(factory=dict, eq=False, repr=False)

    def __call__(self, x: Any, y: Any) -> tuple[Any, ...]:
        pool = [x, y, xp.asarray(np.linspace(-1.0, 1.0, SIDE * SIDE).reshape(SIDE, SIDE))]
        for name, i, j in self.steps:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            step = self.more.get(name) or BINARY.get(name)
            pool.append(UNARY[name](a) if step is None else step(a, b))
        return tuple([pool[k % len(pool)] for k in self.outputs])


@st.composite
def programs(draw: Any, max_steps: int = 15) -> Program:
    """A program whose steps often use recent values, so that buffers die and are reused."""
    name = st.sampled_from([*UNARY, *BINARY])
    recent = st.one_of(st.sampled_from([-1, -1, -2, -3]), st.integers(0, 20))
    steps = draw(st.lists(st.tuples(name, recent, recent), min_size=1, max_size=max_steps))
    outputs = draw(st.lists(recent, min_size=1, max_size=4))
    return Program(tuple(steps), tuple(outputs))


def inputs(seed: int, fortran: bool = False) -> list[np.ndarray[Any, Any]]:
    """Two arrays for a program."""
    rng = np.random.default_rng(seed)
    pair = [rng.normal(size=(SIDE, SIDE)) for _ in range(2)]
    return [np.asfortranarray(x) for x in pair] if fortran else pair
