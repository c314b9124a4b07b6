"""The pool: each task runs once, whoever calls from wherever, in whatever kind of process."""

import ctypes
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import funct as ft
from funct.device import PARALLEL, assemble
from funct.device.threads import pool
from funct.errors import ArgumentError
from tests.together import together

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX threads are what the pool is made of")

TEXT = f"""
{PARALLEL}
declare i64 @pthread_self()
declare i32 @usleep(i32)

define void @mark(ptr %data, i64 %k) {{  ; data[k] += 1
  %p = getelementptr i64, ptr %data, i64 %k
  %old = load i64, ptr %p
  %new = add i64 %old, 1
  store i64 %new, ptr %p
  ret void
}}
define void @who(ptr %data, i64 %k) {{  ; data[k] = this thread
  %w = call i32 @usleep(i32 2000)
  %me = call i64 @pthread_self()
  %p = getelementptr i64, ptr %data, i64 %k
  store i64 %me, ptr %p
  ret void
}}
define void @row(ptr %data, i64 %k) {{  ; a job inside of a task: 10 more marks
  %o = mul i64 %k, 10
  %p = getelementptr i64, ptr %data, i64 %o
  call void @funct_parallel(ptr @mark, ptr %p, i64 10)
  ret void
}}
define void @marks(ptr %data, i64 %n) {{
  call void @funct_parallel(ptr @mark, ptr %data, i64 %n)
  ret void
}}
define void @whose(ptr %data, i64 %n) {{
  call void @funct_parallel(ptr @who, ptr %data, i64 %n)
  ret void
}}
define void @rows(ptr %data, i64 %n) {{
  call void @funct_parallel(ptr @row, ptr %data, i64 %n)
  ret void
}}
define void @many(ptr %data, i64 %n) {{  ; 1000 jobs one after the other
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @funct_parallel(ptr @mark, ptr %data, i64 %n)
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, 1000
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


def run(name, tasks, room=None):
    """What the function leaves in an array of zeros, one element a task."""
    code = assemble(TEXT)
    data = np.zeros(tasks if room is None else room, np.int64)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address(name))
    call(data.ctypes.data, tasks)
    return data


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("tasks", [0, 1, 2, 7, 1000])
def test_each_task_runs_once(tasks, threads):
    with ft.config.using(threads=threads):
        assert (run("marks", tasks) == 1).all()


def test_a_call_inside_of_a_task_runs_its_tasks():
    with ft.config.using(threads=2):
        assert (run("rows", 50, 500) == 1).all()


@posix
def test_at_most_so_many_threads_take_part_as_the_settings_say():
    for threads in (1, 2, 4):
        with ft.config.using(threads=threads):
            assert len(set(run("whose", 40).tolist())) == threads


@posix
def test_a_job_wakes_threads_that_sleep():
    with ft.config.using(threads=2):
        for _ in range(5):
            time.sleep(0.02)
            assert len(set(run("whose", 20).tolist())) == 2


@posix
def test_threads_have_the_same_tasks_job_after_job():
    """So that they find in their own caches what they wrote."""
    with ft.config.using(threads=2):
        for _ in range(10):
            halves = [set(half) for half in run("whose", 20).reshape(2, 10).tolist()]
            if all(len(half) == 1 for half in halves):
                break
        assert [len(half) for half in halves] == [1, 1]
        assert halves[0] != halves[1]


def test_jobs_that_follow_each_other_do_not_mix():
    with ft.config.using(threads=4):
        assert (run("many", 13) == 1000).all()


SLOWED = """
import ctypes
import numpy as np
from funct.device import PARALLEL, assemble
from funct.device.pool import pool_text
from tests.device.test_threads import TEXT

text = pool_text()
for k, line in enumerate([
    "%word = load atomic i64, ptr %at acquire, align 8", "%following = add i64 %number, 1",
    "%behind = add i64 %c, 1", "%r = sub i64 %k, 1",
]):
    assert text.count(f"  {line}\\n") == 1
    text = text.replace(f"  {line}\\n", f"  {line}\\n  %slow{k} = call i32 @usleep(i32 20)\\n")
