"""The fast function of each op: what a call on arrays costs besides NumPy's.

`adopt` is the one hole through which the concrete array class comes in from above, so that the
functions can test `x.__class__ is Array` inline.

Note [Fast paths]: on 16 elements Python is the whole cost. Hence fixed arity, no keyword arguments,
one class test, one NumPy call, and a `try` (free in CPython >= 3.11) around it for the error text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funct import core
from funct.core import (
    INEXACT,
    NARROW,
    Absent,
    OpenNumber,
    Primitive,
    Value,
    common_dtype,
    narrow_of,
)
from funct.core.level import Ways, bind, bind1, bind2, general
from funct.device.places import BUFFERS
from funct.kernels.cpu.calls import maker
from funct.kernels.dtypes import INTEGER, NAMED
from funct.kernels.elementwise.thresholds import ASKING, LIMITS
from funct.ops.by_size import SMALL_ONLY, asking, limiting
from funct.ops.refusals import explain

__all__ = [
    "BARE", "CONSTANT", "OWN", "adopt", "adopt_remote", "of_arrays", "of_elements", "wrap",
]  # fmt: skip

asarray = np.asarray
ndarray = np.ndarray
Array: Any = None
CONSTANT: set[type] = {bool, int, float, complex}  # and arrays: of what is no tracer
make: Callable[[None], Any]  # an Array that has no buffer yet
remote: Callable[[Any], Any]


def adopt(array_class: type, level: core.Level) -> None:
    """Called once by the array package: the class whose identity is the fast path, and level 0."""
    global Array, make
    Array, make = array_class, maker(array_class)
    array_class.ways = Ways(_meeting)  # type: ignore[attr-defined]
    core.set_ground(level)
    CONSTANT.add(array_class)


def adopt_remote(make: Callable[[Any], Any]) -> None:
    """Called once by the array package: what makes an array of a device's buffer."""
    global remote
    remote = make


def wrap(raw: Any) -> Any:
    """A bare array as an Array, without a copy: results, and constants that a rule needs."""
    if raw.__class__ in BUFFERS:
        return remote(raw)
    r = make(None)
    r.data = raw if raw.__class__ is ndarray else asarray(raw)
    return r


_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)
_DOUBLES = {_DOUBLE}
# What a number beside arrays of one dtype is computed in; of integers all is computed in doubles.
_WEAK = {np.dtype(char): np.dtype("fd"[char in "dD?bhilqBHILQ"]) for char in "fFdD?bhilqBHILQ"}
OWN = frozenset(NAMED.values())  # NumPy's dtypes that arrays may have
BARE: frozenset[Any] = frozenset({bool, int, float, complex, *[d.type for d in OWN]})


def _meeting(prim: Primitive) -> Callable[..., Any]:
    """`Array.ways`: what computes an op of two operands where one is NumPy's array or scalar, or
    a number that is no real one. The rest goes the way of `bind`, and is refused there.
    """
    if len(prim.rules) != 2 or prim.results != 1:
        return general(prim)
    raw = prim.raw

    def way(_: Primitive, x: Any, y: Any, params: tuple[Any, ...] = ()) -> Any:
        c, k = x.__class__, y.__class__
        v, w = x.data if c is Array else x, y.data if k is Array else y
        known = v.dtype in OWN if c is Array or c is ndarray else c in BARE
        if not known or not (w.dtype in OWN if k is Array or k is ndarray else k in BARE):
            return bind2(prim, x, y, params)
        try:
            d = raw(v, w, *params)
        except Exception as error:
            raise explain(prim, (x, y), params, error) from None
        r = make(None)
        r.data = d if d.__class__ is ndarray else asarray(d)
        return r

    return way


def of_elements(prim: Primitive, typed: bool) -> Callable[..., Any]:
    """The function of an op on each element; typed: numbers take the other operands' dtype."""
    n = len(prim.rules)
    if typed:
        return _typed(prim)
    if prim.params:
        return _structural1(prim, prim.raw) if n == 1 else _structural(prim, prim.raw)
    make = {1: _unary, 2: _binary, 3: _ternary}.get(n, _variadic)
    if prim.name in LIMITS:
        op = limiting(prim, _binary)
    else:
        op = asking(prim, make) if prim.name in ASKING else make(prim, prim.raw)
    if n <= 3:
        SMALL_ONLY.append((prim, op))
    return op


def of_arrays(prim: Primitive, moves: bool) -> Callable[..., Any]:
    """The function of an op on whole arrays; moves: its result may lie on another device."""
    if moves:
        return _variadic(prim, prim.raw)
    if prim.params[1:] == ("keepdims",):
        return _reduction(prim, prim.raw)
    kinds = {(1, True): _structural1, (2, True): _structural2, (1, False): _several1}
    return kinds.get((len(prim.rules), prim.results == 1), _structural)(prim, prim.raw)


