"""Whatever holds what a jitted function reads: it is noticed what comes, and what is written."""

from __future__ import annotations

import array
import collections
import contextvars
import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import funct as ft
import funct.array as xp

X = xp.asarray([1.0, 2.0])


_HOLDERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], None]]] = {
    "dict": (lambda: {"a": 2.0}, lambda d: d["a"], lambda d: d.__setitem__("b", 1.0)),
    "object": (
        lambda: types.SimpleNamespace(a=2.0), lambda o: o.a, lambda o: setattr(o, "b", 1.0)
    ),
    "list": (lambda: [2.0], lambda x: x[0], lambda x: x.append(1.0)),
    "set": (lambda: {2.0}, lambda _: 1.0, lambda s: s.add("b")),
}  # fmt: skip
_ASKS: dict[str, Callable[[Any], Any]] = {
    "dict-len": len, "dict-get": lambda d: d.get("b", 5.0), "dict-in": lambda d: "b" in d,
    "dict-iteration": lambda d: sum([1.0 for _ in d]), "dict-copy": lambda d: len({**d}),
    "dict-keys": lambda d: len(d.keys()), "object-vars": lambda o: len(vars(o)),
    "object-hasattr": lambda o: hasattr(o, "b"), "object-getattr": lambda o: getattr(o, "b", 5.0),
    "list-len": len, "list-in": lambda x: 1.0 in x, "set-len": len, "set-in": lambda s: "b" in s,
}  # fmt: skip


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside what is read by name"])
@pytest.mark.parametrize("deep", [False, True], ids=["named", "below a name"])
@pytest.mark.parametrize("ask", _ASKS)
def test_what_is_not_there_may_come(ask: str, deep: bool, beside: bool) -> None:
    """Code that asks what a container or an object has is asked again when it has more."""
    make, read, add = _HOLDERS[ask.partition("-")[0]]
    holder, count = make(), _ASKS[ask]
    above = types.SimpleNamespace(holder=holder)

    def fun(x: Any) -> Any:
        found = above.holder if deep else holder
        return x * count(found) + (read(found) if beside else 0.0)

    _follows(fun, lambda: add(holder))


_SETTING = contextvars.ContextVar("setting", default=2.0)
_BASE: dict[str, float] = {}
_NUMBER = 2.0


class _Scaled:
    def scale(self, x: Any) -> Any:
        return x * 2


class _There:
    k = 1.0


class _Doubled:
    def __get__(self, owner: Any, cls: Any) -> float:
        return 2.0 * float(owner.k)


class _Described(_There):
    double = _Doubled()


_THERE = _There()


def _replace_method() -> None:
    _Scaled.scale = lambda self, x: x * 9  # type: ignore[method-assign]


def _follows(fun: Any, change: Callable[[], Any]) -> None:
    """What is compiled has the value that fun has, before and after the change."""
    run = ft.jit(fun)
    before = run(X).tolist()
    assert before == fun(X).tolist() == run(X).tolist()
    change()
    assert run(X).tolist() == fun(X).tolist() != before


# What holds numbers, what reads it, and what writes into it.
_KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "chain": (
        lambda: collections.ChainMap({"a": 1.0}, {"b": 2.0}), lambda d, x: x * d["b"],
        lambda d: d.update(b=5.0),
    ),
    "chain below": (
        lambda: collections.ChainMap({"a": 1.0}, {"b": 2.0}), lambda d, x: x * d["b"],
        lambda d: d.maps[1].update(b=5.0),
    ),
    "UserDict": (
        lambda: collections.UserDict({"a": 1.0}), lambda d, x: x * d["a"],
        lambda d: d.update(a=5.0),
    ),
    "proxy": (
        lambda: types.MappingProxyType(_BASE), lambda d, x: x * d["a"],
        lambda _: _BASE.update(a=5.0),
    ),
    "bytearray": (
        lambda: bytearray(b"ab"), lambda b, x: x * b[0], lambda b: b.__setitem__(0, 1)
    ),
    "array": (
        lambda: array.array("d", [1.0]), lambda a, x: x * a[0], lambda a: a.__setitem__(0, 5.0)
    ),
    "context variable": (
        lambda: _SETTING, lambda v, x: x * v.get(), lambda v: v.set(5.0)
    ),
    "bytes seen as others": (
        lambda: memoryview(bytearray(b"ab")), lambda b, x: x * b[0], lambda b: b.__setitem__(0, 1)
    ),
    "weak values": (
        lambda: weakref.WeakValueDictionary(a=_THERE), lambda d, x: x * d["a"].k,
        lambda _: setattr(_THERE, "k", 5.0),
    ),
    "weak reference": (
        lambda: weakref.ref(_THERE), lambda r, x: x * r().k, lambda _: setattr(_THERE, "k", 5.0)
    ),
    "descriptor": (_Described, lambda o, x: x * o.double, lambda o: setattr(o, "k", 5.0)),
    "method": (_Scaled, lambda o, x: o.scale(x), lambda _: _replace_method()),
}  # fmt: skip


