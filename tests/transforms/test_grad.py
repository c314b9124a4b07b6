"""Reverse and forward mode: their faces, trees, conventions, safety and errors."""

import pickle
import sys
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import DTypeError, ShapeError, TransformError, TreeError
from tests import laws


def arr(*values: Any) -> Any:
    """A float64 array."""
    return xp.asarray(np.asarray(values if len(values) != 1 else values[0], float))


def test_grad_of_trees_has_their_structure() -> None:
    """The gradient of a dict of arrays is a dict of arrays of the same shapes."""
    params = {"w": arr([1.0, 2.0]), "b": [arr(3.0), (arr(4.0), None)]}
    g = ft.grad(lambda p: xp.sum(p["w"] * p["b"][0]) * p["b"][1][0])(params)
    assert ft.tree.structure(g) == ft.tree.structure(params)
    laws.close(g, {"w": arr([12.0, 12.0]), "b": [arr(12.0), (arr(9.0), None)]})


def test_argnums_and_aux() -> None:
    """argnums picks arguments, has_aux passes data by, keywords reach the function."""

    def f(x: Any, y: Any, *, k: float = 1.0) -> Any:
        return x * y * k, {"sum": x + y}

    (gy, gx), aux = ft.grad(f, (1, 0), has_aux=True)(arr(2.0), arr(3.0), k=10.0)
    assert (float(gy), float(gx), float(aux["sum"])) == (20.0, 30.0, 5.0)
    (value, aux), g = ft.value_and_grad(f, has_aux=True)(arr(2.0), arr(3.0))
    assert (float(value), float(aux["sum"]), float(g)) == (6.0, 5.0, 3.0)
    assert aux["sum"].__class__ is ft.Array


def test_python_numbers_are_arguments_too() -> None:
    """A Python float is a 0-d array; an unused argument has gradient zero."""
    assert float(ft.grad(lambda x: x * x)(3.0)) == 6.0
    laws.close(ft.grad(lambda x, y: xp.sum(x), 1)(arr([1.0]), arr([2.0, 3.0])), arr([0.0, 0.0]))


def test_gradients_of_several_arrays_are_those_of_their_tuple() -> None:
    """Also of one array given twice, of one not used, of other floats, and under vmap."""

    def f(x: Any, y: Any, z: Any) -> Any:
        return xp.sum(x * xp.exp(y)) * 2.0

    x, narrow = arr([1.0, 2.0]), xp.asarray(np.float32([0.5, 0.25]))
    for args in ((x, x, x), (x, narrow, arr(3.0)), (narrow, x, narrow)):
        several = ft.grad(f, (0, 1, 2))(*args)
        tree = ft.grad(lambda t: f(*t))(args)
        assert [g.dtype for g in several] == [a.dtype for a in args]
        for g, h in zip(several, tree, strict=True):
            np.testing.assert_array_equal(np.asarray(g), np.asarray(h), strict=True)
    rows = xp.stack([x, x + 1.0])
    lanes = ft.vmap(lambda a: ft.grad(f, (0, 1, 2))(a, x, a)[1])(rows)
    laws.close(lanes[1], ft.grad(f, (0, 1, 2))(x + 1.0, x, x)[1])
    second = ft.grad(lambda a: xp.sum(ft.grad(f, (0, 1, 2))(a, a, a)[0]))(x)
    laws.close(second, 2.0 * xp.exp(x))
    with pytest.raises(DTypeError, match="argument 1"):
        ft.grad(f, (0, 1, 2))(x, xp.asarray([1, 2]), x)


def test_gradient_keeps_the_dtype_of_its_input() -> None:
    """A float32 input has a float32 gradient though the computation was complex128."""
    x = xp.asarray(np.float32([1, 2]))
    w, z = arr([3.0, 4.0]), xp.asarray(np.array([3 + 4j]))
    g = ft.grad(lambda x: xp.sum(xp.real(x * w * z)))(x)
    laws.close(g, xp.asarray(np.float32([9, 12])))


def test_complex_gradient_is_steepest_ascent() -> None:
    """For |z|^2 the gradient is 2z; holomorphic=True gives f'(z)."""
    z = xp.asarray(np.array(3 + 4j))
    assert complex(ft.grad(lambda z: xp.real(z * xp.conj(z)))(z)) == 6 + 8j
    d = ft.grad(lambda z: z * z * z, holomorphic=True)(z)
    np.testing.assert_allclose(np.asarray(d), 3 * (3 + 4j) ** 2)


