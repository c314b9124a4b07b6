"""Objects that a jitted function reads may change, however they keep what they hold."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import pytest

import funct as ft
import funct.array as xp

X = xp.asarray(3.0)


class Plain:
    """Attributes in a dict."""

    def __init__(self, w: Any, k: Any) -> None:
        self.w, self.k = w, k

    def f(self, x: Any) -> Any:
        """w x k."""
        return self.w * x * self.k


class Slots(Plain):
    """Attributes in slots, and an empty dict."""

    __slots__ = ("k", "w")


@attrs.define(eq=False)
class Defined:
    """No dict at all."""

    w: Any
    k: Any
    f = Plain.f


@dataclasses.dataclass(eq=False)
class Data:
    """A dataclass that is not frozen."""

    w: Any
    k: Any
    f = Plain.f


class Setter(Plain):
    """Its own way to set."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class Behind:
    """Attributes behind properties, in an object, a dict or a deque."""

    def __init__(self, w: Any, k: Any) -> None:
        self.of = Plain(w, k)

    w = property(lambda self: self.of.w, lambda self, v: setattr(self.of, "w", v))
    k = property(lambda self: self.of.k, lambda self, v: setattr(self.of, "k", v))
    f = Plain.f


def _keys(name: Any) -> property:
    return property(lambda self: self.of[name], lambda self, v: self.of.__setitem__(name, v))


class Mapped(Behind):
    """A dict whose values are read in turn."""

    def __init__(self, w: Any, k: Any) -> None:
        self.of: Any = OrderedDict(w=w, k=k)

    w, k = _keys("w"), _keys("k")

    def f(self, x: Any) -> Any:
        """All values."""
        for v in self.of.values():
            x = x * v
        return x


class Queued(Mapped):
    """Elements of a deque."""

    def __init__(self, w: Any, k: Any) -> None:
        self.of = deque([w, k])

    w, k = _keys(0), _keys(1)
    f = Plain.f


class Variables(Plain):
    """Attributes that no code names."""

    def f(self, x: Any) -> Any:
        """All attributes."""
        for v in vars(self).values():
            x = x * v
        return x


