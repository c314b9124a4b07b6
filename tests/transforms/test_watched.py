"""What a jitted function reads outside of itself may change: its result is that of eager execution.

Each case gives a function and what changes the world that it reads.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.transforms.compiled import places
from funct.transforms.compiled.places import Elements

X = xp.asarray([1.0, 2.0])
W = xp.asarray([3.0, 5.0])
SCALE = 2.0
TABLE = np.ones(4)
SETTINGS = f"{__name__}.settings"
SETTING = "A_SETTING"


class Layer:
    """An object that holds arrays, numbers and others of its kind."""

    shared: ClassVar[Any] = xp.asarray([1.0, 1.0])

    def __init__(self) -> None:
        self.w = xp.asarray([1.0, 4.0])
        self.gain = 3.0
        self.inner: Any = None
        self.parts = {"a": xp.asarray([2.0, 2.0]), "list": [xp.asarray([1.0, 0.0])]}

    def __call__(self, x: Any) -> Any:
        return x * self.w * self.gain

    def both(self, x: Any) -> Any:
        """Own and inner arrays."""
        return self(x) + (0.0 if self.inner is None else self.inner(x))

    @classmethod
    def common(cls, x: Any) -> Any:
        """What all of them share."""
        return x + cls.shared


def helper(x: Any) -> Any:
    """Reads a global."""
    return x * W + SCALE


def _globals(name: str, value: Any) -> Callable[[], None]:
    return lambda: globals().__setitem__(name, value)


def attribute() -> Any:
    h = Layer()
    return lambda x: x * h.w, lambda: setattr(h, "w", X * 7.0)


def number() -> Any:
    h = Layer()
    return lambda x: x * h.gain, lambda: setattr(h, "gain", 4.0)


def deep() -> Any:
    h = Layer()
    h.inner = Layer()
    return lambda x: x * h.inner.w, lambda: setattr(h.inner, "w", X * 9.0)


def another_object() -> Any:
    h = Layer()
    h.inner = Layer()
    new = Layer()
    new.w = X * 3.0
    return lambda x: x * h.inner.w, lambda: setattr(h, "inner", new)


def key() -> Any:
    d = {"a": X, "b": X * 2.0}
    return lambda x: x * d["a"], lambda: d.update(a=X * 5.0)


def numbers_by_key() -> Any:
    d = {"n": 3}
    return lambda x: x * d["n"], lambda: d.update(n=4)


def element() -> Any:
    held = [X, X * 2.0]
    return lambda x: sum((x * v for v in held), xp.zeros(2)), lambda: held.__setitem__(1, X * 9.0)


def longer() -> Any:
    held = [X, X * 2.0]
    return lambda x: sum((x * v for v in held), xp.zeros(2)), lambda: held.append(X)


def shorter() -> Any:
    held = [X, X * 2.0]
    return lambda x: sum((x * v for v in held), xp.zeros(2)), held.pop


def in_a_part() -> Any:
    h = Layer()
    return lambda x: x * h.parts["list"][0], lambda: h.parts["list"].__setitem__(0, X * 2.0)


def method() -> Any:
    h = Layer()
    return h.both, lambda: setattr(h, "inner", Layer())


def object_that_is_called() -> Any:
    h = Layer()
    return h, lambda: setattr(h, "w", X)


def class_attribute() -> Any:
    new = type("New", (Layer,), {"shared": X})
    return new.common, lambda: setattr(new, "shared", X * 3.0)


def partial() -> Any:
    h = Layer()
    run = functools.partial(lambda layer, x: x * layer.w, h)
    return run, lambda: setattr(h, "w", X * 6.0)


def of_a_helper() -> Any:
    return lambda x: helper(x) * 2.0, _globals("W", X * 8.0)


def number_of_a_helper() -> Any:
    return lambda x: helper(x) * 2.0, _globals("SCALE", 6.0)


def of_a_jitted_helper() -> Any:
    inner = ft.jit(helper)
    return lambda x: inner(x) * 2.0, _globals("W", X * 4.0)


def in_a_function_inside() -> Any:
    h = Layer()
    loss = ft.grad(lambda y: xp.sum(y * y * h.w * W))
    return loss, lambda: setattr(h, "w", X * 11.0)


def in_a_branch() -> Any:
    h = Layer()
    f = lambda x: ft.cond(xp.sum(x) > 0, lambda: x * h.w, lambda: x)  # noqa: E731
    return f, lambda: setattr(h, "w", X * 13.0)


def numpy_array() -> Any:
    table = np.asarray([2.0, 3.0])
    return lambda x: x * table, lambda: table.__setitem__(0, 5.0)


def numpy_global() -> Any:
    TABLE[:] = 1.0
    return lambda x: x * TABLE[::2], lambda: TABLE.__setitem__(2, np.nan)


def numpy_attribute() -> Any:
    h = Layer()
    h.w = np.asarray([2.0, 3.0])
    return h.both, lambda: h.w.__imul__(2.0)


def numpy_element() -> Any:
    tables = ([np.asarray([2.0, 3.0])], {"k": np.asarray([0.0, 1.0])})
    return lambda x: x * tables[0][0] + tables[1]["k"], lambda: tables[1]["k"].fill(-0.0)


def numpy_number() -> Any:
    """Read by NumPy alone, while the function is captured."""
    table = np.arange(6.0).reshape(2, 3).T
    return lambda x: x * float(np.sum(table)), lambda: table.__setitem__((2, 1), 7.0)


def numpy_view() -> Any:
    base = np.asarray([2.0, 3.0])
    view = base[::-1]
    view.flags.writeable = False
    return lambda x: x * view, lambda: base.__setitem__(0, 5.0)


def numpy_of_a_helper() -> Any:
    table = np.asarray([2.0, 3.0])

    def inner(x: Any) -> Any:
        return x * xp.asarray(table)

    return lambda x: inner(x) + 1.0, lambda: table.__setitem__(0, 5.0)


def by_other_methods() -> Any:
    """A method calls the object, which calls a method."""
    h = Layer()
    h.inner = Layer()
    return h.both, lambda: setattr(h.inner, "w", X * 13.0)


def numbers_in_a_list() -> Any:
    held = [1.0, 2.0]
    return lambda x: sum((v * x for v in held), x), lambda: held.__setitem__(0, 5.0)


def another_sign_of_zero() -> Any:
    held = [0.0]
    return lambda x: 1.0 / xp.copysign(x, held[0]), lambda: held.__setitem__(0, -0.0)


def numbers_by_any_key() -> Any:
    held = {"a": 1.0, "b": 2.0}
    return lambda x: sum((held[k] * x for k in held), x), lambda: held.update(c=5.0)


def members() -> Any:
    held = {1.0, 2.0}
    return lambda x: sum((v * x for v in held), x), lambda: held.add(5.0)


def far_below() -> Any:
    held: Any = {"p": {"q": {"r": {"s": {"t": [xp.asarray(2.0)]}}}}}
    change = lambda: held["p"]["q"]["r"]["s"]["t"].__setitem__(0, X * 7.0)  # noqa: E731
    return lambda x: x * held["p"]["q"]["r"]["s"]["t"][0], change


def default() -> Any:
    def fun(x: Any, options: Any = {"k": 2.0}) -> Any:  # noqa: B006  it is what is tested
        return x * options["k"]

    return fun, lambda: fun.__defaults__[0].update(k=5.0)  # type: ignore[index]


def of_a_module() -> Any:
    module = sys.modules[SETTINGS]
    module.K = 2.0  # type: ignore[attr-defined]
    names = {"settings": module, "__name__": __name__}
    fun = types.FunctionType((lambda x: x * settings.K).__code__, names)  # type: ignore[name-defined]  # noqa: F821
    return fun, lambda: setattr(module, "K", 5.0)


def of_a_module_in_a_cell() -> Any:
    module: Any = sys.modules[SETTINGS]
    module.K = 2.0
    return lambda x: x * module.K, lambda: setattr(module, "K", 5.0)


def number_of_numpys() -> Any:
    m = Layer()
    m.gain = np.float64(2.0)
    return m, lambda: setattr(m, "gain", np.float64(5.0))


def function() -> Any:
    h = Layer()
    h.inner = xp.sin
    return lambda x: h.inner(x) * 1.0, lambda: setattr(h, "inner", xp.cos)


def dtype() -> Any:
    h = Layer()
    h.inner = xp.float32
    return lambda x: xp.astype(x / 7.0, h.inner), lambda: setattr(h, "inner", xp.float64)


def inside_of_what_is_frozen() -> Any:
    frozen = attrs.make_class("Frozen", ["held"], frozen=True)([2.0])
    return lambda x: x * frozen.held[0], lambda: frozen.held.__setitem__(0, 5.0)


def worked_out_once() -> Any:
    class Lazy:
        n = 2.0

        @functools.cached_property
        def k(self) -> float:
            return self.n

    m = Lazy()
    return lambda x: x * m.k, lambda: m.__dict__.update(k=5.0)


def _scaled() -> Any:
    def scale(x: Any, a: Any = 2.0, *, b: Any = 3.0) -> Any:
        return x * a + b

    return scale


def defaults_of_a_helper() -> Any:
    scale = _scaled()
    return lambda x: scale(x) * 2.0, lambda: setattr(scale, "__defaults__", (5.0,))


def keyword_defaults_of_a_helper() -> Any:
    scale = _scaled()
    return lambda x: scale(x) * 2.0, lambda: setattr(scale, "__kwdefaults__", {"b": 5.0})


def code_of_a_helper() -> Any:
    """As reloading editors and notebooks replace it."""
    scale = _scaled()
    code = (lambda x, a, *, b: x * a - b).__code__
    return lambda x: scale(x) * 2.0, lambda: setattr(scale, "__code__", code)


def environment() -> Any:
    change = lambda: os.environ.update(A_SETTING="5")  # noqa: E731
    return lambda x: x * float(os.environ.get(SETTING) or 2), change


def environment_by_a_function() -> Any:
    getenv = os.getenv
    return lambda x: x * float(getenv(SETTING) or 2), lambda: os.environ.update(A_SETTING="5")


def identity_in_a_list() -> Any:
    mark = object()
    held = [mark]
    return lambda x: x * (2.0 if held[0] is mark else 5.0), lambda: held.__setitem__(0, object())


def identity_by_any_key() -> Any:
    mark = object()
    held = {"a": mark}
    change = lambda: held.update(a=object())  # noqa: E731
    return lambda x: x * sum(2.0 if v is mark else 5.0 for v in held.values()), change


CASES = [
    defaults_of_a_helper, keyword_defaults_of_a_helper, code_of_a_helper, environment,
    environment_by_a_function, identity_in_a_list, identity_by_any_key,
    numbers_in_a_list, another_sign_of_zero, numbers_by_any_key, members, far_below, default,
    of_a_module, of_a_module_in_a_cell, number_of_numpys, function, dtype,
    inside_of_what_is_frozen, worked_out_once,
    numpy_array, numpy_global, numpy_attribute, numpy_element, numpy_number, numpy_view,
    numpy_of_a_helper, by_other_methods, attribute, number, deep, another_object, key,
    numbers_by_key, element, longer, shorter,
    in_a_part, method, object_that_is_called, class_attribute, partial, of_a_helper,
    number_of_a_helper, of_a_jitted_helper, in_a_function_inside, in_a_branch,
]  # fmt: skip


WRITTEN = [
    numbers_in_a_list, another_sign_of_zero, numbers_by_any_key, members, numpy_array, numpy_global,
    numpy_attribute, numpy_element, numpy_number, numpy_view, numpy_of_a_helper,
    inside_of_what_is_frozen,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_a_function_reads_may_change(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compiled again, once, and told so."""
    monkeypatch.setitem(globals(), "W", W)
    monkeypatch.setitem(globals(), "SCALE", SCALE)
    monkeypatch.setitem(sys.modules, SETTINGS, types.ModuleType(SETTINGS))
    monkeypatch.setenv(SETTING, "2")
    fun, change = case()
    run = ft.jit(fun)
    before = fun(X).tolist()
    assert run(X).tolist() == before == run(X).tolist()
    change()
    after = fun(X).tolist()
    assert after != before
    assert str(run(X).tolist()) == str(after) == str(run(X).tolist())
    assert run.cache_info().misses == 2
    how = "was written into" if case in WRITTEN else "is another object now"
    assert how in run.explain()