def test_integer_inputs() -> None:
    """An integer input is an error that names it, or a Zero under allow_int."""
    tree = {"n": xp.asarray(2), "x": arr(3.0)}
    with pytest.raises(DTypeError, match="complex, got int64 in argument 0, leaf n"):
        ft.grad(lambda p: p["x"] * p["n"])(tree)
    with pytest.raises(DTypeError, match="complex, got int64 in argument 1"):
        ft.grad(lambda a, b: a * b, 1)(1.0, 2)
    g = ft.grad(lambda p: p["x"] * p["n"], allow_int=True)(tree)
    assert g["n"] == ft.Zero((), np.dtype(np.int64))
    assert float(g["x"]) == 2.0


def test_results_that_have_no_gradient() -> None:
    """A result that is no real scalar is refused, with the way out."""
    with pytest.raises(TransformError) as caught:
        ft.grad(lambda x: x * 2.0)(arr([1.0, 2.0]))
    text = str(caught.value)
    assert text.startswith("grad: the function must return a scalar, got shape (2,)")
    assert "test_grad.py" in text
    assert "fix: sum or average the result, or use vjp or jacrev" in text
    with pytest.raises(DTypeError, match="must return a real number, got int64"):
        ft.grad(lambda x: xp.astype(x, xp.int64))(arr(1.0))
    with pytest.raises(DTypeError, match="must return a real number, got complex128"):
        ft.grad(lambda z: z * 1j)(arr(1.0))
    with pytest.raises(TransformError, match="has_aux=True the function must return"):
        ft.grad(lambda x: x, has_aux=True)(arr(1.0))
    with pytest.raises(TransformError, match="argnums names argument 2, the call has 1"):
        ft.grad(lambda x: x, argnums=2)(arr(1.0))


def test_pullback_may_be_called_again_and_checks_its_cotangent() -> None:
    """pull(ct) is a function of ct; a cotangent that does not fit is refused."""
    out, pull = ft.vjp(lambda x, y: {"p": x * y}, arr([1.0, 2.0]), arr([3.0, 4.0]))
    for k in (1.0, 2.0):
        gx, gy = pull({"p": arr([k, k])})
        laws.close((gx, gy), (arr([3.0 * k, 4.0 * k]), arr([1.0 * k, 2.0 * k])))
    with pytest.raises(TreeError, match="vjp: cotangent"):
        pull(arr([1.0, 1.0]))
    with pytest.raises(ShapeError, match=r"output's shape \(2,\), got \(3,\)"):
        pull({"p": arr([1.0, 1.0, 1.0])})
    laws.close(out["p"], arr([3.0, 8.0]))


@ft.custom_vjp
def _tripled(x: Any) -> Any:
    return x * 3.0


_tripled.defvjp(lambda x: (x * 3.0, x), lambda x, ct: (ct * 3.0 + 0.0 * x,))

