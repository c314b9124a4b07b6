"""The array namespace: `import funct.array as xp`. Names and signatures of the Python Array API."""

import math as _math
from typing import Any as _Any

from funct import ops as _ops
from funct.array.creation import *
from funct.array.dtypes import *
from funct.array.indexing import At as At
from funct.array.linalg import *
from funct.array.manipulation import *
from funct.array.statistical import *
from funct.array.tensor import Array as Array
from funct.array.tensor import Ground as Ground
from funct.array.tensor import Tensor as Tensor
from funct.ops import abs as abs
from funct.ops import acos as acos
from funct.ops import acosh as acosh
from funct.ops import add as add
from funct.ops import asin as asin
from funct.ops import asinh as asinh
from funct.ops import atan as atan
from funct.ops import atan2 as atan2
from funct.ops import atanh as atanh
from funct.ops import bitwise_and as bitwise_and
from funct.ops import bitwise_invert as bitwise_invert
from funct.ops import bitwise_left_shift as bitwise_left_shift
from funct.ops import bitwise_or as bitwise_or
from funct.ops import bitwise_right_shift as bitwise_right_shift
from funct.ops import bitwise_xor as bitwise_xor
from funct.ops import ceil as ceil
from funct.ops import conj as conj
from funct.ops import copysign as copysign
from funct.ops import cos as cos
from funct.ops import cosh as cosh
from funct.ops import divide as divide
from funct.ops import equal as equal
from funct.ops import erf as erf
from funct.ops import exp as exp
from funct.ops import expm1 as expm1
from funct.ops import floor as floor
from funct.ops import floor_divide as floor_divide
from funct.ops import greater as greater
from funct.ops import greater_equal as greater_equal
from funct.ops import hypot as hypot
from funct.ops import imag as imag
from funct.ops import isfinite as isfinite
from funct.ops import isinf as isinf
from funct.ops import isnan as isnan
from funct.ops import less as less
from funct.ops import less_equal as less_equal
from funct.ops import log as log
from funct.ops import log1p as log1p
from funct.ops import log2 as log2
from funct.ops import log10 as log10
from funct.ops import logaddexp as logaddexp
from funct.ops import logical_and as logical_and
from funct.ops import logical_not as logical_not
from funct.ops import logical_or as logical_or
from funct.ops import logical_xor as logical_xor
from funct.ops import maximum as maximum
from funct.ops import minimum as minimum
from funct.ops import multiply as multiply
from funct.ops import negative as negative
from funct.ops import nextafter as nextafter
from funct.ops import not_equal as not_equal
from funct.ops import pow as pow
from funct.ops import real as real
from funct.ops import reciprocal as reciprocal
from funct.ops import remainder as remainder
from funct.ops import round as round
from funct.ops import sign as sign
from funct.ops import signbit as signbit
from funct.ops import sin as sin
from funct.ops import sinh as sinh
from funct.ops import sqrt as sqrt
from funct.ops import square as square
from funct.ops import subtract as subtract
from funct.ops import tan as tan
from funct.ops import tanh as tanh
from funct.ops import trunc as trunc
from funct.ops import where as where

__array_api_version__ = "2025.12"

e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi


def positive(x: _Any, /) -> _Any:
    """x itself."""
    return x


def clip(x: _Any, /, min: _Any = None, max: _Any = None) -> _Any:
    """x limited to [min, max]; None leaves a side open. Where min > max, the result is max."""
    if min is not None:
        x = _ops.maximum(x, min)
    return x if max is None else _ops.minimum(x, max)
