"""associative_scan: all prefixes in a logarithmic number of calls.

Note [Any length]: neighbours are combined, then pairs of pairs and so on, and on the way back what
lies between is filled in. How often is a matter of the length. Where capture keeps that open, the
array is padded to blocks; the levels within a block are as many for every length, and those among
blocks, which hold a 32nd of the elements, are a loop over masks. Each result combines the same
elements in the same order in either way, so it has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funct import ops, pytree
from funct.array import arange, asarray, concat, stack
from funct.array.axes import normal_axis
from funct.array.trees import flat_arrays
from funct.errors import ShapeError
from funct.transforms.control.while_loop import while_loop
from funct.transforms.given import expect_functions

__all__ = ["associative_scan"]


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """All prefixes of elems along an axis combined by an associative fn, in log n calls of fn.

    Args: fn: from two pytrees of slices to one, elementwise along the axis: it is called on many
    pairs at once. elems: a pytree of arrays of equal length along axis. reverse: from the end.
    Returns: elems' structure and shapes; place k holds elems[0] · … · elems[k], or in reverse, in
    the order in which they come, elems[n - 1] · … · elems[k].
    Raises: ShapeError: when lengths disagree. TreeError: when fn changes the structure.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.associative_scan(xp.multiply, xp.asarray([1, 2, 3, 4])).tolist()
        [1, 2, 6, 24]

    Source: Blelloch, "Prefix sums and their applications" (1990); `jax.lax.associative_scan`.
    """
    expect_functions("associative_scan", fn=fn)
    leaves, spec = flat_arrays(elems)
    if not leaves:
        return elems
    axes = [normal_axis("associative_scan", axis, len(x.shape)) for x in leaves]
    columns = [ops.move_axis(x, a, 0) for x, a in zip(leaves, axes, strict=True)]
    lengths = [x.shape[0] for x in columns]
    n = lengths[0]
    if any(m is not n and m != n for m in lengths):
        raise ShapeError(f"associative_scan: lengths along axis {axis} must agree, got {lengths}")

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        out = fn(spec.unflatten(a), spec.unflatten(b))
        pytree.same_structure("associative_scan: the result of fn", elems, out)
        return flat_arrays(out)[0]

    if reverse:
        columns = [x[::-1] for x in columns]
    columns = _prefixes(combine, columns) if n.__class__ is int else _padded(combine, columns)
    if reverse:
        columns = [x[::-1] for x in columns]
    out = [ops.move_axis(x, 0, a) for x, a in zip(columns, axes, strict=True)]
    return spec.unflatten(out)


Combine = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


def _prefixes(combine: Combine, xs: list[Any]) -> list[Any]:
    """Combine neighbours, solve for the pairs, and fill in what lies between."""
    n = xs[0].shape[0]
    if n < 2:
        return xs
    pairs = combine([x[: n - n % 2 : 2] for x in xs], [x[1::2] for x in xs])
    odd = _prefixes(combine, pairs)
    if n == 2:
        return [concat([x[:1], o]) for x, o in zip(xs, odd, strict=True)]
    inner = combine([o[: (n - 1) // 2] for o in odd], [x[2::2] for x in xs])
    even = [concat([x[:1], i]) for x, i in zip(xs, inner, strict=True)]
    return [_interleaved(e, o) for e, o in zip(even, odd, strict=True)]


_LEVELS = 5  # within a block of 32


def _padded(combine: Combine, xs: list[Any]) -> list[Any]:
    """Prefixes of any number of elements: what follows the last one changes none of them."""
    n, block = xs[0].shape[0], 2**_LEVELS
    more = (n + block - 1) // block * block - n
    whole = [concat([x, ops.broadcast_to(x[-1:], (more, *x.shape[1:]))]) for x in xs]
    return [ops.take(x, arange(n), 0) for x in _in_blocks(combine, whole, _LEVELS)]


def _in_blocks(combine: Combine, xs: list[Any], levels: int) -> list[Any]:
    """Prefixes of a multiple of 2**levels elements."""
    if not levels:
        return _among_blocks(combine, xs)
    half = xs[0].shape[0] // 2
    pairs = [ops.reshape(x, (half, 2, *x.shape[1:])) for x in xs]
    left, right = [p[:, 0] for p in pairs], [p[:, 1] for p in pairs]
    odd = _in_blocks(combine, combine(left, right), levels - 1)
    # the first has nothing before it, and is combined with itself to have as many of everything
    before = [concat([x[:1], o[:-1]]) for x, o in zip(xs, odd, strict=True)]
    inner = combine(before, left)
    even = [concat([x[:1], i[1:]]) for x, i in zip(xs, inner, strict=True)]
    return [_alternating(e, o) for e, o in zip(even, odd, strict=True)]


def _among_blocks(combine: Combine, xs: list[Any]) -> list[Any]:
    """Prefixes by as many sweeps as the length needs: up the levels, then down."""
    n = xs[0].shape[0]
    ends = arange(1, n + 1)

    def sweep(gap: Any, ys: list[Any], here: Any) -> list[Any]:
        """Combine with what lies `gap` before, where `here` says."""
        before = ops.maximum(ends - 1 - gap, 0)
        both = combine([ops.take(y, before, 0) for y in ys], ys)
        masks = [ops.reshape(here, (n, *[1] * (len(y.shape) - 1))) for y in ys]
        return [ops.where(m, b, y) for m, b, y in zip(masks, both, ys, strict=True)]

    def up(state: Any) -> Any:
        gap, ys = state
        return gap * 2, sweep(gap, ys, ops.equal(ends % (gap * 2), 0))

    def down(state: Any) -> Any:
        gap, ys = state
        here = ops.logical_and(ops.equal(ends % (gap * 2), gap), ops.greater(ends, gap))
        return gap // 2, sweep(gap, ys, here)

    count = ends[-1]
    state = while_loop(lambda s: s[0] < count, up, (asarray(1), xs))
    return while_loop(lambda s: s[0] > 0, down, state)[1]


def _interleaved(even: Any, odd: Any) -> Any:
    """even[0], odd[0], even[1], …; even may have one more."""
    n = odd.shape[0]
    both = _alternating(even[:n], odd)
    return both if even.shape[0] == n else concat([both, even[n:]])


def _alternating(even: Any, odd: Any) -> Any:
    n = odd.shape[0]
    return ops.reshape(stack([even, odd], axis=1), (2 * n, *odd.shape[1:]))
