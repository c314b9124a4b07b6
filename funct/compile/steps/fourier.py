"""Fourier transforms of few elements inside of a program: the loops behind `numpy.fft`, by address;
those of many lines are our own (`funct/kernels/cpu/fourier`).

So the numbers are those of eager execution, with its precision: a transform of single precision is
taken in doubles, but where NumPy's factor is single. Complex arrays have a last axis of two.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from msgspec.structs import astuple

from funct.compile.fusion.calls import Address, Buffer, Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.lower import places_of
from funct.compile.steps.matrices import converted
from funct.compile.steps.ufuncs import data_of
from funct.device.machine_code import offer
from funct.graph import Node, Var
from funct.kernels import fft as kernels
from funct.kernels.cpu.elementwise.ufunc_loops import Loop, generalized
from funct.kernels.cpu.fourier.line_text import Form
from funct.kernels.cpu.fourier.lines import Lengths, is_of_lines
from funct.kernels.cpu.fourier.texts import print_lines
from funct.kernels.llvm import I64, PTR, Module, Value, typed

__all__ = ["is_fourier", "is_of_many_lines", "lower_fourier", "print_fourier", "print_lines_of"]

_OF_PAIRS = {
    "fft_of_pairs": "fft", "real_fft_to_pairs": "real_fft",
    "hermitian_fft_of_pairs": "hermitian_fft",
}  # fmt: skip
_KINDS = {"rfft_n_even": "{0}{0}->{1}", "rfft_n_odd": "{0}{0}->{1}", "irfft": "{1}{0}->{0}"}
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


@attrs.frozen
class _Pass:
    """Lines along one axis. shape: of the operand, in complex numbers if it has such. name: of the
    transform, as `numpy.fft` has it. n: what comes out; None: as many as go in.
    """

    name: str
    shape: tuple[int, ...]
    axis: int
    n: int | None
    norm: str
    single: bool

    @functools.cached_property
    def plan(self) -> tuple[Any, Any, int, Any]:
        """NumPy's loop, its factor, elements of a line that comes out, and their dtype."""
        return kernels.plan(self.name, self.n or self.shape[self.axis], self.norm, self.single)

    @property
    def lengths(self) -> Lengths:
        """Lines before the axis, numbers of one as they are given, all, and made, lines behind."""
        n, (_, _, made, _) = self.n or self.shape[self.axis], self.plan
        before, after = math.prod(self.shape[: self.axis]), math.prod(self.shape[self.axis + 1 :])
        return Lengths(before, self.shape[self.axis], n, made, after)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the parts of its numbers."""
        return _SINGLE if self.single else _DOUBLE

    @property
    def inner(self) -> str:
        """The element in which NumPy takes it."""
        return "f64" if self.plan[1].dtype == _DOUBLE or not self.single else "f32"

    @property
    def loop(self) -> str:
        """The name of NumPy's loop."""
        return str(getattr(self.plan[0], "__name__", ""))

    @property
    def out(self) -> tuple[int, ...]:
        """The shape of what comes out."""
        shape = list(self.shape)
        shape[self.axis] = self.plan[2]
        return tuple(shape)


def _passes(step: Node) -> Iterator[_Pass]:
    """One axis after the other, as `funct.ops.fft` takes them."""
    x: Any = step.operands[0]
    op, single = _OF_PAIRS[step.name], x.dtype != _DOUBLE
    if op == "fft":
        axes, inverse, norm = step.params
        for axis in reversed(axes):
            yield _Pass("ifft" if inverse else "fft", x.shape[:-1], axis, None, norm, single)
    elif op == "real_fft":
        yield _Pass("rfft", x.shape, step.params[0], None, step.params[2], single)
    else:
        axis, n, _, norm = step.params
        yield _Pass("irfft", x.shape[:-1], axis, n, norm, single)


def is_fourier(step: Any) -> bool:
    """Whether a step is such a transform, of so few elements that eager execution takes NumPy's."""
    if not isinstance(step, Node) or step.name not in _OF_PAIRS:
        return False
    x = step.operands[0]
    if not isinstance(x, Var) or not all(isinstance(n, int) and n for n in x.shape):
        return False
    return all(
        _is_of_lines(p)
        or (math.prod(p.shape) < kernels.LARGE and _loop(p.loop, p.inner) is not None)
        for p in _passes(step)
    )


def is_of_many_lines(step: Any) -> bool:
    """Whether a step is such a transform, and all of it is ours."""
    return is_fourier(step) and all(map(_is_of_lines, _passes(step)))


def _is_of_lines(p: _Pass) -> bool:
    """Whether a transform is of so many elements that eager execution takes lines as well."""
    return math.prod(p.shape) >= kernels.LINES and is_of_lines(p.name, p.lengths, p.dtype)


@functools.cache
def _loop(name: str, inner: str) -> Loop | None:
    ufunc = getattr(kernels.loops(), name, None)
    real = "f" if inner == "f32" else "d"
    kinds = _KINDS.get(name, "{1}{0}->{1}").format(real, real.upper())
    return None if ufunc is None else generalized(ufunc, kinds)


