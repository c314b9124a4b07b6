"""Functions of elements on large arrays, where NumPy computes number by number.

float16 and bfloat16 keep NumPy's bits (`halves.py`). float32 and float64 are computed by the
functions of compiled programs, which are within 2 ulp, from `MANY` elements on: the size of the
operands alone decides, so a call has the same bits each time. Integers are computed in what NumPy
makes of them; of complex numbers there are functions of one operand. A choice between two operands
is one of words: NumPy takes a branch for each, which a processor cannot foretell.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funct.kernels.cpu.broadcast import distinct
from funct.kernels.cpu.elementwise import complex_loops, halves
from funct.kernels.cpu.elementwise.alike import of_alike
from funct.kernels.cpu.elementwise.byte_tables import tabled_bytes
from funct.kernels.cpu.elementwise.halves import HALVES, TRUTH
from funct.kernels.cpu.elementwise.sized import chosen
from funct.kernels.cpu.elementwise.unlike import of_unlike
from funct.kernels.cpu.elementwise.vector_loops import ELEMENTS, OPS, combined, operand
from funct.kernels.elementwise.functions import known_by_number
from funct.kernels.elementwise.thresholds import EXACT, FAR, MANY, SLOW
from funct.kernels.llvm.complexes import COMPLEX
from funct.kernels.table import permitted

__all__ = ["of_large", "other_way"]

_LEAST = 1 << 12  # elements from which on a call of a loop costs less than what it saves
_REAL = frozenset(map(np.dtype, "fd"))
_COMPLEX = frozenset(map(np.dtype, "FD"))
_WHOLE = frozenset(map(np.dtype, "?bhilqBHILQ"))
_BYTES = frozenset(map(np.dtype, "?bB"))
_INTEGERS = _WHOLE - {np.dtype(bool)}
_LIMITED = _REAL | _INTEGERS
_LIMITS = {"maximum": "at_least", "minimum": "at_most"}  # NumPy has vectors for two arrays alone
# Powers by a number. Of the first ones NumPy makes several passes, of halves each one by one.
_IN_PASSES: dict[float, str] = {3: "cube", 4: "fourth", 0.5: "root", -0.5: "inverse_root"}
_POWERS = _IN_PASSES | {2: "square", -1: "reciprocal", -2: "inverse_square"}
_LOGIC = frozenset({"logical_and", "logical_not", "logical_or", "logical_xor"})
_QUOTIENTS = frozenset({"floor_divide", "remainder"})
# Functions of halves that are of the dtype of their operands, and of which none is bfloat16's own.
_ROUNDED = OPS.keys() - {*_LIMITS, "where", "astype"} - TRUTH
_KEPT = _QUOTIENTS | {"fmod", "pow", "sign"}  # of integers they are integers
_KNOWN = _REAL | _COMPLEX | _WHOLE
_HALF = np.dtype(np.float16)
_BOOL, _OTHER = np.dtype(bool), np.dtype(object)
_HELD = {"f": (-(1 << 24), 1 << 24), "i": (-128, 127), "u": (0, 255)}  # that all of them have
_HELD["c"] = _HELD["f"]
_WORDS = {1: _BOOL, 2: np.dtype(np.uint16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def of_large(name: str, raw: Callable[..., Any], operands: int) -> Callable[..., Any]:
    """raw, the function of elements of that name, with another way for large arrays."""
    narrow = halves.other_way(name, raw, operands)
    if name == "where" and narrow is not None:
        return chosen(raw, selected(raw, narrow), _LEAST, HALVES | _KNOWN)
    if name == "relu":  # which NumPy has vectors for as a maximum of two arrays alone
        way = other_way(name, raw, narrow or raw)
        some = of_alike(name, operands, _REAL, way)
        way = of_alike(name, operands, _REAL, way, dealt=True)
        return chosen(raw, way, _LEAST, HALVES, some=some, sooner=_REAL, least_of_some=MANY)
    if name in SLOW:
        way = other_way(name, raw, narrow or raw)
        if name in EXACT:
            kinds = HALVES if narrow else frozenset()
            some = of_alike(name, operands, kinds, way)
            way = of_alike(name, operands, kinds | _REAL, way, dealt=True)
            raw = chosen(raw, way, FAR, _KNOWN)
            return chosen(raw, way, _LEAST, (), some=some, sooner=HALVES, least_of_some=MANY)
        own = halves.in_vectors(raw, name) if operands == 1 else None
        halved = HALVES if narrow else frozenset()
        made = functools.partial(_made_of, raw)
        some = of_alike(name, operands, _REAL | halved, way, own, made)
        many = of_alike(name, operands, _REAL if own else _REAL | halved, way, dealt=True)
        if name == "pow":
            some, many = of_powers(raw, way, some), of_powers(raw, way, many, dealt=True)
        if name in _QUOTIENTS:
            many = of_quotients(name, raw, way, many)
        sooner = halved | _REAL | _COMPLEX | (set() if name in _KEPT else _WHOLE)
        known = HALVES | (_KNOWN - _WHOLE if name == "sign" else _KNOWN)  # NumPy's is as quick
        return chosen(raw, many, _LEAST, known, some=some, sooner=sooner, least_of_some=MANY)
    if narrow is None:
        return raw
    if name in _LOGIC:
        return chosen(raw, truth(name, raw), _LEAST, HALVES | _REAL)
    if name == "negative":
        way = of_parts(raw, narrow)
        some = of_alike(name, operands, HALVES, narrow)
        way = of_alike(name, operands, HALVES, way, dealt=True)
        return chosen(raw, way, _LEAST, _COMPLEX, some=some, sooner=HALVES, least_of_some=MANY)
    # the size of float16 NumPy finds in vectors
    widened = [d for d in HALVES if name != "abs" or d.kind != "f"]
    beside = limited(name, raw) if name in _LIMITS else None
    unlike = of_unlike(name, raw)
    if beside is not None:
        some = of_alike(name, operands, [_HALF], narrow)
        narrow = of_alike(name, operands, [_HALF], narrow, dealt=True)
        return chosen(raw, narrow, _LEAST, widened, unlike, beside, some, [_HALF], MANY)
    if name not in _ROUNDED:
        return chosen(raw, narrow, _LEAST, widened, unlike)
    some = of_alike(name, operands, widened, narrow)
    narrow = of_alike(name, operands, widened, narrow, dealt=True)
    return chosen(raw, narrow, _LEAST, (), unlike, None, some, widened, MANY)


def other_way(name: str, raw: Callable[..., Any], narrow: Callable[..., Any]) -> Callable[..., Any]:
    """What computes the function on arrays of one dtype of which one is large; halves go on."""

    of_bytes = tabled_bytes(name, raw, MANY)

    def large(*args: Any) -> Any:
        if len(args) == 1 and args[0].dtype in _BYTES and permitted("llvm"):
            found = of_bytes(args[0])
            if found is not None:
                return found
        if name == "pow" and known_by_number(args[1]):
            power = _power_by_number(*args)
            if power is None or not permitted("llvm"):
                return raw(*args)
            return combined(power, args[:1], args[0].dtype)
        if name in _QUOTIENTS:
            whole = _integers(*args)
            if whole is not None:
                return combined(f"integer_{name}", whole, whole[0].dtype)
        args = _in_floats(raw, args)
        arrays = [a for a in args if a.__class__ is np.ndarray]
        kind = arrays[0].dtype
        if kind in _COMPLEX and name in COMPLEX and arrays[0].size >= MANY and permitted("llvm"):
            return complex_loops.function_of(name, arrays[0])
        if kind not in _REAL:
            return narrow(*args) if any(a.dtype in HALVES for a in arrays) else raw(*args)
        if name in EXACT and not all(a.flags.forc or a.strides[-1] == a.itemsize for a in arrays):
            return raw(*args)  # what is copied to be dense takes longer than it does
        operands = [operand(a, kind) for a in args]
        known = all(a.__class__ is np.ndarray for a in operands)
        if not known or max([a.size for a in operands]) < MANY or not permitted("llvm"):
            return raw(*args)
        return combined(name, operands, kind)

    return large


def of_quotients(
    name: str, raw: Callable[..., Any], way: Callable[..., Any], many: Callable[..., Any]
) -> Callable[..., Any]:
    """Quotients and remainders: of integers by a number NumPy finds the quotients by products."""

    def call(x: Any, y: Any) -> Any:
        if x.__class__ is not np.ndarray or x.dtype not in _INTEGERS:
            return many(x, y)
        return (raw if name == "floor_divide" and y.__class__ is int else way)(x, y)

    return call


def of_powers(
    raw: Callable[..., Any], way: Callable[..., Any], some: Callable[..., Any], *,
    dealt: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """some, but powers by a number have shorter functions. way: what computes those of arrays that
    are not dense.
    """

    @functools.cache
    def function(power: str, number: float) -> Callable[[Any], Any]:
        return of_alike(power, 1, _REAL | HALVES, lambda x: way(x, number), dealt=dealt)

    def call(x: Any, y: Any) -> Any:
        if y.__class__ is int and y == 2 and x.dtype in _REAL:
            return np.square(x)
        power = _power_by_number(x, y)
        if power is not None:
            return function(power, float(y))(x)
        return raw(x, y) if known_by_number(y) else some(x, y)

    return call


def _power_by_number(x: Any, y: Any) -> str | None:
    """The function in vectors that is x to the power y, a number; None where there is none."""
    if x.__class__ is not np.ndarray:
        return None
    if y.__class__ is np.ndarray:
        if y.ndim or y.dtype != x.dtype:
            return None
        y = y.item()
    kind = x.dtype
    return (_POWERS if kind in HALVES else _IN_PASSES if kind in _REAL else {}).get(y)


def truth(name: str, raw: Callable[..., Any]) -> Callable[..., Any]:
    """What computes with the truth of arrays of one dtype."""

    def large(*args: Any) -> Any:
        kind = args[0].dtype if args[0].__class__ is np.ndarray else _OTHER
        alike = all(a.__class__ is np.ndarray and a.dtype == kind for a in args)
        if not alike or kind not in ELEMENTS or not permitted("llvm"):
            return raw(*args)
        return combined(name, args, _BOOL)

    return large


def selected(raw: Callable[..., Any], narrow: Callable[..., Any]) -> Callable[..., Any]:
    """What chooses between arrays of one dtype, or one and a number; halves go on."""

    def large(condition: Any, x: Any, y: Any) -> Any:
        kinds = {a.dtype for a in (x, y) if a.__class__ is np.ndarray}
        if not kinds.isdisjoint(HALVES):
            return narrow(condition, x, y)
        kind = kinds.pop() if len(kinds) == 1 else _OTHER
        word = _WORDS.get(kind.itemsize) if kind in _KNOWN else None
        if word is None or condition.dtype != _BOOL or not permitted("llvm"):
            return raw(condition, x, y)
        bits = [a.view(word) for a in (x, y) if a.__class__ is np.ndarray]
        if len(bits) < 2:
            number = y if x.__class__ is np.ndarray else x
            if not _fits(number, kind):
                return raw(condition, x, y)
            bits.insert(2 if number is y else 0, np.asarray(number, kind).view(word))
        return combined("where", (condition, *bits), word).view(kind)

    return large


def limited(name: str, raw: Callable[..., Any]) -> Callable[..., Any]:
    """What computes a maximum or minimum of an array and a number, with NumPy's bits: of two zeros
    the second, and NaN as it is.
    """

    limit = _LIMITS[name]

    def beside(x: Any, y: Any) -> Any:
        kind = (x if x.__class__ is np.ndarray else y).dtype
        if kind not in _LIMITED or not permitted("llvm"):
            return raw(x, y)
        one, other = operand(x, kind), operand(y, kind)
        if one is None or other is None:
            return raw(x, y)
        return combined(limit, (one, other), kind)

    some = of_alike(limit, 2, _LIMITED, beside, dealt=True)
    return lambda x, y: (some if x.__class__ is np.ndarray else beside)(x, y)


def of_parts(raw: Callable[..., Any], narrow: Callable[..., Any]) -> Callable[..., Any]:
    """What is done to the parts of complex numbers alike; halves go on."""

    def large(x: Any) -> Any:
        if x.dtype not in _COMPLEX:
            return narrow(x) if x.dtype in HALVES else raw(x)
        if not x.flags.c_contiguous:
            return large(x.T).T if x.flags.f_contiguous else raw(x)
        return raw(x.view(x.real.dtype)).view(x.dtype) if x.ndim else raw(x)

    return large


def _integers(x: Any, y: Any) -> tuple[Any, Any] | None:
    """The operands, if they are integers of one dtype whose quotients are better taken as floats,
    and none of which NumPy would warn of.
    """
    if x.__class__ is not np.ndarray or x.dtype not in _INTEGERS or not permitted("llvm"):
        return None
    if y.__class__ is int:
        fits = 0 < y <= np.iinfo(x.dtype).max
        return (x, np.asarray(y, x.dtype)) if fits else None
    same = y.__class__ is np.ndarray and y.dtype == x.dtype
    large = same and min(x.size, y.size) and max(x.size, y.size) >= MANY
    return (x, y) if large and distinct(y).min() > 0 else None


def _fits(number: Any, kind: np.dtype[Any]) -> bool:
    """Whether a number has the same value in the dtype of what it meets, or is rounded to it."""
    if number.__class__ is float:
        return kind in _REAL or kind in _COMPLEX
    low, high = _HELD.get(kind.kind, (0, -1))
    return number.__class__ is int and low <= number <= high


def _in_floats(raw: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Integers of one dtype in the floating one that raw makes of them, if it does."""
    kinds = {a.dtype for a in args if a.__class__ is np.ndarray}
    if len(kinds) > 1 or not kinds <= _WHOLE:
        return args
    if any(a.__class__ is not np.ndarray for a in args):
        none = [np.empty(0, a.dtype) if a.__class__ is np.ndarray else a for a in args]
        kind = raw(*none).dtype
    else:
        kind = _made_of(raw, *[a.dtype for a in args])
    if kind not in _REAL and kind not in HALVES:
        return args
    return tuple([a.astype(kind) if a.__class__ is np.ndarray else a for a in args])


@functools.lru_cache(1024)
def _made_of(raw: Callable[..., Any], *kinds: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that raw makes of arrays of these."""
    made: np.dtype[Any] = raw(*[np.empty(0, d) for d in kinds]).dtype
    return made
