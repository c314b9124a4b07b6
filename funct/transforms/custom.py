"""custom_jvp and custom_vjp: a function that brings its own derivative rules.

One function may bring both; the mode it does not bring is derived from the one it does. Under vmap
the rules are batched, under jit they are kept in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funct import tree as pytree
from funct.array import asarray
from funct.core import Region, bind_region
from funct.errors import TransformError

__all__ = ["custom_jvp", "custom_vjp"]

Fun = Callable[..., Any]


class _Custom:
    """A function with rules; `defjvp` and `defvjp` add them."""

    def __init__(self, fun: Fun, nondiff_argnums: Sequence[int] = ()) -> None:
        self.fun = fun
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.__name__ = getattr(fun, "__name__", "fun")
        self.__doc__ = getattr(fun, "__doc__", None)
        self.__wrapped__ = fun
        self._jvp: Fun | None = None
        self._fwd: Fun | None = None
        self._bwd: Fun | None = None

    def defjvp(self, jvp: Fun) -> Fun:
        """Set the forward rule: `jvp(*nondiff, primals, tangents) -> (out, tangent_out)`."""
        self._jvp = jvp
        return jvp

    def defvjp(self, fwd: Fun, bwd: Fun) -> None:
        """Set the reverse rule: `fwd(*args) -> (out, residuals)`,
        `bwd(*nondiff, residuals, cotangent) -> tuple of cotangents` (None: zero).
        """
        self._fwd, self._bwd = fwd, bwd

    def __call__(self, *args: Any) -> Any:
        if self._jvp is None and self._fwd is None:
            raise TransformError(
                f"{type(self).__name__}: {self.__name__} has no derivative rule yet",
                fix="call defjvp or defvjp first",
            )
        fixed = {i % len(args) for i in self.nondiff_argnums} if args else set()
        free = [a for i, a in enumerate(args) if i not in fixed]
        held = [args[i] for i in sorted(fixed)]
        leaves, spec = pytree.flatten(tuple(free))
        leaves = [asarray(x) for x in leaves]
        shape: list[Any] = []  # structure of the result, known once the function has run

        def full(values: Sequence[Any]) -> list[Any]:
            rest = iter(spec.unflatten(values))
            return [args[i] if i in fixed else next(rest) for i in range(len(args))]

        def flat_out(out: Any) -> tuple[Any, ...]:
            outs, structure = pytree.flatten(out)
            shape[:] = [structure]
            return tuple([asarray(o) for o in outs])

        def run(*xs: Any) -> tuple[Any, ...]:
            return flat_out(self.fun(*full(xs)))

        region = Region(
            self.__name__, run, self._push(held, spec, flat_out),
            *self._reverse(held, spec, full, flat_out, shape),
        )  # fmt: skip
        outs = bind_region(region, leaves)
        return shape[0].unflatten(outs)

    def _push(self, held: list[Any], spec: Any, flat_out: Any) -> Any:
        rule = self._jvp
        if rule is None:
            return None

        def push(primals: Any, tangents: Any) -> tuple[Any, Any]:
            result = rule(*held, tuple(spec.unflatten(primals)), tuple(spec.unflatten(tangents)))
            if not isinstance(result, tuple) or len(result) != 2:
                raise TransformError(
                    f"custom_jvp: the rule of {self.__name__} must return (out, tangent)"
                )
            tangent = flat_out(result[1])
            return flat_out(result[0]), tangent

        return push

    def _reverse(
        self, held: list[Any], spec: Any, full: Any, flat_out: Any, shape: list[Any]
    ) -> Any:
        fwd, bwd = self._fwd, self._bwd
        if fwd is None or bwd is None:
            return None, None
        kept: list[Any] = []

        def forward(*xs: Any) -> tuple[Any, Any]:
            result = fwd(*full(xs))
            if not isinstance(result, tuple) or len(result) != 2:
                raise TransformError(
                    f"custom_vjp: fwd of {self.__name__} must return (out, residuals)"
                )
            out, residuals = result
            flat, structure = pytree.flatten(residuals)
            kept[:] = [structure]
            return flat_out(out), tuple([asarray(r) for r in flat])

        def backward(residuals: Any, cts: Any) -> tuple[Any, ...]:
            given = bwd(*held, kept[0].unflatten(residuals), shape[0].unflatten(cts))
            count = len(spec.children())
            if not isinstance(given, tuple) or len(given) != count:
                raise TransformError(
                    f"custom_vjp: bwd of {self.__name__} must return a tuple of {count} cotangents"
                )
            out: list[Any] = []
            for g, child in zip(given, spec.children(), strict=True):
                out += [None] * child.num_leaves if g is None else pytree.leaves(g)
            return tuple([None if g is None else asarray(g) for g in out])

        return forward, backward


class custom_jvp(_Custom):
    """fun with a derivative rule of its own, forward mode first.

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
