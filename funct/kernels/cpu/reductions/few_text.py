"""The code that reduces few elements: rows one after the other, or columns side by side."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from funct.device import Host
from funct.kernels.cpu.reductions.long_rows import PAYS
from funct.kernels.cpu.reductions.pairwise import SUMS, define_total, of_integers, paired
from funct.kernels.cpu.reductions.segments import COMBINED, FACTORS, carried, segment
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed

__all__ = ["text"]

_BLOCK = 64  # terms from which on a sum is one of blocks
_ABREAST = 4  # vectors of columns that are reduced side by side


def text(name: str, element: str, target: Host) -> str:
    """`reduce(x, y, outer, length, inner)`: of dense (outer, length, inner), over the length."""
    module = Module(target)
    kind = carried(name, element)
    result = element if kind == "f32" else kind
    if name == "sum" and kind[0] == "f":
        define_total(module, element, typed(kind))
    parameters = [("x", PTR), ("y", PTR), ("outer", I64), ("length", I64), ("inner", I64)]
    f = module.function("reduce", parameters)
    x, y, outer, length, inner = f.arguments

    def put(v: Value, i: Value) -> None:
        f.store(f.convert(v, result), f.at(y, i, result))

    def rows() -> None:
        size = outer * length
        each(f, 0, outer, lambda r: put(
            _row(f, name, element, f.at(x, r * length, element), length, size), r
        ))  # fmt: skip

    def columns() -> None:
        def block(b: Value) -> None:
            at = f.at(x, b * length * inner, element)
            _columns(f, name, element, at, length, inner, lambda v, c: put(v, b * inner + c))

        each(f, 0, outer, block)

    f.when(f.eq(inner, 1), rows)
    f.when(inner > 1, columns)
    f.ret()
    return module.text()


def _read(f: Emitter, name: str, element: str, at: Value, lanes: int = 1) -> Value:
    return f.convert(f.load(typed(element, lanes), at), carried(name, element))


def _row(f: Emitter, name: str, element: str, x: Value, n: Value, size: Value) -> Value:
    kind = carried(name, element)
    lanes = f.module.target.vector_bytes // typed(kind).bytes

    def in_vectors() -> list[Value]:
        return segment(f, name, element, x, n)

    def one_by_one() -> list[Value]:
        return [_rest(f, name, element, x, f.constant(I64, 1), n, read(0))]

    def read(i: int) -> Value:
        return _read(f, name, element, f.at(x, i, element))

    if name == "sum":
        return _sum(f, element, x, n) if kind[0] == "f" else of_integers(f, x, n, element, kind)
    if name == "prod" and kind[0] == "f":
        own = (size >= PAYS) & (n > FACTORS)
        return f.branch(own, in_vectors, one_by_one)[0]
    return f.branch(n >= lanes, in_vectors, one_by_one)[0]


def _rest(
    f: Emitter, name: str, element: str, x: Value, start: Value, n: Value, held: Value
) -> Value:  # fmt: skip
    """What is held and the elements from there on, one after the other."""

    def one(i: Value, held: list[Value]) -> list[Value]:
        return [COMBINED[name](f, held[0], _read(f, name, element, f.at(x, i, element)))]

    return f.loop(start, n, 1, one, [held], maybe_empty=True)[0]


def _sum(f: Emitter, element: str, x: Value, n: Value) -> Value:
    """Of floats, in NumPy's order."""
    kind = carried("sum", element)
    none = f.constant(typed(kind), 0)

    def read(i: Value | int, lanes: int = 1) -> Value:
        return _read(f, "sum", element, f.at(x, i, element), lanes)

    def of_blocks() -> list[Value]:
        found = f.call("total", typed(kind), [x, n, none])
        assert found is not None
        return [found]

    def of_vectors() -> list[Value]:
        whole = n & -SUMS
        sums = f.loop(SUMS, whole, SUMS, lambda i, held: [held[0] + read(i, SUMS)],
                      [read(0, SUMS)], maybe_empty=True)  # fmt: skip
        return [_rest(f, "sum", element, x, whole, n, *paired(f, [sums[0]]))]

    def of_numbers() -> list[Value]:
        return [_rest(f, "sum", element, x, f.constant(I64, 1), n, read(0))]

    def short() -> list[Value]:
        return f.branch(n >= SUMS, of_vectors, of_numbers)

    return f.branch(n >= _BLOCK, of_blocks, short)[0] + 0  # of -0.0 alone it is 0


def _columns(
    f: Emitter, name: str, element: str, x: Value, length: Value, inner: Value,
    put: Callable[[Value, Value], None],
) -> None:  # fmt: skip
    """Of each column, from its first row on."""
    kind = carried(name, element)
    lanes = f.module.target.vector_bytes // typed(kind).bytes

    def several(c: Value, count: int, lanes: int) -> None:
        starts = [c + k * lanes for k in range(count)]

        def row(i: Value, held: list[Value]) -> list[Value]:
            at = [f.at(x, i * inner + start, element) for start in starts]
            read = [_read(f, name, element, place, lanes) for place in at]
            return [COMBINED[name](f, a, b) for a, b in zip(held, read, strict=True)]

        first = [_read(f, name, element, f.at(x, start, element), lanes) for start in starts]
        if name == "sum" and kind[0] == "f":
            first = [v + 0 for v in first]
        for start, v in zip(
            starts, f.loop(1, length, 1, row, first, maybe_empty=True), strict=True
        ):
            put(v, start)

    done = f.constant(I64, 0)
    for count, width in ((_ABREAST, lanes), (1, lanes), (1, 1)):
        stop = inner - f.rem(inner, count * width)
        each(f, done, stop, partial(several, count=count, lanes=width), count * width)
        done = stop
