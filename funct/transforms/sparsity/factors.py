"""What the result of a product reads: of matmul, Einstein sums and convolutions.

Where a factor may be other than zero, the result reads the other one; a constant factor that is
zero makes no product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from funct.kernels.linalg.sparse import Rows, linked
from funct.transforms.sparsity.operand import (
    Index,
    Operand,
    Params,
    Shape,
    all_of,
    mixed,
    positions,
)

__all__ = ["PRODUCTS"]


def _contract(operands: Sequence[Operand], params: Params, shape: Shape, n: int) -> Rows:
    both, out = params[0].split("->")
    a, b = both.split(",")
    return _product(operands, [x.at for x in operands], (a, b), out, shape, n)


def _matmul(operands: Sequence[Operand], params: Params, shape: Shape, n: int) -> Rows:
    x, y = operands
    at = [x.at if x.at.ndim > 1 else x.at[None, :], y.at if y.at.ndim > 1 else y.at[:, None]]
    lead = np.broadcast_shapes(at[0].shape[:-2], at[1].shape[:-2])
    at = [np.broadcast_to(v, (*lead, *v.shape[-2:])) for v in at]
    batch = "".join([chr(ord("a") + k) for k in range(len(lead))])
    whole = (*lead, at[0].shape[-2], at[1].shape[-1])
    return _product(operands, at, (f"{batch}MK", f"{batch}KN"), f"{batch}MN", whole, n)


def _product(
    operands: Sequence[Operand],
    at: Sequence[Index],
    labels: tuple[str, str],
    out: str,
    shape: Shape,
    n: int,
) -> Rows:
    """An Einstein sum. at: the positions of each operand, one axis per label."""
    parts = []
    for k in (0, 1):
        x, d, names = at[k], operands[k].rows, labels[k]
        if d is None:
            continue
        other = labels[1 - k]
        possible = operands[1 - k].possible().reshape(-1)[at[1 - k]]
        if possible.all():
            kept = [c for c in out if c in names]
            summed = [c for c in names if c not in out]
            turned = x.transpose([names.index(c) for c in kept + summed])
            inner = range(len(kept), x.ndim)
            outer = [i for i, c in enumerate(out) if c not in names]
            parts.append(mixed(d, turned, inner, shape, outer))
            continue
        free = [c for c in names if c not in other]  # one axis each, behind that of the factors
        coordinate = {
            c: v.reshape(-1, *(1,) * len(free)) for c, v in zip(other, np.nonzero(possible))
        }
        for i, c in enumerate(free):
            length = x.shape[names.index(c)]
            coordinate[c] = np.arange(length).reshape(-1, *(1,) * (len(free) - 1 - i))
        source = x[tuple([coordinate[c] for c in names])]
        place = positions(shape)[tuple([coordinate[c] for c in out])]
        source, place = np.broadcast_arrays(source, place)
        parts.append(linked(d, place.reshape(-1), source.reshape(-1), prod(shape)))
    return all_of(parts, prod(shape), n)


def _bilinear(
    roles: str, triples: Callable[..., tuple[Index, ...]]
) -> Callable[[Sequence[Operand], Params, Shape, int], Rows]:
    """roles: which of x, y and the result z of the form the two operands and the result are."""

    def rule(operands: Sequence[Operand], params: Params, shape: Shape, n: int) -> Rows:
        shapes = dict(zip(roles, [*[x.shape for x in operands], shape]))
        places = dict(zip("xyz", triples(shapes["x"], shapes["y"], shapes["z"], *params)))
        first, second, out = [places[r] for r in roles]
        parts = []
        for x, source, y, partner in (
            (operands[0], first, operands[1], second),
            (operands[1], second, operands[0], first),
        ):
            if x.rows is not None:
                keep = y.possible().reshape(-1)[partner]
                parts.append(linked(x.rows, out[keep], source[keep], prod(shape)))
        return all_of(parts, prod(shape), n)

    return rule


def _convolution_triples(
    x: Shape, w: Shape, z: Shape, stride: Shape, padding: Any, dilation: Shape, groups: int,
    *size: Any,
) -> tuple[Index, ...]:  # fmt: skip
    """Positions in x (N, C, *S), w (O, C / groups, *K) and z (N, O, *T) of all factors."""
    rank = len(stride)
    grid = np.ogrid[tuple([slice(k) for k in (z[0], w[0], w[1], *z[2:], *w[2:])])]
    image, o, c = grid[:3]
    t, tap = grid[3 : 3 + rank], grid[3 + rank :]
    s = [a * m + b * d - low for a, m, b, d, (low, _) in zip(t, stride, tap, dilation, padding)]
    valid = np.ones((), np.bool_)
    for v, length in zip(s, x[2:]):
        valid = valid & (v >= 0) & (v < length)
    channel = o // (w[0] // groups) * w[1] + c
    s = [np.clip(v, 0, max(length - 1, 0)) for v, length in zip(s, x[2:])]
    found = np.broadcast_arrays(
        np.ravel_multi_index(np.broadcast_arrays(image, channel, *s), x),
        np.ravel_multi_index(np.broadcast_arrays(o, c, *tap), w),
        np.ravel_multi_index(np.broadcast_arrays(image, o, *t), z),
        valid,
    )
    here = found[3].reshape(-1)
    return tuple([f.reshape(-1)[here] for f in found[:3]])


def _convolve_triples(x: Shape, y: Shape, z: Shape, full: bool) -> tuple[Index, ...]:
    """z_k = Σ_j x_(k - j) y_j; unless full, from the first k at which all of y overlaps."""
    i, j = np.ogrid[: x[-1], : y[-1]]
    k = i + j if full else i + j - (y[-1] - 1)
    i, j, k = (v.reshape(-1) for v in np.broadcast_arrays(i, j, k))
    valid = (k >= 0) & (k < z[-1])
    lead = np.arange(prod(z[:-1]))[:, None]
    return tuple([(lead * v[-1] + p[valid]).reshape(-1) for v, p in ((x, i), (y, j), (z, k))])


PRODUCTS: dict[str, Callable[[Sequence[Operand], Params, Shape, int], Rows]] = {
    "matmul": _matmul,
    "contract": _contract,
    "convolution": _bilinear("xyz", _convolution_triples),
    "convolution_input": _bilinear("zyx", _convolution_triples),
    "convolution_weight": _bilinear("xzy", _convolution_triples),
    "convolve": _bilinear("xyz", _convolve_triples),
}
