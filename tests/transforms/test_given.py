"""What is no function, and numbers that name no argument, are refused by name, and at once."""

from collections.abc import Callable
from typing import Any

import pytest

import funct as ft
import funct.array as xp
from funct.errors import TransformError

X = xp.asarray([1.0, 2.0])


def f(*args: Any) -> Any:
    """A function."""
    return X


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "grad: fun": ft.grad,
    "value_and_grad: fun": ft.value_and_grad,
    "vjp: fun": lambda no: ft.vjp(no, X),
    "jvp: fun": lambda no: ft.jvp(no, (X,), (X,)),
    "linearize: fun": lambda no: ft.linearize(no, X),
    "linear_transpose: fun": lambda no: ft.linear_transpose(no, X),
    "jacfwd: fun": ft.jacfwd,
    "jacrev: fun": ft.jacrev,
    "hessian: fun": ft.hessian,
    "hvp: fun": lambda no: ft.hvp(no, (X,), (X,)),
    "sparse_jacobian: fun": ft.sparse_jacobian,
    "sparse_hessian: fun": ft.sparse_hessian,
    "jet: fun": lambda no: ft.jet(no, (X,), ((X,),)),
    "vmap: fun": ft.vmap,
    "jit: fun": ft.jit,
    "make_graph: fun": ft.make_graph,
    "eval_shape: fun": lambda no: ft.eval_shape(no, X),
    "checkpoint: fun": ft.checkpoint,
    "closure_convert: fun": lambda no: ft.closure_convert(no, X),
    "custom_jvp: fun": ft.custom_jvp,
    "custom_vjp: fun": ft.custom_vjp,
    "custom_vmap: fun": ft.custom_vmap,
    "defjvp: jvp": lambda no: ft.custom_jvp(f).defjvp(no),
    "defvjp: fwd": lambda no: ft.custom_vjp(f).defvjp(no, f),
    "defvjp: bwd": lambda no: ft.custom_vjp(f).defvjp(f, no),
    "def_vmap: rule": lambda no: ft.custom_vmap(f).def_vmap(no),
    "cond: true_fun": lambda no: ft.cond(False, no, f),
    "cond: false_fun": lambda no: ft.cond(True, f, no),
    "switch: branch 1": lambda no: ft.switch(0, [f, no]),
    "while_loop: cond_fun": lambda no: ft.while_loop(no, f, X),
    "while_loop: body_fun": lambda no: ft.while_loop(f, no, X),
    "fori_loop: body_fun": lambda no: ft.fori_loop(0, 3, no, X),
    "scan: f": lambda no: ft.scan(no, X, X),
    "associative_scan: fn": lambda no: ft.associative_scan(no, X[:1]),
    "map: f": lambda no: ft.map(no, X),
    "custom_root: f": lambda no: ft.custom_root(no, X, f, f),
    "custom_root: solve": lambda no: ft.custom_root(f, X, no, f),
    "custom_root: tangent_solve": lambda no: ft.custom_root(f, X, f, no),
    "custom_linear_solve: matvec": lambda no: ft.custom_linear_solve(no, X, f),
    "custom_linear_solve: solve": lambda no: ft.custom_linear_solve(f, X, no),
    "pure_callback: fun": lambda no: ft.pure_callback(no, X, X),
    "io_callback: fun": lambda no: ft.io_callback(no, X, X),
    "node_hook: fun": ft.node_hook,
    "intercept: fun": lambda no: ft.intercept(no, f),
    "intercept: rule": lambda no: ft.intercept(f, no),
    "saved_hooks: pack": lambda no: ft.saved_hooks(no, f),
    "saved_hooks: unpack": lambda no: ft.saved_hooks(f, no),
    "detect_anomaly: fun": ft.detect_anomaly,
    "check_pure: fun": lambda no: ft.check_pure(no, X),
    "check_grads: fun": lambda no: ft.check_grads(no, (X,)),
    "draw_graph: fun": ft.draw_graph,
}


@pytest.mark.parametrize("said", FUNCTIONS)
def test_what_is_no_function_is_refused_by_name(said: str) -> None:
    """At once, not at the first call of what comes back."""
    with pytest.raises(TransformError, match=f"^{said} must be a function, got int"):
        FUNCTIONS[said](3)


def test_a_result_in_place_of_its_function_is_told_how_to_mend_it() -> None:
    """grad(f(x)) is a common slip."""
    with pytest.raises(TransformError, match=r"got Array(.|\n)*fix: give the function itself"):
        ft.grad(xp.sum(X))


def total(*xs: Any) -> Any:
    """One number."""
    return xp.sum(sum(xs))


@pytest.mark.parametrize("transform", [ft.grad, ft.value_and_grad, ft.jacfwd, ft.jacrev])
@pytest.mark.parametrize(
    ("argnums", "said"),
    [
        ("x", "argnums must be an int or a sequence of ints, got 'x'"),
        (0.5, "argnums must be an int or a sequence of ints, got 0.5"),
        ([0.5], r"argnums must be an int or a sequence of ints, got \[0.5\]"),
        ((0, 0), r"argnums names an argument twice, got \(0, 0\)"),
        ((1, -1), r"argnums names an argument twice, got \(1, -1\)"),
        (2, "argnums names argument 2, the call has 2"),
    ],
)
def test_numbers_name_arguments_once(transform: Any, argnums: Any, said: str) -> None:
    """The first of two equal numbers had a gradient of zeros."""
    with pytest.raises(TransformError, match=said):
        transform(total, argnums=argnums)(X, X)


@pytest.mark.parametrize("made", [ft.custom_jvp, ft.custom_vjp])
def test_nondiff_argnums_name_arguments(made: Any) -> None:
    """A number beyond the last argument named another one."""
    with pytest.raises(TransformError, match=f"{made.__name__}: nondiff_argnums must be an int"):
        made(total, nondiff_argnums="x")
    for numbers in ((2,), (-3,), (0, -2)):
        g = made(total, nondiff_argnums=numbers)
        g.defjvp(f) if made is ft.custom_jvp else g.defvjp(f, f)
        with pytest.raises(TransformError, match="nondiff_argnums names a"):
            g(X, X)
