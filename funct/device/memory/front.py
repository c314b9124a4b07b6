"""The allocator for host buffers, as NumPy sees it (NEP 49).

Once `serve()` was called, every array of 64 KiB or more lies in a block of ours, in every thread,
with no Python on the way: machine code (`front_text.py`) hands out what waits in a bin. Only a
request that finds its bin empty comes here, to `Front._answer`, and asks the policy. A block
belongs to the array that NumPy made for it: views, memoryviews and DLPack capsules keep that array,
so a block is never lent twice.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

import attrs
from msgspec import Struct
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

from funct.device.fork import whole
from funct.device.machine_code import LEAN, Code
from funct.device.memory.allocator import Event
from funct.device.memory.arena import HostArena, physical
from funct.device.memory.front_record import GRANULE, NUMPY, UNIT, Record
from funct.device.memory.front_text import front_text
from funct.device.memory.huge_pages import has_huge_pages, put_together
from funct.device.memory.policy import Options, Policy
from funct.device.printed import printed
from funct.source import user_site

__all__ = ["Front", "Lent", "front_code", "lock", "numpy_handler", "set_handler"]

LEAST = 1 << 16  # bytes of the smallest request that is ours
_ZERO_MOST = 1 << 28  # bytes; pages of larger zeros are new ones, which come when touched
_EVENTS = 1 << 16  # frees between two recorded requests
_TIMES = 16  # memory is handed out that often on average before its pages are put together
_NEVER = (1 << 63) - 1
lock = whole(threading.RLock())  # of everything that Python does here


class Lent(Struct, frozen=True):
    """A block that an array has: what was asked for, on which line, when (ns)."""

    address: int
    requested: int
    site: str
    time: int


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("functions", ctypes.c_void_p * 5),  # context, malloc, calloc, realloc, free
    )


_python = ctypes.pythonapi
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_SET_HANDLER, _DEFAULT_HANDLER = 304, 306  # places in NumPy's table of its C API


def _numpy_api(place: int) -> int:
    table = _python.PyCapsule_GetPointer(_multiarray_umath._ARRAY_API, None)
    return ctypes.c_void_p.from_address(table + 8 * place).value or 0


def set_handler(capsule: Any) -> Any:
    """NumPy takes its memory from there in this context; what it used before."""
    call = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_numpy_api(_SET_HANDLER))
    return call(capsule)


def _default() -> _Handler:
    """What NumPy uses in every context where nobody has set a handler."""
    capsule = ctypes.cast(_numpy_api(_DEFAULT_HANDLER), ctypes.POINTER(ctypes.py_object))[0]
    return _Handler.from_address(_python.PyCapsule_GetPointer(capsule, b"mem_handler"))


_NUMPYS = bytes(_default())  # as it is before anybody is served


def numpy_handler() -> Any:
    """A handler with NumPy's own functions, whatever the default one has become."""
    return _capsule(_for_ever(_Handler.from_buffer_copy(_NUMPYS)))


def _capsule(handler: _Handler) -> Any:
    address = ctypes.addressof(handler)
    return _for_ever(_python.PyCapsule_New(address, b"mem_handler", None))


def _for_ever(thing: Any) -> Any:
    """Arrays may die after everything else of Python has."""
    _python.Py_IncRef(ctypes.py_object(thing))
    return thing


@functools.cache
def front_code() -> Code:
    """The functions of `front_text`."""
    return printed(front_text, opt=LEAN).keep()  # as fast as at 2, in half the time


def _function(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)(front_code().address(name))


