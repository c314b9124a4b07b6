"""Products of arrays with the standard's and NumPy's signatures."""

from __future__ import annotations

import functools
from string import ascii_letters
from typing import Any

import numpy as np

from funct import ops
from funct.array.axes import integers, normal_axis
from funct.array.conversion import as_tensor, asarray
from funct.array.direct import direct
from funct.array.elementwise import conjugate
from funct.array.operators import matmul
from funct.array.tensor import Array
from funct.core import Shape, is_one
from funct.errors import ShapeError, UnsupportedOperandError
from funct.kernels.linalg import functions as kernels
from funct.kernels.linalg.kronecker import kron as kernel_of_kron
from funct.ops.fast import wrap
from funct.ops.linalg import contracted, contraction

__all__ = ["einsum", "kron", "matmul", "outer", "tensordot", "vecdot"]


def _at_once(subscripts: str, left: list[Any]) -> Any:
    """The sum where each step is a contraction at once, or there is one operand."""
    if len(left) == 1:
        return kernels.einsum(left[0], subscripts)
    steps = _contractions(subscripts, tuple([x.shape for x in left]))
    if steps is None:
        return None
    if len(steps) == 1:
        return contracted(left[0], left[1], steps[0][2])
    for i, j, how in steps:
        y = left.pop(j)
        left.append(contracted(left.pop(i), y, how))
    return left[0]


@direct(_at_once, arrays="rest")
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
    if not isinstance(subscripts, str):
        raise UnsupportedOperandError(
            f"einsum: subscripts must be a text, got {type(subscripts).__name__}"
        )
    operands = tuple([as_tensor("einsum", x) for x in operands])
    terms, out = _parse(subscripts, tuple([len(x.shape) for x in operands]))
    _check_lengths(subscripts, terms, operands)
    work = [_diagonal(x, t) for x, t in zip(operands, terms, strict=True)]
    for step in _order(terms, out, operands):
        picked = [work.pop(i) for i in sorted(step, reverse=True)][::-1]
        keep = set(out).union(*[t for _, t in work])
        work.append(_pair(picked[0], picked[1], keep) if len(picked) == 2 else picked[0])
    x, t = _summed(*work[0], set(out))
    return ops.permute_dims(x, tuple([t.index(c) for c in out])) if t != out else x


@functools.lru_cache(512)
def _contractions(subscripts: str, shapes: tuple[Shape, ...]) -> list[tuple[int, int, Any]] | None:
    """Pairs of operands to contract, i < j, and how; each result comes last. None unless each step
    is a contraction at once: no label stands twice, or is summed within one operand.
    """
    terms, out = _parse(subscripts, tuple([len(shape) for shape in shapes]))
    size: dict[str, int] = {}
    for t, shape in zip(terms, shapes, strict=True):
        if len(set(t)) < len(t) or any(
            size.setdefault(c, n) != n for c, n in zip(t, shape, strict=True)
        ):
            return None
    steps, work = [], list(terms)
    pairs = [(0, 1)] if len(terms) == 2 else _path(",".join(terms) + "->" + out, shapes)
    for pair in pairs:
        i, j = sorted(pair)
        t, s = work.pop(j), work.pop(i)
        keep = set(out).union(*work)
        if not set(s) <= keep | set(t) or not set(t) <= keep | set(s):
            return None
        left = out if not work else "".join(dict.fromkeys(c for c in s + t if c in keep))
        sizes = [tuple([size[c] for c in labels]) for labels in (s, t)]
        steps.append((i, j, contraction(f"{s},{t}->{left}", *sizes)))
        work.append(left)
    return steps


