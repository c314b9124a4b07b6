"""Ops that only move elements: copies into parts of their result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from funct.compile.fusion.calls import Address, Call, Root, Word, size_bytes
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.lower import copy
from funct.compile.joins import is_concat
from funct.compile.loops.scalars import ELEMENTS
from funct.compile.loops.views import View, dense
from funct.graph import Node, Var
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value

__all__ = [
    "copied", "copied_bytes", "copy_bytes", "is_move", "lower_move", "parts", "print_copied",
    "print_zeros", "zeros",
]  # fmt: skip

_PART = 1 << 20  # bytes of a task


def is_move(step: Any) -> bool:
    """Whether a step is such an op, of elements that loops know."""
    if not isinstance(step, Node) or not (step.name == "embed" or is_concat(step)):
        return False
    out = step.results[0]
    held = [v for v in step.operands if isinstance(v, Var)]
    same = len(held) == len(step.operands) and all(v.dtype == out.dtype for v in held)
    return same and out.dtype in ELEMENTS and 0 not in out.shape


def lower_move(node: Node, fused: Fused) -> list[Call]:
    """The copies, after zeros where not all is written; what is made in its place is there."""
    calls: list[Call] = []
    if node.name == "embed":
        out = node.results[0]
        calls.append(zeros(out))
    for operand, part in parts(node):
        if part.size and fused.views[operand] != part:
            calls += copy(fused.views[operand], fused, part)[0]
    return calls


def parts(node: Node) -> Iterator[tuple[Var, View]]:
    """Each operand, and what it is in the result."""
    out = dense(node.results[0])
    if node.name == "embed":
        (g,) = node.operands
        index, _ = node.params
        assert isinstance(g, Var)
        offset, strides = 0, []
        for n, stride, triple in zip(out.shape, out.strides, index, strict=True):
            start, _, step = slice(*triple).indices(n)
            offset += start * stride
            strides.append(step * stride)
        yield g, View(out.root, tuple(g.shape), tuple(strides), offset)
        return
    (axis,) = node.params
    start = 0
    for v in node.operands:
        assert isinstance(v, Var)
        yield v, replace(out, shape=tuple(v.shape), offset=start * out.strides[axis])
        start += v.shape[axis]


def zeros(out: Var) -> Call:
    """What fills a result with zeros."""
    size = size_bytes(out)
    return Call(("zeros",), (Address(out), size), -(-size // _PART), (out,))


def copied(out: Var, source: Word) -> Call:
    """What copies as many bytes as a result has to it, if they are not there already."""
    size = size_bytes(out)
    return Call(("copied",), (Address(out), source, size), -(-size // _PART), (out,))


def copied_bytes(out: Root, offset: int, source: Address, size: int) -> Call:
    """What copies so many bytes into a buffer, from this one on."""
    return Call(("copied",), (Address(out, offset), source, size), -(-size // _PART), (out,))


def copy_bytes(f: Emitter, to: Value, source: Value, size: Value) -> None:
    """Print a copy of memory to other memory."""
    name = "@llvm.memcpy.p0.p0.i64"
    f.module.declare(name, f"declare void {name}(ptr, ptr, i64, i1)")
    f.line(f"call void {name}({to!r}, {source!r}, {size!r}, i1 false)")


def _part(f: Emitter, task: Value, size: Value) -> tuple[Value, Value]:
    """The first byte of a task's part of so many, and how many it has."""
    first = task * _PART
    left = size - first
    return first, f.select(left < _PART, left, f.constant(I64, _PART))


def print_zeros(module: Module, name: str) -> None:
    """Add what fills bytes with zeros."""
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    set_ = "@llvm.memset.p0.i64"
    module.declare(set_, f"declare void {set_}(ptr, i8, i64, i1)")
    first, size = _part(f, task, f.word(frame, 1))
    place = f.at(f.load(PTR, frame), first, "i8")
    f.line(f"call void {set_}({place!r}, i8 0, {size!r}, i1 false)")
    f.ret()


def print_copied(module: Module, name: str) -> None:
    """Add what copies bytes, if they are not there already."""
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, task = f.arguments
    first, size = _part(f, task, f.word(frame, 2))
    to, source = (f.at(f.pointer(frame, k), first, "i8") for k in range(2))
    there = f.load(I64, frame)
    moves = f.ne(there, f.word(frame, 1))
    f.when(moves, lambda: copy_bytes(f, to, source, size))
    f.ret()
