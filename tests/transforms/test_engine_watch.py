"""Levels that watch: anomalies are found where they arise, ops are intercepted, decisions told."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import AnomalyError, FunctError, TransformError
from funct.source import user_site
from funct.transforms.watching import anomaly
from tests import laws
from tests.transforms.test_grad import arr

X = arr([0.3, -0.2, 0.5])


def wave(x: Any) -> Any:
    """A smooth scalar function."""
    return xp.sum(xp.sin(x) * x * xp.exp(xp.tanh(x)))


def bad_forward(x: Any) -> Any:
    """log of a negative number, after and before harmless ops."""
    y = x * 2.0
    z = xp.log(y - 10.0)  # the forward anomaly
    return xp.sum(z * y)


def bad_backward(x: Any) -> Any:
    """A finite value whose derivative is not."""
    y = x - x
    z = xp.sqrt(y)  # the backward anomaly
    return xp.sum(z + xp.sin(y))


def nestings() -> dict[str, Callable[[Any], Any]]:
    """Ways to take a gradient of a function of an array, with the detector in every place."""
    d = ft.detect_anomaly
    return {
        "d-grad": lambda f: d(ft.grad(f)),
        "grad-d": lambda f: ft.grad(d(f)),
        "d-jit-grad": lambda f: d(ft.jit(ft.grad(f))),
        "jit-d-grad": lambda f: ft.jit(d(ft.grad(f))),
        "jit-grad-d": lambda f: ft.jit(ft.grad(d(f))),
        "d-grad-jit": lambda f: d(ft.grad(ft.jit(f))),
        "grad-d-jit": lambda f: ft.grad(d(ft.jit(f))),
        "grad-jit-d": lambda f: ft.grad(ft.jit(d(f))),
        "vmap-d-grad": lambda f: lambda x: ft.vmap(d(ft.grad(f)))(xp.stack([x, x])),
        "d-vmap-grad": lambda f: d(lambda x: ft.vmap(ft.grad(f))(xp.stack([x, x]))),
        "vmap-grad-d": lambda f: lambda x: ft.vmap(ft.grad(d(f)))(xp.stack([x, x])),
        "grad-d-vmap": lambda f: ft.grad(d(lambda x: xp.sum(ft.vmap(f)(xp.stack([x, x]))))),
        "d-hessian": lambda f: d(ft.hessian(f)),
        "hessian-d": lambda f: ft.hessian(d(f)),
    }


each = pytest.mark.parametrize("name", nestings())


@each
def test_finite_functions_pass(name: str) -> None:
    """Where all is finite the detector changes nothing."""
    laws.close(nestings()[name](wave)(X), nestings_without()[name](wave)(X))


def nestings_without() -> dict[str, Callable[[Any], Any]]:
    """The same ways without a detector."""
    keep, ft.detect_anomaly = ft.detect_anomaly, lambda f: f  # type: ignore[assignment]
    try:
        return nestings()
    finally:
        ft.detect_anomaly = keep


@each
def test_a_forward_anomaly_is_located(name: str) -> None:
    """The error names log and quotes its line, in compiled code too, on every call."""
    fun = nestings()[name](bad_forward)
    for _ in range(2):
        with pytest.raises(AnomalyError) as caught, np.errstate(all="ignore"):
            fun(X)
        assert (caught.value.op, caught.value.phase) == ("log", "forward")
        assert "z = xp.log(y - 10.0)  # the forward anomaly" in str(caught.value)
        assert "log gave nan" in caught.value.what


@each
def test_a_backward_anomaly_is_located_at_its_forward_op(name: str) -> None:
    """The error of a backward pass names sqrt and quotes the line that called it."""
    fun = nestings()[name](bad_backward)
    for _ in range(2):
        with pytest.raises(AnomalyError) as caught, np.errstate(all="ignore"):
            fun(X)
        assert caught.value.op == "sqrt"
        second = ("backward", "tangent", "forward")  # a Hessian differentiates the pull as well
        assert caught.value.phase in (second if "hess" in name else ("backward",))
        assert "z = xp.sqrt(y)  # the backward anomaly" in str(caught.value)


def test_the_tangent_of_forward_mode_is_checked() -> None:
    """jvp of a detected function finds the tangent, outside of it the op's rule."""
    for fun in (
        lambda x: ft.jvp(ft.detect_anomaly(bad_backward), (x,), (x,)),
        ft.detect_anomaly(lambda x: ft.jvp(bad_backward, (x,), (x,))),
    ):
        with pytest.raises(AnomalyError) as caught, np.errstate(all="ignore"):
            fun(X)
        assert caught.value.op == "sqrt"
        assert "the backward anomaly" in str(caught.value)


