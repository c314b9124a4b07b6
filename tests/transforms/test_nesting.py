"""Any nesting: perturbation confusion, every order of every pair, errors that restore state."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import EscapedTracerError, FunctError, TransformError, UndefinedDerivativeError
from tests import laws
from tests.transforms.test_grad import arr


def test_perturbations_are_not_confused() -> None:
    """Inner and outer derivatives of the same variable stay apart."""
    assert float(ft.grad(lambda x: x * ft.grad(lambda y: x + y)(arr(1.0)))(arr(1.0))) == 1.0
    inner = ft.grad(lambda x: x * ft.jvp(lambda y: x * y, (arr(2.0),), (arr(1.0),))[1])
    assert float(inner(arr(3.0))) == 6.0
    out = ft.jvp(lambda x: x * ft.grad(lambda y: x * y * y)(arr(5.0)), (arr(3.0),), (arr(1.0),))
    assert float(out[1]) == 60.0
    nested = ft.vmap(lambda x: ft.vmap(lambda y: x * y)(arr([1.0, 2.0])))(arr([3.0, 4.0]))
    laws.close(nested, arr([[3.0, 6.0], [4.0, 8.0]]))


ONE, TWO, THREE = arr(1.0), arr(2.0), arr(3.0)


def slope(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative in forward mode."""
    return lambda x: ft.jvp(f, (x,), (xp.ones_like(x),))[1]


DERIVATIVES = {"grad": ft.grad, "jvp": slope}
# With d outside and e inside: what d(e(...)) of these is at 3, worked out by hand. Both functions
# call their variable x wherever the two could be taken for one another.
CONFUSIONS: dict[str, tuple[Callable[[Any, Any], Callable[[Any], Any]], float]] = {
    "the inner function ignores its own": (
        lambda d, e: d(lambda x: x * e(lambda y: x)(TWO)), 0.0,
    ),
    "the sum of both": (lambda d, e: d(lambda x: x * e(lambda y: x + y)(TWO)), 1.0),
    "the product of both": (lambda d, e: d(lambda x: x * e(lambda y: x * y)(TWO)), 6.0),
    "one name for both": (lambda d, e: d(lambda x: x * e(lambda x: x * x * x)(x)), 81.0),
    "inside at the outer value": (lambda d, e: d(lambda x: e(lambda y: x * y * y)(x)), 12.0),
    "three deep": (
        lambda d, e: d(lambda x: e(lambda y: d(lambda z: x * y * z * z)(y))(x)), 24.0,
    ),
    "a batch inside": (
        lambda d, e: d(lambda x: xp.sum(ft.vmap(e(lambda y: x * y * y))(arr([1.0, 2.0])))), 6.0,
    ),
    "a batch between": (
        lambda d, e: d(lambda x: xp.sum(ft.vmap(lambda v: v * e(lambda y: x * y * v)(v))(
            arr([1.0, 2.0])))), 5.0,
    ),
    "a scan that closes over the outer": (
        lambda d, e: d(lambda x: ft.scan(
            lambda c, r: (c + r * e(lambda y: x * x * y)(c), None), x, arr([1.0, 2.0]))[0]), 19.0,
    ),
    "a scan inside the inner": (
        lambda d, e: d(lambda x: e(lambda y: ft.scan(
            lambda c, _: (c * x * y, None), ONE, length=2)[0])(x)), 54.0,
    ),
    "a loop that closes over both": (
        lambda d, e: d(lambda x: e(lambda y: ft.fori_loop(
            0, 2, lambda i, c: c * y + x, ONE))(TWO)), 1.0,
    ),
    "a branch that closes over both": (
        lambda d, e: d(lambda x: e(lambda y: ft.cond(
            y > 1.0, lambda: x * x * y, lambda: x))(TWO)), 6.0,
    ),
    "a checkpoint that closes over both": (
        lambda d, e: d(lambda x: e(lambda y: ft.checkpoint(lambda: x * x * y)())(TWO)), 6.0,
    ),
    "a compiled function that closes over both": (
        lambda d, e: d(lambda x: e(lambda y: ft.jit(lambda v: x * x * y * v)(TWO))(TWO)), 12.0,
    ),
    "a rule that closes over the outer": (
        lambda d, e: d(lambda x: e(_ruled(x))(TWO)), 6.0,
    ),
}  # fmt: skip


def _ruled(x: Any) -> Any:
    """y -> x² y with a rule of its own, which closes over x."""
    f = ft.custom_jvp(lambda y: x * x * y)
    f.defjvp(lambda primals, tangents: (x * x * primals[0], x * x * tangents[0]))
    return f


