"""The one table of kernels: which code computes what, for which dtypes, on which processors.

    find("convolution", x.dtype, work=2 * y.size * w[0].size)(x, w, ...)

Rows of one name stand best first and take the same arguments: raw arrays in, raw arrays out. A row
is chosen if it knows the dtype, the device has all that the row needs, and the work is worth its
cost (loading LLVM takes 60 ms, once). The last row of a name needs nothing: it is plain NumPy, runs
everywhere, and is what the others are tested against.

A row that is chosen may still return NotImplemented for a case it does not know by how arrays lie,
and `UNFIT` for what they hold; `call` goes on to the next one.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from msgspec import Struct

from funct.device import host

__all__ = [
    "ROWS", "UNFIT", "Fitted", "Planned", "Remembered", "Row", "available", "call", "find", "left",
    "met", "permitted", "planned", "restricted", "restriction", "unrestricted",
]  # fmt: skip

Implementation = Callable[..., Any]
DType = np.dtype[Any]
UNFIT: Any = object()


class Row(Struct, frozen=True):
    """One kernel.

    place: "module:function". dtypes: NumPy's or ml_dtypes' names; () is any. needs: LLVM's names of
    features of the processor ("avx2"), "llvm" where code is made at run time. least: the
    work, in units of the name's own, from which on it pays. inside: whether zeros around images are
    multiplied by nothing, be it infinite.
    """

    name: str
    place: str
    dtypes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    least: int = 0
    inside: bool = False
    device: str = "cpu"

    def load(self) -> Implementation:
        """The function. Its module is imported at the first use."""
        return _load(self.place)


_CPU = "funct.kernels.cpu."
_CONV, _PRODUCTS = _CPU + "convolution.", _CPU + "products."
_FEW = _CONV + "few_products:"
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
_DOUBLE = ("float64", "complex128")
_HALF = ("float16", "bfloat16")
_SHORT = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
_BYTES = ("int8", "uint8")
_INTEGER = (*_SHORT, "int64", "uint64")
_WHOLE = ("bool", *_INTEGER)
WIDE = ("llvm", "avx2", "fma")  # what tiles need
_LONG = (*WIDE, "avx512f", "avx512dq", "avx512bw", "avx512vl")  # vectors of 64 bytes
PAIRS = ("llvm", "avx512bf16", "avx512vl", "avx512bw")  # what products of pairs of bfloat16 need
_PAIRS = ("bfloat16",), PAIRS, 1 << 20
_SOME = 1 << 14  # floating-point operations that pay for a text of a kernel of its own
_LITTLE = 1 << 12

ROWS = (
    # work: floating-point operations
    Row("attention", _CPU + "attention.fused:attention", _REAL, WIDE),
    Row("attention", "funct.kernels.attention:plain_attention"),
    Row("attention_pull", _CPU + "attention.fused:attention_pull", _REAL, WIDE),
    Row("attention_pull", "funct.kernels.attention:plain_attention_pull"),
    # First what is small, then what is a product as it stands or after a copy, then few channels
    # per group.
    Row("convolution", _FEW + "convolution", _REAL, ("llvm",), inside=True),
    Row("convolution", "funct.kernels.windows.reached:convolution", _REAL),
    Row("convolution", "funct.kernels.windows.subsampled:convolution", _REAL),
    Row("convolution", _CONV + "unrolled:convolution", _REAL, _LONG, _SOME),
    Row("convolution", _CONV + "convolution:beside", _REAL, WIDE, _LITTLE),
    Row("convolution", _CONV + "points:convolution", _REAL, _LONG, _SOME),
    Row("convolution", "funct.kernels.windows.pointwise:convolution", _REAL),
    Row("convolution", "funct.kernels.windows.patches:convolution", _REAL, (), 1 << 20),
    Row("convolution", _CONV + "sent:convolution", _REAL, ("llvm",), _SOME),
    Row("convolution", _CONV + "depthwise_last:convolution", _REAL, WIDE, _SOME),
    Row("convolution", _CONV + "depthwise:convolution", _REAL, WIDE, _SOME),
    Row("convolution", _CONV + "winograd:convolution", _REAL, WIDE, 1 << 16),
    Row("convolution", _CONV + "convolution:convolution", _REAL, WIDE, _LITTLE),
    Row("convolution", "funct.kernels.windows.products:convolution"),
    Row("convolution_input", _FEW + "convolution_input", _REAL, ("llvm",), inside=True),
    Row("convolution_input", "funct.kernels.windows.reached:convolution_input", _REAL),
    Row("convolution_input", "funct.kernels.windows.subsampled:convolution_input", _REAL),
    Row("convolution_input", _CONV + "convolution:beside_input", _REAL, WIDE, _LITTLE),
    Row("convolution_input", _CONV + "points:convolution_input", _REAL, _LONG, _SOME),
    Row("convolution_input", "funct.kernels.windows.pointwise:convolution_input", _REAL),
    Row("convolution_input", "funct.kernels.windows.patches:convolution_input", _REAL, (), 1 << 20),
    Row("convolution_input", _CONV + "unrolled:convolution_input", _REAL, _LONG, _SOME),
    Row("convolution_input", _CONV + "sent:convolution_input", _REAL, ("llvm",), _SOME),
    Row("convolution_input", _CONV + "depthwise_last:convolution_input", _REAL, WIDE, _SOME),
    Row("convolution_input", _CONV + "depthwise:convolution_input", _REAL, WIDE, _SOME),
    Row("convolution_input", _CONV + "winograd:convolution_input", _REAL, WIDE, 1 << 16),
    Row("convolution_input", _CONV + "convolution:convolution_input", _REAL, WIDE, _LITTLE),
    Row("convolution_input", "funct.kernels.windows.products:convolution_input"),
    Row("convolution_weight", _FEW + "convolution_weight", _REAL, ("llvm",), inside=True),
    Row("convolution_weight", "funct.kernels.windows.reached:convolution_weight", _REAL),
    Row("convolution_weight", "funct.kernels.windows.subsampled:convolution_weight", _REAL),
    Row("convolution_weight", _CONV + "weight_gradient:beside_weight", _REAL, WIDE, _LITTLE),
    Row(
        "convolution_weight",
        _CONV + "weight_gradient:pointwise_weight",
        _REAL,
        WIDE,
        1 << 21,
    ),
    Row("convolution_weight", "funct.kernels.windows.pointwise:convolution_weight", _REAL),
    Row(
        "convolution_weight", "funct.kernels.windows.patches:convolution_weight", _REAL, (), 1 << 20
    ),
    Row(
        "convolution_weight",
        _CONV + "depthwise_last:convolution_weight",
        _REAL,
        WIDE,
        _SOME,
    ),
    Row("convolution_weight", _CONV + "depthwise:convolution_weight", _REAL, WIDE, _SOME),
    Row(
        "convolution_weight",
        _CONV + "winograd_weight:convolution_weight",
        _REAL,
        WIDE,
        1 << 16,
    ),
    Row(
        "convolution_weight",
        _CONV + "weight_gradient:convolution_weight",
        _REAL,
        WIDE,
        _LITTLE,
    ),
    Row("convolution_weight", "funct.kernels.windows.products:convolution_weight"),
    Row("half_convolution", _CONV + "half_convolution:convolution", *_PAIRS),
    Row("half_convolution", "funct.kernels.windows.convolution:widened"),
    Row("half_convolution_input", _CONV + "half_convolution:convolution_input", *_PAIRS),
    Row("half_convolution_input", "funct.kernels.windows.convolution:widened_input"),
    Row("half_convolution_weight", _CONV + "half_convolution:convolution_weight", *_PAIRS),
    Row("half_convolution_weight", "funct.kernels.windows.convolution:widened_weight"),
    Row("half_matmul", _PRODUCTS + "half_products:half_matmul", _HALF, WIDE, 1 << 9),
    Row("half_matmul", "funct.kernels.linalg.products:half_matmul"),
    Row("integer_matmul", _PRODUCTS + "integers:integer_matmul", _SHORT, ("llvm", "avx2"), 1 << 23),
    Row("integer_matmul", _PRODUCTS + "integer_rows:integer_matmul", _INTEGER, ("llvm",), 1 << 12),
    Row("integer_matmul", "funct.kernels.linalg.products:integer_matmul"),
    Row("quantized_linear", _CPU + "quantized.layers:linear", _BYTES, ("llvm", "avx2"), 1 << 9),
    Row("quantized_linear", "funct.kernels.quantized.affine:plain_linear"),
    Row(
        "quantized_convolution",
        _CPU + "quantized.layers:convolution",
        _BYTES,
        ("llvm", "avx2"),
        1 << 9,
    ),
    Row("quantized_convolution", "funct.kernels.quantized.affine:plain_convolution"),
    Row(
        "weight_only_linear",
        _CPU + "quantized.weight_only:weight_only_linear",
        ("float32",),
        WIDE,
        1 << 13,
    ),
    Row("weight_only_linear", "funct.kernels.quantized.weight_only:plain_weight_only_linear"),
    # work: multiplications
    Row("large_matmul", _PRODUCTS + "vector_products:large_matmul", _REAL, WIDE, 1 << 16),
    Row("large_matmul", _PRODUCTS + "few_rows:large_matmul", _REAL, WIDE, 1 << 14),
    Row("large_matmul", _PRODUCTS + "large_products:large_matmul", _REAL, _LONG, 1 << 15),
    Row("large_matmul", _PRODUCTS + "blas_products:large_matmul", _REAL, ("llvm",), 1 << 18),
    Row("large_matmul", _PRODUCTS + "large_products:large_matmul", _COMPLEX, _LONG, 1 << 12),
    Row("large_matmul", _PRODUCTS + "blas_products:large_matmul", _COMPLEX, ("llvm",), 1 << 16),
    Row("large_matmul", "funct.kernels.linalg.products:plain_matmul"),
    Row("small_matmul", _PRODUCTS + "numpys:small_matmul", (*_REAL, *_COMPLEX), ("llvm",)),
    Row("small_matmul", "funct.kernels.linalg.products:plain_matmul"),
    Row("summed_matmul", _PRODUCTS + "blas_products:summed_matmul", _REAL, ("llvm",), 1 << 16),
    Row("summed_matmul", "funct.kernels.linalg.products:summed_matmul"),
    # work: terms; OpenBLAS gives more than 10,000 to several threads
    Row("dot", _PRODUCTS + "blas_products:dot", _DOUBLE, ("llvm",), 10_001),
    Row("dot", "funct.kernels.linalg.dots:plain_dot"),
    Row("vdot", _PRODUCTS + "blas_products:vdot", _DOUBLE, ("llvm",), 10_001),
    Row("vdot", "funct.kernels.linalg.dots:plain_vdot"),
    Row("gram_matmul", _PRODUCTS + "gram:gram_matmul", _REAL, ("llvm",), 1 << 18),
    Row("gram_matmul", "funct.kernels.linalg.products:gram_matmul"),
    # work: elements of the matrix; fewer are not worth threads to OpenBLAS
    Row("vector_matmul", _PRODUCTS + "vector_products:vector_matmul", _REAL, WIDE, 9216),
    Row("vector_matmul", _PRODUCTS + "vector_products:vector_matmul", _HALF, WIDE, 1 << 8),
    Row("vector_matmul", "funct.kernels.linalg.products:half_matmul", _HALF),
    Row("vector_matmul", _PRODUCTS + "blas_products:vector_matmul", _REAL, ("llvm",), 9216),
    Row("vector_matmul", _PRODUCTS + "blas_products:vector_matmul", _COMPLEX, ("llvm",), 4096),
    Row("vector_matmul", "funct.kernels.linalg.products:vector_matmul"),
    # work: elements of the result
    Row("thin_matmul", _PRODUCTS + "integers:thin_matmul", _REAL, WIDE, 1 << 18),
    Row("thin_matmul", "funct.kernels.linalg.products:thin_matmul"),
    # work: elements
    Row("cast", _CPU + "elementwise.casts:cast", (*_HALF, *_REAL, *_WHOLE), ("llvm",), 1 << 9),
    Row("cast", "funct.kernels.elementwise.casting:plain_cast"),
    Row("elementwise", _CPU + "elementwise.large:of_large", (*_HALF, *_REAL), ("llvm",)),
    Row("elementwise", "funct.kernels.elementwise.functions:as_it_is"),
    Row(
        "half_reduction",
        _CPU + "reductions.half_reductions:half_reduction",
        _HALF,
        ("llvm",),
        1 << 12,
    ),
    Row("half_reduction", "funct.kernels.reductions.statistical:half_reduction"),
    Row("nans", _CPU + "elementwise.vector_loops:nans", (*_REAL, *_HALF), ("llvm",)),
    Row("nans", "funct.kernels.elementwise.nans:plain"),
    Row("outer_product", _PRODUCTS + "outer:outer_product", _REAL, ("llvm",)),
    Row(
        "outer_product",
        _CPU + "elementwise.vector_loops:outer_product",
        (*_HALF, *_REAL),
        ("llvm",),
    ),
    Row("outer_product", "funct.kernels.linalg.products:outer_product"),
    # work: elements
    Row("fourier", _CPU + "fourier.lines:along", (*_REAL, *_COMPLEX), ("llvm",)),
    Row("fourier", "funct.kernels.fft:plain"),
    # work: matrices
    Row("stacked_matmul", _CPU + "small.products:matmul", _REAL, ("llvm",), 1 << 6),
    Row("stacked_matmul", _CPU + "small.products:complex_matmul", _COMPLEX, ("llvm",), 1 << 6),
    Row("stacked_matmul", "funct.kernels.linalg.products:stacked_matmul"),
    # work: elements of right sides
    Row("solve_triangular", _CPU + "triangular:solve_triangular", (*_REAL, *_COMPLEX), ("llvm",)),
    Row("solve_triangular", "funct.kernels.linalg.matrices:triangular_solves"),
    Row("quantize", _CPU + "quantized.layers:quantize", ("float32",), ("llvm",), 1 << 9),
    Row("quantize", "funct.kernels.quantized.affine:plain_quantize"),
    Row("dequantize", _CPU + "quantized.layers:dequantize", _BYTES, ("llvm",), 1 << 11),
    Row("dequantize", "funct.kernels.quantized.affine:plain_dequantize"),
    # work: elements of all parameters together, and 512 for each array
    Row("update", _CPU + "updates:update", _REAL, ("llvm",)),
    Row("update", "funct.kernels.updates:plain_update"),
    Row("sum_of_squares", _CPU + "updates:sum_of_squares", _REAL, ("llvm",)),
    Row("sum_of_squares", "funct.kernels.updates:plain_sum_of_squares"),
)

restriction: ContextVar[frozenset[str] | None] = ContextVar("funct.kernels.only", default=None)


@functools.cache
def _load(place: str) -> Implementation:
    module, _, function = place.partition(":")
    found: Implementation = getattr(importlib.import_module(module), function)
    return found


@functools.cache
def available() -> frozenset[str]:
    """What rows may need and this process has. LLVM is loaded to know the processor."""
    return frozenset({"llvm", *host().features} if importlib.util.find_spec("llvmlite") else ())


@contextmanager
def restricted(*have: str) -> Iterator[None]:
    """Within the block no row is chosen that needs more than these; () leaves the plain ones."""
    token = restriction.set(frozenset(have))
    try:
        yield
    finally:
        restriction.reset(token)


# What the innermost block of `restricted` leaves, for keys of what is kept; None: all. Small calls
# ask, so this is a builtin.
left: Callable[[], frozenset[str] | None] = restriction.get


def unrestricted() -> bool:
    """Whether all is left: no block of `restricted` is around."""
    return restriction.get() is None


def permitted(need: str) -> bool:
    """Whether `restricted` leaves what needs this."""
    only = restriction.get()
    return only is None or need in only


def met(needs: Sequence[str]) -> bool:
    """Whether the processor has all of these, and `restricted` leaves them."""
    return available().issuperset(needs) and all(map(permitted, needs))


@functools.cache
def _candidates(
    name: str, dtype: DType, device: str, only: frozenset[str] | None
) -> tuple[Row, ...]:
    """The rows whose needs are met."""
    rows = [r for r in ROWS if r.name == name and r.device == device]
    if not rows:
        raise LookupError(f"no kernel {name!r} for {device!r}")
    return tuple([
        r for r in rows
        if (not r.dtypes or dtype.name in r.dtypes)
        and (not r.needs or available().issuperset(r.needs))
        and (only is None or only.issuperset(r.needs))
    ])  # fmt: skip


def find(name: str, dtype: DType, work: int = 1 << 62, device: str = "cpu") -> Implementation:
    """The best function for these.

    Raises: LookupError: where the table has no row at all; each name has a plain one on the CPU.
    """
    for row in _candidates(name, dtype, device, restriction.get()):
        if work >= row.least:
            return row.load()
    raise LookupError(f"no kernel {name!r} for {dtype} on {device!r}")


class Planned:
    """A kernel of two arrays whose work is planned by how they lie.

    plan: of their shapes, their strides and the first one's dtype, by its character, gives the
    function of both; None: it passes the case on.
    """

    def __init__(self, plan: Callable[..., Any]) -> None:
        self.plan: Any = functools.lru_cache(512)(plan)

    def __call__(self, x: Any, y: Any) -> Any:
        """What it computes of these."""
        call = self.plan(x.shape, y.shape, x.strides, y.strides, x.dtype.char)
        return NotImplemented if call is None else call(x, y)


@functools.lru_cache(1024)
def planned(
    name: str, dtype: DType, work: int, only: frozenset[str] | None, *layout: tuple[int, ...]
) -> Callable[[Any, Any], Any]:
    """The function that `call` would find for two arrays of these shapes and strides, in a table
    whose rows are `Planned` or take all. only: `left()`.
    """
    for row in _candidates(name, dtype, "cpu", only):
        if work >= row.least:
            kernel = row.load()
            found: Any = kernel.plan(*layout, dtype.char) if isinstance(kernel, Planned) else kernel
            if found is not None:
                return found
    raise LookupError(f"no kernel {name!r} for {dtype} on 'cpu'")


class Fitted:
    """A kernel that computes as its operands lie.

    plan: of all arguments, gives the function of them that computes for others which lie alike;
    None: it passes the case on.
    """

    def __init__(self, plan: Callable[..., Implementation | None]) -> None:
        self.plan = plan
        functools.update_wrapper(self, plan)  # for its signature

    def __call__(self, *args: Any) -> Any:
        """What it computes of these."""
        return (self.plan(*args) or _passing)(*args)


def _passing(*args: Any) -> Any:
    return NotImplemented


class Remembered:
    """The rows for calls that are alike: of one name, for arrays that lie alike.

    What passed the first of them on by how arrays lie is not asked again, nor is a plan made again.
    """

    def __init__(self, name: str, dtype: DType, work: int, device: str = "cpu") -> None:
        rows = _candidates(name, dtype, device, restriction.get())
        self._rows = tuple([r for r in rows if work >= r.least])
        self._calls: dict[str, Implementation] = {}  # by the place of a row
        self._what = f"{name!r} for {dtype} on {device!r}"

    @property
    def inside(self) -> bool:
        """Whether the row that computed last is so."""
        return self._rows[0].inside

    def __call__(self, *args: Any) -> Any:
        """What the best row that knows the case computes."""
        passed = []
        for row in self._rows:
            call = self._calls.get(row.place) or self._loaded(row, args)
            y = call(*args)
            if y is NotImplemented:
                passed.append(row)
            elif y is not UNFIT:
                if passed:
                    self._rows = tuple([r for r in self._rows if r not in passed])
                return y
        raise LookupError(f"no kernel {self._what}")

    def _loaded(self, row: Row, args: tuple[Any, ...]) -> Implementation:
        kernel = row.load()
        call = (kernel.plan(*args) or _passing) if isinstance(kernel, Fitted) else kernel
        self._calls[row.place] = call
        return call


def call(name: str, dtype: DType, work: int, *args: Any, device: str = "cpu") -> Any:
    """What the best row that knows the case computes."""
    for row in _candidates(name, dtype, device, restriction.get()):
        if work >= row.least:
            y = row.load()(*args)
            if y is not NotImplemented and y is not UNFIT:
                return y
    raise LookupError(f"no kernel {name!r} for {dtype} on {device!r}")
