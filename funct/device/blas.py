"""The BLAS libraries of this process, and on how many threads they compute.

NumPy and SciPy bring one each, with threads of its own that know nothing of ours. While our pool
works, BLAS computes on the thread that calls it (`pool.py` does that by `entries()`); otherwise
`config.threads` holds for BLAS too, and `config.deterministic` lets it use one thread, since the
order in which it adds depends on their number.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any
from weakref import WeakKeyDictionary

from funct.device.fork import whole

__all__ = ["ask", "entries", "function"]

_GET = ("get_num_threads", "MKL_Get_Max_Threads")
_SET = ("set_num_threads", "MKL_Set_Num_Threads")

_lock = whole(threading.RLock())
_asked: WeakKeyDictionary[threading.Thread, int] = WeakKeyDictionary()
_own: dict[str, int] = {}  # file of a library: its number of threads when nobody asks
_known: tuple[bool, list[Any]] | None = None


def _libraries() -> list[Any]:
    """threadpoolctl's controllers of the libraries that are loaded."""
    global _known
    scipy = "scipy.linalg" in sys.modules  # which brings a second library
    if _known is None or _known[0] != scipy:
        # 8 ms, and needed by those who set threads or compile
        from threadpoolctl import ThreadpoolController

        _known = (scipy, ThreadpoolController().select(user_api="blas").lib_controllers)
    return _known[1]


def ask(count: int | None) -> None:
    """This Python thread wants BLAS to compute on at most so many threads; None: as it likes.

    A library has one number for the process: the smallest that anybody asks for.
    """
    me = threading.current_thread()
    with _lock:
        if count is None:
            if _asked.pop(me, None) is None:
                return
        else:
            _asked[me] = count
        least = min(_asked.values(), default=None)
        for library in _libraries():
            own = _own.setdefault(library.filepath, library.get_num_threads())
            library.set_num_threads(own if least is None else least)
        if least is None:
            _own.clear()


def entries() -> list[tuple[int, int]]:
    """For each library, the addresses of `int get()` and `void set(int)`."""
    with _lock:
        found = [(_entry(x, *_GET), _entry(x, *_SET)) for x in _libraries()]
    return [(get, set_) for get, set_ in found if get and set_]


def _entry(library: Any, openblas: str, mkl: str) -> int | None:
    names = [mkl] + [
        f"{before}openblas_{openblas}{after}"
        for before in ("", "scipy_")
        for after in ("", "64_", "_64", "_64_")
    ]
    for name in names:
        function = getattr(library.dynlib, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value
    return None


def function(name: str) -> int | None:
    """The address of a function of NumPy's BLAS, which is the first that was loaded."""
    with _lock:
        libraries = _libraries()[:1]
    found = getattr(libraries[0].dynlib, name, None) if libraries else None
    return None if found is None else ctypes.cast(found, ctypes.c_void_p).value
