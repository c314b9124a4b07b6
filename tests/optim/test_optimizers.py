"""Optimizers: torch's numbers step for step, purity, transforms, and errors by their text."""

import math
from typing import Any

import attrs
import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import nn, optim, tree
from funct.errors import ArgumentError, DTypeError, TreeError
from tests import laws
from tests.optim import cases

GOLDEN = cases.stored()
each_optimizer = pytest.mark.parametrize("name", cases.OPTIMIZERS)
MAKERS = [
    lambda: optim.sgd(0.1), lambda: optim.sgd(0.1, 0.9, nesterov=True), lambda: optim.adam(0.1),
    lambda: optim.adamw(0.1, amsgrad=True), lambda: optim.adamw(optim.schedule.cosine(0.1, 5)),
    lambda: optim.chain(optim.clip_by_global_norm(0.5), optim.adam(0.1, weight_decay=0.1)),
]  # fmt: skip
each_maker = pytest.mark.parametrize("make", MAKERS)


@each_optimizer
def test_steps_are_those_that_torch_took(name: str) -> None:
    """The stored parameters are met within 1e-12, relative, at steps 1, 2, 10 and 50."""
    path = cases.by_funct(name)
    for t, expected in zip(cases.KEPT, GOLDEN[name], strict=True):
        np.testing.assert_allclose(path[t], expected, rtol=1e-12, atol=0)


def test_all_steps_are_those_of_torch() -> None:
    """All 50 steps of every optimizer agree with the torch that is installed."""
    pytest.importorskip("torch", reason="the stored numbers stand in for it")
    for name in cases.OPTIMIZERS:
        path = cases.by_torch(name)
        np.testing.assert_allclose(cases.by_funct(name), path, rtol=1e-12, atol=0, err_msg=name)
        np.testing.assert_allclose([path[t] for t in cases.KEPT], GOLDEN[name], rtol=1e-14)


def model_and_grads() -> tuple[Any, Any]:
    """Parameters with empty places, and gradients for them."""
    model = nn.Sequential(nn.Linear(3, 2, key=ft.random.key(0)), nn.BatchNorm1d(2))
    params, _ = nn.partition(model)
    grads = tree.map(lambda p: p * 2.0 + 0.5, params)
    return params, grads


@each_maker
def test_step_keeps_structure_and_dtype_and_touches_nothing(make: Any) -> None:
    """Parameters and state keep structure, shapes and dtypes; the operands are not changed."""
    opt = make()
    params, grads = model_and_grads()
    state = opt.init(params)
    before = [np.asarray(x).copy() for x in tree.leaves((params, grads, state))]
    new, later, info = opt.step(params, grads, state)
    for a, b in ((new, params), (later, state)):
        assert tree.structure(a) == tree.structure(b)
        for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
    for x, y in zip(tree.leaves((params, grads, state)), before, strict=True):
        np.testing.assert_array_equal(np.asarray(x), y)
    flat = np.concatenate([np.asarray(g).ravel() for g in tree.leaves(grads)])
    np.testing.assert_allclose(float(info.grad_norm), np.linalg.norm(flat), rtol=1e-6)
    assert (int(info.step), int(info["step"])) == (1, 1)
    assert abs(float(info.lr) - 0.1) < 1e-15


@each_maker
def test_jit_compiles_once_for_all_steps(make: Any) -> None:
    """The counter is an array: 10 steps are one compilation, and agree with eager."""
    opt = make()
    params, grads = model_and_grads()
    eager, e_state = params, opt.init(params)
    fast, f_state = params, opt.init(params)
    step = ft.jit(opt.step)
    for _ in range(10):
        eager, e_state, _ = opt.step(eager, grads, e_state)
        fast, f_state, _ = step(fast, grads, f_state)
    laws.close((fast, f_state), (eager, e_state), 1e-5, 1e-6)
    assert step.cache_info().misses == 1


def test_vmap_trains_one_model_per_learning_rate() -> None:
    """Hyper-parameters are leaves of the state: a batch of states is an ensemble."""
    opt = optim.adamw(0.1)
    rates = xp.asarray([0.1, 0.01, 0.5])
    params = xp.asarray(cases.start())

    def train(lr: Any) -> Any:
        p = params
        state = attrs.evolve(opt.init(p), lr=lr)
        for t in range(3):
            p, state, info = opt.step(p, cases.gradient(p, t), state)
        return p, info.lr

    many, used = ft.vmap(train)(rates)
    laws.same(used, rates)
    for i in range(3):
        laws.close(many[i], train(rates[i])[0], 1e-12, 1e-12)


