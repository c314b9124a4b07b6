"""Ways for buffers that are not the host's, by NumPy's protocols alone.

An op's own implementation serves most devices, for it is NumPy's function. These are the ops whose
implementation on the host reaches into memory, or is a method of a ufunc, which CuPy knows as its
own functions alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["ADDING", "ELSEWHERE"]


def _broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    return np.broadcast_to(x, shape)


def _embed(g: Any, index: tuple[tuple[Any, Any, Any], ...], shape: tuple[int, ...]) -> Any:
    out = np.zeros_like(g, shape=shape)
    out[tuple([slice(*triple) for triple in index])] = g
    return out


def _sort(x: Any, axis: int, descending: bool) -> Any:
    y = np.sort(x, axis=axis)
    return np.flip(y, axis) if descending else y


def _put(add_at: Callable[..., None], g: Any, i: Any, axis: int, n: int) -> Any:
    lead, rest = g.shape[:axis], g.shape[axis + i.ndim :]
    y = np.zeros_like(g, shape=(n, *lead, *rest))
    rows = np.moveaxis(g.reshape((*lead, i.size, *rest)), axis, 0)
    add_at(y, i.reshape(-1), rows)
    return np.moveaxis(y, 0, axis)


def _scatter_add(add_at: Callable[..., None], x: Any, v: Any, i: Any) -> Any:
    y = x.copy()
    add_at(y, i, v)
    return y


def _reduction(f: Callable[..., Any]) -> Callable[..., Any]:
    def over(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        return f(x, axis=axes, keepdims=keepdims)

    return over


ELSEWHERE: dict[str, Callable[..., Any]] = {
    "all": _reduction(np.all),
    "any": _reduction(np.any),
    "broadcast_to": _broadcast_to,
    "embed": _embed,
    "reduce_max": _reduction(np.max),
    "reduce_min": _reduction(np.min),
    "reduce_prod": _reduction(np.prod),
    "reduce_sum": _reduction(np.sum),
    "sort": _sort,
}
# By add_at(y, i, v), which adds in the order that the device takes.
ADDING: dict[str, Callable[..., Any]] = {"put": _put, "scatter_add": _scatter_add}
