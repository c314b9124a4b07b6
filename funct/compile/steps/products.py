"""Products of matrices inside of a program: tiles of our own (`gemm.py`), or BLAS, called by its
address on our own threads.

Operands are read where they lie: a transpose, a head of attention and a matrix between others are
strides to BLAS. Stacks are one task for each product; a product that BLAS would give to threads of
its own is cut into panels of rows or columns, as many as its shape and the processor's cores say:
each packs the other operand anew, which for panels of 128 costs a seventh. A transpose that each
step of a loop multiplies few rows by is turned around once, before it. The library is NumPy's,
so its numbers are those of eager execution but for the order in which panels add. Products of one
matrix and a vector are loops (`vector_products.py`), and so are stacks of small ones, of which a
call of BLAS would take longer than the product.
"""

from __future__ import annotations

import math
from typing import Any

from msgspec.structs import replace

from funct.compile.fusion.calls import Address, Call, Word
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.lower import copy
from funct.compile.loops.views import VIEWS, View, collapse, dense, through
from funct.compile.rewriting.attention import WORTH
from funct.compile.steps.gemm import gemm, is_tiled, tiles_of
from funct.compile.steps.stacks import Matrix, stack_words
from funct.compile.steps.vector_products import vector_product, vector_products
from funct.device import host
from funct.graph import Graph, Node, Var
from funct.kernels.cpu.products.blas import WORTH_CUTTING, counts_in_64_bits
from funct.kernels.cpu.products.blas_products import panels
from funct.kernels.cpu.products.few_rows import FEW_ROWS, are_few, code_of, few_rows_words
from funct.kernels.cpu.products.gemm import foretell
from funct.kernels.cpu.products.gemm_tile import Tile
from funct.kernels.cpu.products.gram import MIRRORED, gram_words, is_worth_halving
from funct.kernels.cpu.products.tiled import Laid, each_product, find_products
from funct.kernels.cpu.products.vector_text import side_by_side
from funct.kernels.llvm import I64, PTR, Module, Value, typed
from funct.kernels.llvm.shuffles import turned_around
from funct.kernels.table import met

__all__ = [
    "begin_products", "is_product", "lower_product", "print_few", "print_few_sums",
]  # fmt: skip

_SHORT = 128  # rows, for which BLAS takes a tenth longer if the other matrix is transposed
_THIN = 23  # rows, for which tiles take longer to lay the other matrix out at each step of a loop
_FEW = 16  # rows, columns and terms of a product that is computed in registers
_SUMS = 8  # rows whose sums are taken side by side
_FEW_TASK = 1 << 15  # multiplications that are worth a task


def is_product(node: Any) -> bool:
    """Whether a step is a product that a program can hold."""
    if not isinstance(node, Node) or node.name != "matmul":
        return False
    x, y = node.operands
    out = node.results[0]
    if not isinstance(x, Var) or not isinstance(y, Var):
        return False
    if not (x.dtype == y.dtype == out.dtype and out.dtype.char in "fd"):
        return False
    sizes = (*x.shape, *y.shape)
    small = all(n < 1 << 31 for n in sizes)
    return small and 0 not in sizes and counts_in_64_bits() is not None


def _matrix(view: View, rows: int, columns: int) -> Matrix | None:
    """The view as BLAS takes it; None where neither of its last axes is dense."""
    down, along = view.strides[-2:]
    stack = tuple(zip(view.shape[:-2], view.strides[:-2], strict=True))
    if (along == 1 or columns == 1) and (down >= columns or rows == 1):
        return Matrix(view, False, max(down, columns, 1), stack)
    if (down == 1 or rows == 1) and (along >= rows or columns == 1):
        return Matrix(view, True, max(along, rows, 1), stack)
    return None


def begin_products(graph: Graph) -> None:
    """Begin to make code of the tiles that a graph's products take, as far as it shows how their
    operands lie: passes over a large graph take as long as the code. Those of many heads that may
    yet become attention wait for that.
    """
    views: dict[Var, View] = {}
    tiles: dict[Tile, None] = {}
    weighs = any(isinstance(e, Node) and e.name == "exp" for e in graph.nodes)
    for e in graph.nodes:
        if not isinstance(e, Node) or any(0 in v.shape for v in (*e.reads, *e.results)):
            continue
        if e.name in VIEWS and isinstance(v := e.operands[0], Var):
            seen = through(e, views.get(v) or dense(v))
            if seen is not None:
                views[e.results[0]] = seen
        elif is_product(e):
            x, y = e.reads
            sizes = m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
            a, b = (_matrix(views.get(v) or dense(v), *v.shape[-2:]) for v in (x, y))
            if a is None or b is None or 1 in sizes or _is_gram(a, b):
                continue
            out = e.results[0]
            heads = math.prod(y.shape[:-2])
            if weighs and heads > 1 and 2 * heads * m * n * k >= WORTH:
                continue
            m, stack = _as_one(a, x, y, m, tuple(out.shape[:-2]))
            if is_tiled(a, b, out, (m, n, k)):
                tiles |= dict.fromkeys(tiles_of(a, b, out, math.prod(stack), (m, n, k)))
    for element in {t.element for t in tiles}:
        foretell([t for t in tiles if t.element == element])


