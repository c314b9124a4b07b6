"""DLPack of the narrow floats, which NumPy neither gives nor takes: the same bytes, another name.

A capsule holds a C record that says where elements lie and what they are. NumPy makes and reads it
for integers of the same width; here only its two bytes that name the type are exchanged.
Source: dlpack.h 1.1, `DLDataType` and `DLManagedTensorVersioned`.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["give", "take"]

# The type code of each, and the version of DLPack that knows it.
_CODES = {
    np.dtype(ml_dtypes.bfloat16): (4, (0, 6)),
    np.dtype(ml_dtypes.float8_e4m3fn): (10, (1, 1)),
    np.dtype(ml_dtypes.float8_e5m2): (12, (1, 1)),
}
_NARROW = {(code, 8 * dtype.itemsize): dtype for dtype, (code, _) in _CODES.items()}
_UNSIGNED = 1
# Behind which byte of the record the type stands, in capsules of either name.
_PLACES = ((b"dltensor_versioned", 52), (b"dltensor", 20))

_NAMED = ctypes.py_object, ctypes.c_char_p  # a capsule and its name
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, *_NAMED)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, *_NAMED)(("PyCapsule_GetPointer", ctypes.pythonapi))


def _record(capsule: Any) -> tuple[int, int]:
    """Address of the record in a capsule, and of its type."""
    for name, place in _PLACES:
        if _is_valid(capsule, name):
            address = _pointer(capsule, name)
            return address, address + place
    raise BufferError("no capsule of DLPack")


def give(data: Any, max_version: tuple[int, int] | None) -> Any:
    """A capsule of data for a consumer of that version. Raises BufferError."""
    known = _CODES.get(data.dtype)
    if known is None:
        return data.__dlpack__(max_version=max_version)
    code, since = known
    if since > (0, 6) and (max_version is None or max_version < (1, 0)):
        raise BufferError(f"{data.dtype} needs a consumer of DLPack {since[0]}.{since[1]}")
    capsule = data.view(f"u{data.dtype.itemsize}").__dlpack__(max_version=max_version)
    record, kind = _record(capsule)
    ctypes.c_uint8.from_address(kind).value = code
    if since > (0, 6):
        ctypes.c_uint32.from_address(record + 4).value = since[1]
    return capsule


class _Renamed:
    """A producer whose narrow floats are given as integers."""

    def __init__(self, x: Any) -> None:
        self.x = x
        self.dtype: Any = None

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.x.__dlpack__(**options)
        kind = _record(capsule)[1]
        code, bits = (ctypes.c_uint8.from_address(kind + i) for i in range(2))
        self.dtype = _NARROW.get((code.value, bits.value))
        if self.dtype is not None:
            code.value = _UNSIGNED
        return capsule


def take(x: Any, **options: Any) -> Any:
    """An ndarray that shares the memory of x. Options, and what is raised, are NumPy's.

    device="cpu" asks x's library for its elements on the host.
    """
    try:
        return np.from_dlpack(x, **options)
    except (BufferError, RuntimeError):
        renamed = _Renamed(x)
        data = np.from_dlpack(renamed, **options)
        if renamed.dtype is None:
            raise
        return data.view(renamed.dtype)
