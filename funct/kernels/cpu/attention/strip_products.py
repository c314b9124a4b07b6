"""Products of attention, of a matrix with a strip of a few vectors: each is C[m, v] += A B.

To make their code takes as long as all else of attention, and both directions call them. So they
have texts of their own, whose code is made beside that of who calls them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal

from funct.device import Host, host, printed
from funct.device.machine_code import LEAN, offer
from funct.kernels.llvm import I64, PTR, Module, Value, each, typed

__all__ = ["TILES", "Along", "product_name", "products_level", "products_text"]

Along = Literal["rows", "steps"]

# Rows of a tile for each number of vectors; the most vectors are those of a strip. 12 sums in 16
# registers; of 32 registers 16 sums suffice, and short strips waste less where queries end.
TILES = {32: {3: 4, 2: 6, 1: 8}, 64: {2: 8, 1: 8}}
_UNROLL = 2
_TERMS = 64  # of a sum; longer ones are sums of such, which rounds less; a short rest joins one


def product_name(element: str, width: int, along: Along, vectors: int) -> str:
    """The name under which any text may call the product."""
    return f"funct_{along}_{vectors}_{element}_{width}"


@functools.cache  # asked for with whoever calls them, and for each address
def products_text(element: str, width: int, along: Along, target: Host) -> str:
    """`product(a, a_row, b, b_row, c, c_row, m, k, adds)` for each number of vectors.

    C[m, v] = Σ_k A[m, k] B[k, v], and what C holds where it adds. along: what lies side by side in
    A; its stride is the other's.
    """
    module = Module(target)
    for vectors in TILES[width]:
        _define(module, element, width, along, vectors)
    return module.text()


def _define(module: Module, element: str, width: int, along: Along, vectors: int) -> None:
    names = ("a", "b", "c")
    pointers = [(n, t) for name in names for n, t in ((name, PTR), (f"{name}_row", I64))]
    name = product_name(element, width, along, vectors)
    f = module.function(name, [*pointers, ("m", I64), ("k", I64), ("adds", I64)])
    a, a_row, b, b_row, c, c_row, m_count, k_count, adds = f.arguments

    lanes = width // typed(element).bytes
    vector = typed(element, lanes)
    last = f.max((k_count - _TERMS // 2) & -_TERMS, 0)  # where the last part of a sum begins

    def load(pointer: Value, v: int) -> Value:
        return f.load(vector, f.at(pointer, v * lanes, element))

    def tile(m: Value, rows: int, unroll: int) -> None:
        places = [f.at(c, (m + r) * c_row, element) for r in range(rows)]
        cells = [(r, v) for r in range(rows) for v in range(vectors)]

        if along == "steps":
            left = [f.at(a, (m + r) * a_row, element) for r in range(rows)]
        else:
            left = [f.at(f.at(a, m, element), r, element) for r in range(rows)]

        def steps(count: int) -> Callable[[Value, list[Value]], list[Value]]:
            def body(k: Value, sums: list[Value]) -> list[Value]:
                for u in range(count):
                    at = f.at(b, (k + u) * b_row, element)
                    right = [load(at, v) for v in range(vectors)]
                    out = []
                    for r in range(rows):
                        if along == "steps":
                            p = f.at(f.at(left[r], k, element), u, element)
                        else:
                            p = f.at(left[r], (k + u) * a_row, element)
                        one = f.splat(f.load(vector.scalar, p), lanes)
                        for v in range(vectors):
                            out.append(f.fma(one, right[v], sums[r * vectors + v]))
                    sums = out
                return sums

            return body

        to = [f.at(places[r], v * lanes, element) for r, v in cells]

        def part(start: Value) -> None:
            stop = f.select(f.eq(start, last), k_count, start + _TERMS)
            main = stop & -unroll
            sums = [f.constant(vector, 0) for _ in cells]
            if unroll > 1:  # parts begin at even places
                sums = f.loop(start, main, unroll, steps(unroll), sums, maybe_empty=True)
            sums = f.loop(main if unroll > 1 else start, stop, 1, steps(1), sums, maybe_empty=True)

            def added() -> list[Value]:
                return [f.load(vector, place) + x for place, x in zip(to, sums)]

            whole = f.branch(f.ne(adds | start, 0), added, lambda: sums)
            for place, x in zip(to, whole):
                f.store(x, place)

        each(f, 0, last + 1, part, _TERMS)

    # rows that are left over are few, so their code is short
    rows, start_m = TILES[width][vectors], f.constant(I64, 0)
    unroll = _UNROLL if vectors > 1 else 1  # of many rows, whose addresses take registers as well
    while rows:
        stop = m_count - f.rem(m_count - start_m, rows)
        each(f, start_m, stop, functools.partial(tile, rows=rows, unroll=unroll), rows)
        rows, start_m, unroll = rows // 2, stop, 1
    f.ret()


@functools.cache
def _address(element: str, width: int, along: Along, name: str) -> int:
    code = printed(products_text, element, width, along, host(), opt=products_level(width))
    return code.keep().address(name)


def products_level(width: int) -> int:
    """LLVM's level for the products. Where all of 16 registers are in use, the lean one keeps some
    of the sums on the stack, which takes twice the time.
    """
    return LEAN if width == 64 else 1


for _element in ("f32", "f64"):
    for _width, _tiles in TILES.items():
        for _along in ("rows", "steps"):
            for _vectors in _tiles:
                _name = product_name(_element, _width, _along, _vectors)
                offer(_name, functools.partial(_address, _element, _width, _along, _name))
