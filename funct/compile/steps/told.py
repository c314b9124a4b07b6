"""Calls of machine code that eager execution runs too, by its address.

What it is told is an array beside the program (`funct.kernels.cpu.jobs`); a step copies that, puts
the addresses of its arrays in, and calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from funct.compile.fusion.calls import Address, Call, Root
from funct.compile.steps.moves import copy_bytes
from funct.graph import Var
from funct.kernels.cpu.jobs import Job
from funct.kernels.llvm import I64, PTR, Module

__all__ = ["print_told", "told"]


def told(what: Job, at: dict[str, Address], writes: Sequence[Root]) -> Call:
    """The call of a job with these addresses."""
    words = Var("job", what.shape, what.dtype)
    kernel = ("told", what.size - 1, tuple([what.places[name] - 1 for name in at]))
    return Call(kernel, (Address(words), *at.values()), 1, tuple(writes), held={words: what})


def print_told(module: Module, name: str, words: int, places: tuple[int, ...]) -> None:
    """Add the call of a function that is told so many words. Frame: where its address and they
    stand; the addresses that are missing, which go to these places among them.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    told, own = f.load(PTR, frame), f.allocate(I64, words)
    copy_bytes(f, own, f.at(told, 1, "i64"), f.constant(I64, 8 * words))
    for k, place in enumerate(places):
        f.store(f.pointer(frame, 1 + k), f.at(own, place, "i64"))
    f.line(f"call void {f.load(PTR, told).name}({own!r})")
    f.ret()
