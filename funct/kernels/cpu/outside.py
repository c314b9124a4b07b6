"""What machine code may call besides its own: functions of Python, NumPy and the C library."""

from __future__ import annotations

import ctypes
import functools
import platform
import re
from typing import Any

import numpy as np

from funct.device.machine_code import offer

__all__ = ["address_in_python", "declared", "sort_of", "sorts", "warning_flags"]

# Of Python's C API,
_PYTHON = {
    "PyContextVar_Get": "i32 (ptr, ptr, ptr)",
    "PyDict_GetItem": "ptr (ptr, ptr)", "PyDict_SetItem": "i32 (ptr, ptr, ptr)",
    "PyErr_Clear": "void ()", "PyErr_ExceptionMatches": "i32 (ptr)", "PyErr_NoMemory": "ptr ()",
    "PyErr_Occurred": "ptr ()", "PyEval_RestoreThread": "void (ptr)", "PyEval_SaveThread": "ptr ()",
    "PyFloat_FromDouble": "ptr (double)",
    "PyList_GetItem": "ptr (ptr, i64)", "PyList_New": "ptr (i64)",
    "PyList_SetItem": "i32 (ptr, i64, ptr)", "PyList_SetSlice": "i32 (ptr, i64, i64, ptr)",
    "PyList_Size": "i64 (ptr)", "PyLong_AsLongLong": "i64 (ptr)",
    "PyLong_FromLongLong": "ptr (i64)", "PyMem_RawFree": "void (ptr)",
    "PyMem_RawMalloc": "ptr (i64)", "PyObject_GetAttrString": "ptr (ptr, ptr)",
    "PyObject_GetItem": "ptr (ptr, ptr)", "PyObject_RichCompareBool": "i32 (ptr, ptr, i32)",
    "PyObject_Vectorcall": "ptr (ptr, ptr, i64, ptr)", "PyTuple_GetItem": "ptr (ptr, i64)",
    "PyTuple_New": "ptr (i64)", "PyTuple_SetItem": "i32 (ptr, i64, ptr)",
    "PyTuple_Size": "i64 (ptr)", "PyType_GenericAlloc": "ptr (ptr, i64)",
    "Py_DecRef": "void (ptr)", "Py_IncRef": "void (ptr)",
}  # fmt: skip
# of C's library, whose flags invalid, divide by zero, overflow, underflow are these,
_LIBC = {
    "feclearexcept": "i32 (i32)", "fetestexcept": "i32 (i32)", "memcmp": "i32 (ptr, ptr, i64)",
}  # fmt: skip
_FLAGS = {"x86_64": 0x1D, "aarch64": 0x0F, "arm64": 0x0F}
# and of NumPy's, whose ABI fixes where in its table they stand.
_NUMPY = {
    "PyArray_FromScalar": "ptr (ptr, ptr)", "PyArray_MultiplyList": "i64 (ptr, i32)",
    "PyArray_NewCopy": "ptr (ptr, i32)",
    "PyArray_NewFromDescr": "ptr (ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)",
    "PyArray_NewLikeArray": "ptr (ptr, i32, ptr, i32)",
}  # fmt: skip
_PLACES = {
    "PyArray_FromScalar": 61, "PyArray_MultiplyList": 158, "PyArray_NewCopy": 85,
    "PyArray_NewFromDescr": 94, "PyArray_NewLikeArray": 277,
}  # fmt: skip


def address_in_python(name: str) -> int:
    """Where a function of Python's C API is."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def _of_numpy(number: int) -> int:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api = pointer(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    return ctypes.c_size_t.from_address(api + 8 * number).value


def _of_libc(name: str) -> int:
    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0


for _name in _PYTHON:
    offer(_name, functools.partial(address_in_python, _name))
for _name in _LIBC:
    offer(_name, functools.partial(_of_libc, _name))
for _name, _number in _PLACES.items():
    offer(_name, functools.partial(_of_numpy, _number))


# `_PyDataType_GetArrFuncs`, and the first sort among what it gives
_FUNCTIONS, _SORT = 365, 33


@functools.cache
def sorts(dtype: np.dtype[Any]) -> int:
    """Where NumPy's `int sort(void *, intp, void *)` of a dtype is, its unstable one; 0 where there
    is none, or it does not sort.
    """
    functions = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(_of_numpy(_FUNCTIONS))(dtype)
    found = ctypes.c_size_t.from_address(functions + 8 * _SORT).value if functions else 0
    if not found:
        return 0
    x = np.asarray([3, 1, 2] * 30).astype(dtype)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p)
    failed = kind(found)(x.ctypes.data, len(x), None)
    return found if not failed and bool((x[:-1] <= x[1:]).all()) else 0


def sort_of(dtype: np.dtype[Any]) -> str:
    """The name by which machine code may call it, of numbers of 2, 4 and 8 bytes."""
    return f"numpy_sort_{dtype.name}"


for _dtype in map(np.dtype, ("i2", "i4", "i8", "u2", "u4", "u8", "f4", "f8")):
    offer(sort_of(_dtype), functools.partial(sorts, _dtype))  # code kept on disk may want it


@functools.cache
def warning_flags() -> int | None:
    """The flags at which NumPy warns; None where they cannot be asked for."""
    found = _FLAGS.get(platform.machine())
    return found if found and all(hasattr(ctypes.CDLL(None), n) for n in _LIBC) else None


def declared(text: str) -> str:
    """The text behind declarations of what it calls of the functions above."""
    known = _PYTHON | _LIBC | _NUMPY
    called = {name for name in re.findall(r"@(\w+)\(", text) if name in known}
    kinds = {name: known[name].split(" ", 1) for name in sorted(called)}
    return "".join(f"declare {of} @{n}{taken}\n" for n, (of, taken) in kinds.items()) + text