PICKLED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "trees": (
        lambda p, k: {"a": xp.tanh(p["x"] @ xp.ones((3, 4))), "k": k + 1, "c": xp.ones(2)},
        ({"x": xp.asarray([[0.3, -0.5, 2.0]])}, xp.arange(3)),
    ),
    "nothing varies": (lambda x: xp.ones(3), (xp.ones(2),)),
    "no floats": (lambda k: k * 2, (xp.arange(3),)),
    "complex": (lambda z: xp.exp(z) * z, (xp.asarray([1 + 2j, -0.5j]),)),
    "structural zeros": (lambda x: xp.sqrt(xp.where(x > 1, x, 0.0)), (xp.asarray([0.5, 2.0]),)),
    "jit": (ft.jit(lambda x: xp.sum(xp.sin(x) * x, axis=0)), (xp.ones((5, 2)),)),
    "loop": (
        ft.jit(lambda x: ft.while_loop(lambda x: xp.sum(x) < 50, lambda x: x * 1.5, x)),
        (xp.asarray([1.0, 2.0]),),
    ),
    "scan": (
        ft.jit(lambda x: ft.scan(lambda c, k: (xp.sin(c) * k, c), x, xp.arange(5.0))),
        (xp.asarray([1.0, 2.0]),),
    ),
    "own rule": (lambda x: xp.sin(_tripled(x)), (xp.asarray([0.1, 0.2]),)),
    "half": (lambda x: xp.sum(x * x), (xp.asarray([0.1, 0.2], dtype=xp.bfloat16),)),
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("name", PICKLED)
def test_a_pullback_pickles(name: str) -> None:
    """With the same cotangents, checks, and derivatives of its own."""
    fun, primals = PICKLED[name]
    out, pull = ft.vjp(fun, *primals)
    again = pickle.loads(pickle.dumps(pull))
    ct = ft.tree.map(lambda o: xp.ones_like(o) * 2, out)
    ours, theirs = again(ct), pull(ct)
    assert ft.tree.structure(ours) == ft.tree.structure(theirs)
    for a, b in zip(ft.tree.leaves(ours), ft.tree.leaves(theirs), strict=True):
        if isinstance(b, ft.Array):
            laws.same(a, b)
        else:
            assert a == b
    with pytest.raises(ft.errors.TreeError):
        again([ct])
    further = pickle.loads(pickle.dumps(again))
    laws.same([a for a in ft.tree.leaves(further.once(ct)) if isinstance(a, ft.Array)],
              [a for a in ft.tree.leaves(theirs) if isinstance(a, ft.Array)])  # fmt: skip
    with pytest.raises(ft.errors.TransformError, match="used up"):
        further(ct)
    with pytest.raises(ft.errors.TransformError, match="used up"):
        pickle.dumps(further)


def test_what_a_pickled_pullback_does_is_differentiated_and_batched() -> None:
    """It is a linear function of its cotangents, under every transform."""
    _, pull = ft.vjp(xp.sin, xp.asarray([0.1, 0.2, 0.3]))
    again = pickle.loads(pickle.dumps(pull))
    cts = xp.asarray([[1.0, 2.0, 3.0], [0.0, 1.0, 0.5]])
    for wrap, given in ((ft.vmap, cts), (lambda f: ft.jit(ft.vmap(f)), cts), (ft.jacrev, cts[0])):
        laws.close(wrap(lambda c: again(c)[0])(given), wrap(lambda c: pull(c)[0])(given))


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("name", PICKLED)
def test_what_linearize_gives_pickles(name: str) -> None:
    """With the same tangents, checks, and derivatives of its own."""
    fun, primals = PICKLED[name]
    _, push = ft.linearize(fun, *primals)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(push))))
    along = ft.tree.map(lambda x: xp.ones_like(x) * 2, primals)
    laws.same(again(*along), push(*along))
    laws.same(ft.jit(again)(*along), ft.jit(push)(*along))
    laws.same(ft.jvp(again, along, along), ft.jvp(push, along, along))
    with pytest.raises(TreeError, match="linearize: tangents"):
        again([*along])


@pytest.mark.parametrize("count", [1, 3])
def test_derivatives_in_arrays_themselves_cost_few_frames(count: int) -> None:
    """On few elements Python's frames are the cost: no trees are walked for arrays."""
    xs = [xp.ones(())] * count
    frames = list[str]()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            frames.append(frame.f_code.co_name)

    def first(*xs: Any) -> Any:
        return xs[0]

    slope, both = ft.grad(first, argnums=tuple(range(count))), ft.value_and_grad(first)
    for case in (lambda: ft.vjp(first, *xs)[1](xs[0]), lambda: slope(*xs), lambda: both(*xs)):
        case()
        frames.clear()
        sys.setprofile(note)
        try:
            case()
        finally:
            sys.setprofile(None)
        assert len(frames) <= 16 + 5 * count, frames  # a zero is made for what is not used


def test_a_pullback_of_traced_values_does_not_pickle() -> None:
    """It says what to do instead."""

    def f(x: Any) -> Any:
        pickle.dumps(ft.vjp(lambda y: x * y, x)[1])
        return x

    def g(x: Any) -> Any:
        pickle.dumps(ft.linearize(lambda y: x * y, x)[1])
        return x

    for fun in (f, g):
        for wrap in (ft.jit, ft.vmap, ft.grad):
            with pytest.raises(ft.errors.TransformError, match="holds traced values"):
                wrap(fun)(xp.ones(3) if wrap is not ft.grad else xp.asarray(1.0))


