"""Callbacks: equal to the function they call, under vmap and jit; effects happen once, in order."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import export
from funct.errors import (
    DTypeError,
    FunctError,
    ShapeError,
    TransformError,
    TreeError,
    UndefinedDerivativeError,
)

X = xp.asarray(np.random.default_rng(0).normal(size=(3, 4)))


def like(x: Any) -> ft.ShapeDtype:
    """The promise to return what came in."""
    return ft.ShapeDtype(x.shape, x.dtype)


def ordered(x: Any) -> Any:
    """NumPy's sort, through a callback."""
    return ft.pure_callback(np.sort, like(x), x)


def test_a_pure_callback_is_its_function() -> None:
    """Eager, batched, compiled, and in both orders."""
    want = np.sort(np.asarray(X), axis=-1)
    both = ft.vmap(ft.vmap(ordered))
    for run in (ordered, ft.jit(ordered), ft.vmap(ordered), ft.jit(ft.vmap(ordered)),
                ft.vmap(ft.jit(ordered)), lambda x: both(x[:, None])[:, 0]):  # fmt: skip
        np.testing.assert_array_equal(np.asarray(run(X)), want)
    shared = ft.vmap(lambda x, y: ft.pure_callback(np.add, like(x), x, y), (0, None))(X, X[0])
    np.testing.assert_array_equal(np.asarray(shared), np.asarray(X + X[0]))
    assert ft.vmap(ordered)(xp.ones((0, 4))).shape == (0, 4)


def test_trees_and_dtypes() -> None:
    """Several results; what is returned is cast to what was promised."""
    promise = {"low": ft.ShapeDtype((), xp.float32), "all": (ft.ShapeDtype((4,), xp.float64),)}

    def fun(tree: Any, k: Any) -> Any:
        return {"low": tree["x"].min() + k, "all": (np.sort(tree["x"]),)}

    run = ft.jit(ft.vmap(lambda x: ft.pure_callback(fun, promise, {"x": x}, 2)))
    out = run(X)
    assert out["low"].dtype == xp.float32
    np.testing.assert_allclose(np.asarray(out["low"]), np.asarray(X).min(-1) + 2, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(out["all"][0]), np.sort(np.asarray(X)))


def test_derivatives_are_refused_by_name_and_given_by_custom_rules() -> None:
    """No silent zero; custom_vjp says what the derivative is."""
    with pytest.raises(UndefinedDerivativeError, match="pure_callback: no derivative"):
        ft.grad(lambda x: xp.sum(ordered(x)))(X[0])
    with pytest.raises(UndefinedDerivativeError, match="pure_callback: no derivative"):
        ft.jvp(ordered, (X[0],), (X[0],))

    @ft.custom_vjp
    def sine(x: Any) -> Any:
        return ft.pure_callback(np.sin, like(x), x)

    sine.defvjp(lambda x: (sine(x), x), lambda x, ct: (ct * xp.cos(x),))
    slope = ft.vmap(ft.grad(lambda x: xp.sum(sine(x))))(X)
    np.testing.assert_allclose(np.asarray(slope), np.cos(np.asarray(X)))
    compiled = ft.jit(ft.grad(lambda x: xp.sum(sine(x))))(X)
    np.testing.assert_allclose(np.asarray(compiled), np.cos(np.asarray(X)))


def test_effects_happen_once_per_call_in_order() -> None:
    """An io_callback is not shared, not dropped and not moved; a pure one may be."""
    seen: list[float] = []

    def note(x: Any) -> None:
        seen.append(float(x))

    def fun(x: Any) -> Any:
        ft.io_callback(note, None, x)
        ft.io_callback(note, None, x + 1.0)
        ft.io_callback(note, None, x)
        return x * 2.0

    for run in (fun, ft.jit(fun)):
        for k in (1.0, 5.0):
            seen.clear()
            assert float(run(xp.asarray(k))) == 2 * k
            assert seen == [k, k + 1, k]
    seen.clear()
    ft.vmap(lambda x: ft.io_callback(note, None, x))(xp.asarray([3.0, 1.0, 2.0]))
    assert seen == [3.0, 1.0, 2.0]


