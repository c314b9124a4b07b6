"""A device without a machine: buffers of a class of its own that refuses to be an ndarray.

It answers NumPy's protocols as CuPy's arrays do, so what runs on it calls nothing but functions
that reach a device's library. It stands in where there is no GPU; the tests run on one too.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from funct.device.places import Place, register_place

__all__ = ["Far", "register"]

CODE = 12  # DLPack's kDLExtDev
_PRODUCTS = {"matmul", "matvec", "vecdot", "vecmat"}  # CuPy takes no other loop over stacks


class Far(np.lib.mixins.NDArrayOperatorsMixin):
    """A buffer of the device."""

    __slots__ = ("near", "number")

    def __init__(self, near: Any, number: int = 0) -> None:
        self.near = near
        self.number = number

    shape = property(lambda self: self.near.shape)
    dtype = property(lambda self: self.near.dtype)
    ndim = property(lambda self: self.near.ndim)
    size = property(lambda self: self.near.size)
    nbytes = property(lambda self: self.near.nbytes)
    strides = property(lambda self: self.near.strides)
    flags = property(lambda self: self.near.flags)
    T = property(lambda self: self._wrap(self.near.T))
    mT = property(lambda self: self._wrap(self.near.swapaxes(-1, -2)))  # noqa: N815
    real = property(lambda self: self._wrap(self.near.real))
    imag = property(lambda self: self._wrap(self.near.imag))

    def _wrap(self, found: Any) -> Any:
        if isinstance(found, np.ndarray | np.generic):
            return Far(np.asarray(found), self.number)
        if isinstance(found, list):
            return [self._wrap(v) for v in found]
        if isinstance(found, tuple):
            made = tuple([self._wrap(v) for v in found])
            return type(found)(*made) if hasattr(found, "_fields") else made
        return found

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("no implicit conversion to an ndarray")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or (ufunc.signature and ufunc.__name__ not in _PRODUCTS):
            return NotImplemented
        out = kwargs.get("out")
        if out is not None:
            kwargs["out"] = tuple(_near(v) for v in out)
        found = getattr(ufunc, method)(*map(_near, inputs), **kwargs)
        return out[0] if out is not None and len(out) == 1 else self._wrap(found)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if "initial" in kwargs:
            raise TypeError(f"{func.__name__}() got an unexpected keyword argument 'initial'")
        return self._wrap(func(*_near(args), **_near(kwargs)))

    def __getitem__(self, key: Any) -> Any:
        return self._wrap(self.near[_near(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.near[_near(key)] = _near(value)

    def __len__(self) -> int:
        return len(self.near)

    def __bool__(self) -> bool:
        return bool(self.near)

    def __int__(self) -> int:
        return int(self.near)

    def __float__(self) -> float:
        return float(self.near)

    def __index__(self) -> int:
        return int(self.near.__index__())

    def __dlpack_device__(self) -> tuple[int, int]:
        return CODE, self.number

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self

    def item(self, *args: Any) -> Any:
        return self.near.item(*args)


def _method(name: str) -> Any:
    def call(self: Far, *args: Any, **kwargs: Any) -> Any:
        return self._wrap(getattr(self.near, name)(*_near(args), **_near(kwargs)))

    return call


for _name in (
    "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "copy", "cumprod",
    "cumsum", "diagonal", "dot", "flatten", "max", "mean", "min", "nonzero", "prod", "ravel",
    "repeat", "reshape", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take",
    "tobytes", "tolist", "trace", "transpose", "var", "view",
):  # fmt: skip
    setattr(Far, _name, _method(_name))


def _near(v: Any) -> Any:
    """v with Far's ndarrays; an ndarray beside them is refused, as CuPy does."""
    if isinstance(v, Far):
        return v.near
    if isinstance(v, np.ndarray) and v.ndim:
        raise TypeError("an ndarray is not on the device")
    if isinstance(v, tuple | list):
        return type(v)([_near(w) for w in v])
    if isinstance(v, dict):
        return {k: _near(w) for k, w in v.items()}
    return v


def _open(number: int) -> Place:
    return Place(
        name=f"far:{number}",
        buffer=Far,
        number=lambda buffer: buffer.number,
        put=lambda data: Far(np.array(data), number),
        get=lambda buffer: buffer.near.copy(),
        take=lambda x: x,
        special=lambda name: None,
        add_at=lambda y, i, v: np.add.at(y.near, i.near, v.near),
        active=contextlib.nullcontext,
    )


def register() -> None:
    """Make "far:0" and "far:1" known."""
    register_place("far", _open, lambda: 2, CODE)
