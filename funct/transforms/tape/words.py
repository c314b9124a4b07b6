"""What the parts of the machine code of tapes share: words of their tables, slots, and shapes.

`KINDS` are objects that all of it knows; a way has a table for its primitive (`WAY`); a pull is a
list of steps, each a call of one of NumPy's loops.
"""

from __future__ import annotations

from typing import NamedTuple

from funct.kernels.cpu.calls import RANK, SHAPE, TYPE, field, word

__all__ = [
    "ANS", "HELD", "KEPT", "KINDS", "OPERAND", "PARAMS", "SHAPES", "STEP", "Slots", "WAY", "put",
    "shapes_text",
    "wrapped",
]  # fmt: skip

KINDS = {
    name: k
    for k, name in enumerate((
        "array", "ndarray", "float", "int", "tuple", "tracer", "level", "node", "primitive",
        "true", "false", "none", "one", "f4", "f8", "c8", "c16", "exception", "asarray", "match",
        "programs", "add", "power.single", "power.double", "plus", "", "", "", "", "times",
    ))
}  # fmt: skip
WAY = {
    name: k
    for k, name in enumerate((
        "kinds", "operands", "params", "plain", "raw", "fn", "spread", "loops", "", "", "", "",
        "rules",
    ))
}  # fmt: skip
KEPT = 8  # at most, of what one pull keeps, and of parameters
OPERAND = 3 + KEPT  # words: whether it has a rule, its pull, how many it keeps, and which
ANS, PARAMS, SHAPES = 0, 3, 3 + KEPT  # which: the result, values from 1 on, parameters, shapes
STEP = 9  # words: loops and for how many, how many operands, up to three of them

HELD = 24  # values of a pull: cotangent, kept ones, constants, and what its steps give


class Slots(NamedTuple):
    """Where the slots of objects stand."""

    array: int
    level: int
    value: int
    node: int
    open: int
    counted: int
    dtype: int
    edges: int
    prim: int
    serial: int
    shape: int
    site: int
    masks: int
    results: int
    spread: int


def wrapped(name: str, raw: str, at: Slots) -> str:
    """An Array of an ndarray that it takes over."""
    return f"""
{word(f"{name}.type", "%kinds", KINDS["array"], "ptr")}
  %{name} = call ptr @PyType_GenericAlloc(ptr %{name}.type, i64 0)
{put(name, at.array, raw)}"""


def put(of: str, offset: int, value: str) -> str:
    """A slot of a new object takes over a reference."""
    place = f"%{of}.{offset}.place"
    return (
        f"  {place} = getelementptr i8, ptr %{of}, i64 {offset}\n  store ptr {value}, ptr {place}"
    )


def shapes_text() -> str:
    """The text of `shape.of`."""
    return f"""
; The shape of an ndarray: the tuple at hand if it says the same, else a new one.
define internal ptr @shape.of(ptr %kinds, ptr %x, ptr %at.hand) {{
entry:
{field("rank", "%x", RANK, "i32")}
{field("lengths", "%x", SHAPE, "ptr")}
  %axes = sext i32 %rank to i64
  %none = icmp eq ptr %at.hand, null
  br i1 %none, label %new, label %typed
typed:
{word("tuple", "%kinds", KINDS["tuple"], "ptr")}
{word("int", "%kinds", KINDS["int"], "ptr")}
{field("type", "%at.hand", TYPE, "ptr")}
  %is.tuple = icmp eq ptr %type, %tuple
  br i1 %is.tuple, label %measure, label %new
measure:
  %count = call i64 @PyTuple_Size(ptr %at.hand)
  %as.many = icmp eq i64 %count, %axes
  br i1 %as.many, label %next, label %new
next:
  %k = phi i64 [ 0, %measure ], [ %k.next, %number ]
  %done = icmp eq i64 %k, %axes
  br i1 %done, label %take, label %look
look:
  %item = call ptr @PyTuple_GetItem(ptr %at.hand, i64 %k)
{field("item.type", "%item", TYPE, "ptr")}
  %is.int = icmp eq ptr %item.type, %int
  br i1 %is.int, label %number, label %new
number:
  %theirs = call i64 @PyLong_AsLongLong(ptr %item)
  %ours.at = getelementptr i64, ptr %lengths, i64 %k
  %ours = load i64, ptr %ours.at
  %same = icmp eq i64 %ours, %theirs
  %k.next = add i64 %k, 1
  br i1 %same, label %next, label %new
take:
  call void @Py_IncRef(ptr %at.hand)
  ret ptr %at.hand
new:
  %made = call ptr @PyTuple_New(i64 %axes)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %give, label %axis
axis:
  %j = phi i64 [ 0, %new ], [ %j.next, %put ]
  %all = icmp eq i64 %j, %axes
  br i1 %all, label %give, label %put
put:
  %length.at = getelementptr i64, ptr %lengths, i64 %j
  %length = load i64, ptr %length.at
  %object = call ptr @PyLong_FromLongLong(i64 %length)
  %ignored = call i32 @PyTuple_SetItem(ptr %made, i64 %j, ptr %object)
  %j.next = add i64 %j, 1
  br label %axis
give:
  ret ptr %made
}}
"""
