"""The LLVM text that turns keys into those that NumPy takes, as `keys.bare` does.

What it is told stands in a table of 64-bit words, which are named here: classes, objects, and what
NumPy takes for entries of keys.
"""

from __future__ import annotations

from types import EllipsisType

import numpy as np

from funct.kernels.cpu.calls import DTYPE, TYPE, field, word

__all__ = [
    "ARRAY", "DTYPES", "EXCEPTION", "MASKS", "MISS", "NDARRAY", "NONE", "PLAIN", "SLICE", "TUPLE",
    "keys_text",
]  # fmt: skip

# Words of the table, and what stands behind them
ARRAY, NDARRAY, TUPLE, _LIST, SLICE, NONE, EXCEPTION, MISS, _TYPES = range(9)
# Entries that NumPy takes as they are; those before the first of `_MASK` give views.
PLAIN = (int, slice, type(None), EllipsisType, np.int64, bool)
_MASK, _OF_LISTS = 5, (0, 4, 5)
DTYPES = tuple(map(np.dtype, ("i8", "?", "i4", "i2", "i1", "u1", "u2", "u4")))
_FIRST_DTYPE = _TYPES + len(PLAIN)
_MOST = 32  # entries of a key
MASKS = _FIRST_DTYPE + 1  # the dtype of booleans


