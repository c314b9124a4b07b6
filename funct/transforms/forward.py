"""Forward mode: each tracer carries its tangent; a value without one is no tracer at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funct import ops, pytree
from funct.array import Tensor, asarray
from funct.array.trees import flat_arrays
from funct.core import (
    INEXACT,
    Absent,
    Joint,
    Level,
    Primitive,
    Region,
    ShapeDtype,
    expect_below,
)
from funct.core.level import unruled
from funct.errors import DTypeError, ShapeError, TransformError, TreeError
from funct.graph import Graph, inline_calls
from funct.graph.capture import capture
from funct.graph.ir import acts
from funct.graph.json_form import decode_graph, encode_graph
from funct.transforms.given import expect_functions
from funct.transforms.hidden import flat_results, visible
from funct.transforms.reverse import transpose, zero_like
from funct.transforms.tape.ways import pushing

__all__ = [
    "Forward", "ForwardTracer", "Pushforward", "as_tuple", "jvp", "linearize",
    "push_forward", "push_region", "split_aux",
]  # fmt: skip


class ForwardTracer(Tensor):
    """A value with its tangent."""

    __slots__ = ("level", "tangent", "value")

    level: Forward

    def __init__(self, value: Any, tangent: Any, level: Forward) -> None:
        self.value = value
        self.tangent = tangent
        self.level = level

    def __repr__(self) -> str:
        return f"ForwardTracer({self.value!r}, tangent={self.tangent!r})"


class Forward(Level):
    """The level that pushes tangents along."""

    __slots__ = ()
    computes = True

    def run(self, prim: Primitive, args: Sequence[Any], params: tuple[Any, ...]) -> Any:
        """Compute one level down, and sum the pushes of the operands that vary."""
        mine = [a.__class__ is ForwardTracer and a.level is self for a in args]
        vals = [a.value if m else a for a, m in zip(args, mine, strict=True)]
        ans = prim.fn(*vals, *params)
        tangents = [a.tangent if m else None for a, m in zip(args, mine, strict=True)]
        total = push_forward(prim, vals, tangents, params, ans)
        if total is None:
            return ans
        if prim.results == 1:
            return ForwardTracer(ans, total, self)
        return tuple(
            [o if t is None else ForwardTracer(o, t, self) for o, t in zip(ans, total, strict=True)]
        )

    def region(self, region: Region, args: Sequence[Any]) -> tuple[Any, ...]:
        """A call with its own rules."""
        mine = [a.__class__ is ForwardTracer and a.level is self for a in args]
        vals = tuple([a.value if m else a for a, m in zip(args, mine, strict=True)])
        if region.ruled and not any(mine):  # it got here by what it closes over
            unruled(self.label, region)
        found = push_region(
            region, vals, [a.tangent if m else None for a, m in zip(args, mine, strict=True)]
        )
        if found is None:
            return region.run(*args)
        expect_below(self, region, (*found[0], *found[1]))
        return tuple(
            [
                ForwardTracer(o, asarray(t), self) if o.dtype in INEXACT else o
                for o, t in zip(*found, strict=True)
            ]
        )


ForwardTracer.ways = pushing(Forward, ForwardTracer)


def push_forward(
    prim: Primitive,
    vals: Sequence[Any],
    tangents: Sequence[Any],
    params: tuple[Any, ...],
    ans: Any,
) -> Any:
    """Tangent of the result `ans` of a primitive, None where it does not vary.

    tangents: one per operand, None where it does not vary. For several results: a tuple or None.
    """
    if prim.results == 1 and ans.dtype not in INEXACT:
        return None
    total: Any = None
    for i, t in enumerate(tangents):
        rule = prim.rules[i]
        if t is None or rule is None:
            continue
        if isinstance(rule, Absent):
            rule.raise_for(prim)
        if isinstance(rule, Joint):
            return _joint(rule, prim, vals, tangents, params, ans)
        t = rule.push(prim, i, t, vals, params, ans)
        if prim.results == 1:
            if prim.spread is not None and t.shape != ans.shape:
                t = ops.broadcast_to(t, ans.shape)
            if t.dtype != ans.dtype:
                t = ops.astype(t, ans.dtype)
            total = t if total is None else total + t
        else:
            total = t if total is None else tuple(map(_plus, total, t))
    return total


def _joint(
    rule: Joint, prim: Primitive, vals: Any, given: Any, params: tuple[Any, ...], ans: Any
) -> Any:
    """The tangent by one rule for all operands; a missing push is the transpose of the pull."""
    tangents = [zero_like(v) if t is None else t for t, v in zip(given, vals, strict=True)]
    outs = ans if prim.results != 1 else (ans,)
    if rule.joint_push is not None:
        pushed = rule.push_all(prim, tangents, vals, params, ans)
    else:
        at = [k for k, v in enumerate(vals) if v.dtype in INEXACT]

        def pull(*cts: Any) -> list[Any]:
            given = rule.pull_all(prim, cts, vals, params, ans, at)
            return [zero_like(vals[k]) if given[k] is None else given[k] for k in at]

        pushed = tuple(transpose(pull, outs, [tangents[k] for k in at]))
    varying = [o.dtype in INEXACT for o in outs]
    found = tuple([t if v else None for t, v in zip(pushed, varying, strict=True)])
    return found if prim.results != 1 else found[0]


def push_region(
    region: Region, vals: tuple[Any, ...], given: Sequence[Any]
) -> tuple[Any, Any] | None:
    """Results and tangents of a call with its own rules; None where it brings none.

    A missing push is the transpose of the pull.
    """
    if region.push is None and (region.forward is None or region.backward is None):
        return None
    tangents = tuple([zero_like(v) if t is None else t for t, v in zip(given, vals, strict=True)])
    if region.push is not None:
        return region.push(vals, tangents)
    assert region.forward is not None
    outs, residuals = region.forward(*vals)
    back = region.backward
    assert back is not None

    def pull(*cts: Any) -> tuple[Any, ...]:
        found = back(residuals, cts)
        return tuple([zero_like(v) if g is None else g for g, v in zip(found, vals, strict=True)])

    return outs, tuple(transpose(pull, outs, tangents))


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b


def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """Value of fun and its derivative along tangents.

    Args: primals, tangents: tuples of pytrees with equal structure, shapes and dtypes; a tangent of
    an integer leaf is ignored. has_aux: fun returns (output, auxiliary data).
    Returns: (out, tangent_out), or (out, tangent_out, aux).
    Raises: TreeError, ShapeError, DTypeError: when a tangent does not fit its primal.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> y, t = ft.jvp(lambda x: x * x, (xp.asarray(3.0),), (xp.asarray(1.0),))
        >>> float(y), float(t)
        (9.0, 6.0)
    """
    expect_functions("jvp", fun=fun)
    values, spec = flat_arrays(as_tuple("jvp", "primals", primals))
    directions, along = pytree.flatten(as_tuple("jvp", "tangents", tangents))
    if spec != along:
        pytree.same_structure("jvp: tangents", primals, tangents)
    level = Forward("jvp", fun)
    traced = [_traced(v, t, level) for v, t in zip(values, directions, strict=True)]
    try:
        out = fun(*pytree.unflatten(spec, traced))
    finally:
        level.open = False
    aux: tuple[Any, ...] = ()
    if has_aux:
        out, side = split_aux("jvp", out)
        found, inside = visible("jvp", side, level)
        aux = (inside.unflatten([_low(x, level) for x in found]),)
    outs, shape = flat_results("jvp", out)
    value = shape.unflatten([_low(o, level) for o in outs])
    tangent = shape.unflatten([_tangent(o, level) for o in outs])
    return value, tangent, *aux


def as_tuple(name: str, what: str, given: Any) -> tuple[Any, ...]:
    """One tree per argument, as a tuple; an array in its place is the likely slip."""
    if not isinstance(given, tuple | list):
        got = type(given).__name__
        raise TreeError(
            f"{name}: {what} must be a tuple with one tree per argument, got {got}",
            fix=f"{name}(fun, (x,), ({'[v1, v2]' if name == 'jet' else 'v'},))",
        )
    return tuple(given)


def split_aux(name: str, out: Any) -> tuple[Any, Any]:
    """(output, aux) of a function called with has_aux=True."""
    if not isinstance(out, tuple) or len(out) != 2:
        raise TransformError(f"{name}: with has_aux=True the function must return (output, aux)")
    return out


def _traced(x: Any, t: Any, level: Forward) -> Any:
    return ForwardTracer(x, tangent_of("jvp", x, t), level) if x.dtype in INEXACT else x


def tangent_of(name: str, x: Any, t: Any) -> Any:
    """t as a tangent of x: of its shape and dtype, which Python's numbers take.

    Raises: ShapeError, DTypeError: when it does not fit.
    """
    number = isinstance(t, bool | int | float) or (t.__class__ is complex and x.dtype.kind == "c")
    t = asarray(t)
    if t.shape != x.shape:
        raise ShapeError(f"{name}: a tangent must have its primal's shape {x.shape}, got {t.shape}")
    if t.dtype == x.dtype:
        return t
    if not number:
        raise DTypeError(
            f"{name}: a tangent must have its primal's dtype {x.dtype}, got {t.dtype}",
            fix=f"cast it to {x.dtype}",
        )
    return ops.astype(t, x.dtype)


def _low(x: Any, level: Forward) -> Any:
    return x.value if x.__class__ is ForwardTracer and x.level is level else x


def _tangent(x: Any, level: Forward) -> Any:
    return x.tangent if x.__class__ is ForwardTracer and x.level is level else zero_like(x)


class Pushforward:
    """The derivative of a function at a point: a linear function of tangents. It pickles."""

    __slots__ = ("_graph", "_ins", "_outer", "_spec", "_structure")

    def __init__(
        self, graph: Graph, outer: Sequence[Any], ins: Sequence[Any], spec: Any, structure: Any
    ) -> None:
        self._graph = graph
        self._outer = outer
        self._ins = ins
        self._spec = spec
        self._structure = structure

    def __call__(self, *tangents: Any) -> Any:
        """The output's tangent, for one tangent per primal.

        Raises: TreeError, ShapeError, DTypeError: when a tangent does not fit its primal.
        """
        flat, spec = pytree.flatten(tangents)
        if spec != self._spec:
            primals = self._spec.unflatten(self._ins)
            pytree.same_structure("linearize: tangents", primals, tangents)
        given = [
            tangent_of("linearize", v, t) if v.dtype in INEXACT else t
            for v, t in zip(self._ins, flat, strict=True)
        ]
        return self._structure.unflatten(self._graph(*given, *self._outer))

    def __reduce__(self) -> Any:
        """The derivative is a graph, and is written as one."""
        if self._outer:
            raise TransformError(
                "linearize: the derivative holds traced values, which cannot be pickled",
                fix="pickle it after the transform around it has returned",
            )
        form = encode_graph(inline_calls(self._graph))
        return _unpickled, (form, tuple(self._ins), self._spec, self._structure)

    def __repr__(self) -> str:
        return f"<Pushforward: {len(self._graph.nodes)} nodes>"


def _unpickled(form: Any, ins: Any, spec: Any, structure: Any) -> Pushforward:
    """What `Pushforward.__reduce__` took apart."""
    return Pushforward(decode_graph(*form), (), ins, spec, structure)


def linearize(fun: Callable[..., Any], *primals: Any) -> tuple[Any, Pushforward]:
    """Value of fun, and its derivative at primals as a linear function of tangents.

    The derivative is captured once; what does not depend on the tangents is computed now. It may be
    pickled.
    Raises: TreeError, ShapeError, DTypeError: when a tangent does not fit its primal.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> y, push = ft.linearize(lambda x: x * x, xp.asarray(3.0))
        >>> float(push(xp.asarray(2.0)))
        12.0
    """
    expect_functions("linearize", fun=fun)
    found: list[Any] = []
    values, spec = flat_arrays(primals)

    def push(*ts: Any) -> list[Any]:
        out, tangent = jvp(fun, primals, spec.unflatten(ts))
        flat, structure = pytree.flatten(tangent)
        found[:] = [out, structure]
        return flat

    graph, outer = capture(push, values, label="linearize", user_fun=fun)
    out, structure = found
    if any(map(acts, graph.nodes)) or not all(x.level.open for x in pytree.leaves(out)):
        still = spec.unflatten([zero_like(v) for v in values])
        out = jvp(fun, primals, still)[0]  # a loop has its values and its tangents in one
    ins = [ShapeDtype(v.shape, v.dtype) for v in values]
    return out, Pushforward(graph, outer, ins, spec, structure)
