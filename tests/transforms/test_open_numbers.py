"""jit and Python's numbers that vary: one path for any, computed with as Python does."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.array import Array
from funct.errors import FunctError
from funct.nn import functional
from funct.transforms.compiled import numbered
from tests import laws
from tests.together import together

X = xp.asarray(np.random.default_rng(0).normal(size=(6, 5)))
ROW = xp.asarray(np.random.default_rng(1).normal(size=5))
VALUES = ((0.7, 2), (0.3, 2), (1.5, 3), (0.3, 4), (-0.25, 1), (2.0, 7), (0.125, 0), (1e-3, 9))


@ft.custom_vjp
def _ruled(x: Any, a: Any) -> Any:
    return xp.sin(x) * a


_ruled.defvjp(
    lambda x, a: (xp.sin(x) * a, (x, a)),
    lambda kept, g: (g * xp.cos(kept[0]) * kept[1], xp.sum(g * xp.sin(kept[0]))),
)


def _adam(x: Any, a: Any, n: Any) -> Any:
    opt = ft.optim.adam(abs(a))
    return opt.step(x, x * n, opt.init(x))[0]


Program = Callable[[Any, Any, Any], Any]
OPEN: dict[str, Program] = {
    "both sides": lambda x, a, n: a * x + n - (a - x) / 3 + x / (1 + n) - n // (2 + x * x),
    "compared": lambda x, a, n: xp.where(x > a, xp.maximum(x, a), xp.minimum(n, x)),
    "chosen": lambda x, a, n: xp.where(x > 0, a, n),
    "clipped": lambda x, a, n: xp.clip(x, -abs(a), abs(a)) * n,
    "an array": lambda x, a, n: xp.asarray(a) * x + xp.asarray(n, dtype=xp.float32),
    "beside constants": lambda x, a, n: xp.ones(5) * a + x + xp.eye(5)[1] * n,
    "numbers alone": lambda x, a, n: (a * n, n**2, -a, abs(a), n % 3, n // 2, a / (n + 1), x),
    "an op of numbers alone": lambda x, a, n: xp.multiply(a, n) + x,
    "a power of Python's": lambda x, a, n: x * 0.9**n / (1 - 0.9 ** (n + 1)),
    "a sum of Python's": lambda x, a, n: sum([x * a, n, a]),
    "decided": lambda x, a, n: x * a if a > 0.5 else x - n,
    "none of it": lambda x, a, n: x if a is None or n == None else x * n,  # noqa: E711
    "of a class": lambda x, a, n: x * a if isinstance(a, float) and isinstance(n, int) else x,
    "an index": lambda x, a, n: x[n % 3] * a + x[-1 - n % 3, n % 2],
    "a window": lambda x, a, n: x[n % 3 : n % 3 + 2] * a + x[1:3, :][..., n % 3 : 1 + n % 3],
    "an update": lambda x, a, n: x.at[1].set(a).at[n % 3].add(a).at[:, 0].multiply(n),
    "a gradient": lambda x, a, n: ft.grad(lambda x: xp.sum(xp.sin(x * a) * n))(x),
    "its own gradient": lambda x, a, n: ft.grad(lambda a: xp.sum(xp.sin(x * a) * n))(a),
    "a Hessian": lambda x, a, n: ft.hessian(lambda v: xp.sum(xp.sin(v * a) * v) * n)(x[0]),
    "three derivatives": lambda x, a, n: ft.grad(ft.grad(ft.grad(lambda u: xp.sin(u * a) * n)))(
        x[0, 0]
    ),
    "a tangent": lambda x, a, n: ft.jvp(lambda v, a: xp.exp(v * a) / (1 + n), (x, a), (x * n, 1.0)),
    "lanes": lambda x, a, n: ft.vmap(lambda v: v * a + n)(x),
    "lanes of none": lambda x, a, n: ft.vmap(lambda v, a: v * a + n, in_axes=(0, None))(x, a),
    "a scan": lambda x, a, n: ft.scan(lambda c, v: (c * a + v, c + n), xp.zeros(5), x),
    "a loop": lambda x, a, n: ft.fori_loop(0, 3, lambda i, c: c * a + n, x),
    "a bound": lambda x, a, n: ft.fori_loop(0, n, lambda i, c: c * a, x),
    "a while": lambda x, a, n: ft.while_loop(
        lambda c: xp.sum(c * c) > a * a * 0.01 + 1e-3, lambda c: c * 0.5, x
    ),
    "a branch": lambda x, a, n: ft.cond(xp.sum(x) > a, lambda: x * a, lambda: x * n),
    "branches": lambda x, a, n: ft.switch(n % 3, [lambda: x, lambda: x * a, lambda: x + n]),
    "checkpointed": lambda x, a, n: ft.grad(
        lambda x: xp.sum(ft.checkpoint(lambda v: xp.sin(v * a) * n)(x))
    )(x),
    "compiled within": lambda x, a, n: ft.jit(lambda x, a: xp.sin(x) * a)(x, a) * n,
    "closed over": lambda x, a, n: ft.jit(lambda x: xp.sin(x) * a)(x) * n,
    "a rule": lambda x, a, n: ft.grad(lambda x: xp.sum(_ruled(x, a)) * n)(x),
    "a layer's": lambda x, a, n: functional.leaky_relu(x, abs(a)) * n,
    "a floor": lambda x, a, n: functional.layer_norm(x, (5,), eps=abs(a)) * n,
    "softened": lambda x, a, n: functional.softmax(x / a, -1) + n,
    "a free energy": lambda x, a, n: a * xp.log(xp.sum(xp.exp(x * a), axis=1))[0] + n,
    "booleans": lambda x, a, n: (x > 0) * a + (x > 0) * n,
    "integers": lambda x, a, n: xp.astype(x * 3, "int64") * a + xp.astype(x * 3, "int32") * n,
    "bytes": lambda x, a, n: xp.astype(x * 3, "int8") * n,
    "float32": lambda x, a, n: xp.astype(x, "float32") * a / (n + 1),
    "float16": lambda x, a, n: xp.astype(x, "float16") * a + n,
    "bfloat16": lambda x, a, n: xp.astype(x, xp.bfloat16) * a + n,
    "complex": lambda x, a, n: xp.astype(x, "complex64") * a + n * 1j + x * complex(0, 1) * a,
    "draws": lambda x, a, n: ft.random.normal(ft.random.fold_in(ft.random.key(0), n), (3,)) * a,
    "a key": lambda x, a, n: ft.random.normal(ft.random.key(n * 77777777777 - 9), (3,)) * a,
    "an optimizer": _adam,
    "a product": lambda x, a, n: (x * a) @ x.T / (n + 1),
    "of two": lambda x, a, n: xp.hypot(x, a) + xp.atan2(x, n) + xp.logaddexp(x, a),
    "rounded": lambda x, a, n: x * round(a, 1) * math.floor(a) * math.ceil(a) * math.trunc(a),
    "in a tree": lambda x, a, n: {"y": x * a, "n": n + 1, "a": a, "t": (n * 2, a > 0, "name")},
}  # fmt: skip
DECIDED = {"decided", "a branch", "branches", "an optimizer", "in a tree", "clipped"}
BOUND: dict[str, Program] = {  # Python, or an op, needs to know one of them
    "a power": lambda x, a, n: xp.abs(x) ** n * a,
    "NumPy's": lambda x, a, n: np.ones(5) * a + x,
    "a function of NumPy's": lambda x, a, n: x * np.sqrt(abs(a)) + np.float32(2) * n,
    "a function of math": lambda x, a, n: math.exp(a) * x + n,
    "a list": lambda x, a, n: [x * k for k in range(n)],
    "a slice": lambda x, a, n: x[n % 3 :] * a,
    "an axis": lambda x, a, n: xp.sum(x, axis=n % 2) * a,
    "a shape": lambda x, a, n: xp.full((n, 2), a),
    "a shift": lambda x, a, n: xp.roll(x, n, axis=0) * a,
    "words": lambda x, a, n: x * len(f"{n}") + a,
    "a key of a dict": lambda x, a, n: x * {0: 1.0, 1: 2.0}.get(n, a),
    "a list of them": lambda x, a, n: xp.asarray([a, n, 1.0]),
    "as int and float": lambda x, a, n: x * int(a * 4) + float(n),
    "among few": lambda x, a, n: x if n in (1, 3) else x * a,
    "the larger": lambda x, a, n: x * max(a, 0.3) * min(n, 3),
    "a span": lambda x, a, n: xp.linspace(0, a, 5) + xp.arange(0.0, 5.0) * n,
}


def _same(found: Any, expected: Any) -> None:
    ours, structure = ft.tree.flatten(found)
    theirs, other = ft.tree.flatten(expected)
    assert structure == other
    for a, b in zip(ours, theirs, strict=True):
        assert type(a) is type(b)
        if isinstance(b, Array):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            tol = 1e-12 if b.dtype in (xp.float64, xp.complex128) else 2e-2
            laws.close(a, b, tol, tol)
        else:
            assert a == b or a != a


@pytest.mark.parametrize("name", [*OPEN, *BOUND])
def test_any_number_gives_what_eager_gives(name: str) -> None:
    """Values, classes, dtypes and errors; and where numbers can be open, few paths serve all."""
    fun = {**OPEN, **BOUND}[name]
    f = ft.jit(fun)
    for a, n in VALUES:
        try:
            with np.errstate(all="ignore"):
                expected = fun(X, a, n)
        except FunctError as error:
            with pytest.raises(type(error)):
                f(X, a, n)
            continue
        with np.errstate(all="ignore"):
            _same(f(X, a, n), expected)
    if name in OPEN:  # the first call, one number that varies, and both, each way that is decided
        assert f.cache_info().misses <= (5 if name in DECIDED else 3), f.explain()


@pytest.mark.parametrize("name", ["both sides", "a gradient", "a scan", "a tangent", "a branch"])
def test_under_other_transforms(name: str) -> None:
    fun = OPEN[name]
    f = ft.jit(fun)

    def both(g: Program, a: Any, n: Any) -> Any:
        def total(x: Any) -> Any:
            return sum([xp.sum(y * y) for y in ft.tree.leaves(g(x, a, n))])

        lanes = ft.vmap(lambda x: g(x, a, n))(xp.stack([X, -X]))
        return ft.value_and_grad(total)(X), lanes

    for a, n in VALUES:
        laws.close(both(f, a, n), both(fun, a, n), 1e-10, 1e-10)


def test_numbers_of_two_captures() -> None:
    """A function within another closes over a number of that, and is given some of its own."""

    def outer(x: Any, a: Any) -> Any:
        inner = ft.jit(lambda x, k: x * (a * k) + (k - a) * x**2)
        return sum([inner(x, k * 1.5) for k in range(5)])

    f = ft.jit(outer)
    for a, _ in VALUES:
        laws.close(f(X, a), outer(X, a), 1e-12, 1e-12)


def test_a_step_that_hands_on_its_count_and_rate() -> None:
    """Numbers that come back are Python's, with Python's bits, and go in again."""

    def step(state: Any, *, decay: Any) -> Any:
        w, t, rate = state
        w = w - rate * ft.grad(lambda w: xp.mean(xp.tanh(X @ w) ** 2))(w) / (1 - 0.9 ** (t + 1))
        return w, t + 1, rate * decay if t % 10 == 9 else rate

    f = ft.jit(step)
    ours = theirs = (ROW, 0, 0.1)
    for _ in range(60):
        ours, theirs = f(ours, decay=0.5), step(theirs, decay=0.5)
        assert ours[1:] == theirs[1:]
        laws.close(ours[0], theirs[0], 1e-12, 1e-12)
    assert f.cache_info().misses <= 5, f.explain()  # two ways, before the rate varies and after


def test_what_never_varies_is_part_of_the_program() -> None:
    """A size, an axis and a flag beside a rate: the rate is open, they are not."""
    f = ft.jit(lambda x, axis, rate, n: xp.sum(x, axis=axis)[:n] * rate)
    for k in range(20):
        laws.close(f(X, 0, 0.1 * k, 3), xp.sum(X, axis=0)[:3] * (0.1 * k))
    assert f.cache_info().misses == 2, f.explain()
    for k in range(20):
        laws.close(f(X, k % 2, 0.1 * k, 3), xp.sum(X, axis=k % 2)[:3] * (0.1 * k))
    assert f.cache_info().misses <= 4, f.explain()


def test_numbers_and_lengths_that_vary() -> None:
    f = ft.jit(lambda x, r: xp.tanh(x * r) / x.shape[0] - r)
    for k in range(50):
        x = xp.asarray(np.random.default_rng(k).normal(size=(k, 3)))
        laws.close(f(x, 0.1 * k), xp.tanh(x * (0.1 * k)) / max(k, 1) - 0.1 * k, 1e-12, 1e-12)
    assert f.cache_info().misses <= 6, f.explain()


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths and numbers that the function needs to know, each another at each call."""
    monkeypatch.setattr(numbered, "_KEPT", 8)
    f = ft.jit(lambda x, r: [v * r for v in x])
    g = ft.jit(lambda x, n, r: xp.abs(x) ** n * r)
    for k in range(30):
        laws.close(f(ROW[: 1 + k % 5], 0.1 * k), [v * (0.1 * k) for v in ROW[: 1 + k % 5]])
        x = xp.asarray(np.full(k + 2, 2.0))
        laws.close(f(x, 0.1 * k)[0], x[0] * (0.1 * k))
        laws.close(g(X, k / 7, 0.1 * k), xp.abs(X) ** (k / 7) * (0.1 * k), 1e-12, 1e-12)
    for h in (f, g):
        for of in h._table.numbered._known.values():
            assert len(of.held) <= 5
            assert len(of.paths) <= 8


