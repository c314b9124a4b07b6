"""Types and values of LLVM text: an element and a number of lanes; a name that stands for one.

Signedness is part of the element ("i32", "u32"), so that division, shifts, comparisons and
conversions follow from the type. A mask has elements "i1". One lane is a scalar.
"""

from __future__ import annotations

import functools
import re
import struct
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from funct.kernels.llvm.arithmetic import Arithmetic

__all__ = ["BOOL", "F32", "F64", "I32", "I64", "PTR", "Type", "Value", "constant_text"]

_LLVM = {
    "f80": "x86_fp80", "f64": "double", "f32": "float", "f16": "half", "bf16": "i16", "ptr": "ptr",
    "i1": "i1",
}  # fmt: skip
_BITS = {"f80": 80, "f64": 64, "f32": 32, "f16": 16, "bf16": 16, "ptr": 64, "i1": 1}
for _bits in (8, 16, 32, 64, 128):
    for _sign in "iu":
        _LLVM[f"{_sign}{_bits}"] = f"i{_bits}"
        _BITS[f"{_sign}{_bits}"] = _bits


@attrs.frozen
class Type:
    """An element ("f32", "i64", "u8", "i1", "ptr" …) in so many lanes."""

    element: str
    lanes: int = 1

    @functools.cached_property
    def text(self) -> str:
        """LLVM's spelling: `float`, `<8 x float>`."""
        scalar = _LLVM[self.element]
        return scalar if self.lanes == 1 else f"<{self.lanes} x {scalar}>"

    @functools.cached_property
    def suffix(self) -> str:
        """The ending of intrinsics' names: `f32`, `v8f32`."""
        scalar = "p0" if self.element == "ptr" else self.element.replace("u", "i")
        return scalar if self.lanes == 1 else f"v{self.lanes}{scalar}"

    @property
    def bits(self) -> int:
        """Bits of one element."""
        return _BITS[self.element]

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory."""
        return (_BITS[self.element] + 7) // 8

    @property
    def is_float(self) -> bool:
        """Whether float instructions take it. bfloat16 is for storage only."""
        return self.element in ("f16", "f32", "f64", "f80")

    @property
    def is_signed(self) -> bool:
        """Whether its integers have a sign."""
        return self.element[0] == "i" and self.element != "i1"

    @property
    def scalar(self) -> Type:
        """The same element, alone."""
        return self.of(1)

    @property
    def mask(self) -> Type:
        """What a comparison of two such values gives."""
        return typed("i1", self.lanes)

    @property
    def integer(self) -> Type:
        """Signed integers of the same width."""
        return typed(f"i{self.bits}", self.lanes)

    @property
    def unsigned(self) -> Type:
        """Unsigned integers of the same width."""
        return typed(f"u{self.bits}", self.lanes)

    def of(self, lanes: int) -> Type:
        """The same element in another number of lanes."""
        return typed(self.element, lanes)

    def with_element(self, element: str) -> Type:
        """Another element in as many lanes."""
        return typed(element, self.lanes)


def typed(element: str, lanes: int = 1) -> Type:
    """`Type(element, lanes)`, made once: types compare by identity, and their texts are kept."""
    return _typed(element, lanes)


@functools.cache
def _typed(element: str, lanes: int) -> Type:
    return Type(element, lanes)


F32, F64, I32, I64 = typed("f32"), typed("f64"), typed("i32"), typed("i64")
BOOL, PTR = typed("i1"), typed("ptr")


def constant_text(type: Type, number: float) -> str:
    """The literal of one element. Floats are exact: what Python's float rounds to in the type."""
    match type.element:
        case "f64":
            return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
        case "f32":  # LLVM writes a float as the double that it equals
            return f"0x{struct.unpack('<Q', struct.pack('<d', _to_float32(number)))[0]:016X}"
        case "f16":
            return f"0xH{struct.unpack('<H', struct.pack('<e', number))[0]:04X}"
        case "bf16":
            bits = struct.unpack("<I", struct.pack("<f", number))[0]
            return str((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
        case "i1":
            return "true" if number else "false"
        case _:
            return str(int(number))


def _to_float32(number: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


_WHOLE = re.compile(r"splat \(i\d+ (-?\d+)\)|(-?\d+)")  # an integer's literal


class Value:
    """A name in the text that an emitter prints; arithmetic on it prints more.

    Python numbers become constants of the other operand's type. `==` is identity, as of any
    object: `emitter.eq` compares.
    """

    __slots__ = ("emitter", "name", "type")

    def __init__(self, emitter: Arithmetic, name: str, type: Type) -> None:
        self.emitter, self.name, self.type = emitter, name, type

    def __repr__(self) -> str:
        return f"{self.type.text} {self.name}"

    @property
    def whole(self) -> int | None:
        """The integer that a constant is in every lane; None of what is no such constant."""
        found = _WHOLE.fullmatch(self.name)
        return None if found is None else int(found[1] or found[2])

    def __add__(self, other: Value | float) -> Value:
        return self.emitter.add(self, other)

    def __radd__(self, other: float) -> Value:
        return self.emitter.add(other, self)

    def __sub__(self, other: Value | float) -> Value:
        return self.emitter.sub(self, other)

    def __rsub__(self, other: float) -> Value:
        return self.emitter.sub(other, self)

    def __mul__(self, other: Value | float) -> Value:
        return self.emitter.mul(self, other)

    def __rmul__(self, other: float) -> Value:
        return self.emitter.mul(other, self)

    def __truediv__(self, other: Value | float) -> Value:
        return self.emitter.div(self, other)

    def __rtruediv__(self, other: float) -> Value:
        return self.emitter.div(other, self)

    def __neg__(self) -> Value:
        return self.emitter.neg(self)

    def __and__(self, other: Value | int) -> Value:
        return self.emitter.bitand(self, other)

    def __or__(self, other: Value | int) -> Value:
        return self.emitter.bitor(self, other)

    def __xor__(self, other: Value | int) -> Value:
        return self.emitter.bitxor(self, other)

    def __invert__(self) -> Value:
        return self.emitter.bitxor(self, -1 if self.type.element != "i1" else 1)

    def __lshift__(self, other: Value | int) -> Value:
        return self.emitter.shl(self, other)

    def __rshift__(self, other: Value | int) -> Value:
        return self.emitter.shr(self, other)

    def __lt__(self, other: Value | float) -> Value:
        return self.emitter.compare("lt", self, other)

    def __le__(self, other: Value | float) -> Value:
        return self.emitter.compare("le", self, other)

    def __gt__(self, other: Value | float) -> Value:
        return self.emitter.compare("gt", self, other)

    def __ge__(self, other: Value | float) -> Value:
        return self.emitter.compare("ge", self, other)
