"""The LLVM text of the builtin that takes lists of arrays through a pass of `updates.py`.

To look at an array from Python, to make one and to say where it is takes longer than an
optimizer's step on all elements of a small model.
"""

from __future__ import annotations

from funct.kernels.cpu.calls import DATA, DENSE, DTYPE, FLAGS, RANK, SHAPE, TYPE, field, word
from funct.kernels.cpu.outside import declared

__all__ = ["pass_text"]

# Words of the table: classes, the dtype, how many operands and results, what runs the tasks one
# after the other and what runs them on all threads, from how many elements on it does so, and from
# how many on results do not stay in the caches.
_LIST, _NDARRAY, _DTYPE, _NONE, _OPERANDS, _RESULTS, _ALONE, _TOGETHER, _MANY, _STREAMED = range(10)


def pass_text(chunk: int) -> str:
    """`call(*columns, numbers)`: lists of new arrays, and the sum that the tasks leave; None unless
    each column has as many arrays as the first, of its shapes, dense and of the dtype.

    chunk: elements of a task.
    """
    return declared(f"""
; Whether x is an array that lies as the pass wants it, of the shape of `like`.
define internal i1 @fits(ptr %table, ptr %x, ptr %like) {{
entry:
{word("ndarray", "%table", _NDARRAY, "ptr")}
{field("type", "%x", TYPE, "ptr")}
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %array, label %no
array:
{word("dtype", "%table", _DTYPE, "ptr")}
{field("own", "%x", DTYPE, "ptr")}
{field("flags", "%x", FLAGS, "i32")}
{field("rank", "%x", RANK, "i32")}
{field("like.rank", "%like", RANK, "i32")}
{field("shape", "%x", SHAPE, "ptr")}
{field("like.shape", "%like", SHAPE, "ptr")}
  %known = icmp eq ptr %own, %dtype
  %masked = and i32 %flags, {DENSE}
  %dense = icmp eq i32 %masked, {DENSE}
  %axes = icmp eq i32 %rank, %like.rank
  %good = and i1 %known, %dense
  %begun = and i1 %good, %axes
  %count = zext i32 %rank to i64
  br i1 %begun, label %axis, label %no
axis:
  %k = phi i64 [ 0, %array ], [ %k.next, %length ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %yes, label %length
length:
  %n.at = getelementptr i64, ptr %shape, i64 %k
  %n = load i64, ptr %n.at
  %m.at = getelementptr i64, ptr %like.shape, i64 %k
  %m = load i64, ptr %m.at
  %k.next = add i64 %k, 1
  %same = icmp eq i64 %n, %m
  br i1 %same, label %axis, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

define internal i64 @size(ptr %x) {{
{field("rank", "%x", RANK, "i32")}
{field("shape", "%x", SHAPE, "ptr")}
  %n = call i64 @PyArray_MultiplyList(ptr %shape, i32 %rank)
  ret i64 %n
}}

; Whether each list has as many arrays as the first, which fit.
define internal i1 @known(ptr %table, ptr %args) {{
entry:
{word("list", "%table", _LIST, "ptr")}
{word("operands", "%table", _OPERANDS)}
  br label %column
column:
  %c = phi i64 [ 0, %entry ], [ %c.next, %leaf ]
  %all = icmp eq i64 %c, %operands
  br i1 %all, label %yes, label %look
look:
  %c.next = add i64 %c, 1
  %given.at = getelementptr ptr, ptr %args, i64 %c
  %given = load ptr, ptr %given.at
{field("type", "%given", TYPE, "ptr")}
  %is.list = icmp eq ptr %type, %list
  br i1 %is.list, label %counted, label %no
counted:
  %first = load ptr, ptr %args
  %many = call i64 @PyList_Size(ptr %first)
  %own = call i64 @PyList_Size(ptr %given)
  %alike = icmp eq i64 %many, %own
  br i1 %alike, label %leaf, label %no
leaf:
  %k = phi i64 [ 0, %counted ], [ %k.next, %array ]
  %last = icmp eq i64 %k, %many
  br i1 %last, label %column, label %array
array:
  %k.next = add i64 %k, 1
  %like = call ptr @PyList_GetItem(ptr %first, i64 %k)
  %x = call ptr @PyList_GetItem(ptr %given, i64 %k)
  %fits = call i1 @fits(ptr %table, ptr %x, ptr %like)
  br i1 %fits, label %leaf, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

; A list of new arrays, like those of the first one.
define internal ptr @new(ptr %table, ptr %first, i64 %many) {{
entry:
{word("ndarray", "%table", _NDARRAY, "ptr")}
{word("dtype", "%table", _DTYPE, "ptr")}
  %made = call ptr @PyList_New(i64 %many)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %no, label %leaf
leaf:
  %k = phi i64 [ 0, %entry ], [ %k.next, %put ]
  %all = icmp eq i64 %k, %many
  br i1 %all, label %yes, label %array
array:
  %k.next = add i64 %k, 1
  %like = call ptr @PyList_GetItem(ptr %first, i64 %k)
{field("rank", "%like", RANK, "i32")}
{field("shape", "%like", SHAPE, "ptr")}
  call void @Py_IncRef(ptr %dtype)
  %x = call ptr @PyArray_NewFromDescr(ptr %ndarray, ptr %dtype, i32 %rank, ptr %shape, ptr null,
                                      ptr null, i32 0, ptr null)
  %no.room = icmp eq ptr %x, null
  br i1 %no.room, label %drop, label %put
put:
  %done = call i32 @PyList_SetItem(ptr %made, i64 %k, ptr %x)
  br label %leaf
drop:
  call void @Py_DecRef(ptr %made)
  br label %no
yes:
  ret ptr %made
no:
  ret ptr null
}}

; The objects of a list, to a place.
define internal void @lay(ptr %list, i64 %many, ptr %to) {{
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %put ]
  %all = icmp eq i64 %k, %many
  br i1 %all, label %end, label %put
put:
  %x = call ptr @PyList_GetItem(ptr %list, i64 %k)
  %at = getelementptr ptr, ptr %to, i64 %k
  store ptr %x, ptr %at
  %k.next = add i64 %k, 1
  br label %next
end:
  ret void
}}

; How many tasks the arrays of a list are, and their rows, if there is a place for them.
define internal i64 @tasks(ptr %list, i64 %many, ptr %rows) {{
entry:
  %wanted = icmp ne ptr %rows, null
  br label %leaf
leaf:
  %k = phi i64 [ 0, %entry ], [ %k.next, %task ]
  %count = phi i64 [ 0, %entry ], [ %held, %task ]
  %all = icmp eq i64 %k, %many
  br i1 %all, label %end, label %array
array:
  %k.next = add i64 %k, 1
  %x = call ptr @PyList_GetItem(ptr %list, i64 %k)
  %n = call i64 @size(ptr %x)
  br label %task
task:
  %start = phi i64 [ 0, %array ], [ %start.next, %counted ]
  %held = phi i64 [ %count, %array ], [ %held.next, %counted ]
  %some = icmp slt i64 %start, %n
  br i1 %some, label %row, label %leaf
row:
  br i1 %wanted, label %write, label %counted
write:
  %first = mul i64 %held, 3
  %leaf.at = getelementptr i64, ptr %rows, i64 %first
  %start.at = getelementptr i64, ptr %leaf.at, i64 1
  %count.at = getelementptr i64, ptr %leaf.at, i64 2
  %left = sub i64 %n, %start
  %whole = icmp slt i64 {chunk}, %left
  %length = select i1 %whole, i64 {chunk}, i64 %left
  store i64 %k, ptr %leaf.at
  store i64 %start, ptr %start.at
  store i64 %length, ptr %count.at
  br label %counted
counted:
  %start.next = add i64 %start, {chunk}
  %held.next = add i64 %held, 1
  br label %task
end:
  ret i64 %count
}}

define internal i64 @elements(ptr %list, i64 %many) {{
entry:
  br label %leaf
leaf:
  %k = phi i64 [ 0, %entry ], [ %k.next, %add ]
  %total = phi i64 [ 0, %entry ], [ %total.next, %add ]
  %all = icmp eq i64 %k, %many
  br i1 %all, label %end, label %add
add:
  %x = call ptr @PyList_GetItem(ptr %list, i64 %k)
  %n = call i64 @size(ptr %x)
  %total.next = add i64 %total, %n
  %k.next = add i64 %k, 1
  br label %leaf
end:
  ret i64 %total
}}

; What the tasks leave.
define internal double @run(ptr %table, ptr %data, i64 %elements) {{
entry:
{word("alone", "%table", _ALONE, "ptr")}
{word("together", "%table", _TOGETHER, "ptr")}
{word("many", "%table", _MANY)}
  %few = icmp slt i64 %elements, %many
  br i1 %few, label %locked, label %free
locked:
  %soon = call double %alone(ptr %data)
  ret double %soon
free:
  %state = call ptr @PyEval_SaveThread()
  %late = call double %together(ptr %data)
  call void @PyEval_RestoreThread(ptr %state)
  ret double %late
}}

define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
  %data = alloca [7 x i64]
{field("table", "%holder", DATA, "ptr")}
{word("operands", "%table", _OPERANDS)}
{word("results", "%table", _RESULTS)}
  %known = call i1 @known(ptr %table, ptr %args)
  br i1 %known, label %begin, label %miss
miss:
{word("none", "%table", _NONE, "ptr")}
  call void @Py_IncRef(ptr %none)
  ret ptr %none
begin:
  %first = load ptr, ptr %args
  %many = call i64 @PyList_Size(ptr %first)
  %elements = call i64 @elements(ptr %first, i64 %many)
  %tasks = call i64 @tasks(ptr %first, i64 %many, ptr null)
  %columns = add i64 %operands, %results
  %objects.words = mul i64 %columns, %many
  %tasks.words = shl i64 %tasks, 2
  %words = add i64 %objects.words, %tasks.words
  %bytes = shl i64 %words, 3
  %room = call ptr @PyMem_RawMalloc(i64 %bytes)
  %no.room = icmp eq ptr %room, null
  br i1 %no.room, label %memory, label %roomy
memory:
  %told = call ptr @PyErr_NoMemory()
  ret ptr null
roomy:
  %rows = getelementptr ptr, ptr %room, i64 %objects.words
  %rows.words = mul i64 %tasks, 3
  %parts = getelementptr i64, ptr %rows, i64 %rows.words
  %filled = call i64 @tasks(ptr %first, i64 %many, ptr %rows)
  %answers = add i64 %results, 1
  %answer = call ptr @PyTuple_New(i64 %answers)
  %no.answer = icmp eq ptr %answer, null
  br i1 %no.answer, label %failed, label %column
column:
  %c = phi i64 [ 0, %roomy ], [ %c.next, %laid ]
  %objects.first = mul i64 %c, %many
  %to = getelementptr ptr, ptr %room, i64 %objects.first
  %all = icmp eq i64 %c, %columns
  br i1 %all, label %told.all, label %look
look:
  %c.next = add i64 %c, 1
  %is.given = icmp slt i64 %c, %operands
  br i1 %is.given, label %given, label %result
given:
  %given.at = getelementptr ptr, ptr %args, i64 %c
  %given.list = load ptr, ptr %given.at
  br label %laid
result:
  %new.list = call ptr @new(ptr %table, ptr %first, i64 %many)
  %no.list = icmp eq ptr %new.list, null
  br i1 %no.list, label %drop, label %keep
keep:
  %place = sub i64 %c, %operands
  %kept = call i32 @PyTuple_SetItem(ptr %answer, i64 %place, ptr %new.list)
  br label %laid
laid:
  %list = phi ptr [ %given.list, %given ], [ %new.list, %keep ]
  call void @lay(ptr %list, i64 %many, ptr %to)
  br label %column
told.all:
  %last.at = getelementptr ptr, ptr %args, i64 %operands
  %numbers.array = load ptr, ptr %last.at
{field("numbers", "%numbers.array", DATA)}
{word("limit", "%table", _STREAMED)}
  %streams = icmp sge i64 %elements, %limit
  %streamed = zext i1 %streams to i64
  store ptr %rows, ptr %data
  %data.1 = getelementptr i64, ptr %data, i64 1
  store ptr %room, ptr %data.1
  %data.2 = getelementptr i64, ptr %data, i64 2
  store i64 %many, ptr %data.2
  %data.3 = getelementptr i64, ptr %data, i64 3
  store i64 %numbers, ptr %data.3
  %data.4 = getelementptr i64, ptr %data, i64 4
  store i64 %streamed, ptr %data.4
  %data.5 = getelementptr i64, ptr %data, i64 5
  store ptr %parts, ptr %data.5
  %data.6 = getelementptr i64, ptr %data, i64 6
  store i64 %tasks, ptr %data.6
  %total = call double @run(ptr %table, ptr %data, i64 %elements)
  call void @PyMem_RawFree(ptr %room)
  %number = call ptr @PyFloat_FromDouble(double %total)
  %put = call i32 @PyTuple_SetItem(ptr %answer, i64 %results, ptr %number)
  ret ptr %answer
drop:
  call void @Py_DecRef(ptr %answer)
  br label %failed
failed:
  call void @PyMem_RawFree(ptr %room)
  ret ptr null
}}
""")
