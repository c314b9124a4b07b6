"""QR and singular values of small matrices inside of a program: NumPy's loops, by address.

Results are those of eager execution, which computes small matrices of single precision in double.
What LAPACK would not come to an end with is not given to it: the program says at its end that it is
not right, and on the slow way the op raises.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Buffer, Call, Word
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.lower import places_of
from funct.compile.loops.kernel import CONTROL_WORDS
from funct.compile.steps.matrices import call_lapack, converted, refuse
from funct.device.machine_code import offer
from funct.graph import Node, Var
from funct.kernels.linalg import lapack
from funct.kernels.llvm import F64, I64, PTR, Emitter, Module, Value, typed

__all__ = ["is_factors", "lower_factors", "print_qr", "print_svd"]

_DOUBLE = np.dtype(np.float64)
_LOOPS = {"qr": ("qr_r_raw", "qr_reduced", "qr_complete"), "svd": ("svd_s", "svd_f"),
          "svdvals": ("svd",)}  # fmt: skip
_BYTES = 8


def is_factors(step: Any) -> bool:
    """Whether a step is such an op, of real matrices that are computed in double."""
    if not isinstance(step, Node) or step.name not in _LOOPS:
        return False
    (x,) = step.operands
    held = [x, *step.results]
    if not all(isinstance(v, Var) and 0 not in v.shape and v.dtype.char in "fd" for v in held):
        return False
    assert isinstance(x, Var)
    small = lapack.inner(x.dtype.char, *x.shape[-2:]) == "d"
    return small and all(lapack.address(name, "d") is not None for name in _LOOPS[step.name])


def lower_factors(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of what does not lie one after the other."""
    (x,) = node.operands
    assert isinstance(x, Var)
    calls, places = places_of((x,), fused)
    (*lead, m, n), out = x.shape, node.results
    count, element = math.prod(lead), "f64" if x.dtype == _DOUBLE else "f32"
    cores = [tuple(v.shape[len(lead) :]) for v in (x, *out)]
    made = Address(Buffer(count * m * n, _DOUBLE))  # what LAPACK writes over

    def room(k: int) -> Word:
        return Address(Buffer(count * math.prod(cores[k]), _DOUBLE)) if element == "f32" else 0

    held: list[Word] = [*places, *[Address(v) for v in out], made]
    least = min(m, n)
    if node.name == "qr":
        k = cores[1][1]
        shapes = [(m, n), (least,), cores[1]]
        held += [room(1), Address(Buffer(count * least, _DOUBLE))]
        whole = bool(node.params[0]) and m > n
        kernel: Any = ("qr", element, "qr_complete" if whole else "qr_reduced")
        words = (*held, count, m, n, least, k, *_strides(shapes[:2]), *_strides(shapes))
        return [*calls, Call(kernel, words, 1, out)]
    sizes = [count * math.prod(c) for c in cores[1:]]
    held += [room(k) for k in range(1, len(cores))]
    loop = "svd" if node.name == "svdvals" else "svd_f" if node.params[0] else "svd_s"
    kernel = ("svd", element, loop, len(out), node.name == "svd")
    words = (*held, *sizes, count, m, n, least, *_strides(cores))
    return [*calls, Call(kernel, words, 1, out, checks=True)]


def _strides(shapes: list[tuple[int, ...]]) -> list[int]:
    """Bytes from matrix to matrix of each array, then those of their axes."""
    apart = [_BYTES * math.prod(s) for s in shapes]
    return apart + [_BYTES * math.prod(s[k + 1 :]) for s in shapes for k in range(len(s))]


def print_qr(module: Module, name: str, element: str, loop: str) -> None:
    """Add the kernel of `qr`. Frame: places of x, Q and R, of a copy of x, of Q in double and of
    what Q is made of besides; numbers of matrices, rows, columns, the least of both, and columns of
    Q; strides of the two loops.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    x, q, r, made, wide, tau = (f.load(PTR, f.at(frame, s, "i64")) for s in range(6))
    numbers = f.at(frame, 6, "i64")
    count, m, n, _, k = (f.load(I64, f.at(numbers, s, "i64")) for s in range(5))
    wide = q if element == "f64" else wide
    converted(f, x, made, count * m * n, element, "f64")
    table = f.allocate(PTR, 3)
    for symbol, at in (("qr_r_raw", 5), (loop, 10)):
        for s, place in enumerate((made, tau, wide)):  # which NumPy's loops move on
            f.store(place, f.at(table, s, "i64"))
        strides = f.at(numbers, at, "i64")
        given = [table, numbers, strides, f.null()]
        call_lapack(f, f"{symbol}_of_factors", m * n, given)
    if element != "f64":
        converted(f, wide, q, count * m * k, "f64", element)

    def row(t: Value, _: list[Value]) -> list[Value]:
        i = f.rem(t, k)
        first = (f.div(t, k) * m + i) * n

        def one(j: Value, _: list[Value]) -> list[Value]:
            found = f.load(F64, f.at(made, first + j, "f64"))
            kept = f.select(f.compare("lt", j, i), f.constant(F64, 0.0), found)
            f.store(f.convert(kept, element), f.at(r, t * n + j, element))
            return []

        f.loop(0, n, 1, one)
        return []

    f.loop(0, count * k, 1, row)
    f.ret()


def print_svd(
    module: Module, name: str, element: str, loop: str, results: int, finite: bool
) -> None:
    """Add the kernel of `svd` or `svdvals`. Frame: places of x and the results, of a copy of x and
    of results in double, and numbers of elements of these; numbers of matrices, rows, columns and
    the least of both; the loop's strides. finite: what is not is refused.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    space, own = f.load(PTR, frame), f.at(frame, CONTROL_WORDS, "i64")
    x = f.load(PTR, own)
    outs, rooms = (
        [f.load(PTR, f.at(own, s + k, "i64")) for k in range(results)] for s in (1, results + 2)
    )
    made = f.load(PTR, f.at(own, results + 1, "i64"))
    sizes = [f.load(I64, f.at(own, 2 * results + 2 + k, "i64")) for k in range(results)]
    numbers = f.at(own, 3 * results + 2, "i64")
    count, m, n = (f.load(I64, f.at(numbers, s, "i64")) for s in range(3))
    converted(f, x, made, count * m * n, element, "f64")
    table = f.allocate(PTR, 1 + results)
    for s, place in enumerate((made, *(outs if element == "f64" else rooms))):
        f.store(place, f.at(table, s, "i64"))

    def run() -> list[Value]:
        strides = f.at(numbers, 4, "i64")
        given = [table, numbers, strides, f.null()]
        call_lapack(f, f"{loop}_of_factors", m * n, given)
        for k in range(results):
            if element != "f64":
                converted(f, rooms[k], outs[k], sizes[k], "f64", element)
        refuse(f, sizes[0], space, lambda t: f.isnan(_at(f, outs[0], t, element)))
        return []

    if finite:
        refuse(f, count * m * n, space, lambda t: _not_finite(f, _at(f, made, t, "f64")))
        f.branch(f.eq(f.load(I64, space), 0), run, list)
    else:
        run()
    f.ret()


def _at(f: Emitter, x: Value, k: Value, element: str) -> Value:
    return f.load(typed(element), f.at(x, k, element))


def _not_finite(f: Emitter, v: Value) -> Value:
    return f.isnan(v - v)


def _offered(name: str) -> int:
    found = lapack.address(name, "d")
    assert found is not None, "asked for by text that was printed for it"
    return found


for _names in _LOOPS.values():
    for _name in _names:
        offer(f"funct_{_name}_of_factors", functools.partial(_offered, _name))
