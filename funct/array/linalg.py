"""Products of arrays with the standard's and NumPy's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import normal_axis
from funct.array.tensor import matmul
from funct.core import Shape
from funct.errors import ShapeError

__all__ = ["einsum", "matmul", "outer", "tensordot", "vecdot"]


def einsum(subscripts: str, /, *operands: Any) -> Any:
    """Einstein sum, NumPy's notation: "ij,jk->ik", with `...` and an implicit result.

    Args: subscripts: labels of each operand's axes and, after "->", of the result's.
    Raises: ShapeError: when labels and ranks, or lengths of one label, disagree.
    Example:
        >>> import funct.array as xp
        >>> xp.einsum("ij,j->i", xp.ones((2, 3)), xp.asarray([1.0, 2.0, 3.0])).tolist()
        [6.0, 6.0]
    Source: NumPy `einsum`; two operands at a time, in the order of `numpy.einsum_path`.
    """
    terms, out = _parse(subscripts, [len(x.shape) for x in operands])
    work = [_diagonal(x, t) for x, t in zip(operands, terms, strict=True)]
    for step in _order(terms, out, operands):
        picked = [work.pop(i) for i in sorted(step, reverse=True)][::-1]
        keep = set(out).union(*[t for _, t in work])
        work.append(_pair(picked[0], picked[1], keep) if len(picked) == 2 else picked[0])
    x, t = _summed(*work[0], set(out))
    return ops.permute_dims(x, tuple([t.index(c) for c in out])) if t != out else x


def _parse(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(f"einsum: {subscripts!r} names {len(terms)} operands, got {len(ranks)}")
    fresh = [chr(k) for k in range(0x391, 0x391 + 40)]  # labels that no user types
    extra = max([n - len(t.replace("...", "")) for t, n in zip(terms, ranks, strict=True)] + [0])
    for k, (t, n) in enumerate(zip(terms, ranks, strict=True)):
        hidden = n - len(t.replace("...", ""))
        if hidden < 0 or ("..." not in t and hidden):
            raise ShapeError(f"einsum: term {t!r} of {subscripts!r} does not fit rank {n}")
        terms[k] = t.replace("...", "".join(fresh[extra - hidden : extra]))
    if not arrow:
        labels = "".join(terms)
        right = "..." + "".join(sorted(c for c in set(labels) if labels.count(c) == 1 and c < "Α"))
    return terms, right.replace("...", "".join(fresh[:extra]))


def _diagonal(x: Any, t: str) -> tuple[Any, str]:
    """A label that stands twice selects the diagonal of its two axes."""
    for c in sorted(set(t)):
        while t.count(c) > 1:
            i, j = t.index(c), t.rindex(c)
            n = x.shape[i]
            if x.shape[j] != n:
                raise ShapeError(f"einsum: axis {c!r} has length {n} and {x.shape[j]}")
            x = ops.move_axis(ops.move_axis(x, j, 0), i + 1, 1)
            t = c + c + "".join(v for k, v in enumerate(t) if k not in (i, j))
            x = ops.reshape(x, (n * n, *x.shape[2:]))
            x = ops.slice_(x, ((None, None, int(n) + 1), *((None, None, 1),) * (len(x.shape) - 1)))
            t = t[1:]
    return x, t


def _order(terms: list[str], out: str, operands: tuple[Any, ...]) -> list[tuple[int, ...]]:
    if len(operands) < 3:
        return [tuple(range(len(operands)))]
    shown = [np.broadcast_to(np.zeros(()), [int(n) for n in x.shape]) for x in operands]
    path = np.einsum_path(",".join(terms) + "->" + out, *shown, optimize="greedy")[0][1:]
    steps: list[tuple[int, ...]] = []
    for step in path:  # NumPy may join more than two at a time
        steps += [tuple(step)] if len(step) == 2 else [(0, 1)] * (len(step) - 1)
    return steps


def _summed(x: Any, t: str, keep: set[str]) -> tuple[Any, str]:
    axes = tuple([i for i, c in enumerate(t) if c not in keep])
    return (ops.reduce_sum(x, axes, False), "".join(c for c in t if c in keep)) if axes else (x, t)


def _pair(a: tuple[Any, str], b: tuple[Any, str], keep: set[str]) -> tuple[Any, str]:
    x, s = _summed(*a, keep | set(b[1]))
    y, t = _summed(*b, keep | set(s))
    x, y = _grown(x, s, y, t)
    out = "".join(dict.fromkeys(c for c in s + t if c in keep))
    return ops.contract(x, y, f"{s},{t}->{out}"), out


def _grown(x: Any, s: str, y: Any, t: str) -> tuple[Any, Any]:
    """Axes of length 1 repeated to the length that the other operand gives the label."""
    size: dict[str, Any] = {}
    for labels, shape in ((s, x.shape), (t, y.shape)):
        for c, n in zip(labels, shape, strict=True):
            if n != 1 or c not in size:
                size[c] = n
    shape_x, shape_y = (tuple([size[c] for c in labels]) for labels in (s, t))
    x = x if x.shape == shape_x else ops.broadcast_to(x, shape_x)
    return x, y if y.shape == shape_y else ops.broadcast_to(y, shape_y)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Sum of products over the last `axes` axes of x1 and the first of x2, or over named ones."""
    a, b = len(x1.shape), len(x2.shape)
    if isinstance(axes, int):
        first, second = list(range(a - axes, a)), list(range(axes))
    else:
        first = [normal_axis("tensordot", k, a) for k in axes[0]]
        second = [normal_axis("tensordot", k, b) for k in axes[1]]
    left = [chr(97 + k) for k in range(a)]
    right = [chr(97 + a + k) for k in range(b)]
    for i, j in zip(first, second, strict=True):
        if x1.shape[i] != x2.shape[j]:
            raise ShapeError(
                f"tensordot: summed axes must agree, got {x1.shape[i]} and {x2.shape[j]}"
            )
        right[j] = left[i]
    kept = [c for c in left if c not in right] + [c for c in right if c not in left]
    return ops.contract(x1, x2, f"{''.join(left)},{''.join(right)}->{''.join(kept)}")


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Sum of conj(x1) * x2 along axis."""
    shape: Shape = ops.families.broadcast_shapes(x1.shape, x2.shape)
    k = normal_axis("vecdot", axis, min(len(x1.shape), len(x2.shape))) - min(
        len(x1.shape), len(x2.shape)
    )
    return ops.reduce_sum(ops.conj(x1) * x2, (len(shape) + k,), False)


def outer(x1: Any, x2: Any, /) -> Any:
    """Products of all pairs of elements of two vectors."""
    if len(x1.shape) != 1 or len(x2.shape) != 1:
        raise ShapeError(f"outer: operands must be 1-D, got x1 {x1.shape} and x2 {x2.shape}")
    return ops.contract(x1, x2, "a,b->ab")
