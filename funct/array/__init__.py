"""The array namespace: `import funct.array as xp`. Names and signatures of the Python Array API.

Where a docstring names no other source, it is the Array API 2025.12. Elementwise functions take
arrays and Python numbers; shapes broadcast, dtypes promote, and a number takes the dtype of the
array beside it.
Raises: UnsupportedOperandError: for what is neither array nor number. ShapeError: for shapes that
do not broadcast, and, as AxisError, for an axis that there is not. DTypeError: for dtypes that a
function is not defined for, such as bits of floats.
"""

import math as _math

from funct.array import fft as fft
from funct.array import lib as lib
from funct.array import linalg as linalg
from funct.array import remote as _remote  # noqa: F401
from funct.array import special as special
from funct.array.angles import angle as angle
from funct.array.angles import deg2rad as deg2rad
from funct.array.angles import rad2deg as rad2deg
from funct.array.angles import unwrap as unwrap
from funct.array.closeness import allclose as allclose
from funct.array.closeness import array_equal as array_equal
from funct.array.closeness import isclose as isclose
from funct.array.closeness import nan_to_num as nan_to_num
from funct.array.counting import bincount as bincount
from funct.array.counting import digitize as digitize
from funct.array.counting import histogram as histogram
from funct.array.counting import histogram_bin_edges as histogram_bin_edges
from funct.array.counting import one_hot as one_hot
from funct.array.counting import segment_sum as segment_sum
from funct.array.creation import arange as arange
from funct.array.creation import asarray as asarray
from funct.array.creation import empty as empty
from funct.array.creation import empty_like as empty_like
from funct.array.creation import eye as eye
from funct.array.creation import from_dlpack as from_dlpack
from funct.array.creation import full as full
from funct.array.creation import full_like as full_like
from funct.array.creation import meshgrid as meshgrid
from funct.array.creation import ones as ones
from funct.array.creation import ones_like as ones_like
from funct.array.creation import tril as tril
from funct.array.creation import triu as triu
from funct.array.creation import zeros as zeros
from funct.array.creation import zeros_like as zeros_like
from funct.array.cumulative import cumprod as cumprod
from funct.array.cumulative import cumsum as cumsum
from funct.array.cumulative import cumulative_max as cumulative_max
from funct.array.cumulative import cumulative_min as cumulative_min
from funct.array.cumulative import cumulative_prod as cumulative_prod
from funct.array.cumulative import cumulative_sum as cumulative_sum
from funct.array.cumulative import diff as diff
from funct.array.device import Device as Device
from funct.array.direct import entrances as _entrances
from funct.array.dtypes import bfloat16 as bfloat16
from funct.array.dtypes import bool as bool
from funct.array.dtypes import can_cast as can_cast
from funct.array.dtypes import complex64 as complex64
from funct.array.dtypes import complex128 as complex128
from funct.array.dtypes import finfo as finfo
from funct.array.dtypes import float8_e4m3fn as float8_e4m3fn
from funct.array.dtypes import float8_e5m2 as float8_e5m2
from funct.array.dtypes import float16 as float16
from funct.array.dtypes import float32 as float32
from funct.array.dtypes import float64 as float64
from funct.array.dtypes import iinfo as iinfo
from funct.array.dtypes import int4 as int4
from funct.array.dtypes import int8 as int8
from funct.array.dtypes import int16 as int16
from funct.array.dtypes import int32 as int32
from funct.array.dtypes import int64 as int64
from funct.array.dtypes import isdtype as isdtype
from funct.array.dtypes import result_type as result_type
from funct.array.dtypes import uint4 as uint4
from funct.array.dtypes import uint8 as uint8
from funct.array.dtypes import uint16 as uint16
from funct.array.dtypes import uint32 as uint32
from funct.array.dtypes import uint64 as uint64
from funct.array.elementwise import clip as clip
from funct.array.elementwise import fmax as fmax
from funct.array.elementwise import fmin as fmin
from funct.array.elementwise import heaviside as heaviside
from funct.array.elementwise import positive as positive
from funct.array.elementwise import select as select
from funct.array.inspection import namespace_info as __array_namespace_info__
from funct.array.joining import concat as concat
from funct.array.joining import pad as pad
from funct.array.joining import repeat as repeat
from funct.array.joining import split as split
from funct.array.joining import stack as stack
from funct.array.joining import tile as tile
from funct.array.joining import unstack as unstack
from funct.array.linalg.structure import cross as cross
from funct.array.linalg.structure import diag as diag
from funct.array.manipulation import astype as astype
from funct.array.manipulation import broadcast_arrays as broadcast_arrays
from funct.array.manipulation import broadcast_shapes as broadcast_shapes
from funct.array.manipulation import broadcast_to as broadcast_to
from funct.array.manipulation import expand_dims as expand_dims
from funct.array.manipulation import flip as flip
from funct.array.manipulation import matrix_transpose as matrix_transpose
from funct.array.manipulation import moveaxis as moveaxis
from funct.array.manipulation import permute_dims as permute_dims
from funct.array.manipulation import ravel as ravel
from funct.array.manipulation import reshape as reshape
from funct.array.manipulation import roll as roll
from funct.array.manipulation import rot90 as rot90
from funct.array.manipulation import squeeze as squeeze
from funct.array.manipulation import transpose as transpose
from funct.array.nan_statistical import nanargmax as nanargmax
from funct.array.nan_statistical import nanargmin as nanargmin
from funct.array.nan_statistical import nancumprod as nancumprod
from funct.array.nan_statistical import nancumsum as nancumsum
from funct.array.nan_statistical import nanmax as nanmax
from funct.array.nan_statistical import nanmean as nanmean
from funct.array.nan_statistical import nanmin as nanmin
from funct.array.nan_statistical import nanprod as nanprod
from funct.array.nan_statistical import nanstd as nanstd
from funct.array.nan_statistical import nansum as nansum
from funct.array.nan_statistical import nanvar as nanvar
from funct.array.polynomials import polyder as polyder
from funct.array.polynomials import polyfit as polyfit
from funct.array.polynomials import polyint as polyint
from funct.array.polynomials import polyval as polyval
from funct.array.polynomials import roots as roots
from funct.array.polynomials import vander as vander
from funct.array.products import einsum as einsum
from funct.array.products import kron as kron
from funct.array.products import matmul as matmul
from funct.array.products import outer as outer
from funct.array.products import tensordot as tensordot
from funct.array.products import vecdot as vecdot
from funct.array.quantiles import median as median
from funct.array.quantiles import nanmedian as nanmedian
from funct.array.quantiles import nanpercentile as nanpercentile
from funct.array.quantiles import nanquantile as nanquantile
from funct.array.quantiles import percentile as percentile
from funct.array.quantiles import quantile as quantile
from funct.array.sampled import convolve as convolve
from funct.array.sampled import correlate as correlate
from funct.array.sampled import gradient as gradient
from funct.array.sampled import interp as interp
from funct.array.sampled import trapezoid as trapezoid
from funct.array.searching import argmax as argmax
from funct.array.searching import argmin as argmin
from funct.array.searching import argsort as argsort
from funct.array.searching import argwhere as argwhere
from funct.array.searching import count_nonzero as count_nonzero
from funct.array.searching import flatnonzero as flatnonzero
from funct.array.searching import lexsort as lexsort
from funct.array.searching import nonzero as nonzero
from funct.array.searching import ravel_multi_index as ravel_multi_index
from funct.array.searching import searchsorted as searchsorted
from funct.array.searching import sort as sort
from funct.array.searching import take as take
from funct.array.searching import take_along_axis as take_along_axis
from funct.array.searching import top_k as top_k
from funct.array.searching import unravel_index as unravel_index
from funct.array.searching import where as where
from funct.array.sets import intersect1d as intersect1d
from funct.array.sets import isin as isin
from funct.array.sets import setdiff1d as setdiff1d
from funct.array.sets import setxor1d as setxor1d
from funct.array.sets import union1d as union1d
from funct.array.sets import unique_all as unique_all
from funct.array.sets import unique_counts as unique_counts
from funct.array.sets import unique_inverse as unique_inverse
from funct.array.sets import unique_values as unique_values
from funct.array.statistical import all as all
from funct.array.statistical import any as any
from funct.array.statistical import average as average
from funct.array.statistical import corrcoef as corrcoef
from funct.array.statistical import cov as cov
from funct.array.statistical import logsumexp as logsumexp
from funct.array.statistical import max as max
from funct.array.statistical import mean as mean
from funct.array.statistical import min as min
from funct.array.statistical import prod as prod
from funct.array.statistical import std as std
from funct.array.statistical import sum as sum
from funct.array.statistical import var as var
from funct.array.steps import geomspace as geomspace
from funct.array.steps import linspace as linspace
from funct.array.steps import logspace as logspace
from funct.array.tensor import Array as Array
from funct.array.tensor import Ground as Ground
from funct.array.tensor import Tensor as Tensor
from funct.array.updates import At as At
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
from funct.ops import fmod as fmod
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