def test_errors_are_those_of_the_number() -> None:
    """What a check refuses and what does not fit is refused with any path there is."""
    f = ft.jit(lambda x, r: ft.optim.sgd(r).step(x, x, ft.optim.sgd(r).init(x))[0])
    small = xp.asarray([1, 2, 3], dtype=xp.int8)
    g = ft.jit(lambda x, n: x * n)
    for k in range(1, 6):
        f(X, 0.1 * k)
        g(small, k)
    with pytest.raises(ft.errors.ArgumentError, match="must be >= 0"):
        f(X, -0.1)
    for n in (1 << 20, 1 << 70):
        with pytest.raises((FunctError, OverflowError)) as ours:
            g(small, n)
        with pytest.raises((FunctError, OverflowError)) as theirs:
            small * n
        assert ours.type is theirs.type
    h = ft.jit(lambda x, r: x / (1 / r))
    for r in (0.5, 0.25, 0.75):
        h(X, r)
    with pytest.raises(ZeroDivisionError):
        h(X, 0.0)
    laws.close(h(X, 2.0), X * 2.0)


def test_classes_of_numbers_are_told_apart() -> None:
    x = xp.astype(X, xp.float32)
    f = ft.jit(lambda x, r: x * r)
    for r in (1.5, 2, 2.5, 3, True, 1j, 2j, 0.0, -0.0, float("nan"), float("inf"), 7, 1 << 40):
        with np.errstate(all="ignore"):
            found, expected = f(x, r), x * r
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
        assert bool(xp.all(xp.signbit(xp.real(found)) == xp.signbit(xp.real(expected))))


