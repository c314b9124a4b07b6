"""Faults inside every transform: the user's exception passes, what escaped is named."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import transforms
from funct.array import Tensor
from funct.errors import (
    AllocationError,
    DTypeError,
    EscapedTracerError,
    ShapeError,
    TransformError,
    TreeError,
)
from funct.transforms.control import staged, sweeps
from funct.transforms.vmap import BatchTracer
from tests import laws
from tests.together import together
from tests.transforms.test_grad import arr

X = arr([0.3, -0.2, 0.5])
Fun = Callable[[Any], Any]


def _ruled(make: Any, define: str, *rules: Any) -> Any:
    """A function with rules of its own, under what asks for them."""
    g = make(xp.sin)
    getattr(g, define)(*rules)
    if define == "def_vmap":
        return lambda x: ft.vmap(g)(xp.stack([x]))
    return (ft.grad if define == "defvjp" else ft.jacfwd)(lambda x: xp.sum(g(x)))


def _solved(f: Fun) -> Any:
    def run(x: Any) -> Any:
        solve = lambda matvec, b: b / f(xp.ones(3))  # noqa: E731
        return ft.custom_linear_solve(lambda v: 2.0 * v, x, solve, symmetric=True)

    return ft.grad(lambda x: xp.sum(run(x)))


def _rooted(f: Fun) -> Any:
    def run(a: Any) -> Any:
        g = lambda x: f(x) * 0.0 + x - a  # noqa: E731
        return ft.custom_root(g, a, lambda g, x: x - g(x), lambda g, y: y)

    return ft.jit(ft.grad(lambda x: xp.sum(run(x))))


def _loops(f: Fun) -> dict[str, Any]:
    """Branches and loops: step by step, captured, and under derivatives."""
    ways = {
        "cond": lambda x: ft.cond(x[0] > 0.0, f, xp.sin, x),
        "switch": lambda x: ft.switch(1, [xp.sin, f], x),
        "scan": lambda x: ft.scan(lambda c, _: (f(c), None), x, None, length=3)[0],
        "long scan": lambda x: ft.scan(lambda c, _: (f(c), None), x, None, length=300)[0],
        "checkpointed scan": lambda x: ft.scan(
            ft.checkpoint(lambda c, _: (f(c), None)), x, None, length=20
        )[0],
        "while_loop": lambda x: ft.while_loop(
            lambda s: s[1] < 3, lambda s: (f(s[0]), s[1] + 1), (x, 0)
        )[0],
        "while_loop, test": lambda x: ft.while_loop(
            lambda s: xp.sum(f(s)) > 9.0, lambda s: s + 1.0, x
        ),
        "fori_loop": lambda x: ft.fori_loop(0, 3, lambda i, c: f(c), x),
        "map": lambda x: ft.map(lambda v: f(xp.stack([v, v])), x),
        "associative_scan": lambda x: ft.associative_scan(lambda a, b: f(a) + b, x),
    }
    out: dict[str, Any] = {}
    for name, way in ways.items():
        total = lambda x, way=way: xp.sum(way(x))  # noqa: E731
        for label, wrap in (("", lambda g: g), (", jit", ft.jit), (", grad", ft.grad)):
            out[name + label] = wrap(total)
    return out


def runs(f: Fun) -> dict[str, Callable[[Any], Any]]:
    """Every transform, applied to a function of an array of three elements."""
    total = lambda x: xp.sum(f(x))  # noqa: E731
    sines = lambda x: xp.sum(xp.sin(x))  # noqa: E731
    return {
        **_loops(f),
        "checkpoint": ft.grad(ft.checkpoint(total)),
        "checkpoint, jit": ft.jit(ft.grad(ft.checkpoint(total))),
        "closure_convert": lambda x: ft.closure_convert(f, x)[0](x),
        "custom_jvp": _ruled(ft.custom_jvp, "defjvp", lambda p, t: (f(p[0]), t[0])),
        "custom_vjp": _ruled(ft.custom_vjp, "defvjp", lambda x: (x, None), lambda r, g: (f(g),)),
        "custom_vmap": _ruled(ft.custom_vmap, "def_vmap", lambda n, flags, x: (f(x[0]) * x, True)),
        "custom_linear_solve": _solved(f),
        "custom_root": _rooted(f),
        "detect_anomaly": ft.detect_anomaly(ft.grad(total)),
        "draw_graph": ft.draw_graph(total),
        "eval_shape": lambda x: ft.eval_shape(f, x),
        "grad": ft.grad(total),
        "hessian": ft.hessian(total),
        "hook": ft.grad(lambda x: xp.sum(ft.hook(x, backward=f))),
        "hvp": lambda x: ft.hvp(total, (x,), (x,)),
        "intercept": ft.intercept(f, lambda p, o, k: NotImplemented),
        "intercept, rule": ft.intercept(xp.sin, lambda p, o, k: f(o[0])),
        "io_callback": lambda x: ft.io_callback(f, ft.eval_shape(xp.sin, x), x),
        "pure_callback": ft.jit(lambda x: ft.pure_callback(f, ft.eval_shape(xp.sin, x), x)),
        "jacfwd": ft.jacfwd(f),
        "jacrev": ft.jacrev(f),
        "jet": lambda x: ft.jet(f, (x,), ([x, xp.zeros(3)],)),
        "jit": ft.jit(f),
        "jit, grad": ft.jit(ft.grad(total)),
        "jvp": lambda x: ft.jvp(f, (x,), (x,)),
        "linear_transpose": lambda x: ft.linear_transpose(lambda v: (f(v), v * 2.0)[1], x)(x),
        "linearize": lambda x: ft.linearize(f, x)[1](x),
        "make_graph": ft.make_graph(f),
        "node_hook": ft.grad(ft.node_hook(total, post=lambda cts: None)),
        "node_hook, pre": ft.grad(ft.node_hook(xp.sum, pre=lambda ct: xp.sum(f(ct * X)) * 0.0)),
        "offload": ft.grad(ft.offload()(total)),
        "once_differentiable": ft.once_differentiable(f),
        "primitive": f,
        "saved_hooks": ft.grad(ft.saved_hooks(lambda v: v, lambda v: v)(total)),
        "saved_hooks, pack": ft.grad(ft.saved_hooks(f, lambda v: xp.ones(3))(sines)),
        "sparse_hessian": ft.sparse_hessian(total),
        "sparse_jacobian": ft.sparse_jacobian(f),
        "trace_dispatch": ft.trace_dispatch(f),
        "value_and_grad": ft.value_and_grad(total),
        "vjp": lambda x: ft.vjp(f, x),
        "vmap": lambda x: ft.vmap(f)(xp.stack([x, x])),
        "vmap, jit": lambda x: ft.jit(ft.vmap(f))(xp.stack([x, x])),
    }  # fmt: skip


NAMES = list(runs(xp.sin))
# they take no function
PLAIN = {
    "Drawing", "DispatchTrace", "FallbackWarning", "Op", "Pullback", "Zero", "all_gather",
    "all_to_all", "axis_index", "axis_size", "checkpoint_name", "checkpoint_policies",
    "find_primitive", "pmax", "pmean", "pmin", "ppermute", "psum", "psum_scatter", "stop_gradient",
}  # fmt: skip


def test_no_transform_is_left_out() -> None:
    """A new one has to be put into the table."""
    missing = set(transforms.__all__) - {n.partition(",")[0] for n in NAMES} - PLAIN
    assert missing == set()


@pytest.mark.parametrize("name", NAMES)
def test_exceptions_of_the_user_pass(name: str) -> None:
    """Again and again, of the user's own kind; then the same transform works."""

    class OwnError(Exception):
        pass

    def fails(x: Any) -> Any:
        xp.sin(x)
        raise OwnError("mine")

    run = runs(fails)[name]
    for _ in range(20):
        with pytest.raises(OwnError, match="mine"):
            run(X)
    runs(lambda x: xp.sin(x) + 0.0 * x)[name](X)
    laws.close(ft.grad(lambda x: xp.sum(xp.sin(x)))(X), xp.cos(X))


