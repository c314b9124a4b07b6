"""On how many threads BLAS computes: what is asked for, and one while somebody wants it so."""

import ctypes
import os
import random
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import ExitStack

import numpy as np
import pytest

import funct as ft
from funct.device import PARALLEL, assemble, blas
from funct.device.one_thread import Blocks
from funct.device.threads import pool

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX threads are what the pool is made of")


def blas_threads():
    from threadpoolctl import ThreadpoolController

    held = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library.get_num_threads() for library in held]


def test_blas_follows_the_setting_and_is_given_back():
    before = blas_threads()
    more = ft.config.threads + 1
    with ft.config.using(threads=more):
        assert set(blas_threads()) == {more}
        with ft.config.using(deterministic=True):
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {more}
    assert blas_threads() == before


@pytest.mark.parametrize("module", ["scipy.linalg", "scipy.special"])
def test_whatever_brings_another_blas_it_follows(module):
    code = f"""
        import threadpoolctl, {module}
        import funct as ft
        with ft.config.using(threads=5):
            held = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
            assert [x.get_num_threads() for x in held] == [5, 5]
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_blas_is_found_without_a_look_through_the_process(monkeypatch):
    import scipy.linalg  # noqa: F401  SciPy's library beside NumPy's

    ours = blas.entries()
    monkeypatch.setattr(blas, "_linked", lambda module: None)
    monkeypatch.setattr(blas, "_known", None)
    theirs = blas.entries()
    assert len(ours) == 2
    assert set(ours) <= set(theirs)
    monkeypatch.setattr(blas, "_known", None)  # what was found in the long way is not kept


BLAS = f"""
{PARALLEL}
define void @ask(ptr %data, i64 %k) {{
  %fn = inttoptr i64 GET to ptr
  %n = call i32 %fn()
  %w = sext i32 %n to i64
  %p = getelementptr i64, ptr %data, i64 %k
  store i64 %w, ptr %p
  ret void
}}
define void @asks(ptr %data, i64 %n) {{
  call void @funct_parallel(ptr @ask, ptr %data, i64 %n)
  ret void
}}
"""


@posix
def test_blas_computes_on_one_thread_inside_of_tasks():
    for get, _ in blas.entries():
        code = assemble(BLAS.replace("GET", str(get)))
        data = np.zeros(10, np.int64)
        with ft.config.using(threads=3):
            before = blas_threads()
            asks = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("asks"))
            asks(data.ctypes.data, 10)
            assert (data == 1).all()
            assert blas_threads() == before


ALONE = """
declare void @funct_blas_alone()
declare void @funct_blas_again()
define void @begin() {
  call void @funct_blas_alone()
  ret void
}
define void @end() {
  call void @funct_blas_again()
  ret void
}
"""

JOB = f"""
{PARALLEL}
declare i32 @usleep(i32)
define void @wait(ptr %data, i64 %k) {{  ; the first task says that it runs, and ends when told
entry:
  %first = icmp eq i64 %k, 0
  br i1 %first, label %say, label %end
say:
  store atomic i64 1, ptr %data release, align 8
  %at = getelementptr i64, ptr %data, i64 1
  br label %look
look:
  %over = load atomic i64, ptr %at acquire, align 8
  %yes = icmp ne i64 %over, 0
  %slept = call i32 @usleep(i32 20)
  br i1 %yes, label %end, label %look
end:
  ret void
}}
define void @job(ptr %data) {{
  call void @funct_parallel(ptr @wait, ptr %data, i64 2)
  ret void
}}
"""


class Within:
    """What wants BLAS on one thread from `begin` to `end`: a block of Python."""

    def __init__(self):
        self.block = blas.alone()

    def begin(self):
        self.block.__enter__()

    def end(self):
        self.block.__exit__()


class WithinText:
    """A piece of machine code."""

    def __init__(self):
        code = assemble(ALONE).keep()
        self.begin, self.end = (
            ctypes.CFUNCTYPE(None)(code.address(name)) for name in ("begin", "end")
        )


class WithinJob:
    """The pool, at work for another Python thread; or the tasks, while it is taken."""

    def __init__(self):
        self.call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(assemble(JOB).keep().address("job"))

    def begin(self):
        self.data = np.zeros(2, np.int64)
        self.thread = threading.Thread(target=self.work)
        self.thread.start()
        while not self.data[0]:
            time.sleep(0)

    def work(self):
        with ft.config.using(threads=3):
            self.call(self.data.ctypes.data)

    def end(self):
        self.data[1] = 1
        self.thread.join()


@posix
def test_blas_has_one_thread_while_anybody_wants_it_so():
    """Python's blocks, machine code and jobs, in whatever order they begin and end; what is asked
    meanwhile holds afterwards.
    """
    ask = [ctypes.CFUNCTYPE(ctypes.c_int)(get) for get, _ in blas.entries()]
    before, draw = blas_threads(), random.Random(0)
    kinds = [Within(), Within(), WithinText(), WithinText(), WithinJob(), WithinJob()]
    for _ in range(30):
        within, history = set(), []
        with ft.config.using(threads=3), ExitStack() as otherwise:
            for kind in draw.sample(kinds * 2, 12):
                if kind in within:
                    kind.end()
                else:
                    kind.begin()
                within ^= {kind}
                ft.config.threads = draw.choice([2, 3])
                history.append((kind.__class__.__name__, kind in within, ft.config.threads))
                held = 1 if within else ft.config.threads
                if any(get() != held for get in ask):
                    otherwise.callback(lambda left=frozenset(within): [k.end() for k in left])
                    raise AssertionError(history)
        assert blas_threads() == before


@posix
def test_blocks_that_began_before_there_was_a_pool_end_after(monkeypatch):
    before, text, block = blas_threads(), WithinText(), blas.alone()
    blocks = Blocks(blas._libraries)
    monkeypatch.setattr(blas, "_blocks", blocks)
    monkeypatch.setattr(blas, "_count", blocks)
    block.__enter__()
    assert set(blas_threads()) == {1}
    blas.count_by(pool().address)
    text.begin()
    block.__exit__()
    assert set(blas_threads()) == {1}
    text.end()
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork.. was called:RuntimeWarning")  # JAX says so of itself
def test_a_forked_child_has_nobody_who_wants_one_thread():
    """Who did is in threads that it does not have."""
    ask = [ctypes.CFUNCTYPE(ctypes.c_int)(get) for get, _ in blas.entries()]
    kinds = [Within(), WithinText(), WithinJob()]
    with ft.config.using(threads=3):
        for kind in kinds:
            kind.begin()
        child = os.fork()
        if child == 0:
            os._exit(0 if all(get() == 3 for get in ask) else 1)  # as a child of a test must
        for kind in kinds:
            kind.end()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert all(get() == 3 for get in ask)