def test_arguments_are_values_too() -> None:
    """An argument that is not finite is named, in trees and by keyword; integers are fine."""
    f = ft.detect_anomaly(lambda p, n, *, k=1.0: p["a"] * n * k)
    with pytest.raises(AnomalyError, match=r"argument 0.a of <lambda> holds inf \(1 of 2 elements"):
        f({"a": arr([1.0, np.inf])}, 2)
    with pytest.raises(AnomalyError, match="argument k of <lambda> holds nan"):
        f({"a": arr([1.0, 2.0])}, 2, k=arr(np.nan))
    laws.same(f({"a": arr([1.0, 2.0])}, xp.asarray(2)), arr([2.0, 4.0]))
    with pytest.raises(AnomalyError, match="the backward pass of sqrt gave inf"):
        ft.detect_anomaly(ft.grad(lambda x: xp.sqrt(x) * 2.0))(0.0)


OPS: dict[str, Any] = {
    "sin": xp.sin, "exp": lambda x: xp.exp(xp.tanh(x)), "square": lambda x: x * x * 0.5,
    "affine": lambda x: x * 0.9 + 0.1, "norm": lambda x: x / (1.0 + xp.sum(x * x)),
}  # fmt: skip


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, lambda f: ft.vmap(f, in_axes=(0, None))])
@pytest.mark.parametrize("backward", [False, True])
def test_the_right_one_of_fifty_ops_is_found(wrap: Any, backward: bool) -> None:
    """NaN injected at a random place of a 50-op chain, forward and backward, is found there."""
    rng = np.random.default_rng(0)
    names = [str(n) for n in rng.choice(list(OPS), 50)]

    def net(x: Any, at: int) -> Any:
        for k, n in enumerate(names):
            x = OPS[n](x)
            if k == at:
                x = xp.acos(x * 0.0 + 1.0) if backward else xp.log(-1.0 - x * x)
        return xp.sum(x)

    where = "acos" if backward else "log"
    x = xp.stack([X, X]) if wrap is not ft.jit and wrap(len) is not len else X
    for at in rng.integers(0, 50, 8):
        fun = ft.detect_anomaly(wrap(ft.value_and_grad(lambda x, n, at=int(at): net(x, at))))
        with pytest.raises(AnomalyError) as caught, np.errstate(all="ignore"):
            fun(x, arr(1.0))
        assert caught.value.op == where
        assert "xp.acos(x * 0.0 + 1.0)" in str(caught.value)


RULES: dict[str, Callable[[Any], Any]] = {
    "grad": ft.grad,
    "jit": ft.jit,
    "jvp": lambda f: lambda x: ft.jvp(f, (x,), (x,))[1],
    "vmap": lambda f: lambda x: ft.vmap(f)(xp.stack([x, 2.0 * x])),
    "linearize": lambda f: lambda x: ft.linearize(f, x)[1](x),
    "hessian": ft.hessian,
}


def swap(prim: Any, operands: Any, params: Any) -> Any:
    """sin becomes cos; everything else stays."""
    return xp.cos(*operands) if prim.name == "sin" else NotImplemented


