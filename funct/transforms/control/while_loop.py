"""while_loop: a state is carried on as long as a test of it holds.

On concrete values it is Python's `while`; what is left after many steps is written down like under
jit, if that can be. What jit writes down is one node. Under vmap with a test that differs between
lanes the loop runs while any lane does, and a lane that has ended keeps its state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import ops, pytree
from funct.array.trees import flat_arrays
from funct.errors import UnknownValueError
from funct.transforms.control import bodies
from funct.transforms.control.bodies import Flat
from funct.transforms.control.carry import (
    boolean_scalar,
    fitting,
    initial,
    only_types,
    settled,
    unknown,
)
from funct.transforms.control.closures import always, captured, decides, reaches_out, safely
from funct.transforms.control.staged import MANY, plainly_transformed
from funct.transforms.control.sweep import Sweep
from funct.transforms.control.sweeps import Sweeps
from funct.transforms.given import expect_functions
from funct.transforms.vmap import differs

__all__ = ["while_loop"]


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any) -> Any:
    """`while cond_fun(state): state = body_fun(state)`, from init; the last state.

    Args: cond_fun: from the state to one boolean. body_fun: from the state to the next, of the same
    structure, shapes and dtypes. init: a pytree; a Python number in it takes the dtype that
    body_fun gives it.
    Derivatives: every mode and order. Under jit, reverse mode runs the loop again in its backward
    pass, and holds of n steps about √n states and what the pulls need for √n steps.
    Raises: TreeError, ShapeError, DTypeError: when the state's type changes, or cond_fun does not
    give a boolean scalar.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> float(ft.while_loop(lambda x: x < 100.0, lambda x: x * x, xp.asarray(3.0)))
        6561.0

    Source: `jax.lax.while_loop`.
    """
    expect_functions("while_loop", cond_fun=cond_fun, body_fun=body_fun)
    numbers, spec = flat_arrays(init, initial)
    state = settled("while_loop", numbers, lambda *xs: pytree.leaves(body_fun(spec.unflatten(xs))))
    tree, avals = spec.unflatten(state), bodies.avals_of(state)

    if only_types() and any(captured(x) for x in state):
        return spec.unflatten(unknown(avals))

    def test(leaves: Sequence[Any]) -> Any:
        out = cond_fun(spec.unflatten(leaves))
        return boolean_scalar("while_loop", "the result of cond_fun", out)

    def step(leaves: Sequence[Any]) -> list[Any]:
        return fitting("while_loop", "the state", tree, avals, body_fun(spec.unflatten(leaves)))

    asks = False  # whether the steps ask for values

    def staged() -> Flat | None:
        nonlocal asks
        try:
            return None if asks else _staged(cond_fun, body_fun, test, step, state)
        except UnknownValueError:
            if not decides():
                raise
            asks = True
            return None

    whole: Flat | None = None
    if any(captured(x) for x in state) or reaches_out(
        "while_loop", lambda *xs: (test(xs), step(xs)), avals
    ):
        whole = staged()
    steps = 0
    while whole is None:
        go = test(state)
        if not steps and captured(go) and (whole := staged()) is not None:
            break
        if not _any(go):
            return spec.unflatten(state)
        after = step(state)
        if not steps and any(captured(x) for x in after) and (whole := staged()) is not None:
            break
        if differs(go):
            after = [ops.where(go, a, b) for a, b in zip(after, state, strict=True)]
        state, steps = after, steps + 1
        if steps == MANY and plainly_transformed((go, *state)):
            try:
                return spec.unflatten(_staged(cond_fun, body_fun, test, step, state))
            except Exception:  # it decides on values, or is wrong: step by step it says so
                pass
    return spec.unflatten(whole)


def _any(x: Any) -> bool:
    """Whether x holds in any lane."""
    while x.level.transforms:
        if not differs(x):
            return bool(x)
        x = x.value
    return bool(np.any(x.concrete()))


def _staged(cond_fun: Any, body_fun: Any, test: Any, step: Any, state: Sequence[Any]) -> Flat:
    avals, n = bodies.avals_of(state), len(state)
    asks, seen = bodies.trace("while_loop", lambda *xs: [test(xs)], avals, cond_fun, always)
    steps, used = bodies.trace("while_loop", lambda *xs: step(xs), avals, body_fun, safely)
    types = [*bodies.avals_of(seen), *bodies.avals_of(used), *avals]
    a, b = len(seen), len(seen) + len(used)
    loop = Sweeps(
        bodies.regraph(lambda *xs: asks(*xs[b:], *xs[:a]), types),
        [Sweep(bodies.regraph(lambda *xs: steps(*xs[b:], *xs[a:b]), types), n, False)],
        b,
    )
    return loop(*seen, *used, *state)