HOLDERS = {
    "list": (lambda: [1.5, 2, "a"], lambda x: x.__setitem__(0, float("1.5")),
             lambda x: x.__setitem__(1, 2.0)),
    "deque": (lambda: deque([0.0, None]), lambda x: x.__setitem__(0, float("0")),
              lambda x: x.__setitem__(0, -0.0)),
    "dict": (lambda: {"a": 1.5, "b": 2.5}, lambda x: x.update(a=float("1.5")),
             lambda x: x.update(a=2.5)),
    "keys": (lambda: {"a": 1.5}, lambda x: x.update({str(b"a", "ascii"): 1.5}),
             lambda x: x.update(c=x.pop("a"))),
    "set": (lambda: {1, 2}, lambda x: x.add(2), lambda x: x.add(3)),
    "array": (lambda: array("d", [0.0, 2.0]), lambda x: x.__setitem__(1, 2.0),
              lambda x: x.__setitem__(0, -0.0)),
    "bytes": (lambda: bytearray(b"ab"), lambda x: x.__setitem__(0, 97), lambda x: x.pop()),
    "numpy": (lambda: np.asarray([1.0, np.nan]), lambda x: x.__setitem__(0, 1.0),
              lambda x: x.__setitem__(0, 2.0)),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOLDERS)