@pytest.mark.parametrize("names", [*itertools.product(RULES, repeat=2)], ids="-".join)
def test_an_intercepted_function_is_a_function(names: tuple[str, str]) -> None:
    """Every pair of transforms of it is that of the function that it stands for."""
    outer, inner = (RULES[n] for n in names)

    def other(x: Any) -> Any:
        return xp.sum(xp.cos(x) * x * xp.exp(xp.tanh(x)))

    def total(f: Any) -> Any:
        return lambda x: xp.sum(f(x))

    with_rule = ft.intercept(wave, swap)
    laws.close(outer(total(inner(with_rule)))(X), outer(total(inner(other)))(X))


def test_an_interceptor_outside_sees_forward_and_backward() -> None:
    """Around grad the rule is asked for the ops of both passes, around jit for the graph's."""
    both = ft.value_and_grad
    for wrap in (both, lambda f: ft.jit(both(f)), lambda f: both(ft.jit(f))):
        seen: list[str] = []

        def rule(prim: Any, operands: Any, params: Any, seen: Any = seen) -> Any:
            seen.append(prim.name)
            return NotImplemented

        _, g = ft.intercept(wrap(lambda x: xp.sum(xp.sin(x))), rule)(X)
        laws.close(g, xp.cos(X))
        assert seen.index("sin") < seen.index("multiply")
        assert "cos" in seen


def test_interceptors_stack_and_redispatch() -> None:
    """Inner rules are asked first; what a rule calls is seen by the outer one alone."""
    log: list[str] = []

    def inner(prim: Any, operands: Any, params: Any) -> Any:
        log.append(f"inner {prim.name}")
        if prim.name == "tanh":
            return prim(*operands, *params) + 1.0
        return NotImplemented

    def outer(prim: Any, operands: Any, params: Any) -> Any:
        log.append(f"outer {prim.name}")
        return prim(*operands, *params)

    f = ft.intercept(ft.intercept(lambda x: xp.exp(xp.tanh(x)), inner), outer)
    laws.close(f(X), xp.exp(xp.tanh(X) + 1.0))
    assert log == ["inner tanh", "outer tanh", "outer add", "inner exp", "outer exp"]


def test_parameters_by_name() -> None:
    """A primitive takes its parameters by position and by name."""
    found: list[Any] = []

    def rule(prim: Any, operands: Any, params: Any) -> Any:
        found.append(dict(zip(prim.params, params, strict=True)))
        return prim(*operands, **found[-1])

    f = ft.intercept(lambda x: xp.sum(x, axis=0), rule)
    laws.close(f(X), xp.sum(X))
    assert found == [{"axes": (0,), "keepdims": False}]


def test_rules_that_are_wrong_are_refused() -> None:
    """None, or another number of results, is an error that names the op."""
    with pytest.raises(TransformError, match=r"must give 1 result\(s\) of sin or NotImplemented"):
        ft.intercept(xp.sin, lambda p, o, k: None)(X)
    with pytest.raises(TransformError, match=r"1 result\(s\) of sin"):
        ft.intercept(xp.sin, lambda p, o, k: (X, X))(X)
    laws.same(ft.intercept(xp.sin, lambda p, o, k: np.zeros(3))(X), xp.zeros(3))


def test_custom_rules_stay_under_a_watch() -> None:
    """A function with its own derivative keeps it; its ops are seen."""
    f = ft.custom_vjp(xp.sin)
    f.defvjp(lambda x: (xp.sin(x), x), lambda r, g: (g * r,))
    seen: list[str] = []

    def rule(prim: Any, operands: Any, params: Any) -> Any:
        seen.append(prim.name)
        return NotImplemented

    laws.close(ft.grad(lambda x: xp.sum(ft.intercept(f, rule)(x)))(X), X)
    assert seen == ["sin", "multiply"]
    laws.close(ft.jvp(ft.intercept(f, rule), (X,), (X,))[1], X * X)


