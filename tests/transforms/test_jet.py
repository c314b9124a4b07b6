"""jet equals nested jvp along the curve: for every primitive, and for programs of them."""

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.core import Absent, Primitive, Sample, catalogue
from funct.errors import ShapeError, TransformError, TreeError

ORDER = 3

Fun = Callable[..., Any]


def along(fun: Fun, primals: Any, series: Any, order: int) -> list[Any]:
    """Derivatives of t -> fun(x(t)) at 0, by jvp of jvp of ..."""

    def curve(t: Any) -> Any:
        def point(x: Any, parts: Any) -> Any:
            for k, c in enumerate(parts, 1):
                x = x + c * t**k / factorial(k)
            return x

        return fun(*[point(x, s) for x, s in zip(primals, series, strict=True)])

    def derivative(f: Fun) -> Fun:
        return lambda t: ft.jvp(f, (t,), (xp.ones_like(t),))[1]

    out, f = [], curve
    for _ in range(order):
        f = derivative(f)
        out.append(f(xp.asarray(0.0)))
    return out


def close(got: Any, want: Any) -> None:
    """Equal leaves."""
    for g, w in zip(ft.tree.leaves(got), ft.tree.leaves(want), strict=True):
        assert g.shape == w.shape
        assert g.dtype == w.dtype
        size = max(1.0, float(xp.max(xp.abs(w)))) if w.size else 1.0
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-8, atol=1e-9 * size)


def smooth() -> list[Any]:
    """The first sample of each primitive that has derivatives in real double precision."""
    out = []
    for p in sorted(catalogue(), key=lambda p: p.name):
        for s in p.samples(np.random.default_rng(3)):
            real = [
                a
                for a, rule in zip(s.args, p.rules, strict=True)
                if getattr(a, "dtype", None) == np.float64 and rule is not None
            ]
            single = any(getattr(a, "dtype", None) == np.float32 for a in s.args)
            if s.smooth and real and not single and not any(isinstance(r, Absent) for r in p.rules):
                out.append(pytest.param(p, s, id=p.name))
                break
    return out


@pytest.mark.parametrize(("prim", "sample"), smooth())
def test_every_primitive(prim: Primitive, sample: Sample, rng: np.random.Generator) -> None:
    """To third order, with all floating operands moving."""
    args = [xp.asarray(a) for a in sample.args]
    at = [k for k, a in enumerate(args) if a.dtype == xp.float64 and prim.rules[k] is not None]

    def fun(*moving: Any) -> Any:
        full = list(args)
        for k, x in zip(at, moving, strict=True):
            full[k] = x
        out = prim.fn(*full, *sample.params)
        outs = out if isinstance(out, tuple) else (out,)
        return [o for o in outs if o.dtype.kind in "fc"]

    primals = tuple([args[k] for k in at])
    series = tuple(
        [[xp.asarray(0.1 * rng.normal(size=x.shape)) for _ in range(ORDER)] for x in primals]
    )
    out, derivatives = ft.jet(fun, primals, series)
    close(out, fun(*primals))
    want = along(fun, primals, series, ORDER)
    for k in range(ORDER):
        close([d[k] for d in derivatives], want[k])


PROGRAMS: dict[str, Fun] = {
    "mlp": lambda x: xp.sum(xp.tanh(xp.asarray([[1.0, 2.0], [0.5, -1.0]]) @ xp.sin(x)) ** 2),
    "softplus": lambda x: xp.log1p(xp.exp(x)) / (1.0 + x * x),
    "norm": lambda x: x / xp.sqrt(xp.sum(x * x)),
    "where": lambda x: xp.where(x > 0, xp.exp(x), xp.cos(x)) * xp.cosh(x),
    "tree": lambda x: {"a": x[0] ** x[1], "b": [xp.cumulative_sum(x) * 2.0, xp.max(x)]},
    "constant": lambda x: (xp.ones(2), 3.0 * ft.stop_gradient(x)),
    "grad": ft.grad(lambda y: xp.sum(xp.sin(y) * y**3)),
    "vmap": ft.vmap(lambda v: xp.exp(v) / v),
    "jit": ft.jit(lambda x: xp.exp(xp.sin(x))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    """Compositions with other transforms inside, to fifth order."""
    fun = PROGRAMS[name]
    x = xp.asarray([0.7, 1.3])
    series = [xp.asarray(c) for c in np.random.default_rng(0).normal(size=(5, 2))]
    out, derivatives = ft.jet(fun, (x,), (series,))
    close(out, ft.tree.map(xp.asarray, fun(x)))
    want = along(fun, (x,), (series,), 5)
    flat = ft.tree.leaves(derivatives)
    for k in range(5):
        close(flat[k::5], want[k])


def test_inside_other_transforms() -> None:
    """jet under grad, vmap and jit."""

    def third(x: Any) -> Any:
        one, zero = xp.ones_like(x), xp.zeros_like(x)
        return ft.jet(xp.sin, (x,), ([one, zero, zero],))[1][2]

    x = xp.asarray(0.4)
    close(third(x), -xp.cos(x))
    close(ft.grad(third)(x), xp.sin(x))
    close(ft.jit(ft.grad(third))(x), xp.sin(x))
    batch = xp.asarray([0.1, 0.2, 0.3])
    close(ft.vmap(third)(batch), -xp.cos(batch))


def test_custom_rules_are_used() -> None:
    """A push or a pull that is not the function's own derivative shows in every order."""

    @ft.custom_jvp
    def double(x: Any) -> Any:
        return x * x

    double.defjvp(lambda p, t: (double(*p), 10.0 * p[0] * t[0]))

    @ft.custom_vjp
    def triple(x: Any) -> Any:
        return x * x

    triple.defvjp(lambda x: (triple(x), x), lambda x, ct: (10.0 * x * ct,))
    x = xp.asarray(2.0)
    one, zero = xp.asarray(1.0), xp.asarray(0.0)
    for fun in (double, triple):
        _, (first, second) = ft.jet(fun, (x,), ([one, zero],))
        assert (float(first), float(second)) == (20.0, 10.0)


def test_cost_is_polynomial() -> None:
    """Order 12 of a chain of 20 sines: nested jvp would need 4,096 evaluations of each."""

    def chain(x: Any) -> Any:
        for _ in range(20):
            x = xp.sin(x) / (1.0 + 0.1 * x)
        return x

    x = xp.asarray(0.3)
    series = [xp.asarray(1.0)] + [xp.asarray(0.0)] * 11
    _, found = ft.jet(chain, (x,), (series,))
    want = along(chain, (x,), (series,), 3)
    close(found[:3], want)


def test_errors() -> None:
    """Series that do not fit their primals."""
    x, one = xp.ones(2), xp.ones(2)
    with pytest.raises(TransformError, match=r"one length >= 1, got \[1, 2\]"):
        ft.jet(lambda a, b: a * b, (x, x), ([one], [one, one]))
    with pytest.raises(TransformError, match=r"one length >= 1, got \[0\]"):
        ft.jet(xp.sin, (x,), ([],))
    with pytest.raises(ShapeError, match=r"primal's shape \(2,\), got \(3,\)"):
        ft.jet(xp.sin, (x,), ([xp.ones(3)],))
    with pytest.raises(TreeError, match="series must be a tree like primals"):
        ft.jet(xp.sin, (x,), ([one], [one]))
    with pytest.raises(TransformError, match="must be a list"):
        ft.jet(xp.sin, (x,), (one,))
    with pytest.raises(TreeError, match=r"jet: primals must be a tuple .*, got Array"):
        ft.jet(xp.sin, x, ([one],))