def test_tangents_are_checked() -> None:
    """A tangent has its primal's structure and shape."""
    with pytest.raises(TreeError, match="jvp: tangents"):
        ft.jvp(lambda x: x, (arr(1.0),), (arr(1.0), arr(2.0)))
    with pytest.raises(ShapeError, match=r"primal's shape \(\), got \(2,\)"):
        ft.jvp(lambda x: x, (arr(1.0),), (arr([1.0, 2.0]),))


def test_jvp_aux_and_constant_results() -> None:
    """A result that does not vary has tangent zero; aux is returned as it is."""
    out, tangent, aux = ft.jvp(
        lambda x: ((x * 2.0, arr(5.0)), x + 1.0), (arr(1.0),), (arr(1.0),), has_aux=True
    )
    laws.close((out, tangent, aux), ((arr(2.0), arr(5.0)), (arr(2.0), arr(0.0)), arr(2.0)))


def test_linear_transpose() -> None:
    """The transpose of a sum spreads, over several operands."""
    spread = ft.linear_transpose(
        lambda x, y: xp.sum(x * 3.0, axis=0) + y, xp.ones((2, 3)), xp.ones(3)
    )
    gx, gy = spread(arr([1.0, 2.0, 3.0]))
    laws.close(gx, arr([[3.0, 6.0, 9.0]] * 2))
    laws.close(gy, arr([1.0, 2.0, 3.0]))


def test_jacobians_of_trees() -> None:
    """jacfwd = jacrev on a function from a dict to a tuple, in the nested layout."""

    def f(p: Any) -> Any:
        return xp.sin(p["a"]) * p["b"], xp.sum(p["a"])

    p = {"a": arr([0.1, 0.2, 0.3]), "b": arr(2.0)}
    forward, reverse = ft.jacfwd(f)(p), ft.jacrev(f)(p)
    laws.close(forward, reverse)
    assert forward[0]["a"].shape == (3, 3)
    assert forward[0]["b"].shape == (3,)
    assert forward[1]["a"].shape == (3,)
    two = ft.jacrev(lambda x, y: x * y, (0, 1))(arr([1.0, 2.0]), arr([3.0, 4.0]))
    laws.close(two, (arr([[3.0, 0.0], [0.0, 4.0]]), arr([[1.0, 0.0], [0.0, 2.0]])))


