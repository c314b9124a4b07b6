"""jit and sizes: an axis that varies costs two compilations, whatever lengths come."""

import logging
import math
import numbers
import operator
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import nn
from tests import laws

W = xp.asarray(np.random.default_rng(0).normal(size=(3, 4)))
SIZES = (4, 7, 2, 9, 1, 7, 3, 4, 12)


def data(n: int) -> Any:
    """(n, 3), different for every n."""
    return xp.asarray(np.random.default_rng(n).normal(size=(n, 3)))


def _ones_like(x: Any) -> Any:
    """A function that insists on its length, and brings its own derivative."""
    return x * xp.asarray(np.ones((x.shape[0], 1)))


_with_rule = ft.custom_vjp(_ones_like)
_with_rule.defvjp(lambda x: (_ones_like(x), None), lambda _, ct: (ct,))

OPEN: dict[str, Any] = {
    "linear": lambda x: xp.tanh(x @ W),
    "mean": lambda x: xp.mean(x * x, axis=0),
    "softmax": lambda x: xp.exp(x - xp.logsumexp(x, axis=1, keepdims=True)),
    "flat": lambda x: xp.reshape(x, (-1,)) * 2.0,
    "merge": lambda x: xp.reshape(x, (x.shape[0] * 3, 1)),
    "concat": lambda x: xp.concat([x, x * 2.0]),
    "tail": lambda x: x[1:] if x.shape[0] > 1 else x,
    "last": lambda x: x[-1],
    "sort": lambda x: xp.sort(x, axis=0),
    "scan": lambda x: xp.cumulative_sum(x, axis=0),
    "square": lambda x: x @ xp.permute_dims(x, (1, 0)),
    "grad": ft.grad(lambda x: xp.sum(xp.sin(x) * x) / 2.0),
    "grad of mean": ft.grad(lambda x: xp.mean(xp.tanh(x @ W))),
    "per row": ft.vmap(ft.grad(lambda r: xp.sum(r * r * r))),
    "jvp": lambda x: ft.jvp(xp.sin, (x,), (x,))[1],
    "noise": lambda x: x + ft.random.normal(ft.random.key(0), x.shape),
    "zeros": lambda x: xp.concat([x, xp.zeros((x.shape[0], 2))], axis=1),
    "carried": lambda x: ft.scan(lambda c, k: (xp.tanh(c) * k, xp.sum(c)), x, xp.arange(4.0)),
    "steps": lambda x: ft.scan(lambda c, r: (c + xp.sum(r * r), c * r), xp.asarray(0.0), x),
    "grad of steps": ft.grad(lambda x: ft.scan(lambda c, r: (c + xp.sum(r), None), 0.0, x)[0]),
    "grad of carried": ft.grad(
        lambda x: xp.sum(ft.scan(lambda c, k: (xp.tanh(c @ (c.T @ c)) * k, None), x, x[:2, 0])[0])
    ),
    "length": lambda x: ft.scan(lambda c, _: (c * 1.1, c), xp.sum(x), None, length=x.shape[0]),
    "for": lambda x: ft.fori_loop(0, x.shape[0], lambda i, c: c * 1.1 + i, x),
    "rows in a loop": lambda x: ft.map(lambda r: ft.scan(lambda c, _: (c * 0.5, c), r, None, 3), x),
    "rows of loops": ft.vmap(ft.grad(lambda r: ft.scan(lambda c, k: (c * k, None), r, r)[0][0])),
    "cond": lambda x: ft.cond(xp.sum(x) > 0, lambda x: x * 2.0, lambda x: -x, x),
    "grad of cond": ft.grad(
        lambda x: xp.sum(ft.cond(xp.sum(x) > 0, lambda x: x * x, lambda x: -xp.sin(x), x))
    ),
    "while": lambda x: ft.while_loop(lambda x: xp.sum(x * x) < 50.0, lambda x: x * 1.5, x),
    "grad of while": ft.grad(
        lambda x: xp.sum(
            ft.while_loop(lambda x: xp.sum(x * x) < 50.0, lambda x: x * 1.5 + xp.sin(x), x)
        )
    ),
    "slices in a loop": ft.grad(
        lambda x: xp.sum(ft.scan(lambda c, _: (c * 1.1, xp.sum(c[1:] * c[:-1])), x, None, 3)[1])
    ),
    "zeros in a loop": lambda x: ft.scan(
        lambda c, _: (c + xp.ones((x.shape[0], 1)), xp.zeros(c.shape)), x, None, length=3
    ),
    "again": ft.grad(lambda x: xp.sum(ft.checkpoint(lambda x: xp.sin(xp.sin(x)))(x))),
    "jacobian": lambda x: ft.jacrev(lambda v: xp.tanh(v) * xp.sum(v))(x[:, 0]),
    "pushed jacobian": lambda x: ft.jacfwd(lambda v: xp.tanh(v) * xp.sum(v))(x[:, 0]),
    "hessian": ft.hessian(lambda x: xp.sum(xp.sin(x) * xp.sum(x))),
    "push of a loop": lambda x: ft.jvp(
        lambda x: ft.scan(lambda c, r: (c * xp.sum(r), c), x, x)[0], (x,), (x * 2.0,)
    ),
    "prefixes": lambda x: ft.associative_scan(xp.add, x),
    "prefixes from the end": lambda x: ft.associative_scan(
        lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (x.T, x.T * 2), reverse=True, axis=1
    ),
    "prefixes of rows": ft.vmap(lambda r: ft.associative_scan(xp.multiply, r), 1),
    "grad of prefixes": ft.grad(lambda x: xp.sum(ft.associative_scan(xp.multiply, x) ** 2)),
    "rows of whiles": ft.vmap(
        lambda r: ft.while_loop(
            lambda s: s[0] < xp.sum(s[1] > 0),
            lambda s: (s[0] * 2, s[1][xp.maximum(xp.arange(r.shape[0]) - s[0], 0)] + xp.mean(s[1])),
            (1, r),
        )[1],
        1,
    ),
    "least squares": lambda x: xp.linalg.lstsq(xp.concat([xp.eye(3), x]), xp.ones(x.shape[0] + 3)),
    "grad of least squares": ft.grad(
        lambda x: xp.sum(
            xp.linalg.lstsq(xp.concat([xp.eye(3), x]), xp.ones(x.shape[0] + 3))[0] ** 2
        )
    ),
    "powers": lambda x: xp.vander(x[:, 0])[0],
    "polynomial": lambda x: xp.polyfit(
        xp.concat([xp.arange(3.0), x[:, 0]]), xp.concat([xp.ones(3), x[:, 1]]), 2
    ),
    "rank": xp.linalg.matrix_rank,
    "variables": lambda x: xp.corrcoef(x + 1 / (1 + x * x)),
    "several of a row": lambda x: ft.vmap(lambda r, i: r[i])(x.T, xp.argsort(x.T, axis=1)),
    "numbers times a length": lambda x: xp.sum(x) + xp.arange(4.0) * x.shape[0],
    "one number for all": lambda x: x + xp.broadcast_to(xp.asarray([1.0, 2.0, 3.0]), x.shape),
    "ctc": lambda x: nn.functional.ctc_loss(
        xp.stack([nn.functional.log_softmax(x, 1)] * 5),
        xp.astype(x[:, :2] > 0, "int64") + 1,
        xp.broadcast_to(xp.asarray(5), x.shape[:1]),
        xp.broadcast_to(xp.asarray(2), x.shape[:1]),
    ),
    "tree": lambda x: {"y": x + 1.0, "z": (xp.sum(x), "text")},
}
FIXED: dict[str, Any] = {
    "loop": lambda x: sum((x[i] for i in range(x.shape[0])), 0.0 * x[0]),
    "scale": lambda x: x * x.shape[0],
    "count": lambda x: (x, x.shape[0]),
    "numpy": lambda x: x + xp.asarray(np.arange(x.shape[0], dtype=float)[:, None]),
    "branch": lambda x: x * 2.0 if x.shape[0] == 7 else -x,
    "list": lambda x: [x[i] for i in range(x.shape[0])],
    "half": lambda x: sum((x[i] for i in range(x.shape[0] // 2)), 0.0 * x[0]),
    "in a call": _with_rule,
    "shape": lambda x: (x.shape, {"rows": x.shape[:1], "y": x}),
}


@pytest.mark.parametrize("name", OPEN)
def test_two_compilations_serve_all_sizes(name: str) -> None:
    """Results equal eager's for every length; beyond length 1, two compilations do."""
    f = ft.jit(OPEN[name])
    for n in SIZES:
        laws.close(
            [v for v in ft.tree.leaves(f(data(n))) if not isinstance(v, str)],
            [v for v in ft.tree.leaves(OPEN[name](data(n))) if not isinstance(v, str)],
            1e-12,
            1e-12,
        )
    assert f.cache_info().misses <= 4, f.explain()
    g = ft.jit(OPEN[name])
    for n in range(2, 52):
        g(data(n))
    assert g.cache_info().misses == 2, g.explain()


NUMBERS: dict[str, Any] = {
    "len": lambda x: xp.sum(x, axis=0) / len(x),
    "float": lambda x: x * float(x.shape[0]),
    "inverse": lambda x: xp.sum(x, axis=0) * (1 / x.shape[0]) + 1.0 / len(x),
    "root": lambda x: x / x.shape[0] ** 0.5 - math.sqrt(x.shape[0]),
    "numpy's root": lambda x: x * np.sqrt(x.shape[0]),
    "half": lambda x: x * (x.shape[0] / 2) + len(x) // 2,
    "every second": lambda x: x[::2] * 2,
    "backwards": lambda x: x[::-2] * len(x),
    "linspace": lambda x: x * xp.linspace(0, 1, x.shape[0])[:, None],
    "fractions": lambda x: x * xp.arange(x.shape[0])[:, None] * (1 / x.shape[0]),
    "numpy's arange": lambda x: x + np.arange(x.shape[0])[:, None],
    "padded": lambda x: xp.concat([x, xp.zeros((len(x), 3), dtype=x.dtype)]),
    "mesh": lambda x: xp.stack(xp.meshgrid(xp.arange(len(x)), xp.arange(3), indexing="ij")),
    "frequencies": lambda x: x * xp.fft.fftfreq(x.shape[0])[:, None],
    "put": lambda x: x.at[1:].add(x[:-1] * len(x)),
    "permuted": lambda x: x[ft.random.permutation(ft.random.key(0), x.shape[0])],
    "compared": lambda x: xp.where(x > len(x) / 20, x, len(x)),
    "beyond": lambda x: xp.where(x > len(x) * 100, x, -x),
    "power": lambda x: x ** (len(x) % 3),
    "remainder": lambda x: x * (len(x) // 8),
    "grad": lambda x: ft.grad(lambda y: xp.sum(y * xp.astype(y, float)) / len(y))(x * 1.0),
    "decided": lambda x: x * len(x) if xp.sum(x * 0) == 0 else -x,
    "branch": lambda x: x * len(x) if len(x) < 20 else x - len(x),
}


@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", ["float32", "int8", "int64", "complex64", "bfloat16"])
@pytest.mark.parametrize("name", NUMBERS)
def test_functions_that_know_their_size_as_a_number(name: str, dtype: str) -> None:
    """Captured for each size, compiled for two, and once more where the program changes."""
    fun = NUMBERS[name]
    f = ft.jit(fun)
    for n in (5, *range(2, 16), 30, 52, 5):
        values = np.random.default_rng(n).integers(-5, 5, (n, 3))
        x = xp.astype(xp.asarray(values), getattr(xp, dtype))
        try:
            expected = fun(x)
        except ft.errors.DTypeError:
            with pytest.raises(ft.errors.DTypeError):
                f(x)
            return
        laws.same(f(x), expected)
    no_int8 = name == "beyond" and dtype == "int8"  # its numbers have no array of that dtype
    most = 16 if no_int8 else {"branch": 4, "power": 4}.get(name, 2)
    assert f.cache_info().misses <= most, f.explain()


def test_sizes_as_numbers_share_machine_code(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is assembled from the fourth size on: the third is odd, so that a rest is left."""
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")  # where others may have left some of it
    f = ft.jit(lambda x: xp.exp(x[::2] - xp.max(x)) / float(x.shape[0]) + 1 / len(x))
    for n in (500, 600, 701, 700, 900, 903):
        with caplog.at_level(logging.DEBUG, "funct.code"):
            caplog.clear()
            x = xp.asarray(np.random.default_rng(n).normal(size=(n, 500)))
            found = f(x)
        assert n in (500, 600, 701) or "kernel" not in caplog.text
        laws.close(found, f.fun(x), 1e-12, 1e-12)  # eager code of its own may be made for it
    assert f.cache_info().misses == 2


@pytest.mark.parametrize("name", FIXED)
def test_functions_that_know_their_size_stay_right(name: str) -> None:
    """What reads the length as a number is compiled for it, and right for every length."""
    f = ft.jit(FIXED[name])
    for n in SIZES:
        ours, eager = f(data(n)), FIXED[name](data(n))
        assert ft.tree.structure(ours) == ft.tree.structure(eager)
        laws.close(ours, eager, 1e-12, 1e-12)


def test_two_arrays_whose_sizes_vary_together_or_not() -> None:
    """Broadcasting of lengths 1 and equal lengths is never confused."""
    f = ft.jit(lambda x, y: xp.sum(x + y, axis=0) + x.shape[1])
    for n, m in ((4, 4), (7, 7), (7, 1), (1, 7), (1, 1), (5, 5), (2, 2), (1, 3), (9, 1)):
        x, y = data(n), data(m) * 2.0
        laws.close(f(x, y), xp.sum(x + y, axis=0) + 3, 1e-12, 1e-12)
    with pytest.raises(ValueError, match=r"shapes \(4, 3\) and \(5, 3\) cannot be broadcast"):
        f(data(4), data(5))


@pytest.mark.parametrize("fun", [
    lambda x: nn.functional.softmax(x, 0), lambda x: nn.functional.log_softmax(x, 0),
    lambda x: xp.max(x, axis=0), lambda x: xp.argmin(x, axis=0), lambda x: xp.logsumexp(x, axis=0),
    ft.grad(lambda x: xp.sum(nn.functional.softmax(x @ x.mT, 0) @ x)), lambda x: xp.mean(x, axis=1),
])  # fmt: skip
def test_no_elements_after_some(fun: Any) -> None:
    """A path for all lengths is none for 0, where a program may be another one or an error."""
    f = ft.jit(fun)
    for n in (4, 7, 0, 9, 0):
        try:
            expected = fun(data(n))
        except ft.errors.ShapeError as error:
            with pytest.raises(ft.errors.ShapeError, match=str(error).split(":")[0]):
                f(data(n))
            continue
        laws.close(f(data(n)), expected, 1e-12, 1e-12)
    assert f.cache_info().misses <= 3


@pytest.mark.in_turn
@pytest.mark.parametrize("first", [(0, 1), (1, 0), (4, 1, 0), (5, 0, 1), (3, 8, 0, 1), ()])
@pytest.mark.parametrize("fun", [
    lambda x: xp.tanh(x @ W), lambda x: x + x[:, :1] * xp.mean(x), lambda x: xp.concat([x, x]),
    ft.value_and_grad(lambda x: xp.sum(xp.sin(x) @ W)), ft.vmap(ft.grad(lambda r: xp.sum(r**3))),
    lambda x: ft.scan(lambda c, r: (c * 0.5 + r, c), xp.zeros(3), x),
])  # fmt: skip
def test_fifty_lengths_in_any_order(fun: Any, first: tuple[int, ...]) -> None:
    """0 and 1 among them: one path begins with a length of 1, and none has to be there for 0."""
    f = ft.jit(fun)
    for n in (*first, *range(50)):
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            laws.close(f(data(n)), fun(data(n)), 1e-12, 1e-12)
    assert f.cache_info().misses <= 2


def test_a_length_of_1_that_meets_others() -> None:
    """It broadcasts, which no other length does; the path for those begins with one of them."""
    f = ft.jit(lambda x, y: xp.sum(x * y, axis=0))
    y = data(4)
    for n in (4, 1, 4, 1):
        laws.close(f(data(n), y), xp.sum(data(n) * y, axis=0), 1e-12, 1e-12)
    for n in (5, 6, 7):
        laws.close(f(data(n), data(n)), xp.sum(data(n) * data(n), axis=0), 1e-12, 1e-12)


@pytest.mark.in_turn
@pytest.mark.parametrize("fun", [
    lambda x, y: x * y + x, lambda x, y: xp.sum(xp.where(x > y, x, y), axis=0),
    ft.grad(lambda x, y: xp.sum(xp.sin(x * y) * x), argnums=(0, 1)),
    lambda x, y: xp.tanh(x) @ (W * xp.sum(y)) + xp.mean(x + y), lambda x, y: xp.hypot(x.T, y.T),
])  # fmt: skip
@pytest.mark.parametrize("ones", [(0, 1), (1, 0), (0, 1, 1, 0)])
def test_lengths_of_1_beside_fifty_lengths(fun: Any, ones: tuple[int, ...]) -> None:
    """Both are long, or the first is, or the second: a path each, after two calls of others."""
    f = ft.jit(fun)
    for n in range(2, 52):
        short = ones[n % len(ones)]
        for pair in ((n, n), (n, 1) if short else (1, n), (1, n) if short else (n, 1)):
            x, y = data(pair[0]), data(pair[1]) * 0.5
            laws.close(f(x, y), fun(x, y), 1e-12, 1e-12)
    assert f.cache_info().misses <= 5


@pytest.mark.parametrize("way", ["graph", "show", "lower"])
def test_what_runs_for_no_elements_can_be_looked_at(way: str) -> None:
    """Also where such a call was answered without a path."""
    f = ft.jit(lambda x: xp.tanh(x) * 2)
    for n in (3, 0):
        f(data(n))
    assert getattr(f, way)(data(0)) is not None


def test_empty_arrays() -> None:
    """Length 0 gives eager's result or eager's error."""
    f = ft.jit(lambda x: xp.sum(x * 2.0, axis=0))
    for n in (3, 5, 0, 8, 0):
        laws.close(f(data(n)), xp.sum(data(n) * 2.0, axis=0))


def test_decisions_on_values_and_sizes_together() -> None:
    """Two outcomes of an if, any length: each outcome has its own path."""

    def f(x: Any) -> Any:
        return x * 2.0 if xp.sum(x) > 0 else -x

    g = ft.jit(f)
    for n in (3, 4, 5, 6, 3, 4, 8, 11):
        for sign in (1.0, -1.0):
            laws.same(g(data(n) * sign), f(data(n) * sign))
    assert g.cache_info().misses <= 4, g.explain()
    assert "sizes vary: one path for any axis 0 of x" in g.explain()


def test_derivatives_of_a_function_compiled_for_any_size() -> None:
    """grad, jvp and vmap of it are right at every length."""
    f = ft.jit(lambda x: xp.sum(xp.tanh(x @ W)))
    for n in SIZES:
        x = data(n)
        laws.close(ft.grad(f)(x), ft.grad(f.fun)(x), 1e-12, 1e-12)
        laws.close(ft.jvp(f, (x,), (x,)), ft.jvp(f.fun, (x,), (x,)), 1e-12, 1e-12)
        laws.close(
            ft.grad(lambda x: xp.sum(ft.grad(f)(x) ** 2))(x),
            ft.grad(lambda x: xp.sum(ft.grad(f.fun)(x) ** 2))(x),
            1e-12,
            1e-12,
        )
        y = xp.stack([x, x * 2.0])
        laws.close(ft.vmap(f)(y), ft.vmap(f.fun)(y), 1e-12, 1e-12)


def test_training_step_of_a_network() -> None:
    """A CNN's loss and gradient: every batch size from 2 to 20 costs two compilations in all."""
    keys = ft.random.split(ft.random.key(0), 2)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3, key=keys[0]), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(8, 3, key=keys[1]),
    )  # fmt: skip
    params, rest = nn.partition(model)

    def loss(params: Any, x: Any, y: Any) -> Any:
        logits, _ = nn.combine(params, rest)(x)
        return nn.functional.cross_entropy(logits, y)

    step = ft.jit(ft.value_and_grad(loss))
    rng = np.random.default_rng(0)
    for n in range(2, 21):
        x = xp.asarray(rng.normal(size=(n, 1, 6, 6)).astype(np.float32))
        y = xp.asarray(rng.integers(0, 3, n))
        laws.close(step(params, x, y), ft.value_and_grad(loss)(params, x, y), 1e-4, 1e-5)
    assert step.cache_info().misses == 2, step.explain()


def test_fifty_batch_sizes() -> None:
    """Two compilations, and hits for the rest."""
    f = ft.jit(lambda x: xp.mean(xp.tanh(x @ W), axis=0))
    for n in range(2, 52):
        f(data(n))
    assert f.cache_info() == (48, 2, 2)


_AT = xp.asarray([-1, 1, 0])
_ROWS = xp.asarray(np.arange(1.0, 7.0).reshape(3, 2))
KNOWN: dict[str, Any] = {
    "rows": lambda x, op: op(x.at[_AT])(_ROWS),
    "one number": lambda x, op: op(x.at[_AT])(2.0),
    "elements": lambda x, op: op(x.at[_AT, xp.asarray([0, 1, -2])])(_ROWS[:, 0]),
    "of a new array": lambda x, op: op(xp.ones(x.shape[0]).at[_AT])(2.0),
    "slopes": lambda x, op: ft.grad(lambda x: xp.sum(op(x.at[_AT])(_ROWS) * x))(x),
    "tangents": lambda x, op: ft.jvp(lambda x: op(x.at[_AT])(_ROWS), (x,), (x,)),
    "columns": lambda x, op: ft.vmap(lambda c: op(c.at[_AT])(2.0), 1)(x),
    "one place each": lambda x, op: ft.vmap(lambda k: op(x.at[k])(2.0))(_AT),
    "some places each": lambda x, op: ft.vmap(lambda k: op(x.at[k])(2.0))(xp.stack([_AT, _AT])),
}


@pytest.mark.pairwise
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("op", ["set", "add", "multiply", "divide", "power", "min", "max"])
@pytest.mark.parametrize("name", KNOWN)
def test_known_positions_in_arrays_of_any_length(name: str, op: str, mode: Any) -> None:
    """Those from the end are each length's own, though no argument says where they are."""
    fun = lambda x: KNOWN[name](x, operator.attrgetter(op))  # noqa: E731
    run = ft.jit(fun, mode=mode)
    for n in (5, 7, 9, 4, 33):
        x = xp.asarray(np.random.default_rng(n).uniform(1.0, 2.0, (n, 2)))
        laws.close(run(x), fun(x), 1e-12, 1e-12)
    assert run.cache_info().misses <= 2


def test_dynamic_false_compiles_for_every_length() -> None:
    """Without symbolic sizes each length is a signature; other values are refused."""
    f = ft.jit(lambda x: x * 2.0, dynamic=False)
    for n in (2, 3, 4, 3):
        laws.close(f(data(n)), data(n) * 2.0)
    assert f.cache_info().misses == 3
    with pytest.raises(ValueError, match="dynamic must be 'auto', True or False, got 'no'"):
        ft.jit(lambda x: x, dynamic="no")  # type: ignore[arg-type]


def test_fullgraph_refuses_to_fall_back() -> None:
    """Past the limit of paths, fullgraph=True is an error and the default is the function."""
    f = ft.jit(lambda x: x * int(x), fullgraph=True)
    for k in range(8):
        assert float(f(xp.asarray(float(k)))) == float(k * k)
    with pytest.raises(ft.errors.TransformError, match="took 8 paths for one signature"):
        f(xp.asarray(8.0))


@pytest.mark.parametrize("known", [
    lambda x: xp.sum(x, axis=1) / x.shape[1],
    lambda x: x / xp.sum(x, axis=2, keepdims=True),
    lambda x: xp.broadcast_to(xp.sum(x, axis=1, keepdims=True), x.shape) * x,
])  # fmt: skip
def test_a_path_for_one_varying_axis_is_none_for_another(known: Any) -> None:
    """The path for any axis 0 took axis 1 for what it was when it was captured."""
    compiled, differentiated = ft.jit(known), ft.jit(known)
    for shape in ((6, 3, 5), (7, 3, 5), (8, 4, 5), (8, 4, 2), (7, 3, 5), (2, 1, 5)):
        x = xp.asarray(np.random.default_rng(0).normal(size=shape))
        assert np.allclose(np.asarray(compiled(x)), np.asarray(known(x)), rtol=1e-12)
        found, expected = (
            ft.grad(lambda x, f=f: xp.sum(f(x) ** 2))(x) for f in (differentiated, known)
        )
        assert np.allclose(np.asarray(found), np.asarray(expected), rtol=1e-10)


@pytest.mark.parametrize("mode", ["default", "max-autotune"])
def test_a_path_for_some_axes_serves_no_other_length_of_the_rest(mode: Any) -> None:
    """One axis has varied, and its path knows the length of the other."""
    f = ft.jit(lambda x: (xp.mean(x, axis=0), x * 2.0), mode=mode)
    for shape in (2, 3), (2, 4), (3, 2), (2, 5), (3, 5), (5, 7):
        x = xp.ones(shape)
        mean, twice = f(x)
        assert mean.tolist() == [1.0] * shape[1]
        laws.same(twice, x * 2.0)
    assert f.cache_info().misses <= 5


@pytest.mark.parametrize("selects", [
    lambda x: x[x > 0] * 2.0,
    lambda x: xp.nonzero(x > 0)[0],
    lambda x: xp.unique_values(xp.round(x)),
    lambda x: x.at[x > 0].set(0.0),
])  # fmt: skip
def test_masks_of_varying_length(selects: Any) -> None:
    """A decision on an array is compared with one on an array of another length."""
    f = ft.jit(selects)
    rng = np.random.default_rng(0)
    for n in (5, 9, 5, 7, 0, 1, 6, 5, 9, 7, 8):
        x = xp.asarray(rng.normal(size=n))
        laws.same(f(x), selects(x))
    assert "compilations" in f.explain()


@pytest.mark.parametrize("uses", [
    lambda x: xp.sum(x, axis=0) / x.shape[0],
    lambda x: x * x.shape[0] - x.size + (x.shape[0] - 1),
    lambda x: x / max(x.shape[0], 1),
    lambda x: xp.sum(x * xp.arange(x.shape[0], dtype=x.dtype)[:, None], axis=0),
    lambda x: xp.arange(x.shape[0] * 2 + 1) * x.shape[1],
    lambda x: xp.eye(x.shape[0], dtype=x.dtype) @ x,
    lambda x: xp.tril(x @ x.mT) + xp.triu(x @ x.mT, k=1) * 2.0 + xp.eye(x.shape[0], k=-1),
    lambda x: xp.one_hot(xp.arange(x.shape[0]) % 4, 4),
    ft.grad(lambda y: xp.sum(y * y) / y.shape[0]),
    lambda x: ft.vmap(lambda y: xp.sum(y) / x.shape[0])(x),
    lambda x: ft.scan(lambda c, y: (c + y / x.shape[0], c), xp.zeros(3, dtype=x.dtype), x),
    lambda x: ft.cond(xp.sum(x) > 0, lambda: x / x.shape[0], lambda: x * x.shape[0]),
    lambda x: x * xp.asarray(x.shape[0], dtype=x.dtype) + xp.full((3,), x.shape[0], dtype=x.dtype),
    lambda x: -xp.sum(xp.log(x * x + 1)[xp.arange(x.shape[0]), xp.zeros(x.shape[0], dtype=int)]),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arithmetic_with_a_size_binds_none(uses: Any, dtype: str) -> None:
    """A loss divided by the number of examples, positions, masks: one path for all lengths."""
    f = ft.jit(uses)
    for n in (3, *range(2, 40), 1, 0):
        x = np.random.default_rng(n).normal(size=(n, 3)).astype(dtype)
        with np.errstate(all="ignore"):
            found, expected = (ft.tree.leaves(g(xp.asarray(x))) for g in (f, uses))
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(
                np.asarray(a), np.asarray(b), rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5
            )
        if n > 1:
            assert f.cache_info().misses <= 2


def _by_match(x: Any) -> Any:
    match x.shape:
        case (int(), int()):
            return x + 1
    return x - 1


@pytest.mark.parametrize("asks", [
    lambda x: x + 1 if isinstance(x.shape[0], int) else x - 1,
    lambda x: x + 1 if isinstance(x.shape[0] * 2 + 1, numbers.Integral) else x - 1,
    lambda x: x + 1 if issubclass(x.shape[0].__class__, int) else x - 1,
    _by_match,
])  # fmt: skip
def test_who_asks_is_told_that_a_length_is_an_int(asks: Any) -> None:
    """Code that tells ints from others takes the way that it takes eagerly, for any length."""
    f = ft.jit(asks)
    for n in SIZES:
        laws.same(f(data(n)), asks(data(n)))
    assert f.cache_info().misses <= 2


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("combine", [
    xp.add, lambda a, b: a * 0.5 + b, lambda a, b: xp.maximum(a, b) - 1,
])  # fmt: skip
def test_prefixes_of_any_length_combine_in_the_same_order(combine: Any, reverse: bool) -> None:
    """Padded to blocks and combined in a loop, each prefix has the bits of the recursion, even
    where the function is not associative.
    """
    f = partial(ft.associative_scan, combine, reverse=reverse)
    g = ft.jit(f)
    for n in (2, 5, 31, 32, 33, 64, 65, 97, 160, 1025, 1057, 3000, 3, 1, 0):
        x = xp.asarray(np.random.default_rng(n).normal(size=(n, 2, 2)) * 0.7)
        laws.same(g(x), f(x))
    assert g.cache_info().misses <= 4, g.explain()


def test_results_of_loops_that_no_lane_reaches_have_no_batch() -> None:
    """A count of steps is the same in all lanes, and a loop that it ends is one for all of them."""

    def f(x: Any) -> Any:
        count, y = ft.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, x))
        (back, z), _ = ft.scan(lambda s, _: ((s[0] - 1, s[1] + 1), None), (count, y), None, 2)
        return back, z

    x = xp.asarray([1.0, 2.0])
    for wrap in (lambda f: f, ft.jit):
        count, y = wrap(ft.vmap(f, out_axes=(None, 0)))(x)
        assert int(count) == 1
        laws.same(y, xp.asarray([10.0, 18.0]))
        laws.same(wrap(ft.vmap(f))(x)[0], xp.asarray([1, 1]))


def _grad_of(fun: Any) -> Any:
    return ft.grad(lambda x: sum(xp.sum(y * y) for y in ft.tree.leaves(fun(x))))


def _longer(x: Any) -> Any:
    return xp.concat([x, x[:1]])


def _newton(z: Any) -> Any:
    return ft.custom_root(
        lambda y: y * y - xp.abs(z) - 1,
        xp.ones(z.shape),
        lambda f, y: ft.fori_loop(0, 8, lambda _, y: y - f(y) / (2 * y), y),
        lambda g, y: y / g(xp.ones(y.shape)),
    )


BODIES: dict[str, Any] = {
    "scan": lambda x: ft.scan(lambda c, _: (xp.sin(c), xp.sum(c)), _longer(x), None, 3),
    "scan of fewer": lambda x: ft.scan(lambda c, _: (xp.sin(c), xp.sum(c)), x[2:], None, 3),
    "half as many steps": lambda x: ft.scan(
        lambda c, r: (xp.sin(c) + r, c * r), xp.zeros(3), x[: x.shape[0] // 2]
    ),
    "one step more": lambda x: ft.scan(
        lambda c, _: (c * 1.1, c), xp.sum(x), None, length=x.shape[0] + 1
    ),
    "in the body alone": lambda x: ft.scan(
        lambda c, _: (c * 1.1, xp.zeros((x.shape[0], 2)) + c), xp.sum(x), None, length=3
    ),
    "blocks": lambda x: ft.map(lambda r: xp.sum(r * r), x, batch_size=3),
    "while": lambda x: ft.while_loop(
        lambda c: xp.sum(c) < 50.0, lambda c: c * 1.5 + 0.1, xp.abs(_longer(x)) + 1.0
    ) if x.shape[0] else x,
    "cond": lambda x: ft.cond(xp.sum(x) > 0, lambda c: c * c, xp.sin, _longer(x)),
    "checkpoint": lambda x: ft.checkpoint(lambda c: xp.sin(xp.sin(c)))(_longer(x)),
    "rows": ft.vmap(lambda r: ft.scan(lambda c, _: (c * c, None), _longer(r), None, 2)[0], 1),
    "root": lambda x: _newton(_longer(x)),
}  # fmt: skip


@pytest.mark.in_turn
@pytest.mark.parametrize("wrap", [lambda f: f, _grad_of, lambda f: _grad_of(_grad_of(f))])
@pytest.mark.parametrize("name", BODIES)
def test_lengths_that_no_operand_of_a_body_has(name: str, wrap: Any) -> None:
    """n + 1 elements, n // 3 steps: loops over them are right, and compiled once, for every n."""
    fun = wrap(BODIES[name])
    f = ft.jit(fun)
    for n in (*range(6, 16), 40, 7):
        laws.close(f(data(n)), fun(data(n)), 1e-9, 1e-9)
    assert f.cache_info().misses <= 4, f.explain()
    for n in (4, 3, 2, 1, 0):
        laws.close(f(data(n)), fun(data(n)), 1e-9, 1e-9)


def _decided(x):
    n = x.shape[0]
    y = x + 1.0 if n > 2 else x  # the first decision
    y = y * 2.0 if n > 10 else y  # the second decision
    y = y - 3.0 if xp.sum(x) > 0.0 else y  # on a value
    y = xp.sin(y) if n > 100 else y  # the third decision
    return y


@pytest.mark.parametrize(
    ("shape", "value", "line"),
    [
        ((2,), 1.0, "the first decision"),
        ((7,), 1.0, "the second decision"),
        ((200,), 1.0, "the third decision"),
        ((70,), -1.0, "on a value"),
        ((200,), -1.0, "on a value"),  # which comes before the third
        ((7,), -1.0, "the second decision"),  # which comes before that
    ],
)
def test_explain_names_the_decision_that_did_not_hold(shape, value, line):
    """The first one that went another way, whatever decisions come after it."""
    f = ft.jit(_decided)
    for n in (50, 60):
        f(xp.ones(n))
    f(xp.full(shape, value))
    said = f.explain().splitlines()[3]
    assert "another path" in said
    assert said.count("decision") + said.count("on a value") == 1, said
    assert line in said


def test_explain_names_an_axis_that_a_path_has_a_number_for():
    """No decision was taken on it."""

    def g(x):
        return x * 2.0 if x.shape[0] > 3 else x

    f = ft.jit(g)
    for shape in ((5, 4), (6, 4), (7, 8)):
        f(xp.ones(shape))
    f(xp.ones((9, 2)))
    assert f.cache_info().misses <= 3, f.explain()
    assert "axis 1 of x is 8, was 4" in f.explain()
