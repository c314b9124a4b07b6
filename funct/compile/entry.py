"""One call from Python for a whole compiled function: machine code between it and the arrays.

Most calls of a compiled function have the arguments of the call before, but for the elements. An
entry looks at them in machine code: each must be an `Array` whose buffer is a dense ndarray of the
very dtype and shape that the function was compiled for. All else is answered with None, and the
caller goes the long way. Two entries stand on that:

- `unwrapping(inputs)(*arrays)` gives the buffers, for a function that is run as Python;
- `serving(whole)(*arrays)` makes the results, runs the program and wraps them, for a function that
  is one program: a call costs little more than NumPy needs to make the results.

Results lie in memory of their own, unless something better is known (`Reuse`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from funct.array import Array
from funct.compile.walker import walker
from funct.device import Code, assemble
from funct.device.machine_code import offer
from funct.graph import Var
from funct.kernels.cpu.calls import DATA, DENSE, FLAGS, builtin, readable
from funct.ops.families import wrap

__all__ = [
    "Whole", "Reuse", "calls_of", "note_whole", "whole_of", "serving", "unwrapping",
]  # fmt: skip

_MOST = 4096  # arrays of a call: their addresses lie on the stack
_SMALL = 1 << 13  # bytes of a workspace that lies on the stack as well
_RANK, _SHAPE, _BASE, _DTYPE = DATA + 8, DATA + 16, DATA + 32, DATA + 40  # as in `calls.py`
_OWN = 0x0004 | 0x0400  # flags: it owns its elements, and may be written into
_SPARE = 2  # kept buffers for each result

# Words of a table. Behind them stand the specs of the inputs, of the results, and whence the
# arguments of the program come.
_INPUTS, _RESULTS, _GIVEN, _CALLS, _ARRAY, _NDARRAY, _NONE = range(7)
_PROGRAM, _WALK, _BYTES, _BYTE, _ROOM, _SINGLE, _SPECS_OUT, _WHENCE = range(7, 15)
_HEAD = 15
_OUT = 5 + _SPARE  # words of a result's spec: dtype, rank, shape, input, spare buffers, how many


@attrs.frozen(eq=False)
class Whole:
    """A function that is one program, without anything before, between or behind.

    inputs: of the function. results: of the function, each made by the program as a whole.
    arguments: of the program, by their positions among inputs and results. reusable: (result,
    input) where the result may be written into the input's memory. table, workspace: of the
    program. owner: of whatever the table points to.
    """

    inputs: tuple[Var, ...]
    results: tuple[Var, ...]
    arguments: tuple[int, ...]
    table: np.ndarray[Any, Any]
    workspace: int
    owner: Any
    reusable: tuple[tuple[int, int], ...] = ()


@attrs.frozen
class Reuse:
    """Memory that results may take. donated: positions of inputs that nobody uses any more.

    spare: whether buffers of results and the workspace are kept between calls, and used again as
    soon as nobody holds them.
    """

    donated: frozenset[int] = frozenset()
    spare: bool = False


_wholes: WeakKeyDictionary[Callable[..., Any], Whole] = WeakKeyDictionary()


def note_whole(run: Callable[..., Any], whole: Whole) -> None:
    """Say that a function is one program."""
    _wholes[run] = whole


def whole_of(run: Callable[..., Any]) -> Whole | None:
    """How a function is one program, if it is."""
    return _wholes.get(run)


def unwrapping(inputs: Sequence[Var]) -> Callable[..., Any] | None:
    """`unwrap(*arrays)`: the buffers in a tuple, or None; None where there is no such code."""
    if not _fits(inputs):
        return None
    table = _table(inputs)
    return builtin("unwrap", _code().address("unwrap"), table, tuple(inputs))


def serving(whole: Whole, single: bool, reuse: Reuse = Reuse()) -> Callable[..., Any] | None:
    """`serve(*arrays)`: the result as an Array if it is a single one, a list of Arrays, or None."""
    if not _fits((*whole.inputs, *whole.results)):
        return None
    table = _table(whole.inputs)
    held: list[Any] = [whole, table]
    words = []
    taken = _taken(whole, reuse.donated)
    for k, v in enumerate(whole.results):
        shape = np.asarray(v.shape, np.int64)
        held.append(shape)
        spare = [np.empty(v.shape, v.dtype) for _ in range(_SPARE)] if reuse.spare else []
        held.append(spare)
        places = [id(x) for x in spare] + [0] * (_SPARE - len(spare))
        words += [id(v.dtype), len(v.shape), shape.ctypes.data, taken.get(k, -1), *places]
        words.append(len(spare))
    room = np.empty(whole.workspace, np.uint8) if reuse.spare else None
    held.append(room)
    full = np.concatenate((table, np.asarray([*words, *whole.arguments], np.int64)))
    full[_RESULTS], full[_GIVEN] = len(whole.results), len(whole.arguments)
    full[_PROGRAM], full[_WALK] = id(whole.table), walker()
    full[_BYTES], full[_BYTE] = whole.workspace, id(np.dtype(np.uint8))
    full[_ROOM], full[_SINGLE] = id(room) if room is not None else 0, int(single)
    full[_SPECS_OUT], full[_WHENCE] = len(table), len(table) + len(words)
    return builtin("serve", _code().address("serve"), full, held)


def _taken(whole: Whole, donated: frozenset[int]) -> dict[int, int]:
    """Which result takes which input's memory."""
    found: dict[int, int] = {}
    for r, i in whole.reusable:
        if i in donated and r not in found and i not in found.values():
            found[r] = i
    return found


