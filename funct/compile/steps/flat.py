"""Ops whose kernels are functions on flat arrays, as steps of loops: sorting, places
among what is sorted, running sums, random numbers.

A kernel of `funct/kernels/cpu` is printed into the text of the program, so a step costs what its
work costs. In a program around loops such an op is a call of its own, which may use all threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from funct.compile.fusion.calls import Address, Buffer, Call, Root, Word
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import arrays
from funct.compile.fusion.lower import copy, places_of
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.views import View, dense
from funct.graph import Node, Var
from funct.kernels.cpu.order import places, sorting
from funct.kernels.cpu.printer import printed_into
from funct.kernels.cpu.random import bits as random_bits
from funct.kernels.cpu.random import rejection
from funct.kernels.cpu.reductions import scans
from funct.kernels.cpu.vectors import INT, Pointer, Type, element
from funct.kernels.llvm import Module
from funct.kernels.random.rejection import TAGS

__all__ = ["flat_call", "is_flat", "lower_flat", "print_flat"]

_FEW = 32  # of so few the largest are found by insertion


class _Work(Struct, frozen=True):
    """What to call. places: of the op's operands, and of its results."""

    node: Node
    operands: list[Address]
    results: list[Address]

    @property
    def rows(self) -> tuple[int, int]:
        """Rows along the last axis of the operand, and their length."""
        x: Any = self.node.operands[0]
        return math.prod(x.shape[:-1]), x.shape[-1]

    def call(self, fn: Callable[..., Any], *words: Any) -> Call:
        """A function for what it is given."""
        return flat_call(fn, words, self.node.results)


def flat_call(
    fn: Callable[..., Any], words: Sequence[Any], writes: Sequence[Root], tasks: int = 0,
    lean: bool = False,
) -> Call:  # fmt: skip
    """The call of a function on flat arrays: addresses with dtypes, arrays that are known, ints, or
    what is static. tasks: how many there are of a function whose last argument is the number of
    one; 0: it has none. lean: whether its code is as fast at the lean level.
    """
    held: dict[Var, Any] = {}
    kinds: list[Any] = []
    given: list[Word] = []
    for w in words:
        if isinstance(w, np.ndarray):
            table = Var("table", w.shape, w.dtype)
            held[table] = np.ascontiguousarray(w)
            w = Address(table), w.dtype
        kinds.append(w[1] if isinstance(w, tuple) else _kind(w))
        given.append(w[0] if isinstance(w, tuple) else w if type(w) is int else 0)
    kernel = ("lean flat" if lean else "flat", fn, tuple(kinds), tasks > 0)
    return Call(kernel, tuple(given), max(1, tasks), tuple(writes), held=held)


def _kind(w: Any) -> Any:
    return int if type(w) is int else w


def _order(w: _Work, descending: bool) -> tuple[Call, Any]:
    """The call that finds a permutation, and where."""
    (rows, n), x = w.rows, w.node.operands[0].dtype  # type: ignore[union-attr]
    index = np.dtype(np.int64)
    sole = w.node.name == "argsort"
    at = w.results[0] if sole else Address(Buffer(rows * n, index))
    other = Address(Buffer(n, index))
    call = w.call(
        sorting.order, (w.operands[0], x), (at, index), (other, index), rows, n, descending
    )
    return (call if sole else replace(call, writes=(at.of,))), at


def _argsort(w: _Work) -> list[Call]:
    return [_order(w, w.node.params[1])[0]]


def _sort(w: _Work) -> list[Call]:
    call, at = _order(w, w.node.params[1])
    (rows, n), dtype, index = w.rows, w.node.results[0].dtype, np.dtype(np.int64)
    places = (w.operands[0], dtype), (at, index), (w.results[0], dtype), (at, index)
    return [call, w.call(sorting.first_of, *places, rows, n, n)]


def _top_k(w: _Work) -> list[Call]:
    (rows, n), k = w.rows, w.node.params[1]
    values, places = [(a, v.dtype) for a, v in zip(w.results, w.node.results, strict=True)]
    x = w.operands[0], values[1]
    if k <= _FEW:
        return [w.call(sorting.top_k.fn, x, values, places, rows, n, k, True)]
    call, at = _order(w, True)
    return [call, w.call(sorting.first_of, x, (at, places[1]), values, places, rows, n, k)]


def _drawn(w: _Work) -> list[Call]:
    (out,), kind = w.node.results, w.node.name.removeprefix("random_")
    dtype = np.dtype(np.uint64) if kind == "split" else out.dtype
    rows = w.rows[0]
    n = math.prod(out.shape) * out.dtype.itemsize // dtype.itemsize // rows
    rest = Address(Buffer(random_bits.LANES, dtype))
    keys = w.operands[0], np.dtype(np.uint32)
    places = keys, (w.results[0], dtype), (rest, dtype)
    return [w.call(random_bits.draw_all, *places, rows, n, kind)]


