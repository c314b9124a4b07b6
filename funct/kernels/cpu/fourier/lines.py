"""Which Fourier transforms are of lines in loops (`line_text.py`), and eager calls of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from funct.device import Host, host, printed
from funct.kernels.cpu.fourier.line_text import Form, steps_of, text, turns_of
from funct.kernels.cpu.record import address
from funct.kernels.cpu.runners import filling
from funct.kernels.cpu.scratch import fresh, scratch
from funct.kernels.fft import plan

__all__ = ["OF_REALS", "Lengths", "along", "is_of_lines"]

OF_REALS = {"fft": "fft of reals", "ifft": "ifft of reals"}  # of numbers that are not complex
_REAL_IN = frozenset({"rfft", *OF_REALS.values()})
_HALVED = frozenset({"rfft", "irfft"})
_MOST = 2048  # numbers of a line: a block of them stays in the second cache
_LEAST_LANES = 4
_NEAR = 1 << 15  # bytes of both buffers that the first cache holds
_TASK = 1 << 16  # numbers times passes that are worth a task
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
        """Lines of a block: a power of two."""
        size = dtype.itemsize
        lines, most = self.before, host().vector_bytes // size
        if self.after > 1:
            lines = self.after
        else:
            while most > _LEAST_LANES and 4 * self.inner(name) * most * size > _NEAR:
                most //= 2
        return min(most, 1 << (lines.bit_length() - 1))

    def form(self, name: str, dtype: np.dtype[Any]) -> Form:
        """The text that is wanted."""
        element = "f32" if dtype.itemsize == 4 else "f64"
        return Form(
            element, self.lanes(name, dtype), self.after > 1, name in _REAL_IN, name == "irfft",
            self.inner(name) < self.n, name[0] == "i",
        )  # fmt: skip

    def dealt(self, name: str, dtype: np.dtype[Any]) -> tuple[int, int, int, int]:
        """Blocks of lines, how many are a task, tasks, and numbers of their buffers."""
        lanes, n = self.lanes(name, dtype), self.inner(name)
        across = self.before * -(-self.after // lanes)
        blocks = across if self.after > 1 else -(-self.before // lanes)
        passes = len(steps_of(n) or ())
        several = max(1, _TASK // (n * lanes * passes), -(-blocks // _MOST_TASKS))
        tasks = -(-blocks // several)
        return blocks, several, tasks, (4 * n + 16) * lanes * tasks


def is_of_lines(name: str, of: Lengths, dtype: np.dtype[Any]) -> bool:
    """Whether there are lines enough, of a length that small radices make."""
    if not of.before * of.after:
        return False
    lanes, n = of.lanes(name, dtype), of.inner(name)
    if not 1 < n <= _MOST or lanes < _LEAST_LANES or steps_of(n) is None:
        return False
    if of.given != (of.n // 2 + 1 if name == "irfft" else of.n):
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
        one.run(np.require(x, requirements=["C", "A"]), y, scratch(one.room))
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
        if not is_of_lines(own, of, real):
            return None
        shape = (*shape[:axis], made, *shape[axis + 1 :])
        dtype = real if name == "irfft" else np.result_type(real, np.complex64)
        asked.append((own, of, float(plan(name, n, norm, real.itemsize == 4)[1]), shape, dtype))
    return [_pass(real, *each) for each in asked]


def _pass(
    real: np.dtype[Any], name: str, of: Lengths, factor: float, shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> _Pass:  # fmt: skip
    form, n = of.form(name, real), of.inner(name)
    blocks, several, tasks, room = of.dealt(name, real)
    turns = np.array([factor, *turns_of(n, form)], real)
    steps = np.array([astuple(s) for s in steps_of(n) or ()], np.int64)
    job = np.array([
        0, 0, 0, of.before, of.after, blocks, several, tasks, of.given, n, of.made, address(turns),
        address(steps), len(steps) - 1,
    ], np.int64)  # fmt: skip
    code = printed(text, form)
    run = filling(code.address("lines"), job, (0, 1, 2))
    return _Pass(run, shape, dtype, room * real.itemsize, (code, turns, steps))
