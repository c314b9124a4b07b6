"""Processors without conversions of float16 have ours, with NumPy's bits."""

import ctypes
import platform
from typing import Any

import numpy as np
import pytest

from funct import device
from funct.device.host import Host, vector_bytes
from funct.device.machine_code import emit

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="other processors have them all"
)
FEATURES = frozenset({"sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "cx8", "cmov", "mmx"})
OLD = Host("nehalem", FEATURES, vector_bytes(FEATURES), 1)
LOOP = """
define void @loop(ptr %x, ptr %y, i64 %n) {{
entry:
  br label %each
each:
  %i = phi i64 [0, %entry], [%next, %each]
  %from = getelementptr {0}, ptr %x, i64 %i
  %v = load {0}, ptr %from
  %w = {2} {0} %v to {1}
  %to = getelementptr {1}, ptr %y, i64 %i
  store {1} %w, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %each, label %end
end:
  ret void
}}
"""
WORDS: dict[Any, str] = {np.float16: "half", np.float32: "float", np.float64: "double"}


def converted(x: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """As code for the old processor converts it."""
    how = "fpext" if np.dtype(dtype).itemsize > x.itemsize else "fptrunc"
    text = LOOP.format(WORDS[x.dtype.type], WORDS[dtype], how)
    code = device.load_object(emit(text, OLD))
    y = np.empty(x.shape, dtype)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    call(code.address("loop"))(x.ctypes.data, y.ctypes.data, x.size)
    return y


def halves() -> np.ndarray[Any, Any]:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_float16_is_widened_as_numpy_does_it(dtype: Any) -> None:
    """All 65,536, those that are NaN as far as they are NaN."""
    y, expected = converted(halves(), dtype), halves().astype(dtype)
    np.testing.assert_array_equal(y, expected)
    assert np.array_equal(np.signbit(y), np.signbit(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_numbers_are_narrowed_once(dtype: Any) -> None:
    """Every float16, what lies between two of them, and what lies beside that."""
    all_of_them = halves().astype(np.float64)
    known = np.sort(all_of_them[np.isfinite(all_of_them)])
    between = (known[:-1] + known[1:]) / 2
    edges = np.array([65519.996, 65520.0, 65536.0, 1e30, np.inf, 1e-45, 0.0])
    beside = [np.nextafter(between.astype(dtype), dtype(s)) for s in (-np.inf, np.inf)]
    x = np.concatenate([known, between, *beside, edges, -edges]).astype(dtype)
    y, expected = converted(x, np.float16), x.astype(np.float16)
    assert np.array_equal(y.view(np.uint16), expected.view(np.uint16))
    assert np.isnan(converted(np.array([np.nan, -np.nan], dtype), np.float16)).all()