@pytest.mark.pairwise
@pytest.mark.parametrize("inner", DERIVATIVES)
@pytest.mark.parametrize("outer", DERIVATIVES)
@pytest.mark.parametrize("name", CONFUSIONS)
def test_derivatives_know_their_own_variable(name: str, outer: str, inner: str) -> None:
    """Each of two nested derivatives sees its own perturbation alone; batched and compiled too."""
    make, expected = CONFUSIONS[name]
    f = make(DERIVATIVES[outer], DERIVATIVES[inner])
    assert float(f(THREE)) == pytest.approx(expected)
    assert float(ft.jit(f)(THREE)) == pytest.approx(expected)
    lanes = ft.vmap(f)(arr([3.0, 1.0]))
    assert float(lanes[0]) == pytest.approx(expected)
    assert float(lanes[1]) == pytest.approx(float(f(ONE)))


def f(x: Any) -> Any:
    """A smooth scalar function of a vector."""
    return xp.sum(xp.sin(x) * x * xp.exp(xp.tanh(x)))


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda g: ft.grad(lambda x: xp.sum(g(x))),
    "jvp": lambda g: lambda x: ft.jvp(g, (x,), (x * 0.0 + 1.0,))[1],
    "vjp": lambda g: lambda x: ft.vjp(g, x)[1](g(x))[0],
    "vmap": lambda g: lambda x: xp.sum(ft.vmap(lambda s: g(x * s))(arr([1.0, 1.1])), axis=0),
    "jit": ft.jit,
    "linearize": lambda g: lambda x: ft.linearize(g, x)[1](x),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("inner", TRANSFORMS)
@pytest.mark.parametrize("middle", TRANSFORMS)
@pytest.mark.parametrize("outer", TRANSFORMS)
def test_every_triple_agrees_with_itself_compiled(outer: str, middle: str, inner: str) -> None:
    """t1(t2(t3(f))) = jit of it, and removing inner jits changes nothing."""

    def build(with_jit: bool) -> Any:
        g: Any = f
        for name in (inner, middle, outer):
            if name != "jit" or with_jit:
                g = TRANSFORMS[name](g)
        return g

    x = arr([0.3, -0.2])
    expected = build(False)(x)
    for g in (build(True), ft.jit(build(True))):
        laws.close(g(x), expected, 1e-10, 1e-10)
        laws.close(g(x), expected, 1e-10, 1e-10)


def test_hessians_through_compiled_code() -> None:
    """Forward over reverse, reverse over reverse and jit anywhere give one Hessian."""
    x, eye = arr([0.1, 0.5, -0.3, 0.7]), xp.eye(4)
    expected = np.stack([np.asarray(ft.jvp(ft.grad(f), (x,), (eye[k],))[1]) for k in range(4)])
    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f)), ft.jit(ft.grad(ft.jit(f)))):
        rows = [
            lambda x, g=g: ft.vmap(lambda t: ft.jvp(g, (x,), (t,))[1])(eye),
            lambda x, g=g: ft.vmap(lambda t: ft.vjp(g, x)[1](t)[0])(eye),
            ft.jit(lambda x, g=g: ft.vmap(lambda t: ft.vjp(g, x)[1](t)[0])(eye)),
        ]
        for h in rows:
            laws.close(h(x), xp.asarray(expected))
            laws.close(h(x), xp.asarray(expected))
    third = ft.grad(lambda x: xp.sum(ft.hessian(ft.jit(f))(x)))
    laws.close(third(x), ft.jit(third)(x), 1e-8, 1e-8)


def test_closures_over_outer_values() -> None:
    """A compiled inner function may close over a traced value of an outer transform."""
    k = ft.jit(lambda y: y * 2.0)
    g = ft.grad(lambda x: ft.jit(lambda y: x * y)(arr(2.0)) * k(x))
    assert float(g(arr(3.0))) == 24.0
    assert float(ft.jit(g)(arr(3.0))) == 24.0
    laws.close(
        ft.vmap(lambda x: ft.jit(lambda y: x * y)(arr(2.0)))(arr([1.0, 3.0])), arr([2.0, 6.0])
    )


def test_array_api_code_runs_under_every_transform() -> None:
    """Code that asks `x.__array_namespace__()` never sees another namespace."""

    def softmax(x: Any) -> Any:
        ns = x.__array_namespace__()
        assert ns is xp
        e = ns.exp(x)
        return e / ns.sum(e, axis=-1, keepdims=True)

    x = arr([[0.1, 0.2, 0.3], [0.3, 0.1, 0.0]])
    for g in (softmax, ft.jit(softmax), ft.vmap(softmax), lambda x: ft.jvp(softmax, (x,), (x,))[0]):
        assert float(xp.sum(g(x))) == pytest.approx(2.0)
    assert abs(float(xp.sum(ft.grad(lambda x: softmax(x)[0])(arr([0.1, 0.2, 0.3]))))) < 1e-15