@pytest.mark.parametrize("deep", [False, True], ids=["named", "below a name"])
@pytest.mark.parametrize("kind", _KINDS)
def test_whatever_holds_numbers_may_be_written_into(
    kind: str, deep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mappings of every kind, buffers, variables of a context; also beside what is read by name."""
    monkeypatch.setitem(_BASE, "a", 1.0)
    monkeypatch.setattr(_Scaled, "scale", _Scaled.scale)
    monkeypatch.setattr(_THERE, "k", 1.0)
    make, read, change = _KINDS[kind]
    holder = make()
    above = types.SimpleNamespace(holder=holder)

    def fun(x: Any) -> Any:
        return read(above.holder if deep else holder, x)

    contextvars.copy_context().run(_follows, fun, lambda: change(holder))


def _spread(x: Any, a: Any = 1.0, b: Any = 0.0) -> Any:
    return x * a + b


_CONFIG: dict[Any, Any] = {}


def _sum(d: Any) -> Any:
    total = 0.0
    for k in d:
        total += d[k]
    return total


def _below(o: Any) -> Any:
    below = o.d
    return sum([below[k] for k in below])


def _default(x: Any, d: Any = _CONFIG) -> Any:
    return x * _sum(d) + d["a"]


def _kept() -> Any:
    return _CONFIG


def _alias(x: Any) -> Any:
    d = _CONFIG
    return x * sum([d[k] for k in d]) + d["a"]


_O = types.SimpleNamespace(d=_CONFIG)
_WALKS: dict[str, Callable[[Any], Any]] = {
    "loop": lambda x: x * _CONFIG["a"] + sum([_CONFIG[k] for k in _CONFIG]),
    "loop below": lambda x: x * _O.d["a"] + sum([_O.d[k] for k in _O.d]),
    "arguments": lambda x: _spread(x, **_CONFIG) + _CONFIG["a"],
    "arguments below": lambda x: _spread(x, **_O.d) + _O.d["a"],
    "copy": lambda x: x * sum(list({**_CONFIG}.values())) + _CONFIG["a"],
    "copy below": lambda x: x * sum(list({**_O.d}.values())) + _O.d["a"],
    "alias": _alias,
    "alias below": lambda x: x * _below(_O) + _O.d["a"],
    "helper": lambda x: x * _sum(_CONFIG) + _CONFIG["a"],
    "helper below": lambda x: x * _sum(_O.d) + _CONFIG["a"],
    "returned": lambda x: x * _sum(_kept()) + _CONFIG["a"],
    "default": _default,
    "partial": functools.partial(_default, d=_CONFIG),
    "sorted": lambda x: x * sum([_CONFIG[k] for k in sorted(_CONFIG)]) + _CONFIG["a"],
    "values": lambda x: x * sum(_CONFIG.values()) + _CONFIG["a"],
    "made key": lambda x: x * _CONFIG["".join(["b"])] + _CONFIG["a"],
    "got": lambda x: x * _CONFIG.get("".join(["b"]), 0.0) + _CONFIG["a"],
    "method": lambda x: x * functools.reduce(max, map(_CONFIG.__getitem__, _CONFIG)) + _CONFIG["a"],
    "list of dicts": lambda x: x * sum([_sum(d) for d in [_CONFIG]]) + _CONFIG["a"],
    "compared": lambda x: x * (_CONFIG == {"a": 1.0, "b": 2.0}) + _CONFIG["a"],
}  # fmt: skip


@pytest.mark.parametrize("way", _WALKS)
def test_all_values_are_read_by_who_may_read_any(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where some of the keys are named, and where the dict has another name for a while."""
    monkeypatch.setitem(_CONFIG, "a", 1.0)
    monkeypatch.setitem(_CONFIG, "b", 2.0)
    _follows(_WALKS[way], lambda: _CONFIG.update(b=5.0))


_MANY = [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 4.0}]
_BY_NAME = {"x": {"a": 1.0, "b": 2.0}, "a": 2.0, (0, 1): 4.0, None: 3.0}