def _unary(prim: Primitive, raw: Callable[..., Any]) -> Callable[..., Any]:
    def op(x: Any, /) -> Any:
        if x.__class__ is Array:
            try:
                d = raw(x.data)
            except Exception as error:
                raise explain(prim, (x,), (), error) from None
            r = make(None)
            r.data = d if d.__class__ is ndarray else asarray(d)
            return r
        if isinstance(x, Value):
            return x.ways[prim](prim, x, ())
        return bind1(prim, x)

    return op


def _binary(
    prim: Primitive, raw: Callable[..., Any], other: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """other: what computes the op of an array and a number."""
    beside = other or raw

    def op(x: Any, y: Any, /) -> Any:
        c, k = x.__class__, y.__class__
        try:
            if c is Array:
                if k is Array:
                    d = raw(x.data, y.data)
                elif k is float or k is int:
                    v = x.data
                    # NumPy 2 gives a Python number the other operand's dtype, if it is its own
                    d = beside(v, y if v.dtype not in NARROW else narrow_of(y, v.dtype))
                elif isinstance(y, Value):
                    return y.ways[prim](prim, x, y, ())
                else:
                    return x.ways[prim](prim, x, y, ())
            elif k is Array and (c is float or c is int):
                w = y.data
                d = beside(x if w.dtype not in NARROW else narrow_of(x, w.dtype), w)
            elif isinstance(x, Value):
                return x.ways[prim](prim, x, y, ())
            elif isinstance(y, Value):
                return y.ways[prim](prim, x, y, ())
            else:
                return bind2(prim, x, y)
        except Exception as error:
            if OpenNumber in (type(x), type(y)):
                return bind2(prim, x, y)
            raise explain(prim, (x, y), (), error) from None
        r = make(None)
        r.data = d if d.__class__ is ndarray else asarray(d)
        return r

    return op


def _ternary(prim: Primitive, raw: Callable[..., Any]) -> Callable[..., Any]:
    def op(x: Any, y: Any, z: Any, /) -> Any:
        c, k = y.__class__, z.__class__
        known = (c is Array or c is float or c is int) and (k is Array or k is float or k is int)
        if x.__class__ is not Array or not known:
            return bind(prim, (x, y, z))
        v, w = y.data if c is Array else y, z.data if k is Array else z
        if (c is Array) is not (k is Array) and (v if c is Array else w).dtype in NARROW:
            return bind(prim, (x, y, z))
        try:
            d = raw(x.data, v, w)
        except Exception as error:
            raise explain(prim, (x, y, z), (), error) from None
        r = make(None)
        r.data = d if d.__class__ is ndarray else asarray(d)
        return r

    return op


def _variadic(prim: Primitive, raw: Callable[..., Any]) -> Callable[..., Any]:
    n = len(prim.rules)

    def op(*args: Any) -> Any:
        return bind(prim, args[:n], args[n:])

    return op


def _typed(prim: Primitive) -> Callable[..., Any]:
    """Beside arrays of doubles, numbers go to the kernel as they are; else they become arrays."""
    n, raw = len(prim.rules), prim.raw
    weak = [i for i, rule in enumerate(prim.rules) if not isinstance(rule, Absent)]
    first, second = 0 in weak, 1 in weak

    def op(*args: Any) -> Any:
        raws, numbers = [], False
        for a in args:
            c = a.__class__
            if c is Array:
                raws.append(a.data)
            elif c is float or c is int:
                raws.append(a)
                numbers = True
            else:
                break
        if len(raws) < n:
            return general(args)
        if numbers and (kinds := {a.dtype for a in raws if a.__class__ is ndarray}) != _DOUBLES:
            real = _WEAK.get(kinds.pop()) if len(kinds) == 1 else None
            if real is None:
                return general(args)
        else:
            real = None
        try:
            if real is not None:
                for i in weak:
                    if raws[i].__class__ is not ndarray or raws[i].dtype.num <= INTEGER:
                        raws[i] = asarray(raws[i], real)
            d = raw(*raws)
        except Exception as error:
            raise explain(prim, args[:n], args[n:], error) from None
        r = make(None)
        r.data = d if d.__class__ is ndarray else asarray(d)
        return r

    def op2(x: Any, y: Any, /) -> Any:
        c, k = x.__class__, y.__class__
        try:
            if c is Array and k is Array:
                v, w = x.data, y.data
            elif c is Array and (k is float or k is int) and x.data.dtype is _DOUBLE:
                v, w = x.data, y
            elif k is Array and (c is float or c is int) and y.data.dtype is _DOUBLE:
                v, w = x, y.data
            elif c is Array and (k is float or k is int) and x.data.dtype is _SINGLE:
                v, w = x.data, asarray(y, _SINGLE) if second else y
            elif k is Array and (c is float or c is int) and y.data.dtype is _SINGLE:
                v, w = asarray(x, _SINGLE) if first else x, y.data
            else:
                return op(x, y)
            d = raw(v, w)
        except Exception as error:
            raise explain(prim, (x, y), (), error) from None
        r = make(None)
        r.data = d if d.__class__ is ndarray else asarray(d)
        return r

    def op3(x: Any, y: Any, z: Any, /) -> Any:
        c, k, m = x.__class__, y.__class__, z.__class__
        if c is Array and k is Array and m is Array:
            u, v, w = x.data, y.data, z.data
        elif (
            m is Array
            and (c is int or c is float)
            and (k is int or k is float)
            and z.data.dtype is _DOUBLE
        ):
            u, v, w = x, y, z.data
        else:
            return op(x, y, z)
        try:
            d = raw(u, v, w)
        except Exception as error:
            raise explain(prim, (x, y, z), (), error) from None
        r = make(None)
        r.data = d if d.__class__ is ndarray else asarray(d)
        return r

    def general(args: tuple[Any, ...]) -> Any:
        try:
            operands = typed(args[:n])
        except (TypeError, OverflowError):  # no common dtype, or a number that it has not
            operands = list(args[:n])
        return bind(prim, operands, args[n:])

    def typed(args: tuple[Any, ...]) -> list[Any]:
        operands = list(args)
        dtypes = [a.dtype for a in operands if isinstance(a, Value | np.generic)]
        if dtypes and len(dtypes) < n:
            kind = common_dtype(*dtypes)
            kind = kind if kind in INEXACT else _DOUBLE
            real = np.empty(0, kind).real.dtype if kind.kind == "c" else kind
            for i in weak:
                a = operands[i]
                if isinstance(a, np.generic):  # float64 is a float, and none of Python's
                    continue
                if isinstance(a, bool | int | float):
                    operands[i] = wrap(np.asarray(narrow_of(a, real), real))
                elif isinstance(a, complex):
                    operands[i] = wrap(np.asarray(a, np.result_type(kind, np.complex64)))
        return operands

    def op4(w: Any, x: Any, y: Any, z: Any, /) -> Any:  # whose number Python counts
        return op(w, x, y, z)

    if prim.params or n > 4:
        return op
    fixed: dict[int, Callable[..., Any]] = {2: op2, 3: op3, 4: op4}
    return fixed[n]


def _structural1(prim: Primitive, raw: Callable[..., Any]) -> Callable[..., Any]:
    def op(x: Any, *params: Any) -> Any:
        if x.__class__ is not Array:
            if isinstance(x, Value):
                return x.ways[prim](prim, x, params)
            return bind1(prim, x, params)
        try:
            d = raw(x.data, *params)
        except Exception as error:
            raise explain(prim, (x,), params, error) from None
        r = make(None)
        r.data = d if d.__class__ is ndarray else asarray(d)
        return r

    return op


def _reduction(prim: Primitive, raw: Callable[..., Any]) -> Callable[..., Any]:
    def op(x: Any, axes: Any, keepdims: Any, /) -> Any:
        if keepdims.__class__ is not bool:
            keepdims = bool(keepdims)  # of users, who may say 0 or 1
        if x.__class__ is not Array:
            if isinstance(x, Value):
                return x.ways[prim](prim, x, (axes, keepdims))
            return bind1(prim, x, (axes, keepdims))
        try:
            d = raw(x.data, axes, keepdims)
        except Exception as error:
            raise explain(prim, (x,), (axes, keepdims), error) from None
        r = make(None)
        r.data = d if d.__class__ is ndarray else asarray(d)
        return r

    return op


def _structural2(prim: Primitive, raw: Callable[..., Any]) -> Callable[..., Any]:
    def op(x: Any, y: Any, *params: Any) -> Any:
        if x.__class__ is not Array or y.__class__ is not Array:
            if isinstance(x, Value) and x.__class__ is not Array:
                return x.ways[prim](prim, x, y, params)
            if isinstance(y, Value):
                return y.ways[prim](prim, x, y, params)
            return bind2(prim, x, y, params)
        try:
            d = raw(x.data, y.data, *params)
        except Exception as error:
            raise explain(prim, (x, y), params, error) from None
        r = make(None)
        r.data = d if d.__class__ is ndarray else asarray(d)
        return r

    return op


def _several1(prim: Primitive, raw: Callable[..., Any]) -> Callable[..., Any]:
    def op(x: Any, *params: Any) -> Any:
        if x.__class__ is not Array:
            return bind(prim, (x,), params)
        try:
            found = raw(x.data, *params)
        except Exception as error:
            raise explain(prim, (x,), params, error) from None
        out = []
        for d in found:
            r = make(None)
            r.data = d if d.__class__ is ndarray else asarray(d)
            out.append(r)
        return tuple(out)

    return op


def _structural(prim: Primitive, raw: Callable[..., Any]) -> Callable[..., Any]:
    n, one = len(prim.rules), prim.results == 1

    def op(*args: Any) -> Any:
        known = [a.data for a in args[:n] if a.__class__ is Array]
        if len(known) < n:
            return bind(prim, args[:n], args[n:])
        try:
            d = raw(*known, *args[n:])
        except Exception as error:
            raise explain(prim, args[:n], args[n:], error) from None
        return wrap(d) if one else tuple(map(wrap, d))

    return op
