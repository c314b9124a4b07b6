"""Whatever holds what a jitted function reads: it is noticed what comes, and what is written."""

from __future__ import annotations

import array
import collections
import contextvars
import types
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


class _Scaled:
    def scale(self, x: Any) -> Any:
        return x * 2


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
    make, read, change = _KINDS[kind]
    holder = make()
    above = types.SimpleNamespace(holder=holder)

    def fun(x: Any) -> Any:
        return read(above.holder if deep else holder, x)

    contextvars.copy_context().run(_follows, fun, lambda: change(holder))


def _spread(x: Any, a: Any = 1.0, b: Any = 0.0) -> Any:
    return x * a + b


@pytest.mark.parametrize("deep", [False, True], ids=["named", "below a name"])
@pytest.mark.parametrize("way", ["loop", "arguments", "copy"])
def test_all_values_are_read_by_who_walks_through_them(way: str, deep: bool) -> None:
    """Also where some of the keys are named."""
    d = {"a": 1.0, "b": 2.0}
    o = types.SimpleNamespace(d=d)
    ways: dict[tuple[str, bool], Any] = {
        ("loop", False): lambda x: x * d["a"] + sum([d[k] for k in d]),
        ("loop", True): lambda x: x * o.d["a"] + sum([o.d[k] for k in o.d]),
        ("arguments", False): lambda x: _spread(x, **d) + d["a"],
        ("arguments", True): lambda x: _spread(x, **o.d) + o.d["a"],
        ("copy", False): lambda x: x * sum(list({**d}.values())) + d["a"],
        ("copy", True): lambda x: x * sum(list({**o.d}.values())) + o.d["a"],
    }
    _follows(ways[way, deep], lambda: d.update(b=5.0))
