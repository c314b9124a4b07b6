"""What one element of an op is in machine code: a printing for each primitive that loops may hold.

A printing gets the operands as values of the emitter, converted by its kind: `same` (all of the
result's dtype), `alike` (of the dtype that NumPy compares in), `own` (as they come), `choice` (a
mask, then the result's dtype). A primitive that is not here, or not for a dtype, is computed by its
kernel between the loops; `unsupported` says why. Numbers have the bits that NumPy gives them,
functions those of `funct/kernels/llvm`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import ml_dtypes
import numpy as np
from msgspec import Struct

from funct.core import FLOATING, common_dtype
from funct.graph import Node, Var
from funct.kernels.llvm import Emitter, Value
from funct.kernels.llvm.complexes import COMPLEX, part_of
from funct.kernels.llvm.entropies import ENTROPIES
from funct.kernels.llvm.fast import FAST
from funct.kernels.llvm.functions import FUNCTIONS
from funct.kernels.llvm.logistic import share
from funct.kernels.llvm.remainder import fmod, integer_quotient, quotient
from funct.kernels.llvm.whole_powers import integer_power, whole_power

__all__ = [
    "ELEMENTS", "HELD", "NARROW", "Printing", "exact_number", "is_exact", "met", "printing",
    "unsupported", "widened",
]  # fmt: skip

ELEMENTS: dict[np.dtype[Any], str] = {
    np.dtype(name): element
    for name, element in {
        "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
        "uint16": "u16", "uint32": "u32", "uint64": "u64", "float32": "f32", "float64": "f64",
    }.items()
}  # fmt: skip

# Two bytes wide: loops compute in float32, and round after each op, as eager execution does.
NARROW = {np.dtype(np.float16): "f16", np.dtype(ml_dtypes.bfloat16): "bf16"}
HELD = ELEMENTS | NARROW

_FLOATS = frozenset({"f32", "f64"})
_INTEGERS = frozenset(ELEMENTS.values()) - _FLOATS - {"i1"}
_NUMBERS = _FLOATS | _INTEGERS
_ALL = _NUMBERS | {"i1"}


class Printing(Struct, frozen=True):
    """How an op is printed. cost: in units of an addition, for what is computed again or kept."""

    emit: Callable[..., Value]
    elements: frozenset[str]
    operands: Literal["same", "alike", "own", "choice"] = "same"
    cost: int = 1
    params: bool = False  # whether `emit` takes the parameters after the operands


def exact_number(x: Any, dtype: np.dtype[Any]) -> float | int | None:
    """A Python number as NumPy takes it beside that dtype; None where it would refuse or warn."""
    if isinstance(x, complex):
        return None
    try:
        with np.errstate(all="raise"):
            held = np.asarray(x).astype(dtype) if isinstance(x, float) else np.asarray(x, dtype)
        if dtype not in FLOATING and held.item() != x:
            return None
    except (FloatingPointError, OverflowError, ValueError):
        return None
    return float(held) if dtype in NARROW else held.item()


def printing(node: Node) -> Printing | None:
    """How the node is printed, if it is elementwise and loops may hold it."""
    name = node.name
    if name == "pow":
        return _power(node)
    if name in _OF_HALVES and node.results[0].dtype == np.float16:
        return _OF_HALVES[name]
    return PRINTINGS.get(name)


def is_exact(node: Node) -> bool:
    """Whether loops give NumPy's bits: all but functions, and sums and products of floats."""
    if node.name in ("reduce_sum", "reduce_prod"):
        return node.results[0].dtype.kind != "f"
    if node.name == "pow":
        return node.results[0].dtype.kind in "iu"
    return node.name not in _FUNCTIONS


