"""Pages of a library's file: they go, and come again as they were."""

import os
import platform
import subprocess
import sys
import threading
import time

import pytest

import funct as ft
from funct.device import llvm
from funct.device.machine_code import emit
from funct.device.mapped_files import let_go

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="of Linux"
)
MIB = 1 << 20


def text(n):
    return f"define i32 @n() {{ ret i32 {n} }}"


def name_of_llvm():
    return os.path.realpath(llvm.library().file)  # as the system says it


def resident():
    """Bytes of LLVM's file that are counted to this process."""
    found, mine = 0, False
    with open("/proc/self/smaps", encoding="utf-8") as lines:
        for line in lines:
            if "-" in line.split()[0]:
                mine = line.rstrip().endswith(name_of_llvm())
            elif mine and line.startswith("Rss:"):
                found += 1024 * int(line.split()[1])
    return found


def test_pages_that_were_let_go_come_again(monkeypatch):
    """Code for one text is the same before and after, and LLVM's pages are few in between."""
    for thread in threading.enumerate():
        if thread.name == "funct: pauses of LLVM":  # after code of another test
            thread.join()
    monkeypatch.setattr(llvm, "_watched", True)  # and nobody else does
    before = emit(text(771), ft.device.host())
    many = resident()
    let_go(name_of_llvm())
    few = resident()
    assert few < 4 * MIB < many
    assert emit(text(771), ft.device.host()) == before
    assert resident() > few


def test_of_what_is_not_loaded_nothing_is_let_go():
    let_go("/no/such/library.so")


# A thread asks again and again where pages lie while the main one, which has the interpreter's lock
# in dlopen, has the linker add a library and take it away.
LOADS = """
import _ctypes, _heapq, shutil, sys, threading
from funct.device import llvm, mapped_files

name = llvm.library().file
ended = False

def look():
    while not ended:
        mapped_files._unwritten.cache_clear()
        mapped_files.let_go(name)

thread = threading.Thread(target=look)
thread.start()
copy = shutil.copy(_heapq.__file__, sys.argv[1])
for _ in range(4000):
    _ctypes.dlclose(_ctypes.dlopen(copy, 2))
ended = True
thread.join()
"""


def test_who_loads_a_library_waits_for_nobody(tmp_path):
    """Importing an extension module while a pause begins ends."""
    subprocess.run([sys.executable, "-c", LOADS, str(tmp_path)], check=True, timeout=120)


def test_pages_of_llvm_are_let_go_in_pauses():
    """Without anybody asking, once no code has been made for a while."""
    emit(text(772), ft.device.host())
    until = time.monotonic() + 10
    while resident() > 4 * MIB and time.monotonic() < until:
        time.sleep(0.02)
    assert resident() < 4 * MIB
