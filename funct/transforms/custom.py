"""custom_jvp, custom_vjp and custom_vmap: a function that brings its own rules.

One function may bring all three; the mode of derivatives that it does not bring is derived from the
one it does. Under vmap the derivative rules are batched, under jit all are kept in the graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from funct import pytree
from funct.array import Tensor, asarray
from funct.array.trees import flat_arrays
from funct.core import INEXACT, Region, bind_region
from funct.errors import TransformError
from funct.transforms.custom_batch import (
    BatchRule,
    batched_call,
    needs_rule,
    spread_out,
    with_rule,
)  # fmt: skip
from funct.transforms.forward import tangent_of
from funct.transforms.given import argument_numbers, arguments, expect_functions
from funct.transforms.recipes import by_name
from funct.transforms.reverse import zero_like

__all__ = ["custom_jvp", "custom_vjp", "custom_vmap"]

Fun = Callable[..., Any]


class _Custom:
    """A function with rules; `defjvp`, `defvjp` and `def_vmap` add them.

    Rules of a function that has some already, given as `fun`, stay valid.
    """

    def __init__(self, fun: Fun, nondiff_argnums: Sequence[int] = ()) -> None:
        kind = type(self).__name__
        expect_functions(kind, fun=fun)
        self.fun = fun
        _, self.nondiff_argnums = argument_numbers(kind, "nondiff_argnums", nondiff_argnums)
        if isinstance(fun, _Custom) and not nondiff_argnums:
            self.nondiff_argnums = fun.nondiff_argnums
        self.__name__ = getattr(fun, "__name__", "fun")
        self.__module__ = getattr(fun, "__module__", None) or __name__
        self.__qualname__ = getattr(fun, "__qualname__", self.__name__)
        self.__doc__ = getattr(fun, "__doc__", None)
        self.__wrapped__ = fun
        self._jvp: Fun | None = None
        self._fwd: Fun | None = None
        self._bwd: Fun | None = None
        self._vmap: Fun | None = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return by_name(self) or super().__reduce_ex__(protocol)

    def defjvp(self, jvp: Fun) -> Fun:
        """Set the forward rule: `jvp(*nondiff, primals, tangents) -> (out, tangent_out)`."""
        expect_functions("defjvp", jvp=jvp)
        self._jvp = jvp
        return jvp

    def defvjp(self, fwd: Fun, bwd: Fun) -> None:
        """Set the reverse rule: `fwd(*args) -> (out, residuals)`,
        `bwd(*nondiff, residuals, cotangent) -> tuple of cotangents` (None: zeros, of a leaf or of
        a whole subtree).
        """
        expect_functions("defvjp", fwd=fwd, bwd=bwd)
        self._fwd, self._bwd = fwd, bwd

    def def_vmap(self, rule: Fun) -> Fun:
        """Set the batching rule: `rule(axis_size, in_batched, *args) -> (out, out_batched)`.

        in_batched: a list with a tree of bools for each argument; the batch is on axis 0 of the
        leaves where it says so. out_batched: the same for out, or a prefix of it.
        """
        expect_functions("def_vmap", rule=rule)
        self._vmap = rule
        return rule

    def _found(self, name: str) -> Any:
        """A rule of this function, or of the one that it was made from."""
        at: Any = self
        while isinstance(at, _Custom):
            if getattr(at, name) is not None:
                return getattr(at, name)
            at = at.fun
        return None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:  # by name, as Python lets them be given; the rules get them by position
            bound = inspect.signature(self.fun).bind(*args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                names = ", ".join(bound.kwargs)
                raise TransformError(
                    f"{type(self).__name__}: {self.__name__} takes {names} by name alone, and "
                    "rules get arguments by position"
                )
            args = bound.args
        plain = self.fun
        while isinstance(plain, _Custom):
            plain = plain.fun
        rules = [self._found(name) for name in ("_jvp", "_fwd", "_vmap")]
        if all(r is None for r in rules) and not isinstance(self, custom_vmap):
            raise TransformError(
                f"{type(self).__name__}: {self.__name__} has no derivative rule yet",
                fix="call defjvp or defvjp first",
            )
        arguments(type(self).__name__, args, self.nondiff_argnums, "nondiff_argnums")
        fixed = {i % len(args) for i in self.nondiff_argnums}
        free = [a for i, a in enumerate(args) if i not in fixed]
        held = [args[i] for i in sorted(fixed)]
        leaves, spec = flat_arrays(tuple(free))
        shape: list[Any] = []  # structure of the result, known once the function has run

        def full(values: Sequence[Any]) -> list[Any]:
            rest = iter(spec.unflatten(values))
            return [args[i] if i in fixed else next(rest) for i in range(len(args))]

        def flat_out(out: Any) -> tuple[Any, ...]:
            outs, structure = flat_arrays(out)
            shape[:] = [structure]
            return tuple(outs)

        def run(*xs: Any) -> tuple[Any, ...]:
            return flat_out(plain(*full(xs)))

        batch = self._batch(fixed, spec, full, flat_out)
        if rules[0] is None and rules[1] is None:
            if not any(needs_rule(x) for x in leaves):
                return plain(*args)
            region = batched_call(self.__name__, run, batch)
        else:
            push = self._push(held, spec, flat_out)
            forward, backward = self._reverse(held, spec, full, flat_out, shape)
            region = Region(self.__name__, run, push, forward, backward, own=True)
            if rules[2] is not None:
                region = with_rule(region, batch)
        outs = bind_region(region, leaves)
        return shape[0].unflatten(outs)

    def _push(self, held: list[Any], spec: Any, flat_out: Any) -> Any:
        rule = self._found("_jvp")
        if rule is None:
            return None

        def push(primals: Any, tangents: Any) -> tuple[Any, Any]:
            result = rule(*held, tuple(spec.unflatten(primals)), tuple(spec.unflatten(tangents)))
            if not isinstance(result, tuple) or len(result) != 2:
                raise TransformError(
                    f"custom_jvp: the rule of {self.__name__} must return (out, tangent), "
                    f"{_got(result)}"
                )
            said = f"custom_jvp: the rule of {self.__name__}"
            pytree.same_structure(f"{said}: tangent_out", *result)
            outs, tangents = flat_out(result[0]), pytree.leaves(result[1])
            return outs, tuple(
                [
                    tangent_of(said, o, t) if o.dtype in INEXACT else zero_like(o)
                    for o, t in zip(outs, tangents, strict=True)
                ]
            )

        return push

    def _reverse(
        self, held: list[Any], spec: Any, full: Any, flat_out: Any, shape: list[Any]
    ) -> Any:
        fwd, bwd = self._found("_fwd"), self._found("_bwd")
        if fwd is None or bwd is None:
            return None, None
        kept: list[Any] = []

        def forward(*xs: Any) -> tuple[Any, Any]:
            result = fwd(*full(xs))
            if not isinstance(result, tuple) or len(result) != 2:
                raise TransformError(
                    f"custom_vjp: fwd of {self.__name__} must return (out, residuals), "
                    f"{_got(result)}"
                )
            out, residuals = result
            flat, structure = flat_arrays(residuals)
            kept[:] = [structure]
            return flat_out(out), tuple(flat)

        def backward(residuals: Any, cts: Any) -> tuple[Any, ...]:
            given = bwd(*held, kept[0].unflatten(residuals), shape[0].unflatten(cts))
            count = len(spec.children())
            if not isinstance(given, tuple) or len(given) != count:
                raise TransformError(
                    f"custom_vjp: bwd of {self.__name__} must return a tuple of {count} "
                    f"cotangents, {_got(given)}",
                    fix="return (cotangent,), with a comma" if count == 1 else None,
                )
            out: list[Any] = []
            for g, child in zip(given, spec.children(), strict=True):
                leaves, structure = pytree.flatten(g)
                out += leaves if structure == child else _cotangents(self.__name__, g, child)
            return tuple([None if g is None else asarray(g) for g in out])

        return forward, backward

    def _batch(self, fixed: set[int], spec: Any, full: Any, flat_out: Any) -> BatchRule:
        rule = self._found("_vmap")

        def batch(size: Any, flags: Sequence[bool], *xs: Any) -> tuple[Any, ...]:
            if rule is None:
                raise TransformError(
                    f"custom_vmap: {self.__name__} has no batching rule yet",
                    fix="call def_vmap first",
                )
            given = iter(spec.unflatten(flags))
            count = len(fixed) + len(spec.children())
            in_batched = [False if i in fixed else next(given) for i in range(count)]
            result = rule(size, in_batched, *full(xs))
            if not isinstance(result, tuple) or len(result) != 2:
                raise TransformError(
                    f"custom_vmap: the rule of {self.__name__} must return (out, out_batched), "
                    f"{_got(result)}"
                )
            outs = flat_out(result[0])
            return spread_out(self.__name__, size, result, outs)

        return batch


def _got(result: Any) -> str:
    """What a rule returned in place of a tuple."""
    kind = type(result).__name__
    if isinstance(result, Tensor):
        return f"got an array {result.dtype} {tuple(result.shape)}"
    return f"got a {kind}" + (f" of length {len(result)}" if kind in ("tuple", "list") else "")


def _cotangents(name: str, given: Any, spec: Any) -> list[Any]:
    """One cotangent for each leaf of an argument; None stands for all leaves below it."""
    tree = spec.unflatten(range(spec.num_leaves))
    said = f"custom_vjp: what bwd of {name} returns"
    found = pytree.broadcast_prefix(said, given, tree, "its argument", none_is_leaf=True)
    places = pytree.flatten(tree, none_is_leaf=True)[0]
    out = [g for g, at in zip(found, places, strict=True) if at is not None]
    if sum(g is not None for g in out) != len(pytree.leaves(given)):
        pytree.same_structure(said, tree, given)
    return out


class custom_jvp(_Custom):
    """fun with a derivative rule of its own, forward mode first.

    Where a derivative is taken, in either mode, the value is the one that the rule gives.
    Args: nondiff_argnums: arguments that are no arrays; the rules get them first.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> @ft.custom_jvp
        ... def f(x):
        ...     return xp.sin(x)
        >>> _ = f.defjvp(lambda primals, tangents: (f(*primals), 2.0 * tangents[0]))
        >>> float(ft.grad(f)(xp.asarray(0.0)))
        2.0
    """


class custom_vjp(_Custom):
    """fun with a derivative rule of its own, reverse mode first.

    Args: nondiff_argnums: arguments that are no arrays; bwd gets them first.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> @ft.custom_vjp
        ... def f(x):
        ...     return xp.sin(x)
        >>> f.defvjp(lambda x: (xp.sin(x), x), lambda x, ct: (3.0 * ct,))
        >>> float(ft.grad(f)(xp.asarray(0.0)))
        3.0
    """


class custom_vmap(_Custom):
    """fun with a batching rule of its own.

    Under `vmap` the rule is called instead of fun, also where derivatives are taken inside of vmap:
    those of the batched function are then those of the rule. A rule may see operands of fun's
    derivative that are batched where fun's own were not.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> @ft.custom_vmap
        ... def dot(x, y):
        ...     return xp.sum(x * y)
        >>> @dot.def_vmap
        ... def rule(axis_size, in_batched, x, y):
        ...     return xp.matmul(x, y), True
        >>> ft.vmap(dot, (0, None))(xp.ones((3, 2)), xp.ones(2)).tolist()
        [2.0, 2.0, 2.0]

    Source: `jax.custom_batching.custom_vmap`.
    """

    def __init__(self, fun: Fun) -> None:
        super().__init__(fun)
