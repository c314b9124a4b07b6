"""Decorators that turn a documented stub into an op, and what every op of a family shares.

A room is one decorated function: the decorator builds the `Primitive` record and returns the fast
function (`funct.ops.fast`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, cast

import numpy as np

from funct import core
from funct.core import (
    Absent,
    Diagonal,
    Linear,
    Primitive,
    Rule,
    Sample,
    ShapeDtype,
)
from funct.core.rule import parameters
from funct.errors import ShapeError
from funct.ops.broadcasting import align, broadcast_shapes
from funct.ops.fast import of_arrays, of_elements

__all__ = ["elementwise", "structural"]

P = ParamSpec("P")
RuleLike = Rule | Absent | Callable[..., Any] | None
Samples = Callable[["np.random.Generator"], Sequence[Sample]]

_NO_SCALAR_FORM = Absent("no scalar form")
_NOT_ELEMENTWISE = Absent("moves or combines elements")


def _record(
    stub: Callable[..., Any],
    raw: Callable[..., Any],
    rules: Sequence[RuleLike],
    make: Callable[[Callable[..., Any], Sequence[str]], Rule],
    names: Sequence[str],
    **fields: Any,
) -> Primitive:
    n = len(rules)
    made = tuple([make(r, names) if inspect.isfunction(r) else r for r in rules])
    return Primitive(
        name=stub.__name__,
        raw=raw,
        operands=tuple(names[:n]),
        params=tuple(names[n:]),
        rules=cast("tuple[Rule | Absent | None, ...]", made),
        **fields,
    )


def _enter(stub: Callable[P, Any], op: Callable[P, Any], prim: Primitive) -> Callable[P, Any]:
    op.__name__ = op.__qualname__ = stub.__name__
    op.__module__ = stub.__module__
    op.__doc__ = stub.__doc__
    op.__wrapped__ = stub  # type: ignore[attr-defined]  # its signature, for who asks
    op.primitive = prim  # type: ignore[attr-defined]
    core.enter(prim, op)
    return op


def elementwise(
    raw: Callable[..., Any],
    *rules: RuleLike,
    onnx: str | core.Lowering | Absent,
    samples: Samples,
    code: str | Absent = _NO_SCALAR_FORM,
    masks: bool = False,
    typed: bool = False,
    raises: bool = False,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """An op that acts on each element, one rule per operand; operands broadcast.

    Arguments after the operands are static parameters. typed: Python numbers become arrays of the
    other operands' dtype first, for ops whose rules compute with one operand alone.
    """

    def declare(stub: Callable[P, Any]) -> Callable[P, Any]:
        names = parameters(stub)
        n = len(rules)
        assert len(names) >= n, stub.__name__
        prim = _record(
            stub, raw, rules, Diagonal, names, batch=align,
            aval=_elementwise_aval(raw, stub.__name__), code=code, onnx=onnx, samples=samples,
            masks=masks, spread=n > 1, results=1, raises=raises,
        )  # fmt: skip
        return _enter(stub, of_elements(prim, typed), prim)

    return declare


def structural(
    raw: Callable[..., Any],
    *rules: RuleLike,
    batch: Callable[[Primitive, Sequence[Any], Sequence[bool], tuple[Any, ...]], Any],
    onnx: str | core.Lowering | Absent,
    samples: Samples,
    shape: Callable[..., tuple[Any, ...]] | None = None,
    aval: Callable[[Sequence[Any], tuple[Any, ...]], Any] | None = None,
    masks: bool = False,
    spread: bool | None = None,
    results: int = 1,
    code: str | Absent = _NOT_ELEMENTWISE,
    moves: bool = False,
    raises: bool = False,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """An op on whole arrays; a plain function as rule is the transpose of a linear operand.

    moves: the result may lie on another device than the operands.

    shape: `shape(*operand shapes, *params)`, where the dtype is the first operand's; else give
    `aval`.
    """

    def declare(stub: Callable[P, Any]) -> Callable[P, Any]:
        names = parameters(stub)
        abstract = aval if aval is not None else _shape_aval(cast("Callable[..., Any]", shape))
        prim = _record(
            stub, raw, rules, Linear, names, batch=batch, aval=abstract, code=code, onnx=onnx,
            samples=samples, masks=masks, spread=spread, results=results, raises=raises,
        )  # fmt: skip
        return _enter(stub, of_arrays(prim, moves), prim)

    return declare


def _kind(number: Any) -> Any:
    """What of a Python number decides on the dtype of a result, and whether there is one."""
    if number.__class__ is not int:
        return number.__class__
    bits = (number if number >= 0 else ~number).bit_length()  # of the narrowest integers it fits
    return bits if number >= 0 else -1 - bits


def _elementwise_aval(
    raw: Callable[..., Any], name: str
) -> Callable[[Sequence[Any], tuple[Any, ...]], ShapeDtype]:
    """Shape by broadcasting; dtype by running the op on nothing, so no second table can drift."""
    dtypes: dict[Any, np.dtype[Any]] = {}

    def aval(args: Sequence[Any], params: tuple[Any, ...]) -> ShapeDtype:
        key = (*[getattr(a, "dtype", None) or _kind(a) for a in args], *params)
        dtype = dtypes.get(key)
        if dtype is None:
            empties = [np.empty(0, a.dtype) if hasattr(a, "dtype") else a for a in args]
            dtype = dtypes[key] = raw(*empties, *params).dtype
        shapes = [a.shape for a in args if hasattr(a, "shape")]
        if len(shapes) == 1:
            return ShapeDtype(shapes[0], dtype)
        try:
            return ShapeDtype(broadcast_shapes(*shapes), dtype)
        except ValueError as error:
            got = " and ".join(str(s) for s in shapes)
            raise ShapeError(f"{name}: shapes {got} cannot be broadcast: {error}") from None

    return aval


def _shape_aval(
    shape: Callable[..., tuple[Any, ...]],
) -> Callable[[Sequence[Any], tuple[Any, ...]], ShapeDtype]:
    def aval(args: Sequence[Any], params: tuple[Any, ...]) -> ShapeDtype:
        return ShapeDtype(shape(*[a.shape for a in args], *params), args[0].dtype)

    return aval