@functools.lru_cache(512)
def _parse(subscripts: str, ranks: Shape) -> tuple[list[str], str]:
    """One label per axis for each operand and the result; `...` becomes labels nobody typed."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(f"einsum: {subscripts!r} names {len(terms)} operands, got {len(ranks)}")
    for c in "".join([t.replace("...", "", 1) for t in (*terms, right)]):
        if c not in ascii_letters:
            raise ShapeError(f"einsum: labels must be letters, got {c!r} in {subscripts!r}")
    hidden = [n - len(t.replace("...", "")) for t, n in zip(terms, ranks, strict=True)]
    for t, n, h in zip(terms, ranks, hidden, strict=True):
        if h < 0 or (h and "..." not in t):
            raise ShapeError(f"einsum: term {t!r} of {subscripts!r} does not fit rank {n}")
    extra = max([0, *hidden])
    fresh = "".join([c for c in ascii_letters if c not in subscripts][:extra])
    named = "".join(terms).replace("...", "")
    if not arrow:
        right = "..." + "".join(sorted(c for c in set(named) if named.count(c) == 1))
    _check_result(subscripts, right, named, extra)
    terms = [t.replace("...", fresh[extra - h :]) for t, h in zip(terms, hidden, strict=True)]
    return terms, right.replace("...", fresh)


def _check_result(subscripts: str, right: str, named: str, extra: int) -> None:
    if extra and "..." not in right:
        raise ShapeError(
            f"einsum: the result of {subscripts!r} must have '...' for the axes it hides"
        )
    for c in right.replace("...", ""):
        if c not in named:
            raise ShapeError(f"einsum: result label {c!r} of {subscripts!r} stands in no operand")
        if right.count(c) > 1:
            raise ShapeError(f"einsum: result label {c!r} of {subscripts!r} stands twice")


def _check_lengths(subscripts: str, terms: list[str], operands: tuple[Any, ...]) -> None:
    """Axes of one label have one length, or, in another operand, length 1."""
    size: dict[str, Any] = {}
    for t, x in zip(terms, operands, strict=True):
        for k, (c, n) in enumerate(zip(t, x.shape, strict=True)):
            m = x.shape[t.index(c)] if t.index(c) < k else size.get(c, 1)
            inside = t.index(c) < k
            if n != m if inside else not (is_one(n) or is_one(m) or n == m):
                shown = f"axis {c!r}" if c in subscripts else "an axis under '...'"
                raise ShapeError(f"einsum: {shown} has length {m} and {n} in {subscripts!r}")
            size[c] = m if is_one(n) else n


def _diagonal(x: Any, t: str) -> tuple[Any, str]:
    """A label that stands twice selects the diagonal of its two axes."""
    if len(set(t)) == len(t):
        return x, t
    for c in sorted(set(t)):
        while t.count(c) > 1:
            i, j = t.index(c), t.rindex(c)
            n = x.shape[i]
            x = ops.move_axis(ops.move_axis(x, j, 0), i + 1, 1)
            t = c + c + "".join(v for k, v in enumerate(t) if k not in (i, j))
            x = ops.reshape(x, (n * n, *x.shape[2:]))
            rest = ((None, None, 1),) * (len(x.shape) - 1)
            x = ops.slice_(x, ((None, None, int(n) + 1), *rest))
            t = t[1:]
    return x, t


def _order(terms: list[str], out: str, operands: tuple[Any, ...]) -> list[tuple[int, ...]]:
    if len(operands) < 3:
        return [tuple(range(len(operands)))]
    shapes = tuple([tuple([int(n) for n in x.shape]) for x in operands])
    return _path(",".join(terms) + "->" + out, shapes)


@functools.lru_cache(512)
def _path(spec: str, shapes: tuple[Shape, ...]) -> list[tuple[int, ...]]:
    shown = [np.broadcast_to(np.zeros(()), shape) for shape in shapes]
    steps: list[tuple[int, ...]] = []
    for step in np.einsum_path(spec, *shown, optimize="greedy")[0][1:]:
        # NumPy may join more than two at a time
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
            if not is_one(n) or c not in size:
                size[c] = n
    shape_x, shape_y = (tuple([size[c] for c in labels]) for labels in (s, t))
    x = x if x.shape == shape_x else ops.broadcast_to(x, shape_x)
    return x, y if y.shape == shape_y else ops.broadcast_to(y, shape_y)


@direct(kernels.tensordot, arrays=2)
def tensordot(x1: Any, x2: Any, /, axes: Any = 2) -> Any:
    """Sum of products over the last `axes` axes of x1 and the first of x2, or over named ones.

    Raises: ShapeError: when the lengths of summed axes differ.
    Example:
        >>> import funct.array as xp
        >>> xp.tensordot(xp.ones((2, 3, 4)), xp.ones((4, 3)), axes=((2, 1), (0, 1))).tolist()
        [12.0, 12.0]
    """
    x1, x2 = as_tensor("tensordot", x1, "x1"), as_tensor("tensordot", x2, "x2")
    a, b = len(x1.shape), len(x2.shape)
    first, second = _summed_axes(axes, x1.shape, x2.shape)
    left = list(ascii_letters[:a])
    right = list(ascii_letters[a : a + b])
    for i, j in zip(first, second, strict=True):
        if x1.shape[i] != x2.shape[j]:
            raise ShapeError(
                f"tensordot: summed axes must agree, got x1 {x1.shape} and x2 {x2.shape}: "
                f"{x1.shape[i]} != {x2.shape[j]}"
            )
        right[j] = left[i]
    kept = [c for c in left if c not in right] + [c for c in right if c not in left]
    return ops.contract(x1, x2, f"{''.join(left)},{''.join(right)}->{''.join(kept)}")


def _summed_axes(axes: Any, x1: Shape, x2: Shape) -> tuple[list[int], list[int]]:
    a, b = len(x1), len(x2)
    if isinstance(axes, int):
        if not 0 <= axes <= min(a, b):
            raise ShapeError(
                f"tensordot: axes must be at most the ranks, got {axes} for x1 {x1} and x2 {x2}"
            )
        return list(range(a - axes, a)), list(range(axes))
    if not isinstance(axes, tuple | list) or len(axes) != 2:
        raise UnsupportedOperandError(
            f"tensordot: axes must be an int or two sequences of ints, got {axes!r}"
        )
    first, second = (integers("tensordot", "axes", v) for v in axes)
    if len(first) != len(second):
        raise ShapeError(f"tensordot: axes must name as many axes of x1 as of x2, got {axes}")
    return (
        [normal_axis("tensordot", k, a) for k in first],
        [normal_axis("tensordot", k, b) for k in second],
    )


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Sum of conj(x1) * x2 along axis, counted in both from the end; other axes broadcast.

    Raises: ShapeError: when the lengths along axis differ.
    Example:
        >>> import funct.array as xp
        >>> float(xp.vecdot(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0])))
        11.0
        >>> complex(xp.vecdot(xp.asarray([1j]), xp.asarray([1j])))
        (1+0j)
    """
    if x1.__class__ is Array and x2.__class__ is Array and axis.__class__ is int:
        try:
            found = kernels.vecdot(x1.data, x2.data, axis)
            if found is not None:
                return wrap(found)
        except (TypeError, ValueError, OverflowError):
            pass  # refused by name below
    x1, x2 = as_tensor("vecdot", x1, "x1"), as_tensor("vecdot", x2, "x2")
    rank = min(len(x1.shape), len(x2.shape))
    back = normal_axis("vecdot", axis, rank) - rank
    x, y = (ops.move_axis(v, len(v.shape) + back, len(v.shape) - 1) for v in (x1, x2))
    if x.shape[-1] != y.shape[-1]:
        raise ShapeError(
            f"vecdot: axis {axis} must have one length, got {x.shape[-1]} and {y.shape[-1]}"
        )
    x = conjugate(x)
    row = ops.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))
    column = ops.reshape(y, (*y.shape, 1))
    try:
        out = ops.matmul(row, column)
    except ShapeError:
        raise ShapeError(
            f"vecdot: shapes must broadcast, got x1 {x1.shape} and x2 {x2.shape}"
        ) from None
    return ops.reshape(out, out.shape[:-2])