@pytest.mark.parametrize(
    ("transform", "label"),
    [
        (lambda g: ft.grad(g)(arr(2.0)), "grad"),
        (lambda g: ft.jvp(g, (arr(2.0),), (arr(1.0),)), "jvp"),
        (lambda g: ft.vmap(g)(arr([2.0])), "vmap"),
        (lambda g: ft.jit(g)(arr(2.0)), "jit"),
        (lambda g: ft.vjp(g, arr(2.0)), "vjp"),
        (lambda g: ft.make_graph(g)(arr(2.0)), "make_graph"),
    ],
)
def test_escaped_tracers_are_named(transform: Any, label: str) -> None:
    """A value that outlives its transform raises at its next use, naming transform and function."""
    leak: list[Any] = []

    def leaky(x: Any) -> Any:
        leak.append(x)
        return x * x

    transform(leaky)
    with pytest.raises(EscapedTracerError) as caught:
        leak[0] + 1.0
    text = str(caught.value)
    assert text.startswith(f"add: an operand was made inside {label} of leaky (test_nesting.py:")
    assert "which has returned" in text
    assert f"fix: return the value from the function given to {label}" in text
    assert isinstance(caught.value, RuntimeError)


def test_exceptions_of_the_user_leave_no_trace() -> None:
    """After an exception inside any transform, a thousand times, everything works as before."""

    def bad(x: Any) -> Any:
        y = xp.sin(x)
        if True:
            raise KeyError("user")
        return y

    for _ in range(200):
        for t in (ft.grad(bad), ft.jit(bad), lambda x: ft.vmap(bad)(xp.stack([x])), ft.jacfwd(bad)):
            with pytest.raises(KeyError):
                t(arr(1.0))
    assert float(ft.grad(lambda x: x * x)(arr(3.0))) == 6.0


def test_errors_name_the_transforms_they_happened_under() -> None:
    """The context line lists the running transforms, innermost first, and the user's line."""
    w = xp.ones((3, 2))
    with pytest.raises(FunctError) as caught:
        ft.jit(ft.grad(lambda x: xp.sum(ft.vmap(lambda r: xp.matmul(r, w))(x))))(xp.ones((5, 4, 4)))
    text = str(caught.value)
    assert "matmul: inner dimensions must agree, got x (4, 4) and y (3, 2): 4 != 3" in text
    assert "under vmap › grad › jit" in text
    assert "in test_nesting.py:" in text


def test_missing_derivatives_raise_by_name() -> None:
    """An op without a derivative says so; it is never a silent zero."""
    with pytest.raises(UndefinedDerivativeError, match="nextafter: no derivative: "):
        ft.grad(lambda x: xp.nextafter(x, 2.0))(arr(1.0))
    with pytest.raises(UndefinedDerivativeError, match="nextafter: no derivative: "):
        ft.jvp(lambda x: xp.nextafter(2.0, x), (arr(1.0),), (arr(1.0),))


def test_vmap_axes() -> None:
    """in_axes and out_axes are ints, None and prefixes of trees; axis_size and chunks work."""
    a, b = xp.asarray(np.arange(6.0).reshape(2, 3)), xp.asarray(np.arange(3.0))
    laws.close(ft.vmap(lambda x, y: x * y, (1, 0))(a, b), xp.permute_dims(a, (1, 0)) * b[:, None])
    laws.close(ft.vmap(lambda x, y: x * y, (0, None), 1)(a, b), xp.permute_dims(a * b, (1, 0)))
    tree = {"a": a, "b": [b, b]}
    out = ft.vmap(lambda t: {"s": t["a"] + t["b"][0], "c": t["b"][1]}, ({"a": 1, "b": [0, None]},))(
        tree
    )
    assert out["s"].shape == (3, 2)
    assert out["c"].shape == (3, 3)
    laws.close(ft.vmap(lambda: xp.ones(2), axis_size=3)(), xp.ones((3, 2)))
    laws.close(ft.vmap(lambda x: x * 2.0, chunk_size=2)(xp.ones((5, 2))), xp.ones((5, 2)) * 2.0)
    laws.close(ft.vmap(lambda x, k: x * k)(a, k=xp.asarray([1.0, 2.0])), a * arr([[1.0], [2.0]]))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("chunk_size", [None, 2, 3])
