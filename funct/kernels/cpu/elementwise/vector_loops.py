"""Elementwise loops over large arrays: operands that broadcast, in vectors, in threads.

    combined("add", (x, y), x.dtype)     # x + y, computed in float32 where they are float16

Narrow numbers are widened in registers and the result is rounded once. What is printed is a loop
over blocks of rows of columns, as `(batch, 1, n) * (batch, m, 1)` has them; an operand that cannot
be walked so is copied first. Tasks are rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct

from funct.device import Code, assemble, host
from funct.kernels.cpu import scratch
from funct.kernels.cpu.elementwise.layouts import Layout, Walk, merged, period_of, walks_of
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.cpu.runners import runner
from funct.kernels.cpu.tasks import deal_out
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each, typed
from funct.kernels.llvm.entropies import ENTROPIES
from funct.kernels.llvm.functions import FUNCTIONS
from funct.kernels.llvm.logistic import share
from funct.kernels.llvm.remainder import integer_quotient
from funct.kernels.windows.views import inverse_order, memory_order

__all__ = [
    "ELEMENTS", "OPS", "PRINTED", "SHORTEST", "SIGNS", "TASK", "amended", "combined", "computed",
    "nans", "operand", "outer_product", "registers",
]  # fmt: skip

ELEMENTS = {
    np.dtype(bool): "u8", np.dtype(np.uint8): "u8", np.dtype(np.int8): "i8",
    np.dtype(np.int16): "i16", np.dtype(np.uint16): "u16", np.dtype(np.int32): "i32",
    np.dtype(np.uint32): "u32", np.dtype(np.int64): "i64", np.dtype(np.uint64): "u64",
    np.dtype(np.float16): "f16", np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(np.float32): "f32", np.dtype(np.float64): "f64",
}  # fmt: skip
_WHOLE = {"bf16": 1 << 8, "f16": 1 << 11, "f32": 1 << 24, "f64": 1 << 53}  # all integers up to
_BLOCK = 1 << 12  # elements of a row where everything lies in one
_NARROWEST = 32  # columns; shorter rows are no work for vectors of a function's many steps
SHORTEST = 8  # elements of a vector
_REPEATED = 1 << 9  # elements of a row of what repeats
_PARTS = 8  # vectors of a row that is short
TASK = 1 << 14  # elements that are worth a task
_MOST = 3  # operands
_LONG = frozenset({
    "acos", "acosh", "asin", "asinh", "atanh", "cbrt", "cos", "cosh", "erfc", "erfinv",
    "exp", "exp2", "expit", "expm1", "gammaln", "logaddexp", "ndtr", "pow", "sigmoid", "sin",
    "sinh", "tan", "tanh",
})  # fmt: skip

SIGNS = frozenset({"abs", "copysign", "negative"})  # of halves the same of their bits

_PLACES = ["y", *[f"x{k}" for k in range(_MOST)]]  # addresses, which a call fills in
_STEPS = [f"s{k}" for k in range(_MOST)]  # strides of rows
_BLOCKS = [f"b{k}" for k in range(_MOST)]  # strides of blocks
_FIELDS = Fields((*_PLACES, "tasks", "rows", "block", "columns", "count", *_STEPS, *_BLOCKS))


def root(f: Emitter, x: Value) -> Value:
    """x to the power 1/2: the square root, but inf where x is -inf, and 0 where it is -0."""
    return f.select(f.eq(x, -math.inf), math.inf, f.abs(f.sqrt(x)))


def _compared(how: Any) -> Callable[..., Value]:
    return lambda f, x, y: f.convert(f.compare(how, x, y), "u8")


OPS: dict[str, Callable[..., Value]] = {
    "add": lambda f, x, y: x + y,
    "subtract": lambda f, x, y: x - y,
    "multiply": lambda f, x, y: x * y,
    "divide": lambda f, x, y: x / y,
    "maximum": lambda f, x, y: f.first_maximum(x, y),
    "minimum": lambda f, x, y: f.first_minimum(x, y),
    "at_least": lambda f, x, y: f.maximum(x, y),  # of two zeros the second
    "at_most": lambda f, x, y: f.minimum(x, y),
    "equal": _compared("eq"),
    "not_equal": _compared("ne"),
    "less": _compared("lt"),
    "less_equal": _compared("le"),
    "greater": _compared("gt"),
    "greater_equal": _compared("ge"),
    "logical_and": lambda f, x, y: f.convert(f.ne(x, 0) & f.ne(y, 0), "u8"),
    "logical_not": lambda f, x: f.convert(f.eq(x, 0), "u8"),
    "logical_or": lambda f, x, y: f.convert(f.ne(x, 0) | f.ne(y, 0), "u8"),
    "logical_xor": lambda f, x, y: f.convert(f.ne(x, 0) ^ f.ne(y, 0), "u8"),
    "isfinite": lambda f, x: f.convert(f.abs(x) < math.inf, "u8"),
    "isinf": lambda f, x: f.convert(f.eq(f.abs(x), math.inf), "u8"),
    "isnan": lambda f, x: f.convert(f.isnan(x), "u8"),
    "abs": lambda f, x: f.abs(x),
    "ceil": lambda f, x: f.ceil(x),
    "floor": lambda f, x: f.floor(x),
    "negative": lambda f, x: -x,
    "reciprocal": lambda f, x: 1 / x,
    "round": lambda f, x: f.round(x),
    "sqrt": lambda f, x: f.sqrt(x),
    "square": lambda f, x: x * x,
    "cube": lambda f, x: x * x * x,
    "fourth": lambda f, x: (x * x) * (x * x),
    "root": root,
    "inverse_root": lambda f, x: 1 / root(f, x),
    "inverse_square": lambda f, x: (1 / x) * (1 / x),
    "trunc": lambda f, x: f.trunc(x),
    "where": lambda f, c, x, y: f.select(f.ne(c, 0), x, y),
    "astype": lambda f, x: x,
    "by_single": lambda f, x: f.convert(x, "f32"),
    "abs of bits": lambda f, x: x & 0x7FFF,
    "negative of bits": lambda f, x: x ^ 0x8000,
    "copysign of bits": lambda f, x, y: (x & 0x7FFF) | (y & 0x8000),
    "share": share,
    "fmod": FUNCTIONS["fmod"],
    "floor_divide": FUNCTIONS["floor_divide"],
    "remainder": FUNCTIONS["remainder"],
    "integer_floor_divide": lambda f, x, y: integer_quotient(f, x, y)[0],
    "integer_remainder": lambda f, x, y: integer_quotient(f, x, y)[1],
}  # exact, or rounded once

# x * y + 0: of sums of one term none is -0
_SHORT = OPS | {
    "relu": lambda f, x: f.select(x <= 0, f.constant(x.type, 0), x),  # NaN as it is, and 0 of -0
    "outer_product": lambda f, x, y: x * y + 0,
    "without": lambda f, x, y: f.select(f.isnan(x), y, x),
    "numbers": lambda f, x, y, most: f.select(f.isnan(x), y, f.maximum(f.minimum(x, most), -most)),
    "half_turns": lambda f, x, y: f.select(
        f.isnan(x), x, f.select(f.copysign(f.constant(x.type, 1), x) < 0, y, y * 0)
    ),
}
PRINTED: dict[str, Callable[..., Value]] = FUNCTIONS | ENTROPIES | _SHORT


def amended(name: str, odd: Sequence[tuple[float, float]], signed: bool, negative: bool) -> str:
    """The name of a function of FUNCTIONS with other values at some numbers. signed: NaN keeps its
    sign, which is else lost. negative: NaN that is made of a number has its sign set.
    """
    pairs = tuple(odd)
    own = f"{name} but {pairs} {signed} {negative}"

    def emit(f: Emitter, x: Value) -> Value:
        y = FUNCTIONS[name](f, x)
        for place, value in pairs:
            kept = value == place == 0  # zeros keep their signs
            y = f.select(f.eq(x, place), x if kept else value, y)
        if negative:
            y = f.select(f.isnan(y), -f.abs(y), y)
        return f.select(f.isnan(x), x if signed else f.abs(x), y)

    PRINTED.setdefault(own, emit)
    return own


class _Form(Struct, frozen=True):
    """What a text depends on. steps: whether an operand moves along columns. parts: vectors of a
    row, of so many lanes, where rows are short; else 0.
    """

    name: str
    elements: tuple[str, ...]
    steps: tuple[bool, ...]
    result: str
    parts: int = 0
    lanes: int = 0


@functools.cache
def _entry(form: _Form) -> tuple[Code, Any]:
    code = assemble(_text(form))
    return code, runner(code.address("run"))


def _text(form: _Form) -> str:
    """`run(job)`."""
    module = Module(host())
    f = module.function("rows", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, _FIELDS, f.arguments[0]), f.arguments[1]
    start = f.div(task * job.rows, job.tasks)
    stop = f.div((task + 1) * job.rows, job.tasks)

    def row(k: Value, at: list[Value]) -> list[Value]:
        block, within = at
        _row(f, form, job, k, block, within)
        last = f.eq(within + 1, job.block)
        return [f.select(last, block + 1, block), f.select(last, f.constant(I64, 0), within + 1)]

    block = f.div(start, job.block)
    f.loop(start, stop, 1, row, [block, start - block * job.block], maybe_empty=True)
    f.ret()
    deal_out(module, "run", "rows", _FIELDS)
    return module.text()


def _row(f: Emitter, form: _Form, job: Record, k: Value, block: Value, within: Value) -> None:
    """One row, of which the last may be shorter. block, within: which of which block it is."""
    before = k * job.columns
    length = f.min(job.columns, job.count - before)
    rows = []
    for n, e in enumerate(form.elements):
        step, far = getattr(job, f"s{n}"), getattr(job, f"b{n}")
        rows.append(f.at(job.pointer(f"x{n}"), block * far + within * step, e))
    y = f.at(job.pointer("y"), before, form.result)
    still = [
        None if step else f.load(typed(e), at)
        for at, e, step in zip(rows, form.elements, form.steps, strict=True)
    ]

    def some(i: Value, lanes: int) -> None:
        given = []
        for at, e, one in zip(rows, form.elements, still, strict=True):
            x = f.load(typed(e, lanes), f.at(at, i, e)) if one is None else f.splat(one, lanes)
            given.append(f.convert(x, "f32") if e in ("f16", "bf16") else x)
        f.store(f.convert(PRINTED[form.name](f, *given), form.result), f.at(y, i, form.result))

    if form.parts:
        for part in range(form.parts - 1):
            some(f.constant(I64, part * form.lanes), form.lanes)
        some(job.columns - form.lanes, form.lanes)
        return
    most = max([typed(e).bytes for e in (*form.elements, form.result)])
    done = f.constant(I64, 0)
    vectors = [n * host().vector_bytes // most for n in registers(form.name)]
    for lanes in dict.fromkeys([max(n, SHORTEST) for n in (*vectors, SHORTEST)]):
        whole = length - f.rem(length, lanes)
        each(f, done, whole, functools.partial(some, lanes=lanes), lanes)
        done = whole

    def last() -> None:
        some(length - SHORTEST, SHORTEST)

    def one_by_one() -> None:
        each(f, 0, length, lambda i: some(i, 1))

    f.when((done < length) & (length > SHORTEST), last)  # some for the second time
    f.when(length < SHORTEST, one_by_one)


def registers(name: str) -> tuple[int, ...]:
    """How many are walked at a time, the widest first.

    A processor holds few operations that wait; those of one vector of a long function nearly all
    wait for each other. More vectors side by side need registers. Of a function, what is left
    over takes single vectors: 31 numbers one by one take as long as 500 together.
    """
    if name in OPS or not host().has("avx512f"):
        return (2,)
    return (4, 1) if name.partition(" ")[0] in _LONG else (2, 1)


def operand(a: Any, kind: np.dtype[Any]) -> Any:
    """An array of that dtype that NumPy would make of an operand; None where it does otherwise."""
    if a.__class__ is np.ndarray:
        return a if a.dtype is kind else None
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return np.asarray(a, kind) if a.__class__ is int and limits.min <= a <= limits.max else None
    whole = _WHOLE.get(ELEMENTS[kind], -1)
    if whole > 0 and (a.__class__ is float or (a.__class__ is int and -whole <= a <= whole)):
        return np.asarray(a, kind)
    return None


def combined(name: str, operands: Sequence[Any], dtype: np.dtype[Any]) -> Any:
    """The op, of OPS or FUNCTIONS, of these arrays, which broadcast, in the dtype; ELEMENTS has
    their dtypes.
    """
    first = operands[0]
    shape = first.shape
    for x in operands:
        if x.shape and x.shape != shape:
            shape = np.broadcast(*operands).shape
            break
    # what is in C's order is asked first: it is all that most calls are
    if len(shape) > 1 and not (first.shape == shape and first.flags.c_contiguous):
        count = math.prod(shape)
        whole = [x for x in operands if x.size == count and x.ndim == len(shape)]
        order = memory_order(whole[0]) if whole else None  # which the result has, too
        if order is not None and all(_lies_so(x, order) for x in whole):
            turned = [_turned(x, order) for x in operands]
            y = computed(name, turned, tuple([shape[a] for a in order]), dtype)
            return y.transpose(inverse_order(order))
    return computed(name, operands, shape, dtype)


def outer_product(x: Any, y: Any) -> Any:
    """See `funct.kernels.linalg.products.outer_product`."""
    return combined("outer_product", (x, y), x.dtype)


def nans(name: str, x: Any, value: float) -> Any:
    """See `funct.kernels.elementwise.nans`."""
    kind = x.dtype
    finfo: Any = ml_dtypes.finfo
    most = [np.asarray(finfo(kind).max, kind)] if name == "numbers" else []
    return combined(name, (x, np.asarray(value, kind), *most), kind)


def _lies_so(x: Any, order: list[int]) -> bool:
    return x.ndim == len(order) and bool(x.transpose(order).flags.c_contiguous)


def _turned(x: Any, order: list[int]) -> Any:
    return x.reshape((1,) * (len(order) - x.ndim) + x.shape).transpose(order)


def computed(
    name: str, operands: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Any:
    """The same where the shape is known; the result is in C's order."""
    y = scratch.fresh(shape, dtype)
    if not y.size:
        return y
    layouts = tuple([(x.shape, x.strides, x.dtype, x.flags.aligned) for x in operands])
    plan = _plan(name, shape, dtype, layouts)
    if plan.copies:
        pairs = zip(operands, plan.copies, strict=True)
        operands = [x if c is None else _copied(x, c) for x, c in pairs]
    plan.run(y, *operands, plan.rest)
    return y


