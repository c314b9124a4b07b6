"""From how many elements on functions of elements are computed in another way than NumPy's.

The number of elements alone decides, so a call has the same bits each time, whoever makes it: eager
code, the calls of a graph, programs on few elements, tapes.
"""

from __future__ import annotations

__all__ = ["ASKING", "EXACT", "FAR", "FLAT", "LIMITS", "MANY", "SHORT", "SLOW"]

# Functions of real numbers that NumPy computes one by one or slowly, at least in one of the dtypes
# float32 and float64; of MANY elements of an operand they are computed in code of our own.
SLOW = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "copysign", "cos", "cosh",
    "entr", "erf", "erfc", "erfinv", "exp", "exp10", "exp2", "expit", "expm1", "floor_divide",
    "fmod", "gammaln", "hypot", "log", "log10", "log1p", "log2", "log_expit", "logaddexp", "logit",
    "ndtr", "nextafter", "pow", "reciprocal", "relu", "remainder", "sigmoid", "sign", "sin", "sinh",
    "sqrt", "tan", "tanh",
})  # fmt: skip
EXACT = frozenset({"copysign", "reciprocal", "sqrt"})  # of these NumPy has vectors, with our bits
ASKING = SLOW | {"where"}  # what goes another way where arrays are large; a choice has its bits
LIMITS = frozenset({"maximum", "minimum"})  # the same of an array and a number, with NumPy's bits
MANY = 1 << 9
FAR = 1 << 14  # elements from which on what has the same bits is worth a call that asks for more
FLAT = 1 << 17  # elements up to which one thread casts as soon as several
SHORT = 1 << 11  # elements of a row in which NumPy loses time where operands broadcast