def test_what_has_no_floating_result_stands_in_no_derivative_s_way() -> None:
    """Effects happen once, with primal values; integers vary with nothing."""
    seen: list[float] = []
    count = ft.ShapeDtype((), xp.int64)

    def fun(x: Any) -> Any:
        ft.io_callback(lambda v: seen.append(float(v)), None, x)
        return x * x * ft.pure_callback(np.ceil, count, x)

    for run, value in (
        (ft.grad(fun), 6.0), (ft.jit(ft.grad(fun)), 6.0), (ft.grad(ft.jit(fun)), 6.0),
        (lambda x: ft.jvp(fun, (x,), (x,))[1], 9.0), (ft.grad(ft.grad(fun)), 4.0),
    ):  # fmt: skip
        seen.clear()
        assert float(run(xp.asarray(1.5))) == value
        assert seen == [1.5]


def test_effects_of_a_compiled_forward_pass_happen_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Cut into halves, the print stays with the half that has its operand."""

    @ft.jit
    def fun(x: Any) -> Any:
        y = xp.sin(x)
        ft.debug.print("y = {y}", y=y)
        return y * y

    assert float(ft.grad(fun)(xp.asarray(0.0))) == 0.0
    assert capsys.readouterr().out == "y = 0.0\n"
    assert float(ft.jit(ft.grad(fun))(xp.asarray(0.0))) == 0.0
    assert capsys.readouterr().out == "y = 0.0\n"


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    """Primal values under derivatives, one line for each lane, each run of compiled code."""
    ft.debug.print("{} and {b}", 1, b="two")
    ft.grad(lambda x: ft.debug.print("x = {x}", x=x) or x)(xp.asarray(2.0))
    ft.vmap(lambda x: ft.debug.print("lane {}", x) or x)(xp.arange(2))
    compiled = ft.jit(lambda x: ft.debug.print("{name}: {x}", name="in", x=x) or x)
    compiled(xp.asarray(1))
    compiled(xp.asarray(2))
    assert capsys.readouterr().out.splitlines() == [
        "1 and two", "x = 2.0", "lane 0", "lane 1", "in: 1", "in: 2",
    ]  # fmt: skip


def test_promises_that_are_not_kept() -> None:
    """Shapes, trees, promises of the wrong kind; an exception of the function arrives as it is."""
    with pytest.raises(ShapeError, match=r"promised shape \(2,\), its result has \(4,\)"):
        ft.pure_callback(np.sort, ft.ShapeDtype((2,), xp.float64), X[0])
    with pytest.raises(TreeError, match="pure_callback: result"):
        ft.pure_callback(lambda x: (x, x), like(X), X)
    with pytest.raises(TransformError, match="result_shape must hold ShapeDtype"):
        ft.pure_callback(np.sort, X.shape, X)

    class MineError(ValueError):
        pass

    def broken(x: Any) -> Any:
        raise MineError("said so")

    def call(x: Any) -> Any:
        return ft.pure_callback(broken, like(x), x)

    for run in (call, ft.jit(call), ft.vmap(call), ft.vmap(ft.jit(call)), ft.jit(ft.vmap(call))):
        with pytest.raises(MineError, match="said so"):
            run(X)

    def writes(x: Any) -> Any:
        x[0] = 1.0
        return x

    with pytest.raises(ValueError, match="read-only"):
        ft.pure_callback(writes, like(X), X)


def test_files_refuse_callbacks_by_name(tmp_path: Any) -> None:
    """A program with a callback runs, and cannot be written."""
    program = export.export(ordered, (X[0],))
    np.testing.assert_array_equal(np.asarray(program(X[1])), np.sort(np.asarray(X[1])))
    with pytest.raises(FunctError, match="pure_callback"):
        export.save(program, tmp_path / "p.funct")


def test_a_promise_of_no_dtype_is_refused() -> None:
    """What has no meaning as a dtype is told where it is written."""
    with pytest.raises(DTypeError, match="ShapeDtype: 'foo' is no dtype"):
        ft.ShapeDtype((2,), "foo")
