"""Calls of machine code by the types of their arguments: one builtin finds the code and runs it.

`Entries` looks at the types of what it is handed, finds the code that was made for these, puts
numbers and addresses of elements into a frame, and calls it.

    entries = Entries("running", 3, miss)     # miss(*args): what happens where no code fits
    entries.add([np.dtype("f8"), int, "add"], address)     # i64 code(ptr frame), a word a parameter
    entries.call(x, 1000, "add")              # 0.1 µs

Text from `funct.kernels.llvm` takes part in the same way: give its function one argument, the
frame, and name for each of its words a dtype (the word is the elements' address) or `int`.

With `result` the call makes the array that the code writes, and gives that:

    entries = Entries("negative", 1, miss, result=(0, 0))     # of the shape and dtype of argument 0
    entries.add([np.dtype("f8")], address)                    # the frame: x, the result, its size
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from funct.kernels.cpu.calls import (
    ALIGNED,
    DATA,
    DENSE,
    DTYPE,
    FLAGS,
    KEEP_ORDER,
    RANK,
    REAL,
    SHAPE,
    STRIDES,
    TYPE,
    builtin,
    code_of,
    field,
    word,
)
from funct.kernels.cpu.passages import unlocked

__all__ = ["Entries"]

_ALIKE, _FLAT = 2, 3  # how a result is made
_LONG = 1 << 13  # elements from which on other Python threads may run meanwhile
_MOST = 32  # parameters
# Words of a table
_SPECS, _COUNT, _MISS, _ARRAY, _INT, _FLOAT, _RESULT, _SHAPE_OF, _DTYPE_OF, _FIRST = range(10)
# Kinds of parameters: arrays that lie as they must, numbers, what is itself, arrays to be copied
_ARRAYS, _NUMBERS, _STATIC, _COPIED = 0, {id(int): 1, id(float): 2}, 3, 4


class Entries:
    """Code for calls of one function with arguments of several kinds.

    call: the builtin; `add` makes a new one where the table has grown. Arrays must be dense, if
    nothing is said of copies, and of the very dtype that was named, static arguments the very
    object: all else is a miss, and the call is `miss(*args)`. The interpreter's lock is let go of
    where arrays are large.

    result: the numbers of the arguments that have the shape of a new array (an int is the length
    of one axis) and its dtype. The frame then goes on with its address and how many elements it
    has; the call gives it if the code answers 0, and is a miss if not. alike: all arguments are
    arrays, and those of several shapes are a miss. flat: so they are, the result is like the first
    one, and each of its elements is made of those at its place: all may lie in another order, if
    they lie in one.
    """

    def __init__(
        self, name: str, count: int, miss: Callable[..., Any],
        result: tuple[int, int] | None = None, alike: bool = False, flat: bool = False,
    ) -> None:  # fmt: skip
        assert count + 2 <= _MOST, name
        self._name = name
        self._kept: list[object] = [miss]
        head = [0, count, *map(id, (miss, np.ndarray, int, float))]
        head += [0, 0, 0] if result is None else [_FLAT if flat else 1 + alike, *result]
        self._table = np.asarray(head, np.int64)
        self._publish()

    def add(
        self, parameters: Sequence[Any], address: int, code: object = None,
        copied: Container[int] = (),
    ) -> None:  # fmt: skip
        """Let `i64 code(ptr frame)` answer calls with such arguments.

        parameters: a dtype for an array, `int`, `float`, or else the static argument itself. code:
        what is kept while this is. copied: the numbers of arrays of which a copy will do.
        """
        self._kept += [code, *parameters]
        words = [address]
        for k, p in enumerate(parameters):
            array = _COPIED if k in copied else _ARRAYS
            kind = array if isinstance(p, np.dtype) else _NUMBERS.get(id(p), _STATIC)
            words += [kind, id(p)]
        self._table = np.concatenate((self._table, np.asarray(words, np.int64)))
        self._table[_SPECS] += 1
        self._publish()

    def _publish(self) -> None:
        self.call = builtin(self._name, code_of(_TEXT).address("call"), self._table, self)


_TEXT = f"""
define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
  %frame = alloca [{_MOST} x i64]
  %dense.args = alloca [{_MOST} x ptr]
  %copying = alloca i1
  %data = getelementptr i8, ptr %holder, i64 {DATA}
  %table = load ptr, ptr %data
  %specs = load i64, ptr %table
  %array.at = getelementptr i64, ptr %table, i64 {_ARRAY}
  %array.type = load ptr, ptr %array.at
  %int.at = getelementptr i64, ptr %table, i64 {_INT}
  %int.type = load ptr, ptr %int.at
  %float.at = getelementptr i64, ptr %table, i64 {_FLOAT}
  %float.type = load ptr, ptr %float.at
  %first = getelementptr i64, ptr %table, i64 {_FIRST}
  %parameters.at = getelementptr i64, ptr %table, i64 {_COUNT}
  %parameters = load i64, ptr %parameters.at
  %pairs = shl i64 %parameters, 1
  %length = add i64 %pairs, 1
{word("compares", "%table", _RESULT)}
  %alike = icmp uge i64 %compares, {_ALIKE}
  %flat = icmp eq i64 %compares, {_FLAT}
  %turned = alloca i1
  %right = icmp eq i64 %count, %parameters
  br i1 %right, label %try, label %miss

