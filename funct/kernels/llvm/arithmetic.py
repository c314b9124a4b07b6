"""Values of one function as it is printed: value numbering, constants, vectors, arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from funct.kernels.llvm.values import BOOL, I64, Type, Value, constant_text, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from funct.kernels.llvm.emitter import Module

__all__ = ["Arithmetic", "Index"]

Comparison = Literal["lt", "le", "gt", "ge", "eq", "ne"]
Index = Value | int

_FLOAT_COMPARISON = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}


class Arithmetic:
    """Prints instructions that give values. One operand of two may be a Python number."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"
        self._known: dict[str, Value] = {}

    # Printing

    def line(self, text: str) -> None:
        """Print an instruction that gives no value."""
        self._lines.append("  " + text)

    def emit(self, type: Type, text: str, *, pure: bool = True) -> Value:
        """Print an instruction that gives a value, or find the value if it is known in this scope.

        pure: equal text gives an equal value (loads and calls with effects do not).
        """
        known = self._known.get(text) if pure else None
        if known is not None:
            return known if known.type is type else Value(self, known.name, type)
        self._count += 1
        value = Value(self, f"%v{self._count}", type)
        self._lines.append(f"  {value.name} = {text}")
        if pure:
            self._known[text] = value
        return value

    def label(self, name: str) -> None:
        """Begin a block. What was known stays known: enter it only where that dominates."""
        self._lines.append(name + ":")
        self._block = name

    def fresh(self, prefix: str) -> str:
        """A name that no other block has."""
        self._count += 1
        return f"{prefix}{self._count}"

    # Constants and vectors

    def _index(self, index: Index) -> Value:
        return index if isinstance(index, Value) else self.constant(I64, index)

    def constant(self, type: Type, number: float) -> Value:
        """A number in every lane."""
        text = constant_text(type, number)
        if type.lanes > 1:
            text = f"splat ({type.scalar.text} {text})"
        return Value(self, text, type)

    def vector(self, type: Type, numbers: Iterable[float]) -> Value:
        """A constant vector with a number for each lane."""
        scalar = type.scalar
        cells = [f"{scalar.text} {constant_text(scalar, number)}" for number in numbers]
        return Value(self, f"<{', '.join(cells)}>" if type.lanes > 1 else cells[0].split()[1], type)

    def splat(self, x: Value, lanes: int) -> Value:
        """A scalar in so many lanes."""
        if lanes == 1:
            return x
        if x.name[0] not in "%@":  # a constant
            return Value(self, f"splat ({x!r})", x.type.of(lanes))
        type = x.type.of(lanes)
        first = self.emit(type, f"insertelement {type.text} poison, {x!r}, i32 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self.emit(type, f"shufflevector {first!r}, {type.text} poison, {zeros}")

    def shuffle(self, x: Value, y: Value | None, lanes: Sequence[int]) -> Value:
        """The lanes of x, then of y, that are named; a scalar where only one is named."""
        if len(lanes) == 1 and y is None:
            return self.extract(x, lanes[0])
        type = x.type.of(len(lanes))
        other = repr(y) if y is not None else f"{x.type.text} poison"
        mask = ", ".join([f"i32 {k}" for k in lanes])
        return self.emit(type, f"shufflevector {x!r}, {other}, <{len(lanes)} x i32> <{mask}>")

    def piece(self, x: Value, start: int, lanes: int) -> Value:
        """So many lanes of x, from a multiple of that on.

        Unlike `shuffle` it costs nothing where x has more lanes than vectors have, and an odd rest.
        """
        if lanes == 1:
            return self.extract(x, start)
        type = x.type.of(lanes)
        name = f"@llvm.vector.extract.{type.suffix}.{x.type.suffix}"
        self.module.declare(name, f"declare {type.text} {name}({x.type.text}, i64)")
        return self.emit(type, f"call {type.text} {name}({x!r}, i64 {start})")

    def joined(self, parts: Sequence[Value]) -> Value:
        """All lanes of vectors of one length, one after the other; their number is a power of 2."""
        while len(parts) > 1:
            both = range(2 * parts[0].type.lanes)
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.shuffle(x, y, both) for x, y in pairs]
        return parts[0]

    def extract(self, x: Value, lane: Index) -> Value:
        """One lane."""
        if x.type.lanes == 1:
            return x
        return self.emit(x.type.scalar, f"extractelement {x!r}, {self._index(lane)!r}")

    def insert(self, x: Value, lane: Index, y: Value) -> Value:
        """x with y in one lane."""
        if x.type.lanes == 1:
            return y
        return self.emit(x.type, f"insertelement {x!r}, {y!r}, {self._index(lane)!r}")

    def lanes(self, type: Type) -> Value:
        """0, 1, 2 … in the lanes of an integer type."""
        return self.vector(type, range(type.lanes))

    def first_lanes(self, lanes: int, count: Value) -> Value:
        """The mask whose first `count` (i64, at least 0) lanes are on."""
        narrow = typed("i32", lanes)
        most = self.constant(I64, lanes)
        count = self.convert(self.select(self.compare("lt", count, most), count, most), "i32")
        return self.compare("lt", self.lanes(narrow), self.splat(count, lanes))

    def reduce(self, x: Value, combine: Callable[[Value, Value], Value], lanes: int = 1) -> Value:
        """All lanes in so many: halves are combined, an order of our own.

        The numbers of lanes are powers of two.
        """
        while x.type.lanes > lanes:
            half = x.type.lanes // 2
            low, high = range(half), range(half, 2 * half)
            x = combine(self.shuffle(x, None, low), self.shuffle(x, None, high))
        return x

    # Arithmetic

    def _both(self, x: Value | float, y: Value | float) -> tuple[Value, Value]:
        if not isinstance(x, Value):
            assert isinstance(y, Value), "one operand must be a value"
            x = self.constant(y.type, x)
        elif not isinstance(y, Value):
            y = self.constant(x.type, y)
        assert x.type is y.type, f"types differ: {x!r} and {y!r}"
        return x, y

    def _binary(self, op: str, x: Value | float, y: Value | float) -> Value:
        x, y = self._both(x, y)
        return self.emit(x.type, f"{op} {x!r}, {y.name}")

    def add(self, x: Value | float, y: Value | float) -> Value:
        """x + y."""
        x, y = self._both(x, y)
        return self._binary("fadd" if x.type.is_float else "add", x, y)

    def sub(self, x: Value | float, y: Value | float) -> Value:
        """x - y."""
        x, y = self._both(x, y)
        return self._binary("fsub" if x.type.is_float else "sub", x, y)

    def mul(self, x: Value | float, y: Value | float) -> Value:
        """x * y."""
        x, y = self._both(x, y)
        return self._binary("fmul" if x.type.is_float else "mul", x, y)

    def div(self, x: Value | float, y: Value | float) -> Value:
        """x / y; of integers the quotient towards zero, undefined for y = 0."""
        x, y = self._both(x, y)
        op = "fdiv" if x.type.is_float else "sdiv" if x.type.is_signed else "udiv"
        return self._binary(op, x, y)

    def rem(self, x: Value | float, y: Value | float) -> Value:
        """What `div` leaves, with the sign of x; of floats C's fmod."""
        x, y = self._both(x, y)
        op = "frem" if x.type.is_float else "srem" if x.type.is_signed else "urem"
        return self._binary(op, x, y)

    def neg(self, x: Value) -> Value:
        """-x; of a float the sign bit alone changes."""
        return self.emit(x.type, f"fneg {x!r}") if x.type.is_float else self.sub(0, x)

    def bitand(self, x: Value, y: Value | int) -> Value:
        """x & y, of integers and masks."""
        return self._binary("and", x, y)

    def bitor(self, x: Value, y: Value | int) -> Value:
        """x | y, of integers and masks."""
        return self._binary("or", x, y)

    def bitxor(self, x: Value, y: Value | int) -> Value:
        """x ^ y, of integers and masks."""
        return self._binary("xor", x, y)

    def shl(self, x: Value, y: Value | int) -> Value:
        """x << y; undefined for y as large as the width."""
        return self._binary("shl", x, y)

    def shr(self, x: Value, y: Value | int) -> Value:
        """x >> y: copies of the sign come in for signed elements, zeros for unsigned ones."""
        return self._binary("ashr" if x.type.is_signed else "lshr", x, y)

    def fma(self, x: Value | float, y: Value | float, z: Value | float) -> Value:
        """x * y + z, rounded once."""
        type = next(v.type for v in (x, y, z) if isinstance(v, Value))
        operands = [v if isinstance(v, Value) else self.constant(type, v) for v in (x, y, z)]
        return self.intrinsic("fma", *operands)

    def intrinsic(self, name: str, *operands: Value, tail: str = "") -> Value:
        """`llvm.name` of operands of one type, which is the result's. tail: constant arguments."""
        type = operands[0].type
        full = f"@llvm.{name}.{type.suffix}"
        extra = f", {tail}" if tail else ""
        kinds = extra and ", " + ", ".join([part.split()[0] for part in tail.split(", ")])
        listed = ", ".join([type.text] * len(operands))
        self.module.declare(full, f"declare {type.text} {full}({listed}{kinds})")
        given = ", ".join([repr(v) for v in operands])
        return self.emit(type, f"call {type.text} {full}({given}{extra})")

    def abs(self, x: Value) -> Value:
        """|x|; the least signed integer stays itself."""
        if x.type.is_float:
            return self.intrinsic("fabs", x)
        return self.intrinsic("abs", x, tail="i1 false") if x.type.is_signed else x

    def sqrt(self, x: Value) -> Value:
        """The square root, correctly rounded."""
        return self.intrinsic("sqrt", x)

    def floor(self, x: Value) -> Value:
        """The integer below."""
        return self.intrinsic("floor", x)

    def ceil(self, x: Value) -> Value:
        """The integer above."""
        return self.intrinsic("ceil", x)

    def trunc(self, x: Value) -> Value:
        """The integer towards zero."""
        return self.intrinsic("trunc", x)

    def round(self, x: Value) -> Value:
        """The nearest integer; of two the even one."""
        return self.intrinsic("roundeven", x)

    def copysign(self, x: Value, y: Value | float) -> Value:
        """|x| with the sign of y."""
        return self.intrinsic("copysign", *self._both(x, y))

    def max(self, x: Value | float, y: Value | float) -> Value:
        """x if x > y else y, one instruction: y where either is NaN."""
        x, y = self._both(x, y)
        if not x.type.is_float and x.type.element != "i1":
            return self.intrinsic("smax" if x.type.is_signed else "umax", x, y)
        return self.select(self.compare("gt", x, y), x, y)

    def min(self, x: Value | float, y: Value | float) -> Value:
        """x if x < y else y, one instruction: y where either is NaN."""
        x, y = self._both(x, y)
        if not x.type.is_float and x.type.element != "i1":
            return self.intrinsic("smin" if x.type.is_signed else "umin", x, y)
        return self.select(self.compare("lt", x, y), x, y)

    def maximum(self, x: Value | float, y: Value | float) -> Value:
        """The larger one; NaN where either is NaN."""
        x, y = self._both(x, y)
        larger = self.max(x, y)
        return self.select(self.isnan(x), x, larger) if x.type.is_float else larger

    def minimum(self, x: Value | float, y: Value | float) -> Value:
        """The smaller one; NaN where either is NaN."""
        x, y = self._both(x, y)
        smaller = self.min(x, y)
        return self.select(self.isnan(x), x, smaller) if x.type.is_float else smaller

    def first_maximum(self, x: Value, y: Value) -> Value:
        """The larger one, x where they are equal; NaN where either is NaN."""
        return self.select((x >= y) | self.isnan(x), x, y)

    def first_minimum(self, x: Value, y: Value) -> Value:
        """The smaller one, x where they are equal; NaN where either is NaN."""
        return self.select((x <= y) | self.isnan(x), x, y)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """c0 + c1 x + c2 x² + …: even and odd powers apart, so that products do not wait; a
        constant is read by the instruction that adds it.
        """
        terms = [self.constant(x.type, c) for c in coefficients]
        if len(terms) < 2:
            return terms[0]
        if len(terms) < 4:
            return self.chain(x, terms)
        square = x * x
        even, odd = self.chain(square, terms[::2]), self.chain(square, terms[1::2])
        return self.fma(odd, x, even)

    def chain(self, x: Value, coefficients: Sequence[Value | float]) -> Value:
        """`polynomial` of two terms or more, the last first: fewest operations, each waits."""
        total = self.fma(coefficients[-1], x, coefficients[-2])
        for c in coefficients[-3::-1]:
            total = self.fma(total, x, c)
        return total

    # Comparisons and conversions

    def compare(self, how: Comparison, x: Value | float, y: Value | float) -> Value:
        """A mask. NaN is unequal to everything, and neither less nor greater."""
        x, y = self._both(x, y)
        if x.type.is_float:
            text = f"fcmp {_FLOAT_COMPARISON[how]}"
        else:
            sign = "" if how in ("eq", "ne") else "s" if x.type.is_signed else "u"
            text = f"icmp {sign}{how}"
        return self.emit(x.type.mask, f"{text} {x!r}, {y.name}")

    def eq(self, x: Value | float, y: Value | float) -> Value:
        """The mask x = y."""
        return self.compare("eq", x, y)

    def ne(self, x: Value | float, y: Value | float) -> Value:
        """The mask x ≠ y."""
        return self.compare("ne", x, y)

    def isnan(self, x: Value) -> Value:
        """The mask where x is NaN."""
        return self.emit(x.type.mask, f"fcmp uno {x!r}, {x.name}")

    def any(self, mask: Value) -> Value:
        """Whether the mask is on in some lane, as a scalar mask."""
        if mask.type.lanes == 1:
            return mask
        bits = self.emit(BOOL, f"bitcast {mask!r} to i{mask.type.lanes}")
        return self.emit(BOOL, f"icmp ne i{mask.type.lanes} {bits.name}, 0")

    def select(self, mask: Value, x: Value | float, y: Value | float) -> Value:
        """x where the mask is on, else y. A scalar mask takes whole vectors."""
        x, y = self._both(x, y)
        return self.emit(x.type, f"select {mask!r}, {x!r}, {y!r}")

    def bitcast(self, x: Value, type: Type) -> Value:
        """The same bits as another type."""
        if x.type.text == type.text:
            return Value(self, x.name, type)
        return self.emit(type, f"bitcast {x!r} to {type.text}")

    def convert(self, x: Value, element: str) -> Value:
        """The same numbers in another element, rounded to nearest even; floats to integers are cut.

        A float that its integer type does not hold is undefined. To "i1": x ≠ 0.
        """
        source, target = x.type, x.type.with_element(element)
        if source is target:
            return x
        if source.element == "bf16":
            wide = self._extend(x, source.with_element("u32")) << 16
            return self.convert(self.bitcast(wide, source.with_element("f32")), element)
        if source.element == "f64" and element == "f16":
            return self.convert(self._to_marked_float32(x), element)
        if source.element == "f64" and element == "bf16":
            return self.convert(self._to_marked_float32(self._in_steps_of_bfloat16(x)), element)
        if element == "bf16" and not source.is_float and source.bits > 16:
            exactly = "f32" if source.bits == 32 else "f64"
            return self.convert(self.convert(self._cut_to_odd(x), exactly), element)
        if element == "bf16":
            return self._to_bfloat16(self.convert(x, "f32"), exact=source.bits <= 8)
        if element == "i1":
            return self.compare("ne", x, 0)
        if source.is_float and target.is_float:
            op = "fpext" if target.bits > source.bits else "fptrunc"
        elif source.is_float:
            op = "fptosi" if target.is_signed else "fptoui"
        elif target.is_float:
            op = "sitofp" if source.is_signed else "uitofp"
        elif target.bits == source.bits:
            return Value(self, x.name, target)
        elif target.bits < source.bits:
            op = "trunc"
        else:
            return self._extend(x, target)
        return self.emit(target, f"{op} {x!r} to {target.text}")

    def _extend(self, x: Value, target: Type) -> Value:
        return self.emit(target, f"{'sext' if x.type.is_signed else 'zext'} {x!r} to {target.text}")

    def _to_marked_float32(self, x: Value) -> Value:
        """A float64 cut to a float32 whose last bit is on if anything was behind it: to what has
        two bits less, or more, that is rounded once. What is too small for a float16 is 0 in both.
        """
        bits = self.bitcast(x, x.type.unsigned)
        behind = 0x1FFFFFFF
        marked = bits | (bits & behind) + behind  # which carries into that bit
        return self.convert(self.bitcast(marked & ~behind, x.type), "f32")

    def _in_steps_of_bfloat16(self, x: Value) -> Value:
        """A float64 rounded as bfloat16's subnormal numbers are, where it is one: float32, which
        has more of these, would round before. Others stay.
        """
        far = 1.5 * 2.0 ** (52 - 133)  # a sum with this has steps of 2^-133
        return self.select(self.abs(x) < 2.0**-126, self.copysign((x + far) - far, x), x)

    def _cut_to_odd(self, x: Value) -> Value:
        """An integer of so few digits that a float of as many bits is it: the last ones of a large
        one become one, which is on if any of them was. Rounding again is then rounding once.
        """
        behind = 0xFF if x.type.bits == 32 else 0x7FF
        marked = (x | (x & behind) + behind) & ~behind
        size = self.bitcast(self.abs(x), x.type.unsigned)
        return self.select(size < 1 << 24, x, marked)

    def _to_bfloat16(self, x: Value, *, exact: bool = False) -> Value:
        """Round to nearest even by integer arithmetic; NaN stays NaN. exact: there is nothing to
        round.
        """
        bits = self.bitcast(x, x.type.unsigned)
        if not exact:
            even = bits + 0x7FFF + (bits >> 16 & 1)
            bits = self.select(self.isnan(x), bits | 0x400000, even)
        narrow = self.convert(bits >> 16, "u16")
        return Value(self, narrow.name, x.type.with_element("bf16"))