def test_a_thousand_exceptions_leave_no_trace() -> None:
    """Every transform in turn; levels are closed, results stay as they were."""
    rng = np.random.default_rng(0)

    class OwnError(Exception):
        pass

    def fails(x: Any) -> Any:
        raise OwnError

    table = runs(fails)
    for k in rng.integers(0, len(NAMES), 1000):
        with pytest.raises(OwnError):
            table[NAMES[k]](X)
    laws.close(ft.jit(ft.hessian(lambda x: xp.sum(x**3)))(X), 6.0 * xp.eye(3) * X)


@pytest.mark.parametrize("name", NAMES)
def test_what_escapes_is_named(name: str) -> None:
    """A tracer that outlives its transform raises at its next use; arrays may be kept."""
    kept: list[Any] = []

    def leaks(x: Any) -> Any:
        kept.append(x)
        return xp.sin(x)

    runs(leaks)[name](X)
    assert kept
    for x in kept:
        if isinstance(x, Tensor) and x.__class__ is not xp.Array:
            with pytest.raises(EscapedTracerError, match="has returned"):
                xp.sin(x)
            if isinstance(x, BatchTracer):  # whose lanes nobody can run again
                with pytest.raises(EscapedTracerError, match="has returned"):
                    bool(x[0] if x.shape else x)
                with pytest.raises(EscapedTracerError, match="has returned"):
                    x.tolist()


