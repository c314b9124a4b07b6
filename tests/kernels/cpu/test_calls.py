"""Builtin functions made of addresses: `maker` beside `object.__new__`."""

import gc
import sys
import weakref

import pytest

from funct.kernels.cpu.calls import maker


class Held:
    """A slot, and a list of those who look."""

    __slots__ = ("__weakref__", "data")


def test_made_as_by_new() -> None:
    """An instance has empty slots, is seen by the collector, and dies with its cycle."""
    made = maker(Held)(None)
    assert type(made) is Held
    with pytest.raises(AttributeError):
        _ = made.data
    assert gc.is_tracked(made) == gc.is_tracked(object.__new__(Held))
    assert sys.getsizeof(made) == sys.getsizeof(object.__new__(Held))
    made.data = made
    seen = weakref.ref(made)
    del made
    gc.collect()
    assert seen() is None


def test_counts_references() -> None:
    """The class is referred to by its instances while they live, by whatever argument."""
    make = maker(Held)
    before = sys.getrefcount(Held)
    found = [make(k) for k in range(1000)]  # type: ignore[arg-type]
    assert sys.getrefcount(Held) == before + 1000
    del found
    assert sys.getrefcount(Held) == before
