"""What an Array gives to others: ndarrays, buffers, DLPack capsules, pickles, text.

Nobody can write through any of them into the Array.
"""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from funct.errors import ArgumentError, DTypeError, ExchangeError
from funct.kernels import dlpack
from funct.kernels.dtypes import NATIVE
from funct.ops.fast import wrap
from funct.ops.refusals import out_of_memory

__all__ = ["Exchange"]


asarray = np.asarray


class Exchange:
    """The protocols of one immutable buffer, `data`."""

    __slots__ = ()

    data: Any
    dtype: Any

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if dtype is None and not copy and self.data.dtype.num < NATIVE:
            return asarray(memoryview(self.data).toreadonly())
        if dtype is not None and (wanted := _numpy_dtype(dtype)) != self.data.dtype:
            if copy is False:
                raise ArgumentError(f"__array__: copy=False, but {self.dtype} is cast to {dtype}")
            return self.data.astype(wanted)
        if copy:
            return self.data.copy("K")
        return _read_only(self.data)

    def __bytes__(self) -> bytes:
        return self.data.tobytes()

    def __buffer__(self, flags: int, /) -> memoryview:
        """A read-only view for `memoryview(x)`, from Python 3.12 on."""
        try:
            return memoryview(self.data).toreadonly()
        except ValueError as error:  # a dtype of ml_dtypes
            raise ExchangeError(f"__buffer__: {error}", fix="x.astype(float32)") from None

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule for `from_dlpack`: a copy that the consumer may write into.

        copy=False shares the buffer and marks it read-only; consumers older than DLPack 1.0 know no
        such mark and get a copy all the same. Raises BufferError for another device.
        """
        if stream is not None:
            raise ArgumentError(f"__dlpack__: stream must be None on the CPU, got {stream!r}")
        if dl_device is not None and _pair("dl_device", dl_device) != (1, 0):
            raise ExchangeError(f"__dlpack__: dl_device must be (1, 0), the CPU, got {dl_device}")
        if max_version is not None:
            max_version = _pair("max_version", max_version)
        share = copy is False and max_version is not None and max_version[0] >= 1
        try:
            data = self.__array__() if share else self.data.copy("K")
            return dlpack.give(data, max_version)
        except BufferError as error:
            raise ExchangeError(f"__dlpack__: {error}") from None
        except MemoryError as error:
            raise out_of_memory("__dlpack__", error) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap, (_read_only(self.data),)  # pickle hands buffers on where it is asked to

    def __repr__(self) -> str:
        if not isinstance(self.data, np.ndarray):
            return f"Array({self.data!r})"  # which was given away: whoever shows it asks for no use
        text = np.array2string(self.data, separator=", ", prefix="Array(")
        summary = "..." in text or not self.data.size
        shape = f"shape={self.data.shape}, " if summary else ""
        return f"Array({text}, {shape}dtype={self.data.dtype})"

    def _repr_html_(self) -> str:
        if not isinstance(self.data, np.ndarray):
            return f"<pre>{html.escape(repr(self))}</pre>"
        head = f"<strong>Array</strong> {self.data.shape} {self.data.dtype}"
        return f"<div>{head}<pre>{html.escape(np.array2string(self.data))}</pre></div>"


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        return np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise DTypeError(f"__array__: dtype must be one of NumPy's, got {dtype!r}") from error


def _pair(argument: str, value: Any) -> tuple[int, int]:
    try:
        first, second = value
        return int(first), int(second)
    except (TypeError, ValueError):
        raise ArgumentError(f"__dlpack__: {argument} must be two ints, got {value!r}") from None


def _read_only(data: Any) -> Any:
    """A view that cannot be made writable: NumPy asks the owner, and that is a memoryview here."""
    if data.dtype.num >= NATIVE:  # a dtype of ml_dtypes: no buffer format
        raw = data.view(f"u{data.dtype.itemsize}")
        return np.asarray(memoryview(raw).toreadonly()).view(data.dtype)
    return np.asarray(memoryview(data).toreadonly())
