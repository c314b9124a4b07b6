"""What jit takes for part of a signature is told apart by what it computes."""

import dataclasses
import math
from typing import Any

import attrs
import pytest

import funct as ft
import funct.array as xp
from funct import tree
from tests import laws


@tree.register
@attrs.frozen
class Scaled:
    """An argument whose number is structure."""

    x: Any
    by: Any = tree.static_field(default=1)  # noqa: RUF009  attrs reads it


@dataclasses.dataclass(frozen=True)
class By:
    """A static argument."""

    by: Any


def of_by(x: Any, by: Any) -> Any:
    """What shows a number's kind and its sign."""
    return xp.copysign(x, math.copysign(1.0, by)) if by == 0 else x * by


_HOLDERS: dict[str, tuple[Any, Any]] = {
    "field": (lambda s: of_by(s.x, s.by), Scaled),
    "dataclass": (ft.jit(lambda x, a: of_by(x, a.by), static_argnums=1), By),
    "tuple": (ft.jit(lambda x, a: of_by(x, a[0][0]), static_argnums=1), lambda v: ((v,),)),
    "set": (ft.jit(lambda x, a: of_by(x, *a), static_argnums=1), lambda v: frozenset([v])),
    "record in a record": (
        ft.jit(lambda x, a: of_by(x, a.by.by), static_argnums=1), lambda v: By(By(v))
    ),
}  # fmt: skip


@pytest.mark.parametrize("holder", _HOLDERS)
def test_equal_numbers_are_not_the_same(holder: str) -> None:
    """1, 1.0 and True, 0.0 and -0.0 compute differently wherever they are static."""
    run, make = _HOLDERS[holder]
    run = ft.jit(run) if holder == "field" else run
    for values, x in (
        ((1, 1.0, True, 1), xp.asarray([2, 3])),
        ((0.0, -0.0, 0.0), xp.asarray([2.0])),
    ):
        for v in values:
            out = run(make(x, v)) if holder == "field" else run(x, make(v))
            laws.same(out, of_by(x, v))


@pytest.mark.parametrize("options", [{}, {"donate_argnums": 0}, {"mode": "check"}])
def test_equal_keys_are_told_apart_by_their_types(options: dict[str, Any]) -> None:
    """Of dicts, as static values are: a structure takes 1, 1.0 and True for one key."""

    def scaled(d: dict[Any, Any]) -> Any:
        (k, x), = d.items()  # fmt: skip
        key = k[0] if isinstance(k, tuple) else k
        return {k: x * {bool: 2.0, int: 3.0, float: 5.0}[type(key)] * math.copysign(1.0, key)}

    f = ft.jit(scaled, **options)
    keys = (1, True, 1.0, 0, False, 0.0, -0.0, (1,), (True,))
    for k in (*keys, *keys):
        for _ in range(2):
            x = xp.asarray([2.0])
            (found, y), = f({k: x}).items()  # fmt: skip
            (wanted, z), = scaled({k: xp.asarray([2.0])}).items()  # fmt: skip
            assert (repr(found), y.tolist()) == (repr(wanted), z.tolist())
    assert f.cache_info().misses == len(keys)