def unsupported(node: Node) -> str:
    """Why loops do not hold an elementwise node; empty where they do."""
    found = printing(node)
    if found is None:
        return f"{node.name} has no printing"
    if len(node.results) != 1:
        return "several results"
    dtypes = [v.dtype for v in (*node.operands, *node.results) if isinstance(v, Var)]
    for d in dtypes:
        if d not in HELD:
            return f"{d} is computed by NumPy"
    result = HELD[node.results[0].dtype]
    computed = result if found.operands in ("same", "choice") else _alike(node, found)
    if computed is None or widened(computed) not in found.elements:
        return f"{node.name} of {computed or 'mixed dtypes'} is computed by NumPy"
    if node.name == "sign" and result == "bf16":
        return "sign of -0 is -0 in bfloat16, and 0 in loops"
    if node.name == "nextafter" and widened(computed) != computed:
        return f"nextafter of {computed} is not that of what loops compute with"
    if node.name in _FUNCTIONS and any(d not in FLOATING for d in dtypes) and not is_exact(node):
        return f"{node.name} of integers is computed by NumPy"
    cast = found.operands == "own" and node.name == "astype"
    if cast and widened(computed) in _FLOATS and result in ("u32", "u64"):
        return f"{node.name} of floats to {result} is computed by NumPy"
    held = next(d for d, e in HELD.items() if e == computed)
    for a in node.operands:
        if not isinstance(a, Var) and exact_number(a, held) is None:
            return f"{a!r} is no {held}"
    return ""


def _alike(node: Node, found: Printing) -> str | None:
    """The element in which operands meet."""
    dtype = operand_dtype(node, found)
    return None if dtype is None else HELD.get(dtype)


def widened(element: str) -> str:
    """The element in which loops compute."""
    return "f32" if element in ("f16", "bf16") else element


def operand_dtype(node: Node, found: Printing) -> np.dtype[Any] | None:
    """What operands are converted to before the op; None for `own` operands that differ."""
    if found.operands in ("same", "choice"):
        return node.results[0].dtype
    dtypes = [v.dtype for v in node.operands if isinstance(v, Var)]
    if found.operands == "own":
        return dtypes[0]
    if len(set(dtypes)) == 1:
        numbers = [type(a) for a in node.operands if not isinstance(a, Var)]
        if (float in numbers and dtypes[0] not in FLOATING) or (
            int in numbers and dtypes[0].kind == "b"
        ):
            return None
        return dtypes[0]
    if {d.kind for d in dtypes} == {"i", "u"}:
        return None  # NumPy compares them exactly, which no common dtype does
    return common_dtype(*dtypes)


def met(e: Node) -> tuple[Printing, tuple[str | None, ...], tuple[Any, ...]]:
    """The printing of an op that loops hold; for each operand the element that it is converted to
    (None: none), and the dtype that a number has in its place.
    """
    found = printing(e)
    assert found is not None, "the op can be printed"
    meet = operand_dtype(e, found)
    n = len(e.operands)
    if found.operands == "own":
        return found, (None,) * n, (meet,) * n
    if found.operands == "choice":
        element = HELD[e.results[0].dtype]
        return found, ("i1", element, element), (np.dtype(bool), meet, meet)
    assert meet is not None
    return found, (HELD[meet],) * n, (meet,) * n


# Printings: (emitter, *operands) -> value


def _add(f: Emitter, x: Value, y: Value) -> Value:
    return x | y if x.type.element == "i1" else x + y


def _multiply(f: Emitter, x: Value, y: Value) -> Value:
    return x & y if x.type.element == "i1" else x * y


def _compare(how: Any) -> Callable[..., Value]:
    def emit(f: Emitter, x: Value, y: Value) -> Value:
        if x.type.element == "i1":  # masks compare as bytes
            x, y = f.convert(x, "u8"), f.convert(y, "u8")
        return f.compare(how, x, y)

    return emit


def _maximum(f: Emitter, x: Value, y: Value) -> Value:
    return x | y if x.type.element == "i1" else f.maximum(x, y)


def _minimum(f: Emitter, x: Value, y: Value) -> Value:
    return x & y if x.type.element == "i1" else f.minimum(x, y)


