"""What making code leaves behind goes back to the system."""

import ctypes
import subprocess
import sys

import pytest

import funct as ft
import funct.array as xp
from funct.compile import executable

_FREED = """
import ctypes
from funct.device.llvm import release

def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))  # kB

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
libc.free.argtypes = (ctypes.c_void_p,)
blocks = [libc.malloc(16 << 10) for _ in range(2000)]
for block in blocks:
    ctypes.memset(block, 1, 16 << 10)
for block in blocks[:-1]:  # the last one holds the heap's end where it is
    libc.free(block)
before = resident()
release()
print(before - resident())
"""


def _is_glibc() -> bool:
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim")


@pytest.mark.skipif(not _is_glibc(), reason="the C library is not glibc")
def test_what_was_freed_in_the_c_librarys_heap_goes_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FREED], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 24_000  # of the 32,000 kB


def test_code_that_takes_long_to_make_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(executable, "release", lambda: calls.append("released"))
    x = xp.ones(100_000)
    monkeypatch.setattr(executable, "_LONG", 3600.0)
    ft.jit(lambda x: xp.sin(x) + 1)(x)
    assert not calls
    monkeypatch.setattr(executable, "_LONG", 0.0)
    ft.jit(lambda x: xp.cos(x) + 1)(x)
    assert calls == ["released"]