def calls_of(entry: Any) -> int:
    """How often what `serving` gave has answered."""
    return int(entry.__self__[_CALLS])


def _fits(arrays: Sequence[Var]) -> bool:
    numbers = all(isinstance(n, int) for v in arrays for n in v.shape)
    return numbers and len(arrays) <= _MOST and _slot() is not None


def _table(inputs: Sequence[Var]) -> np.ndarray[Any, Any]:
    words: list[int] = [0] * _HEAD
    words[_INPUTS], words[_ARRAY], words[_NDARRAY] = len(inputs), id(Array), id(np.ndarray)
    words[_NONE] = id(None)
    for v in inputs:
        words += [id(v.dtype), len(v.shape), *v.shape]
    return np.asarray(words, np.int64)


@functools.cache
def _slot() -> int | None:
    """Where in an Array its buffer stands; None where objects are not as is assumed here."""
    if not readable():
        return None
    mark = np.zeros(1)
    probe = wrap(mark)
    words = range(0, Array.__basicsize__, 8)
    at = [k for k in words if ctypes.c_size_t.from_address(id(probe) + k).value == id(mark)]
    return at[0] if len(at) == 1 else None


# The code

_API = (
    "PyList_New", "PyList_SetItem", "PyTuple_New", "PyTuple_SetItem", "PyType_GenericAlloc",
    "Py_DecRef", "Py_IncRef",
)  # fmt: skip
_NEW_FROM_DESCR = 94  # in the table of NumPy's C API, which its ABI fixes