def keys_text(at: int) -> str:
    """The text of `buffer` and `key`; at: where in an Array its buffer stands."""
    return f"""
; The buffer of an Array; null for all else.
define internal ptr @buffer(ptr %table, ptr %x) {{
{word("array.type", "%table", ARRAY, "ptr")}
{field("type", "%x", TYPE, "ptr")}
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %look, label %none
look:
{field("held", "%x", at, "ptr")}
  %gone = icmp eq ptr %held, null
  br i1 %gone, label %none, label %check
check:
{word("ndarray.type", "%table", NDARRAY, "ptr")}
{field("held.type", "%held", TYPE, "ptr")}
  %is.ndarray = icmp eq ptr %held.type, %ndarray.type
  br i1 %is.ndarray, label %give, label %none
give:
  ret ptr %held
none:
  ret ptr null
}}

; Which of a row of words is one, or as many as there are.
define internal i64 @find(ptr %words, i64 %count, ptr %one) {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %look ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %give, label %look
look:
  %at = getelementptr ptr, ptr %words, i64 %i
  %known = load ptr, ptr %at
  %same = icmp eq ptr %known, %one
  %i.next = add i64 %i, 1
  br i1 %same, label %give, label %next
give:
  ret i64 %i
}}

; Whether a list holds numbers alone, or, nested, lists of them.
define internal i1 @numbers(ptr %table, ptr %list, i1 %nested) {{
entry:
  %types = getelementptr i64, ptr %table, i64 {_TYPES}
{word("list.type", "%table", _LIST, "ptr")}
  %count = call i64 @PyList_Size(ptr %list)
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %good ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %yes, label %look
look:
  %v = call ptr @PyList_GetItem(ptr %list, i64 %i)
{field("type", "%v", TYPE, "ptr")}
  %kind = call i64 @find(ptr %types, i64 {len(PLAIN)}, ptr %type)
  %i.next = add i64 %i, 1
  switch i64 %kind, label %other [ {" ".join(f"i64 {k}, label %good" for k in _OF_LISTS)} ]
other:
  %is.list = icmp eq ptr %type, %list.type
  %deeper = and i1 %is.list, %nested
  br i1 %deeper, label %inner, label %no
inner:
  %whole = call i1 @numbers(ptr %table, ptr %v, i1 false)
  br i1 %whole, label %good, label %no
good:
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}}

; What NumPy takes for an entry of a key, or null; and whether it selects more than a view.
define internal ptr @entry(ptr %table, ptr %k, ptr %more) {{
entry:
  %types = getelementptr i64, ptr %table, i64 {_TYPES}
{field("type", "%k", TYPE, "ptr")}
  %kind = call i64 @find(ptr %types, i64 {len(PLAIN)}, ptr %type)
  %views = icmp ult i64 %kind, {_MASK}
  br i1 %views, label %plain, label %other
plain:
  ret ptr %k
other:
  store i1 true, ptr %more
  %is.mask = icmp eq i64 %kind, {_MASK}
  br i1 %is.mask, label %plain, label %array
array:
  %held = call ptr @buffer(ptr %table, ptr %k)
  %foreign = icmp eq ptr %held, null
  br i1 %foreign, label %ndarray, label %dtyped
ndarray:
{word("ndarray.type", "%table", NDARRAY, "ptr")}
  %is.ndarray = icmp eq ptr %type, %ndarray.type
  br i1 %is.ndarray, label %dtyped, label %list
dtyped:
  %positions = phi ptr [ %held, %array ], [ %k, %ndarray ]
  %dtypes = getelementptr i64, ptr %table, i64 {_FIRST_DTYPE}
{field("dtype", "%positions", DTYPE, "ptr")}
  %place = call i64 @find(ptr %dtypes, i64 {len(DTYPES)}, ptr %dtype)
  %known = icmp ult i64 %place, {len(DTYPES)}
  br i1 %known, label %take, label %none
take:
  ret ptr %positions
list:
{word("list.type", "%table", _LIST, "ptr")}
  %is.list = icmp eq ptr %type, %list.type
  br i1 %is.list, label %items, label %none
items:
  %whole = call i1 @numbers(ptr %table, ptr %k, i1 true)
  br i1 %whole, label %plain, label %none
none:
  ret ptr null
}}

; A key for NumPy, a new reference; null where that is left to others.
define internal ptr @key(ptr %table, ptr %given, ptr %more) {{
entry:
  %found = alloca ptr, i64 {_MOST}
  store i1 false, ptr %more
{word("tuple.type", "%table", TUPLE, "ptr")}
{field("type", "%given", TYPE, "ptr")}
  %is.tuple = icmp eq ptr %type, %tuple.type
  br i1 %is.tuple, label %measure, label %single
single:
  %one = call ptr @entry(ptr %table, ptr %given, ptr %more)
  %unknown = icmp eq ptr %one, null
  br i1 %unknown, label %none, label %give
measure:
  %count = call i64 @PyTuple_Size(ptr %given)
  %many = icmp ugt i64 %count, {_MOST}
  br i1 %many, label %none, label %next
next:
  %i = phi i64 [ 0, %measure ], [ %i.next, %keep ]
  %same = phi i1 [ true, %measure ], [ %same.next, %keep ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %all, label %look
look:
  %k = call ptr @PyTuple_GetItem(ptr %given, i64 %i)
  %bare = call ptr @entry(ptr %table, ptr %k, ptr %more)
  %odd = icmp eq ptr %bare, null
  br i1 %odd, label %none, label %keep
keep:
  %found.at = getelementptr ptr, ptr %found, i64 %i
  store ptr %bare, ptr %found.at
  %is.same = icmp eq ptr %bare, %k
  %same.next = and i1 %same, %is.same
  %i.next = add i64 %i, 1
  br label %next
all:
  br i1 %same, label %give, label %make
give:
  %result = phi ptr [ %one, %single ], [ %given, %all ]
  call void @Py_IncRef(ptr %result)
  ret ptr %result
make:
  %tuple = call ptr @PyTuple_New(i64 %count)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %failure, label %fill
fill:
  %j = phi i64 [ 0, %make ], [ %j.next, %put ]
  %full = icmp eq i64 %j, %count
  br i1 %full, label %made, label %put
put:
  %entry.at = getelementptr ptr, ptr %found, i64 %j
  %held = load ptr, ptr %entry.at
  call void @Py_IncRef(ptr %held)
  %ignored = call i32 @PyTuple_SetItem(ptr %tuple, i64 %j, ptr %held)
  %j.next = add i64 %j, 1
  br label %fill
made:
  ret ptr %tuple
failure:
  call void @PyErr_Clear()
  br label %none
none:
  ret ptr null
}}
"""
