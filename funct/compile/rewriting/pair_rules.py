"""What ops of complex numbers are on pairs of real ones: how `pairs.py` writes each.

A rule takes the walk and a node, and gives the parts of the result, or the result if it is real.

Products are fused as NumPy's are where the processor can; quotients are Smith's; functions are
those of `kernels/llvm/complexes.py`, of which loops print each part. Ops that are not known to have
NumPy's values for infinities too have no rule.
"""

from __future__ import annotations

import cmath
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.graph import Node, Var
from funct.kernels.llvm.complexes import COMPLEX

if TYPE_CHECKING:
    from funct.compile.rewriting.pairs import Pairs

__all__ = ["PRODUCTS", "REAL", "RULES", "NoPairs", "Parts"]

Parts = tuple[Any, Any]  # Vars, or numbers

REAL = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(float)}
# sums of products of two operands; what others there are is real
PRODUCTS = ("contract", "matmul", "sampled_matmul", "sparse_matmul")
_MOST_FACTORS = 100  # of powers; NumPy's bound


class NoPairs(Exception):  # noqa: N818
    """An op of complex numbers is not known here."""


def _times(p: Pairs, x: Parts, y: Parts, out: Var) -> Parts:
    """A product, each part of which begins with what y's two parts are for x's first."""
    (a, b), (c, d) = x, y
    re = p.of_reals("fma", a, c, p.of_reals("negative", _product(p, b, d, out), like=out), like=out)
    return re, p.of_reals("fma", a, d, _product(p, b, c, out), like=out)


def _product(p: Pairs, x: Any, y: Any, out: Var) -> Any:
    if not isinstance(x, Var) and not isinstance(y, Var):
        return p.constant(np.asarray(x * y, REAL[out.dtype]))
    return p.of_reals("multiply", x, y, like=out)


def _multiply(p: Pairs, e: Node) -> Parts:
    x, y = map(p.of, e.operands)
    return _times(p, x, y, e.results[0])


def _square(p: Pairs, e: Node) -> Parts:
    x = p.of(e.operands[0])
    return _times(p, x, x, e.results[0])


def _pow(p: Pairs, e: Node) -> Parts:
    """Products for small whole exponents, as NumPy has them."""
    out = e.results[0]
    base, by = e.operands
    if not isinstance(base, Var) or isinstance(by, Var) or by.imag or by.real % 1:
        return _any_power(p, e)
    count = int(abs(by))
    if not by:
        return 1.0, 0.0
    if not 0 < count < _MOST_FACTORS:
        return _any_power(p, e)
    square, product = p.of(base), None
    while count:
        if count & 1:
            product = square if product is None else _times(p, product, square, out)
        count >>= 1
        square = _times(p, square, square, out) if count else square
    assert product is not None
    return product if by.real > 0 else _inverse(p, product, out)


def _any_power(p: Pairs, e: Node) -> Parts:
    """exp(w log x). 0 to a positive power is 0, to others NaN; everything to the power 0 is 1."""
    out = e.results[0]
    base, by = e.operands
    if any(not isinstance(x, Var) and not x for x in (base, by)):
        raise NoPairs  # a number of 0
    op = functools.partial(p.of_reals, like=out)
    w = p.of(by)
    log = p.function("log", p.of(base), out) if isinstance(base, Var) else _log(base)
    if isinstance(w[1], Var) or w[1]:
        turned = _times(p, w, log, out)
    else:
        turned = op("multiply", log[0], w[0]), op("multiply", log[1], w[0])
    raised = p.function("exp", turned, out)
    if not isinstance(base, Var):
        return raised
    none = p.is_zero(base)
    if not isinstance(by, Var):
        end: Any = 0.0 if by.real > 0 else np.nan
    else:
        rises = p.mask("greater", w[0], 0.0)
        end = op("where", rises, p.constant(np.asarray(0.0, REAL[out.dtype])), np.nan)
    re, im = (op("where", none, end, x) for x in raised)
    if not isinstance(by, Var):
        return re, im
    whole = p.is_zero(by)
    return op("where", whole, 1.0, re), op("where", whole, 0.0, im)


def _sinc(p: Pairs, e: Node) -> Parts:
    """sin(πx) / (πx), and 1 where x is 0."""
    out, x = e.results[0], e.operands[0]
    assert isinstance(x, Var)
    op = functools.partial(p.of_reals, like=out)
    re, im = (op("multiply", v, cmath.pi) for v in p.of(x))
    found = _quotient(p, p.function("sin", (re, im), out), (re, im), out)
    none = p.is_zero(x)
    return op("where", none, 1.0, found[0]), op("where", none, 0.0, found[1])