def _parts(columns: int, elements: Sequence[str]) -> tuple[int, int]:
    """How many vectors of how many lanes a short row takes, the last one over some elements for
    the second time; (0, 0) for long rows.
    """
    widest = host().vector_bytes // max([typed(e).bytes for e in elements])
    lanes = min(widest, 1 << (columns.bit_length() - 1))
    parts = -(-columns // lanes)
    return (parts, lanes) if parts <= _PARTS else (0, 0)


class _Plan(Struct, frozen=True, eq=False):
    """What is known before the arrays are. rest: the bytes of a job behind the addresses. copies:
    shapes to which operands are copied first, or ().
    """

    run: Any
    rest: bytes
    copies: tuple[tuple[int, ...] | None, ...]


@functools.lru_cache(512)
def _plan(
    name: str, shape: tuple[int, ...], dtype: np.dtype[Any], layouts: tuple[Layout, ...]
) -> _Plan:
    """layouts: shapes, strides and dtypes of the operands, and whether they are aligned."""
    owns, copied, (shape, layouts) = [a[0] for a in layouts], shape, merged(shape, layouts)
    count, parts, sizes = math.prod(shape), (0, 0), [math.prod(a[0]) for a in layouts]
    elements = [ELEMENTS[a[2]] for a in layouts]
    walks: list[Walk | None] = [None] * len(layouts)
    copies: list[tuple[int, ...] | None] = [None] * len(layouts)
    period = period_of(layouts, shape) if sizes == [math.prod(own) for own in owns] else 0
    columns = shape[-1] if shape else 1
    if period:
        repeats = max(1, (_BLOCK if period == 1 else _REPEATED) // period)
        columns = period * repeats
        rows = block = -(-count // columns)
        for k, n in enumerate(sizes):
            if 1 < n < count:
                walks[k] = 0, 0, True
                copies[k] = (repeats, *owns[k]) if repeats > 1 else None
    elif columns >= (2 if name in _SHORT else _NARROWEST):
        rows = count // columns
        block, walks = walks_of(layouts, shape)
        still = [n == 1 or walk is not None for n, walk in zip(sizes, walks, strict=True)]
        copies = [None if s else copied for s in still]
        if name in _SHORT:
            parts = _parts(columns, (*elements, ELEMENTS[dtype]))
    else:
        columns, copies = _BLOCK, [copied if n > 1 else None for n in sizes]
        rows = block = -(-count // columns)
    steps = []
    for n, walk in zip(sizes, walks, strict=True):
        whole = columns * block, columns, True
        steps.append((0, 0, False) if n == 1 else walk or whole)
    moves = tuple([m for _, _, m in steps])
    form = _Form(name, tuple(elements), moves, ELEMENTS[dtype], *parts)
    fields = dict.fromkeys((*_PLACES, *_STEPS, *_BLOCKS), 0)
    fields |= {f"b{k}": stride for k, (stride, _, _) in enumerate(steps)}
    fields |= {f"s{k}": stride for k, (_, stride, _) in enumerate(steps)}
    job = _FIELDS.fill(
        tasks=max(1, min(rows, count // TASK, 4 * host().cores)), rows=rows, block=block,
        columns=columns, count=count, **fields,
    )  # fmt: skip
    return _Plan(
        _entry(form)[1], job[1 + len(layouts) :].tobytes(),
        tuple(copies) if any(c is not None for c in copies) else (),
    )  # fmt: skip


def _copied(x: Any, shape: tuple[int, ...]) -> Any:
    if x.size == 1:
        return x
    y = np.empty(shape, x.dtype)
    y[...] = x
    return y
