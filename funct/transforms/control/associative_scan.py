"""associative_scan: all prefixes in a logarithmic number of calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funct import ops
from funct import tree as pytree
from funct.array import Tensor, asarray, concat, stack
from funct.array.axes import normal_axis
from funct.errors import ShapeError

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
    leaves, spec = pytree.flatten(elems)
    leaves = [x if isinstance(x, Tensor) else asarray(x) for x in leaves]
    if not leaves:
        return elems
    axes = [normal_axis("associative_scan", axis, len(x.shape)) for x in leaves]
    columns = [ops.move_axis(x, a, 0) for x, a in zip(leaves, axes, strict=True)]
    lengths = [int(x.shape[0]) for x in columns]
    if len(set(lengths)) > 1:
        raise ShapeError(f"associative_scan: lengths along axis {axis} must agree, got {lengths}")

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        out = fn(spec.unflatten(a), spec.unflatten(b))
        pytree.same_structure("associative_scan: the result of fn", elems, out)
        return pytree.leaves(out)

    if reverse:
        columns = [x[::-1] for x in columns]
    columns = _prefixes(combine, columns)
    if reverse:
        columns = [x[::-1] for x in columns]
    out = [ops.move_axis(x, 0, a) for x, a in zip(columns, axes, strict=True)]
    return spec.unflatten(out)


def _prefixes(combine: Callable[..., list[Any]], xs: list[Any]) -> list[Any]:
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


def _interleaved(even: Any, odd: Any) -> Any:
    """even[0], odd[0], even[1], …; even may have one more."""
    n = odd.shape[0]
    both = ops.reshape(stack([even[:n], odd], axis=1), (2 * n, *odd.shape[1:]))
    return both if even.shape[0] == n else concat([both, even[n:]])
