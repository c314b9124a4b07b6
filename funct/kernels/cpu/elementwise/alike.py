"""Functions of some elements that lie one after the other: less to ask, so a call is short.

    exp = of_alike("exp", 1, otherwise)     # otherwise(*args): what all other operands are for
    exp(x)                                  # 0.4 µs and the loop

The operands are dense arrays of one shape and dtype, which the result has too, or such an array and
a number; numbers of two bytes are computed in float32. Arrays may lie alike in another order, as
images with their channels last do. `vector_loops.py` has
the same functions, with the same bits, for arrays that broadcast or are many elements.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from funct.device import PARALLEL, Code, host, printed
from funct.device.fork import whole
from funct.device.memory import is_serving, serve
from funct.kernels.cpu.calls import readable
from funct.kernels.cpu.elementwise.ufunc_loops import offered
from funct.kernels.cpu.elementwise.vector_loops import (
    ELEMENTS,
    PRINTED,
    SHORTEST,
    SIGNS,
    TASK,
    operand,
    registers,
)
from funct.kernels.cpu.entries import Entries
from funct.kernels.elementwise.thresholds import MANY
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed
from funct.kernels.table import unrestricted
from funct.kernels.windows.views import inverse_order

__all__ = ["loop", "of_alike"]

_REAL = frozenset(map(np.dtype, "fd"))
_WHOLE = frozenset(map(np.dtype, "hilqHILQ"))  # of one byte there are tables
_LINE = 64  # elements, of which tasks take whole multiples
_COMMUTED = frozenset({"add", "multiply"})  # where a number may be the second operand
_making = whole(threading.RLock())


def of_alike(
    name: str, operands: int, kinds: Iterable[np.dtype[Any]], otherwise: Callable[..., Any],
    named: Callable[[Any], str | None] | None = None,
    made: Callable[..., np.dtype[Any]] | None = None, *, dealt: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """The function of that name of so many arrays of such dtypes, with MANY elements or more.

    named: what it is called for an array of halves, or None, at this call. made: the dtype that it
    makes of integers of some dtypes, which are computed in that. dealt: whether threads share the
    elements, which are so many that it pays.
    """
    waiting = {d: d for d in kinds} if readable() else {}
    kept = frozenset(waiting)
    met: dict[np.dtype[Any], Entries] = {}

    def beside(x: Any, number: Any) -> Any:
        """An array and one number of its dtype."""
        kind = x.dtype
        one = operand(number, kind) if kind in kept else None
        if one is None:
            return otherwise(x, number)
        with _making:
            if kind not in met:
                code = printed(_entry, name, 1, 1, ELEMENTS[kind], dealt)
                met[kind] = Entries(name, 2, otherwise, result=(0, 0))
                met[kind].add([kind, kind], code.address("entry"), code)
        return met[kind].call(x, one)

    def miss(*args: Any) -> Any:
        lying = _as_they_lie(args)
        if lying is not None:
            turned, back = lying
            return call(*turned).transpose(back)
        if operands == 2 and _single(args[1]) and not _single(args[0]):
            return beside(*args)
        if name in _COMMUTED and _single(args[0]) and not _single(args[1]):
            return beside(*args[::-1])
        kind = args[0].dtype if args[0].__class__ is np.ndarray else None
        if made and kind in _WHOLE and all(_fits(a, args[0]) for a in args):
            floats = made(*[kind] * operands)
            if floats in _REAL:
                return entries.call(*[a.astype(floats) for a in args])
        with _making:
            if kind in waiting and all(_fits(a, args[0]) for a in args):
                own = named(args[0]) if named and kind.itemsize == 2 else name
                if own is None:
                    return otherwise(*args)
                if dealt:
                    serve(args[0].nbytes)
                    if not is_serving():  # pages of large results are new ones, which are counted
                        return otherwise(*args)
                own, element = _of_bits(own, kind)
                code = printed(_entry, own, operands, 0, element, dealt)
                entries.add([waiting.pop(kind)] * operands, code.address("entry"), code)
                return entries.call(*args)
        return otherwise(*args)

    def call(*args: Any) -> Any:
        return entries.call(*args) if unrestricted() else otherwise(*args)

    entries = Entries(name, operands, miss, result=(0, 0), flat=True)
    return call


def _as_they_lie(args: tuple[Any, ...]) -> tuple[list[Any], tuple[int, ...]] | None:
    """Arrays that all lie in the same other order, and numbers, with the axes as they lie; and the
    axes as they were. None: such they are not.
    """
    turned, orders = [], None
    for a in args:
        if a.__class__ is not np.ndarray or not a.ndim:
            turned.append(a)
            continue
        if orders is None:
            shape, strides = a.shape, a.strides
            orders = None if a.flags.c_contiguous else _orders(shape, strides, a.itemsize)
            if orders is None:
                return None
        elif a.shape != shape or a.strides != strides:
            return None
        turned.append(a.transpose(orders[0]))
    return None if orders is None else (turned, orders[1])


@functools.lru_cache(256)
def _orders(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The order of axes in which such an array is contiguous, and that back; None for none."""
    order = sorted(range(len(shape)), key=strides.__getitem__, reverse=True)
    for k in reversed(order):
        if shape[k] != 1 and strides[k] != itemsize:
            return None
        itemsize *= shape[k]
    return tuple(order), tuple(inverse_order(order))