def _accepted(w: _Work) -> list[Call]:
    """Draws by rejection: a parameter of all elements, or one of each."""
    node, (out,) = w.node, w.node.results
    kind = node.name.removeprefix("random_")
    second = False
    if kind == "gamma":
        logarithm, second = node.params[2:]
        kind = "log_gamma" if logarithm else kind
    keys, single = w.rows[0], not node.operands[1].shape  # type: ignore[union-attr]
    total, room, words = math.prod(out.shape), np.dtype(np.int64), np.dtype(np.uint32)
    places = (
        (w.operands[0], words), (w.operands[1], np.dtype(np.float64)), (w.results[0], out.dtype),
        (Address(Buffer(rejection.ROOM, room)), room),
    )  # fmt: skip
    tag = TAGS[kind] + second
    call = w.call(rejection.draw_all, *places, total // keys, total, tag, keys == 1, single, kind)
    return [call]


def _folded(w: _Work) -> list[Call]:
    given = [(a, v.dtype) for a, v in zip(w.operands, w.node.operands, strict=True)]  # type: ignore[union-attr]
    return [w.call(random_bits.fold_all, *given, (w.results[0], given[0][1]), w.rows[0])]


def _split(w: _Work, axis: int) -> tuple[int, int, int]:
    """How many elements stand before, along and behind an axis of the operand."""
    shape: Any = w.node.operands[0].shape  # type: ignore[union-attr]
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _running(how: str) -> Callable[[_Work], list[Call]]:
    def calls(w: _Work) -> list[Call]:
        outer, n, inner = _split(w, w.node.params[0])
        x: Any = w.node.operands[0]
        places = (w.operands[0], x.dtype), (w.results[0], w.node.results[0].dtype)
        if inner == 1:
            return [w.call(scans.running_line.fn, *places, outer, n, how)]
        return [w.call(scans.running.fn, *places, outer, n, inner, how)]

    return calls


def _recurrence(w: _Work) -> list[Call]:
    dtype = w.node.results[0].dtype
    places = [(a, dtype) for a in (*w.operands, *w.results)]
    return [w.call(scans.recurrence.fn, *places, *_split(w, w.node.params[0]))]


def _running_argmax(w: _Work) -> list[Call]:
    x: Any = w.node.operands[0]
    axis, largest = w.node.params
    outer, n, inner = _split(w, axis)
    given = (w.operands[0], x.dtype), (w.results[0], w.node.results[0].dtype)
    if inner == 1:
        return [w.call(scans.running_extremum_line.fn, *given, outer, n, largest, True)]
    return [w.call(scans.running_extremum.fn, *given, outer, n, inner, largest, True)]


def _searchsorted(w: _Work) -> list[Call]:
    x, v = (o.dtype for o in w.node.operands)  # type: ignore[union-attr]
    n, count = w.rows[1], math.prod(w.node.results[0].shape)
    held = (w.operands[0], x), (w.operands[1], v), (w.results[0], w.node.results[0].dtype)
    return [w.call(places.search_all, *held, n, count, w.node.params[0] == "left")]


_OPS: dict[str, Callable[[_Work], list[Call]]] = {
    "cumulative_prod": _running("multiply"), "cumulative_sum": _running("add"),
    "linear_recurrence": _recurrence, "running_argmax": _running_argmax,
    "searchsorted": _searchsorted,
    "argsort": _argsort, "sort": _sort, "top_k": _top_k, "random_bits": _drawn,
    "random_exponential": _drawn, "random_fold_in": _folded, "random_gamma": _accepted,
    "random_gumbel": _drawn, "random_normal": _drawn,
    "random_poisson": _accepted, "random_split": _drawn, "random_unit": _drawn,
}  # fmt: skip


_SORTED = ("argsort", "sort", "top_k")


def is_flat(step: Any) -> bool:
    """Whether a step is such an op, of elements that kernels know."""
    held = arrays(step, _OPS)
    if not held or any(v.dtype not in ELEMENTS for v in held):
        return False
    x: Any = step.operands[0]
    if step.name in _SORTED:
        return len(x.shape) > 0
    if step.name == "searchsorted":
        return bool(held[0].dtype == held[1].dtype)
    if step.name == "linear_recurrence":
        return len({(v.shape, v.dtype) for v in held}) == 1 and x.dtype.kind != "b"
    if step.name == "random_fold_in":
        data: Any = step.operands[1]
        return x.shape[:-1] == data.shape and data.dtype.kind in "iu"
    return True


def lower_flat(node: Node, fused: Fused) -> list[Call]:
    """The calls, after copies of what does not lie one after the other."""
    rank = len(node.results[0].shape)
    if node.name in _SORTED and node.params[0] % rank < rank - 1:
        return _turned(node, fused)
    calls, places = places_of(node.operands, fused)
    work = _Work(node, places, [Address(v) for v in node.results])
    return [*calls, *_OPS[node.name](work)]


def _turned(node: Node, fused: Fused) -> list[Call]:
    """The same of an op along another axis than the last, on copies."""
    (x,), (axis, *rest) = node.operands, node.params
    assert isinstance(x, Var)
    axis %= len(x.shape)
    calls, seen = copy(_last(fused.views[x], axis), fused)
    inner = Var(f"{x.name}_turned", seen.shape, x.dtype)
    outs = [Var(f"{v.name}_turned", _last(dense(v), axis).shape, v.dtype) for v in node.results]
    turned = attrs.evolve(node, operands=(inner,), params=(-1, *rest), results=tuple(outs))
    work = _Work(turned, [Address(seen.root)], [Address(v) for v in outs])
    calls += _OPS[node.name](work)
    for made, v in zip(outs, node.results, strict=True):
        calls += copy(dense(made), fused, _last(dense(v), axis))[0]
    return calls


def _last(view: View, axis: int) -> View:
    """The view with an axis moved to the end."""
    shape, strides = (
        (*each[:axis], *each[axis + 1 :], each[axis]) for each in (view.shape, view.strides)
    )
    return replace(view, shape=shape, strides=strides)


def print_flat(
    module: Module, name: str, fn: Callable[..., Any], kinds: tuple[Any, ...], tasks: bool
) -> None:
    """Add the kernel of such a function: its frame has a word for each argument."""
    printed_into(module, name, fn, [_given(k) for k in kinds], tasks=tasks)


def _given(kind: Any) -> Any:
    if kind is int:
        return INT
    if isinstance(kind, np.dtype):
        return Pointer("", Type("u", 8) if kind.kind == "b" else element(kind))
    return kind
