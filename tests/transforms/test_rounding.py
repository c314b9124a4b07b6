"""`mode="check"` and `check_pure` tell rounding from faults, in long loops and lost digits."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import errors
from funct import graph as g
from tests import laws


def logistic(x: Any) -> Any:
    """Chaos: what is off by an ulp is off by everything in the end."""
    return ft.fori_loop(0, 30, lambda k, y: 3.9 * y * (1.0 - y) * xp.exp(y * -0.01), x)


def cancelling(x: Any) -> Any:
    """Differences of functions of nearly the same."""
    zero = xp.zeros(x.shape[1:], dtype=x.dtype)
    return ft.scan(lambda c, v: (c + xp.sin(v) - xp.sin(v * 1.0000001), c), zero, x)


def recurrent(x: Any) -> Any:
    """A network over rows."""
    w = xp.asarray(np.random.default_rng(0).normal(size=(4, 4)) / 2.0, dtype=x.dtype)
    zero = xp.zeros(x.shape[1:], dtype=x.dtype)
    return ft.scan(lambda c, v: (xp.tanh(c @ w + v), c * v), zero, x)


def turning(x: Any) -> Any:
    """Steps that the loop itself counts, with a branch in each."""

    def step(s: Any) -> Any:
        k, y = s
        return k + 1, ft.cond(k > 20, lambda z: xp.sin(z) * 1.2 + 0.1, lambda z: xp.cos(z * 2.0), y)

    return ft.while_loop(lambda s: s[0] < 50, step, (0, x))[1]


FUNCTIONS: dict[str, Any] = {
    "logistic": logistic, "cancelling": cancelling, "recurrent": recurrent, "turning": turning,
    "slope": ft.grad(lambda y: xp.sum(logistic(y))),
}  # fmt: skip


def data(dtype: Any) -> Any:
    """60 rows between 0.1 and 0.9."""
    return xp.asarray(np.random.default_rng(1).uniform(0.1, 0.9, (60, 4)), dtype=dtype)


@pytest.mark.parametrize("dtype", [xp.float32, xp.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rounding_is_no_fault(name: str, dtype: Any) -> None:
    """A pure function that the compiler has right passes, however far errors of an ulp carry."""
    fun, x = FUNCTIONS[name], data(dtype)
    ft.check_pure(fun, x)
    f = ft.jit(fun, mode="check")
    laws.same(f(x), f(x))


@pytest.mark.parametrize(
    ("name", "by"), [("recurrent", 1e-11), ("recurrent", 1e-3), ("cancelling", 0.5)]
)
def test_a_fault_in_a_loop_is_found(name: str, by: float) -> None:
    """Where rounding does not carry so far: the loop is named."""

    class Wrong(g.Transformer):
        def node(self, node: g.Node, operands: list[Any]) -> tuple[Any, ...]:
            if isinstance(node.primitive, g.Control):
                kind = node.primitive.kind.mapped(lambda body: Wrong(body).transform())
                return tuple(kind(*operands))
            outs = super().node(node, operands)
            return (outs[0] * (1.0 + by),) if node.name in ("sin", "tanh") else outs

    with pytest.raises(errors.MismatchError, match=r"differs from eager execution at scan \("):
        ft.jit(FUNCTIONS[name], mode="check", backend=lambda graph: Wrong(graph).transform())(
            data(xp.float64)
        )
