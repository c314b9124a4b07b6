"""Instructions on registers: values, arithmetic, and what NumPy's functions are on them.

A `Registers` is one function's text as it grows. `printer.py` walks a function written in Python
and asks it for one instruction after the other.
"""

from __future__ import annotations

import ast
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct.device import host
from funct.kernels.cpu.vectors import INT, TRUTH, Pointer, Type, Value, element

__all__ = ["Registers"]

_STATIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.Pow: operator.pow, ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.AST], dict[str, str]] = {
    ast.Add: {"f": "fadd", "i": "add", "u": "add"},
    ast.Sub: {"f": "fsub", "i": "sub", "u": "sub"},
    ast.Mult: {"f": "fmul", "i": "mul", "u": "mul"},
    ast.Div: {"f": "fdiv"}, ast.FloorDiv: {"u": "udiv"}, ast.Mod: {"u": "urem"},
    ast.LShift: {"i": "shl", "u": "shl"}, ast.RShift: {"i": "ashr", "u": "lshr"},
    ast.BitAnd: {"i": "and", "u": "and", "b": "and"}, ast.BitOr: {"i": "or", "u": "or", "b": "or"},
    ast.BitXor: {"i": "xor", "u": "xor", "b": "xor"},
}  # fmt: skip
_COMPARED = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip

_SINGLE, _WORD = np.dtype(np.float32), np.dtype(np.uint32)
_HALF = Type("f", 16)
_LINE = 64  # bytes that memory gives at once
_HELD = 8  # registers that an instruction may read and write