def _as_one(
    a: Matrix, x: Var, y: Var, m: int, stack: tuple[int, ...]
) -> tuple[int, tuple[int, ...]]:
    """Rows and stack of a product, where the stack is one tall matrix those of that."""
    if math.prod(stack) == 1:
        return m, ()
    if math.prod(y.shape[:-2]) == 1 and not a.transposed:
        runs = collapse((*x.shape[:-2], m), (*[s for _, s in a.stack], a.leading))
        if len(runs) == 1 and runs[0][1] == a.leading:
            return m * math.prod(stack), ()
    return m, stack


def lower_product(node: Node, fused: Fused) -> list[Call]:
    """The calls that compute a product, copies of operands that BLAS cannot read among them."""
    calls: list[Call] = []
    x, y = node.operands
    out = node.results[0]
    assert isinstance(x, Var)
    assert isinstance(y, Var)
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    stack = tuple(out.shape[:-2])

    def operand(v: Var, rows: int, columns: int, *, again: bool = False) -> Matrix:
        view = fused.views[v]
        found = _matrix(view, rows, columns)
        if found is None or again:
            made, view = copy(view, fused)
            calls.extend(made)
            found = _matrix(view, rows, columns)
            assert found is not None, "a dense buffer is a matrix"
        return replace(found, view=view)

    a, b = operand(x, m, k), operand(y, k, n)
    m, stack = _as_one(a, x, y, m, stack)
    count = math.prod(stack)
    byte = out.dtype.itemsize
    if count == 1 and 1 in (m, n) and max(m, n) > 1 and k > 1:
        return [*calls, *_by_vector(a, b, out, fused)]
    given = a, b
    if count > 1 and n == 1 < m and a.transposed:  # the vector by rows, as they lie
        a, b = (replace(x, transposed=not x.transposed) for x in (b, a))
        m, n = n, m
    if count > 1 and _is_few(m, n, k, out):
        return [*calls, _few(a, b, out, stack, (m, n, k))]
    if count > 1 and 1 in (m, n) and 1 < k <= host().vector_bytes // byte:
        matrix, vector, length, step = (a, b, m, -2) if n == 1 else (b, a, n, -1)
        if matrix.transposed == (n != 1) and vector.view.strides[step] == 1:
            return [*calls, _few_sums(matrix, vector, out, stack, (length, k))]
    if count > 1 and 1 in (m, n) and max(m, n) > 1 and k > 1:
        return [*calls, *_by_vectors(*given, out, stack, fused)]
    if count == 1 and _is_gram(a, b):
        return [*calls, *_gram(a, out, (m, k))]
    element = "f32" if byte == 4 else "f64"
    if count == 1 and met(FEW_ROWS) and are_few(m, k, n, b.transposed, byte=byte):
        if a.transposed and b.transposed:
            a = operand(x, m, k, again=True)
        return [*calls, _few_rows(a, b, out, (m, n, k))]
    tiled = is_tiled(a, b, out, (m, n, k))
    short = count == 1 and m <= (_THIN if tiled else _SHORT) and m * n * k > WORTH_CUTTING
    if short and b.transposed and b.view.root in fused.still:
        b = operand(y, k, n, again=True)
        tiled = is_tiled(a, b, out, (m, n, k))
    if tiled:
        return [*calls, gemm(a, b, out, stack, (m, n, k))]
    laid = [Laid(x.transposed, x.leading) for x in (a, b)]
    cut = panels((m, n, k), (laid[0], laid[1]), element, count)
    places = [Address(x.view.root, x.view.offset * byte) for x in (a, b)]
    words: list[Word] = [*places, Address(out), *cut.words, *stack_words(stack, a, b, byte)]
    kernel = ("product", element, len(stack), cut.alone)
    return [*calls, Call(kernel, tuple(words), cut.tasks, (out,))]


def _is_gram(a: Matrix, b: Matrix) -> bool:
    """Whether the second of two matrices is the first one transposed, and half of it is less."""
    rows, terms = a.view.shape[-2:]
    same = (a.view.root, a.view.offset, a.leading) == (b.view.root, b.view.offset, b.leading)
    turned = a.view.shape[-2:] == b.view.shape[:-3:-1] and a.transposed != b.transposed
    return same and turned and is_worth_halving(rows, terms)


