"""The loops of a kernel as readable Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from funct.compile.loops.kernel import Constant, Kernel, Load, Op, Reduce
from funct.compile.loops.passes import passes

__all__ = ["describe"]


def describe(kernel: Kernel, names: dict[int, str] | None = None) -> str:
    """The loops as readable Python. names: of the buffers, by access."""
    return "\n".join(_Text(kernel, names or {}).lines())


class _Text:
    """One kernel, and what its buffers are called."""

    def __init__(self, kernel: Kernel, names: dict[int, str]) -> None:
        self.k = kernel
        self.buffers = [names.get(a, f"b{a}") for a in range(len(kernel.accesses))]
        self.stored = dict(kernel.stores)
        self.pad = "    " if kernel.flat else "        "

    def lines(self) -> Iterator[str]:
        """All lines: what a row's values are is said after the pass that makes them."""
        k = self.k
        yield "for j in columns:" if k.flat else "for i in rows:"
        said: set[int] = set()
        for walk in passes(k).walks:
            if not k.flat:
                yield from self._row_values(walk.needed, said)
                yield "    for j in columns:"
            for n in walk.needed:
                if k.values[n].kind == "full":
                    yield from self._value(n, n in walk.known)
            for n in walk.roots:
                v = k.values[n]
                if isinstance(v, Reduce):
                    places = {"column": "[j]", "stretch": "[i // stretch, j]"}
                    place = f"t{n}{places.get(v.over, '')}"
                    yield f"{self.pad}{place} = {v.how}({place}, {self._name(v.operand)})"
        stored = [n for n in self.stored if k.values[n].kind == "row"]
        yield from self._row_values(stored, said)
        for n in stored:
            yield f"    {self._place(self.stored[n])} = {self._name(n)}"
        for n, v in enumerate(k.values):
            if isinstance(v, Reduce) and v.over == "all" and k.values[v.operand].kind == "row":
                yield from self._row_values([v.operand], said)
                yield f"    t{n} = {v.how}(t{n}, {self._name(v.operand)})"

    def _row_values(self, wanted: Iterable[int], said: set[int]) -> Iterator[str]:
        """What the row's values are, once."""
        missing: set[int] = set()
        stack = list(wanted)
        while stack:
            n = stack.pop()
            v = self.k.values[n]
            if v.kind == "row" and n not in said | missing:
                missing.add(n)
                stack += self.k.operands(n)
        said |= missing
        for n in sorted(missing):
            if not isinstance(self.k.values[n], Constant | Reduce):
                yield f"    t{n} = {self._text(n)}"

    def _value(self, n: int, known: bool) -> Iterator[str]:
        if not known:
            yield f"{self.pad}t{n} = {self._text(n)}"
            if n in self.stored:
                yield f"{self.pad}{self._place(self.stored[n])} = t{n}"

    def _text(self, n: int) -> str:
        v = self.k.values[n]
        match v:
            case Load():
                return self._place(v.access, v.place)
            case Op():
                return f"{v.name}({', '.join([self._name(o) for o in v.operands])})"
        raise AssertionError("constants and reductions are names")

    def _name(self, n: int) -> str:
        v = self.k.values[n]
        return repr(v.number) if isinstance(v, Constant) else f"t{n}"

    def _place(self, a: int, place: int = 0) -> str:
        access = self.k.accesses[a]
        rows = "i" if access.terms == ((False, False),) else "rows(i)" if access.terms else ""
        ways: dict[str | int, str] = {"none": "", "one": "j", "back": "-j", "some": "j * step"}
        inner = ways.get(access.inner, f"{access.inner} * j + {place}")
        inner = f"{inner} // {access.each}" if access.each > 1 else inner
        index = f"t{access.look.at}" if access.look else ""
        found = f"{self.buffers[a]}[{', '.join([x for x in (rows, index, inner) if x]) or '()'}]"
        return f"within({found})" if access.is_within else found
