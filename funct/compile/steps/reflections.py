"""Q and R of a large matrix in single precision inside of a program: LAPACK's, by address.

NumPy has a loop for them in double precision alone (`lapack.orthogonal`). Complex matrices have a
last axis of two.
"""

from __future__ import annotations

from collections.abc import Callable

from funct.compile.fusion.calls import Address, Buffer, Call
from funct.device import blas
from funct.graph import Var
from funct.kernels.linalg.lapack import PANEL, REFLECTIONS
from funct.kernels.llvm import I32, I64, PTR, Emitter, Module, Value, typed

__all__ = ["has_reflections", "print_reflections", "reflections"]


def _functions(width: int) -> tuple[str, str]:
    return REFLECTIONS["F" if width > 1 else "f"]


def has_reflections(width: int) -> bool:
    """Whether LAPACK is there, for elements of so many numbers."""
    return all(blas.lapack(name) is not None for name in _functions(width))


def reflections(
    x: Address, q: Var, r: Var, rows: int, columns: int, width: int, forms: bool
) -> Call:
    """The call for one matrix. forms: somebody reads Q."""
    least, kept = min(rows, columns), r.shape[0]
    wide = max(columns, kept)
    room = PANEL * wide
    made = [Buffer(n * width, q.dtype) for n in (wide * rows, least, room)]
    found = blas.lapack(_functions(width)[0])
    assert found is not None, "asked for by `has_reflections`"
    to = Address(q) if forms else 0, Address(r)
    words = (x, *to, *map(Address, made), rows, columns, kept, least, room)
    kernel = ("reflections", width, found[1], forms)
    return Call(kernel, words, 1, (q, r) if forms else (r,))


def print_reflections(module: Module, name: str, width: int, wide: bool, forms: bool) -> None:
    """Add the kernel. Frame: places of x, Q, R, of columns, of factors and of room for LAPACK;
    numbers of rows, of columns, of those of Q, of reflections, and of what there is room for.
    wide: LAPACK counts in 64 bits. forms: Q is made.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    x, q, r, made, tau, work = f.pointers(frame, 0, 6)
    numbers = f.words(frame, 6, 5)
    integer = I64 if wide else I32
    sizes = f.allocate(integer, 6)  # the last is for what LAPACK tells
    at = [f.at(sizes, k, integer.element) for k in range(6)]
    for n, place in zip(numbers, at[:5], strict=True):
        f.store(n if wide else f.convert(n, "i32"), place)
    m, n, kept, _, _ = numbers
    rows, columns, formed, least, room, told = at
    factor, form = map(_symbol, _functions(width))
    _moved(f, width, m, n, lambda i, j: (x, i * n + j, made, j * m + i))
    f.call(factor, None, [rows, columns, made, rows, tau, work, room, told])
    _moved(f, width, kept, n, lambda i, j: (made, j * m + i, r, i * n + j), upper=True)
    if not forms:
        f.ret()
        return
    f.call(form, None, [rows, formed, least, made, rows, tau, work, room, told])
    _moved(f, width, m, kept, lambda i, j: (made, j * m + i, q, i * kept + j))
    f.ret()


def _moved(
    f: Emitter, width: int, rows: Value, columns: Value,
    places: Callable[[Value, Value], tuple[Value, Value, Value, Value]], *, upper: bool = False,
) -> None:  # fmt: skip
    """Copy a matrix. places: of an element, in which array and where, and to where. upper: with
    zeros below the diagonal.
    """
    single = typed("f32")

    def row(i: Value, _: list[Value]) -> list[Value]:
        def cell(j: Value, _: list[Value]) -> list[Value]:
            source, read, to, written = places(i, j)
            for part in range(width):
                v = f.load(single, f.at(source, read * width + part, "f32"))
                if upper:
                    v = f.select(f.compare("le", i, j), v, f.constant(single, 0.0))
                f.store(v, f.at(to, written * width + part, "f32"))
            return []

        f.loop(0, columns, 1, cell)
        return []

    f.loop(0, rows, 1, row)


def _symbol(name: str) -> str:
    return f"funct_{name}"


for _names in REFLECTIONS.values():
    for _name in _names:
        blas.offer(_symbol(_name), f"{_name}_")
