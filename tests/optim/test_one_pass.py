"""A step in one pass of machine code has the bits of the same step op by op."""

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import optim
from funct.errors import FunctError, ShapeError, TreeError
from funct.kernels import table

OPTIMIZERS = {
    "adam": lambda: optim.adam(1e-2),
    "adam, decay": lambda: optim.adam(1e-2, weight_decay=0.1),
    "adamw": lambda: optim.adamw(1e-2),
    "adam, amsgrad": lambda: optim.adam(1e-2, amsgrad=True),
    "sgd": lambda: optim.sgd(1e-2),
    "sgd, momentum": lambda: optim.sgd(1e-2, momentum=0.9, dampening=0.1, weight_decay=0.1),
    "sgd, nesterov": lambda: optim.sgd(1e-2, momentum=0.9, nesterov=True),
    "clipped": lambda: optim.chain(optim.clip_by_global_norm(1.0), optim.adam(1e-2)),
}
SHAPES = {"w": (130, 301), "b": (7,), "s": (), "none": (0, 3)}


def example(dtype, seed):
    rng = np.random.default_rng(seed)
    return {k: xp.asarray(rng.standard_normal(s).astype(dtype)) for k, s in SHAPES.items()}


def three_steps(opt, dtype, step):
    params = example(dtype, 0)
    state = opt.init(params)
    for seed in (1, 2, 3):
        params, state, info = step(params, example(dtype, seed), state)
    return params, state, info


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_is_the_same_in_one_pass(name, dtype, monkeypatch):
    opt = OPTIMIZERS[name]()
    fused = three_steps(opt, dtype, opt.step)
    with table.restricted():
        plain = three_steps(opt, dtype, opt.step)
    loose = name == "clipped"  # the factor comes from a sum of squares, whose order differs
    for x, y in zip(ft.tree.leaves(fused[:2]), ft.tree.leaves(plain[:2]), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-5 if loose else 0, atol=1e-7 if loose else 0)
    np.testing.assert_allclose(fused[2].grad_norm, plain[2].grad_norm, rtol=1e-5)
    assert fused[2].grad_norm.dtype == plain[2].grad_norm.dtype


@pytest.mark.parametrize("name", ["adam", "sgd, momentum"])
def test_a_traced_step_computes_the_same(name):
    opt = OPTIMIZERS[name]()
    eager = three_steps(opt, np.float32, opt.step)
    seen = three_steps(opt, np.float32, lambda *args: ft.trace_dispatch(opt.step)(*args).out)
    for x, y in zip(ft.tree.leaves(eager[:2]), ft.tree.leaves(seen[:2]), strict=True):
        np.testing.assert_array_equal(x, y)


def test_gradients_of_another_shape_are_refused_and_not_read():
    opt = optim.adam()
    params = {"w": xp.zeros((300, 300), dtype=xp.float32)}
    with pytest.raises(FunctError):
        opt.step(params, {"w": xp.ones((200, 300), dtype=xp.float32)}, opt.init(params))


@pytest.mark.parametrize("name", ["adam", "sgd, momentum"])
def test_gradients_of_another_structure_are_refused(name):
    """Also where they are a prefix of the parameters, or have a tree in the place of a leaf."""
    opt = OPTIMIZERS[name]()
    one = xp.ones(3, dtype=xp.float32)
    params = {"a": one, "b": [one, None]}
    state = opt.init(params)
    for grads in (
        one, {"a": one}, {"a": one, "b": one}, {"a": one, "b": (one, None)},
        {"a": [one], "b": [one, None]}, {"a": one, "b": [one, one]}, {"a": one, "c": [one, None]},
        [one, one], {"a": None, "b": [one, None]},
    ):  # fmt: skip
        with pytest.raises(TreeError):
            opt.step(params, grads, state)
    new, _, _ = opt.step(params, {"b": [one, None], "a": one}, state)
    assert (new["a"] == new["b"][0]).all()
    assert new["b"][1] is None


def test_leaves_of_two_dtypes_are_stepped_each_in_its_own():
    opt = optim.adam()
    params = {"a": xp.ones((300, 300), dtype=xp.float32), "b": xp.ones((300, 300))}
    new, _, _ = opt.step(params, params, opt.init(params))
    assert (new["a"].dtype, new["b"].dtype) == (xp.float32, xp.float64)
    np.testing.assert_allclose(new["a"], new["b"], rtol=1e-6)


@pytest.mark.parametrize("way", ["eager", "jit"])
@pytest.mark.parametrize("name", ["adam", "adam, amsgrad", "sgd, momentum", "clipped"])
@pytest.mark.parametrize(("shape", "other"), [((3, 1), (3,)), ((), (3,)), ((3,), ()), ((2,), (3,))])
def test_gradients_that_only_broadcast_are_refused(name, way, shape, other):
    """They would change the shape of the parameter, or move all of it by one number."""
    opt = OPTIMIZERS[name]()
    params = {"a": xp.ones(4), "w": xp.ones(shape)}
    step = ft.jit(opt.step) if way == "jit" else opt.step
    with pytest.raises(ShapeError, match="gradient of 'w'") as caught:
        step(params, {"a": xp.ones(4), "w": xp.ones(other)}, opt.init(params))
    assert str(shape) in str(caught.value)
    assert str(other) in str(caught.value)


@pytest.mark.parametrize("way", ["eager", "jit"])
@pytest.mark.parametrize("name", ["adam", "adam, amsgrad", "sgd, momentum", "clipped"])
def test_a_state_of_other_parameters_is_refused(name, way):
    opt = OPTIMIZERS[name]()
    params = {"a": xp.ones(4), "w": xp.ones(3)}
    step = ft.jit(opt.step) if way == "jit" else opt.step
    for others in ({"a": xp.ones(4)}, {**params, "x": xp.ones(3)}):
        with pytest.raises(TreeError, match="state"):
            step(params, params, opt.init(others))
    with pytest.raises(ShapeError, match="state at 'w'"):
        step(params, params, opt.init({"a": xp.ones(4), "w": xp.ones((3, 1))}))
