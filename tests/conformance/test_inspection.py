"""What the namespace says about itself is true."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, DTypeError

INFO = xp.__array_namespace_info__()

KINDS = {
    "bool": ["bool"],
    "signed integer": ["int8", "int16", "int32", "int64"],
    "unsigned integer": ["uint8", "uint16", "uint32", "uint64"],
    "real floating": ["float32", "float64"],
    "complex floating": ["complex64", "complex128"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_dtypes_of_one_kind(kind: str) -> None:
    """Names in the standard's spelling, dtypes that the namespace holds under that name."""
    found = INFO.dtypes(kind=kind)
    assert list(found) == KINDS[kind]
    assert all(found[name] == getattr(xp, name) for name in found)
    assert all(xp.isdtype(dtype, kind) for dtype in found.values())


def test_dtypes_of_several_kinds() -> None:
    """A tuple joins kinds, None means all; dtypes beyond the standard are not listed."""
    assert sorted(INFO.dtypes()) == sorted(name for kind in KINDS.values() for name in kind)
    both = INFO.dtypes(kind=("bool", "real floating"))
    assert sorted(both) == ["bool", "float32", "float64"]
    with pytest.raises(DTypeError, match="kind must be one of"):
        INFO.dtypes(kind="float")


def test_defaults_are_what_functions_choose() -> None:
    """The default dtypes are those that creation and searching functions give."""
    defaults = INFO.default_dtypes()
    assert xp.zeros(2).dtype == xp.asarray(1.0).dtype == defaults["real floating"]
    assert xp.asarray(1j).dtype == defaults["complex floating"]
    assert xp.arange(2).dtype == xp.asarray(1).dtype == defaults["integral"]
    assert xp.argmax(xp.zeros(2)).dtype == defaults["indexing"]


def test_devices_can_be_used() -> None:
    """Every device in the list takes arrays."""
    assert isinstance(INFO.devices(), tuple)
    for device in (*INFO.devices(), INFO.default_device()):
        assert xp.empty(2, device=device).device == device


def test_files_are_no_functions() -> None:
    """Clients ask `hasattr(xp, name)` for functions beyond the standard, and call them."""
    files = {name for name, value in vars(xp).items() if isinstance(value, ModuleType)}
    assert not [name for name in files - {*xp.__all__} if callable(getattr(np, name, None))]


def test_capabilities() -> None:
    """The answers are static: the same in a trace."""
    expected = {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}
    assert INFO.capabilities() == expected
    seen: list[Any] = []
    ft.jit(lambda x: (seen.append(x.__array_namespace__().__array_namespace_info__()), x)[1])(
        xp.ones(2)
    )
    assert seen[0].capabilities() == expected
    assert xp.zeros((1,) * 64).ndim == 64


@pytest.mark.parametrize("version", [None, "2023.12", "2024.12", "2025.12"])
def test_every_version_is_one_namespace(version: str | None) -> None:
    """Arrays and tracers name the module itself; an unknown version is refused."""
    assert xp.ones(1).__array_namespace__(api_version=version) is xp
    ft.grad(lambda x: (x.__array_namespace__(api_version=version), x)[1])(1.0)
    with pytest.raises(ArgumentError, match="api_version must be one of"):
        xp.ones(1).__array_namespace__(api_version="1999.01")