def test_decisions_are_told() -> None:
    """One line per op: its way down the levels, and the user's line; backward ops name theirs."""
    trace = ft.trace_dispatch(ft.vmap(ft.grad(lambda x: xp.sin(x) * x)))(X)
    laws.close(trace.out, xp.cos(X) * X + xp.sin(X))
    first = trace.decisions[0]
    assert first.primitive == "sin"
    assert [label for label, _ in first.levels] == ["grad", "vmap", "array"]
    assert first.operands == ("float64[3]",)
    assert "backward of sin" in str(trace)
    assert "sin(float64[3]): grad › vmap › array" in str(trace)
    twice = ft.trace_dispatch(ft.grad(ft.grad(xp.sin)))(X[0])
    assert [label for label, _ in twice.decisions[0].levels] == ["grad", "grad", "array"]
    inside = ft.grad(lambda x: xp.sum(ft.trace_dispatch(xp.sin)(x).out))(X)
    laws.close(inside, xp.cos(X))


def test_numbers_stay_numbers() -> None:
    """A float32 computation stays one when a Python number is passed beside the arrays."""
    x = xp.asarray(np.float32([1, 2]))
    for watch in (ft.detect_anomaly, lambda f: ft.intercept(f, swap), ft.offload("cpu")):
        assert watch(lambda x, k: x * k)(x, 0.5).dtype == np.float32
        assert watch(lambda x, flag=True: x if flag else -x)(x, flag=False).dtype == np.float32


def test_errors_restore_everything() -> None:
    """Exceptions from user code in every transform and hook, a thousand times; then all works."""

    class StopError(Exception):
        """The user's own exception."""

    def stop(*args: Any) -> Any:
        raise StopError

    ways: list[Callable[[], Any]] = [
        lambda: ft.grad(stop)(X),
        lambda: ft.vmap(stop)(X),
        lambda: ft.jit(stop)(X),
        lambda: ft.jvp(stop, (X,), (X,)),
        lambda: ft.linearize(stop, X),
        lambda: ft.intercept(wave, stop)(X),
        lambda: ft.detect_anomaly(stop)(X),
        lambda: ft.trace_dispatch(stop)(X),
        lambda: ft.grad(lambda x: wave(ft.hook(x, backward=stop)))(X),
        lambda: ft.grad(ft.node_hook(wave, pre=stop))(X),
        lambda: ft.grad(ft.node_hook(wave, post=stop))(X),
        lambda: ft.grad(ft.saved_hooks(stop, lambda x: x)(wave))(X),
        lambda: ft.grad(ft.saved_hooks(lambda x: x, stop)(wave))(X),
        lambda: ft.hessian(lambda x: wave(ft.hook(x, backward=stop)))(X),
    ]
    expected = ft.grad(wave)(X)
    for k in range(1000):
        with pytest.raises(StopError):
            ways[k % len(ways)]()
    laws.same(ft.grad(wave)(X), expected)
    assert ft.errors.FunctError("probe").context == ()
    with pytest.raises(FunctError) as caught:
        ft.grad(lambda x: x)(X)
    assert caught.value.context == ()


def test_finite_values_cost_no_walk_over_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """The op and the line are looked for where something failed, not at every op."""
    walks = []

    def counted(depth: int = 1) -> Any:
        walks.append(depth)
        return user_site(depth + 1)

    monkeypatch.setattr(anomaly, "user_site", counted)

    def chain(x: Any) -> Any:
        for _ in range(50):
            x = xp.sin(x) * 1.01
        return x

    for f in (chain, ft.grad(chain), ft.grad(ft.grad(chain))):
        walks.clear()
        ft.detect_anomaly(f)(xp.asarray(0.3))
        assert len(walks) == 1  # that of the argument
    with pytest.raises(AnomalyError, match="log gave -inf"):
        ft.detect_anomaly(lambda x: xp.log(chain(x) * 0.0))(xp.asarray(0.3))