@direct(kernels.outer, arrays=2)
def outer(x1: Any, x2: Any, /) -> Any:
    """Products of all pairs of elements of two vectors.

    Raises: ShapeError: for operands that are not 1-D.
    Example:
        >>> import funct.array as xp
        >>> xp.outer(xp.asarray([1, 2]), xp.asarray([3, 4])).tolist()
        [[3, 4], [6, 8]]

    Source: Array API 2025.12 `linalg.outer`.
    """
    x1, x2 = as_tensor("outer", x1, "x1"), as_tensor("outer", x2, "x2")
    if len(x1.shape) != 1 or len(x2.shape) != 1:
        raise ShapeError(f"outer: operands must be 1-D, got x1 {x1.shape} and x2 {x2.shape}")
    return ops.contract(x1, x2, "a,b->ab")


@direct(kernel_of_kron, arrays=2)
def kron(x1: Any, x2: Any, /) -> Any:
    """Kronecker product: x2 times each element of x1, in x1's place.

    Example:
        >>> import funct.array as xp
        >>> xp.kron(xp.asarray([1, 10]), xp.asarray([1, 2])).tolist()
        [1, 2, 10, 20]

    Source: NumPy `kron`.
    """
    x1, x2 = asarray(x1), asarray(x2)
    rank = max(len(x1.shape), len(x2.shape))
    a, b = ((1,) * (rank - len(v.shape)) + tuple(v.shape) for v in (x1, x2))
    outer = ops.reshape(x1, tuple([k for n in a for k in (n, 1)]))
    inner = ops.reshape(x2, tuple([k for n in b for k in (1, n)]))
    return ops.reshape(outer * inner, tuple([n * m for n, m in zip(a, b, strict=True)]))