class Front:
    """A set of bins over a policy of its own; `capsule` is the handler for NumPy."""

    def __init__(
        self, arena: HostArena, table: int, options: Options, near: tuple[int, int]
    ) -> None:
        self.arena = arena
        self.policy = Policy(arena, options, UNIT, near)
        self.policy.reclaim = self.reclaim
        self.policy.pressure = self._collect
        self.pressure: Callable[[], object] = lambda: None  # empties all caches
        self.lent: dict[int, Lent] = {}  # those that were recorded
        self.events: deque[Event] = deque(maxlen=0)
        self.failed: int | None = None  # bytes of the last request that could not be met
        self._inside = False
        self._room = (ctypes.c_int64 * 4 * _EVENTS)()
        self._units = (ctypes.c_int64 * 4096)()
        self.record = _for_ever(Record())
        self.record.base = arena.base
        self.record.extent = arena.size
        self.record.table = table
        self.record.least = LEAST
        self.record.zero_most = _ZERO_MOST
        self.record.due = _NEVER
        self.record.answer = id(_for_ever(self._answer))
        theirs = _Handler.from_buffer_copy(_NUMPYS)
        for name, address in zip(NUMPY, theirs.functions, strict=True):
            setattr(self.record, name, address)
        self.record.room = ctypes.addressof(self._room)
        self.record.length = _EVENTS
        at = self._at = ctypes.addressof(self.record)
        code = front_code()
        self.record.miss = code.address("ask")
        functions = [code.address(name) for name in ("malloc_", "calloc_", "realloc_", "free_")]
        self._handler = _for_ever(_Handler(b"funct", 1, (ctypes.c_void_p * 5)(at, *functions)))
        self.capsule = _capsule(self._handler)
        whole_numbers = (ctypes.c_void_p, ctypes.c_int64)
        self._rounded = _function("rounded", ctypes.c_int64, *whole_numbers)
        self._pop = _function("pop", ctypes.c_void_p, *whole_numbers)
        self._hand_out = _function(
            "hand_out", ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3
        )
        self._drain = _function("drain", ctypes.c_int64, ctypes.c_void_p, *whole_numbers)
        self._theirs = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(
            self.record.malloc
        )
        self.configure(options)
        _for_ever(self)  # arrays outlive what names their allocator

    def serve_everybody(self) -> bool:
        """Whether NumPy's default handler has our functions from now on, so that every thread is
        served; a handler that somebody has set in a context of their own stays.
        """
        default = _default()
        if default.name != b"default_allocator" or bytes(default) != _NUMPYS:
            return False
        for k in (0, 4, 3, 2, 1):  # what gives back stands before what hands out
            default.functions[k] = self._handler.functions[k]
        default.name = self._handler.name
        return True

    def configure(self, options: Options) -> None:
        """Divide memory in another way from now on."""
        with lock:
            self.reclaim()
            spare = attrs.evolve(options, small_most=options.small_most + UNIT)
            self.policy.options = spare
            self.policy.small.step = options.small_segment
            self.policy.large.step = options.large_segment
            self.record.divisions = options.divisions.bit_length() - 1
            self.record.small = options.small_most // GRANULE
            self.record.keep = physical() // 4 if options.keep is None else options.keep

    def reclaim(self) -> None:
        """What waits in bins goes back to the policy, where blocks merge."""
        found = len(self._units)
        while found == len(self._units):
            found = self._drain(self._at, ctypes.addressof(self._units), len(self._units))
            for unit in self._units[:found]:
                self.policy.release(self.arena.base + unit * UNIT)

    def record_events(self, most: int) -> None:
        """Remember the last so many events, each with the user's line; 0: what there is stays."""
        with lock:
            self.hear()
            self.record.recorded = int(most > 0)
            if most:
                self.events = deque(maxlen=most)
            else:
                self.lent.clear()

    def hear(self) -> None:
        """Take down the blocks that have come back since."""
        count = min(self.record.count, _EVENTS)
        self.record.count = 0
        for unit, _, seconds, nanoseconds in self._room[:count]:
            address = self.arena.base + unit * UNIT
            held = self.lent.pop(address, None)
            if held is not None:
                time = seconds * 10**9 + nanoseconds
                self.events.append(Event(time, address, -held.requested, held.site))

    def reset_peak(self) -> None:
        """Peaks are what is there now."""
        for pool in self.record.stats:
            for stat in pool:
                stat[1] = stat[0]
        for tally in (self.policy.small, self.policy.large):
            for t in (tally.number, tally.reserved, tally.inactive):
                t.peak = t.current

    def waiting(self) -> set[int]:
        """Addresses of the blocks that wait in bins."""
        found = set()
        for first in self.record.bins:
            while first:
                found.add(self.arena.base + (first - 1) * UNIT)
                first = ctypes.c_uint32.from_address(self._entry(first - 1)).value
        return found

    def asked(self, start: int) -> int:
        """How many bytes the array that has the block asked for."""
        unit = (start - self.arena.base) // UNIT
        return ctypes.c_int64.from_address(self._entry(unit) + 8).value

    def _entry(self, unit: int) -> int:
        return self.record.table + unit * 16

    def forget_lock(self) -> None:
        """A forked child: no thread is inside."""
        self.record.lock = 0

    def retire(self) -> None:
        """Requests that no bin can meet go to NumPy's own function."""
        self.record.recorded = 0
        self.record.miss = front_code().address("theirs")

    def _answer(self, size: int) -> int:
        """Where the block for a request is that no bin can meet; 0 where there is no memory.

        Handlers of signals raise wherever Python is: NumPy gets a block then too, of its own, and
        the program hears of what was raised when that is done.
        """
        with lock:
            if self._inside:  # made by what runs because of us, such as a finalizer
                return self._theirs(self.record.context, size) or 0
            self._inside = True
            try:
                return self._made(size)
            finally:
                self._inside = False

    def _made(self, size: int) -> int:
        is_due = self._handed_out() >= self.record.due
        if is_due:
            self.record.due = _NEVER
            put_together([(s.start, s.size) for s in self.policy.large.segments])
        if self.record.recorded:
            self.hear()
        if is_due or self.record.recorded:
            found = self._pop(self._at, size) if size <= self.arena.size else None
            if found:
                return self._seen(found, size) if self.record.recorded else found
        n = self._rounded(self._at, size) if size <= self.arena.size else 0
        start = self.policy.allocate(n * GRANULE + UNIT) if n else None
        if start is None:
            self.failed = size
            return 0
        reserved = self.policy.large.reserved.current
        if reserved and has_huge_pages():  # small blocks alone are not put together
            self.record.due = self._handed_out() + _TIMES * reserved
        found = self._hand_out(self._at, (start - self.arena.base) // UNIT, n, size)
        return self._seen(found, size) if self.record.recorded else found

    def _handed_out(self) -> int:
        """Bytes of large blocks, all that ever were."""
        found: int = self.record.stats[1][1][2]
        return found

    def _collect(self) -> None:
        gc.collect()  # arrays that only a cycle holds
        self.pressure()
        self.reclaim()

    def _seen(self, found: int, size: int) -> int:
        site = user_site(1)
        start = found - (found - self.arena.base) % UNIT
        held = self.lent[start] = Lent(start, size, str(site or ""), monotonic_ns())
        self.events.append(Event(held.time, start, size, held.site))
        return found
