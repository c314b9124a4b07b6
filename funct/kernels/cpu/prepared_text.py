"""The LLVM text of `prepared.py`: a builtin that finds a plan for arguments, and runs it.

What stands in a table and in a plan is said here. A plan is followed by where arguments go, the
shape of the result and the frame.
"""

from __future__ import annotations

from funct.kernels.cpu.by_words import text
from funct.kernels.cpu.calls import DATA, DENSE, DTYPE, FLAGS, RANK, REAL, SHAPE, TYPE, field, word
from funct.kernels.cpu.outside import declared
from funct.kernels.cpu.passages import restriction_asked, unlocked

__all__ = [
    "FRAME", "HEAD", "IS_RESULT", "NOWHERE", "PLACE", "ROOM", "ROOM_AT", "SINGLE", "prepared_text",
]  # fmt: skip

_MOST = 6  # axes of an array
FRAME, ROOM = 32, 1 << 12  # words of what code is told, and bytes of what is on the way to a result
# Words of a place: what is kept, how many words what was asked is, and those
PLACE = 59
SINGLE = (None, True, False, ...)  # what is asked for by itself
# Words of a table: objects whose addresses are looked at, and the places
_NDARRAY, _INT, _FLOAT, _STR, _TUPLE, _SLICE, _RESTRICTION, _MISS, _ITSELF = range(9)
_NONE, _FIRST = _ITSELF, _ITSELF + len(SINGLE)
# and of a plan: no code says that Python is to decide
_CODE, _RESULT, _AXES, _LONG, _TO, _ROOM, _TELLS, _WORDS, _COUNT, HEAD = range(10)
NOWHERE, IS_RESULT = -1, 0  # what the room of a plan is, if it is no number of bytes
ROOM_AT = 2  # the word of a frame that has its address


def prepared_text() -> str:
    """The text of `call`, a function of anything, and of `keep`, of a plan and such arguments."""
    return declared(_TEXT)


