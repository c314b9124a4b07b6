"""Which Fourier transforms are of lines in loops (`texts.py`), and eager calls of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from funct.device import Host, host, printed
from funct.kernels.cpu.calls import DENSE
from funct.kernels.cpu.fourier.four_step import spacing
from funct.kernels.cpu.fourier.held_lines import lines_of
from funct.kernels.cpu.fourier.line_text import Form, steps_of
from funct.kernels.cpu.fourier.texts import table_of, text
from funct.kernels.cpu.record import address
from funct.kernels.cpu.runners import filling
from funct.kernels.cpu.scratch import fresh, scratch
from funct.kernels.fft import plan

__all__ = ["OF_REALS", "Lengths", "along", "is_of_lines"]

OF_REALS = {"fft": "fft of reals", "ifft": "ifft of reals"}  # of numbers that are not complex
_REAL_IN = frozenset({"rfft", *OF_REALS.values()})
_ELEMENTS = {4: "f32", 8: "f64"}
_HALVED = frozenset({"rfft", "irfft"})
_MOST = 2048  # numbers of a line: a block of them stays in the second cache
_LONGEST = 1 << 21  # bytes of one that is taken alone
_LEAST_LANES = 4
_SINGLE = 64  # numbers of a line that is worth rows of its own,
_ROW = 8  # of so many numbers, or fewer where lanes would not hold many lines
_NEAR = 1 << 15  # bytes of both buffers that the first cache holds,
_COMPUTED = 1 << 18  # and of those of lines with a prime radix, which arithmetic keeps waiting
_TASK = 1 << 16  # numbers times passes that are worth a task
_HELD = 64  # bytes of vectors of which there are 32, and of which
_MOST_HELD = 16  # a line may take so many
_LINE = 64  # bytes of one of the caches
_MOST_TASKS = 16  # each has buffers of its own


class Lengths(Struct, frozen=True):
    """Lines before the axis, and behind it; numbers of a line: as they are read, all, and as they
    are written. They are real for `rfft` and `irfft`.
    """

    before: int
    given: int
    n: int
    made: int
    after: int

    def inner(self, name: str) -> int:
        """Complex numbers of a line."""
        halved = name in _HALVED and self.n % 2 == 0 and self.n > 2
        return self.n // 2 if halved else self.n

    def lanes(self, name: str, dtype: np.dtype[Any]) -> int:
        """Lines of a block, or numbers of a row of a single line: a power of two."""
        if self.held(name, dtype):
            return _HELD // (2 * dtype.itemsize)
        return self.single(name, dtype) or self._together(name, dtype)

    def held(self, name: str, dtype: np.dtype[Any]) -> int:
        """Numbers of a line if registers hold a block of them, else 0."""
        n, lanes = self.n, _HELD // (2 * dtype.itemsize)
        if host().vector_bytes < _HELD or self.after > 1 or name not in ("fft", "ifft"):
            return 0
        if not self.given == n == self.made or n & (n - 1) or not 2 <= n <= _MOST_HELD * lanes:
            return 0
        return n if self.before * n >= min(n, lanes) * lanes else 0

    def _together(self, name: str, dtype: np.dtype[Any]) -> int:
        size = dtype.itemsize
        lines, most = self.before, host().vector_bytes // size
        if self.after > 1:
            lines = self.after
        else:
            steps = steps_of(self.inner(name)) or ()
            near = _COMPUTED if any(s.roots for s in steps) else _NEAR
            while most > _LEAST_LANES and 4 * self.inner(name) * most * size > near:
                most //= 2
        return min(most, 1 << (lines.bit_length() - 1))

    def single(self, name: str, dtype: np.dtype[Any]) -> int:
        """Numbers of a row where lines are taken one by one, which pays if those are as many as the
        lines of a block would be; 0 where they are not.
        """
        if self.held(name, dtype):
            return 0
        n = self.inner(name)
        odd = name in _HALVED and n == self.n
        if self.after > 1 or odd or n < _SINGLE or self.given != self.read(name):
            return 0
        lanes = host().vector_bytes // dtype.itemsize
        while n % lanes or lanes * lanes > n:
            lanes //= 2
        least = _ROW if n <= _MOST else _LEAST_LANES
        some = lanes >= max(least, self._together(name, dtype))
        return lanes if some and steps_of(n // lanes) is not None else 0

    def read(self, name: str) -> int:
        """Numbers of a line that a transform of its length reads."""
        return self.n // 2 + 1 if name == "irfft" else self.n

    def rows(self, name: str, dtype: np.dtype[Any]) -> int:
        """Numbers of a lane: all of a line, or rows of one that is taken alone."""
        n, single = self.inner(name), self.single(name, dtype)
        return n // single if single else n

    def form(self, name: str, dtype: np.dtype[Any]) -> Form:
        """The text that is wanted."""
        element = _ELEMENTS[dtype.itemsize]
        return Form(
            element, self.lanes(name, dtype), self.after > 1, name in _REAL_IN, name == "irfft",
            self.inner(name) < self.n, name[0] == "i", self.single(name, dtype) > 0,
            self.held(name, dtype),
        )  # fmt: skip

    def dealt(self, name: str, dtype: np.dtype[Any]) -> tuple[int, int, int, int]:
        """Blocks of lines, how many are a task, tasks, and numbers of their buffers."""
        if self.held(name, dtype):
            together = lines_of(self.form(name, dtype))
            blocks = -(-self.before // together)
            several = max(1, _TASK // (self.n * together), -(-blocks // _MOST_TASKS))
            return blocks, several, -(-blocks // several), 0
        lanes, n = self.lanes(name, dtype), self.rows(name, dtype)
        along = self.before if self.single(name, dtype) else -(-self.before // lanes)
        blocks = self.before * -(-self.after // lanes) if self.after > 1 else along
        passes = len(steps_of(n) or ())
        several = max(1, _TASK // (n * lanes * passes), -(-blocks // _MOST_TASKS))
        tasks = -(-blocks // several)
        room = (4 * n + 16) * lanes
        if self.single(name, dtype):
            room = 4 * spacing(n * lanes, _ELEMENTS[dtype.itemsize])
        return blocks, several, tasks, room * tasks


def is_of_lines(name: str, of: Lengths, dtype: np.dtype[Any], *, told: bool = True) -> bool:
    """Whether there are lines enough, of a length that small radices make; or long ones. told:
    whether the text is to know the length, which must be short for that.
    """
    if not of.before * of.after:
        return False
    if of.held(name, dtype):
        return True
    n = of.inner(name)
    if of.single(name, dtype):
        return n <= (_MOST if told else _LONGEST // (2 * dtype.itemsize))
    lanes = of.lanes(name, dtype)
    if not 1 < n <= _MOST or lanes < _LEAST_LANES or steps_of(n) is None:
        return False
    if of.given != of.read(name):
        return False
    if of.after > 1:
        return True
    ends = ((of.given, name in _REAL_IN), (of.made, name == "irfft"))
    return all(k >= (lanes if real else lanes // 2) for k, real in ends)


def along(name: str, x: Any, lengths: Any, axes: Any, norm: str) -> Any:
    """Transforms along axes, from the last one on; for "fft" and "ifft" there may be several."""
    passes = _passes(name, x.shape, lengths, axes, norm, x.dtype, host())
    if passes is None:
        return NotImplemented
    for one in passes:
        y = fresh(one.shape, one.dtype)
        if x.flags.num & DENSE != DENSE:
            x = np.require(x, requirements=("C", "A"))
        one.run(x, y, scratch(one.room))
        x = y
    return x


class _Pass(Struct, frozen=True):
    """Lines along one axis. run: takes an array, the result and room. shape, dtype: of the result.
    room: in bytes. keeps: what the job points to.
    """

    run: Callable[..., None]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    room: int
    keeps: Any


@functools.lru_cache(1024)
def _passes(
    name: str, shape: tuple[int, ...], lengths: Any, axes: Any, norm: str, dtype: np.dtype[Any],
    machine: Host,
) -> list[_Pass] | None:  # fmt: skip
    """What is done, axis by axis; None where one is not of lines."""
    if not dtype.isnative or (name in _HALVED and (dtype.kind == "c") is (name == "rfft")):
        return None
    real = np.empty(0, dtype).real.dtype
    asked = []
    for n, axis in zip(reversed(lengths), reversed(axes), strict=True):
        axis = range(len(shape))[axis]
        n = n or (2 * (shape[axis] - 1) if name == "irfft" else shape[axis])
        made = n // 2 + 1 if name == "rfft" else n
        own = OF_REALS.get(name, name) if dtype is real else name
        of = Lengths(prod(shape[:axis]), shape[axis], n, made, prod(shape[axis + 1 :]))
        if not is_of_lines(own, of, real, told=False):
            return None
        shape = (*shape[:axis], made, *shape[axis + 1 :])
        dtype = real if name == "irfft" else np.result_type(real, np.complex64)
        asked.append((own, of, float(plan(name, n, norm, real.itemsize == 4)[1]), shape, dtype))
    return [_pass(real, *each) for each in asked]


def _pass(
    real: np.dtype[Any], name: str, of: Lengths, factor: float, shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> _Pass:  # fmt: skip
    form, n = of.form(name, real), of.rows(name, real)
    blocks, several, tasks, room = of.dealt(name, real)
    by = np.array(factor, real)
    table, before = table_of(n, form)
    turns = _aligned(table, real)
    steps = np.array([astuple(s) for s in steps_of(n) or ()], np.int64)
    job = np.array([
        0, 0, 0, of.before, of.after, blocks, several, tasks, of.given, n, of.made, address(by),
        address(turns[before:]), address(steps), len(steps) - 1,
    ], np.int64)  # fmt: skip
    code = printed(text, form)
    run = filling(code.address("lines"), job, (0, 1, 2))
    return _Pass(run, shape, dtype, room * real.itemsize, (code, by, turns, steps))


def _aligned(numbers: Any, real: np.dtype[Any]) -> Any:
    """Numbers of a dtype, so that vectors of them do not lie across lines of the caches."""
    room = np.empty(numbers.size + _LINE // real.itemsize, real)
    first = -address(room) % _LINE // real.itemsize
    found = room[first : first + numbers.size]
    found[:] = numbers
    return found
