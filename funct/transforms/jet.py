"""jet: Taylor mode. Each tracer carries the derivatives of its value along one curve.

With x(t) given by its derivatives at t = 0, those of y(t) = f(x(t)) follow op by op. Ops that are
linear, or linear in each of two operands, have Leibniz' rule, and division and the sine pair their
own recurrences. Every other op uses its one derivative rule: y' = rule(x') is itself a function of
t, so its derivatives are those of the rule, one order lower.

Source: Bettencourt, Johnson, Duvenaud, "Taylor-mode automatic differentiation for higher-order
derivatives in JAX" (2019); the recurrences are Griewank and Walther, "Evaluating derivatives",
chapter 13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import Any

from funct import ops
from funct.array import Tensor, asarray
from funct.array.trees import flat_arrays
from funct.core import INEXACT, Level, Linear, Primitive, Region, expect_below
from funct.core.level import unruled
from funct.errors import ShapeError, TransformError, TreeError
from funct.transforms.forward import as_tuple, push_forward, push_region
from funct.transforms.given import expect_functions
from funct.transforms.hidden import flat_results
from funct.transforms.reverse import zero_like

__all__ = ["jet"]

Recurrence = Callable[..., tuple[Any, ...]]
Series = tuple[Any, ...]  # value and derivatives; None stands for a derivative that is zero


def _primitive(op: Callable[..., Any]) -> Primitive:
    found: Primitive = op.primitive  # type: ignore[attr-defined]
    return found


_ADD, _SUBTRACT = _primitive(ops.add), _primitive(ops.subtract)
_BILINEAR = frozenset({_ADD, _SUBTRACT, _primitive(ops.multiply), _primitive(ops.negative)})


class JetTracer(Tensor):
    """A value with its derivatives along the curve."""

    __slots__ = ("level", "series", "value")

    level: Jet

    def __init__(self, series: Series, level: Jet) -> None:
        self.value = series[0]
        self.series = series
        self.level = level

    def __repr__(self) -> str:
        return f"JetTracer({self.series!r})"


class Jet(Level):
    """The level that carries derivatives up to one order."""

    __slots__ = ("order",)

    def __init__(self, fun: Callable[..., Any] | None, order: int) -> None:
        super().__init__("jet", fun)
        self.order = order

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """The op's series, from those of its operands."""
        moving, vals, series = self._lowered(args)
        ans = prim.fn(*vals, *params)
        if prim.results == 1:
            if ans.dtype not in INEXACT:
                return ans
            at = [k for k, m in enumerate(moving) if m]
            if all(prim.rules[k] is None for k in at):
                return ans  # stop_gradient, say: nothing moves any more
            special = _RECURRENCES.get(prim)
            if special is not None:
                return JetTracer(special(series, self.order, ans), self)
            if _multilinear(prim, at):
                return JetTracer(_leibniz(prim, series, params, self.order, at, ans), self)
        outs = ans if prim.results != 1 else (ans,)

        def push(primals: Any, tangents: Any, known: Any) -> Any:
            kept = known if prim.results != 1 else known[0]
            found = push_forward(prim, primals, tangents, params, kept)
            return found if prim.results != 1 or found is None else (found,)

        out = self._by_order(outs, series, push)
        return out if prim.results != 1 else out[0]

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """A call with its own rules."""
        mine, vals, series = self._lowered(args)
        if not region.ruled:
            return region.run(*args)
        if not any(mine):  # it got here by what it closes over
            unruled(self.label, region)

        def push(primals: Any, tangents: Any, known: Any) -> Any:
            found = push_region(region, tuple(primals), tangents)
            assert found is not None
            return found[1]

        outs = region.run(*vals)
        expect_below(self, region, outs)
        return self._by_order(outs, series, push)

    def _lowered(self, args: Sequence[Any]) -> tuple[list[bool], list[Any], list[Series]]:
        moving = [a.__class__ is JetTracer and a.level is self for a in args]
        vals = [a.value if m else a for a, m in zip(args, moving, strict=True)]
        return moving, vals, [a.series if m else (a,) for a, m in zip(args, moving, strict=True)]

    def _by_order(
        self, outs: Sequence[Any], series: Sequence[Series], push: Callable[..., Any]
    ) -> tuple[Any, ...]:
        """Results whose k-th derivative is the (k-1)-th of push(x, x', y), itself along the curve.

        push: tangents of the results, or None, from operands, their tangents and the results.
        """
        found = [[o] for o in outs]
        for k in range(1, self.order + 1):
            level = Jet(None, k - 1)
            primals = [JetTracer(s[:k], level) if len(s) > 1 else s[0] for s in series]
            tangents = [
                JetTracer(_filled(s[1 : k + 1], s[0]), level) if len(s) > 1 else None
                for s in series
            ]
            known = tuple([JetTracer(tuple(f), level) if _varies(f[0]) else f[0] for f in found])
            parts = push(primals, tangents, known) or (None,) * len(found)
            for f, part in zip(found, parts, strict=True):
                f.append(None if part is None else _last(part, level))
        return tuple([JetTracer(tuple(f), self) if _varies(f[0]) else f[0] for f in found])