@pytest.mark.parametrize("kind", [int, float, complex])
def test_the_type_of_a_number_is_its_own(kind: Any) -> None:
    """However often numbers have varied before."""

    def named(a: Any) -> str:
        return type(a).__name__

    run = ft.jit(lambda x, a: x * (1 if type(a) is kind else 5) + len(named(a)))
    for n in range(1, 7):
        assert run(X, kind(n)).tolist() == (X + len(kind.__name__)).tolist()


def test_many_threads_with_numbers_of_their_own() -> None:
    f = ft.jit(lambda x, r, n: {"y": xp.sin(x) * r, "n": n + 1})

    def work(k: int) -> None:
        for i in range(40):
            out = f(X[: 2 + k % 3], 0.01 * i + k, i)
            assert out["n"] == i + 1
            laws.close(out["y"], xp.sin(X[: 2 + k % 3]) * (0.01 * i + k), 1e-12, 1e-12)

    together(8, work)


def test_what_a_function_reads_elsewhere_is_looked_at_again() -> None:
    held = {"scale": 1.0}
    f = ft.jit(lambda x, r: x * r * held["scale"])
    for k in range(4):
        f(X, 0.5 + k)
    held["scale"] = 3.0
    laws.close(f(X, 9.0), X * 27.0)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune", "check"])
def test_in_every_mode(mode: Any) -> None:
    f = ft.jit(OPEN["a gradient"], mode=mode)
    for a, n in VALUES:
        laws.close(f(X, a, n), OPEN["a gradient"](X, a, n), 1e-12, 1e-12)


def test_donated_arrays_beside_numbers() -> None:
    f = ft.jit(lambda x, r: xp.exp(x) * r, donate_argnums=0)
    for k in range(6):
        laws.close(f(X + 0.0, 0.1 * k), xp.exp(X) * (0.1 * k), 1e-12, 1e-12)
    x = X + 0.0
    f(x, 0.5)
    with pytest.raises(ft.errors.DonatedError):
        f(x, 0.25)
