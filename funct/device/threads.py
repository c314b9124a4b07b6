"""One pool of threads for everything that funct compiles.

Assembled text declares `funct_parallel(fn, data, tasks)` and calls it: fn, `void (ptr data, i64
task)`, runs once for each task, on at most `config.threads` threads, and the call returns when all
are done. What a task computes depends on its number alone, never on the thread it runs on, so
results have the same bits for any number of threads. A call inside of a task, or while another
Python thread's call has the pool, runs its tasks one after the other.

The pool itself is machine code (`pool.py`): a call costs 0.1 µs, and its threads never touch
Python. Threads are started by the first call that needs them; a forked child starts its own.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading

from funct.device import blas, machine_code
from funct.device.fork import in_child, whole
from funct.device.machine_code import Code
from funct.device.pool import alone_text, pool_text
from funct.device.printed import printed
from funct.settings import Settings, config, follow

__all__ = ["PARALLEL", "parallel", "pool", "text"]

PARALLEL = "declare void @funct_parallel(ptr, ptr, i64)"

_SPINS = 10_000  # looks for work before a thread sleeps; about 100 µs
_default = Settings().threads
_making = whole(threading.RLock())


def pool() -> Code:
    """The pool's code: `funct_parallel(fn, data, tasks)`, and `limit()`, threads for a call now."""
    with _making:  # it is one, whoever asks for it first
        return _pool()


@functools.cache
def _pool() -> Code:
    code = printed(text, opt=0).keep()  # every process waits for it
    if not _possible():
        return code
    ctypes.c_int64.from_address(code.address("default_limit")).value = _default
    ctypes.c_uint32.from_address(code.address("key")).value = _key()
    spins = _SPINS if _default <= (os.cpu_count() or 1) else 0
    ctypes.c_int64.from_address(code.address("spins")).value = spins
    reset = ctypes.CFUNCTYPE(None)(code.address("reset"))
    reset()
    in_child(reset)
    blas.count_by(code.address)
    _follow(config.record)
    return code


def parallel() -> int:
    """The address of `funct_parallel`."""
    return _offered("funct_parallel")


@functools.cache
def text() -> str:
    """The pool's text for this system."""
    return pool_text() if _possible() else alone_text()


def _possible() -> bool:
    """Whether the system has POSIX threads to offer."""
    return hasattr(ctypes.CDLL(None), "pthread_create") if sys.platform != "win32" else False


def _offered(name: str) -> int:
    """The address of a function; BLAS libraries that came meanwhile are told to the pool."""
    code = pool()
    if _possible():
        blas.entries()
    return code.address(name)


for _name in ("funct_parallel", "funct_blas_alone", "funct_blas_again"):
    machine_code.offer(_name, functools.partial(_offered, _name))


@functools.cache
def _key() -> int:
    """The pthread key under which each thread has its own limit."""
    key = ctypes.c_uint()
    if ctypes.CDLL(None).pthread_key_create(ctypes.byref(key), None):
        raise OSError("no pthread key is left")
    return key.value


@follow
def _follow(record: Settings) -> None:
    """Tell the pool and BLAS what holds in this Python thread from now on."""
    own = record.threads if record.threads != _default else 0
    if _possible():
        ctypes.CDLL(None).pthread_setspecific(_key(), ctypes.c_void_p(own))
    blas.ask(1 if record.deterministic else own or None)
