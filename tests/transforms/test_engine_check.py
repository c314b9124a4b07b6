"""check_grads, check_pure, check_primitive: right functions pass, each kind of fault is named."""

import functools
import itertools
import os
import random
import re
import sys
import types
from array import array
from collections import deque
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import ops
from funct.core import Primitive, lookup
from funct.errors import ArgumentError, GradientError, LawError, PurityError
from tests.test_laws import replaced, scaled
from tests.transforms.test_grad import arr

X = arr([0.3, -0.2, 0.5])
Z = xp.asarray(np.array([0.3 + 0.4j, 1.0 - 0.2j]))


def with_rule(pull: Any, push: Any = None) -> Any:
    """sin with a reverse rule, and a forward rule where one is given."""
    f = ft.custom_vjp(xp.sin)
    f.defvjp(lambda x: (xp.sin(x), x), lambda x, g: (pull(x, g),))
    if push is not None:
        f.defjvp(push)
    return f


GOOD: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "vector": (lambda x: xp.sin(x) * xp.sum(x), (X,)),
    "tree": (lambda p, k: {"a": p["w"] @ p["w"], "n": k, "b": [p["s"] * k]},
             ({"w": X, "s": arr(2.0)}, xp.asarray(3))),
    "complex": (lambda z: z * xp.conj(z) * z, (Z,)),
    "real of complex": (lambda z: xp.abs(z) ** 2, (Z,)),
    "complex of real": (lambda x: xp.exp(1j * x), (X,)),
    "compiled": (ft.jit(lambda x: xp.sum(xp.exp(x) * x)), (X,)),
    "single": (lambda x: xp.sin(x) * x, (xp.asarray(np.float32([0.3, 0.4])),)),
    "empty": (xp.sum, (xp.zeros((0, 2)),)),
    "number": (lambda x: x * x, (2.0,)),
}  # fmt: skip


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", GOOD)
def test_right_derivatives_pass(name: str, fast: bool) -> None:
    """Real, complex, mixed, compiled, of trees: to second order, element by element and along
    random directions.
    """
    fun, args = GOOD[name]
    ft.check_grads(fun, args, fast=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_the_conventions_do_not_confuse_it(fast: bool) -> None:
    """It checks what the engine says, whatever the convention that users read."""
    ft.check_grads(lambda x: xp.real(x * x), (X,), fast=fast)
    with ft.config.using(complex_convention="jax"):
        ft.check_grads(xp.sin, (X,), fast=fast)
        ft.check_grads(lambda z: xp.abs(z * z), (Z,), fast=fast)


@pytest.mark.parametrize("fast", [False, True])
def test_a_wrong_rule_is_found(fast: bool) -> None:
    """A pull off by a hundredth, the wrong sign of a conjugate, a push that the pull denies."""
    wrong = with_rule(lambda x, g: xp.cos(x) * g * 1.01)
    with pytest.raises(GradientError, match="check_grads: reverse mode: "):
        ft.check_grads(wrong, (X,), order=1, modes=["rev"], fast=fast)
    both = with_rule(lambda x, g: xp.cos(x) * g, lambda p, t: (xp.sin(*p), 2.0 * t[0]))
    with pytest.raises(GradientError, match="check_grads: forward mode: "):
        ft.check_grads(both, (X,), order=1, fast=fast)
    ft.check_grads(both, (X,), order=1, modes=["rev"], fast=fast)
    turned = ft.custom_vjp(lambda z: z * z)
    turned.defvjp(lambda z: (z * z, z), lambda z, g: (2.0 * z * g,))  # without the conjugate
    with pytest.raises(GradientError, match="check_grads: reverse mode: "):
        ft.check_grads(turned, (Z,), order=1, modes=["rev"], fast=fast)


def test_the_second_derivative_is_checked_too() -> None:
    """A rule that is right once and wrong twice is found at order 2 only."""
    f = with_rule(lambda x, g: ft.stop_gradient(xp.cos(x)) * g)
    ft.check_grads(f, (X,), order=1)
    with pytest.raises(GradientError, match=r"mode of the derivative by (forward|reverse) mode"):
        ft.check_grads(f, (X,), order=2)


def test_the_error_says_where() -> None:
    """Argument, element, result, both numbers."""
    f = with_rule(lambda x, g: xp.cos(x) * g * xp.asarray([1.0, 3.0, 1.0]))
    text = r"reverse mode: d result a\[1\] / d argument 0.w\[1\] is 3.0, differences give 1.0"
    with pytest.raises(GradientError, match=text):
        ft.check_grads(lambda p: {"a": f(p["w"])}, ({"w": xp.zeros(3)},), order=1, modes=["rev"])


def test_other_faults() -> None:
    """Noise, a batching rule that lies, a zero cotangent that gives something, bad arguments."""
    counter = itertools.count()
    with pytest.raises(GradientError, match="not deterministic: two calls differ by 1"):
        ft.check_grads(lambda x: x + next(counter), (X,))
    ft.check_grads(lambda x: x + 1e-13 * next(counter), (X,), nondet_tol=1e-6)
    constant = with_rule(lambda x, g: g * 0.0 + xp.cos(x))
    with pytest.raises(GradientError, match="a zero cotangent gives"):
        ft.check_grads(constant, (arr(0.0),), order=1, modes=["rev"])
    multiply: Any = lookup("multiply")
    with (
        replaced(multiply, "batch", lambda p, a, b, k: ops.flip(ops.multiply(*a), (0,))),
        pytest.raises(GradientError, match="vmap of the pullback gives"),
    ):
        ft.check_grads(lambda x: x * 3.0, (X,))
    with replaced(multiply, "batch", lambda p, a, b, k: ops.flip(ops.multiply(*a), (0,))):
        ft.check_grads(lambda x: x * 3.0, (X,), batched=False)
    with pytest.raises(ArgumentError, match="modes are 'fwd' and 'rev'"):
        ft.check_grads(xp.sin, (X,), modes=["sideways"])
    with pytest.raises(ArgumentError, match="no argument has floating"):
        ft.check_grads(xp.sin, (xp.asarray(1),))


def test_pure_functions_pass() -> None:
    """Constants, closures over arrays, keys, trees, inner mutation: all pure."""
    w, key = arr([1.0, 2.0, 3.0]), ft.random.key(0)

    def f(x: Any, *, p: Any) -> Any:
        parts = []
        for k in range(3):
            parts.append(x[k] * w[k] + p["b"])
        return xp.stack(parts) + ft.random.normal(key, shape=(3,)), {"n": 3}

    ft.check_pure(f, X, p={"b": arr(1.0)})
    ft.check_pure(ft.grad(lambda x: xp.sum(x * w)), X)
    ft.check_pure(ft.jit(xp.sin), X)
    ft.check_pure(lambda x: x if xp.sum(x) > 0 else -x, X)


STATE = {"calls": 0}


class Counter:
    """An object with a method that counts its calls."""

    calls = 0

    def count(self, x: Any) -> Any:
        """x, counted."""
        self.calls += 1
        return x

    def __call__(self, x: Any) -> Any:
        """x, counted."""
        return self.count(x)


def test_side_effects_are_found() -> None:
    """Each kind of impurity by its name."""
    seen: list[Any] = []
    total = 0
    generator = np.random.default_rng(0)

    def appends(x: Any) -> Any:
        seen.append(x)
        return x

    def counts(x: Any) -> Any:
        nonlocal total
        total += 1
        return x

    def writes(x: Any) -> Any:
        x[0] += 1.0
        return xp.asarray(x)

    def global_state(x: Any) -> Any:
        STATE["calls"] += 1
        return x

    cases: list[tuple[Any, Any, str]] = [
        (appends, X, "it changes the closure or global `seen`"),
        (counts, X, "it changes the closure or global `total`"),
        (writes, np.zeros(3), "it changes the argument 0"),
        (lambda d: (d.update(y=1), d["x"])[1], {"x": X}, "it changes the contents of argument 0"),
        (lambda d: (d.update(x=-d["x"]), X)[1], {"x": X}, "it changes the contents of argument 0"),
        (lambda v: (v[0].pop(), X)[1], [[X] * 9], "it changes the contents of argument 0"),
        (lambda o: o.count(X), Counter(), "it changes the contents of argument 0"),
        (global_state, X, "it changes the closure or global `STATE`"),
        (Counter().count, X, "it changes the attributes of its object"),
        (Counter(), X, "it changes the attributes of the function"),
        (lambda x: x + generator.normal(), X, "equal calls give different results"),
        (lambda x: x + np.random.normal() * 0, X, "it changes the random state of NumPy"),
        (lambda x: x + random.random() * 0, X, "it changes the random state of Python"),
        (lambda x: (sys.stdout.write("hello"), x)[1], X, "it prints"),
    ]
    for fun, x, text in cases:
        with pytest.raises(PurityError, match=text):
            ft.check_pure(fun, x)


class Slotted:
    """An object without a dict."""

    __slots__ = ("n",)


def _writes(x: Any, kept: list[Any] = []) -> Any:  # noqa: B006
    kept.append(1)
    return x


def _named(x: Any, *, kept: dict[str, int] = {"n": 0}) -> Any:  # noqa: B006
    kept["n"] += 1
    return x


def _own(x: Any) -> Any:
    _own.calls = getattr(_own, "calls", 0) + 1  # type: ignore[attr-defined]
    return x


def _counts_on_the_class(x: Any) -> Any:
    Counter.calls += 1
    return x


def _helped(x: Any) -> Any:
    return _counts_on_the_class(x) + _writes(x)


MODULE = types.ModuleType("a_user_s_module")
exec("n = 0\ndef f(x):\n    global n\n    n += 1\n    return x\n", vars(MODULE))
VARIABLE: ContextVar[int] = ContextVar("variable", default=0)
SLOTTED, QUEUE, BYTES, NUMBERS = Slotted(), deque[int](), bytearray(), array("d")
SLOTTED.n = 0


@pytest.mark.parametrize(
    ("do", "text"),
    [
        (lambda x: (setattr(SLOTTED, "n", SLOTTED.n + 1), x)[1], "closure or global `SLOTTED`"),
        (lambda x: (QUEUE.append(1), x)[1], "closure or global `QUEUE`"),
        (lambda x: (BYTES.append(1), x)[1], "closure or global `BYTES`"),
        (lambda x: (NUMBERS.append(1), x)[1], "closure or global `NUMBERS`"),
        (lambda x: ([QUEUE.append(k) for k in range(2)], x)[1], "closure or global `QUEUE`"),
        (lambda x: (VARIABLE.set(VARIABLE.get() + 1), x)[1], "closure or global `VARIABLE`"),
        (lambda x: MODULE.f(x) * 2, "closure or global `n`"),
        (lambda x: (setattr(MODULE, "n", MODULE.n + 1), x)[1], "closure or global `MODULE.n`"),
        (_counts_on_the_class, "closure or global `Counter`"),
        (_helped, "it changes the defaults of _writes"),
        (functools.partial(_helped), "closure or global `Counter`"),
        (ft.jit(lambda x: (QUEUE.append(1), x)[1]), "closure or global `QUEUE`"),
        (lambda x: (lambda y: _writes(y) * 2)(x) + 1, "defaults of _writes"),
        (_writes, "defaults of _writes"),
        (_named, "defaults of _named"),
        (_own, "attributes of the function"),
        (lambda x: (setattr(ft.config, "memory_budget", 0.5), x)[1], "settings of funct"),
        (lambda x: (os.environ.update(A_NAME=str(len(QUEUE))), QUEUE.append(1), x)[2],
         "environment of the process"),
    ],
)  # fmt: skip
def test_wherever_a_function_writes_is_seen(
    do: Any, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In what holds things, in what it calls, in itself, and in what every function reaches."""
    monkeypatch.setenv("A_NAME", "")
    with ft.config.using(), pytest.raises(PurityError, match=re.escape(text)):
        ft.check_pure(do, X)


@pytest.mark.parametrize("name", ["tan", "matmul", "sort", "where", "bitwise_and", "finite"])
def test_primitives_of_the_catalogue_pass(name: str) -> None:
    """What the catalogue's tests check one by one, check_primitive checks at once."""
    prim = lookup(name)
    assert prim is not None
    ft.check_primitive(prim)


def test_broken_primitives_are_named() -> None:
    """The error has the primitive, the law and the sample."""
    tan: Any = lookup("tan")
    assert isinstance(tan, Primitive)
    rule: Any = tan.rules[0]
    with (
        replaced(rule, "rule", scaled(rule.rule)),
        pytest.raises(LawError, match="tan breaks the law of derivatives on sample 0: "),
    ):
        ft.check_primitive(tan)
    with (
        replaced(tan, "batch", lambda p, a, b, k: ops.flip(ops.tan(a[0]), (0,))),
        pytest.raises(LawError, match="tan breaks the law of batching on sample"),
    ):
        ft.check_primitive(ops.tan)
    with pytest.raises(ArgumentError, match="expected an op or a primitive, got int"):
        ft.check_primitive(3)
