"""Prints LLVM text: explicit vectors of any element and width, loops, branches and loads.

    module = Module()
    f = module.function("twice", [("x", PTR), ("y", PTR), ("n", I64)])
    x, y, n = f.arguments

    def body(i, carried):
        f.store(2 * f.load(typed("f32", 8), f.at(x, i, "f32")), f.at(y, i, "f32"))
        return []

    f.loop(0, n, 8, body)
    f.ret()
    assemble(module.text())          # funct.device

The text is what code generation gets: no optimiser runs after it. So the emitter numbers values
(equal text in one scope is printed once), and whoever prints is explicit about everything else:
which products are contracted (`fma`), the order of a reduction (`reduce`), what a vector does with
NaN (`max` or `maximum`). No fast-math flag is ever printed: the bits are those of the text.

Emitters know no arrays. Pointers are bare, and alignment is that of one element.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from funct.device.host import host
from funct.kernels.llvm.arithmetic import Arithmetic, Index
from funct.kernels.llvm.values import BOOL, I64, PTR, Type, Value, constant_text, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from funct.device.host import Host

__all__ = ["Emitter", "Module"]


class Module:
    """One text: declarations, constants and functions, printed for one processor."""

    def __init__(self, target: Host | None = None) -> None:
        self.target = target or host()
        self._declarations: dict[str, str] = {}
        self._constants: dict[str, str] = {}
        self._functions: list[Emitter | _Printed] = []

    def function(
        self,
        name: str,
        parameters: Sequence[tuple[str, Type]] = (),
        result: Type | None = None,
        *,
        local: bool = False,
    ) -> Emitter:
        """Begin a function. `local`: known in this text only."""
        emitter = Emitter(self, name, parameters, result, local=local)
        self._functions.append(emitter)
        return emitter

    def shared(self, name: str, build: Callable[[str], None]) -> str:
        """The name of a function that the text defines once, by `build` when first asked for."""
        if all(function.name != name for function in self._functions):
            build(name)
        return name

    def declare(self, name: str, declaration: str) -> None:
        """A declaration that the text needs unless it defines the name; one for each name."""
        self._declarations.setdefault(name, declaration)

    def table(self, element: Type, numbers: Iterable[float]) -> str:
        """A constant array in memory, aligned to 64 bytes; its name (`emitter.address` points)."""
        cells = [f"{element.text} {constant_text(element, number)}" for number in numbers]
        literal = f"[{len(cells)} x {element.text}] [{', '.join(cells)}]"
        name = self._constants.get(literal)
        if name is None:
            name = self._constants[literal] = f"table{len(self._constants)}"
        return name

    def include(self, name: str, declarations: Iterable[str], lines: Sequence[str]) -> None:
        """A function that is text already. lines: all but the closing brace."""
        for d in declarations:
            self.declare(d[d.index("@") : d.index("(")], d)
        self._functions.append(_Printed(name, lines))

    def text(self) -> str:
        """The whole."""
        lines = [
            f"@{name} = private unnamed_addr constant {literal}, align 64"
            for literal, name in self._constants.items()
        ]
        defined = {f"@{function.name}" for function in self._functions}
        lines += [d for name, d in self._declarations.items() if name not in defined]
        for function in self._functions:
            lines += ["", *function.lines(), "}"]
        return "\n".join(lines) + "\n"


class _Printed:
    """A function that is text."""

    def __init__(self, name: str, text: Sequence[str]) -> None:
        self.name, self._text = name, text

    def lines(self) -> Sequence[str]:
        """The function as lines, without the closing brace."""
        return self._text


class Emitter(Arithmetic):
    """One function as it is printed: arithmetic, memory and control."""

    def __init__(
        self,
        module: Module,
        name: str,
        parameters: Sequence[tuple[str, Type]],
        result: Type | None,
        *,
        local: bool,
    ) -> None:
        super().__init__(module)
        self.name = name
        self.arguments = [Value(self, f"%{p}", t) for p, t in parameters]
        listed = ", ".join(repr(a) for a in self.arguments)
        linkage = "internal " if local else ""
        self._head = f"define {linkage}{result.text if result else 'void'} @{name}({listed}) {{"
        self._allocations: list[str] = []

    def lines(self) -> list[str]:
        """The function as lines, without the closing brace."""
        return [self._head, "entry:", *self._allocations, *self._lines]

    # Memory

    def at(self, pointer: Value, index: Index, element: str) -> Value:
        """The address of an element (i64 index, or a vector of them)."""
        index = self._index(index)
        scalar = typed(element).text if element != "i1" else "i8"
        type = PTR.of(index.type.lanes)
        return self.emit(type, f"getelementptr inbounds {scalar}, {pointer!r}, {index!r}")

    def aligned(self, pointers: Iterable[Value]) -> Value:
        """Whether all of the addresses are multiples of the length of the host's vectors."""
        bits = [self.emit(I64, f"ptrtoint {p!r} to i64") for p in pointers]
        unaligned = functools.reduce(self.bitor, bits) & (self.module.target.vector_bytes - 1)
        return self.eq(unaligned, 0)

    def word(self, place: Value, slot: Index = 0) -> Value:
        """A word of a frame or a table."""
        return self.load(I64, self.at(place, slot, "i64"))

    def pointer(self, place: Value, slot: Index = 0) -> Value:
        """A word that is an address."""
        return self.load(PTR, self.at(place, slot, "i64"))

    def words(self, place: Value, first: int, count: int) -> list[Value]:
        """So many words, one after the other."""
        return [self.word(place, first + k) for k in range(count)]

    def pointers(self, place: Value, first: int, count: int) -> list[Value]:
        """So many words that are addresses."""
        return [self.pointer(place, first + k) for k in range(count)]

    def load(self, type: Type, pointer: Value, mask: Value | None = None) -> Value:
        """Elements from the address on; where the mask is off, nothing is read and zero given."""
        place = f"{pointer!r}, align {type.bytes}" if mask is None else ""
        if mask is None:
            return self.emit(type, f"load {type.text}, {place}", pure=False)
        if type.lanes == 1:
            return self.branch(
                mask,
                lambda: [self.load(type, pointer)],
                lambda: [self.constant(type, 0)],
            )[0]
        name = f"@llvm.masked.load.{type.suffix.replace('bf16', 'i16')}.p0"
        self.module.declare(
            name, f"declare {type.text} {name}(ptr, i32, {type.mask.text}, {type.text})"
        )
        given = f"{pointer!r}, i32 {type.bytes}, {mask!r}, {type.text} zeroinitializer"
        return self.emit(type, f"call {type.text} {name}({given})", pure=False)

    def store(
        self, x: Value, pointer: Value, mask: Value | None = None, *, streaming: bool = False
    ) -> None:
        """Write the lanes from the address on; where the mask is off, nothing is written.

        streaming: past the caches, to an address aligned to the host's vectors, or to a smaller x.
        """
        if mask is None:
            whole = min(x.type.bytes * x.type.lanes, self.module.target.vector_bytes)
            size = whole if streaming else x.type.bytes
            note = ", !nontemporal !0" if streaming else ""
            if streaming:
                self.module.declare("!0", "!0 = !{i32 1}")
            self.line(f"store {x!r}, {pointer!r}, align {size}{note}")
        elif x.type.lanes == 1:
            self.when(mask, lambda: self.store(x, pointer))
        else:
            name = f"@llvm.masked.store.{x.type.suffix.replace('bf16', 'i16')}.p0"
            self.module.declare(
                name, f"declare void {name}({x.type.text}, ptr, i32, {x.type.mask.text})"
            )
            self.line(f"call void {name}({x!r}, {pointer!r}, i32 {x.type.bytes}, {mask!r})")

    def opaque(self, x: Value) -> Value:
        """x, of which LLVM knows nothing: it computes nothing from it again to save a register."""
        return self.emit(x.type, f'call {x.type.text} asm "", "=r,0"({x!r})', pure=False)

    def prefetch(self, pointer: Value, *, write: bool = False, near: bool = True) -> None:
        """Bring what stands there into the caches, to be read or written; any address will do.

        near: into all of them; else the first-level one, which is small, is left alone.
        """
        self.module.declare(
            "@llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
        )
        level = 3 if near else 2
        given = f"{pointer!r}, i32 {int(write)}, i32 {level}, i32 1"
        self.line(f"call void @llvm.prefetch.p0({given})")

    def gather(self, type: Type, pointers: Value) -> Value:
        """One element from each address."""
        if type.lanes == 1:
            return self.load(type, pointers)
        name = f"@llvm.masked.gather.{type.suffix.replace('bf16', 'i16')}.{pointers.type.suffix}"
        mask = type.mask
        self.module.declare(
            name,
            f"declare {type.text} {name}({pointers.type.text}, i32, {mask.text}, {type.text})",
        )
        given = f"{pointers!r}, i32 {type.bytes}, {mask.text} splat (i1 true), {type.text} poison"
        return self.emit(type, f"call {type.text} {name}({given})", pure=False)

    def elements(self, element: str, base: Value, at: Value) -> Value:
        """The elements at these places from the base on."""
        lanes = at.type.lanes
        if lanes == 1 or self.module.target.vector_bytes == 64:
            return self.gather(typed(element, lanes), self.at(base, at, element))
        # processors with shorter vectors gather no quicker than one by one, LLVM much slower
        x = Value(self, "poison", typed(element, lanes))
        for k, place in enumerate(self._places(at)):
            x = self.insert(x, k, self.load(typed(element), self.at(base, place, element)))
        return x

    def _places(self, at: Value) -> Iterator[Value]:
        """The lanes as numbers of eight bytes; those of four leave their vectors in pairs."""
        lanes = at.type.lanes
        if at.type.element != "i32" or lanes % 2:
            yield from [self.convert(self.extract(at, k), "i64") for k in range(lanes)]
            return
        pairs = self.bitcast(at, typed("i64", lanes // 2))
        for k in range(lanes // 2):
            pair = self.extract(pairs, k)
            yield self.convert(self.convert(pair, "i32"), "i64")
            yield pair >> 32

    def allocate(self, type: Type, count: int, align: int = 64) -> Value:
        """Room for elements on the stack, for the whole call."""
        name = f"%{self.fresh('room')}"
        self._allocations.append(f"  {name} = alloca [{count} x {type.text}], align {align}")
        return Value(self, name, PTR)

    def address(self, name: str) -> Value:
        """A pointer to a function or a table."""
        return Value(self, f"@{name}", PTR)

    def null(self) -> Value:
        """The address of nothing."""
        return Value(self, "null", PTR)

    def call(
        self, name: str, result: Type | None, operands: Sequence[Value], *, pure: bool = False
    ) -> Value | None:
        """Call a function of this text or, which this declares, one outside of it."""
        kind = result.text if result else "void"
        listed = ", ".join([v.type.text for v in operands])
        self.module.declare(f"@{name}", f"declare {kind} @{name}({listed})")
        given = ", ".join([repr(v) for v in operands])
        text = f"call {kind} @{name}({given})"
        if result is None:
            self.line(text)
            return None
        return self.emit(result, text, pure=pure)

    # Control

    def loop(
        self,
        start: Index,
        stop: Index,
        step: Index,
        body: Callable[[Value, list[Value]], list[Value]],
        carried: Sequence[Value] = (),
        *,
        maybe_empty: bool = False,
    ) -> list[Value]:
        """Run `body(index, carried) -> carried` for each index; the last carried values.

        The test stands at the bottom: the body runs once even if start ≥ stop, unless the loop is
        said to be maybe empty.
        """
        start, stop, step = self._index(start), self._index(stop), self._index(step)
        if maybe_empty:
            some = self.compare("lt", start, stop)
            return self.branch(
                some,
                lambda: self.loop(start, stop, step, body, carried),
                lambda: list(carried),
            )
        head, done = self.fresh("loop"), self.fresh("done")
        before, known = self._block, dict(self._known)
        self.line(f"br label %{head}")
        self.label(head)
        place = len(self._lines)
        index = Value(self, f"%i.{head}", I64)
        held = [Value(self, f"%c{k}.{head}", v.type) for k, v in enumerate(carried)]
        given = body(index, list(held))
        assert len(given) == len(held), "a body gives as many values as it is carried"
        after = self.emit(I64, f"add nsw i64 {index.name}, {step.name}", pure=False)
        pairs = [(index, start, after), *zip(held, carried, given)]
        self._lines[place:place] = [self._phi(*pair, before) for pair in pairs]
        again = self.emit(BOOL, f"icmp slt i64 {after.name}, {stop.name}", pure=False)
        self.line(f"br i1 {again.name}, label %{head}, label %{done}")
        self._known = known
        self.label(done)
        return given

    def _phi(self, v: Value, first: Value, later: Value, before: str) -> str:
        """The line that makes v `first` when the loop begins and `later` when it comes again."""
        again = f"[ {later.name}, %{self._block} ]"
        return f"  {v.name} = phi {v.type.text} [ {first.name}, %{before} ], {again}"

    def while_loop(
        self,
        carried: Sequence[Value],
        condition: Callable[[list[Value]], Value],
        body: Callable[[list[Value]], list[Value]],
    ) -> list[Value]:
        """Run the body as long as the condition (a scalar mask) holds; the test stands on top."""
        head, inner, done = self.fresh("while"), self.fresh("body"), self.fresh("done")
        before, known = self._block, dict(self._known)
        self.line(f"br label %{head}")
        self.label(head)
        place = len(self._lines)
        held = [Value(self, f"%c{k}.{head}", v.type) for k, v in enumerate(carried)]
        on = condition(list(held))
        self.line(f"br i1 {on.name}, label %{inner}, label %{done}")
        self.label(inner)
        given = body(list(held))
        pairs = zip(held, carried, given, strict=True)
        self._lines[place:place] = [self._phi(*pair, before) for pair in pairs]
        self.line(f"br label %{head}")
        self._known = known
        self.label(done)
        return held

    def branch(
        self,
        condition: Value,
        then: Callable[[], list[Value]],
        otherwise: Callable[[], list[Value]],
        *,
        rare: bool = False,
    ) -> list[Value]:
        """What `then` gives if the scalar condition holds, else what `otherwise` gives.

        rare: the condition hardly ever holds, so `otherwise` gets the registers.
        """
        yes, no, join = self.fresh("then"), self.fresh("else"), self.fresh("join")
        known = dict(self._known)
        note = ""
        if rare:
            self.module.declare("!1", '!1 = !{!"branch_weights", i32 1, i32 4096}')
            note = ", !prof !1"
        self.line(f"br i1 {condition.name}, label %{yes}, label %{no}{note}")
        self.label(yes)
        first = then()
        self.line(f"br label %{join}")
        from_yes, self._known = self._block, dict(known)
        self.label(no)
        second = otherwise()
        self.line(f"br label %{join}")
        from_no, self._known = self._block, known
        self.label(join)
        return [
            self.emit(
                a.type,
                f"phi {a.type.text} [ {a.name}, %{from_yes} ], [ {b.name}, %{from_no} ]",
                pure=False,
            )
            for a, b in zip(first, second, strict=True)
        ]

    def when(self, condition: Value, then: Callable[[], None]) -> None:
        """Run `then` if the scalar condition holds."""

        def run() -> list[Value]:
            then()
            return []

        self.branch(condition, run, list)

    def ret(self, x: Value | None = None) -> None:
        """Return."""
        self.line(f"ret {x!r}" if x is not None else "ret void")


def each(
    f: Emitter, start: Index, stop: Index, body: Callable[[Value], None], step: Index = 1
) -> None:
    """A loop that carries nothing and may be empty."""

    def run(i: Value, _: list[Value]) -> list[Value]:
        body(i)
        return []

    f.loop(start, stop, step, run, maybe_empty=True)