try:
  %s = phi i64 [ 0, %entry ], [ %s.next, %other ]
  %spec = phi ptr [ %first, %entry ], [ %spec.next, %other ]
  store i1 false, ptr %copying
  store i1 false, ptr %turned
  %more = icmp ult i64 %s, %specs
  br i1 %more, label %parameter, label %miss
other:
  %s.next = add i64 %s, 1
  %spec.next = getelementptr i64, ptr %spec, i64 %length
  br label %try

parameter:
  %k = phi i64 [ 0, %try ], [ %k.next, %fits ]
  %work = phi i64 [ 0, %try ], [ %work.next, %fits ]
  %all = icmp eq i64 %k, %parameters
  br i1 %all, label %found, label %look
look:
  %k2 = shl i64 %k, 1
  %kind.at = getelementptr i64, ptr %spec, i64 %k2
  %kind.place = getelementptr i64, ptr %kind.at, i64 1
  %kind = load i64, ptr %kind.place
  %wanted.place = getelementptr i64, ptr %kind.at, i64 2
  %wanted = load ptr, ptr %wanted.place
  %arg.place = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %arg.place
  %type.place = getelementptr i8, ptr %arg, i64 {TYPE}
  %type = load ptr, ptr %type.place
  %word = getelementptr i64, ptr %frame, i64 %k
  switch i64 %kind, label %static [
    i64 {_ARRAYS}, label %array i64 1, label %int i64 2, label %float i64 {_COPIED}, label %array
  ]
static:
  %same = icmp eq ptr %arg, %wanted
  br i1 %same, label %fits, label %other
int:
  %is.int = icmp eq ptr %type, %int.type
  br i1 %is.int, label %convert, label %other
convert:
  %number = call i64 @PyLong_AsLongLong(ptr %arg)
  store i64 %number, ptr %word
  %odd = icmp eq i64 %number, -1
  br i1 %odd, label %suspect, label %fits
suspect:
  %error = call ptr @PyErr_Occurred()
  %good = icmp eq ptr %error, null
  br i1 %good, label %fits, label %failed
failed:
  ret ptr null
float:
  %is.float = icmp eq ptr %type, %float.type
  br i1 %is.float, label %real, label %other
real:
  %real.place = getelementptr i8, ptr %arg, i64 {REAL}
  %real.number = load i64, ptr %real.place
  store i64 %real.number, ptr %word
  br label %fits
array:
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %described, label %other
described:
  %dtype.place = getelementptr i8, ptr %arg, i64 {DTYPE}
  %dtype = load ptr, ptr %dtype.place
  %known = icmp eq ptr %dtype, %wanted
  br i1 %known, label %laid, label %other
laid:
  %flags.place = getelementptr i8, ptr %arg, i64 {FLAGS}
  %flags = load i32, ptr %flags.place
  %masked = and i32 %flags, {DENSE}
  %dense = icmp eq i32 %masked, {DENSE}
  br i1 %dense, label %measure, label %other.order
other.order:
  %flag.aligned = and i32 %flags, {ALIGNED}
  %aligned = icmp ne i32 %flag.aligned, 0
  %may.turn = and i1 %flat, %aligned
  store i1 %may.turn, ptr %turned
  br i1 %may.turn, label %measure, label %loose
loose:
  %copies = icmp eq i64 %kind, {_COPIED}
  store i1 true, ptr %copying
  br i1 %copies, label %measure, label %other
measure:
  %elements.place = getelementptr i8, ptr %arg, i64 {DATA}
  %elements = load ptr, ptr %elements.place
  store ptr %elements, ptr %word
  %rank.place = getelementptr i8, ptr %arg, i64 {RANK}
  %rank = load i32, ptr %rank.place
  %shape.place = getelementptr i8, ptr %arg, i64 {SHAPE}
  %shape = load ptr, ptr %shape.place
  br label %axis