def test_a_step_is_differentiable() -> None:
    """The derivative of training with respect to the learning rate is that of differences."""
    opt = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(0.1))
    params = xp.asarray([1.0, 0.0, -2.0])

    def final(lr: Any) -> Any:
        clip, adam = opt.init(params)
        p, state = params, (clip, attrs.evolve(adam, lr=lr))
        for _ in range(3):
            p, state, _ = opt.step(p, p * xp.asarray([1.0, 0.0, 1.0]), state)
        return xp.sum(p * p)

    at = xp.asarray(0.1)
    difference = (float(final(at + 1e-6)) - float(final(at - 1e-6))) / 2e-6
    assert abs(float(ft.grad(final)(at)) - difference) < 1e-5 * abs(difference)
    through = ft.grad(lambda p: xp.sum(opt.step(p, p * 0.0, opt.init(p))[0]))(params)
    assert through.tolist() == [1.0, 1.0, 1.0]


def test_schedule_is_read_at_the_step_that_it_rules() -> None:
    """With a schedule, info.lr is the rate of this step, and the parameters feel it."""
    opt = optim.sgd(optim.schedule.linear(1.0, 0.0, 1.0, 4))
    p = xp.asarray([0.0])
    state, rates = opt.init(p), []
    for _ in range(4):
        p, state, info = opt.step(p, xp.asarray([1.0]), state)
        rates.append(float(info.lr))
    assert rates == [0.0, 0.25, 0.5, 0.75]
    assert p.tolist() == [-1.5]


def test_clipping_is_torchs() -> None:
    """Long gradients are scaled to max_norm, short ones pass; zero gradients stay zero."""
    grads = {"a": xp.asarray([3.0, 0.0]), "b": xp.asarray(4.0)}
    clip = optim.clip_by_global_norm(1.0)
    cut, _ = clip.update(grads, clip.init(grads), grads)
    laws.close(cut, tree.map(lambda g: g * (1.0 / (5.0 + 1e-6)), grads), 1e-15, 0)
    wide = optim.clip_by_global_norm(10.0)
    laws.same(wide.update(grads, wide.init(grads), grads)[0], grads)
    zero = tree.map(lambda g: g * 0.0, grads)
    laws.same(clip.update(zero, clip.init(zero), zero)[0], zero)
    assert float(optim.global_norm({})) == 0.0
    for x in (xp.asarray([xp.nan, 1.0]), xp.full(5000, xp.nan), xp.asarray([xp.inf])):
        assert not math.isfinite(optim.global_norm(x))
        assert not math.isfinite(ft.vmap(optim.global_norm)(x[None])[0])
    assert ft.grad(optim.global_norm)(zero)["a"].tolist() == [0.0, 0.0]
    opt = optim.chain(clip, optim.sgd(1.0))
    params, _, info = opt.step(zero, grads, opt.init(zero))
    assert float(info.grad_norm) == 5.0
    assert abs(float(params["b"]) + 0.8) < 1e-6
    assert repr(opt) == "Optimizer(chain(clip_by_global_norm, sgd))"


P = {"w": xp.ones(2)}
ERRORS = [
    (lambda: optim.sgd(-1.0), ArgumentError, "sgd: lr must be >= 0, got -1.0"),
    (lambda: optim.sgd(float("nan")), ArgumentError, "sgd: lr must be >= 0, got nan"),
    (lambda: optim.sgd(nesterov=True), ArgumentError,
     "sgd: nesterov needs a momentum and no dampening"),
    (lambda: optim.adam(betas=(0.9, 1.0)), ArgumentError,
     "adam: betas[1] must be in [0, 1), got 1.0"),
    (lambda: optim.adamw(eps=-1e-8), ArgumentError, "adamw: eps must be >= 0, got -1e-08"),
    (lambda: optim.clip_by_global_norm(-1.0), ArgumentError,
     "clip_by_global_norm: max_norm must be >= 0, got -1.0"),
    (optim.chain, ArgumentError, "chain: the last part must be an Optimizer, got NoneType"),
    (lambda: optim.chain(optim.sgd(), optim.sgd()), ArgumentError,
     "chain: part 0 must be a GradientTransform, got Optimizer"),
    (lambda: optim.sgd().step({"n": xp.asarray([1])}, {"n": xp.asarray([1])}, optim.sgd().init(P)),
     DTypeError, "sgd: parameters must be floating, got int64 at n"),
    (lambda: optim.sgd().step(P, {"v": xp.ones(2)}, optim.sgd().init(P)), TreeError,
     "sgd: grads: expected the structure {'w': *}, got {'v': *}"),
    (lambda: optim.adam().step(P, optim.adam().init(P), P), ArgumentError,
     "adam.step: state must be what init gave (AdamState), got dict"),
    (lambda: optim.chain(optim.sgd()).step(P, P, optim.sgd().init(P)), ArgumentError,
     "chain(sgd).step: state must be what init gave (tuple), got SGDState"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[e[2][:30] for e in ERRORS])
def test_wrong_arguments_are_named(call: Any, kind: type[Exception], text: str) -> None:
    """Each error names the optimizer, what was expected and what came."""
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).splitlines()[0] == text