def _times_log(name: str) -> Callable[[Pairs, Node], Parts]:
    """x log y, by the logarithm of that name, and 0 where x is 0 and y is a number."""

    def found(p: Pairs, e: Node) -> Parts:
        out = e.results[0]
        x, y = e.operands
        if not isinstance(x, Var) or not isinstance(y, Var):
            raise NoPairs
        op = functools.partial(p.of_reals, like=out)
        parts = _times(p, p.of(x), p.function(name, p.of(y), out), out)
        known = [p.mask("equal", v, v) for v in p.of(y) if isinstance(v, Var)]
        none = functools.reduce(functools.partial(p.mask, "logical_and"), known, p.is_zero(x))
        return op("where", none, 0.0, parts[0]), op("where", none, 0.0, parts[1])

    return found


def _prod(p: Pairs, e: Node) -> Parts:
    """Of an axis its first half times its last, again and again."""
    out, x = e.results[0], e.operands[0]
    assert isinstance(x, Var)
    if 0 in x.shape:
        return 1.0, 0.0
    if p.islands and len(x.shape) - 1 not in e.params[0]:
        raise NoPairs  # NumPy multiplies whole rows
    re, im = p.of(x)
    parts = p.array(re, x), p.array(im, x)
    for axis in e.params[0]:
        parts = _prod_along(p, parts, axis, out)
    return p.reshape(parts[0], out.shape), p.reshape(parts[1], out.shape)