def test_what_a_scalar_function_gives_instead_is_named() -> None:
    """A container, None or a text is no scalar, and the error is about that."""
    for out, said in (((X, X), "a tuple"), ([X], "a list"), (None, "None"), ("no", "a str")):
        for f in (ft.grad, ft.value_and_grad):
            with pytest.raises(TransformError, match=f"must return a scalar, got {said}"):
                f(lambda x, out=out: ([x], out)[1])(X)


def test_tangents_are_checked_wherever_they_are_given() -> None:
    """Structure, shape and kind, of those of a call, of linearize and of custom rules."""

    def ruled(tangent: Fun) -> Fun:
        f = ft.custom_jvp(lambda x: (xp.sin(x), x))
        f.defjvp(lambda primals, ts: ((xp.sin(primals[0]), primals[0]), tangent(ts[0])))
        return f

    long, imaginary = xp.ones(7), 1j * X
    for wrong, error in (
        (lambda t: (t, long), ShapeError), (lambda t: (t, 0.0), ShapeError),
        (lambda t: (t, imaginary), DTypeError), (lambda t: t, TreeError),
        (lambda t: (t, None), TreeError),
    ):  # fmt: skip
        f = ruled(wrong)
        for g in (
            lambda x, f=f: ft.jvp(f, (x,), (x,)), ft.grad(lambda x, f=f: xp.sum(f(x)[0])),
            ft.jit(ft.grad(lambda x, f=f: xp.sum(f(x)[0]))),
        ):  # fmt: skip
            with pytest.raises(error):
                g(X)
    push = ft.linearize(xp.sin, X)[1]
    for wrong_tangent, error in ((long, ShapeError), (imaginary, DTypeError), ((X,), TreeError)):
        with pytest.raises(error, match="tangent"):
            push(wrong_tangent)
        with pytest.raises(error, match="tangent"):
            ft.jvp(xp.sin, (X,), (wrong_tangent,))


def test_sixteen_threads_fail_and_go_on() -> None:
    """Exceptions in one thread do not touch the transforms of another."""

    class OwnError(Exception):
        pass

    def fails(x: Any) -> Any:
        raise OwnError

    bad, good = runs(fails), runs(xp.sin)
    picked = [n for n in NAMES if "draw" not in n][::3]

    def work(k: int) -> None:
        for n in picked[k % 4 :: 4]:
            with pytest.raises(OwnError):
                bad[n](X * float(k + 1))
            good[n](X * 0.01 * float(k + 1))
        assert float(ft.grad(lambda x: x * x)(arr(float(k)))) == 2.0 * k

    together(16, work)


COMPILED: dict[str, Any] = {
    "scan": lambda x: ft.scan(lambda c, _: (xp.sin(c) + 1.0, c), x, None, length=300)[0],
    "while_loop": lambda x: ft.while_loop(
        lambda c: xp.all(c < 300.0), lambda c: c + xp.sin(c) + 1.5, x
    ),
    "cond": lambda x: ft.cond(xp.all(x < 3.0), xp.sin, xp.cos, x),
}
UNDER: dict[str, Any] = {
    "graph": lambda f, x: ft.make_graph(f)(x)(x),
    "jit": lambda f, x: ft.jit(f)(x),
    "vmap of jit": lambda f, x: ft.vmap(ft.jit(f))(xp.stack([x, x])),
    "jit of grad": lambda f, x: ft.jit(ft.grad(lambda v: xp.sum(f(v))))(x),
}


