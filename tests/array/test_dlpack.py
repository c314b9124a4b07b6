"""DLPack of the narrow floats, there and back, and to torch where it is installed."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct.errors import ExchangeError

NARROW = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]
VALUES = [[1.0, 2.5, -0.5], [0.0, -2.0, 3.5]]

each = pytest.mark.parametrize("name", NARROW)


class Producer:
    """An array of another library: nothing but the two methods."""

    def __init__(self, x: Any, versions: bool = True) -> None:
        self.x, self.versions = x, versions

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        if not self.versions:
            if options:
                raise TypeError("an old producer takes no options")
            return self.x.__dlpack__()
        return self.x.__dlpack__(**options)


@each
def test_there_and_back(name: str) -> None:
    """Elements, dtype and shape come back, also of a view, and outlive their producer."""
    for make in (
        lambda x: x,
        lambda x: x.mT,
        lambda x: x[:, ::2],
        lambda x: x[0, 1],
        lambda x: x[:0],
    ):
        x = make(xp.asarray(VALUES, dtype=getattr(xp, name)))
        for copy in (None, False, True):
            y = xp.from_dlpack(Producer(x), copy=copy)
            gc.collect()
            assert y.dtype == x.dtype
            assert y.shape == x.shape
            assert y.tolist() == x.tolist()


def test_old_producers_and_consumers() -> None:
    """bfloat16 is known since version 0.6; float8 only from 1.1 on."""
    x = xp.asarray(VALUES, dtype=xp.bfloat16)
    assert xp.from_dlpack(Producer(x, versions=False)).tolist() == VALUES
    with pytest.raises(ExchangeError, match=r"float8_e5m2 needs a consumer of DLPack 1\.1"):
        xp.asarray(VALUES, dtype=xp.float8_e5m2).__dlpack__()


def test_what_numpy_refuses_is_still_refused() -> None:
    """A dtype that neither NumPy nor this table knows."""
    with pytest.raises(ExchangeError):
        xp.zeros(3, dtype=xp.int4).__dlpack__(max_version=(1, 1))
    with pytest.raises(ExchangeError):
        xp.from_dlpack(Producer(np.zeros(3, "datetime64[s]")))


@each
def test_torch_takes_and_gives_them(name: str) -> None:
    """torch's tensors of the same name hold the same elements."""
    torch = pytest.importorskip("torch", reason="torch is a peer, no dependency")
    x = xp.asarray(VALUES, dtype=getattr(xp, name))
    theirs = torch.from_dlpack(x)
    assert theirs.dtype is getattr(torch, name)
    assert theirs.to(torch.float64).tolist() == VALUES
    theirs.view(torch.uint8).zero_()  # a copy: x stays
    assert x.tolist() == VALUES
    back = xp.from_dlpack(torch.tensor(VALUES).to(getattr(torch, name)))
    assert back.dtype == x.dtype
    assert back.tolist() == VALUES
