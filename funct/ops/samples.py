"""Example calls for rooms: every law of the catalogue is checked on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.core import Sample

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "booleans", "calls", "edges", "integers", "kinks", "ordered", "pairs", "ranges", "reals",
    "several", "specials",
]  # fmt: skip

# numpy.random is 11 ms of import time that only tests need: its names stay text
Make = Callable[["Generator"], Sequence[Sample]]


def _uniform(rng: Generator, low: float, high: float, shape: tuple[int, ...], dtype: str) -> Any:
    x = rng.uniform(low, high, shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.uniform(-0.7, 0.7, shape)
    return np.asarray(x, dtype=dtype)


def reals(
    low: float = -2.0, high: float = 2.0, *, complex_too: bool = False, smooth: bool = True
) -> Make:
    """One floating operand in [low, high]: several shapes, float32, complex where it applies."""

    def make(rng: Generator) -> list[Sample]:
        kinds = ["float64"] + (["complex128"] if complex_too else [])
        shapes = ((2, 3), (4,), ())
        out = [Sample((_uniform(rng, low, high, s, k),), (), smooth) for k in kinds for s in shapes]
        out.append(Sample((_uniform(rng, low, high, (0, 2), "float64"),), (), smooth))
        out.append(Sample((_uniform(rng, low, high, (3,), "float32"),), smooth=False))
        return out

    return make


def kinks() -> Make:
    """Like `reals`, but no element within 0.05 of an integer: differences cross no step."""

    def make(rng: Generator) -> list[Sample]:
        def draw(shape: tuple[int, ...]) -> Any:
            whole = rng.integers(-2, 2, shape)
            return np.asarray(whole + rng.uniform(0.05, 0.95, shape))

        return [Sample((draw(s),)) for s in ((2, 3), (4,), ())]

    return make


_PAIR_SHAPES = (((3,), (3,)), ((2, 3), (3,)), ((3, 1), (1, 4)), ((), (2,)), ((2, 0), (1,)))


def pairs(
    x: tuple[float, float] = (-2.0, 2.0),
    y: tuple[float, float] = (-2.0, 2.0),
    *,
    complex_too: bool = False,
    smooth: bool = True,
) -> Make:
    """Two floating operands that broadcast; mixed precision; complex where it applies."""

    def make(rng: Generator) -> list[Sample]:
        out = []
        for kind in ["float64"] + (["complex128"] if complex_too else []):
            for sx, sy in _PAIR_SHAPES:
                args = (_uniform(rng, *x, sx, kind), _uniform(rng, *y, sy, kind))
                out.append(Sample(args, smooth=smooth))
        mixed = (_uniform(rng, *x, (3,), "float32"), _uniform(rng, *y, (2, 3), "float64"))
        return [*out, Sample(mixed, smooth=False)]

    return make


def ranges(*bounds: tuple[float, float], params: tuple[Any, ...] = (), smooth: bool = True) -> Make:
    """Floating operands, each in its range, that broadcast; mixed precision; static parameters."""

    def make(rng: Generator) -> list[Sample]:
        n = len(bounds)
        out = []
        for shapes in ([(2, 1), (2,), (1,), ()][:n], [(2, 0), (1,)][:n]):
            sizes = [shapes[i % len(shapes)] for i in range(n)]
            args = [_uniform(rng, *r, s, "float64") for r, s in zip(bounds, sizes, strict=True)]
            out.append(Sample(args, params, smooth))
        kinds = ["float32", "float64"] if n > 1 else ["float32"]
        args = [_uniform(rng, *r, (3,), kinds[i % len(kinds)]) for i, r in enumerate(bounds)]
        return [*out, Sample(args, params, smooth=False)]

    return make


def ordered(
    *rows: tuple[int, ...] | tuple[float, float],
    params: tuple[Any, ...] = (),
    complex_too: bool = False,
) -> Make:
    """Integer operands, each with its elements, and a floating one in the range that comes last."""
    (low, high), *orders = rows[-1], *rows[:-1]

    def make(rng: Generator) -> list[Sample]:
        n = [np.asarray(row) for row in orders]
        kinds = ["float64"] + (["complex128"] if complex_too else [])
        out = [Sample((*n, _uniform(rng, low, high, n[0].shape, k)), params) for k in kinds]
        first = _uniform(rng, low, high, (2, 1), "float64")
        out.append(Sample((*[v[:1] for v in n], first), params))
        single = _uniform(rng, low, high, (3,), "float32")
        return [*out, Sample((*[v[0] for v in n], single), params, smooth=False)]

    return make


def integers(low: int = -5, high: int = 6, n: int = 2, high_last: int | None = None) -> Make:
    """n integer operands; `high_last` narrows the last one (shift counts)."""

    def make(rng: Generator) -> list[Sample]:
        out = []
        for shapes in (((3,), (3,)), ((2, 3), (3,)), ((), (2,))):
            for kind in ("int64", "int32", "uint8"):
                low_k = max(low, 0) if kind == "uint8" else low
                args = [rng.integers(low_k, high, shapes[i]).astype(kind) for i in range(n)]
                if high_last is not None:
                    args[-1] = rng.integers(0, high_last, shapes[n - 1]).astype(kind)
                out.append(Sample(args, smooth=False))
        return out

    return make


def booleans(n: int = 2) -> Make:
    """n boolean operands that broadcast, with every combination of truths."""

    def make(rng: Generator) -> list[Sample]:
        rows = np.asarray([[False, True, True, False, False]])
        column = np.asarray([[True], [False]])
        return [Sample([(rows, column)[i] for i in range(n)], smooth=False)]

    return make


def specials() -> Make:
    """One floating operand with infinities, NaN, signed zeros and ordinary numbers."""

    def make(rng: Generator) -> list[Sample]:
        x = np.asarray([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5])
        return [
            Sample((x,), smooth=False),
            Sample((x.astype(np.float32).reshape(7, 1),), smooth=False),
        ]

    return make


def edges() -> Make:
    """Two floating operands: zeros, ones and infinities over ones and infinities, all signs."""

    def make(rng: Generator) -> list[Sample]:
        over, under = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf], [1.0, -1.0, np.inf, -np.inf]
        return [Sample([a.ravel() for a in np.meshgrid(over, under)], smooth=False)]

    return make


def several(*makes: Make) -> Make:
    """The samples of all of them."""

    def make(rng: Generator) -> list[Sample]:
        return [s for m in makes for s in m(rng)]

    return make


def calls(*samples: Callable[[Generator], Sample]) -> Make:
    """Samples written out one by one, each from the generator."""

    def make(rng: Generator) -> list[Sample]:
        return [s(rng) for s in samples]

    return make


def regular(rng: Generator, *shape: int, unit: complex = 0.0) -> Any:
    """A well-conditioned matrix or stack of them; complex where unit is 1j."""
    x = rng.normal(size=shape) + (unit * rng.normal(size=shape) if unit else 0.0)
    return 0.4 * x + np.eye(shape[-2], shape[-1]) * np.arange(2.0, 2.0 + shape[-1])


def deficient(rng: Generator, m: int, n: int, rank: int, unit: complex = 0.0) -> Any:
    """A matrix whose rank is less than its lengths."""
    return regular(rng, m, rank, unit=unit) @ regular(rng, rank, n, unit=unit)