def lower_fourier(node: Node, fused: Fused) -> list[Call]:
    """The calls, after a copy of what does not lie one after the other."""
    x: Any = node.operands[0]
    calls, (place,) = places_of((x,), fused)
    passes = list(_passes(node))
    for k, p in enumerate(passes):
        parts = 1 if p.name == "irfft" else 2
        out = Buffer(parts * math.prod(p.out), x.dtype)
        result = Address(node.results[0] if k == len(passes) - 1 else out)
        made = (node.results[0],) if k == len(passes) - 1 else (out,)
        if _is_of_lines(p):
            calls.append(_lines(p, place, result, made))
        else:
            calls.append(_call(p, place, result, made, x.dtype))
        place = result
    return calls


def _lines(p: _Pass, x: Address, out: Address, made: Any) -> Call:
    of = p.lengths
    blocks, several, tasks, room = of.dealt(p.name, p.dtype)
    words = (x, out, Address(Buffer(room, p.dtype)), of.before, of.after, blocks, several)
    form = astuple(of.form(p.name, p.dtype))
    sizes = of.given, of.rows(p.name, p.dtype), of.made
    return Call(("fourier lines", form, *sizes, float(p.plan[1])), words, tasks, made)


def print_lines_of(
    module: Module, name: str, form: tuple[Any, ...], given: int, n: int, made: int, factor: float
) -> None:
    """Add the kernel of a transform of many lines; see `print_lines`."""
    print_lines(module, name, Form(*form), given, n, made, factor)


def _call(p: _Pass, x: Address, out: Address, made: Any, dtype: Any) -> Call:
    element, wide = "f64" if dtype == _DOUBLE else "f32", 8 if p.inner == "f64" else 4
    before, after = math.prod(p.shape[: p.axis]), math.prod(p.shape[p.axis + 1 :])
    parts = [1 if p.name == "rfft" else 2, 1 if p.name == "irfft" else 2]
    ends = [p.shape[p.axis], p.out[p.axis]]
    sizes = [k * n * before * after for k, n in zip(parts, ends, strict=True)]
    width = [wide * k for k in parts]
    if after == 1:  # all lines in one call
        times, lines, apart = 1, before, [w * n for w, n in zip(width, ends, strict=True)]
        steps = [0, 0]
    else:
        times, lines, apart = before, after, width
        steps = [w * n * after for w, n in zip(width, ends, strict=True)]
    room = [Address(Buffer(s, np.dtype(f"f{wide}"))) if element != p.inner else 0 for s in sizes]
    words = (
        x, out, *room, *sizes, times, *steps, lines, *ends, apart[0], 0, apart[1],
        *[w * after for w in width],
    )  # fmt: skip
    kernel = ("fourier", p.loop, element, p.inner, float(p.plan[1]))
    return Call(kernel, words, 1, made)


def print_fourier(
    module: Module, name: str, loop: str, element: str, inner: str, factor: float
) -> None:
    """Add the kernel of a transform along one axis. Frame: what goes in, what comes out, copies of
    them in `inner` if it is another element, and their sizes; how often NumPy's loop is called, and
    how far the arrays move between; what the loop takes: lengths and strides.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    own, _ = f.arguments
    places = f.pointers(own, 0, 4)
    sizes = f.words(own, 4, 2)
    times, *steps = f.words(own, 6, 3)
    lengths, strides = f.at(own, 9, "i64"), f.at(own, 12, "i64")
    alike = element == inner
    first = places[:2] if alike else places[2:]
    if not alike:
        converted(f, places[0], places[2], sizes[0], element, inner)
    called, found = f"funct_{loop}_{inner}", _loop(loop, inner)
    data = data_of(f, called, found is not None and found.data != 0)
    by = f.allocate(typed(inner), 1)
    f.store(f.constant(typed(inner), factor), by)
    table = f.allocate(PTR, 3)
    f.store(by, f.at(table, 1, "i64"))

    def one(k: Value, _: list[Value]) -> list[Value]:
        for place, step, at in zip(first, steps, (0, 2), strict=True):
            f.store(f.at(place, k * step, "i8"), f.at(table, at, "i64"))
        f.call(called, None, [table, lengths, strides, data])
        return []

    f.loop(0, times, 1, one)
    if not alike:
        converted(f, places[3], places[1], sizes[1], inner, element)
    f.ret()


def _word(name: str, inner: str, which: str) -> int | None:
    return getattr(_loop(name, inner), which, None)


for _name in ("fft", "ifft", "irfft", "rfft_n_even", "rfft_n_odd"):
    for _inner in ("f32", "f64"):
        _symbol = f"funct_{_name}_{_inner}"
        offer(_symbol, functools.partial(_word, _name, _inner, "function"))
        offer(f"{_symbol}_data", functools.partial(_word, _name, _inner, "data"))