def test_elements_are_the_same_while_they_compute_the_same(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other objects of the same meaning are no change; while the very objects are there, nobody
    asks each what it is: a call of a solver with a table of coefficients did that for 48 us.
    """
    make, rewrite, write = HOLDERS[kind]
    holder = make()
    place = Elements(holder)
    with monkeypatch.context() as m:
        m.setattr(places, "identity", None)
        assert place.get("holder") is holder
    rewrite(holder)
    assert place.get("holder") is holder
    write(holder)
    assert place.get("holder") is None


def test_what_nobody_can_write_into_is_not_compared() -> None:
    """Read-only memory, and arrays of funct's."""
    table = np.asarray([2.0, 3.0])
    table.flags.writeable = False
    ours = xp.asarray(np.asarray([1.0, 1.0]))
    run = ft.jit(lambda x: x * table + ours)
    run(X)
    (path,) = run._table.all_paths()
    assert not any(isinstance(place, Elements) for place, *_ in path.watched)


def test_what_a_function_does_not_read_costs_no_compilation() -> None:
    """An attribute that its code does not name, an array that its graph does not hold."""
    h = Layer()
    run = ft.jit(lambda x: x * h.w)
    run(X)
    h.inner, h.parts["a"] = Layer(), X
    assert run(X).tolist() == [1.0, 8.0]
    assert run.cache_info().misses == 1


def test_attributes_of_the_name_of_a_global_read_no_global() -> None:
    """Who calls `rule.step` does not call the global `step`, which reads what changes."""
    room: dict[str, Any] = {"__name__": "mine", "ft": ft, "rule": _Rule()}
    exec(
        "def step():\n    global p\n    p = f(p)\n\n"
        "def f(p):\n    return rule.step(p) + unused\n\nf = ft.jit(f)\nunused = 1.0\n",
        room,
    )
    room["p"] = xp.ones(3)
    for _ in range(4):
        room["step"]()
    assert room["f"].cache_info().misses == 1, room["f"].explain()
    room["unused"] = 2.0  # that is read
    room["step"]()
    assert room["p"].tolist() == [31.0 * 2 + 2.0] * 3


class _Rule:
    def step(self, p: Any) -> Any:
        return p * 2


def test_what_is_another_number_at_each_call_is_not_compiled_for_each() -> None:
    """After a few paths that served one call each the function is called; once its numbers stay,
    it is compiled again.
    """
    state = {"step": 0.0}
    run = ft.jit(lambda x: x * state["step"])
    for k in range(200):
        state["step"] = float(k)
        assert run(X).tolist() == (X * k).tolist()
    assert run.cache_info().misses < 8 + 200 / 64 + 1
    assert "again and again" in run.explain()
    for _ in range(100):
        assert run(X).tolist() == (X * 199).tolist()
    misses = run.cache_info().misses
    for k in range(3):  # from now on it changes seldom
        state["step"] = float(k)
        for _ in range(20):
            assert run(X).tolist() == (X * k).tolist()
    assert run.cache_info().misses == misses + 3