def test_hessian_and_hvp_agree() -> None:
    """hvp is the Hessian times a vector; the Hessian of a tree is a tree of trees."""
    x, t = arr([0.3, -0.4, 0.5]), arr([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        return xp.sum(xp.exp(x) * x) * xp.sum(x)

    laws.close(ft.hvp(f, (x,), (t,)), ft.hessian(f)(x) @ t)
    h = ft.hessian(lambda p: p["u"] * p["v"] * p["v"])({"u": arr(2.0), "v": arr(3.0)})
    assert float(h["u"]["v"]) == 6.0
    assert float(h["v"]["v"]) == 4.0


def test_structural_zeros_are_safe() -> None:
    """What `where` does not choose has derivative 0, were it NaN, at first and second order."""

    def f(x: Any) -> Any:
        return xp.where(x < 1.0, x, xp.sqrt(x))

    with np.errstate(all="ignore"):
        for wrap in (lambda g: g, ft.jit):
            for x, first, second in ((0.0, 1.0, 0.0), (4.0, 0.25, -0.03125)):
                assert float(wrap(ft.grad(f))(arr(x))) == first
                assert float(wrap(ft.grad(wrap(ft.grad(f))))(arr(x))) == second
                assert float(ft.jvp(wrap(ft.grad(f)), (arr(x),), (arr(1.0),))[1]) == second
            assert (
                float(wrap(ft.grad(lambda x: xp.where(x > 0.0, x * xp.log(x), 0.0)))(arr(0.0)))
                == 0.0
            )
            laws.close(ft.vmap(wrap(ft.grad(f)))(arr([0.0, 4.0])), arr([1.0, 0.25]))


def test_accidental_zeros_are_no_structural_ones() -> None:
    """Below `where`, a cotangent that happens to be 0 still varies: second derivatives see it."""

    def f(x: Any) -> Any:
        return xp.where(x < 5.0, xp.sin(x) * x, x)

    for h in (ft.hessian(f), ft.grad(ft.grad(f)), ft.jit(ft.hessian(f)), ft.jacrev(ft.jacfwd(f))):
        assert float(h(arr(0.0))) == 2.0


def test_a_true_zero_times_infinity_is_not_hidden() -> None:
    """sqrt(x) * sqrt(x) at 0 has no finite derivative by the chain rule, and says so."""
    with np.errstate(all="ignore"):
        assert np.isnan(float(ft.grad(lambda x: xp.sqrt(x) * xp.sqrt(x))(arr(0.0))))


def test_conventions_at_kinks() -> None:
    """Ties share, relu'(0) = abs'(0) = 0, hypot'(0, 0) = 0, products of zeros are exact."""
    assert float(ft.grad(lambda x: xp.maximum(x, 1.0))(arr(1.0))) == 0.5
    laws.close(ft.grad(xp.max)(arr([2.0, 2.0, 1.0])), arr([0.5, 0.5, 0.0]))
    assert float(ft.grad(xp.abs)(arr(0.0))) == 0.0
    assert float(ft.grad(lambda x: xp.hypot(x, 0.0 * x))(arr(0.0))) == 0.0
    laws.close(ft.grad(xp.prod)(arr([0.0, 2.0, 3.0])), arr([6.0, 0.0, 0.0]))
    laws.close(ft.grad(xp.prod)(arr([0.0, 0.0, 3.0])), arr([0.0, 0.0, 0.0]))
    assert float(ft.grad(lambda x: x**0)(arr(0.0))) == 0.0
    assert float(ft.grad(lambda y: arr(0.0) ** y)(arr(2.0))) == 0.0


def test_stop_gradient() -> None:
    """A stopped value is a constant, under every transform, on trees."""

    def f(x: Any) -> Any:
        return x * ft.stop_gradient({"x": x})["x"]

    for g in (ft.grad(f), ft.jit(ft.grad(f)), ft.grad(ft.jit(f))):
        assert float(g(arr(3.0))) == 3.0
    assert float(ft.jvp(f, (arr(3.0),), (arr(1.0),))[1]) == 3.0


def test_long_chains_do_not_recurse() -> None:
    """Ten thousand ops differentiate, eager and compiled, without a recursion error."""

    def f(x: Any) -> Any:
        for _ in range(10_000):
            x = x * 1.0001
        return x

    g = float(ft.grad(f)(arr(1.0)))
    assert abs(g - 1.0001**10_000) < 1e-9
    assert float(ft.jvp(f, (arr(1.0),), (arr(1.0),))[1]) == pytest.approx(g)
    assert float(ft.make_graph(f)(arr(1.0))(arr(1.0))[0]) == pytest.approx(g)


def test_dead_branches_are_freed() -> None:
    """A branch that no result needs is collected by reference count, without the cycle
    collector.
    """
    import gc
    import weakref

    class Probe:
        pass

    gc.disable()
    try:
        probe = Probe()
        seen = weakref.ref(probe)

        def f(x: Any, holder: Any = probe) -> Any:
            y = x * 2.0
            for _ in range(3):
                xp.sin(y)
            return y

        ft.grad(f)(arr(1.0))
        del f, probe
        assert seen() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("x", [0.0, 0.0j])
def test_abs_and_sign_at_zero(x: complex) -> None:
    """Their derivatives at 0 are 0, to second order, for real and complex numbers."""
    z = xp.asarray([x, x])
    for fun in (xp.abs, lambda v: xp.real(xp.sign(v)), lambda v: xp.abs(v) ** 2 * xp.abs(v)):
        first = ft.grad(lambda v, fun=fun: xp.sum(fun(v)))
        assert first(z).tolist() == [0.0, 0.0]
        pushed = ft.jvp(first, (z,), (xp.ones_like(z),))[1]
        assert pushed.tolist() == [0.0, 0.0]
        twice = ft.grad(lambda v, first=first: xp.real(xp.sum(first(v))))
        assert twice(z).tolist() == [0.0, 0.0]
