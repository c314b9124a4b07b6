"""One room per primitive, one file per chapter of the Array API; rules call others as `ops.name`.

These functions take normal parameters (non-negative axes, tuples); the standard's signatures are in
`funct.array`.
"""

from funct.core import Sample as Sample
from funct.ops import fast as fast
from funct.ops import special as special
from funct.ops.attention import attention as attention
from funct.ops.attention import attention_keep as attention_keep
from funct.ops.attention import attention_pull as attention_pull
from funct.ops.broadcasting import first_axis as first_axis
from funct.ops.collectives import all_gather as all_gather
from funct.ops.collectives import psum as psum
from funct.ops.collectives import psum_scatter as psum_scatter
from funct.ops.complex_parts import complex_of as complex_of
from funct.ops.complex_parts import conj as conj
from funct.ops.complex_parts import imag as imag
from funct.ops.complex_parts import real as real
from funct.ops.convolution import convolution as convolution
from funct.ops.convolution import convolution_input as convolution_input
from funct.ops.convolution import convolution_weight as convolution_weight
from funct.ops.convolution import convolve as convolve
from funct.ops.cumulative import cumulative_prod as cumulative_prod
from funct.ops.cumulative import cumulative_sum as cumulative_sum
from funct.ops.cumulative import linear_recurrence as linear_recurrence
from funct.ops.decompositions import cholesky as cholesky
from funct.ops.decompositions import lu as lu
from funct.ops.decompositions import qr as qr
from funct.ops.elementwise import abs as abs
from funct.ops.elementwise import add as add
from funct.ops.elementwise import copysign as copysign
from funct.ops.elementwise import divide as divide
from funct.ops.elementwise import floor_divide as floor_divide
from funct.ops.elementwise import fmod as fmod
from funct.ops.elementwise import multiply as multiply
from funct.ops.elementwise import negative as negative
from funct.ops.elementwise import nextafter as nextafter
from funct.ops.elementwise import relu as relu
from funct.ops.elementwise import remainder as remainder
from funct.ops.elementwise import sign as sign
from funct.ops.elementwise import subtract as subtract
from funct.ops.fft import fft as fft
from funct.ops.fft import hermitian_fft as hermitian_fft
from funct.ops.fft import real_fft as real_fft
from funct.ops.finite import finite as finite
from funct.ops.indexing import move_block as move_block
from funct.ops.indexing import put as put
from funct.ops.indexing import put_along_axis as put_along_axis
from funct.ops.indexing import take as take
from funct.ops.indexing import take_along_axis as take_along_axis
from funct.ops.indexing import wrap_index as wrap_index
from funct.ops.least_squares import lstsq as lstsq
from funct.ops.least_squares import pinv as pinv
from funct.ops.linalg import contract as contract
from funct.ops.linalg import matmul as matmul
from funct.ops.logic import bitwise_and as bitwise_and
from funct.ops.logic import bitwise_invert as bitwise_invert
from funct.ops.logic import bitwise_left_shift as bitwise_left_shift
from funct.ops.logic import bitwise_or as bitwise_or
from funct.ops.logic import bitwise_right_shift as bitwise_right_shift
from funct.ops.logic import bitwise_xor as bitwise_xor
from funct.ops.logic import equal as equal
from funct.ops.logic import greater as greater
from funct.ops.logic import greater_equal as greater_equal
from funct.ops.logic import isfinite as isfinite
from funct.ops.logic import isinf as isinf
from funct.ops.logic import isnan as isnan
from funct.ops.logic import less as less
from funct.ops.logic import less_equal as less_equal
from funct.ops.logic import logical_and as logical_and
from funct.ops.logic import logical_not as logical_not
from funct.ops.logic import logical_or as logical_or
from funct.ops.logic import logical_xor as logical_xor
from funct.ops.logic import maximum as maximum
from funct.ops.logic import minimum as minimum
from funct.ops.logic import not_equal as not_equal
from funct.ops.logic import signbit as signbit
from funct.ops.logic import where as where
from funct.ops.manipulation import astype as astype
from funct.ops.manipulation import broadcast_to as broadcast_to
from funct.ops.manipulation import move_axis as move_axis
from funct.ops.manipulation import permute_dims as permute_dims
from funct.ops.manipulation import reshape as reshape
from funct.ops.manipulation import squeeze as squeeze
from funct.ops.manipulation import swap_last as swap_last
from funct.ops.marks import absorb as absorb
from funct.ops.marks import checkpoint_name as checkpoint_name
from funct.ops.marks import settled as settled
from funct.ops.marks import stop_gradient as stop_gradient
from funct.ops.pooling import avg_pool as avg_pool
from funct.ops.pooling import fold_windows as fold_windows
from funct.ops.pooling import max_pool as max_pool
from funct.ops.pooling import max_pool_index as max_pool_index
from funct.ops.pooling import pad_axes as pad_axes
from funct.ops.pooling import windows as windows
from funct.ops.powers import hypot as hypot
from funct.ops.powers import pow as pow
from funct.ops.powers import reciprocal as reciprocal
from funct.ops.powers import sqrt as sqrt
from funct.ops.powers import square as square
from funct.ops.quantized import dequantize as dequantize
from funct.ops.quantized import keep_float as keep_float
from funct.ops.quantized import quantize as quantize
from funct.ops.quantized import quantized_convolution as quantized_convolution
from funct.ops.quantized import quantized_linear as quantized_linear
from funct.ops.quantized_means import quantized_add as quantized_add
from funct.ops.quantized_means import quantized_avg_pool as quantized_avg_pool
from funct.ops.quantized_means import quantized_mean as quantized_mean
from funct.ops.random import random_bits as random_bits
from funct.ops.random import random_exponential as random_exponential
from funct.ops.random import random_fold_in as random_fold_in
from funct.ops.random import random_gamma as random_gamma
from funct.ops.random import random_gumbel as random_gumbel
from funct.ops.random import random_normal as random_normal
from funct.ops.random import random_poisson as random_poisson
from funct.ops.random import random_share as random_share
from funct.ops.random import random_shares as random_shares
from funct.ops.random import random_split as random_split
from funct.ops.random import random_unit as random_unit
from funct.ops.rounding import ceil as ceil
from funct.ops.rounding import floor as floor
from funct.ops.rounding import round as round
from funct.ops.rounding import trunc as trunc
from funct.ops.slicing import concat as concat
from funct.ops.slicing import embed as embed
from funct.ops.slicing import flip as flip
from funct.ops.slicing import slice_ as slice_
from funct.ops.slicing import slice_length as slice_length
from funct.ops.solving import cofactor as cofactor
from funct.ops.solving import det as det
from funct.ops.solving import expm as expm
from funct.ops.solving import inv as inv
from funct.ops.solving import slogdet as slogdet
from funct.ops.solving import solve as solve
from funct.ops.solving import solve_triangular as solve_triangular
from funct.ops.sorting import argsort as argsort
from funct.ops.sorting import running_argmax as running_argmax
from funct.ops.sorting import searchsorted as searchsorted
from funct.ops.sorting import sort as sort
from funct.ops.sorting import top_k as top_k
from funct.ops.sparse import sampled_matmul as sampled_matmul
from funct.ops.sparse import sparse_matmul as sparse_matmul
from funct.ops.special import erf as erf
from funct.ops.spectra import eig as eig
from funct.ops.spectra import eigh as eigh
from funct.ops.spectra import eigvals as eigvals
from funct.ops.spectra import eigvalsh as eigvalsh
from funct.ops.spectra import svd as svd
from funct.ops.spectra import svdvals as svdvals
from funct.ops.statistical import all as all
from funct.ops.statistical import any as any
from funct.ops.statistical import argmax as argmax
from funct.ops.statistical import argmin as argmin
from funct.ops.statistical import axis_count as axis_count
from funct.ops.statistical import count_along as count_along
from funct.ops.statistical import length_along as length_along
from funct.ops.statistical import mean_of as mean_of
from funct.ops.statistical import reduce_max as reduce_max
from funct.ops.statistical import reduce_min as reduce_min
from funct.ops.statistical import reduce_prod as reduce_prod
from funct.ops.statistical import reduce_sum as reduce_sum
from funct.ops.statistical import restore as restore
from funct.ops.statistical import size_along as size_along
from funct.ops.transcendental import acos as acos
from funct.ops.transcendental import acosh as acosh
from funct.ops.transcendental import asin as asin
from funct.ops.transcendental import asinh as asinh
from funct.ops.transcendental import atan as atan
from funct.ops.transcendental import atan2 as atan2
from funct.ops.transcendental import atanh as atanh
from funct.ops.transcendental import cos as cos
from funct.ops.transcendental import cosh as cosh
from funct.ops.transcendental import exp as exp
from funct.ops.transcendental import expm1 as expm1
from funct.ops.transcendental import log as log
from funct.ops.transcendental import log1p as log1p
from funct.ops.transcendental import log2 as log2
from funct.ops.transcendental import log10 as log10
from funct.ops.transcendental import logaddexp as logaddexp
from funct.ops.transcendental import sigmoid as sigmoid
from funct.ops.transcendental import sin as sin
from funct.ops.transcendental import sinh as sinh
from funct.ops.transcendental import tan as tan
from funct.ops.transcendental import tanh as tanh
from funct.ops.transfer import to_device as to_device
from funct.ops.updates import scatter as scatter
from funct.ops.updates import scatter_add as scatter_add
from funct.ops.updates import scatter_combine as scatter_combine
from funct.ops.weight_only import weight_only_linear as weight_only_linear