__all__ = [
    "Array", "At", "Device", "Ground", "Tensor", "__array_api_version__",
    "__array_namespace_info__", "abs", "acos", "acosh", "add", "all", "allclose", "angle", "any",
    "arange", "argmax", "argmin", "argsort", "argwhere", "array_equal", "asarray", "asin", "asinh",
    "astype", "atan", "atan2", "atanh", "average", "bfloat16", "bincount", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "bool", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "ceil", "clip",
    "complex128", "complex64", "concat", "conj", "convolve", "copysign", "corrcoef", "correlate",
    "cos", "cosh", "count_nonzero", "cov", "cross", "cumprod", "cumsum", "cumulative_max",
    "cumulative_min", "cumulative_prod", "cumulative_sum", "deg2rad", "diag", "diff", "digitize",
    "divide", "e", "einsum", "empty", "empty_like", "equal", "erf", "exp", "expand_dims", "expm1",
    "eye", "fft", "finfo", "flatnonzero", "flip", "float16", "float32", "float64", "float8_e4m3fn",
    "float8_e5m2", "floor", "floor_divide", "fmax", "fmin", "fmod", "from_dlpack", "full",
    "full_like", "geomspace", "gradient", "greater", "greater_equal", "heaviside", "histogram",
    "histogram_bin_edges", "hypot", "iinfo", "imag", "inf", "int16", "int32", "int4", "int64",
    "int8", "interp", "intersect1d", "isclose", "isdtype", "isfinite", "isin", "isinf", "isnan",
    "kron", "less", "less_equal", "lexsort", "lib", "linalg", "linspace", "log", "log10", "log1p",
    "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "logspace",
    "logsumexp", "matmul", "matrix_transpose", "max", "maximum", "mean", "median", "meshgrid",
    "min", "minimum", "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax", "nanargmin",
    "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile",
    "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "negative", "newaxis", "nextafter",
    "nonzero", "not_equal", "one_hot", "ones", "ones_like", "outer", "pad", "percentile",
    "permute_dims", "pi", "polyder", "polyfit", "polyint", "polyval", "positive", "pow", "prod",
    "quantile", "rad2deg", "ravel", "ravel_multi_index", "real", "reciprocal", "remainder",
    "repeat", "reshape", "result_type", "roll", "roots", "rot90", "round", "searchsorted",
    "segment_sum", "select", "setdiff1d", "setxor1d", "sign", "signbit", "sin", "sinh", "sort",
    "special", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "take",
    "take_along_axis", "tan", "tanh", "tensordot", "tile", "top_k", "transpose", "trapezoid",
    "tril", "triu", "trunc", "uint16", "uint32", "uint4", "uint64", "uint8", "union1d",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "unravel_index", "unstack",
    "unwrap", "vander", "var", "vecdot", "where", "zeros", "zeros_like",
]  # fmt: skip

__array_api_version__ = "2025.12"

e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

_entrances(globals())