def _varies(x: Any) -> bool:
    return x.dtype in INEXACT


def _filled(series: Series, like: Any) -> Series:
    """The series of a derivative; its value must exist."""
    first = zero_like(like) if series[0] is None else series[0]
    return (first, *series[1:])


def _last(x: Any, level: Jet) -> Any:
    """The highest derivative that x carries at level; None where x does not vary there."""
    if x.__class__ is JetTracer and x.level is level:
        return x.series[-1]
    return x if level.order == 0 else None


def _multilinear(prim: Primitive, moving: Sequence[int]) -> bool:
    if prim in _BILINEAR:
        return True
    return len(moving) <= 2 and all(prim.rules[k].__class__ is Linear for k in moving)


def _leibniz(
    prim: Primitive,
    series: Sequence[Series],
    params: tuple[Any, ...],
    order: int,
    moving: Sequence[int],
    ans: Any,
) -> Series:
    """Derivatives of what is linear in its operands: sums of products of theirs."""
    if prim in (_ADD, _SUBTRACT):
        return (ans, *[_sum_of(prim, series, k, ans) for k in range(1, order + 1)])
    out = [ans]
    for k in range(1, order + 1):
        total = None
        for i in range(k + 1) if len(moving) == 2 else (k,):
            orders = dict(zip(moving, (i, k - i), strict=False))
            operands = [s[orders.get(j, 0)] for j, s in enumerate(series)]
            if any(x is None for x in operands):
                continue
            term = prim.fn(*operands, *params)
            total = _plus(total, term if len(moving) == 1 else _times(comb(k, i), term))
        out.append(total)
    return tuple(out)


def _sum_of(prim: Primitive, series: Sequence[Series], k: int, ans: Any) -> Any:
    x, y = [s[k] if len(s) > 1 else None for s in series]
    if x is not None and y is not None:
        return prim.fn(x, y)
    part = x if y is None else y if prim is _ADD else -y
    return None if part is None else ops.broadcast_to(part, ans.shape)


def _times(c: int, x: Any) -> Any:
    return x if c == 1 else c * x


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def _at(s: Series, k: int) -> Any:
    return s[k] if k < len(s) else None


def _divide(series: Sequence[Series], order: int, ans: Any) -> Series:
    """z = x / y from x = z y: each derivative of z follows from those below it."""
    x, y = series
    z = [ans]
    for k in range(1, order + 1):
        rest = _at(x, k)
        for i in range(k):
            if z[i] is not None and _at(y, k - i) is not None:
                rest = _plus(rest, -_times(comb(k, i), z[i] * y[k - i]))
        z.append(None if rest is None else ops.broadcast_to(rest / y[0], ans.shape))
    return tuple(z)