def _of_python(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def _of_numpy() -> int:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api = pointer(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    return ctypes.c_size_t.from_address(api + 8 * _NEW_FROM_DESCR).value


for _name in _API:
    offer(_name, functools.partial(_of_python, _name))
offer("PyArray_NewFromDescr", _of_numpy)


@functools.cache
def _code() -> Code:
    slot = _slot()
    assert slot is not None, "asked for where objects are as assumed"
    return assemble(_text(slot), opt=0).keep()  # every process waits for it


def _word(name: str, table: str, slot: int, kind: str = "i64") -> str:
    return (
        f"  %{name}.at = getelementptr i64, ptr {table}, i64 {slot}\n"
        f"  %{name} = load {kind}, ptr %{name}.at"
    )


def _field(name: str, of: str, offset: int, kind: str = "i64") -> str:
    return (
        f"  %{name}.at = getelementptr i8, ptr {of}, i64 {offset}\n"
        f"  %{name} = load {kind}, ptr %{name}.at"
    )


def _text(slot: int) -> str:
    type_at = DATA - 8
    return f"""
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)

; Whether the arguments are what the table says; their buffers.
define internal i1 @fits(ptr %table, ptr %args, i64 %count, ptr %buffers) {{
entry:
{_word("inputs", "%table", _INPUTS)}
{_word("array.type", "%table", _ARRAY, "ptr")}
{_word("ndarray.type", "%table", _NDARRAY, "ptr")}
  %first = getelementptr i64, ptr %table, i64 {_HEAD}
  %right = icmp eq i64 %count, %inputs
  br i1 %right, label %next, label %no
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %good ]
  %spec = phi ptr [ %first, %entry ], [ %spec.next, %good ]
  %done = icmp eq i64 %k, %inputs
  br i1 %done, label %yes, label %look
look:
  %arg.at = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %arg.at
{_field("type", "%arg", type_at, "ptr")}
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %array, label %no
array:
{_field("buffer", "%arg", slot, "ptr")}
  %gone = icmp eq ptr %buffer, null
  br i1 %gone, label %no, label %held
held:
{_field("buffer.type", "%buffer", type_at, "ptr")}
  %is.ndarray = icmp eq ptr %buffer.type, %ndarray.type
  br i1 %is.ndarray, label %ndarray, label %no
ndarray:
{_word("wanted", "%spec", 0)}
{_field("dtype", "%buffer", _DTYPE)}
  %same.dtype = icmp eq i64 %dtype, %wanted
{_word("axes", "%spec", 1)}
{_field("rank", "%buffer", _RANK, "i32")}
  %rank.wide = sext i32 %rank to i64
  %same.rank = icmp eq i64 %rank.wide, %axes
{_field("flags", "%buffer", FLAGS, "i32")}
  %masked = and i32 %flags, {DENSE}
  %dense = icmp eq i32 %masked, {DENSE}
  %both = and i1 %same.dtype, %same.rank
  %all = and i1 %both, %dense
{_field("shape", "%buffer", _SHAPE, "ptr")}
  %lengths = getelementptr i64, ptr %spec, i64 2
  br i1 %all, label %axis, label %no
axis:
  %d = phi i64 [ 0, %ndarray ], [ %d.next, %length ]
  %last = icmp eq i64 %d, %axes
  br i1 %last, label %good, label %length
length:
  %ours.at = getelementptr i64, ptr %lengths, i64 %d
  %ours = load i64, ptr %ours.at
  %theirs.at = getelementptr i64, ptr %shape, i64 %d
  %theirs = load i64, ptr %theirs.at
  %same = icmp eq i64 %ours, %theirs
  %d.next = add i64 %d, 1
  br i1 %same, label %axis, label %no
good:
  %place = getelementptr ptr, ptr %buffers, i64 %k
  store ptr %buffer, ptr %place
  %k.next = add i64 %k, 1
  %spec.next = getelementptr i64, ptr %lengths, i64 %axes
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}}

define ptr @unwrap(ptr %holder, ptr %args, i64 %count) {{
entry:
{_field("table", "%holder", DATA, "ptr")}
  %buffers = alloca ptr, i64 %count
  %fits = call i1 @fits(ptr %table, ptr %args, i64 %count, ptr %buffers)
  br i1 %fits, label %make, label %none
make:
  %tuple = call ptr @PyTuple_New(i64 %count)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %give, label %next
next:
  %k = phi i64 [ 0, %make ], [ %k.next, %put ]
  %done = icmp eq i64 %k, %count
  br i1 %done, label %give, label %put
put:
  %place = getelementptr ptr, ptr %buffers, i64 %k
  %buffer = load ptr, ptr %place
  call void @Py_IncRef(ptr %buffer)
  %ignored = call i32 @PyTuple_SetItem(ptr %tuple, i64 %k, ptr %buffer)
  %k.next = add i64 %k, 1
  br label %next
give:
  ret ptr %tuple
none:
{_word("nothing", "%table", _NONE, "ptr")}
  call void @Py_IncRef(ptr %nothing)
  ret ptr %nothing
}}

; A buffer for a result: an input that nobody else holds, a spare one, or a new one.
define internal ptr @buffer(ptr %table, ptr %spec, ptr %buffers) {{
entry:
{_word("dtype", "%spec", 0, "ptr")}
{_word("input", "%spec", 3)}
{_word("spares", "%spec", 4 + _SPARE)}
  %donated = icmp sge i64 %input, 0
  br i1 %donated, label %look, label %next
look:
  %input.at2 = getelementptr ptr, ptr %buffers, i64 %input
  %given = load ptr, ptr %input.at2
{_field("given.count", "%given", 0)}
{_field("given.base", "%given", _BASE, "ptr")}
{_field("given.flags", "%given", FLAGS, "i32")}
  %alone = icmp eq i64 %given.count, 1
  %whole = icmp eq ptr %given.base, null
  %masked = and i32 %given.flags, {_OWN}
  %owned = icmp eq i32 %masked, {_OWN}
  %ours = and i1 %alone, %whole
  %free = and i1 %ours, %owned
  br i1 %free, label %take.given, label %next
take.given:
  call void @Py_IncRef(ptr %given)
  ret ptr %given
next:
  %k = phi i64 [ 0, %entry ], [ 0, %look ], [ %k.next, %spare ]
  %more = icmp slt i64 %k, %spares
  br i1 %more, label %spare, label %new
spare:
  %offset = add i64 %k, 4
  %spare.at = getelementptr ptr, ptr %spec, i64 %offset
  %kept = load ptr, ptr %spare.at
{_field("kept.count", "%kept", 0)}
  %unused = icmp eq i64 %kept.count, 1
  %k.next = add i64 %k, 1
  br i1 %unused, label %take.kept, label %next
take.kept:
  call void @Py_IncRef(ptr %kept)
  ret ptr %kept
new:
{_word("rank", "%spec", 1)}
{_word("shape", "%spec", 2, "ptr")}
{_word("ndarray", "%table", _NDARRAY, "ptr")}
  %axes = trunc i64 %rank to i32
  call void @Py_IncRef(ptr %dtype)
  %made = call ptr @PyArray_NewFromDescr(
    ptr %ndarray, ptr %dtype, i32 %axes, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  ret ptr %made
}}

; The buffers are here as long as the program runs, whatever other threads do to their Arrays.
define internal void @hold(ptr %buffers, i64 %count) {{
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %take ]
  %done = icmp eq i64 %k, %count
  br i1 %done, label %all, label %take
take:
  %place = getelementptr ptr, ptr %buffers, i64 %k
  %buffer = load ptr, ptr %place
  call void @Py_IncRef(ptr %buffer)
  %k.next = add i64 %k, 1
  br label %next
all:
  ret void
}}

define internal void @release(ptr %buffers, i64 %count) {{
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %drop ]
  %done = icmp eq i64 %k, %count
  br i1 %done, label %all, label %drop
drop:
  %place = getelementptr ptr, ptr %buffers, i64 %k
  %buffer = load ptr, ptr %place
  call void @Py_DecRef(ptr %buffer)
  %k.next = add i64 %k, 1
  br label %next
all:
  ret void
}}

define ptr @serve(ptr %holder, ptr %args, i64 %count) {{
entry:
{_field("table", "%holder", DATA, "ptr")}
{_word("results", "%table", _RESULTS)}
  %some = add i64 %count, %results
  %buffers = alloca ptr, i64 %some
  %fits = call i1 @fits(ptr %table, ptr %args, i64 %count, ptr %buffers)
  br i1 %fits, label %make, label %none
make:
{_word("specs.from", "%table", _SPECS_OUT)}
  %specs = getelementptr i64, ptr %table, i64 %specs.from
{_word("array.type", "%table", _ARRAY, "ptr")}
  %wrapped = alloca ptr, i64 %results
  br label %next
next:
  %r = phi i64 [ 0, %make ], [ %r.next, %wrap ]
  %done = icmp eq i64 %r, %results
  br i1 %done, label %space, label %result
result:
  %from = mul i64 %r, {_OUT}
  %spec = getelementptr i64, ptr %specs, i64 %from
  %buffer = call ptr @buffer(ptr %table, ptr %spec, ptr %buffers)
  %no.buffer = icmp eq ptr %buffer, null
  br i1 %no.buffer, label %undo, label %made
made:
  %array = call ptr @PyType_GenericAlloc(ptr %array.type, i64 0)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %undo.buffer, label %wrap
wrap:
  %slot = getelementptr i8, ptr %array, i64 {slot}
  store ptr %buffer, ptr %slot
  %wrapped.at = getelementptr ptr, ptr %wrapped, i64 %r
  store ptr %array, ptr %wrapped.at
  %buffer.number = add i64 %count, %r
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %buffer.number
  store ptr %buffer, ptr %buffer.at
  %r.next = add i64 %r, 1
  br label %next

space:
{_word("room", "%table", _ROOM, "ptr")}
{_word("bytes", "%table", _BYTES)}
  %kept = icmp ne ptr %room, null
  br i1 %kept, label %reserve, label %measure
reserve:
  store ptr null, ptr %room.at
  br label %arguments
measure:
  %small = icmp ule i64 %bytes, {_SMALL}
  br i1 %small, label %stack, label %heap
stack:
  %elements = alloca i8, i64 %bytes, align 64
  %object = alloca i8, i64 {FLAGS + 8}, align 16
  %object.data = getelementptr i8, ptr %object, i64 {DATA}
  store ptr %elements, ptr %object.data
  %object.flags = getelementptr i8, ptr %object, i64 {FLAGS}
  store i32 {DENSE}, ptr %object.flags
  br label %arguments
heap:
{_word("byte", "%table", _BYTE, "ptr")}
{_word("ndarray", "%table", _NDARRAY, "ptr")}
  call void @Py_IncRef(ptr %byte)
  %heap.room = call ptr @PyArray_NewFromDescr(
    ptr %ndarray, ptr %byte, i32 1, ptr %bytes.at, ptr null, ptr null, i32 0, ptr null)
  %no.room = icmp eq ptr %heap.room, null
  br i1 %no.room, label %undo, label %arguments

arguments:
  %work = phi ptr [ %room, %reserve ], [ %object, %stack ], [ %heap.room, %heap ]
  %own = phi ptr [ null, %reserve ], [ null, %stack ], [ %heap.room, %heap ]
{_word("given", "%table", _GIVEN)}
{_word("whence.from", "%table", _WHENCE)}
  %whence = getelementptr i64, ptr %table, i64 %whence.from
  %with.work = add i64 %given, 1
  %given.arrays = alloca ptr, i64 %with.work
  br label %argument
argument:
  %a = phi i64 [ 0, %arguments ], [ %a.next, %pass ]
  %a.done = icmp eq i64 %a, %given
  br i1 %a.done, label %run, label %pass
pass:
  %number.at = getelementptr i64, ptr %whence, i64 %a
  %number = load i64, ptr %number.at
  %source.at = getelementptr ptr, ptr %buffers, i64 %number
  %source = load ptr, ptr %source.at
  %given.at2 = getelementptr ptr, ptr %given.arrays, i64 %a
  store ptr %source, ptr %given.at2
  %a.next = add i64 %a, 1
  br label %argument
run:
  call void @hold(ptr %buffers, i64 %count)
  %work.at = getelementptr ptr, ptr %given.arrays, i64 %given
  store ptr %work, ptr %work.at
{_word("program", "%table", _PROGRAM, "ptr")}
{_word("walk", "%table", _WALK, "ptr")}
  %told = call ptr %walk(ptr %program, ptr %given.arrays, i64 %with.work)
  call void @Py_DecRef(ptr %told)
  call void @release(ptr %buffers, i64 %count)
  br i1 %kept, label %put.back, label %maybe.free
put.back:
  store ptr %room, ptr %room.at
  br label %answer
maybe.free:
  %freed = icmp ne ptr %own, null
  br i1 %freed, label %free, label %answer
free:
  call void @Py_DecRef(ptr %own)
  br label %answer

answer:
  %stopped = icmp eq ptr %told, null
  br i1 %stopped, label %undo, label %count.it
count.it:
{_word("calls", "%table", _CALLS)}
  %calls.next = add i64 %calls, 1
  store i64 %calls.next, ptr %calls.at
{_word("single", "%table", _SINGLE)}
  %is.single = icmp ne i64 %single, 0
  br i1 %is.single, label %one, label %many
one:
  %only = load ptr, ptr %wrapped
  ret ptr %only
many:
  %list = call ptr @PyList_New(i64 %results)
  %no.list = icmp eq ptr %list, null
  br i1 %no.list, label %undo, label %element
element:
  %e = phi i64 [ 0, %many ], [ %e.next, %put ]
  %e.done = icmp eq i64 %e, %results
  br i1 %e.done, label %listed, label %put
put:
  %element.at = getelementptr ptr, ptr %wrapped, i64 %e
  %element.array = load ptr, ptr %element.at
  %ignored = call i32 @PyList_SetItem(ptr %list, i64 %e, ptr %element.array)
  %e.next = add i64 %e, 1
  br label %element
listed:
  ret ptr %list

undo.buffer:
  call void @Py_DecRef(ptr %buffer)
  br label %undo
undo:
  %made.so.far = phi i64 [ %r, %result ], [ %r, %undo.buffer ], [ %results, %heap ],
                         [ %results, %many ], [ %results, %answer ]
  br label %drop
drop:
  %m = phi i64 [ 0, %undo ], [ %m.next, %dropping ]
  %dropped = icmp eq i64 %m, %made.so.far
  br i1 %dropped, label %fail, label %dropping
dropping:
  %drop.at = getelementptr ptr, ptr %wrapped, i64 %m
  %drop.array = load ptr, ptr %drop.at
  call void @Py_DecRef(ptr %drop.array)
  %m.next = add i64 %m, 1
  br label %drop
fail:
  ret ptr null
none:
{_word("nothing", "%table", _NONE, "ptr")}
  call void @Py_IncRef(ptr %nothing)
  ret ptr %nothing
}}
"""