class Dynamic(Plain):
    """Attributes that exist by a method."""

    def __init__(self, w: Any, k: Any) -> None:
        self.__dict__["of"] = {"w": w, "k": k}

    def __getattr__(self, name: str) -> Any:
        return self.of[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self.of[name] = value


class ByName(Plain):
    """A name that is put together."""

    def f(self, x: Any) -> Any:
        """w x k."""
        return self.w * x * getattr(self, "".join(["k"]))


class Inherited(Plain):
    """Code of the class above."""

    def f(self, x: Any) -> Any:
        """w x k."""
        return super().f(x)


class OfTheClass(Plain):
    """What all of a class share."""

    w: ClassVar[Any] = None
    k: ClassVar[Any] = None

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(type(self), name, value)


class Called(Plain):
    """An object that calls itself."""

    def __call__(self, x: Any) -> Any:
        return Plain.f(self, x)

    def f(self, x: Any) -> Any:
        """w x k."""
        return self(x)


class Shadowing(Plain):
    """The class's number until the object has its own."""

    k: ClassVar[Any] = 1.0

    def __init__(self, w: Any, k: Any) -> None:
        self.w = w


KINDS = [
    Plain, Slots, Defined, Data, Setter, Behind, Mapped, Queued, Variables, Dynamic, ByName,
    Inherited, OfTheClass, Called, Shadowing,
]  # fmt: skip


def _given(m: Any, fun: Callable[..., Any], **options: Any) -> Callable[[Any], Any]:
    run = ft.jit(fun, **options)
    return lambda x: run(m, x)


WAYS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "read": lambda m: ft.jit(lambda x: m.w * x * m.k),
    "called": lambda m: ft.jit(lambda x: m.f(x) + 0.0),
    "bound": lambda m: ft.jit(m.f),
    "element": lambda m: (lambda held: ft.jit(lambda x: held[0].f(x) + 0.0))([m]),
    "partial": lambda m: ft.jit(functools.partial(lambda m, x: m.f(x), m)),
    "argument": lambda m: _given(m, lambda m, x: m.f(x)),
    "static": lambda m: _given(m, lambda m, x: m.w * x * m.k, static_argnums=0),
    "method": lambda m: _given(m, type(m).f),
    "derivative": lambda m: ft.jit(lambda x: ft.grad(m.f)(x) * x),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_objects_may_change(kind: Any, way: str) -> None:
    """An array, then a number, then a number in an array's place: the result is eager's."""
    m = kind(xp.asarray(2.0), 1.0)
    run = WAYS[way](m)

    def often() -> float:
        return [float(run(X)) for _ in range(4)][-1]

    assert often() == 6.0
    m.w = xp.asarray(5.0)
    assert often() == 15.0
    m.k = 2.0
    assert often() == 30.0
    m.w = 7.0
    assert often() == 42.0


class Trainer(Plain):
    """Counts, and remembers, what the function that it compiles does not read."""

    step = 0

    def __init__(self) -> None:
        super().__init__(xp.asarray(2.0), 1.0)
        self.losses: list[float] = []


def test_what_is_not_read_may_change_at_no_cost() -> None:
    """Counters, and numbers that are set to what they were."""
    m, state = Trainer(), {"w": 2.0, "step": 0}
    runs: list[Any] = [ft.jit(m.f), ft.jit(Trainer.f), ft.jit(lambda x: x * state["w"])]
    for i in range(12):
        m.step, m.k = i, float("1.0")
        m.losses.append(runs[0](X).item())
        state["step"] = i
        assert runs[1](m, X).item() == runs[2](X).item() == m.losses[-1] == 6.0
    assert [run.cache_info().misses for run in runs] == [1, 1, 1]


def test_what_a_function_writes_itself_is_no_input() -> None:
    """Counts and lists of its captures: two functions that write into one list stay compiled."""
    calls: list[Any] = []
    count = 0

    def fun(x: Any) -> Any:
        nonlocal count
        calls.append(x.shape)
        count += 1
        return x * 2.0

    runs: list[Any] = [ft.jit(fun), ft.jit(lambda x: fun(x) + 1.0)]
    for n in (1, 2, 1, 2):
        for run in runs:
            run(xp.ones((n, n)))
    seen = len(calls), count
    for n in (1, 2, 1, 2):
        for run in runs:
            run(xp.ones((n, n)))
    assert (len(calls), count) == seen == (4, 4)


@pytest.mark.parametrize("way", ["append", "add", "setitem", "attribute", "method"])
@pytest.mark.parametrize("order", ["grad-jit", "jit-grad", "jit"])
def test_where_a_function_only_writes_is_no_input(way: str, order: str) -> None:
    """Logs of hooks, which fill while the backward part runs, outside of what is captured."""
    log: Any = {"append": [1.0], "add": {1.0}, "setitem": {"last": 1.0}}.get(way)
    o = types.SimpleNamespace(latest=1.0, seen=[1.0])
    write: Any = {
        "append": lambda: log.append(2.0), "add": lambda: log.add(len("ab") + 0.0),
        "setitem": lambda: log.update(last=3.0), "attribute": lambda: setattr(o, "latest", 3.0),
        "method": lambda: o.seen.append(2.0),
    }[way]  # fmt: skip

    def keep(g: Any) -> None:
        if way == "append":
            log.append(2.0)
        elif way == "add":
            log.add(2.0)
        elif way == "setitem":
            log["last"] = 2.0
        elif way == "attribute":
            o.latest = 2.0
        else:
            o.seen.append(2.0)

    def fun(x: Any) -> Any:
        return xp.sum(ft.hook(x, backward=keep) ** 2)

    run: Any = ft.jit(fun)
    full = {"grad-jit": ft.grad(run), "jit-grad": ft.jit(ft.grad(fun)), "jit": run}[order]
    for _ in range(4):
        full(X)
        write()
    counted = full if order == "jit-grad" else run
    assert counted.cache_info().misses == 1, counted.explain()
