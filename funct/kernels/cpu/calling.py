"""Calls on registers: of NumPy's loops and sorts, the C library, and functions that are shared."""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.kernels.cpu.elementwise.ufunc_loops import by_count
from funct.kernels.cpu.outside import sort_of
from funct.kernels.cpu.registers import Registers
from funct.kernels.cpu.vectors import INT, Pointer, Shared, Type, Value

__all__ = ["Calling"]


class Calling(Registers):
    """One function's text, which may call what is not in it."""

    def log1p(self, v: Value) -> Value:
        """log(1 + v) of a number, by the C library."""
        name = "@log1p" if v.type.bits == 64 else "@log1pf"
        self.declared.add(f"declare {v.type.text} {name}({v.type.text})")
        return Value(self.emit(f"call {v.type.text} {name}({v.type.text} {v.text})"), v.type)

    def applied(
        self, ufunc: np.ufunc, x: Pointer, at: Any, y: Pointer, to: Any, count: Any, *rest: float
    ) -> None:
        """Let what eager code runs for a ufunc write into y."""
        assert x.type == y.type, (x.type, y.type)
        source, target = self.address(x, at), self.address(y, to)
        self.written.add(y.text)
        call = self._of_numpy(ufunc, x.type, *rest)
        self.line(f"call void {call}(ptr {source}, ptr {target}, i64 {self.typed(count).text})")

    def summed(self, x: Pointer, at: Any, count: Any) -> Value:
        """The sum of elements, as NumPy's own loop adds them."""
        call, kind = self._of_numpy(np.add, x.type), x.type
        start = self.address(x, at)
        return Value(
            self.emit(f"call {kind.text} {call}(ptr {start}, i64 {self.typed(count).text})"), kind
        )

    def ascend(self, x: Pointer, at: Any, count: Any) -> None:
        """Sort elements, as NumPy does."""
        sort = sort_of(x.type.dtype)
        self.declared.add(f"declare i32 @{sort}(ptr, i64, ptr)")
        self.written.add(x.text)
        start, n = self.address(x, at), self.typed(count).text
        self.emit(f"call i32 @{sort}(ptr {start}, i64 {n}, ptr null)")

    def called(self, shared: Shared, *args: Any) -> Value:
        """What a shared function gives."""
        held = [a if isinstance(a, Pointer) else self.typed(a, INT) for a in args]
        kinds = ["ptr" if isinstance(a, Pointer) else "i64" for a in held]
        (kind,) = {a.type for a in held if isinstance(a, Pointer)}
        name = f"@{shared.name(kind.dtype)}"
        self.declared.add(f"declare i64 {name}({', '.join(kinds)})")
        written = [a.text for p, a in zip(shared.parameters, held) if p in shared.writes]
        self.written.update(written)
        given = ", ".join([f"{k} {a.text}" for k, a in zip(kinds, held, strict=True)])
        return Value(self.emit(f"call i64 {name}({given})"), INT)

    def _of_numpy(self, ufunc: np.ufunc, kind: Type, *rest: float) -> str:
        """Declare NumPy's loop, and a function that hands it arrays and numbers; its name.

        The loop of a sum adds to one place, in which it finds its first operand too.
        """
        loop, data = by_count(ufunc, kind.dtype)
        sums, step = ufunc is np.add, kind.bits // 8
        name = "@" + "_".join([loop, "of", *[f"{v}".replace("-", "m") for v in rest]])
        if sums:
            head, places = f"{kind.text} {name}(ptr %x, i64 %n)", [("%sum", 0), ("%x", step)]
            places.append(places[0])
        else:
            head = f"void {name}(ptr %x, ptr %y, i64 %n)"
            numbers = [(f"%number{k}", 0) for k in range(len(rest))]
            places = [("%x", step), *numbers, ("%y", step)]
        held = {"%sum": 0.0} if sums else {f"%number{k}": v for k, v in enumerate(rest)}
        lines = [f"define internal {head} {{"]
        for where, v in held.items():
            lines += [
                f"{where} = alloca {kind.text}",
                f"store {kind.text} {self.typed(v, kind).text}, ptr {where}",
            ]
        lines += ["%places = alloca [3 x ptr]", "%steps = alloca [3 x i64]", "%count = alloca i64"]
        for k, (where, apart) in enumerate(places):
            lines += [
                f"%place{k} = getelementptr ptr, ptr %places, i64 {k}",
                f"store ptr {where}, ptr %place{k}",
                f"%step{k} = getelementptr i64, ptr %steps, i64 {k}",
                f"store i64 {apart}, ptr %step{k}",
            ]
        lines += [
            "store i64 %n, ptr %count",
            f"call void @{loop}(ptr %places, ptr %count, ptr %steps, ptr {data})",
        ]
        if sums:
            lines += [f"%total = load {kind.text}, ptr %sum", f"ret {kind.text} %total"]
        else:
            lines.append("ret void")
        self.declared |= {f"declare void @{loop}(ptr, ptr, ptr, ptr)", "\n  ".join(lines) + "\n}"}
        if data != "null":
            self.declared.add(f"declare void {data}()")
        return name
