"""The decorator of this folder: an elementwise room whose values are SciPy's.

Rules are computed in double precision, whatever the operands are, and rounded once: SciPy computes
so too for most of float32, and closed forms are differences, or have factors beyond float32.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from funct import ops
from funct.core import Absent, Lowering, Value
from funct.core.rule import parameters
from funct.kernels.special.functions import by_name
from funct.ops.families import RuleLike, Samples, elementwise

__all__ = ["bounded", "room"]

P = ParamSpec("P")

_DOUBLE, _COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)
_WIDE = (_DOUBLE, _COMPLEX)
_INT64, _COMPLEX_SINGLE = np.dtype(np.int64), np.dtype(np.complex64)

_NO_ONNX = Absent("ONNX has no operator for this function; Erf is its only special function")
_NO_CODE = Absent("the loop compiler has no such function")


def bounded(x: Value, most: float) -> Value:
    """x of double precision, where infinities are finite: products with 0 are 0 then."""
    return ops.minimum(ops.maximum(x, -most), most)


def _whole(x: Any) -> Any:
    """x, integers in int64: 0 - 1 is none of uint8, True has no negative, and roots of narrow ones
    are as narrow.
    """
    dtype = getattr(x, "dtype", None)
    if dtype is None or dtype.kind not in "biu" or dtype == _INT64:
        return x
    return ops.astype(x, _INT64)


def _wide(x: Any) -> Any:
    """x in double precision; integers, which rules know as whole numbers, stay some."""
    dtype = getattr(x, "dtype", None)
    if dtype is None or dtype in _WIDE or dtype.kind in "biu":
        return _whole(x)
    return ops.astype(x, _COMPLEX if dtype.kind == "c" else _DOUBLE)


def _named(rule: Any, like: Callable[..., Any], known: Sequence[str]) -> Any:
    """rule, of whose values tapes keep those that are named."""
    rule.__name__ = like.__name__
    rule.__wrapped__ = like
    rule.parameters = ("g", *known)
    return rule


def _with_end(rule: Callable[..., Any], names: Sequence[str], x: float, slope: float) -> Any:
    """rule, but at x the slope that is given: closed forms are 0 · ∞ there."""
    wanted = parameters(rule)[1:]
    known = [*wanted, *[n for n in names if n not in wanted]]
    at, count = known.index(names[0]), len(wanted)

    def with_end(g: Value, *kept: Any) -> Any:
        if kept[at].dtype.kind == "c":
            return rule(g, *kept[:count])
        here = ops.equal(kept[at], x)
        inside = rule(g, *[ops.where(here, 0.5, v) for v in kept[:count]])
        return ops.where(here, slope * g, inside)

    return _named(with_end, rule, known)


def _in_double(rule: Callable[..., Any], names: Sequence[str], op: Callable[..., Any]) -> Any:
    """rule, in double precision; where it names `ans`, it gets that of the operands widened."""
    wanted = parameters(rule)[1:]
    again = "ans" in wanted
    known = ["ans", *names] if again else wanted
    at = [known.index(n) for n in wanted]

    def in_double(g: Value, *kept: Any) -> Any:
        dtype = g.dtype
        if dtype in _WIDE:
            return rule(g, *[_whole(kept[i]) for i in at])
        values = [_wide(v) for v in kept]
        if again:
            values[0] = op(*values[1:])
        y = rule(_wide(g), *[values[i] for i in at])
        return ops.astype(y, _COMPLEX_SINGLE if y.dtype.kind == "c" else dtype)

    return _named(in_double, rule, known)


def room(
    raw: str | Callable[..., Any],
    *rules: RuleLike,
    samples: Samples,
    onnx: str | Lowering | Absent = _NO_ONNX,
    code: str | Absent = _NO_CODE,
    stable: bool = False,
    end: tuple[float, float] | None = None,
    raises: bool = False,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """`elementwise` for a kernel, or for SciPy's function of a name, one rule per operand.

    stable: the rules lose no digits in the precision of the operands, and are computed in it.
    end: an infinity, and the slope at it, where the rule of one operand does not find it; nothing
    bends there.
    """
    kernel = by_name(raw, len(rules)) if isinstance(raw, str) else raw
    typed = len(rules) > 1

    def declare(stub: Callable[P, Any]) -> Callable[P, Any]:
        names = parameters(stub)

        def again(*args: Any) -> Any:
            return op(*args)

        made: tuple[RuleLike, ...] = rules
        if end is not None:
            made = tuple([_with_end(r, names, *end) if inspect.isfunction(r) else r for r in rules])
        if code is _NO_CODE and not stable:  # compiled loops have the dtype of their operands
            made = tuple(
                [_in_double(r, names, again) if inspect.isfunction(r) else r for r in made]
            )
        declared = elementwise(
            kernel, *made, onnx=onnx, samples=samples, code=code, typed=typed, raises=raises
        )
        op: Callable[..., Any] = declared(stub)
        return op

    return declare