axis:
  %d = phi i32 [ 0, %measure ], [ %d.next, %times ]
  %size = phi i64 [ 1, %measure ], [ %size.next, %times ]
  %axes = icmp slt i32 %d, %rank
  br i1 %axes, label %times, label %add
times:
  %d.wide = zext i32 %d to i64
  %n.place = getelementptr i64, ptr %shape, i64 %d.wide
  %n = load i64, ptr %n.place
  %size.next = mul i64 %size, %n
  %d.next = add i32 %d, 1
  br label %axis
add:
  %sum = add i64 %work, %size
  br i1 %alike, label %compare, label %fits
compare:
  %one = load ptr, ptr %args
{field("one.rank", "%one", RANK, "i32")}
{field("one.shape", "%one", SHAPE, "ptr")}
  %same.rank = icmp eq i32 %rank, %one.rank
  br i1 %same.rank, label %same.axis, label %other
same.axis:
  %c = phi i32 [ 0, %compare ], [ %c.next, %lengths ]
  %compared = icmp eq i32 %c, %rank
  br i1 %compared, label %order, label %lengths
lengths:
  %c.wide = zext i32 %c to i64
  %one.n.at = getelementptr i64, ptr %one.shape, i64 %c.wide
  %this.n.at = getelementptr i64, ptr %shape, i64 %c.wide
  %one.n = load i64, ptr %one.n.at
  %this.n = load i64, ptr %this.n.at
  %c.next = add i32 %c, 1
  %same.n = icmp eq i64 %one.n, %this.n
  br i1 %same.n, label %same.axis, label %other
order:
  %some.turned = load i1, ptr %turned
  br i1 %some.turned, label %strides, label %fits
strides:
{field("one.strides", "%one", STRIDES, "ptr")}
{field("this.strides", "%arg", STRIDES, "ptr")}
  %axes.wide = zext i32 %rank to i64
  %stride.bytes = shl i64 %axes.wide, 3
  %orders = call i32 @memcmp(ptr %one.strides, ptr %this.strides, i64 %stride.bytes)
  %one.order = icmp eq i32 %orders, 0
  br i1 %one.order, label %fits, label %other
fits:
  %work.next = phi i64 [ %work, %static ], [ %work, %convert ], [ %work, %suspect ],
                       [ %work, %real ], [ %sum, %add ], [ %sum, %order ], [ %sum, %strides ]
  %k.next = add i64 %k, 1
  br label %parameter

found:
  %loosely = load i1, ptr %copying
  br i1 %loosely, label %each, label %certain
each:  ; the same call with copies of what is not dense
  %q = phi i64 [ 0, %found ], [ %q.next, %put ]
  %all.held = icmp eq i64 %q, %parameters
  br i1 %all.held, label %again, label %given.one
given.one:
  %q2 = shl i64 %q, 1
  %q.kind.at = getelementptr i64, ptr %spec, i64 %q2
  %q.kind.place = getelementptr i64, ptr %q.kind.at, i64 1
  %q.kind = load i64, ptr %q.kind.place
  %q.arg.place = getelementptr ptr, ptr %args, i64 %q
  %q.arg = load ptr, ptr %q.arg.place
  %may.copy = icmp eq i64 %q.kind, {_COPIED}
  br i1 %may.copy, label %lies, label %hold
lies:
{field("q.flags", "%q.arg", FLAGS, "i32")}
  %q.masked = and i32 %q.flags, {DENSE}
  %q.dense = icmp eq i32 %q.masked, {DENSE}
  br i1 %q.dense, label %hold, label %copy
hold:
  call void @Py_IncRef(ptr %q.arg)
  br label %put
copy:
  %copied = call ptr @PyArray_NewCopy(ptr %q.arg, i32 0)
  %no.copy = icmp eq ptr %copied, null
  br i1 %no.copy, label %undo, label %put
put:
  %held = phi ptr [ %q.arg, %hold ], [ %copied, %copy ]
  %held.place = getelementptr ptr, ptr %dense.args, i64 %q
  store ptr %held, ptr %held.place
  %q.next = add i64 %q, 1
  br label %each
again:
  %answered = call ptr @call(ptr %holder, ptr %dense.args, i64 %count)
  br label %undo
undo:
  %outcome = phi ptr [ null, %copy ], [ %answered, %again ]
  br label %drop.next
drop.next:
  %u = phi i64 [ 0, %undo ], [ %u.next, %drop.one ]
  %none.left = icmp eq i64 %u, %q
  br i1 %none.left, label %leave, label %drop.one
