"""SciPy's loops, mended as eager execution mends them (`funct/kernels/special/gamma.py`), with its
bits: where no element is in need of that, they are called as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from funct.kernels.llvm import F64, I64, PTR, Emitter, Value, each
from funct.kernels.special.gamma import BESIDE, LEAST, LOGARITHM, POWER

__all__ = ["MENDED", "call_mended"]

_Scipy = Callable[[Value], Value]


def _far(f: Emitter, x: Value) -> tuple[Value, Value]:
    """How far above a whole number below 0 each is that is close to one, and which are."""
    apart = x - f.round(x)
    return apart, (x < 0) & (apart > 0) & (apart < BESIDE)


def _digamma(f: Emitter, scipy: _Scipy, x: Value) -> Value:
    apart, beside = _far(f, x)

    def mended() -> list[Value]:
        return [scipy(1 - x) - scipy(1 - apart) + scipy(apart)]

    return f.branch(beside, mended, lambda: [scipy(x)])[0]


def _gammaln(f: Emitter, scipy: _Scipy, x: Value) -> Value:
    return f.branch(f.abs(x) < LEAST, lambda: [scipy(x * POWER) + LOGARITHM], lambda: [scipy(x)])[0]


_Asked = Callable[[Emitter, Value], Value]
MENDED: dict[str, tuple[_Asked, Callable[[Emitter, _Scipy, Value], Value]]] = {
    "scipy_digamma_of_float64": (lambda f, x: _far(f, x)[1], _digamma),
    "scipy_gammaln_of_float64": (lambda f, x: f.abs(x) < LEAST, _gammaln),
}
"""By the names of loops: which numbers are in need, and the function of one."""


def call_mended(
    f: Emitter, loop: str, arrays: Value, length: Value, strides: Value, held: Value
) -> None:
    """Call a loop of one operand, which may be the result."""
    asked, mended = MENDED[loop]
    x, y = (f.load(PTR, f.at(arrays, k, "i64")) for k in range(2))
    n = f.load(I64, length)
    step, y_step = (f.load(I64, f.at(strides, k, "i64")) for k in range(2))
    cells, pointers = f.allocate(F64, 2), f.allocate(PTR, 2)
    numbers = f.allocate(I64, 3)  # one element, and strides that are not asked

    def scipy(v: Value) -> Value:
        f.store(v, cells)
        for k in range(2):
            f.store(f.at(cells, k, "f64"), f.at(pointers, k, "i64"))
        for k, number in enumerate((1, 8, 8)):
            f.store(f.constant(I64, number), f.at(numbers, k, "i64"))
        f.call(loop, None, [pointers, numbers, f.at(numbers, 1, "i64"), held])
        return f.load(F64, f.at(cells, 1, "f64"))

    def read(i: Value) -> Value:
        return f.load(F64, f.at(x, i * step, "i8"))

    def look(i: Value, found: list[Value]) -> list[Value]:
        return [found[0] | f.convert(asked(f, read(i)), "i64")]

    def one(i: Value) -> None:
        f.store(mended(f, scipy, read(i)), f.at(y, i * y_step, "i8"))

    def whole() -> list[Value]:
        f.call(loop, None, [arrays, length, strides, held])
        return []

    def single() -> list[Value]:
        each(f, 0, n, one)
        return []

    (some,) = f.loop(0, n, 1, look, [f.constant(I64, 0)], maybe_empty=True)
    f.branch(f.ne(some, 0), single, whole)
