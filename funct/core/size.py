"""`Size`: an axis length that capture keeps symbolic.

A Size is a polynomial in named symbols with integer coefficients; what is no polynomial (a floor
division that leaves a rest, the larger of two) becomes an `Atom`. It is not an `int`: C code would
read an int subclass without asking. Whoever needs the number calls `__index__`, and whoever
compares needs a decision; both are answered from the example's value and recorded as a guard on the
scope, except for comparisons that `bounds.py` settles for every length. Code outside of this
package that asks by `isinstance` is told that it is an int, for that is what a shape holds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from funct import tree
from funct.core.bounds import Atom, Terms, lower, names_in, text
from funct.core.value import Value
from funct.source import is_ours

__all__ = [
    "OpenShape", "Size", "SizeScope", "is_one", "larger", "no_capture", "open_shape",
    "size_values", "smaller",
]  # fmt: skip


class SizeScope:
    """Collects what was decided about sizes: (expression, comparison, other side, outcome).

    lift: gives a constant to the capture that the sizes belong to, so that an op on constants alone
    (zeros of a symbolic shape) is written down there. asked: told "expression == number" when code
    needed the number itself, which binds the size; a comparison need not. measure: gives a size as
    a 0-d int64 array of the capture, so that arithmetic with arrays binds nothing; or None. hints:
    what the symbols were in the example. least: what no symbol is ever below; raised: what some
    are not below since a decision that said so, which is on record.
    """

    __slots__ = ("asked", "hints", "least", "lift", "measure", "raised", "record")

    def __init__(
        self,
        record: Callable[[str, str, str, bool], None],
        lift: Callable[[Any], Any] | None = None,
        asked: Callable[[str], None] | None = None,
        measure: Callable[[Size], Any] | None = None,
        hints: Mapping[str, int] | None = None,
        least: int = 0,
    ) -> None:
        self.asked = asked
        self.hints = {} if hints is None else hints
        self.least = least
        self.measure = measure
        self.raised: dict[str, int] = {}
        self.record = record
        self.lift = lift

    def __reduce__(self) -> Any:
        return no_capture, (self.hints, self.least)


def no_capture(hints: Mapping[str, int] | None = None, least: int = 0) -> SizeScope:
    """The scope of a program that is no longer being captured: decisions are not recorded."""
    return SizeScope(lambda *decision: None, hints=hints, least=least)


class Size:
    """A symbolic axis length with the value it had in the example."""

    __slots__ = ("hint", "scope", "terms")

    def __init__(self, terms: Terms, hint: int, scope: SizeScope) -> None:
        self.terms = terms
        self.hint = hint
        self.scope = scope

    def __reduce__(self) -> Any:
        return Size, (self.terms, self.hint, self.scope)

    @classmethod
    def symbol(cls, name: str, hint: int, scope: SizeScope) -> Size:
        """A fresh symbol."""
        return cls({(name,): 1}, hint, scope)

    def _make(self, terms: Terms, hint: int) -> Any:
        terms = {k: v for k, v in terms.items() if v}
        if not terms:
            return 0
        if set(terms) == {()}:
            return terms[()]
        return Size(terms, hint, self.scope)

    def __add__(self, other: object) -> Any:
        theirs = _terms(other)
        if theirs is None:
            return NotImplemented
        out = dict(self.terms)
        for k, v in theirs.items():
            out[k] = out.get(k, 0) + v
        return self._make(out, self.hint + _hint(other))

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: object) -> Any:
        theirs = _terms(other)
        if theirs is None:
            return NotImplemented
        out = dict(self.terms)
        for k, v in theirs.items():
            out[k] = out.get(k, 0) - v
        return self._make(out, self.hint - _hint(other))

    def __rsub__(self, other: object) -> Any:
        return -(self - other)

    def __mul__(self, other: object) -> Any:
        theirs = _terms(other)
        if theirs is None:
            return NotImplemented
        out: Terms = {}
        for k, v in self.terms.items():
            for m, w in theirs.items():
                key = tuple(sorted(k + m))
                out[key] = out.get(key, 0) + v * w
        return self._make(out, self.hint * _hint(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Any:
        return self._divided(other)[0]

    def __rfloordiv__(self, other: object) -> Any:
        return self._constant(other)._divided(self)[0] if isinstance(other, int) else NotImplemented

    def __mod__(self, other: object) -> Any:
        return self._divided(other)[1]

    def __divmod__(self, other: object) -> Any:
        found = self._divided(other)
        return found if found[0] is not NotImplemented else NotImplemented

    def __rmod__(self, other: object) -> Any:
        return self._constant(other)._divided(self)[1] if isinstance(other, int) else NotImplemented

    def _constant(self, n: int) -> Size:
        return Size({(): n}, n, self.scope)

    def _divided(self, other: object) -> tuple[Any, Any]:
        theirs = _terms(other)
        if theirs is None:
            return NotImplemented, NotImplemented
        whole: Terms = {}  # the quotient of what divides; left: what else there is
        left = dict(self.terms)
        if len(theirs) == 1:
            atoms, factor = next(iter(theirs.items()))
            for k, v in self.terms.items():
                rest = list(k)
                for a in atoms:
                    if a not in rest:
                        break
                    rest.remove(a)
                else:
                    if v % factor == 0:
                        whole[tuple(rest)] = v // factor
                        del left[k]
        quotient, remainder = divmod(self.hint, _hint(other))
        if not left:
            return self._make(whole, quotient), 0
        if set(left) == set(theirs) == {()}:
            more, last = divmod(left[()], theirs[()])
            return self._make(whole, quotient - more) + more, last
        whole[(Atom("//", left, theirs),)] = 1
        return (
            self._make(whole, quotient),
            Size({(Atom("%", left, theirs),): 1}, remainder, self.scope),
        )

    def _decide(self, other: object, op: str) -> bool:
        difference = self - other
        outcome = _COMPARE[op](self.hint, _hint(other))
        if isinstance(difference, Size):
            low, high = difference._known(), -(-difference)._known()
            settled = low > 0 or high < 0 or low == high  # whatever is asked
            if settled or (op == "<" and low >= 0) or (op == ">" and high <= 0):
                return outcome
            self.scope.record(repr(self), op, repr(other), outcome)
            difference._learn(op, outcome)
        return outcome

    def _learn(self, op: str, outcome: bool) -> None:
        """Note what the outcome of a comparison of this size with 0 means for a symbol."""
        if op == "<":
            positive = -self - 1 if outcome else self
        elif op == ">":
            positive = self - 1 if outcome else -self
        elif not outcome and self._known() == 0:
            positive = self - 1
        else:
            return
        symbols = [k for k in positive.terms if k]
        if len(symbols) == len(symbols[0]) == 1 and not isinstance(symbols[0][0], Atom):
            ((name,),) = symbols
            factor = positive.terms[(name,)]
            if factor > 0:
                bound = -(positive.terms.get((), 0) // factor)
                self.scope.raised[name] = max(bound, self.scope.raised.get(name, bound))

    @property
    def least(self) -> float:
        """A number that it is never below, whatever lengths the symbols are; -inf where none is
        known. What was decided so far has no part in it, so that shapes look the same at any time.
        """
        return lower(self.terms, 0)

    def _known(self) -> float:
        """The same, with what was decided."""
        return lower(self.terms, self.scope.least, frozenset(self.scope.raised.items()))

    def always(self, other: object) -> bool:
        """Whether it equals another length wherever what was decided holds."""
        difference = self - other
        if isinstance(difference, Size):
            return difference._known() == -(-difference)._known() == 0
        return difference.__class__ is int and difference == 0

    def __eq__(self, other: object) -> bool:
        return False if _terms(other) is None else self._decide(other, "==")

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        return self._decide(other, "<")

    def __ge__(self, other: object) -> bool:
        return not self._decide(other, "<")

    def __gt__(self, other: object) -> bool:
        return self._decide(other, ">")

    def __le__(self, other: object) -> bool:
        return not self._decide(other, ">")

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.terms.items())))

    def __bool__(self) -> bool:
        return self != 0

    @property
    def names(self) -> set[str]:
        """The symbols in it."""
        return names_in(self.terms)

    @property  # type: ignore[misc]  # that of object may be written
    def __class__(self) -> type:
        """What `isinstance` is told besides the type."""
        return Size if is_ours(sys._getframe(1).f_code) else int

    def measured(self) -> Any:
        """The size as a 0-d int64 array; None where its capture has none."""
        return None if self.scope.measure is None else self.scope.measure(self)

    def __funct_array__(self) -> Any:
        found = self.measured()
        return int(self) if found is None else found

    def __index__(self) -> int:
        self.scope.record(repr(self), "==", repr(self.hint), True)
        if self.scope.asked is not None:
            self.scope.asked(f"{self!r} == {self.hint!r}")
        return self.hint

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __repr__(self) -> str:
        return text(self.terms)


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
}


def _terms(x: object) -> Terms | None:
    if isinstance(x, Size):
        return x.terms
    if isinstance(x, int) or (hasattr(x, "__index__") and not isinstance(x, Value)):
        n = int(x.__index__())
        return {(): n} if n else {}
    return None


def _hint(x: Any) -> int:
    return x.hint if isinstance(x, Size) else int(x)


def larger(a: Any, b: Any) -> Any:
    """The larger of two lengths, decided nowhere: `max` of Python compares, which is a guard.

    All of them are made of one kind of atom, max(d, 0), so that equal ones are seen to be equal.
    """
    return b + _positive_part(a - b)


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two lengths, decided nowhere."""
    return a - _positive_part(a - b)