drop.one:
  %u.place = getelementptr ptr, ptr %dense.args, i64 %u
  %u.held = load ptr, ptr %u.place
  call void @Py_DecRef(ptr %u.held)
  %u.next = add i64 %u, 1
  br label %drop.next
leave:
  ret ptr %outcome
certain:
  %code = load ptr, ptr %spec
{word("makes", "%table", _RESULT)}
  %old = icmp eq i64 %makes, 0
  br i1 %old, label %run, label %other.new
other.new:
  %any.turned = load i1, ptr %turned
  br i1 %any.turned, label %in.order, label %new
in.order:  ; whose strides say whether elements lie side by side
  %model = load ptr, ptr %args
  %y.turned = call ptr @PyArray_NewLikeArray(ptr %model, i32 {KEEP_ORDER}, ptr null, i32 0)
  %no.space = icmp eq ptr %y.turned, null
  br i1 %no.space, label %failed, label %model.order
model.order:
{field("model.rank", "%model", RANK, "i32")}
{field("model.shape", "%model", SHAPE, "ptr")}
{field("model.strides", "%model", STRIDES, "ptr")}
{field("y.strides", "%y.turned", STRIDES, "ptr")}
  %model.axes = zext i32 %model.rank to i64
  %model.bytes = shl i64 %model.axes, 3
  %model.differs = call i32 @memcmp(ptr %model.strides, ptr %y.strides, i64 %model.bytes)
  %side.by.side = icmp eq i32 %model.differs, 0
  br i1 %side.by.side, label %placed, label %gaps
gaps:
  call void @Py_DecRef(ptr %y.turned)
  br label %miss
new:
{word("shape.of", "%table", _SHAPE_OF)}
{word("dtype.of", "%table", _DTYPE_OF)}
  %like.place = getelementptr ptr, ptr %args, i64 %shape.of
  %like = load ptr, ptr %like.place
{field("like.type", "%like", TYPE, "ptr")}
  %length.place = getelementptr i64, ptr %frame, i64 %shape.of
  %like.array = icmp eq ptr %like.type, %array.type
  br i1 %like.array, label %shaped, label %made
shaped:
{field("like.rank", "%like", RANK, "i32")}
{field("like.shape", "%like", SHAPE, "ptr")}
  br label %made
made:
  %new.rank = phi i32 [ 1, %new ], [ %like.rank, %shaped ]
  %new.shape = phi ptr [ %length.place, %new ], [ %like.shape, %shaped ]
  %of.place = getelementptr ptr, ptr %args, i64 %dtype.of
  %of = load ptr, ptr %of.place
{field("new.dtype", "%of", DTYPE, "ptr")}
  call void @Py_IncRef(ptr %new.dtype)
  %y = call ptr @PyArray_NewFromDescr(ptr %array.type, ptr %new.dtype, i32 %new.rank,
                                      ptr %new.shape, ptr null, ptr null, i32 0, ptr null)
  %no.room = icmp eq ptr %y, null
  br i1 %no.room, label %failed, label %placed
placed:
  %y.new = phi ptr [ %y, %made ], [ %y.turned, %model.order ]
  %y.rank = phi i32 [ %new.rank, %made ], [ %model.rank, %model.order ]
  %y.shape = phi ptr [ %new.shape, %made ], [ %model.shape, %model.order ]
{field("y.data", "%y.new", DATA, "ptr")}
  %y.word = getelementptr i64, ptr %frame, i64 %parameters
  store ptr %y.data, ptr %y.word
  %y.size = call i64 @PyArray_MultiplyList(ptr %y.shape, i32 %y.rank)
  %size.word = getelementptr i64, ptr %y.word, i64 1
  store i64 %y.size, ptr %size.word
  br label %run
run:
  %result = phi ptr [ null, %certain ], [ %y.new, %placed ]
  %long = icmp uge i64 %work, {_LONG}
{unlocked("call i64 %code(ptr %frame)", "%long", "i64")}
  br i1 %old, label %tell, label %judge
tell:
  %object = call ptr @PyLong_FromLongLong(i64 %answer)
  ret ptr %object
judge:
  %done = icmp eq i64 %answer, 0
  br i1 %done, label %array.given, label %drop
array.given:
  ret ptr %result
drop:
  call void @Py_DecRef(ptr %result)
  br label %miss

miss:
  %miss.at = getelementptr i64, ptr %table, i64 {_MISS}
  %function = load ptr, ptr %miss.at
  %told = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %count, ptr null)
  ret ptr %told
}}
"""