def _prod_along(p: Pairs, parts: Parts, axis: int, out: Var) -> Parts:
    left: Parts | None = None  # an odd one

    def some(start: int, stop: int) -> Parts:
        re, im = (p.along(v, axis, start, stop) for v in parts)
        return re, im

    while (n := parts[0].shape[axis]) > 1:
        if n % 2:
            last = some(n - 1, n)
            left = last if left is None else _times(p, left, last, out)
        parts = _times(p, some(0, n // 2), some(n // 2, n // 2 * 2), out)
    return parts if left is None else _times(p, parts, left, out)


def _log(x: complex) -> Parts:
    z = cmath.log(x)
    return z.real, z.imag


def _function(p: Pairs, e: Node) -> Parts:
    return p.function(e.name, p.of(e.operands[0]), e.results[0])


def _divide(p: Pairs, e: Node) -> Parts:
    x, y = map(p.of, e.operands)
    return _quotient(p, x, y, e.results[0])


def _quotient(p: Pairs, x: Parts, y: Parts, out: Var) -> Parts:
    """Smith's quotient: by the ratio of the divisor's parts, the smaller to the larger."""
    (a, b), (c, d) = x, y
    op = functools.partial(p.of_reals, like=out)
    if not isinstance(c, Var):
        c = p.constant(np.asarray(c, REAL[out.dtype]))
    size = [op("abs", x) for x in (c, d)]
    wide = p.mask("greater_equal", *size)
    large, small = op("where", wide, c, d), op("where", wide, d, c)
    ratio = op("divide", small, large)
    scale = op("divide", 1.0, op("add", large, op("multiply", small, ratio)))
    first, second = op("where", wide, a, b), op("where", wide, b, a)
    re = op("multiply", op("add", first, op("multiply", second, ratio)), scale)
    turned = op("subtract", b, op("multiply", a, ratio))
    other = op("subtract", op("multiply", b, ratio), a)
    im = op("multiply", op("where", wide, turned, other), scale)
    none = p.mask("equal", op("maximum", *size), 0.0)
    return op("where", none, op("divide", a, size[0]), re), op(
        "where", none, op("divide", b, size[0]), im
    )


def _reciprocal(p: Pairs, e: Node) -> Parts:
    return _inverse(p, p.of(e.operands[0]), e.results[0])


def _inverse(p: Pairs, x: Parts, out: Var) -> Parts:
    """One over the larger part and what the smaller adds to it; 0 has no ratio, and gives NaN."""
    re, im = x
    op = functools.partial(p.of_reals, like=out)
    size = [op("abs", x) for x in (re, im)]
    wide = p.mask("less_equal", *size[::-1])
    large, small = op("where", wide, re, im), op("where", wide, im, re)
    ratio = op("divide", small, large)
    total = op("add", large, op("multiply", small, ratio))
    over = op("divide", 1.0, total), op("divide", ratio, total)
    less = op("divide", -1.0, total), op("divide", op("negative", ratio), total)
    return op("where", wide, over[0], over[1]), op("where", wide, less[1], less[0])


def _sign(p: Pairs, e: Node) -> Parts:
    """Parts over the absolute value; of one infinite part its sign, of two NaN."""
    out, x = e.results[0], e.operands[0]
    assert isinstance(x, Var)
    parts = [p.array(part, x) for part in p.of(x)]
    op = functools.partial(p.of_reals, like=out)

    def infinite(x: Any) -> Any:
        return p.apply("isinf", (x,), (), out.shape, bool)

    size = op("hypot", *parts)
    none = p.apply("equal", (size, 0.0), (), out.shape, bool)
    far, axis = infinite(size), [infinite(x) for x in parts]
    both = p.apply("logical_and", axis, (), out.shape, bool)

    def of(x: Any, along: Any) -> Any:
        end = op("where", both, np.nan, op("where", along, op("sign", x), 0.0))
        return op("where", none, 0.0, op("where", far, end, op("divide", x, size)))

    return of(parts[0], axis[0]), of(parts[1], axis[1])


def _sum_of_products(p: Pairs, e: Node) -> Parts:
    out = e.results[0]
    (a, b), (c, d) = map(p.of, e.operands[:2])

    def product(x: Any, y: Any) -> Any:
        both = isinstance(x, Var) and isinstance(y, Var)
        if both and x.dtype == y.dtype == REAL[out.dtype]:
            given = (x, y, *e.operands[2:])
            return p.apply(e.name, given, e.params, out.shape, REAL[out.dtype])
        if both:
            raise NoPairs
        return None

    def joined(name: str, x: Any, y: Any) -> Any:
        return x if y is None else y if x is None else p.of_reals(name, x, y, like=out)

    re = joined("subtract", product(a, c), product(b, d))
    return re, joined("add", product(a, d), product(b, c))


def _conj(p: Pairs, e: Node) -> Parts:
    re, im = p.of(e.operands[0])
    return re, p.of_reals("negative", im, like=e.results[0])


def _absorb(p: Pairs, e: Node) -> Any:
    """0 where the first is and the second is not finite."""
    g, h = e.operands
    if not isinstance(g, Var) or not isinstance(h, Var):
        raise NoPairs
    out = e.results[0]
    finite = [p.mask("isfinite", x) for x in p.of(h) if isinstance(x, Var)]
    usual = functools.reduce(lambda x, y: p.mask("logical_and", x, y), finite)
    kept = p.mask("logical_or", p.mask("logical_not", p.is_zero(g)), usual)
    found = [p.of_reals("where", kept, x, 0.0, like=out) for x in p.of(h)]
    return found if out.dtype in REAL else found[0]


def _part_of(k: int) -> Callable[[Pairs, Node], Any]:
    def found(p: Pairs, e: Node) -> Any:
        x = e.operands[0]
        assert isinstance(x, Var)
        return p.apply("stop_gradient", (p.array(p.of(x)[k], x),), (), x.shape, REAL[x.dtype])

    return found


def _abs(p: Pairs, e: Node) -> Any:
    return p.of_reals("hypot", *p.of(e.operands[0]), like=e.results[0])


def _alike(name: str) -> Callable[[Pairs, Node], Any]:
    def found(p: Pairs, e: Node) -> Any:
        (a, b), (c, d) = map(p.of, e.operands)
        out = e.results[0]
        both = [p.of_reals(name, *x, like=out) for x in ((a, c), (b, d))]
        joint = "logical_and" if name == "equal" else "logical_or"
        return p.of_reals(joint, *both, like=out)

    return found


def _astype(p: Pairs, e: Node) -> Parts:
    out, x = e.results[0], e.operands[0]
    if out.dtype not in REAL or not isinstance(x, Var):
        raise NoPairs
    return p.of(x)


def _complex_of(p: Pairs, e: Node) -> Parts:
    return e.operands[0], e.operands[1]


def _any_part(name: str, joint: str) -> Callable[[Pairs, Node], Any]:
    """What is asked of both parts."""

    def found(p: Pairs, e: Node) -> Any:
        masks = [p.mask(name, x) for x in p.of(e.operands[0]) if isinstance(x, Var)]
        return functools.reduce(functools.partial(p.mask, joint), masks)

    return found


RULES: dict[str, Callable[[Pairs, Node], Any]] = {
    "abs": _abs, "absorb": _absorb, "astype": _astype, "complex_of": _complex_of, "conj": _conj,
    "divide": _divide, "equal": _alike("equal"), "imag": _part_of(1),
    "isfinite": _any_part("isfinite", "logical_and"), "isinf": _any_part("isinf", "logical_or"),
    "isnan": _any_part("isnan", "logical_or"), "multiply": _multiply,
    "not_equal": _alike("not_equal"), "pow": _pow, "real": _part_of(0), "reciprocal": _reciprocal,
    "reduce_prod": _prod, "sign": _sign, "sinc": _sinc, "square": _square,
    "xlog1py": _times_log("log1p"), "xlogy": _times_log("log"), **dict.fromkeys(COMPLEX, _function),
    **dict.fromkeys(PRODUCTS, _sum_of_products),
}  # fmt: skip