_TEXT = f"""
{text(_FIRST, PLACE)}
; Writes what is asked of one argument from a word on, and gives where the next one's words begin;
; 0 where nothing is kept of such. Keys are tuples of others and slices.
define internal i64 @item(ptr %table, ptr %x, ptr %words, i64 %at) {{
entry:
{word("ndarray", "%table", _NDARRAY, "ptr")}
{word("int", "%table", _INT, "ptr")}
{word("float", "%table", _FLOAT, "ptr")}
{word("str", "%table", _STR, "ptr")}
{word("tuple", "%table", _TUPLE, "ptr")}
{word("slice", "%table", _SLICE, "ptr")}
{field("type", "%x", TYPE, "ptr")}
  %head = getelementptr i64, ptr %words, i64 %at
  %second = getelementptr i64, ptr %head, i64 1
  %behind.one = add i64 %at, 1
  %behind.two = add i64 %at, 2
  %room = icmp ule i64 %at, {PLACE - 2 - 2 - _MOST}
  br i1 %room, label %kind, label %no
kind:
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %array, label %other
array:
{field("dtype", "%x", DTYPE, "ptr")}
{field("flags", "%x", FLAGS, "i32")}
{field("rank32", "%x", RANK, "i32")}
{field("shape", "%x", SHAPE, "ptr")}
  %rank = zext i32 %rank32 to i64
  %masked = and i32 %flags, {DENSE}
  %dense = icmp eq i32 %masked, {DENSE}
  %short = icmp ule i64 %rank, {_MOST}
  %fits = and i1 %dense, %short
  br i1 %fits, label %lengths, label %no
lengths:
  store ptr %dtype, ptr %head
  store i64 %rank, ptr %second
  %dims = getelementptr i64, ptr %head, i64 2
  br label %dim
dim:
  %d = phi i64 [ 0, %lengths ], [ %d.next, %some ]
  %walked = icmp eq i64 %d, %rank
  br i1 %walked, label %shaped, label %some
some:
  %n.at = getelementptr i64, ptr %shape, i64 %d
  %n = load i64, ptr %n.at
  %n.to = getelementptr i64, ptr %dims, i64 %d
  store i64 %n, ptr %n.to
  %d.next = add i64 %d, 1
  br label %dim
shaped:
  %array.to = add i64 %behind.two, %rank
  ret i64 %array.to
other:
  %is.int = icmp eq ptr %type, %int
  br i1 %is.int, label %number, label %real
number:
  %a = call i64 @PyLong_AsLongLong(ptr %x)
  %odd = icmp eq i64 %a, -1
  br i1 %odd, label %suspect, label %numbered
suspect:
  %error = call ptr @PyErr_Occurred()
  %sound = icmp eq ptr %error, null
  br i1 %sound, label %numbered, label %failed
failed:
  call void @PyErr_Clear()
  br label %no
numbered:
  store ptr %type, ptr %head
  store i64 %a, ptr %second
  ret i64 %behind.two
real:
  %is.float = icmp eq ptr %type, %float
  br i1 %is.float, label %weak, label %part
weak:
  store ptr %type, ptr %head
  ret i64 %behind.one
part:
  %is.slice = icmp eq ptr %type, %slice
  br i1 %is.slice, label %ends, label %several
ends:
  store ptr %type, ptr %head
{field("start", "%x", TYPE + 8, "ptr")}
{field("stop", "%x", TYPE + 16, "ptr")}
{field("step", "%x", TYPE + 24, "ptr")}
  %start.to = call i64 @item(ptr %table, ptr %start, ptr %words, i64 %behind.one)
  %no.start = icmp eq i64 %start.to, 0
  br i1 %no.start, label %no, label %ended
ended:
  %stop.to = call i64 @item(ptr %table, ptr %stop, ptr %words, i64 %start.to)
  %no.stop = icmp eq i64 %stop.to, 0
  br i1 %no.stop, label %no, label %stepped
stepped:
  %step.to = call i64 @item(ptr %table, ptr %step, ptr %words, i64 %stop.to)
  ret i64 %step.to
several:
  %is.tuple = icmp eq ptr %type, %tuple
  br i1 %is.tuple, label %counted, label %named
counted:
  store ptr %type, ptr %head
  %size = call i64 @PyTuple_Size(ptr %x)
  store i64 %size, ptr %second
  br label %next
next:
  %k = phi i64 [ 0, %counted ], [ %k.next, %put ]
  %to = phi i64 [ %behind.two, %counted ], [ %one.to, %put ]
  %all = icmp eq i64 %k, %size
  br i1 %all, label %found, label %look
found:
  ret i64 %to
look:
  %one = call ptr @PyTuple_GetItem(ptr %x, i64 %k)
  %one.to = call i64 @item(ptr %table, ptr %one, ptr %words, i64 %to)
  %no.one = icmp eq i64 %one.to, 0
  br i1 %no.one, label %no, label %put
put:
  %k.next = add i64 %k, 1
  br label %next
named:
  %is.str = icmp eq ptr %type, %str
  br i1 %is.str, label %same, label %single
single:
  %first = getelementptr i64, ptr %table, i64 {_ITSELF}
  br label %compare
compare:
  %c = phi i64 [ 0, %single ], [ %c.next, %differs ]
  %compared = icmp eq i64 %c, {len(SINGLE)}
  br i1 %compared, label %no, label %known
known:
  %known.at = getelementptr i64, ptr %first, i64 %c
  %object = load ptr, ptr %known.at
  %is.it = icmp eq ptr %object, %x
  br i1 %is.it, label %same, label %differs
differs:
  %c.next = add i64 %c, 1
  br label %compare
same:
  store ptr %x, ptr %head
  ret i64 %behind.one
no:
  ret i64 0
}}

; The same of all arguments: how many words that is.
define internal i64 @asked(ptr %table, ptr %args, i64 %count, ptr %words) {{
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %put ]
  %at = phi i64 [ 0, %entry ], [ %to, %put ]
  %all = icmp eq i64 %k, %count
  br i1 %all, label %found, label %look
found:
  ret i64 %at
look:
  %x.at = getelementptr ptr, ptr %args, i64 %k
  %x = load ptr, ptr %x.at
  %to = call i64 @item(ptr %table, ptr %x, ptr %words, i64 %at)
  %odd = icmp eq i64 %to, 0
  br i1 %odd, label %no, label %put
put:
  %k.next = add i64 %k, 1
  br label %next
no:
  ret i64 0
}}

define ptr @call(ptr %holder, ptr %args, i64 %count) {{
entry:
  %words = alloca [{PLACE} x i64]
  %value = alloca ptr
  %frame = alloca [{FRAME} x i64], align 16
  %between = alloca [{ROOM} x i8], align 64
{field("table", "%holder", DATA, "ptr")}
{word("none", "%table", _NONE, "ptr")}
  %n = call i64 @asked(ptr %table, ptr %args, i64 %count, ptr %words)
  %some = icmp ne i64 %n, 0
  br i1 %some, label %search, label %nothing
search:
  %kept = call ptr @recalled(ptr %table, ptr %words, i64 %n)
  %is.kept = icmp ne ptr %kept, null
  br i1 %is.kept, label %ask, label %miss
ask:
  %held = call ptr @PyTuple_GetItem(ptr %kept, i64 0)
{field("plan", "%held", DATA, "ptr")}
{word("code", "%plan", _CODE, "ptr")}
  %no.code = icmp eq ptr %code, null
  br i1 %no.code, label %nothing, label %allowed
nothing:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
allowed:
{word("restriction", "%table", _RESTRICTION, "ptr")}
{restriction_asked()}
  br i1 %unbound, label %make, label %nothing
make:
{word("ndarray", "%table", _NDARRAY, "ptr")}
{word("float", "%table", _FLOAT, "ptr")}
{word("dtype", "%plan", _RESULT, "ptr")}
{word("axes", "%plan", _AXES)}
{word("long", "%plan", _LONG)}
{word("to", "%plan", _TO)}
{word("room", "%plan", _ROOM)}
{word("tells", "%plan", _TELLS)}
{word("frame.words", "%plan", _WORDS)}
{word("places.count", "%plan", _COUNT)}
  %places = getelementptr i64, ptr %plan, i64 {HEAD}
  %dims = getelementptr i64, ptr %places, i64 %places.count
  %from = getelementptr i64, ptr %dims, i64 %axes
  %rank = trunc i64 %axes to i32
  call void @Py_IncRef(ptr %dtype)
  call void @Py_IncRef(ptr %kept)  ; others may be kept there before it is read
  %y = call ptr @PyArray_NewFromDescr(ptr %ndarray, ptr %dtype, i32 %rank, ptr %dims,
                                      ptr null, ptr null, i32 0, ptr null)
  %failed = icmp eq ptr %y, null
  br i1 %failed, label %error, label %fill
error:
  call void @Py_DecRef(ptr %kept)
  ret ptr null
fill:
  %bytes = shl i64 %frame.words, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %frame, ptr %from, i64 %bytes, i1 false)
{field("y.data", "%y", DATA, "ptr")}
  %y.to = getelementptr ptr, ptr %frame, i64 %to
  store ptr %y.data, ptr %y.to
  %no.room = icmp eq i64 %room, {NOWHERE}
  br i1 %no.room, label %arguments, label %roomy
roomy:
  %in.result = icmp eq i64 %room, {IS_RESULT}
  %room.data = select i1 %in.result, ptr %y.data, ptr %between
  %room.to = getelementptr ptr, ptr %frame, i64 {ROOM_AT}
  store ptr %room.data, ptr %room.to
  br label %arguments
arguments:
  br label %each
each:
  %k = phi i64 [ 0, %arguments ], [ %k.next, %told ]
  %all = icmp eq i64 %k, %places.count
  br i1 %all, label %run, label %one
one:
  %place.at = getelementptr i64, ptr %places, i64 %k
  %place = load i64, ptr %place.at
  %k.next = add i64 %k, 1
  %nowhere = icmp eq i64 %place, {NOWHERE}
  br i1 %nowhere, label %told, label %tell
tell:
  %x.at = getelementptr ptr, ptr %args, i64 %k
  %x = load ptr, ptr %x.at
{field("type", "%x", TYPE, "ptr")}
  %is.float = icmp eq ptr %type, %float
  %offset = select i1 %is.float, i64 {REAL}, i64 {DATA}
  %word.from = getelementptr i8, ptr %x, i64 %offset
  %word = load i64, ptr %word.from
  %word.to = getelementptr i64, ptr %frame, i64 %place
  store i64 %word, ptr %word.to
  br label %told
told:
  br label %each
run:
  %shared = icmp ne i64 %long, 0
{unlocked("call i64 %code(ptr %frame)", "%shared", "i64")}
  call void @Py_DecRef(ptr %kept)
  %no.odd = icmp eq i64 %answer, 0
  %silent = icmp eq i64 %tells, 0
  %good = or i1 %no.odd, %silent
  br i1 %good, label %done, label %drop
done:
  ret ptr %y
drop:
  call void @Py_DecRef(ptr %y)
  br label %nothing
miss:
{word("function", "%table", _MISS, "ptr")}
  %given = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %count, ptr null)
  ret ptr %given
}}

; keep((plan, what it needs), *args)
define ptr @keep(ptr %holder, ptr %args, i64 %count) {{
entry:
  %words = alloca [{PLACE} x i64]
{field("table", "%holder", DATA, "ptr")}
{word("none", "%table", _NONE, "ptr")}
  %asked = getelementptr ptr, ptr %args, i64 1
  %rest = sub i64 %count, 1
  %n = call i64 @asked(ptr %table, ptr %asked, i64 %rest, ptr %words)
  %some = icmp ne i64 %n, 0
  br i1 %some, label %write, label %done
write:
  %plan = load ptr, ptr %args
  call void @remember(ptr %table, ptr %words, i64 %n, ptr %plan)
  br label %done
done:
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}
"""