def _positive_part(d: Any) -> Any:
    if not isinstance(d, Size):
        return max(d, 0)
    opposite = -d
    if d.least >= 0 or opposite.least >= 0:
        return d if d.least >= 0 else 0
    if d.terms[min(k for k in d.terms if k)] < 0:  # of d and -d one alone is in atoms
        return d + _positive_part(opposite)
    return Size({(Atom("max", d.terms, {}),): 1}, max(d.hint, 0), d.scope)


class OpenShape(tuple[Any, ...]):
    """A shape with symbolic lengths: one of another rank differs, and no length is asked.

    Tuples compare their elements before their lengths, so (n, 3) == (3,) would decide n == 3.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and len(self) == len(other) and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


tree.register(
    OpenShape, lambda s: (tuple(s), None, range(len(s))), lambda _, ns: open_shape(tuple(ns))
)


def open_shape(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape itself, or an OpenShape where a length is symbolic."""
    for n in shape:  # of every value that is captured
        if n.__class__ is not int and isinstance(n, Size):
            return OpenShape(shape)
    return shape


def is_one(n: object) -> bool:
    """Whether an axis has the literal length 1; a symbolic one is taken for longer, unguarded."""
    return n.__class__ is int and n == 1


def size_values(params: Any, values: Mapping[str, int] | None = None) -> Any:
    """Replace every Size in nested tuples: by its example's value, or evaluated at `values`."""
    if isinstance(params, Size):
        if values is None:
            return params.hint
        found = eval(repr(params), {"max": larger}, dict(values))
        return found if isinstance(found, Size) else int(found)  # a capture within a capture
    if isinstance(params, tuple):
        return tuple([size_values(p, values) for p in params])
    return params
