"""The LLVM text that calls NumPy's loops: for an op on small arrays, or one after another.

Note [Loops]: `direct` calls NumPy's loop as NumPy would: same function, count and strides, so the
bits are NumPy's. It takes only what that is simple for: few elements, one dtype, one shape beside
single elements; fewer of functions that eager code has kernels of its own for. Where the loop
raises a flag of floating point NumPy does it again, and warns.
A square is a product, as in `kernels.power`, to which other whole exponents are left, and halves.
"""

from __future__ import annotations

from funct.kernels.cpu.calls import (
    ALIGNED,
    DATA,
    DENSE,
    DTYPE,
    FLAGS,
    RANK,
    SHAPE,
    STRIDES,
    TYPE,
    field,
    word,
)
from funct.transforms.tape.words import KINDS

__all__ = ["MOST", "loops_text"]

MOST = 4096  # elements of an array for which NumPy is not asked
_EXACT = 1 << 24  # integers that both floating dtypes hold


def loops_text(flags: int) -> str:
    """The text of `direct`. flags: those at which NumPy warns, as this processor has them."""
    return f"""
; Whether an array that is not dense repeats one element along all axes.
define internal i1 @still(ptr %x) {{
entry:
{field("rank", "%x", RANK, "i32")}
{field("strides", "%x", STRIDES, "ptr")}
{field("flags", "%x", FLAGS, "i32")}
  %aligned = and i32 %flags, {ALIGNED}
  %right = icmp ne i32 %aligned, 0
  br i1 %right, label %next, label %no
next:
  %k = phi i32 [ 0, %entry ], [ %k.next, %look ]
  %more = icmp slt i32 %k, %rank
  br i1 %more, label %look, label %yes
look:
  %stride.at = getelementptr i64, ptr %strides, i32 %k
  %stride = load i64, ptr %stride.at
  %zero = icmp eq i64 %stride, 0
  %k.next = add i32 %k, 1
  br i1 %zero, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

define internal i1 @same.shape(ptr %x, ptr %y) {{
entry:
{field("rank", "%x", RANK, "i32")}
{field("other", "%y", RANK, "i32")}
{field("ours", "%x", SHAPE, "ptr")}
{field("theirs", "%y", SHAPE, "ptr")}
  %right = icmp eq i32 %rank, %other
  br i1 %right, label %next, label %no
next:
  %k = phi i32 [ 0, %entry ], [ %k.next, %look ]
  %more = icmp slt i32 %k, %rank
  br i1 %more, label %look, label %yes
look:
  %a.at = getelementptr i64, ptr %ours, i32 %k
  %a = load i64, ptr %a.at
  %b.at = getelementptr i64, ptr %theirs, i32 %k
  %b = load i64, ptr %b.at
  %same = icmp eq i64 %a, %b
  %k.next = add i32 %k, 1
  br i1 %same, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}

; Note [Loops]: a new ndarray of a loop on arrays and Python's numbers, or null without an error.
define internal ptr @direct(ptr %kinds, ptr %loops, i64 %n, ptr %operands) {{
entry:
  %places = alloca [4 x ptr]
  %steps = alloca [4 x i64]
  %numbers = alloca [4 x double]
  %size.at = alloca i64
  %called = alloca [2 x ptr]
  %called.data.at = getelementptr ptr, ptr %called, i64 1
{word("ndarray", "%kinds", KINDS["ndarray"], "ptr")}
{word("float", "%kinds", KINDS["float"], "ptr")}
{word("int", "%kinds", KINDS["int"], "ptr")}
{word("f4", "%kinds", KINDS["f4"], "ptr")}
{word("f8", "%kinds", KINDS["f8"], "ptr")}
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %fits ]
  %dtype = phi ptr [ null, %entry ], [ %dtype.next, %fits ]
  %lead = phi ptr [ null, %entry ], [ %lead.next, %fits ]
  %all = icmp eq i64 %k, %n
  br i1 %all, label %chosen, label %look
look:
  %x.at = getelementptr ptr, ptr %operands, i64 %k
  %x = load ptr, ptr %x.at
  %gone = icmp eq ptr %x, null  ; a donated buffer
  br i1 %gone, label %no, label %there
there:
{field("type", "%x", TYPE, "ptr")}
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %array, label %number
number:
  %is.float = icmp eq ptr %type, %float
  %is.int = icmp eq ptr %type, %int
  %is.number = or i1 %is.float, %is.int
  br i1 %is.number, label %fits, label %no
array:
{field("d", "%x", DTYPE, "ptr")}
  %first = icmp eq ptr %dtype, null
  %alike = icmp eq ptr %d, %dtype
  %right = or i1 %first, %alike
{field("rank", "%x", RANK, "i32")}
{field("flags", "%x", FLAGS, "i32")}
  %masked = and i32 %flags, {DENSE}
  %dense = icmp eq i32 %masked, {DENSE}
  br i1 %right, label %laid, label %no
laid:
  br i1 %dense, label %ranked, label %strided
strided:
  %still = call i1 @still(ptr %x)
  br i1 %still, label %ranked, label %no
ranked:
  %point = icmp eq i32 %rank, 0
  br i1 %point, label %fits, label %axes
axes:
  %none = icmp eq ptr %lead, null
  br i1 %none, label %fits, label %compare
compare:
  %same = call i1 @same.shape(ptr %lead, ptr %x)
  br i1 %same, label %fits, label %no
fits:
  %dtype.next = phi ptr [ %dtype, %number ], [ %d, %ranked ], [ %d, %axes ], [ %d, %compare ]
  %lead.next = phi ptr [ %lead, %number ], [ %lead, %ranked ], [ %x, %axes ], [ %lead, %compare ]
  %k.next = add i64 %k, 1
  br label %next

chosen:
  %single = icmp eq ptr %dtype, %f4
  %double = icmp eq ptr %dtype, %f8
  %known = or i1 %single, %double
{word("power.single", "%kinds", KINDS["power.single"], "ptr")}
{word("power.double", "%kinds", KINDS["power.double"], "ptr")}
  %power = select i1 %single, ptr %power.single, ptr %power.double
  %from = select i1 %single, i64 0, i64 2
  %bytes = select i1 %single, i64 4, i64 8
  %loop.at = getelementptr ptr, ptr %loops, i64 %from
  %loop = load ptr, ptr %loop.at
  %data.at = getelementptr ptr, ptr %loop.at, i64 1
  %data = load ptr, ptr %data.at
  store ptr %loop, ptr %called
  store ptr %data, ptr %called.data.at
  %some = icmp ne ptr %loop, null
  %good = and i1 %known, %some
  br i1 %good, label %measure, label %no
measure:
  %is.point = icmp eq ptr %lead, null
  br i1 %is.point, label %sized, label %lengths
lengths:
{field("axes.count", "%lead", RANK, "i32")}
{field("shape", "%lead", SHAPE, "ptr")}
  br label %axis
axis:
  %a = phi i32 [ 0, %lengths ], [ %a.next, %times ]
  %product = phi i64 [ 1, %lengths ], [ %product.next, %times ]
  %more = icmp slt i32 %a, %axes.count
  br i1 %more, label %times, label %sized
times:
  %length.at = getelementptr i64, ptr %shape, i32 %a
  %length = load i64, ptr %length.at
  %product.next = mul i64 %product, %length
  %a.next = add i32 %a, 1
  br label %axis
sized:
  %size = phi i64 [ 1, %measure ], [ %product, %axis ]
  %given.rank = phi i32 [ 0, %measure ], [ %axes.count, %axis ]
  %given.shape = phi ptr [ null, %measure ], [ %shape, %axis ]
  store i64 %size, ptr %size.at
  %below = sub i64 %size, 1
{word("most", "%loops", 4)}
  %own.few = icmp ult i64 %below, %most
  %any.few = icmp ult i64 %below, {MOST}
  %may.square = icmp eq ptr %loop, %power
  %few = select i1 %may.square, i1 %any.few, i1 %own.few
  %one = icmp eq i64 %size, 1
  %step = select i1 %one, i64 0, i64 %bytes
  br i1 %few, label %before, label %no
before:
  %left.over = call i32 @fetestexcept(i32 {flags})
  %is.clear = icmp eq i32 %left.over, 0
  br i1 %is.clear, label %fill, label %clear
clear:
  %ignored = call i32 @feclearexcept(i32 {flags})
  br label %fill

fill:
  %j = phi i64 [ 0, %before ], [ 0, %clear ], [ %j.next, %filled ]
  %full = icmp eq i64 %j, %n
  br i1 %full, label %make, label %put
put:
  %y.at = getelementptr ptr, ptr %operands, i64 %j
  %y = load ptr, ptr %y.at
  %place.at = getelementptr ptr, ptr %places, i64 %j
  %step.at = getelementptr i64, ptr %steps, i64 %j
  %number.at = getelementptr double, ptr %numbers, i64 %j
  %is.power = icmp eq ptr %loop, %power
  %is.second = icmp eq i64 %j, 1
  %exponent = and i1 %is.power, %is.second
{field("y.type", "%y", TYPE, "ptr")}
  %y.array = icmp eq ptr %y.type, %ndarray
  br i1 %y.array, label %elements, label %convert
elements:
{field("y.data", "%y", DATA, "ptr")}
{field("y.rank", "%y", RANK, "i32")}
{field("y.flags", "%y", FLAGS, "i32")}
  store ptr %y.data, ptr %place.at
  %y.dense = and i32 %y.flags, {DENSE & ~ALIGNED}
  %y.still = icmp eq i32 %y.dense, 0
  %y.point = icmp eq i32 %y.rank, 0
  %y.stays = or i1 %y.still, %y.point
  %y.step = select i1 %y.stays, i64 0, i64 %step
  store i64 %y.step, ptr %step.at
  %y.single = icmp eq i64 %y.step, 0
  %y.many = xor i1 %own.few, true
  %y.not.known = or i1 %y.single, %y.many
  %y.may.be.half = and i1 %y.not.known, %exponent
  br i1 %y.may.be.half, label %no, label %filled
convert:
  store ptr %number.at, ptr %place.at
  store i64 0, ptr %step.at
  %y.float = icmp eq ptr %y.type, %float
  br i1 %y.float, label %real, label %integer
real:
{field("real.number", "%y", DATA, "double")}
  br label %converted
integer:
  %whole = call i64 @PyLong_AsLongLong(ptr %y)
  %moved = add i64 %whole, {_EXACT}
  %exact = icmp ule i64 %moved, {2 * _EXACT}
  %whole.number = sitofp i64 %whole to double
  %odd = icmp eq i64 %whole, -1
  br i1 %odd, label %suspect, label %proper
suspect:
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %converted, label %forget
proper:
  br i1 %exact, label %converted, label %no
converted:
  %value = phi double [ %real.number, %real ], [ %whole.number, %suspect ],
                      [ %whole.number, %proper ]
  br i1 %exponent, label %power.by, label %cast
power.by:
  %two = fcmp oeq double %value, 2.0
  br i1 %two, label %square, label %other.power
square:
  %times.at = getelementptr i64, ptr %kinds, i64 {KINDS["times"]}
  %product.at = getelementptr ptr, ptr %times.at, i64 %from
  %product.loop = load ptr, ptr %product.at
  %product.data.at = getelementptr ptr, ptr %product.at, i64 1
  %product.data = load ptr, ptr %product.data.at
  store ptr %product.loop, ptr %called
  store ptr %product.data, ptr %called.data.at
  %first.place = load ptr, ptr %places
  %first.step = load i64, ptr %steps
  store ptr %first.place, ptr %place.at
  store i64 %first.step, ptr %step.at
  %is.product = icmp ne ptr %product.loop, null
  br i1 %is.product, label %filled, label %no
other.power:  ; `kernels.power` has ways of its own for whole numbers and for halves
  %twice = fmul double %value, 2.0
  %cut = call double @llvm.trunc.f64(double %twice)
  %is.half = fcmp oeq double %cut, %twice
  %are.many = xor i1 %own.few, true
  %own = or i1 %is.half, %are.many
  br i1 %own, label %no, label %cast
cast:
  br i1 %single, label %narrow, label %wide
narrow:
  %short = fptrunc double %value to float
  store float %short, ptr %number.at
  %lossy = call i32 @fetestexcept(i32 {flags})  ; which some loops clear
  %is.good = icmp eq i32 %lossy, 0
  br i1 %is.good, label %filled, label %no
wide:
  store double %value, ptr %number.at
  br label %filled
filled:
  %j.next = add i64 %j, 1
  br label %fill

make:
  call void @Py_IncRef(ptr %dtype)
  %out = call ptr @PyArray_NewFromDescr(ptr %ndarray, ptr %dtype, i32 %given.rank,
    ptr %given.shape, ptr null, ptr null, i32 0, ptr null)
  %failed = icmp eq ptr %out, null
  br i1 %failed, label %forget, label %run
run:
{field("out.data", "%out", DATA, "ptr")}
  %out.place = getelementptr ptr, ptr %places, i64 %n
  store ptr %out.data, ptr %out.place
  %out.step = getelementptr i64, ptr %steps, i64 %n
  store i64 %step, ptr %out.step
  %called.loop = load ptr, ptr %called
  %called.data = load ptr, ptr %called.data.at
  call void %called.loop(ptr %places, ptr %size.at, ptr %steps, ptr %called.data)
  %raised = call i32 @fetestexcept(i32 {flags})
  %quiet = icmp eq i32 %raised, 0
  br i1 %quiet, label %give, label %again
give:
  ret ptr %out
again:
  %ignored.too = call i32 @feclearexcept(i32 {flags})
  call void @Py_DecRef(ptr %out)
  ret ptr null
forget:
  call void @PyErr_Clear()
  ret ptr null
no:
  ret ptr null
}}
"""
