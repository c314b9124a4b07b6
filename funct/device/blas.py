"""The BLAS libraries of this process, and on how many threads they compute.

NumPy and SciPy bring one each, with threads of its own that know nothing of ours. While our pool
works, BLAS computes on the thread that calls it (`one_thread.py`); otherwise
`config.threads` holds for BLAS too, and `config.deterministic` lets it use one thread, since the
order in which it adds depends on their number.

A library is found through the extension module that is linked to it: what the module can name, it
is asked for. Where that gives nothing we know (another system, another BLAS), threadpoolctl looks
through all libraries of the process, which takes 30 ms.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct

from funct.device import machine_code
from funct.device.fork import in_child, whole
from funct.device.one_thread import LIBRARIES, Blocks, Count, Counted

__all__ = [
    "TRIANGLE", "TURNED", "alone", "ask", "cblas", "count_by", "entries", "function", "lapack",
    "offer",
]  # fmt: skip

_GET = ("get_num_threads", "MKL_Get_Max_Threads")
_SET = ("set_num_threads", "MKL_Set_Num_Threads")
_NUMPY = "numpy._core._multiarray_umath"
_SCIPY = "scipy.linalg._fblas", "scipy.special._ufuncs"  # those that bring SciPy's library
_OPENMP = 2  # what OpenBLAS says of itself if its threads are OpenMP's

# what CBLAS's trsm is told: rows are lines, the matrix is on the left, not turned, with a diagonal
_UPPER, _LOWER = 121, 122
TURNED = 112  # where the matrix is
TRIANGLE = {lower: (101, 141, _LOWER if lower else _UPPER, 111, 131) for lower in (False, True)}

_lock = whole(threading.RLock())
_asked: WeakKeyDictionary[threading.Thread, int] = WeakKeyDictionary()
_own: dict[str, int] = {}  # file of a library: its number of threads when nobody asks
_known: tuple[bool, list[Any]] | None = None
_entries: tuple[list[Any], list[tuple[int, int]]] | None = None  # of which libraries


class _Linked(Struct, frozen=True):
    """A library as threadpoolctl would describe it, found through a module linked to it."""

    filepath: str  # of the module
    dynlib: Any
    get_num_threads: Any
    set_num_threads: Any


def _linked(module: str) -> _Linked | None:
    """The library that an extension module is linked to, if it is one that we can ask."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return None
    handle = ctypes.CDLL(file)
    layer = _function(handle, "get_parallel", "")
    get, set_ = _both(handle)
    if get is None or set_ is None or (layer is not None and layer() == _OPENMP):
        return None
    set_.argtypes, set_.restype = [ctypes.c_int], None
    return _Linked(file, handle, get, set_)


def _libraries() -> list[Any]:
    """The libraries that are loaded, NumPy's first."""
    global _known
    linked = [m for m in _SCIPY if m in sys.modules][:1]
    scipy = bool(linked)
    if _known is None or _known[0] != scipy:
        found: list[Any] = [_linked(m) for m in (_NUMPY, *linked)]
        if None in found:
            # needed by those who set threads or compile where BLAS is another
            from threadpoolctl import ThreadpoolController

            all_ = ThreadpoolController().select(user_api="blas").lib_controllers
            found = [x for x in all_ if all(_both(x.dynlib))][:LIBRARIES]
        _known = (scipy, found)
    return _known[1]


_blocks = Blocks(_libraries)
in_child(_blocks.reset)
_count: Count = _blocks


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
        entries()  # a library that came meanwhile is counted too
        for k, library in enumerate(_libraries()):
            own = _own.setdefault(library.filepath, _count.wanted(k))
            _count.want(k, own if least is None else least)
        if least is None:
            _own.clear()


class alone:
    """Within, BLAS computes on the Python thread that calls it: `with alone():`."""

    __slots__ = ()

    def __enter__(self) -> None:
        with _lock:
            entries()
            _count.begin()

    def __exit__(self, *_: object) -> None:
        with _lock:
            _count.end()


def count_by(address: Callable[[str], int]) -> None:
    """From now on the pool counts who wants one thread, by its functions at these addresses."""
    global _count, _entries
    with _lock:
        _count = Counted(address, _blocks)
        _entries = None
        entries()
        _count.take_over()


def entries() -> list[tuple[int, int]]:
    """For each library, the addresses of `int get()` and `void set(int)`; the pool knows them."""
    global _entries
    with _lock:
        libraries = _libraries()
        if _entries is None or _entries[0] is not libraries:
            found = [[_address(fun) for fun in _both(x.dynlib)] for x in libraries]
            both = [(get, set_) for get, set_ in found]
            _entries = libraries, both
            if isinstance(_count, Counted):
                _count.tell(both)
        return _entries[1]


def _both(handle: Any) -> list[Any]:
    return [_function(handle, *names) for names in (_GET, _SET)]


def _function(handle: Any, openblas: str, mkl: str) -> Any:
    """The function of OpenBLAS, whatever it was renamed to, or that of MKL."""
    for before in ("scipy_", ""):  # as wheels have it comes first: what is not there takes 10 µs
        for after in ("64_", "", "_64", "_64_"):
            found = getattr(handle, f"{before}openblas_{openblas}{after}", None)
            if found is not None:
                return found
    return getattr(handle, mkl, None) if mkl else None


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def cblas(name: str) -> tuple[int, bool] | None:
    """The address of a function of NumPy's BLAS, and whether it counts in 64 bits."""
    return _renamed(f"cblas_{name}")


def lapack(name: str) -> tuple[int, bool] | None:
    """The same of its LAPACK, which is Fortran: arguments are addresses."""
    return _renamed(f"{name}_")


def offer(symbol: str, name: str) -> None:
    """Text may call a function of BLAS (`cblas_dgemm`) or LAPACK (`dgetrf_`) by this symbol."""

    def address() -> int | None:
        found = _renamed(name)
        return None if found is None else found[0]

    machine_code.offer(symbol, address)


def _renamed(name: str) -> tuple[int, bool] | None:
    for before, after, wide in (("scipy_", "64_", True), ("", "64_", True), ("", "", False),
                                ("scipy_", "", False)):  # fmt: skip
        found = function(f"{before}{name}{after}")
        if found:
            return found, wide
    return None


def function(name: str) -> int | None:
    """The address of a function of NumPy's BLAS, which is the first that was loaded."""
    with _lock:
        libraries = _libraries()[:1]
    found = getattr(libraries[0].dynlib, name, None) if libraries else None
    return None if found is None else _address(found)
