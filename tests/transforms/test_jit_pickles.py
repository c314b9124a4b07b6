"""What a transformed function was made from decides how it pickles: by name, or by the calls that
made it. Copies are made in the same way.
"""

import copy
import functools
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from tests import laws

X = xp.asarray([0.5, 1.0, 2.0])


def plain(x: Any) -> Any:
    """Nothing around it."""
    return xp.sum(xp.sin(x) * x)


def doubled(x: Any) -> Any:
    """A linear function."""
    return 2.0 * x


@ft.checkpoint
def checkpointed(x: Any) -> Any:
    """Under a transform that gives a function of this name."""
    return plain(x)


@ft.grad
def sloped(x: Any) -> Any:
    """Under a transform that gives a function of another name."""
    return plain(x)


@ft.jit
@ft.grad
def compiled_slope(x: Any) -> Any:
    """A compiled function of such a one."""
    return plain(x)


@ft.grad
@ft.jit
def slope_of_compiled(x: Any) -> Any:
    """The transform of a compiled function."""
    return plain(x)


@ft.custom_jvp
def ruled(x: Any) -> Any:
    """A function with a rule."""
    return xp.sin(x)


@ruled.defjvp
def _rule(primals: Any, tangents: Any) -> Any:
    return ruled(*primals), 7.0 * tangents[0]


def with_ruled(x: Any) -> Any:
    """A function that finds one by its name."""
    return xp.sum(ruled(x))


STANDING = [checkpointed, sloped, compiled_slope, slope_of_compiled, ruled]
TRANSFORMS: list[Callable[..., Any]] = [
    ft.grad, ft.value_and_grad, ft.hessian, ft.jacfwd, ft.jacrev, ft.checkpoint,
]  # fmt: skip
MADE: dict[str, Any] = {
    "jit": ft.jit(plain),
    "a rule": ft.jit(ruled),
    "derivative of a rule": ft.jit(ft.grad(with_ruled)),
    "nested": ft.jit(ft.hessian(ft.jit(ft.checkpoint(plain)))),
    **{f"standing {k}": ft.jit(f) for k, f in enumerate(STANDING)},
    **{f"derivative of standing {k}": ft.jit(ft.jacrev(f)) for k, f in enumerate(STANDING)},
    "alone: once differentiable": ft.once_differentiable(plain),
    "alone: a batch": ft.vmap(ft.value_and_grad(plain), in_axes=(0,), out_axes=(0, 0)),
    "alone: transposed": ft.linear_transpose(doubled, X),
    "alone: of a standing one": ft.jacfwd(sloped),
    "alone: without integers": ft.grad(plain, allow_int=True),
    **{f"alone {k}": t(plain) for k, t in enumerate(TRANSFORMS)},
    **{f"transform {k}": ft.jit(t(plain)) for k, t in enumerate(TRANSFORMS)},
    **{f"transform of a batch {k}": ft.jit(ft.vmap(t(plain))) for k, t in enumerate(TRANSFORMS)},
}
WAYS: dict[str, Callable[[Any], Any]] = {
    **{f"protocol {n}": lambda f, n=n: pickle.loads(pickle.dumps(f, n)) for n in range(2, 6)},
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.in_turn
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MADE)
def test_what_is_made_again_does_the_same(name: str, way: str) -> None:
    """Whatever it was made from, before it is called and after."""
    f = MADE[name]
    x = xp.stack([X, 2.0 * X]) if "batch" in name else X
    before = WAYS[way](f)
    for again in (before, WAYS[way](f), WAYS[way](before)):
        found, expected = (ft.tree.map(np.asarray, g(x)) for g in (again, f))
        laws.same(ft.tree.leaves(found), ft.tree.leaves(expected))


@pytest.mark.parametrize("way", WAYS)
def test_what_stands_in_a_module_is_found_there(way: str) -> None:
    """One that is decorated with `jit` or with rules is itself."""
    assert WAYS[way](compiled_slope) is compiled_slope
    assert WAYS[way](ruled) is ruled
    assert WAYS[way](sloped) is sloped


@pytest.mark.parametrize("transform", [*TRANSFORMS, ft.vmap, ft.once_differentiable])
def test_what_has_no_name_is_refused_by_pickle(transform: Any) -> None:
    """A lambda inside is what pickle says it is; who wraps the result makes another function."""
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(transform(lambda x: plain(x)))  # noqa: PLW0108
    made = transform(plain)
    assert "plain" in made.__name__
    assert "plain" in repr(made)
    inspect.signature(made).bind(X)

    class Holder:
        method = made

    assert Holder().method.__self__.__class__ is Holder  # it binds, as functions do
    with pytest.raises((pickle.PicklingError, AttributeError), match="pickle"):
        pickle.dumps(functools.wraps(made)(lambda x: made(x)))  # noqa: PLW0108
