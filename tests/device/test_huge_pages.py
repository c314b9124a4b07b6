"""Pages of memory that is used again and again are put together, and only the clock notices."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from funct.device import memory
from funct.device.memory import front, huge_pages
from funct.device.memory.front import set_handler

pytestmark = pytest.mark.skipif(
    not huge_pages.has_huge_pages(), reason="the system has no huge pages, or they are forbidden"
)
MIB = 1 << 20


def huge_bytes(address):
    """Bytes in huge pages of the mapping that holds the address."""
    inside = False
    with open("/proc/self/smaps") as file:
        for line in file:
            first = line.split(maxsplit=1)[0]
            if "-" in first:
                low, high = (int(part, 16) for part in first.split("-"))
                inside = low <= address < high
            elif inside and first == "AnonHugePages:":
                return int(line.split()[1]) << 10
    return 0


@pytest.fixture
def front_of_our_own(monkeypatch):
    """A front with segments of its own, and what it asks to be put together."""
    memory.serve()
    asked = []
    monkeypatch.setattr(front, "put_together", asked.append)
    made = memory.HOST.private()
    outer = set_handler(made.capsule)
    yield made, asked
    set_handler(outer)


def test_memory_is_put_together_once_it_was_handed_out_many_times(front_of_our_own):
    made, asked = front_of_our_own
    size = 4 * MIB
    np.empty(size, np.uint8)
    reserved = made.policy.large.reserved.current
    for _ in range(front._TIMES * reserved // size // 2):
        np.empty(size, np.uint8)
    assert asked == []
    for _ in range(front._TIMES * reserved // size):
        np.empty(size, np.uint8)
    assert asked == [[(s.start, s.size) for s in made.policy.large.segments]]


def test_small_blocks_alone_ask_for_nothing(front_of_our_own):
    _, asked = front_of_our_own
    held = [np.empty(MIB // 2, np.uint8) for _ in range(40)]
    assert asked == []
    held += [np.empty(4 * MIB, np.uint8) for _ in range(3)]
    assert asked == []


def test_new_memory_waits_for_its_own_time(front_of_our_own):
    made, asked = front_of_our_own
    for turn in (1, 2):
        held = [np.empty(4 * MIB, np.uint8) for _ in range(10 * turn)]  # beyond what is there
        assert len(asked) == turn - 1
        held.clear()
        for _ in range(2 * front._TIMES * made.policy.large.reserved.current // (4 * MIB)):
            np.empty(4 * MIB, np.uint8)
        assert len(asked) == turn


def test_recorded_blocks_are_counted_too(front_of_our_own):
    made, asked = front_of_our_own
    made.record_events(10)
    for _ in range(2 * front._TIMES * 32 * MIB // (4 * MIB)):
        np.empty(4 * MIB, np.uint8)
    made.record_events(0)
    assert len(asked) == 1
    assert made.lent == {}


def test_the_bytes_stay_while_their_pages_are_put_together():
    x = np.empty(16 * MIB, np.uint8).view(np.uint64)
    x[:] = np.arange(x.size)
    done = threading.Event()
    wrong = []

    def look():
        counter = x[::4096]  # of each page, one word is written meanwhile
        turns = 0
        while not done.is_set() or turns < 3:
            turns += 1
            counter += 1
            rest = x.reshape(-1, 4096)[:, 1:]
            expected = np.arange(x.size, dtype=np.uint64).reshape(-1, 4096)[:, 1:]
            if not np.array_equal(rest, expected):
                wrong.append(turns)
        counter -= turns

    thread = threading.Thread(target=look)
    thread.start()
    before = huge_bytes(x.ctypes.data)
    huge_pages._walk([(x.ctypes.data, x.nbytes)])
    done.set()
    thread.join()
    assert wrong == []
    assert np.array_equal(x, np.arange(x.size))
    if tuple(int(n) for n in os.uname().release.split(".")[:2]) >= (6, 1):
        assert huge_bytes(x.ctypes.data) > before or before >= 14 * MIB


def test_pages_that_nobody_has_touched_are_left_alone():
    x = np.empty(64 * MIB, np.uint8)
    del x
    memory.HOST.empty_cache()
    x = np.empty(64 * MIB, np.uint8)  # addresses without pages
    x[: 8 * MIB] = 1
    before = resident()
    huge_pages._walk([(x.ctypes.data, x.nbytes)])
    assert resident() - before < 4 * MIB


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_a_process_may_end_meanwhile():
    code = (
        "import numpy as np, funct as ft\n"
        "from funct.device import memory\n"
        "from funct.device.memory import front\n"
        "front._TIMES = 1\n"
        "memory.serve()\n"
        "x = np.ones(8 << 20)\n"
        "for _ in range(30): np.ones(1 << 20)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