def _relu(f: Emitter, x: Value) -> Value:
    return f.maximum(x, f.constant(x.type, 0))


def _negative(f: Emitter, x: Value) -> Value:
    return -x


def _abs(f: Emitter, x: Value) -> Value:
    return x if x.type.element == "i1" else f.abs(x)


def _sign(f: Emitter, x: Value) -> Value:
    one, zero = f.constant(x.type, 1), f.constant(x.type, 0)
    y = f.select(x > 0, one, zero)
    if x.type.is_float or x.type.is_signed:
        y = f.select(x < 0, f.constant(x.type, -1), y)
    return f.select(f.isnan(x), x, y) if x.type.is_float else y


def _whole(how: str) -> Callable[..., Value]:
    """Rounding, which leaves integers alone."""

    def emit(f: Emitter, x: Value) -> Value:
        rounded: Value = getattr(f, how)(x) if x.type.is_float else x
        return rounded

    return emit


def _where(f: Emitter, c: Value, x: Value, y: Value) -> Value:
    return f.select(c, x, y)


def _finite(f: Emitter, x: Value) -> Value:
    return f.abs(x) < math.inf if x.type.is_float else f.constant(x.type.mask, 1)


def _absorb(f: Emitter, g: Value, h: Value) -> Value:
    lost = f.eq(g, 0) & ~_finite(f, h)
    return f.select(lost, f.constant(h.type, 0), h)


def _signbit(f: Emitter, x: Value) -> Value:
    return f.bitcast(x, x.type.integer) < 0


def _shift(how: str) -> Callable[..., Value]:
    """Shifts; by the width or more all bits leave, as in NumPy."""

    def emit(f: Emitter, x: Value, y: Value) -> Value:
        count = f.bitcast(y, y.type.unsigned)
        inside = count < x.type.bits
        zero = f.constant(x.type, 0)
        kept = f.select(inside, y, zero)
        shifted = x << kept if how == "left" else x >> kept
        if how == "right" and x.type.is_signed:
            zero = f.select(x < 0, f.constant(x.type, -1), zero)
        return f.select(inside, shifted, zero)

    return emit