class Registers:
    """One function's text as it grows."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.rooms: list[str] = []  # lines ahead of all others: in a loop room is made once
        self.declared: set[str] = set()
        self.written: set[str] = set()  # pointers that something is stored through
        self.block = "entry"
        self.count = 0

    # text ----------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("  " + text)

    def emit(self, text: str) -> str:
        """Add what gives a value, and say its name."""
        self.count += 1
        self.line(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def fresh(self, label: str) -> str:
        """A label that is not used yet."""
        self.count += 1
        return f"{label}{self.count}"

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    # values --------------------------------------------------------------------------------------

    def typed(self, v: Any, kind: Type | None = None) -> Value:
        """v as a Value: a number takes the type given, a scalar is spread over its lanes."""
        if isinstance(v, Value):
            return self.spread(v, kind.lanes) if kind and kind.lanes and not v.type.lanes else v
        if isinstance(v, np.generic):
            kind = kind or element(v.dtype)
            v = v.item()
        if kind is None:
            kind = TRUTH if isinstance(v, bool) else Type("f", 64) if isinstance(v, float) else INT
        if not isinstance(v, bool | int | float):
            raise TypeError(f"a kernel cannot hold {v!r} in a register")
        if kind.kind == "f":
            rounded = float(kind.dtype.type(v))
            text = f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
        elif kind.kind == "b":
            text = str(bool(v)).lower()
        else:
            text = str(int(kind.dtype.type(v)))
        if kind.lanes:
            text = "<" + ", ".join([f"{kind.scalar} {text}"] * kind.lanes) + ">"
        return Value(text, kind)

    def spread(self, v: Value, lanes: int) -> Value:
        """A vector of equal lanes."""
        kind = v.type._replace(lanes=lanes)
        one = self.emit(f"insertelement {kind.text} poison, {v.type.text} {v.text}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return Value(
            self.emit(f"shufflevector {kind.text} {one}, {kind.text} poison, {zeros}"), kind
        )

    def both(self, a: Any, b: Any) -> tuple[Value, Value]:
        """Two operands of one type; numbers adopt it."""
        known = [v.type for v in (a, b) if isinstance(v, Value)]
        kind = max(known, key=lambda t: t.lanes)
        a, b = self.typed(a, kind), self.typed(b, kind)
        if a.type != b.type:
            raise TypeError(f"a kernel mixes {a.type} and {b.type}")
        return a, b

    def cast(self, v: Any, to: np.dtype[Any]) -> Value:
        """v as another dtype."""
        if not isinstance(v, Value):
            return self.typed(v, element(to))
        old, new = v.type, element(to)._replace(lanes=v.type.lanes)
        if old == new:
            return v
        if old.kind == "h":
            return self.cast(self._from_brain(v), to)
        if old == _HALF:
            return self.cast(self._from_half(v), to)
        if new.kind == "h":
            return self._to_brain(self.cast(v, _SINGLE))
        if old.kind == "f":
            if new.kind == "f":
                how = "fpext" if new.bits > old.bits else "fptrunc"
            else:
                how = "fptosi" if new.kind == "i" else "fptoui"
        elif new.kind == "f":
            how = "sitofp" if old.kind == "i" else "uitofp"
        elif new.bits == old.bits:
            return Value(v.text, new)
        elif new.bits < old.bits:
            how = "trunc"
        else:
            how = "sext" if old.kind == "i" else "zext"
        return Value(self.emit(f"{how} {old.text} {v.text} to {new.text}"), new)

    def _from_half(self, v: Value) -> Value:
        """A float16 as float32, by a vector of words: LLVM would load it into a part of whichever
        register, and so wait for what that holds.
        """
        bits = self.cast(self.method(v, "view", np.dtype(np.uint16)), np.dtype(np.uint64))
        words = self.emit(f"insertelement <2 x i64> zeroinitializer, i64 {bits.text}, i64 0")
        halves = self.emit(f"bitcast <2 x i64> {words} to <8 x half>")
        four = ", ".join([f"i32 {k}" for k in range(4)])
        halves = self.emit(
            f"shufflevector <8 x half> {halves}, <8 x half> poison, <4 x i32> <{four}>"
        )
        wide = self.emit(f"fpext <4 x half> {halves} to <4 x float>")
        return Value(self.emit(f"extractelement <4 x float> {wide}, i64 0"), element(_SINGLE))

    def _from_brain(self, v: Value) -> Value:
        """A bfloat16 as float32, whose upper half it is."""
        wide = self.cast(Value(v.text, v.type._replace(kind="u")), _WORD)
        return self.method(self.binary(ast.LShift(), wide, 16), "view", _SINGLE)

    def _to_brain(self, v: Value) -> Value:
        """A float32 rounded to the nearest bfloat16, of two the even one; NaN stays NaN."""
        bits = self.method(v, "view", _WORD)
        even = self.binary(ast.BitAnd(), self.binary(ast.RShift(), bits, 16), 1)
        near = self.binary(ast.Add(), self.binary(ast.Add(), bits, 0x7FFF), even)
        quiet = self.binary(ast.BitOr(), bits, 0x400000)
        near = self.where(self.compare(ast.NotEq(), v, v), quiet, near)
        half = self.cast(self.binary(ast.RShift(), near, 16), np.dtype(np.uint16))
        return Value(half.text, half.type._replace(kind="h"))

    def binary(self, op: ast.AST, a: Any, b: Any) -> Any:
        """An operator's result."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            return _STATIC[type(op)](a, b)
        a, b = self.both(a, b)
        name = _ARITHMETIC[type(op)][a.type.kind]
        return Value(self.emit(f"{name} {a.type.text} {a.text}, {b.text}"), a.type)

    def compare(self, op: ast.AST, a: Any, b: Any) -> Any:
        """A comparison's result."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            return _STATIC[type(op)](a, b)
        a, b = self.both(a, b)
        name = _COMPARED[type(op)]  # type: ignore[index]
        if a.type.kind == "f":
            text = f"fcmp {'une' if name == 'ne' else 'o' + name}"
        else:
            signed = "" if name in ("eq", "ne") else {"i": "s", "u": "u", "b": "u"}[a.type.kind]
            text = f"icmp {signed}{name}"
        made = self.emit(f"{text} {a.type.text} {a.text}, {b.text}")
        return Value(made, TRUTH._replace(lanes=a.type.lanes))

    def address(self, owner: Pointer, at: Any) -> str:
        """Where an element stands."""
        at = self.typed(at)
        return self.emit(f"getelementptr {owner.type.text}, ptr {owner.text}, {INT.text} {at.text}")

    # what NumPy's functions and methods are ------------------------------------------------------

    def method(self, v: Value, name: str, *args: Any) -> Value:
        """What a method of a vector gives."""
        if name == "astype":
            return self.cast(v, np.dtype(args[0]))
        if name == "view":
            kind = element(np.dtype(args[0]))._replace(lanes=v.type.lanes)
            if kind.text == v.type.text:
                return Value(v.text, kind)
            return Value(self.emit(f"bitcast {v.type.text} {v.text} to {kind.text}"), kind)
        one = v.type._replace(lanes=0)
        how = {"any": "or", "all": "and", "max": "smax" if one.kind == "i" else "umax"}[name]
        assert one.kind != "f", "of floats NumPy's own has the bits"
        reduced = f"@llvm.vector.reduce.{how}.v{v.type.lanes}i{one.bits}"
        self.declared.add(f"declare {one.text} {reduced}({v.type.text})")
        return Value(self.emit(f"call {one.text} {reduced}({v.type.text} {v.text})"), one)

    def where(self, test: Any, a: Any, b: Any) -> Any:
        """a where the test holds, else b."""
        if not isinstance(test, Value):
            return a if test else b
        if not isinstance(a, Value) and not isinstance(b, Value):
            a = self.typed(a)
        a, b = self.both(a, b)
        if test.type.lanes and not a.type.lanes:
            a, b = self.spread(a, test.type.lanes), self.spread(b, test.type.lanes)
        chosen = f"{a.type.text} {a.text}, {b.type.text} {b.text}"
        return Value(self.emit(f"select {test.type.text} {test.text}, {chosen}"), a.type)

    def smaller(self, a: Any, b: Any) -> Any:
        """The smaller one."""
        return self.where(self.compare(ast.Lt(), b, a), b, a)

    def root(self, v: Value) -> Value:
        """The square root."""
        return self._intrinsic("sqrt", v)

    def floor(self, v: Value) -> Value:
        """The next whole number below."""
        return self._intrinsic("floor", v)

    def rint(self, v: Value) -> Value:
        """The nearest whole number, of two the even one."""
        return self._intrinsic("rint", v)

    def fused(self, a: Any, b: Any, c: Any) -> Value:
        """a b + c; instructions of its own where the processor has none for it."""
        b, c = self.both(b, self.both(a, c)[1])
        return self._intrinsic("fmuladd", self.typed(a, c.type), b, c)

    def _intrinsic(self, name: str, *given: Value) -> Value:
        kind, text = given[0].type, given[0].type.text
        called = f"@llvm.{name}.{f'v{kind.lanes}' if kind.lanes else ''}f{kind.bits}"
        self.declared.add(f"declare {text} {called}({', '.join([text] * len(given))})")
        operands = ", ".join([f"{text} {v.text}" for v in given])
        return Value(self.emit(f"call {text} {called}({operands})"), kind)

    def loaded(self, x: Pointer, at: Any, count: int) -> Value:
        """count elements of x from at on."""
        kind = x.type._replace(lanes=count)
        align = x.type.bits // 8
        return Value(self.emit(f"load {kind.text}, ptr {self.address(x, at)}, align {align}"), kind)

    def stepped(self, x: Pointer, at: Any, step: int, count: int) -> Value:
        """count elements of x from at on, each a step behind the other."""
        v = self.loaded(x, at, step * count)
        if step == 1:
            return v
        kind = v.type._replace(lanes=count)
        taken = ", ".join([f"i32 {k * step}" for k in range(count)])
        mask = f"<{count} x i32> <{taken}>"
        return Value(
            self.emit(f"shufflevector {v.type.text} {v.text}, {v.type.text} poison, {mask}"), kind
        )

    def backwards(self, v: Value) -> Value:
        """The elements of a vector, the last one first."""
        return self.shuffled(v, None, range(v.type.lanes)[::-1])

    def asked(self, x: Pointer, at: Any, count: int) -> None:
        """Ask the memory for count elements of x from at on, which may lie outside."""
        self.declared.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        for k in range(0, count * x.type.bits // 8, _LINE):
            near = self.binary(ast.Add(), at, k * 8 // x.type.bits)
            where = self.address(x, near)
            self.line(f"call void @llvm.prefetch.p0(ptr {where}, i32 0, i32 3, i32 1)")

    def stored(self, x: Pointer, at: Any, v: Any) -> None:
        """Write v into x at an index."""
        v = self.typed(v)
        assert v.type._replace(lanes=0) == x.type, (v.type, x.type)
        where = self.address(x, at)
        self.written.add(x.text)
        self.line(f"store {v.type.text} {v.text}, ptr {where}, align {x.type.bits // 8}")

    def in_step(self, v: Value) -> Value:
        """v, whose registers an instruction seems to read and write that is none."""
        kind = v.type
        lanes = host().vector_bytes * 8 // kind.bits
        count = kind.lanes // lanes
        if not 2 <= count <= _HELD or host().vector_bytes < 32:
            return v
        part = kind._replace(lanes=lanes)
        parts = [self.shuffled(v, None, range(k, k + lanes)) for k in range(0, kind.lanes, lanes)]
        tied = ",".join(["=v"] * count + [str(k) for k in range(count)])
        given = ", ".join([f"{part.text} {p.text}" for p in parts])
        made = "{" + ", ".join([part.text] * count) + "}"
        held = self.emit(f'call {made} asm "", "{tied}"({given})')
        parts = [Value(self.emit(f"extractvalue {made} {held}, {k}"), part) for k in range(count)]
        while len(parts) > 1:
            whole = range(2 * parts[0].type.lanes)
            parts = [self.shuffled(a, b, whole) for a, b in zip(*[iter(parts)] * 2, strict=True)]
        return parts[0]

    def detached(self, v: Value) -> Value:
        """v, which is no loaded value any more."""
        return Value(self.emit(f"freeze {v.type.text} {v.text}"), v.type)

    def shuffled(self, a: Value, b: Value | None, at: Sequence[int]) -> Value:
        """The elements of one vector, or of two, at these places."""
        second = b.text if b else "poison"
        places = f"<{len(at)} x i32> <{', '.join([f'i32 {k}' for k in at])}>"
        text = f"shufflevector {a.type.text} {a.text}, {a.type.text} {second}, {places}"
        return Value(self.emit(text), a.type._replace(lanes=len(at)))

    def gathered(self, x: Pointer, at: Value, start: Any = 0) -> Value:
        """The elements of x at a vector of indices, counted from start on."""
        kind, n = x.type._replace(lanes=at.type.lanes), at.type.lanes
        first = self.address(x, start)
        where = self.emit(f"getelementptr {x.type.text}, ptr {first}, {at.type.text} {at.text}")
        name = f"@llvm.masked.gather.v{n}{'f' if x.type.kind == 'f' else 'i'}{x.type.bits}.v{n}p0"
        whole = f"<{n} x i1>"
        self.declared.add(f"declare {kind.text} {name}(<{n} x ptr>, i32, {whole}, {kind.text})")
        every = "<" + ", ".join(["i1 true"] * n) + ">"
        operands = f"<{n} x ptr> {where}, i32 {x.type.bits // 8}, {whole} {every}"
        return Value(self.emit(f"call {kind.text} {name}({operands}, {kind.text} poison)"), kind)

    def packed(self, v: Value, keep: Value) -> Value:
        """The elements of a vector where `keep` holds, and behind them anything."""
        kind, mask = v.type, keep.type.text
        lanes = f"v{kind.lanes}{'f' if kind.kind == 'f' else 'i'}{kind.bits}"
        name = f"@llvm.x86.avx512.mask.compress.{lanes}"
        self.declared.add(f"declare {kind.text} {name}({kind.text}, {kind.text}, {mask})")
        operands = f"{kind.text} {v.text}, {kind.text} {v.text}, {mask} {keep.text}"
        return Value(self.emit(f"call {kind.text} {name}({operands})"), kind)

    def chosen(self, a: Value, b: Value, at: Value) -> Value:
        """The elements of two vectors at a vector of indices."""
        kind, places = a.type, at.type.text
        short = {"f32": "ps", "f64": "pd"}.get(f"{kind.kind}{kind.bits}", "dq"[kind.bits == 64])
        name = f"@llvm.x86.avx512.vpermi2var.{short}.512"
        self.declared.add(f"declare {kind.text} {name}({kind.text}, {places}, {kind.text})")
        operands = f"{kind.text} {a.text}, {places} {at.text}, {kind.text} {b.text}"
        return Value(self.emit(f"call {kind.text} {name}({operands})"), kind)

    def room(self, dtype: Any, count: int) -> Pointer:
        """An array on the stack."""
        self.count += 1
        name, kind = f"%v{self.count}", element(np.dtype(dtype))
        self.rooms.append(f"  {name} = alloca [{count} x {kind.scalar}], align {_LINE}")
        return Pointer(name, kind)

    def many(self, keep: Value) -> Value:
        """How often a vector of truth holds."""
        bits = f"i{keep.type.lanes}"
        name = f"@llvm.ctpop.{bits}"
        self.declared.add(f"declare {bits} {name}({bits})")
        held = self.emit(f"bitcast {keep.type.text} {keep.text} to {bits}")
        held = self.emit(f"call {bits} {name}({bits} {held})")
        return Value(self.emit(f"zext {bits} {held} to i64"), INT)

    def bits(self, keep: Value) -> Value:
        """A vector of truth as one number."""
        held = self.emit(f"bitcast {keep.type.text} {keep.text} to i{keep.type.lanes}")
        return Value(self.emit(f"zext i{keep.type.lanes} {held} to i64"), INT)

    def lanes(self, count: int, dtype: Any) -> Value:
        """The vector 0, 1, 2, ..."""
        kind = element(np.dtype(dtype))._replace(lanes=count)
        parts = ", ".join([f"{kind.scalar} {k}" for k in range(count)])
        return Value(f"<{parts}>", kind)