def _gram(a: Matrix, out: Var, sizes: tuple[int, int]) -> list[Call]:
    """The calls for a matrix by its own transpose. sizes: rows and terms."""
    n, byte = sizes[0], out.dtype.itemsize
    element = "f32" if byte == 4 else "f64"
    place = Address(a.view.root, a.view.offset * byte)
    words, tasks = gram_words(sizes, Laid(a.transposed, a.leading))
    return [
        Call(("gram", element), (place, Address(out), *words), tasks, (out,)),
        Call(("mirrored", element), (Address(out), n, MIRRORED), -(-n // MIRRORED), (out,)),
    ]


def _few_rows(a: Matrix, b: Matrix, out: Var, sizes: tuple[int, int, int]) -> Call:
    """The call for a few rows and a matrix."""
    n, byte = sizes[1], out.dtype.itemsize
    element = "f32" if byte == 4 else "f64"
    steps = (1, a.leading) if a.transposed else (a.leading, 1)
    words, tasks = few_rows_words(sizes, steps, b.leading, (n, 1), element)
    places = [Address(x.view.root, x.view.offset * byte) for x in (a, b)]
    kernel = "few rows", *code_of(sizes, element, b.transposed)
    return Call(kernel, (*places, Address(out), *words), tasks, (out,))


def _is_few(m: int, n: int, k: int, out: Var) -> bool:
    lanes = host().vector_bytes // out.dtype.itemsize  # a row may be two whole vectors
    return max(m, n, k) <= _FEW and (1 < n <= lanes or n == 2 * lanes)


def _few(
    a: Matrix, b: Matrix, out: Var, stack: tuple[int, ...], sizes: tuple[int, int, int]
) -> Call:
    """The call for a stack of small products."""
    (m, n, k), byte, count = sizes, out.dtype.itemsize, math.prod(stack)
    several = max(1, _FEW_TASK // (m * n * k))
    down, along = (1, a.leading) if a.transposed else (a.leading, 1)
    words: list[Word] = [
        Address(a.view.root, a.view.offset * byte), Address(b.view.root, b.view.offset * byte),
        Address(out), m, k, down, along, b.leading, count, several, *stack_words(stack, a, b),
    ]  # fmt: skip
    lanes, most = 1 << (n - 1).bit_length(), host().vector_bytes
    rows = min(m, most // 4 // -(-lanes * byte // most))  # that share what is read of the other
    turned = lanes >= 4 and k <= lanes
    across = "" if not b.transposed else "turned" if turned else "looked up"
    kernel = ("few", "f32" if byte == 4 else "f64", len(stack), n, rows, across)
    return Call(kernel, tuple(words), -(-count // several), (out,))


def _few_sums(
    matrix: Matrix, vector: Matrix, out: Var, stack: tuple[int, ...], sizes: tuple[int, int]
) -> Call:
    """The call for a stack of small matrices by a vector each; rows lie along the sum."""
    (m, k), byte, count = sizes, out.dtype.itemsize, math.prod(stack)
    several = max(1, _FEW_TASK // (m * k))
    words: list[Word] = [
        Address(matrix.view.root, matrix.view.offset * byte),
        Address(vector.view.root, vector.view.offset * byte),
        Address(out), m, matrix.leading, count, several, *stack_words(stack, matrix, vector),
    ]  # fmt: skip
    kernel = ("few sums", "f32" if byte == 4 else "f64", len(stack), k)
    return Call(kernel, tuple(words), -(-count // several), (out,))


def print_few_sums(module: Module, name: str, element: str, depth: int, k: int) -> None:
    """Add the kernel for sums of k terms, one vector of them: the rows of each matrix of a stack of
    that depth by a vector. Frame: matrices, vectors, result; rows, elements from row to row;
    matrices, and how many are a task; the stack's axes as in `print_few`.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments

    x, y, out = f.pointers(frame, 0, 3)
    m, leading, count, group = f.words(frame, 3, 4)
    axes = [f.words(frame, 7 + 4 * axis, 4) for axis in range(depth)]
    lanes = max(16 // typed(element).bytes, 1 << (k - 1).bit_length())
    wide = typed(element, lanes)
    mask = None if k == lanes else f.first_lanes(lanes, f.constant(I64, k))

    def product(number: Value) -> None:
        a, b = find_products(f, number, axes, (x, y), element)
        c = f.at(out, number * m, element)
        vector = f.load(wide, b, mask)

        def rows(i: Value, _: list[Value]) -> list[Value]:
            places = [f.intrinsic("smin", i + r, m - 1) for r in range(_SUMS)]
            read = [f.load(wide, f.at(a, p * leading, element), mask) for p in places]
            at = i
            for found in side_by_side(f, [r * vector for r in read]):
                here = f.intrinsic("smax", m - at, f.constant(I64, 0))
                f.store(found, f.at(c, at, element), f.first_lanes(found.type.lanes, here))
                at = at + found.type.lanes
            return []

        f.loop(0, m, _SUMS, rows)

    each_product(f, (count, group), product)


def print_few(
    module: Module, name: str, element: str, depth: int, n: int, several: int, across: str
) -> None:  # fmt: skip
    """Add the kernel for products of n columns in a stack of that depth, so many rows at a time:
    the last ones end where the matrix does.

    across: where the columns of the second matrix are its rows in memory, whether a vector looks
    one element of each up, or all of them are turned around first, which takes no more terms than a
    vector has lanes. Frame: both operands, result; rows, terms; elements from row to row and from
    term to term of the first, from row to row (or column to column) of the second; products, and
    how many are a task; for each axis of the stack how many are below it, its length, and elements
    from one to the next of both.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments

    x, y, out = f.pointers(frame, 0, 3)
    m, k, down, along, leading, count, group = f.words(frame, 3, 7)
    axes = [f.words(frame, 10 + 4 * axis, 4) for axis in range(depth)]
    lanes = 1 << (n - 1).bit_length()
    wide = typed(element, lanes)
    mask = None if n == lanes else f.first_lanes(lanes, f.constant(I64, n))

    def across_rows(b: Value, t: Value) -> Value:
        here = f.lanes(typed("i64", lanes))
        here = f.select(f.compare("lt", here, n), here, 0) if mask is not None else here
        return f.elements(element, b, here * f.splat(leading, lanes) + f.splat(t, lanes))

    turned = f.allocate(wide, lanes) if across == "turned" else None

    def turn(b: Value, to: Value) -> None:
        terms = f.first_lanes(lanes, k)
        read = [f.load(wide, f.at(b, leading * r, element), terms) for r in range(n)]
        read += [f.constant(wide, 0)] * (lanes - n)
        for t, row in enumerate(turned_around(f, read)):
            f.store(row, f.at(to, t * lanes, element))

    def product(number: Value) -> None:
        a, b = find_products(f, number, axes, (x, y), element)
        c = f.at(out, number * m * n, element)
        step, within = leading, mask
        if turned is not None:
            turn(b, turned)
            b, step, within = turned, f.constant(I64, lanes), None

        def rows(i: Value, _: list[Value]) -> list[Value]:
            i = f.intrinsic("smin", i, m - several)

            def term(t: Value, sums: list[Value]) -> list[Value]:
                start = f.at(b, t * step, element)
                looked_up = across == "looked up"
                row = across_rows(b, t) if looked_up else f.load(wide, start, within)
                places = [f.at(a, (i + r) * down + t * along, element) for r in range(several)]
                each = [f.splat(f.load(typed(element), p), lanes) for p in places]
                return [f.fma(e, row, s) for e, s in zip(each, sums, strict=True)]

            sums = f.loop(0, k, 1, term, [f.constant(wide, 0)] * several)
            for r, total in enumerate(sums):
                f.store(total, f.at(c, (i + r) * n, element), mask)
            return []

        f.loop(0, m, several, rows)

    each_product(f, (count, group), product)


def _by_vector(a: Matrix, b: Matrix, out: Var, fused: Fused) -> list[Call]:
    """The calls where one of the matrices has one row or column."""
    calls: list[Call] = []
    by_column = b.view.shape[-1] == 1
    matrix, vector = (a, b) if by_column else (b, a)
    seen, byte = vector.view, out.dtype.itemsize
    if not seen.is_run:
        calls, seen = copy(seen, fused)
    at, given = (Address(v.root, v.offset * byte) for v in (matrix.view, seen))
    across = matrix.transposed == by_column
    return [*calls, *vector_product(at, given, out, seen.size, matrix.leading, across=across)]


def _by_vectors(a: Matrix, b: Matrix, out: Var, stack: tuple[int, ...], fused: Fused) -> list[Call]:
    """The calls for a stack of matrices by a vector each."""
    calls: list[Call] = []
    by_column, byte = b.view.shape[-1] == 1, out.dtype.itemsize
    matrix, vector = (a, b) if by_column else (b, a)
    if vector.view.strides[-2 if by_column else -1] != 1:
        made, view = copy(vector.view, fused)
        calls += made
        stacked = zip(view.shape[:-2], view.strides[:-2], strict=True)
        vector = replace(vector, view=view, stack=tuple(stacked))
    at, given = (Address(v.view.root, v.view.offset * byte) for v in (matrix, vector))
    terms = vector.view.shape[-2 if by_column else -1]
    sizes = math.prod(out.shape) // math.prod(stack), terms, matrix.leading
    axes = stack_words(stack, matrix, vector)
    across = matrix.transposed == by_column
    return [*calls, vector_products(at, given, out, sizes, (stack, axes), across=across)]