def _quotient(f: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
    """Quotient towards minus infinity and what is left; of integers both 0 where y is."""
    return quotient(f, x, y) if x.type.is_float else integer_quotient(f, x, y)


def _astype(f: Emitter, x: Value, dtype: np.dtype[Any]) -> Value:
    element = HELD[dtype]
    target = x.type.with_element(element)
    if x.type.is_float and element in _INTEGERS and target.bits < 32:
        return f.convert(f.convert(x, "i32"), element)  # C cuts what does not fit, and so NumPy
    if not x.type.is_float and element == "f16":  # as NumPy does
        x = f.convert(x, widened(element))
    return f.convert(x, element)


def _identity(f: Emitter, x: Value) -> Value:
    return x


def _logical(op: str) -> Callable[..., Value]:
    return lambda f, x, y: getattr(f, op)(f.convert(x, "i1"), f.convert(y, "i1"))


def _bits(op: str) -> Callable[..., Value]:
    return lambda f, x, y: getattr(f, op)(x, y)


def _from_the_first(f: Emitter, i: Value, n: int) -> Value:
    """An index of an axis of that length, from either end. `places.py` looks at it as well."""
    at = f.convert(i, "i64")
    return f.select(at < 0, at + n, at)


_ANY, _INT, _FLOAT = _ALL, _INTEGERS, _FLOATS
PRINTINGS: dict[str, Printing] = {
    "add": Printing(_add, _ANY),
    "subtract": Printing(lambda f, x, y: x - y, _NUMBERS),
    "multiply": Printing(_multiply, _ANY),
    "divide": Printing(lambda f, x, y: x / y, _FLOAT, cost=10),
    "floor_divide": Printing(lambda f, x, y: _quotient(f, x, y)[0], _NUMBERS, cost=16),
    "remainder": Printing(lambda f, x, y: _quotient(f, x, y)[1], _NUMBERS, cost=16),
    "fmod": Printing(fmod, _FLOAT, cost=16),
    "fma": Printing(lambda f, x, y, z: f.fma(x, y, z), _FLOAT),  # of complex numbers' products
    "negative": Printing(_negative, _NUMBERS),
    "abs": Printing(_abs, _ANY),
    "sign": Printing(_sign, _NUMBERS, cost=3),
    "square": Printing(lambda f, x: x * x, _NUMBERS),
    "sqrt": Printing(lambda f, x: f.sqrt(x), _FLOAT, cost=16),
    "reciprocal": Printing(lambda f, x: f.constant(x.type, 1) / x, _FLOAT, cost=10),
    "relu": Printing(_relu, _NUMBERS),
    "floor": Printing(_whole("floor"), _NUMBERS),
    "ceil": Printing(_whole("ceil"), _NUMBERS),
    "round": Printing(_whole("round"), _NUMBERS),
    "trunc": Printing(_whole("trunc"), _NUMBERS),
    "conj": Printing(_identity, _NUMBERS),
    "real": Printing(_identity, _NUMBERS),
    "keep_float": Printing(_identity, _NUMBERS),
    "stop_gradient": Printing(_identity, _ANY),
    "wrap_index": Printing(_from_the_first, _INT - {"u64"}, "own", cost=4, params=True),
    "checkpoint_name": Printing(_identity, _ANY),
    "settled": Printing(_identity, _ANY),
    "copysign": Printing(lambda f, x, y: f.copysign(x, y), _FLOAT),
    "random_share": Printing(share, frozenset({"f32", "f64"}), cost=24),
    "nextafter": Printing(FUNCTIONS["nextafter"], _FLOAT, cost=8),
    "absorb": Printing(_absorb, _FLOAT, cost=2),
    "maximum": Printing(_maximum, _ANY, cost=2),
    "minimum": Printing(_minimum, _ANY, cost=2),
    "equal": Printing(_compare("eq"), _ANY, "alike"),
    "not_equal": Printing(_compare("ne"), _ANY, "alike"),
    "less": Printing(_compare("lt"), _ANY, "alike"),
    "less_equal": Printing(_compare("le"), _ANY, "alike"),
    "greater": Printing(_compare("gt"), _ANY, "alike"),
    "greater_equal": Printing(_compare("ge"), _ANY, "alike"),
    "logical_and": Printing(_logical("bitand"), _ANY, "own"),
    "logical_or": Printing(_logical("bitor"), _ANY, "own"),
    "logical_xor": Printing(_logical("bitxor"), _ANY, "own"),
    "logical_not": Printing(lambda f, x: ~f.convert(x, "i1"), _ANY, "own"),
    "bitwise_and": Printing(_bits("bitand"), _INT | {"i1"}),
    "bitwise_or": Printing(_bits("bitor"), _INT | {"i1"}),
    "bitwise_xor": Printing(_bits("bitxor"), _INT | {"i1"}),
    "bitwise_invert": Printing(lambda f, x: ~x, _INT | {"i1"}),
    "bitwise_left_shift": Printing(_shift("left"), _INT, cost=3),
    "bitwise_right_shift": Printing(_shift("right"), _INT, cost=3),
    "isfinite": Printing(_finite, _NUMBERS, "own"),
    "isinf": Printing(lambda f, x: f.eq(f.abs(x), math.inf), _FLOAT, "own"),
    "isnan": Printing(lambda f, x: f.isnan(x), _FLOAT, "own"),
    "signbit": Printing(_signbit, _FLOAT, "own"),
    "where": Printing(_where, _ANY, "choice"),
    "astype": Printing(_astype, _ANY, "own", params=True),
}


_COSTS = {
    "acos": 20, "acosh": 40, "asin": 20, "asinh": 40, "atan": 20, "atan2": 24, "atanh": 40,
    "cbrt": 16, "cos": 24, "cosh": 16, "erf": 24, "erfc": 40, "erfinv": 40, "exp": 12,
    "exp2": 12, "expit": 20, "expm1": 16, "gammaln": 80, "hypot": 12, "log": 16, "log10": 20,
    "log1p": 24, "log2": 20, "logaddexp": 32, "ndtr": 40, "pow": 40, "sigmoid": 20, "sin": 24,
    "sigmoid_slope": 20, "sinh": 20, "tan": 32, "tanh": 20,
}  # fmt: skip
_FAST_COSTS = {
    "cos": 14, "erf": 16, "exp": 8, "exp2": 8, "logaddexp": 20, "pow": 24, "sigmoid": 12, "sin": 14,
    "tanh": 12,
}  # fmt: skip
_NAMES = {"sigmoid": "expit"}  # where the tables of functions have SciPy's
PRINTINGS |= {
    name: Printing(FUNCTIONS[_NAMES.get(name, name)], _FLOAT, cost=cost)
    for name, cost in _COSTS.items()
}
PRINTINGS |= {  # of `approximate`
    f"fast_{name}": Printing(FAST[_NAMES.get(name, name)], _FLOAT, cost=cost)
    for name, cost in _FAST_COSTS.items()
}
PRINTINGS |= {name: Printing(emit, _FLOAT, cost=40) for name, emit in ENTROPIES.items()}
_PARTS = {f"{name}_part{k}": (name, k) for name in COMPLEX for k in (0, 1)}  # of complex numbers
PRINTINGS |= {
    part: Printing(part_of(name, k), _FLOAT, cost=4 * _COSTS.get(name, 16))
    for part, (name, k) in _PARTS.items()
}
_OF_HALVES = {  # of two zeros NumPy takes the first one there, else the second
    "maximum": Printing(lambda f, x, y: f.first_maximum(x, y), _FLOAT, cost=2),
    "minimum": Printing(lambda f, x, y: f.first_minimum(x, y), _FLOAT, cost=2),
}
_FUNCTIONS = frozenset([*_COSTS, *ENTROPIES, *_PARTS, *[f"fast_{name}" for name in _FAST_COSTS]])


def _squared(x: Value) -> Value:
    return x * x


# those of `kernels/elementwise.py`
_PRODUCTS: dict[Any, Any] = {
    -2: lambda f, x, _: _squared(1 / x), -1: lambda f, x, _: 1 / x, 1: lambda f, x, _: x,
    0.5: lambda f, x, _: f.select(f.eq(x, -math.inf), math.inf, f.abs(f.sqrt(x))),
    -0.5: lambda f, x, _: f.select(f.eq(x, -math.inf), 0.0, 1 / f.abs(f.sqrt(x))),
    2: lambda f, x, _: _squared(x), 3: lambda f, x, _: _squared(x) * x,
    4: lambda f, x, _: _squared(_squared(x)),
}  # fmt: skip
_MOST_FACTORS = 16


def _power(node: Node) -> Printing | None:
    """Powers whose exponent is a small number are products, as all of integers are."""
    exponent = node.operands[1]
    if node.results[0].dtype.kind in "iu":
        refused = not isinstance(exponent, Var) and exponent < 0  # type: ignore[operator]
        return None if refused else Printing(integer_power, _INT, cost=16)
    if not isinstance(exponent, int | float) or exponent is True or exponent is False:
        return PRINTINGS.get("pow")
    product = _PRODUCTS.get(exponent)
    if product is not None:
        return Printing(product, _FLOAT)
    if exponent % 1 or not 0 < abs(exponent) <= _MOST_FACTORS:
        return PRINTINGS.get("pow")
    n = int(exponent)
    return Printing(lambda f, x, _: whole_power(f, x, n), _FLOAT, cost=12)