def test_results_without_lanes_have_no_batch_axis(chunk_size: Any, compiled: bool) -> None:
    """out_axes None: numbers, operands and what is computed of them, at each level of a nest."""
    a, y = xp.asarray(np.arange(6.0).reshape(3, 2)), xp.asarray([2.0, 3.0])

    def fun(x: Any, y: Any) -> Any:
        return {"lanes": x * y, "same": (y, None, [y * y, 3.0])}

    def over(fun: Any, axes: Any, out: Any) -> Any:
        mapped = ft.vmap(fun, axes, out, chunk_size=chunk_size)
        return ft.jit(mapped) if compiled else mapped

    got = over(fun, (0, None), {"lanes": -1, "same": None})(a, y)
    laws.close(got["lanes"], xp.permute_dims(a * y, (1, 0)))
    same, nothing, (square, number) = got["same"]
    assert nothing is None
    assert number.shape == ()
    laws.close([same, square], [y, y * y])
    nested = over(over(lambda x, y: y * 2.0, (0, None), None), (None, 0), 0)
    laws.close(nested(a, y), y * 2.0)
    slope = ft.grad(lambda y: xp.sum(over(lambda x, y: y**3, (0, None), None)(a, y)))
    laws.close(slope(y), 3.0 * y * y)
    for other in (lambda x, y: x, lambda x, y: y if x[0] > 2.0 else y * 2.0):
        with pytest.raises(FunctError, match="out_axes is None for a result that may differ"):
            over(other, (0, None), None)(a, y)


def test_vmap_errors() -> None:
    """Axes that do not fit are refused with what was expected."""
    with pytest.raises(FunctError, match=r"batch sizes must agree, got \[2, 3\]"):
        ft.vmap(lambda x, y: x)(xp.ones(2), xp.ones(3))
    with pytest.raises(FunctError, match="in_axes must be a prefix"):
        ft.vmap(lambda x: x, ({"a": 0},))(xp.ones(2))
    with pytest.raises(FunctError, match="0-d array"):
        ft.vmap(lambda x: x)(arr(1.0))
    with pytest.raises(FunctError, match="no argument has a batch axis"):
        ft.vmap(lambda x: x, None)(arr(1.0))
    with pytest.raises(FunctError, match="axis 2 is out of range"):
        ft.vmap(lambda x: x, 2)(xp.ones(2))
    for size in (0, -1, 1.5):
        with pytest.raises(FunctError, match="chunk_size must be a positive int"):
            ft.vmap(lambda x: x, chunk_size=size)  # type: ignore[arg-type]
        with pytest.raises(FunctError, match="batch_size must be a positive int"):
            ft.map(lambda x: x, xp.ones(2), batch_size=size)  # type: ignore[arg-type]


def test_eval_shape_computes_nothing() -> None:
    """Shapes of a function of terabytes; a shape that depends on a value is an error."""
    out = ft.eval_shape(
        lambda x: {"y": xp.matmul(x, xp.matrix_transpose(x))}, ft.ShapeDtype((10**7, 10**7), "f4")
    )
    assert out == {"y": ft.ShapeDtype((10**7, 10**7), "f4")}
    with pytest.raises(TransformError, match="only shapes are known"):
        ft.eval_shape(lambda x: x if x > 0 else -x, ft.ShapeDtype((), "f8"))


def test_transforms_of_numpy_arguments() -> None:
    """NumPy arrays and scalars are arguments like any other."""
    assert float(ft.grad(lambda x: xp.sum(x * x))(np.asarray([1.0, 2.0]))[1]) == 4.0
    assert float(ft.jit(lambda x: x + 1)(np.float64(2.0))) == 3.0


def test_empty_places_of_trees_pass_through_every_transform() -> None:
    """None in an argument or a result has no leaves: vmap, grad, jit and jvp pass over it."""
    tree = {"a": arr([1.0, 2.0]), "b": None}

    def f(t: Any) -> Any:
        assert t["b"] is None
        return {"y": t["a"] * 2.0, "n": None}

    for t in (ft.vmap(f), ft.jit(f), ft.vmap(f, ({"a": 0, "b": None},), {"y": 0, "n": None})):
        out = t(tree)
        assert out["n"] is None
        laws.close(out["y"], arr([2.0, 4.0]))
    assert ft.grad(lambda t: xp.sum(f(t)["y"]))(tree)["b"] is None
    assert ft.jvp(f, (tree,), (tree,))[1]["n"] is None
