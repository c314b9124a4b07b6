"""Symbolic sizes as text, and back: read by a grammar, never by `eval`.

An expression is made of symbols, integers, + - * // %, max(a, b) and parentheses; a guard compares
two.
"""

from __future__ import annotations

import ast
import keyword
import operator
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from funct.core import Size, larger
from funct.errors import FileFormatError

__all__ = ["check_guard", "is_symbol_name", "parse_size"]

_TAKEN = r"[vxcp]\d+|run|MISS|dtype|inf|nan|same|max"  # names in generated code
_MAX_TEXT = 4000

_Operators = ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod
_Comparisons = ast.Eq | ast.Lt | ast.LtE | ast.Gt | ast.GtE


def is_symbol_name(name: object) -> bool:
    """Whether a symbolic size may have this name.

    Example:
        >>> from funct import serialize
        >>> serialize.is_symbol_name("batch"), serialize.is_symbol_name("2 b")
        (True, False)
    """
    return (
        isinstance(name, str)
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and not re.fullmatch(_TAKEN, name)
    )


def parse_size(text: Any, symbols: Mapping[str, Size]) -> Size:
    """The size that prints as text; FileFormatError if there is none."""
    try:
        size = _value(_parsed(text), symbols)
    except ZeroDivisionError:
        size = None
    if not isinstance(size, Size) or repr(size) != text:
        raise FileFormatError(f"graph.json: {text!r} is no size in its normal form")
    return size


def check_guard(text: Any, symbols: Mapping[str, Size]) -> str:
    """The text of a guard on sizes, if it is one."""
    e = _parsed(text)
    negated = isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.Not)
    if isinstance(e, ast.UnaryOp) and negated:
        e = e.operand
    if not isinstance(e, ast.Compare) or len(e.ops) != 1 or not isinstance(e.ops[0], _Comparisons):
        raise FileFormatError(f"graph.json: {text!r} compares no sizes")
    sides = e.left, e.comparators[0]
    for side in sides:
        _check(side, symbols)
    compare = _COMPARED[type(e.ops[0])]
    with suppress(ZeroDivisionError):
        example = [_value(side, {name: n.hint for name, n in symbols.items()}) for side in sides]
        if compare(*example) is not negated:  # the sizes know it from now on
            compare(*[_value(side, symbols) for side in sides])
    return str(text)


_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def _parsed(text: Any) -> ast.expr:
    if not isinstance(text, str) or len(text) > _MAX_TEXT:
        raise FileFormatError("graph.json: an expression of sizes must be a short text")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise FileFormatError(f"graph.json: {text!r} is no expression of sizes") from None


def _check(e: ast.expr, symbols: Mapping[str, Any]) -> None:
    """Raise unless e is made of what sizes are made of."""
    if isinstance(e, ast.BinOp) and isinstance(e.op, _Operators):
        _check(e.left, symbols)
        _check(e.right, symbols)
    elif isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        _check(e.operand, symbols)
    elif isinstance(e, ast.Call) and _is_larger(e):
        for side in e.args:
            _check(side, symbols)
    elif isinstance(e, ast.Name):
        if e.id not in symbols:
            raise FileFormatError(f"graph.json: the size {e.id!r} is not declared")
    elif not isinstance(e, ast.Constant) or type(e.value) is not int:
        raise FileFormatError(f"graph.json: {ast.unparse(e)!r} is no size")


def _is_larger(e: ast.Call) -> bool:
    """Whether a call is the larger of two."""
    return ast.unparse(e.func) == "max" and len(e.args) == 2 and not e.keywords


def _value(e: ast.expr, symbols: Mapping[str, Any]) -> Any:
    _check(e, symbols)
    if isinstance(e, ast.Name):
        return symbols[e.id]
    if isinstance(e, ast.Constant):
        return e.value
    if isinstance(e, ast.UnaryOp):
        return -_value(e.operand, symbols)
    if isinstance(e, ast.Call):
        return larger(*[_value(side, symbols) for side in e.args])
    assert isinstance(e, ast.BinOp)
    x, y = _value(e.left, symbols), _value(e.right, symbols)
    if isinstance(e.op, ast.Add):
        return x + y
    if isinstance(e.op, ast.Sub):
        return x - y
    if isinstance(e.op, ast.Mult):
        return x * y
    return x // y if isinstance(e.op, ast.FloorDiv) else x % y
