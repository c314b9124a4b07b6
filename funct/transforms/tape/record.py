"""The LLVM text of `way`: what a printed function of `ways.py` does for operands of one tape.

Where anything is not as the text expects, nothing has happened yet, and that function is called.
"""

from __future__ import annotations

from funct.kernels.cpu.calls import DATA, DTYPE, TYPE, field, word
from funct.transforms.tape.words import (
    ANS,
    KEPT,
    KINDS,
    OPERAND,
    PARAMS,
    SHAPES,
    WAY,
    Slots,
    put,
    wrapped,
)

__all__ = ["record_text"]


def record_text(at: Slots) -> str:
    """The text of `way`."""
    return f"""
define ptr @way(ptr %holder, ptr %args, i64 %count) {{
entry:
  %values = alloca [2 x ptr]
  %nodes = alloca [2 x ptr]
  %raws = alloca [{2 + KEPT} x ptr]
  %one.raw = alloca ptr
{field("table", "%holder", DATA, "ptr")}
{word("kinds", "%table", WAY["kinds"], "ptr")}
{word("n", "%table", WAY["operands"])}
{word("array", "%kinds", KINDS["array"], "ptr")}
{word("tracer", "%kinds", KINDS["tracer"], "ptr")}
{word("float", "%kinds", KINDS["float"], "ptr")}
{word("int", "%kinds", KINDS["int"], "ptr")}
  %rules = getelementptr i64, ptr %table, i64 {WAY["rules"]}
  %wanted = add i64 %n, 2
  %right = icmp eq i64 %count, %wanted
  br i1 %right, label %given, label %plain
given:
  %params.number = add i64 %n, 1
  %params.at = getelementptr ptr, ptr %args, i64 %params.number
  %params = load ptr, ptr %params.at
  %m = call i64 @PyTuple_Size(ptr %params)
{word("params.wanted", "%table", WAY["params"])}
  %as.many = icmp eq i64 %m, %params.wanted
  br i1 %as.many, label %next, label %plain

next:
  %k = phi i64 [ 0, %given ], [ %k.next, %taken ]
  %level = phi ptr [ null, %given ], [ %level.next, %taken ]
  %traced = phi i64 [ 0, %given ], [ %traced.next, %taken ]
  %below = phi i1 [ false, %given ], [ %below.next, %taken ]
  %loose = phi i1 [ false, %given ], [ %loose.next, %taken ]
  %all = icmp eq i64 %k, %n
  br i1 %all, label %levelled, label %look
look:
  %k.arg = add i64 %k, 1
  %x.at = getelementptr ptr, ptr %args, i64 %k.arg
  %x = load ptr, ptr %x.at
  %value.at = getelementptr ptr, ptr %values, i64 %k
  %node.at = getelementptr ptr, ptr %nodes, i64 %k
  %raw.at2 = getelementptr ptr, ptr %raws, i64 %k
{field("x.type", "%x", TYPE, "ptr")}
  %is.tracer = icmp eq ptr %x.type, %tracer
  br i1 %is.tracer, label %mine, label %other
mine:
  %rule.word = mul i64 %k, {OPERAND}
  %rule.at = getelementptr i64, ptr %rules, i64 %rule.word
  %rule = load i64, ptr %rule.at
  %varies = icmp ne i64 %rule, 0
  br i1 %varies, label %whose, label %plain
whose:
{field("x.level", "%x", at.level, "ptr")}
{field("x.value", "%x", at.value, "ptr")}
{field("x.node", "%x", at.node, "ptr")}
  %is.first = icmp eq ptr %level, null
  %is.same = icmp eq ptr %level, %x.level
  %is.ours = or i1 %is.first, %is.same
  br i1 %is.ours, label %lowered, label %plain
lowered:
  store ptr %x.value, ptr %value.at
  store ptr %x.node, ptr %node.at
  %traced.more = add i64 %traced, 1
{field("value.type", "%x.value", TYPE, "ptr")}
  %value.array = icmp eq ptr %value.type, %array
  br i1 %value.array, label %buffer, label %deep
deep:
  store ptr %x.value, ptr %raw.at2
  br label %taken
other:
  store ptr %x, ptr %value.at
  store ptr null, ptr %node.at
  %x.array = icmp eq ptr %x.type, %array
  br i1 %x.array, label %buffer, label %number
number:
  store ptr %x, ptr %raw.at2
  %x.float = icmp eq ptr %x.type, %float
  %x.int = icmp eq ptr %x.type, %int
  %x.number = or i1 %x.float, %x.int
  br i1 %x.number, label %taken, label %plain
buffer:
  %holder.of = phi ptr [ %x.value, %lowered ], [ %x, %other ]
  %traced.here = phi i64 [ %traced.more, %lowered ], [ %traced, %other ]
  %level.here = phi ptr [ %x.level, %lowered ], [ %level, %other ]
{field("buffer.of", "%holder.of", at.array, "ptr")}
  store ptr %buffer.of, ptr %raw.at2
  %gone = icmp eq ptr %buffer.of, null
  br i1 %gone, label %plain, label %taken
taken:
  %level.next = phi ptr [ %x.level, %deep ], [ %level, %number ], [ %level.here, %buffer ]
  %traced.next = phi i64 [ %traced.more, %deep ], [ %traced, %number ], [ %traced.here, %buffer ]
  %below.next = phi i1 [ true, %deep ], [ %below, %number ], [ %below, %buffer ]
  %loose.next = phi i1 [ %loose, %deep ], [ true, %number ], [ %loose, %buffer ]
  %k.next = add i64 %k, 1
  br label %next

levelled:
  %no.level = icmp eq ptr %level, null
  br i1 %no.level, label %plain, label %own
own:
{word("level.class", "%kinds", KINDS["level"], "ptr")}
{word("true", "%kinds", KINDS["true"], "ptr")}
{field("level.type", "%level", TYPE, "ptr")}
{field("open", "%level", at.open, "ptr")}
  %is.level = icmp eq ptr %level.type, %level.class
  %is.open = icmp eq ptr %open, %true
  %usable = and i1 %is.level, %is.open
  br i1 %usable, label %compute, label %plain

compute:
  br i1 %below, label %public, label %loop
loop:
  %loops = getelementptr i64, ptr %table, i64 {WAY["loops"]}
  %quick = call ptr @direct(ptr %kinds, ptr %loops, i64 %n, ptr %raws)
  %is.quick = icmp ne ptr %quick, null
  br i1 %is.quick, label %computed, label %slow
slow:
  br i1 %loose, label %public, label %kernel
kernel:
  call void @items(ptr %raws, i64 %n, ptr %params, i64 %m)
{word("raw", "%table", WAY["raw"], "ptr")}
  %given.count = add i64 %n, %m
  %one.buffer = load ptr, ptr %raws  ; held: while the kernel runs, another thread may donate
  %last.number = sub i64 %n, 1
  %last.at = getelementptr ptr, ptr %raws, i64 %last.number
  %last.buffer = load ptr, ptr %last.at
  call void @Py_IncRef(ptr %one.buffer)
  call void @Py_IncRef(ptr %last.buffer)
  %found = call ptr @PyObject_Vectorcall(ptr %raw, ptr %raws, i64 %given.count, ptr null)
  call void @Py_DecRef(ptr %one.buffer)
  call void @Py_DecRef(ptr %last.buffer)
  %failed = icmp eq ptr %found, null
  br i1 %failed, label %refused, label %found.some
refused:
{word("exception", "%kinds", KINDS["exception"], "ptr")}
  %is.error = call i32 @PyErr_ExceptionMatches(ptr %exception)
  %explained = icmp ne i32 %is.error, 0
  br i1 %explained, label %explain, label %fail
explain:
  call void @PyErr_Clear()
  br label %plain
found.some:
{word("ndarray", "%kinds", KINDS["ndarray"], "ptr")}
{field("found.type", "%found", TYPE, "ptr")}
  %is.ndarray = icmp eq ptr %found.type, %ndarray
  br i1 %is.ndarray, label %computed, label %scalar
scalar:
{word("asarray", "%kinds", KINDS["asarray"], "ptr")}
  store ptr %found, ptr %one.raw
  %made = call ptr @PyObject_Vectorcall(ptr %asarray, ptr %one.raw, i64 1, ptr null)
  call void @Py_DecRef(ptr %found)
  %not.made = icmp eq ptr %made, null
  br i1 %not.made, label %fail, label %computed
computed:
  %d = phi ptr [ %quick, %loop ], [ %found, %found.some ], [ %made, %scalar ]
{wrapped("wrapped", "%d", at)}
{field("d.dtype", "%d", DTYPE, "ptr")}
  call void @Py_IncRef(ptr %d.dtype)
{word("spread", "%table", WAY["spread"])}
  %first.node = load ptr, ptr %nodes
  %no.node = icmp eq ptr %first.node, null
  %second.at = getelementptr ptr, ptr %nodes, i64 1
  %second.node = load ptr, ptr %second.at
  %a.node = select i1 %no.node, ptr %second.node, ptr %first.node
{field("a.shape", "%a.node", at.shape, "ptr")}
  %spreads = icmp ne i64 %spread, 0
  %at.hand = select i1 %spreads, ptr %a.shape, ptr null
  %d.shape = call ptr @shape.of(ptr %kinds, ptr %d, ptr %at.hand)
  %no.shape = icmp eq ptr %d.shape, null
  br i1 %no.shape, label %fail, label %record

public:
  br label %copy
copy:
  %c = phi i64 [ 0, %public ], [ %c.next, %copied ]
  %c.done = icmp eq i64 %c, %n
  br i1 %c.done, label %ask, label %copied
copied:
  %c.from = getelementptr ptr, ptr %values, i64 %c
  %c.value = load ptr, ptr %c.from
  %c.to = getelementptr ptr, ptr %raws, i64 %c
  store ptr %c.value, ptr %c.to
  %c.next = add i64 %c, 1
  br label %copy
ask:
  call void @items(ptr %raws, i64 %n, ptr %params, i64 %m)
{word("fn", "%table", WAY["fn"], "ptr")}
  %public.count = add i64 %n, %m
  %told = call ptr @PyObject_Vectorcall(ptr %fn, ptr %raws, i64 %public.count, ptr null)
  %not.told = icmp eq ptr %told, null
  br i1 %not.told, label %fail, label %told.some
told.some:
{field("told.type", "%told", TYPE, "ptr")}
  %told.tracer = icmp eq ptr %told.type, %tracer
  br i1 %told.tracer, label %noded, label %asked
noded:
{field("told.node", "%told", at.node, "ptr")}
{field("told.shape", "%told.node", at.shape, "ptr")}
{field("told.dtype", "%told.node", at.dtype, "ptr")}
  call void @Py_IncRef(ptr %told.shape)
  call void @Py_IncRef(ptr %told.dtype)
  br label %record
asked:
  %asked.shape = call ptr @PyObject_GetAttrString(ptr %told, ptr @shape.name)
  %no.asked = icmp eq ptr %asked.shape, null
  br i1 %no.asked, label %drop.told, label %asked.more
asked.more:
  %asked.dtype = call ptr @PyObject_GetAttrString(ptr %told, ptr @dtype.name)
  %no.kind = icmp eq ptr %asked.dtype, null
  br i1 %no.kind, label %drop.shape, label %record
drop.shape:
  call void @Py_DecRef(ptr %asked.shape)
  br label %drop.told
drop.told:
  call void @Py_DecRef(ptr %told)
  br label %fail

record:
  %ans = phi ptr [ %wrapped, %computed ], [ %told, %noded ], [ %told, %asked.more ]
  %shape = phi ptr [ %d.shape, %computed ], [ %told.shape, %noded ], [ %asked.shape, %asked.more ]
  %dtype = phi ptr [ %d.dtype, %computed ], [ %told.dtype, %noded ], [ %asked.dtype, %asked.more ]
  %edges = call ptr @PyTuple_New(i64 %traced)
  br label %edge.next
edge.next:
  %e = phi i64 [ 0, %record ], [ %e.next, %edge.skip ], [ %e.next, %edge.kept ]
  %into = phi i64 [ 0, %record ], [ %into, %edge.skip ], [ %into.next, %edge.kept ]
  %edges.done = icmp eq i64 %e, %n
  br i1 %edges.done, label %noted, label %edge
edge:
  %e.next = add i64 %e, 1
  %e.node.at = getelementptr ptr, ptr %nodes, i64 %e
  %e.node = load ptr, ptr %e.node.at
  %untraced = icmp eq ptr %e.node, null
  br i1 %untraced, label %edge.skip, label %edge.make
edge.skip:
  br label %edge.next
edge.make:
  %spec.word = mul i64 %e, {OPERAND}
  %spec = getelementptr i64, ptr %rules, i64 %spec.word
{word("pull", "%spec", 1, "ptr")}
{word("keeps", "%spec", 2)}
  %made.edge = call ptr @PyTuple_New(i64 3)
  %kept = call ptr @PyTuple_New(i64 %keeps)
  call void @Py_IncRef(ptr %e.node)
  call void @Py_IncRef(ptr %pull)
  %set.0 = call i32 @PyTuple_SetItem(ptr %made.edge, i64 0, ptr %e.node)
  %set.1 = call i32 @PyTuple_SetItem(ptr %made.edge, i64 1, ptr %pull)
  %set.2 = call i32 @PyTuple_SetItem(ptr %made.edge, i64 2, ptr %kept)
  %set.3 = call i32 @PyTuple_SetItem(ptr %edges, i64 %into, ptr %made.edge)
  %into.next = add i64 %into, 1
  br label %keep.next
keep.next:
  %h = phi i64 [ 0, %edge.make ], [ %h.next, %keep.set ]
  %kept.all = icmp eq i64 %h, %keeps
  br i1 %kept.all, label %edge.kept, label %keep
edge.kept:
  br label %edge.next
keep:
  %which.word = add i64 %h, 3
  %which.at = getelementptr i64, ptr %spec, i64 %which.word
  %which = load i64, ptr %which.at
  %h.next = add i64 %h, 1
  %of.ans = icmp eq i64 %which, {ANS}
  br i1 %of.ans, label %keep.ans, label %keep.other
keep.ans:
  br label %keep.put
keep.other:
  %of.value = icmp ult i64 %which, {PARAMS}
  br i1 %of.value, label %keep.value, label %keep.more
keep.value:
  %value.number = sub i64 %which, 1
  %kept.value.at = getelementptr ptr, ptr %values, i64 %value.number
  %kept.value = load ptr, ptr %kept.value.at
  br label %keep.put
keep.more:
  %of.params = icmp ult i64 %which, {SHAPES}
  br i1 %of.params, label %keep.param, label %keep.shape
keep.param:
  %param.number = sub i64 %which, {PARAMS}
  %kept.param = call ptr @PyTuple_GetItem(ptr %params, i64 %param.number)
  br label %keep.put
keep.shape:
  %shape.number = sub i64 %which, {SHAPES}
  %shape.node.at = getelementptr ptr, ptr %nodes, i64 %shape.number
  %shape.node = load ptr, ptr %shape.node.at
  %of.number = icmp eq ptr %shape.node, null
  br i1 %of.number, label %keep.untraced, label %keep.node
keep.node:
{field("node.shape", "%shape.node", at.shape, "ptr")}
  br label %keep.put
keep.untraced:
  %untraced.at = getelementptr ptr, ptr %values, i64 %shape.number
  %untraced.value = load ptr, ptr %untraced.at
{field("untraced.type", "%untraced.value", TYPE, "ptr")}
  %untraced.array = icmp eq ptr %untraced.type, %array
  br i1 %untraced.array, label %keep.lengths, label %keep.none
keep.lengths:
{field("untraced.buffer", "%untraced.value", at.array, "ptr")}
  %lengths = call ptr @shape.of(ptr %kinds, ptr %untraced.buffer, ptr null)
  br label %keep.set
keep.none:
  %nothing = call ptr @PyTuple_New(i64 0)
  br label %keep.set
keep.put:
  %item = phi ptr [ %ans, %keep.ans ], [ %kept.value, %keep.value ], [ %kept.param, %keep.param ],
                  [ %node.shape, %keep.node ]
  call void @Py_IncRef(ptr %item)
  br label %keep.set
keep.set:
  %kept.item = phi ptr [ %item, %keep.put ], [ %lengths, %keep.lengths ], [ %nothing, %keep.none ]
  %set.4 = call i32 @PyTuple_SetItem(ptr %kept, i64 %h, ptr %kept.item)
  br label %keep.next

noted:
{field("count.before", "%level", at.counted, "ptr")}
  %number.before = call i64 @PyLong_AsLongLong(ptr %count.before)
  %number.now = add i64 %number.before, 1
  %serial = call ptr @PyLong_FromLongLong(i64 %number.now)
  call void @Py_IncRef(ptr %serial)
  store ptr %serial, ptr %count.before.at
  call void @Py_DecRef(ptr %count.before)
  call void @Py_IncRef(ptr %level)
  %prim = load ptr, ptr %args
  call void @Py_IncRef(ptr %prim)
{word("node.class", "%kinds", KINDS["node"], "ptr")}
  %node = call ptr @PyType_GenericAlloc(ptr %node.class, i64 0)
{put("node", at.edges, "%edges")}
{put("node", at.prim, "%prim")}
{put("node", at.serial, "%serial")}
{put("node", at.shape, "%shape")}
{put("node", at.dtype, "%dtype")}
  %out = call ptr @PyType_GenericAlloc(ptr %tracer, i64 0)
{put("out", at.value, "%ans")}
{put("out", at.node, "%node")}
{put("out", at.level, "%level")}
  ret ptr %out

plain:
{word("printed", "%table", WAY["plain"], "ptr")}
  %answer = call ptr @PyObject_Vectorcall(ptr %printed, ptr %args, i64 %count, ptr null)
  ret ptr %answer
fail:
  ret ptr null
}}

; Append the items of a tuple.
define internal void @items(ptr %to, i64 %n, ptr %tuple, i64 %count) {{
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %put ]
  %done = icmp eq i64 %k, %count
  br i1 %done, label %all, label %put
put:
  %item = call ptr @PyTuple_GetItem(ptr %tuple, i64 %k)
  %place.number = add i64 %n, %k
  %place = getelementptr ptr, ptr %to, i64 %place.number
  store ptr %item, ptr %place
  %k.next = add i64 %k, 1
  br label %next
all:
  ret void
}}
"""
