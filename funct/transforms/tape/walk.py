"""The LLVM text of `walk`: what the loop of `backward.py` does for nodes of the plain kind."""

from __future__ import annotations

from funct.kernels.cpu.calls import DATA, TYPE, field, word
from funct.transforms.tape.words import HELD, KINDS, Slots, wrapped

__all__ = ["walk_text"]


def walk_text(at: Slots) -> str:
    """The text of `walk`."""
    return f"""
; The sum of two cotangents.
define internal ptr @sum(ptr %kinds, ptr %a, ptr %b) {{
entry:
  %operands = alloca [2 x ptr]
{word("array", "%kinds", KINDS["array"], "ptr")}
{field("a.type", "%a", TYPE, "ptr")}
{field("b.type", "%b", TYPE, "ptr")}
  %a.array = icmp eq ptr %a.type, %array
  %b.array = icmp eq ptr %b.type, %array
  %both = and i1 %a.array, %b.array
  br i1 %both, label %raw, label %ask
raw:
{field("a.raw", "%a", at.array, "ptr")}
{field("b.raw", "%b", at.array, "ptr")}
  store ptr %a.raw, ptr %operands
  %second = getelementptr ptr, ptr %operands, i64 1
  store ptr %b.raw, ptr %second
  %loops = getelementptr i64, ptr %kinds, i64 {KINDS["plus"]}
  %d = call ptr @direct(ptr %kinds, ptr %loops, i64 2, ptr %operands)
  %refused = icmp eq ptr %d, null
  br i1 %refused, label %ask, label %wrap
wrap:
{wrapped("result", "%d", at)}
  ret ptr %result
ask:
  store ptr %a, ptr %operands
  %second.too = getelementptr ptr, ptr %operands, i64 1
  store ptr %b, ptr %second.too
{word("add", "%kinds", KINDS["add"], "ptr")}
  %told = call ptr @PyObject_Vectorcall(ptr %add, ptr %operands, i64 2, ptr null)
  ret ptr %told
}}

; Whether a node is one of the plain kind: nothing but pulls of one op, and nobody looks.
define internal i1 @is.plain(ptr %kinds, ptr %node, ptr %edges) {{
entry:
{word("node.class", "%kinds", KINDS["node"], "ptr")}
{word("primitive", "%kinds", KINDS["primitive"], "ptr")}
{word("tuple", "%kinds", KINDS["tuple"], "ptr")}
{word("none", "%kinds", KINDS["none"], "ptr")}
{word("false", "%kinds", KINDS["false"], "ptr")}
{word("one", "%kinds", KINDS["one"], "ptr")}
{word("c8", "%kinds", KINDS["c8"], "ptr")}
{word("c16", "%kinds", KINDS["c16"], "ptr")}
{field("site", "%node", at.site, "ptr")}
{field("prim", "%node", at.prim, "ptr")}
{field("dtype", "%node", at.dtype, "ptr")}
{field("prim.type", "%prim", TYPE, "ptr")}
  %unseen = icmp eq ptr %site, null
  %is.op = icmp eq ptr %prim.type, %primitive
  %is.c8 = icmp eq ptr %dtype, %c8
  %is.c16 = icmp eq ptr %dtype, %c16
  %complex = or i1 %is.c8, %is.c16
  %real = xor i1 %complex, true
  %some = and i1 %unseen, %is.op
  %more = and i1 %some, %real
  br i1 %more, label %op, label %no
op:
{field("masks", "%prim", at.masks, "ptr")}
{field("results", "%prim", at.results, "ptr")}
{field("spread", "%prim", at.spread, "ptr")}
  %is.clear = icmp eq ptr %masks, %false
  %is.single = icmp eq ptr %results, %one
  %is.whole = icmp eq ptr %spread, %none
  %is.simple = and i1 %is.clear, %is.single
  br i1 %is.simple, label %measure, label %no
measure:
  %count = call i64 @PyTuple_Size(ptr %edges)
  br label %next
next:
  %k = phi i64 [ 0, %measure ], [ %k.next, %good ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %yes, label %look
look:
  %edge = call ptr @PyTuple_GetItem(ptr %edges, i64 %k)
{field("edge.type", "%edge", TYPE, "ptr")}
  %is.edge = icmp eq ptr %edge.type, %tuple
  br i1 %is.edge, label %parts, label %no
parts:
  %size = call i64 @PyTuple_Size(ptr %edge)
  %is.triple = icmp eq i64 %size, 3
  br i1 %is.triple, label %triple, label %no
triple:
  %parent = call ptr @PyTuple_GetItem(ptr %edge, i64 0)
  %kept = call ptr @PyTuple_GetItem(ptr %edge, i64 2)
{field("parent.type", "%parent", TYPE, "ptr")}
{field("kept.type", "%kept", TYPE, "ptr")}
  %is.node = icmp eq ptr %parent.type, %node.class
  %is.kept = icmp eq ptr %kept.type, %tuple
  %both = and i1 %is.node, %is.kept
  br i1 %both, label %typed, label %no
typed:
{field("parent.dtype", "%parent", at.dtype, "ptr")}
  %same.dtype = icmp eq ptr %parent.dtype, %dtype
  %spreads = xor i1 %is.whole, true
  %fits = or i1 %same.dtype, %spreads
  %keeps = call i64 @PyTuple_Size(ptr %kept)
  %few = icmp ult i64 %keeps, {HELD}
  %right = and i1 %fits, %few
  br i1 %right, label %good, label %no
good:
  %k.next = add i64 %k, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}}

; walk(due, leaves, once): nodes are visited until one is not plain, which stays the last of due.
define ptr @walk(ptr %holder, ptr %args, i64 %args.count) {{
entry:
  %given = alloca [{HELD + 1} x ptr]
{field("kinds", "%holder", DATA, "ptr")}
{word("none", "%kinds", KINDS["none"], "ptr")}
{word("true", "%kinds", KINDS["true"], "ptr")}
{word("tuple", "%kinds", KINDS["tuple"], "ptr")}
{word("programs", "%kinds", KINDS["programs"], "ptr")}
{word("match", "%kinds", KINDS["match"], "ptr")}
  %due = load ptr, ptr %args
  %leaves.at = getelementptr ptr, ptr %args, i64 1
  %leaves = load ptr, ptr %leaves.at
  %once.at = getelementptr ptr, ptr %args, i64 2
  %once = load ptr, ptr %once.at
  %frees = icmp eq ptr %once, %true
  %length = call i64 @PyList_Size(ptr %due)
  br label %next
next:
  %i = phi i64 [ %length, %entry ], [ %at, %skip ], [ %at, %done ]
  %end = icmp eq i64 %i, 0
  br i1 %end, label %stop, label %look
look:
  %at = sub i64 %i, 1
  %entry.here = call ptr @PyList_GetItem(ptr %due, i64 %at)
  %empty = icmp eq ptr %entry.here, %none
  br i1 %empty, label %skip, label %some
skip:
  br label %next
some:
  %node = call ptr @PyTuple_GetItem(ptr %entry.here, i64 0)
  %g = call ptr @PyTuple_GetItem(ptr %entry.here, i64 1)
{field("edges", "%node", at.edges, "ptr")}
{field("edges.type", "%edges", TYPE, "ptr")}
  %is.tuple = icmp eq ptr %edges.type, %tuple
  br i1 %is.tuple, label %counted, label %stop
counted:
  %count = call i64 @PyTuple_Size(ptr %edges)
  %is.leaf = icmp eq i64 %count, 0
  br i1 %is.leaf, label %leaf, label %inner
leaf:
  %stored = call i32 @PyDict_SetItem(ptr %leaves, ptr %node, ptr %g)
  %not.stored = icmp slt i32 %stored, 0
  br i1 %not.stored, label %fail, label %taken
taken:
  call void @Py_IncRef(ptr %none)
  %cleared = call i32 @PyList_SetItem(ptr %due, i64 %at, ptr %none)
  br label %skip
inner:
  %plain = call i1 @is.plain(ptr %kinds, ptr %node, ptr %edges)
  br i1 %plain, label %visit, label %stop

visit:
  call void @Py_IncRef(ptr %entry.here)
  call void @Py_IncRef(ptr %edges)
  call void @Py_IncRef(ptr %none)
  %cleared.too = call i32 @PyList_SetItem(ptr %due, i64 %at, ptr %none)
{field("prim", "%node", at.prim, "ptr")}
{field("spread", "%prim", at.spread, "ptr")}
{field("shape", "%node", at.shape, "ptr")}
{field("dtype", "%node", at.dtype, "ptr")}
  %spreads = icmp ne ptr %spread, %none
  br label %edge.next
edge.next:
  %e = phi i64 [ 0, %visit ], [ %e.next, %edge.none ], [ %e.next, %passed ]
  %edges.done = icmp eq i64 %e, %count
  br i1 %edges.done, label %visited, label %edge
edge:
  %e.next = add i64 %e, 1
  %triple = call ptr @PyTuple_GetItem(ptr %edges, i64 %e)
  %parent = call ptr @PyTuple_GetItem(ptr %triple, i64 0)
  %pull = call ptr @PyTuple_GetItem(ptr %triple, i64 1)
  %kept = call ptr @PyTuple_GetItem(ptr %triple, i64 2)
  %program = call ptr @PyDict_GetItem(ptr %programs, ptr %pull)
  %unknown = icmp eq ptr %program, null
  br i1 %unknown, label %call, label %loops
loops:
{field("steps", "%program", DATA, "ptr")}
  %quick = call ptr @pulled(ptr %kinds, ptr %steps, ptr %g, ptr %kept)
  %refused = icmp eq ptr %quick, null
  br i1 %refused, label %call, label %match.it
call:
  store ptr %g, ptr %given
  %keeps = call i64 @PyTuple_Size(ptr %kept)
  call void @items(ptr %given, i64 1, ptr %kept, i64 %keeps)
  %given.count = add i64 %keeps, 1
  %told = call ptr @PyObject_Vectorcall(ptr %pull, ptr %given, i64 %given.count, ptr null)
  %failed = icmp eq ptr %told, null
  br i1 %failed, label %give.up, label %told.some
told.some:
  %nothing = icmp eq ptr %told, %none
  br i1 %nothing, label %edge.none, label %match.it
edge.none:
  call void @Py_DecRef(ptr %told)
  br label %edge.next
match.it:
  %h = phi ptr [ %quick, %loops ], [ %told, %told.some ]
  br i1 %spreads, label %compare, label %pass
compare:
{field("wanted", "%parent", at.shape, "ptr")}
{field("wanted.dtype", "%parent", at.dtype, "ptr")}
  %same.dtype = icmp eq ptr %wanted.dtype, %dtype
  %same.shape = icmp eq ptr %wanted, %shape
  %same.both = and i1 %same.dtype, %same.shape
  br i1 %same.both, label %pass, label %ask
ask:
  br i1 %same.dtype, label %equal, label %mend
equal:
  %is.equal = call i32 @PyObject_RichCompareBool(ptr %wanted, ptr %shape, i32 2)
  switch i32 %is.equal, label %drop.share.h [ i32 1, label %pass i32 0, label %mend ]
drop.share.h:
  call void @Py_DecRef(ptr %h)
  br label %give.up
mend:
  store ptr %h, ptr %given
  %given.1 = getelementptr ptr, ptr %given, i64 1
  store ptr %wanted, ptr %given.1
  %given.2 = getelementptr ptr, ptr %given, i64 2
  store ptr %wanted.dtype, ptr %given.2
  %matched = call ptr @PyObject_Vectorcall(ptr %match, ptr %given, i64 3, ptr null)
  call void @Py_DecRef(ptr %h)
  %not.matched = icmp eq ptr %matched, null
  br i1 %not.matched, label %give.up, label %pass
pass:
  %share = phi ptr [ %h, %match.it ], [ %h, %compare ], [ %h, %equal ], [ %matched, %mend ]
{field("serial", "%parent", at.serial, "ptr")}
  %k = call i64 @PyLong_AsLongLong(ptr %serial)
  %before = call ptr @PyList_GetItem(ptr %due, i64 %k)
  %off = icmp eq ptr %before, null
  br i1 %off, label %drop.share, label %there
there:
  %is.first = icmp eq ptr %before, %none
  br i1 %is.first, label %set, label %add
add:
  %so.far = call ptr @PyTuple_GetItem(ptr %before, i64 1)
  %total = call ptr @sum(ptr %kinds, ptr %so.far, ptr %share)
  call void @Py_DecRef(ptr %share)
  %no.total = icmp eq ptr %total, null
  br i1 %no.total, label %give.up, label %set
set:
  %whole = phi ptr [ %share, %there ], [ %total, %add ]
  %pair = call ptr @PyTuple_New(i64 2)
  call void @Py_IncRef(ptr %parent)
  %set.0 = call i32 @PyTuple_SetItem(ptr %pair, i64 0, ptr %parent)
  %set.1 = call i32 @PyTuple_SetItem(ptr %pair, i64 1, ptr %whole)
  %set.2 = call i32 @PyList_SetItem(ptr %due, i64 %k, ptr %pair)
  br label %passed
passed:
  br label %edge.next

visited:
  br i1 %frees, label %free, label %release
free:
  %no.edges = call ptr @PyTuple_New(i64 0)
  %old = load ptr, ptr %edges.at
  store ptr %no.edges, ptr %edges.at
  call void @Py_DecRef(ptr %old)
  br label %release
release:
  call void @Py_DecRef(ptr %edges)
  call void @Py_DecRef(ptr %entry.here)
  br label %done
done:
  br label %next

drop.share:
  call void @Py_DecRef(ptr %share)
  br label %give.up
give.up:
  call void @Py_DecRef(ptr %edges)
  call void @Py_DecRef(ptr %entry.here)
  br label %fail
stop:
  %cut = call i32 @PyList_SetSlice(ptr %due, i64 %i, i64 %length, ptr null)
  call void @Py_IncRef(ptr %none)
  ret ptr %none
fail:
  ret ptr null
}}
"""
