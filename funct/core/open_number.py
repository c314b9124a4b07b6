"""`OpenNumber`: a Python number among the arguments that a capture keeps open.

Python computes with it as with any number, and a `Sheet` keeps what was computed: for other numbers
it is computed again, by Python too, so that results have Python's bits. Where an OpenNumber meets
an array, the capture asks for it as one more input. Comparisons are decisions, which the sheet
looks at again. Whatever needs the number itself (`float()`, `math.sqrt`, an index, a key of a dict)
binds it: the sheet notes which arguments those are, and what was captured holds for these alone.

Like a `Size` it is no subclass of the number, which C code would read without asking, and tells
who asks by `isinstance` that it is one. Code that means to keep it open asks for its `type`.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct.core.dtypes import NARROW, narrow_of
from funct.core.primitive import Primitive, ShapeDtype
from funct.core.value import Value

__all__ = ["OpenNumber", "Sheet", "closed", "dtype_beside"]

_NUMBERS = frozenset({int, float, complex})
_PLAIN = _NUMBERS | {bool}
_Operand = tuple[bool, Any]  # whether a row of the sheet, and which; else the number


class Sheet:
    """What Python computes from numbers, a row for each of them and for each result.

    rows: how a row comes from those above; None for the numbers themselves. kinds: the class of
    each. decisions: rows that were compared or asked for their truth, with the outcome. bound: the
    numbers, by position, that something needed to know.
    """

    __slots__ = ("_measure", "_roots", "bound", "count", "decisions", "kinds", "lift", "rows")

    def __init__(self, count: int, lift: Callable[[Any], Any], measure: Callable[..., Any]) -> None:
        self.count = count
        self.rows: list[tuple[Callable[..., Any], tuple[_Operand, ...]] | None] = []
        self.kinds: list[type] = []
        self.decisions: list[tuple[int, bool]] = []
        self.bound: set[int] = set()
        self.lift = lift
        self._measure = measure
        self._roots: list[frozenset[int]] = []

    def number(self, value: Any) -> OpenNumber:
        """A number that is given."""
        self._roots.append(frozenset({len(self.rows)}))
        return self._row(None, value)

    def _row(self, made: Any, value: Any) -> OpenNumber:
        self.rows.append(made)
        self.kinds.append(value.__class__)
        return OpenNumber(self, len(self.rows) - 1, value)

    def apply(self, op: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """op of numbers, of which some are of this sheet; those of others are bound there."""
        operands = [a.known() if _is_open(a) and a.sheet is not self else a for a in operands]
        value = op(*[a.value if _is_open(a) else a for a in operands])
        if value.__class__ not in _PLAIN:
            self.bind(*operands)
            return value
        of = [_is_open(a) for a in operands]
        made = op, tuple([(o, a.at if o else a) for o, a in zip(of, operands, strict=True)])
        roots = [self._roots[a.at] for o, a in zip(of, operands, strict=True) if o]
        self._roots.append(frozenset().union(*roots))
        row = self._row(made, value)
        if value.__class__ is not bool:
            return row
        self.decisions.append((row.at, value))
        return value

    def bind(self, *operands: Any) -> None:
        """Note that something depends on the numbers behind these in a way that no row tells."""
        for a in operands:
            if _is_open(a):
                self.bound |= self._roots[a.at]

    def measured(self, number: OpenNumber, dtype: Any) -> Any:
        """The number as a 0-d input of the capture."""
        return self._measure(number, np.dtype(dtype))

    def values(self, numbers: Sequence[Any]) -> list[Any] | None:
        """All rows for other numbers; None where Python goes another way with them, or fails."""
        found = list(numbers)
        try:
            for made in self.rows[self.count :]:
                assert made is not None
                op, operands = made
                found.append(op(*[found[a] if of else a for of, a in operands]))
        except (ArithmeticError, ValueError, TypeError):
            return None
        if [v.__class__ for v in found] != self.kinds:
            return None
        return None if any(found[at] is not seen for at, seen in self.decisions) else found


def _is_open(x: Any) -> bool:
    return type(x) is OpenNumber


def _joins(y: Any) -> bool:
    """Whether a row can have y beside an OpenNumber."""
    return type(y) in _PLAIN or _is_open(y)


def _binary(op: Callable[[Any, Any], Any]) -> Callable[[OpenNumber, Any], Any]:
    def method(self: OpenNumber, other: Any) -> Any:
        if _joins(other):
            return self.sheet.apply(op, (self, other))
        return NotImplemented if isinstance(other, Value) else op(self.known(), other)

    return method


def _reflected(op: Callable[[Any, Any], Any]) -> Callable[[OpenNumber, Any], Any]:
    def method(self: OpenNumber, other: Any) -> Any:
        if _joins(other):
            return self.sheet.apply(op, (other, self))
        return NotImplemented if isinstance(other, Value) else op(other, self.known())

    return method


def _alike(op: Callable[[Any, Any], Any]) -> Callable[[OpenNumber, Any], Any]:
    compare = _binary(op)

    def method(self: OpenNumber, other: Any) -> Any:
        if isinstance(other, numbers.Number):
            return compare(self, other)
        return NotImplemented  # as numbers say of None and of words, whichever they are

    return method


def _unary(op: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: OpenNumber, *rest: Any) -> Any:
        return self.sheet.apply(op, (self, *rest))

    return method


def _asked(op: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: OpenNumber, *rest: Any) -> Any:
        return op(self.known(), *rest)

    return method


class OpenNumber:
    """A number with its row. value: what it is in this capture, which binds nothing if read."""

    __slots__ = ("at", "sheet", "value")

    def __init__(self, sheet: Sheet, at: int, value: Any) -> None:
        self.sheet = sheet
        self.at = at
        self.value = value

    def known(self) -> Any:
        """The number itself, which binds it."""
        self.sheet.bind(self)
        return self.value

    __add__, __radd__ = _binary(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _binary(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _binary(operator.truediv), _reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _binary(operator.mod), _reflected(operator.mod)
    __pow__, __rpow__ = _binary(operator.pow), _reflected(operator.pow)
    __and__, __rand__ = _binary(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _binary(operator.or_), _reflected(operator.or_)
    __xor__, __rxor__ = _binary(operator.xor), _reflected(operator.xor)
    __lshift__, __rlshift__ = _binary(operator.lshift), _reflected(operator.lshift)
    __rshift__, __rrshift__ = _binary(operator.rshift), _reflected(operator.rshift)
    __divmod__, __rdivmod__ = _binary(divmod), _reflected(divmod)
    __lt__, __le__ = _binary(operator.lt), _binary(operator.le)
    __gt__, __ge__ = _binary(operator.gt), _binary(operator.ge)
    __eq__, __ne__ = _alike(operator.eq), _alike(operator.ne)
    __neg__, __pos__, __abs__ = _unary(operator.neg), _unary(operator.pos), _unary(operator.abs)
    __invert__, __bool__ = _unary(operator.invert), _unary(operator.truth)
    __round__, __trunc__ = _unary(round), _unary(math.trunc)
    __floor__, __ceil__ = _unary(math.floor), _unary(math.ceil)
    __int__, __float__, __complex__ = _asked(int), _asked(float), _asked(complex)
    __repr__, __str__, __format__ = _asked(repr), _asked(str), _asked(format)
    __array__ = _asked(np.asarray)
    __array_ufunc__ = None  # beside an array of NumPy's it answers itself

    def __hash__(self) -> int:
        """None: what is kept under it, in a cache say, would be there for the number too."""
        self.sheet.bind(self)
        raise TypeError("a number that a capture keeps open has no hash")

    def __index__(self) -> int:
        return operator.index(self.known())

    def __reduce__(self) -> Any:
        return self.value.__class__, (self.known(),)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.value, name)  # of which most are methods of the number
        if not name.startswith("__"):
            self.sheet.bind(self)
        return found

    def __funct_array__(self) -> Any:
        return self.sheet.measured(self, np.asarray(self.value).dtype)

    @property  # type: ignore[misc]  # that of object may be written
    def __class__(self) -> type:
        """What `isinstance` is told besides the type: what is refused for a number is so here."""
        cls: type = self.value.__class__
        return cls


def closed(params: Any) -> Any:
    """Parameters of an op, of which open numbers are bound."""
    if type(params) is tuple:
        return tuple([closed(p) for p in params]) if _has_open(params) else params
    return params.known() if _is_open(params) else params


def _has_open(params: tuple[Any, ...]) -> bool:
    return any([_has_open(p) if type(p) is tuple else _is_open(p) for p in params])  # noqa: C419


def dtype_beside(
    prim: Primitive, operands: Sequence[Any], params: tuple[Any, ...], i: int, result: Any
) -> np.dtype[Any] | None:
    """The dtype of a 0-d array that does what the number does as operand i; None if there is none.

    operands: things with a dtype, or numbers. result: the dtype of what the number gives.
    """
    kinds = [a.dtype for a in operands if hasattr(a, "dtype") and a.dtype != bool]
    if prim.name == "pow" or len(set(kinds)) > 1:  # NumPy knows some powers by their numbers
        return None
    number = narrow_of(operands[i], kinds[0]) if kinds and kinds[0] in NARROW else operands[i]
    dtype = np.result_type(*kinds[:1], number)
    beside = [ShapeDtype((), dtype) if k == i else a for k, a in enumerate(operands)]
    try:
        np.asarray(operands[i], dtype)
        found = prim.aval(beside, params)
    except Exception:
        return None
    return dtype if not isinstance(found, tuple) and found.dtype == result else None