STAGED = [(name, way) for name in COMPILED for way in UNDER]
STAGED.remove(("cond", "vmap of jit"))  # lanes choose elements, and no branch is compiled


@pytest.mark.parametrize("kind", [TypeError, AttributeError, IndexError, KeyError, ValueError])
@pytest.mark.parametrize(("name", "way"), STAGED)
def test_a_fault_of_the_compiler_is_told_as_one(
    name: str, way: str, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no wrong dtype, index or argument of the user's; what failed is the cause."""
    fault = kind("of the compiler")

    def broken(*_: Any, **__: Any) -> Any:
        raise fault

    for module in (staged, sweeps):
        monkeypatch.setattr(module, "made", broken)
    monkeypatch.setattr(staged, "build", broken)
    with pytest.raises(TransformError, match="a fault of funct") as caught:
        UNDER[way](COMPILED[name], X)
    assert type(caught.value) is TransformError
    assert caught.value.__cause__ is fault
    assert caught.value.site is not None
    assert "test_faults.py" in str(caught.value.site)


def long(n: int) -> Any:
    """An array of n elements that takes no memory."""
    return xp.broadcast_to(xp.asarray(1.0), (n,))


WITHOUT_ROOM: dict[str, Callable[[], Any]] = {
    "grad": lambda: ft.grad(lambda x: xp.sum(x * x))(long(1 << 24)),
    "vjp": lambda: ft.vjp(lambda x: x * x, long(1 << 24)),
    "jvp": lambda: ft.jvp(lambda x: x * x, (long(1 << 24),), (long(1 << 24),)),
    "jacrev": lambda: ft.jacrev(lambda x: x * 2)(long(1 << 12)),
    "jacfwd": lambda: ft.jacfwd(lambda x: x * 2)(long(1 << 12)),
    "hessian": lambda: ft.hessian(lambda x: xp.sum(x**3))(long(1 << 12)),
    "jet": lambda: ft.jet(lambda x: x * x, (long(1 << 24),), ((long(1 << 24),),)),
    "linear_transpose": lambda: ft.linear_transpose(lambda x: x * 2, long(1 << 24)),
    "sparse_jacobian": lambda: ft.sparse_jacobian(lambda x: x * 2)(long(1 << 24)),
    "sparse_hessian": lambda: ft.sparse_hessian(lambda x: xp.sum(x**3))(long(1 << 24)),
    "vmap": lambda: ft.vmap(lambda x: x * 2)(long(1 << 24)),
    "jit": lambda: ft.jit(lambda x: x * 2)(long(1 << 24)),
    "checkpoint": lambda: ft.grad(ft.checkpoint(lambda x: xp.sum(x * x)))(long(1 << 24)),
    "scan": lambda: ft.scan(lambda c, _: (c, c), xp.ones(16), length=1 << 20),
    "scan, many": lambda: ft.scan(lambda c, _: (c, c), xp.ones(1), length=1 << 40),
    "map": lambda: ft.map(lambda x: x * xp.ones(1 << 10), long(1 << 14)),
    "associative_scan": lambda: ft.associative_scan(lambda a, b: a + b, long(1 << 24)),
    "fori_loop": lambda: ft.fori_loop(0, 2, lambda i, c: c * 2, long(1 << 24)),
    "cond": lambda: ft.cond(xp.asarray(True), lambda x: x * 2, lambda x: x, long(1 << 24)),
}


@pytest.mark.parametrize("name", WITHOUT_ROOM)
def test_results_without_room_are_refused_at_once(name: str) -> None:
    """Not computed in another way, which would find no room either."""
    ft.device.set_limit(64 << 20)
    try:
        with pytest.raises(AllocationError):
            WITHOUT_ROOM[name]()
    finally:
        ft.device.set_limit(None)