def _single(a: Any) -> bool:
    return a.__class__ is not np.ndarray or not a.ndim


def _fits(a: Any, first: Any) -> bool:
    known = a.__class__ is np.ndarray and a.dtype is first.dtype and a.shape == first.shape
    return known and bool(a.flags.c_contiguous and a.flags.aligned)


def _of_bits(name: str, kind: np.dtype[Any]) -> tuple[str, str]:
    """A function's name and element, of halves those of their bits where one of them changes."""
    bits = name in SIGNS and kind.itemsize == 2
    return (f"{name} of bits", "u16") if bits else (name, ELEMENTS[kind])


def _entry(name: str, arrays: int, numbers: int, element: str, dealt: bool) -> str:
    """`i64 entry(frame)`: arrays, then single numbers, the result and how many elements it has."""
    module = Module(host())

    def some(f: Emitter, frame: Value, start: Value | int, count: Value) -> None:
        *given, y = f.pointers(frame, 0, arrays + numbers + 1)
        beside = [f.load(typed(element), v) for v in given[arrays:]]
        *dense, y = [f.at(v, start, element) for v in (*given[:arrays], y)]
        _all(f, name, element, dense, beside, y, count)

    def count(f: Emitter, frame: Value) -> Value:
        return f.word(frame, arrays + numbers + 1)

    def tasks(f: Emitter, frame: Value) -> Value:
        return f.max(1, f.min(f.div(count(f, frame), TASK), 4 * host().cores))

    if dealt:
        module.declare("@funct_parallel", PARALLEL)
        f = module.function("part", [("frame", PTR), ("task", I64)], local=True)
        frame, task = f.arguments
        lines, all = f.div(count(f, frame), _LINE), tasks(f, frame)
        start = f.div(lines * task, all) * _LINE
        last = f.eq(task + 1, all)
        stop = f.select(last, count(f, frame), f.div(lines * (task + 1), all) * _LINE)
        some(f, frame, start, stop - start)
        f.ret()
    f = module.function("entry", [("frame", PTR)], I64)
    (frame,) = f.arguments
    if dealt:
        f.line(f"call void @funct_parallel(ptr @part, {frame!r}, {tasks(f, frame)!r})")
    else:
        some(f, frame, 0, count(f, frame))
    f.ret(f.constant(I64, 0))
    return module.text()


@functools.cache
def loop(ufunc: np.ufunc, dtype: np.dtype[Any]) -> int:
    """The address of what takes the place of a ufunc's own loop: that for fewer than MANY elements,
    and from there on the function of its name, as eager code has it. The first operand and the
    result are dense, others single numbers; the result may lie where the first operand does.
    """
    theirs, data = offered(ufunc, dtype)
    return _loop_code(ufunc.__name__, ufunc.nin, ELEMENTS[dtype], theirs, data).address("loop")


@functools.cache
def _loop_code(name: str, operands: int, element: str, theirs: str, data: str) -> Code:
    return printed(_loop, name, operands, element, theirs, data).keep()


def _loop(name: str, operands: int, element: str, theirs: str, data: str) -> str:
    module = Module(host())
    parts = ("places", "counts", "strides", "data")
    f = module.function("loop", [(part, PTR) for part in parts])
    places, counts, strides, _ = f.arguments
    count = f.word(counts)

    def few() -> None:
        held = f.null()
        if data != "null":
            module.declare(data, f"declare void {data}()")  # an address
            held = f.address(data[1:])
        f.call(theirs, None, [places, counts, strides, held])

    def many() -> None:
        x, *others, y = f.pointers(places, 0, operands + 1)
        numbers = [f.load(typed(element), v) for v in others]
        _all(f, name, element, [x], numbers, y, count)

    f.when(count < MANY, few)
    f.when(count >= MANY, many)
    f.ret()
    return module.text()


def _all(
    f: Emitter, name: str, element: str, arrays: Sequence[Value], numbers: Sequence[Value],
    y: Value, count: Value,
) -> None:  # fmt: skip
    """All elements, of which there are a vector's at least. The last vector is read first, and
    written last: what is left over is computed twice, where y may lie over an operand.
    """

    half = element in ("f16", "bf16")

    def value(i: Value, lanes: int) -> Value:
        given = [f.load(typed(element, lanes), f.at(x, i, element)) for x in arrays]
        given += [f.splat(v, lanes) for v in numbers]
        made = PRINTED[name](f, *[f.convert(x, "f32") if half else x for x in given])
        return f.convert(made, element)

    def some(i: Value, lanes: int) -> None:
        f.store(value(i, lanes), f.at(y, i, element))

    last = value(count - SHORTEST, SHORTEST)
    done = f.constant(I64, 0)
    vectors = [n * host().vector_bytes // typed(element).bytes for n in registers(name)]
    for lanes in dict.fromkeys([max(n, SHORTEST) for n in (*vectors, SHORTEST)]):
        stop = count - f.rem(count, lanes)
        each(f, done, stop, functools.partial(some, lanes=lanes), lanes)
        done = stop
    f.store(last, f.at(y, count - SHORTEST, element))
