"""Chapter: complex numbers and their parts, elementwise."""

from __future__ import annotations

from operator import attrgetter

from funct import ops
from funct.core import Absent, Operand, Pair, Value
from funct.kernels.elementwise import functions as kernels
from funct.ops.families import elementwise
from funct.ops.samples import pairs, reals

__all__ = ["complex_of", "conj", "imag", "real"]

_ANY = reals(complex_too=True)


def _conj_rule(g: Value) -> Value:
    return ops.conj(g)


@elementwise(kernels.conj, _conj_rule, onnx="Identity", samples=_ANY)
def conj(x: Operand, /) -> Value:
    """Complex conjugate.

    Example:
        >>> import funct.array as xp
        >>> complex(xp.conj(xp.asarray(1 + 2j))), float(xp.conj(xp.asarray(3.0)))
        ((1-2j), 3.0)
    """


def _real_rule(g: Value) -> Value:
    return ops.real(g)  # the tape gives the operand its complex dtype back


@elementwise(attrgetter("real"), _real_rule, onnx="Identity", samples=_ANY)
def real(x: Operand, /) -> Value:
    """Real part.

    Example:
        >>> import funct.array as xp
        >>> xp.real(xp.asarray([1 + 2j])).tolist()
        [1.0]
    """


def _imag_push(t: Value, ans: Value, x: Value) -> Value:
    return ops.imag(t)


def _imag_pull(g: Value, x: Value) -> Value:
    return g * 1j if x.dtype.kind == "c" else g * 0.0


@elementwise(
    attrgetter("imag"), Pair(_imag_push, _imag_pull, ["x"]),
    onnx=Absent("ONNX operators take no complex numbers"), samples=_ANY,
)  # fmt: skip
def imag(x: Operand, /) -> Value:
    """Imaginary part.

    Example:
        >>> import funct.array as xp
        >>> xp.imag(xp.asarray([1 + 2j])).tolist(), xp.imag(xp.asarray([3.0])).tolist()
        ([2.0], [0.0])
    """


def _complex_of_rule_re(g: Value) -> Value:
    return g


def _complex_of_rule_im(g: Value) -> Value:
    return g * 1j


@elementwise(
    kernels.complex_of, _complex_of_rule_re, _complex_of_rule_im,
    onnx=Absent("ONNX operators take no complex numbers"), samples=pairs(), typed=True,
)  # fmt: skip
def complex_of(re: Operand, im: Operand, /) -> Value:
    """re + i im, also where im is infinite or NaN: `1j * im` has a NaN beside it there."""