code = assemble(text + TEXT.replace(PARALLEL, ""))
key = ctypes.c_uint()
assert not ctypes.CDLL(None).pthread_key_create(ctypes.byref(key), None)
ctypes.c_uint32.from_address(code.address("key")).value = key.value
ctypes.c_int64.from_address(code.address("default_limit")).value = 4
ctypes.CFUNCTYPE(None)(code.address("reset"))()
call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("marks"))
for turn in range(600):
    marks = np.zeros(2 + turn % 7 * 3, np.int64)
    call(marks.ctypes.data, len(marks))
    assert (marks == 1).all(), (turn, marks)
"""


@posix
def test_a_thread_that_is_late_takes_no_task_of_a_job_half_published():
    """Wherever threads are held up: between what they read of a job, and what is written of one."""
    done = subprocess.run([sys.executable, "-c", SLOWED], check=False, timeout=120)
    assert done.returncode == 0


def test_many_python_threads_call_at_once():
    def work(k):
        with ft.config.using(threads=1 + k % 4):
            for _ in range(20):
                assert (run("many", 5 + k) == 1000).all()

    together(16, work)


def test_limits_belong_to_the_python_thread():
    limit = ctypes.CFUNCTYPE(ctypes.c_int64)(pool().address("limit"))
    other = []
    with ft.config.using(threads=3):
        thread = threading.Thread(target=lambda: other.append(limit()))
        thread.start()
        thread.join()
        assert limit() == (3 if os.name == "posix" else 1)
    assert other == [limit()] == [ft.config.threads]


CHILD = """
import numpy as np
from tests.device.test_threads import run
import funct as ft

with ft.config.using(threads=2):
    assert (run("rows", 50, 500) == 1).all()
"""


def _child():
    with ft.config.using(threads=2):
        ok = (run("rows", 50, 500) == 1).all() and len(set(run("whose", 20).tolist())) == 2
    os._exit(0 if ok else 1)  # as a child of a test process must


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork.. was called:RuntimeWarning")  # JAX says so of itself
def test_a_forked_child_has_a_pool_of_its_own():
    with ft.config.using(threads=2):
        run("marks", 100)
        child = os.fork()
        if child == 0:
            _child()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (run("marks", 100) == 1).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork.. was called:RuntimeWarning")  # JAX says so of itself
def test_a_child_forked_in_the_middle_of_a_job_computes():
    with ft.config.using(threads=2):
        job = threading.Thread(target=_long)
        job.start()
        time.sleep(0.02)
        child = os.fork()
        if child == 0:
            _child()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        job.join()


def _long():
    with ft.config.using(threads=2):
        run("whose", 100)


@pytest.mark.parametrize("kind", ["spawn", "forkserver"])
def test_children_of_other_kinds_compute(kind):
    if kind not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {kind} here")
    context = multiprocessing.get_context(kind)
    with context.Pool(1) as processes:
        assert processes.apply(_both) == 40


def _both():
    with ft.config.using(threads=2):
        return int(run("marks", 40).sum())


def test_a_process_ends_while_threads_of_the_pool_are_awake():
    done = subprocess.run([sys.executable, "-c", CHILD], check=False, timeout=60)
    assert done.returncode == 0


def test_signals_reach_python_and_not_the_pool():
    program = CHILD + "import os, signal, time\n" + (
        "signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
        "signal.signal(signal.SIGALRM, lambda *_: os._exit(7))\n"
        "time.sleep(10)\n"
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert done.returncode == 7


@pytest.mark.parametrize("given", [0, -1, 2.0, "2", None, True, 10**6])
def test_a_number_of_threads_is_checked(given):
    with pytest.raises(ArgumentError, match="threads"), ft.config.using(threads=given):
        pass


def test_deterministic_is_a_truth_value():
    with pytest.raises(ArgumentError, match="deterministic"), ft.config.using(deterministic=1):
        pass