__all__ = [
    "Sample", "abs", "absorb", "acos", "acosh", "add", "all", "all_gather", "any", "argmax",
    "argmin", "argsort", "asin", "asinh", "astype", "atan", "atan2", "atanh", "attention",
    "attention_keep", "attention_pull", "avg_pool", "axis_count", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "broadcast_to",
    "ceil", "checkpoint_name", "cholesky", "cofactor", "complex_of", "concat", "conj",
    "contract", "convolution", "convolution_input", "convolution_weight", "convolve", "copysign",
    "cos", "cosh", "count_along",
    "cumulative_prod", "cumulative_sum", "dequantize", "det", "divide", "eig", "eigh", "eigvals",
    "eigvalsh", "embed", "equal", "erf", "exp", "expm", "expm1", "fft", "finite", "first_axis",
    "flip", "floor", "floor_divide", "fmod", "fold_windows", "greater", "greater_equal",
    "hermitian_fft", "hypot", "imag", "inv", "isfinite", "isinf", "isnan", "keep_float",
    "length_along", "less", "less_equal", "linear_recurrence", "log", "log10", "log1p", "log2",
    "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "lstsq", "lu", "matmul",
    "max_pool", "max_pool_index", "maximum", "mean_of", "minimum", "move_axis", "move_block",
    "multiply", "negative", "nextafter", "not_equal", "pad_axes", "permute_dims", "pinv", "pow",
    "psum", "psum_scatter", "put", "put_along_axis", "qr", "quantize", "quantized_add",
    "quantized_avg_pool", "quantized_convolution", "quantized_linear", "quantized_mean",
    "random_bits", "random_exponential", "random_fold_in", "random_gamma", "random_gumbel",
    "random_normal", "random_poisson",
    "random_share", "random_shares", "random_split", "random_unit", "real",
    "real_fft", "reciprocal", "reduce_max", "reduce_min", "reduce_prod", "reduce_sum", "relu",
    "remainder", "reshape", "restore", "round", "running_argmax", "sampled_matmul", "scatter",
    "scatter_add", "scatter_combine", "searchsorted", "settled", "sigmoid", "sign", "signbit",
    "sin", "sinh", "size_along", "slice_", "slice_length", "slogdet", "solve", "solve_triangular",
    "sort", "sparse_matmul", "special", "sqrt", "square", "squeeze", "stop_gradient", "subtract",
    "svd", "svdvals", "swap_last", "take", "take_along_axis", "tan", "tanh", "to_device", "top_k",
    "trunc", "weight_only_linear", "where", "windows", "wrap_index",
]  # fmt: skip