def _circular(sine: Primitive, cosine: Primitive, sign: int, first: bool) -> Recurrence:
    """sin or cos, or sinh or cosh, whose derivatives are products with the other's."""

    def series_of(series: Sequence[Series], order: int, ans: Any) -> Series:
        x = series[0]
        s = [ans if first else sine.fn(x[0])]
        c = [cosine.fn(x[0]) if first else ans]
        for k in range(1, order + 1):
            up, down = None, None
            for i in range(k):
                d = _at(x, k - i)
                if d is not None:
                    if c[i] is not None:
                        up = _plus(up, _times(comb(k - 1, i), c[i] * d))
                    if s[i] is not None:
                        down = _plus(down, _times(comb(k - 1, i), s[i] * d))
            s.append(up)
            c.append(down if sign > 0 or down is None else -down)
        return tuple(s if first else c)

    return series_of


_SIN, _COS, _SINH, _COSH = (_primitive(f) for f in (ops.sin, ops.cos, ops.sinh, ops.cosh))
_RECURRENCES: dict[Primitive, Recurrence] = {
    _primitive(ops.divide): _divide,
    _SIN: _circular(_SIN, _COS, -1, True), _COS: _circular(_SIN, _COS, -1, False),
    _SINH: _circular(_SINH, _COSH, 1, True), _COSH: _circular(_SINH, _COSH, 1, False),
}  # fmt: skip


def jet(fun: Callable[..., Any], primals: Any, series: Any) -> tuple[Any, Any]:
    """fun along a curve: its value, and the derivatives of t -> fun(x(t)) at t = 0.

    Args: primals: a tuple of pytrees, x(0). series: for each primal a tree like it whose leaves are
    lists (x'(0), x''(0), ...), all of one length: derivatives, not divided by factorials.
    Returns: (out, derivatives), the latter a tree like out with a list for each leaf.
    Raises: TreeError, ShapeError, TransformError: when series do not fit their primals.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> one, zero = xp.asarray(1.0), xp.asarray(0.0)
        >>> y, (d1, d2) = ft.jet(lambda x: x**3, (xp.asarray(2.0),), ([one, zero],))
        >>> float(y), float(d1), float(d2)
        (8.0, 12.0, 12.0)
    """
    expect_functions("jet", fun=fun)
    primals, series = as_tuple("jet", "primals", primals), as_tuple("jet", "series", series)
    values, spec = flat_arrays(primals)
    given = _coefficients(series, spec)
    for c in given:
        if not isinstance(c, list | tuple):
            raise TransformError(
                f"jet: the series of a leaf must be a list, got {type(c).__name__}",
                fix="a list of derivatives: [x1, x2, ...]",
            )
    orders = sorted({len(c) for c in given})
    if len(orders) != 1 or orders[0] == 0:
        raise TransformError(f"jet: series must have one length >= 1, got {orders}")
    level = Jet(fun, orders[0])
    traced = [_traced(v, c, level) for v, c in zip(values, given, strict=True)]
    try:
        out = fun(*spec.unflatten(traced))
    finally:
        level.open = False
    outs, structure = flat_results("jet", out)
    mine = [o.__class__ is JetTracer and o.level is level for o in outs]
    value = structure.unflatten([o.value if m else o for o, m in zip(outs, mine, strict=True)])
    derivatives = structure.unflatten(
        [
            [zero_like(o.value if m else o) if c is None else c for c in _tail(o, m, level.order)]
            for o, m in zip(outs, mine, strict=True)
        ]
    )
    return value, derivatives


def _tail(x: Any, mine: bool, order: int) -> Sequence[Any]:
    return x.series[1:] if mine else [None] * order


def _coefficients(series: Any, spec: Any) -> list[Any]:
    """The list that belongs to each leaf."""
    try:
        return list(spec.flatten_up_to(series))
    except ValueError as error:
        raise TreeError(
            f"jet: series must be a tree like primals with a list for each leaf: {error}"
        ) from None


def _traced(x: Any, coefficients: Any, level: Jet) -> Any:
    if x.dtype not in INEXACT:
        return x
    parts = [asarray(c, dtype=x.dtype) for c in coefficients]
    for c in parts:
        if c.shape != x.shape:
            raise ShapeError(f"jet: series must have their primal's shape {x.shape}, got {c.shape}")
    return JetTracer((x, *parts), level)
