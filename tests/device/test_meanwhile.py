"""A setting is another one while any thread is in a block, and what others set stays."""

import os
import sys
import threading

import pytest
from msgspec.structs import replace

from funct.device import host, machine_code
from funct.device.meanwhile import Meanwhile
from tests.together import together


class Setting:
    """Of a process; what is put is seen rounded, as the interpreter's are."""

    def __init__(self, value):
        self.value = value

    def get(self):
        return self.value

    def put(self, value):
        self.value = round(value)


@pytest.fixture
def setting():
    return Setting(5)


@pytest.fixture
def block(setting):
    return Meanwhile(setting.get, setting.put, lambda now: max(now, 99.6))


def test_a_block_is_left_as_it_was_found(setting, block):
    with block:
        assert setting.value == 100
        with block:
            pass
        assert setting.value == 100
    assert setting.value == 5
    with pytest.raises(ValueError, match="mine"), block:
        raise ValueError("mine")
    assert setting.value == 5

    @block
    def inside():
        return setting.value

    assert inside() == 100
    assert setting.value == 5


def test_what_needs_no_change_or_is_set_meanwhile_stays(setting, block):
    setting.value = 200
    with block:
        assert setting.value == 200
        setting.value = 5
    assert setting.value == 5
    with block:
        setting.value = 7
        with block:
            assert setting.value == 7
    assert setting.value == 7


def test_in_whatever_order_threads_leave_the_last_restores(setting, block):
    first, second = block, block
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert setting.value == 100
    second.__exit__()
    assert setting.value == 5


def test_threads_that_come_and_go_leave_what_held(setting, block):
    def work(k):
        for _ in range(300):
            with block:
                assert setting.value == 100

    together(8, work, turns=1e-6)
    assert setting.value == 5
    assert not block._blocks


@pytest.mark.parametrize("name", ["get", "put"])
def test_a_finalizer_may_come_into_any_line(setting, name):
    """As one that runs a compiled function for the first time."""
    ours = getattr(setting, name)

    def within(*given):
        setattr(setting, name, ours)
        with block:
            pass
        out = ours(*given)
        with block:
            pass
        setattr(setting, name, within)
        return out

    setattr(setting, name, within)
    get, put = (lambda *given, k=k: getattr(setting, k)(*given) for k in ("get", "put"))
    block = Meanwhile(get, put, lambda now: max(now, 100))
    for _ in range(3):
        with block:
            assert setting.value == 100
        assert setting.value == 5
    assert not block._blocks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no system that forks")
def test_a_child_that_is_forked_in_a_block_has_what_held(setting, block):
    with block:
        pid = os.fork()
        if not pid:
            os._exit(0 if setting.value == 5 and not block._blocks else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert setting.value == 5


def test_code_that_is_begun_side_by_side_leaves_the_interpreters_turns(monkeypatch):
    """Threads that ended in another order than they began left short ones."""
    before = sys.getswitchinterval()
    inside, go_on = threading.Semaphore(0), [threading.Event(), threading.Event()]
    waits = iter(go_on)
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    monkeypatch.setattr(machine_code, "host", lambda: replace(host(), cores=2))

    def emit(*_, **__):
        mine = next(waits)
        inside.release()
        assert mine.wait(60)
        raise RuntimeError("no code")

    monkeypatch.setattr(machine_code, "emit", emit)
    for text in ("first", "second"):
        machine_code.begin([text], 1)
        assert inside.acquire(timeout=60)
    assert sys.getswitchinterval() < before
    threads = [machine_code._begun.pop(machine_code.text_key(t, 1)) for t in ("first", "second")]
    for event, thread in zip(go_on, threads, strict=True):
        event.set()
        thread.join()
    assert sys.getswitchinterval() == before