@pytest.mark.parametrize("deep", [False, True])
def test_what_is_walked_through_holds_what_is_walked_through(deep: bool) -> None:
    """Dicts in a list, and in a dict, beside keys that are named."""
    held: Any = {"all": _MANY} if deep else _MANY

    def fun(x: Any) -> Any:
        many = held["all"] if deep else held
        return x * sum([d[k] for d in many for k in d]) + many[0]["a"]

    _follows(fun, lambda: _MANY[1].update(b=_MANY[1]["b"] + 1.0))


@pytest.mark.parametrize("key", [(0, 1), None], ids=str)
def test_keys_may_be_any_constants(key: Any) -> None:
    """Not only numbers and strings."""
    pair: Any = lambda x: x * _BY_NAME["a"] * _BY_NAME[0, 1]  # noqa: E731
    none: Any = lambda x: x * _BY_NAME["a"] * _BY_NAME[None]  # noqa: E731
    _follows(none if key is None else pair, lambda: _BY_NAME.update({key: 7.0 + _BY_NAME[key]}))


@pytest.mark.parametrize("read", [
    lambda: globals()["_NUMBER"], lambda: eval("2 * _NUMBER"),
])  # fmt: skip
def test_globals_may_be_named_in_strings(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By who asks for all of them, or has Python read text."""
    _follows(lambda x: x * read(), lambda: monkeypatch.setitem(globals(), "_NUMBER", 3.0))


class _Twice:
    def scale(self, x: Any) -> Any:
        return x * 2

    @staticmethod
    def shift(x: Any) -> Any:
        return x + 1


class _Below(_Twice):
    pass


@pytest.mark.parametrize("name", ["scale", "shift"])
@pytest.mark.parametrize("where", ["object", "class", "base"])
def test_another_method_may_be_put_before_the_class_s(
    name: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the object, or on a class nearer to it; and it may be taken away again."""
    o = _Below()
    fun = {"scale": lambda x: o.scale(x) + 0.0, "shift": lambda x: o.shift(x) + 0.0}[name]
    run = ft.jit(fun)
    assert run(X).tolist() == fun(X).tolist()
    with monkeypatch.context() as patch:
        mine = (lambda x: x * 5) if where == "object" else (lambda _, x: x * 5)
        owner = {"object": o, "class": _Below, "base": _Twice}[where]
        patch.setattr(owner, name, mine if name == "scale" or where == "object" else
                      staticmethod(lambda x: x * 5), raising=False)  # fmt: skip
        for _ in range(3):
            assert run(X).tolist() == fun(X).tolist() == [5.0, 10.0]
        assert run.cache_info().misses == 2
    assert run(X).tolist() == fun(X).tolist() != [5.0, 10.0]


def test_a_global_may_come_before_a_builtin(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the function, and in what it calls."""

    def fun(x: Any) -> Any:
        return x * _sum_of([1.0, 2.0]) + max(1.0, 2.0)

    run = ft.jit(fun)
    assert run(X).tolist() == [5.0, 8.0]
    monkeypatch.setitem(globals(), "max", min)
    assert run(X).tolist() == [4.0, 7.0]
    monkeypatch.setitem(globals(), "sum", len)
    assert run(X).tolist() == [3.0, 5.0]
    monkeypatch.undo()
    assert run(X).tolist() == [5.0, 8.0]


def _sum_of(x: Any) -> Any:
    return sum(x)
