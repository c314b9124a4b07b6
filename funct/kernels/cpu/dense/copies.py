"""Copies of pixels whose channels are last, between images and what lies otherwise apart.

Texts with long loops are made in a hurry (`LEAN`); these loops are short, so they stand in a
function of their own, for which LLVM takes its time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from funct.device import Host, host, printed
from funct.device.machine_code import offer
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed

__all__ = ["copy_pixels", "define_copies"]

_FEW = range(1, 9)  # words of a pixel that are copied in parts,
_TOGETHER = 4  # and so many such pixels in a turn of the loop


def _name(element: str, width: int) -> str:
    return f"funct_pixels_{element}_{width}"


def copy_pixels(
    f: Emitter, to: Value, source: Value, count: Value, words: Value, steps: tuple[Value, Value],
    element: str,
) -> None:  # fmt: skip
    """Print a call that copies so many pixels of some words.

    steps: from one pixel to the next, of `to` and `source`.
    """
    name = _name(element, f.module.target.vector_bytes)
    f.call(name, None, [source, to, count, words, *steps])


def define_copies(module: Module, element: str) -> None:
    """Print `to[p * to_step + k] = source[p * step + k]` for p < count, k < words.

    The function takes (source, to, count, words, to_step, step). Pixels are copied in vectors, of
    which the last one overlaps, or, of few words, in parts.
    """
    width = module.target.vector_bytes
    names = ("count", "words", "to_step", "step")
    f = module.function(
        _name(element, width), [("source", PTR), ("to", PTR), *[(n, I64) for n in names]]
    )
    source, to, count, words, to_step, step = f.arguments

    def part(there: Value, here: Value, k: Value | int, some: int) -> None:
        f.store(f.load(typed(element, some), f.at(here, k, element)), f.at(there, k, element))

    def pixels(body: Callable[[Value, Value], None], together: int) -> list[Value]:
        def pixel(p: Value) -> None:
            body(f.at(to, p * to_step, element), f.at(source, p * step, element))

        def turn(p: Value) -> None:
            for k in range(together):
                pixel(p + k)

        whole = count - f.rem(count, together)
        each(f, 0, whole, turn, together)
        each(f, whole, count, pixel)
        return []

    def vectors(lanes: int) -> list[Value]:
        def parts(there: Value, here: Value) -> None:
            last = words - lanes
            each(f, 0, last, lambda k: part(there, here, k, lanes), lanes)
            part(there, here, last, lanes)

        return pixels(parts, 1)

    def known(number: int) -> list[Value]:
        def parts(there: Value, here: Value) -> None:
            start = 0
            for some in (lanes, 8, 4, 2, 1):
                if number - start >= some:
                    part(there, here, start, some)
                    start += some

        return pixels(parts, _TOGETHER)

    lanes, few = width // typed(element).bytes, len(_FEW)
    way = functools.partial(vectors, min(few, lanes))
    if lanes > few:
        way = functools.partial(f.branch, words >= lanes, functools.partial(vectors, lanes), way)
    for number in sorted({*_FEW, lanes}):
        way = functools.partial(
            f.branch, f.eq(words, number), functools.partial(known, number), way
        )
    way()
    f.ret()


@functools.cache
def _text(element: str, target: Host) -> str:
    """The function as a text of its own."""
    module = Module(target)
    define_copies(module, element)
    return module.text()


@functools.cache
def _address(element: str, width: int) -> int:
    return printed(_text, element, host()).keep().address(_name(element, width))


for _element in ("f32", "f64", "i32"):
    for _width in (16, 32, 64):
        offer(_name(_element, _width), functools.partial(_address, _element, _width))
