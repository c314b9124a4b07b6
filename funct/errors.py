"""Every exception class of funct: what went wrong, where, under which transforms, how to mend it.

A class derives from `FunctError` and from the builtin that Python or the Array API standard
expects, so `except ValueError` keeps working. The text follows one template:

    matmul: inner dimensions must agree, got x (8, 64) and y (32, 16): 64 != 32     what
      in train.py:41  logits = h @ w                                                where
      under vmap › jit                                                              context
      fix: transpose y                                                              how

`where` and `context` are found when the exception is made; `fix` is given only where it is certain.
"""

from __future__ import annotations

import re

import numpy as np

from funct.source import Site, active_transforms, user_site

__all__ = [
    "SignatureError",
    "PurityError",
    "LawError",
    "GradientError",
    "AnomalyError",
    "AllocationError",
    "ArgumentError",
    "AxisError",
    "ConcretizationError",
    "DTypeError",
    "DonatedError",
    "EscapedTracerError",
    "ExchangeError",
    "ExportError",
    "FallbackWarning",
    "FileFormatError",
    "ForgottenRulesWarning",
    "FunctError",
    "GraphError",
    "GuardError",
    "ImmutableError",
    "IndexOutOfBoundsError",
    "LinAlgError",
    "MismatchError",
    "MissingExtraError",
    "MissingKeyError",
    "QuantizationError",
    "RangeError",
    "RecursionLimitError",
    "ShapeError",
    "StateDictError",
    "TransformError",
    "TreeError",
    "UndefinedDerivativeError",
    "UnknownValueError",
    "UnsupportedOperandError",
    "expect_kind",
]


class FunctError(Exception):
    """Base of every error funct raises on purpose. Attributes: what, site, context, fix."""

    what: str
    site: Site | None
    context: tuple[str, ...]
    fix: str | None

    def __init__(self, what: str, *, fix: str | None = None, site: Site | None = None) -> None:
        self.fix = fix
        self.site = site if site is not None else user_site(2)
        self.what = _told(what, self.site) if isinstance(self, _OF_ARGUMENTS) else what
        self.context = active_transforms()
        super().__init__(self.what)

    def __str__(self) -> str:
        lines = [self.what]
        if self.site is not None:
            lines.append(f"  in {self.site}")
        if self.context:
            lines.append(f"  under {' › '.join(self.context)}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class ShapeError(FunctError, ValueError):
    """Shapes that do not fit together, or an axis that the array does not have."""


class AxisError(ShapeError, IndexError):
    """An axis that the array does not have; a ValueError and an IndexError, as NumPy's."""


class DTypeError(FunctError, TypeError):
    """A dtype outside the category that the operation is defined for."""


class ArgumentError(FunctError, ValueError):
    """A parameter outside the values that it may take."""


class SignatureError(FunctError, TypeError):
    """A call, or a rule of a registered op, that does not fit the signature that was declared."""


class MissingKeyError(FunctError, TypeError):
    """A layer that draws random numbers was called without `key`."""


class UnsupportedOperandError(FunctError, TypeError):
    """An operand that is neither a Tensor nor a Python number."""


class LinAlgError(FunctError, np.linalg.LinAlgError):
    """A matrix that is singular, not positive definite or not finite where it must not be so.

    Shapes that do not fit are a ShapeError. NumPy's class of this name is a ValueError.
    """


class IndexOutOfBoundsError(FunctError, IndexError):
    """An index outside its axis, or more indices than axes."""


class ImmutableError(FunctError, TypeError):
    """An attempt to write into a Tensor; the text names the functional form."""


class EscapedTracerError(FunctError, RuntimeError):
    """A value made inside a transform was used after that transform had returned."""


class UndefinedDerivativeError(FunctError, TypeError):
    """A derivative that does not exist or is not implemented; never a silent zero."""


class AnomalyError(FunctError, ArithmeticError):
    """A value that is infinite or NaN, found by `detect_anomaly`.

    Attributes: op: the op whose result or derivative it is. phase: "forward", "backward", "tangent"
    or "argument". site: the user's line of that op.
    """

    def __init__(
        self,
        what: str,
        *,
        op: str = "",
        phase: str = "",
        fix: str | None = None,
        site: Site | None = None,
    ) -> None:
        super().__init__(what, fix=fix, site=site)
        self.op = op
        self.phase = phase


class GradientError(FunctError, AssertionError):
    """A derivative that differs from differences; the text has both and where."""


class LawError(FunctError, AssertionError):
    """A primitive that breaks a law; the text names the law and the sample."""


class PurityError(FunctError, AssertionError):
    """A function that does something besides computing its result; the text lists what."""


class TransformError(FunctError, TypeError):
    """A transform applied to a function or arguments that it cannot serve."""


class RecursionLimitError(FunctError, RecursionError):
    """A function that calls itself without end while it is captured."""


class DonatedError(FunctError, RuntimeError):
    """An array that was given away to a compiled function (`donate_argnums`) was used again."""


class MismatchError(FunctError, AssertionError):
    """Compiled code that gives something else than eager execution; the text names the node."""


class ConcretizationError(TransformError, ValueError):
    """The elements of a traced array were asked for where a transform cannot give them."""


class UnknownValueError(ConcretizationError):
    """The elements of an array were asked for while only shapes are known: in bodies of loops and
    branches that are captured, under `eval_shape` and `make_graph`.
    """


class TreeError(FunctError, ValueError):
    """Two pytrees whose structures differ."""


class GraphError(FunctError, ValueError):
    """A graph that breaks a rule of the IR."""


class GuardError(FunctError, ValueError):
    """A value or a size that a captured program took for fixed has another value now."""


class StateDictError(FunctError, KeyError):
    """Missing or unexpected keys, or tensors of another shape or dtype, in a state dict."""

    __str__ = FunctError.__str__  # KeyError would print the repr of the text


class FileFormatError(FunctError, ValueError):
    """A file that is truncated, damaged, hostile or of another format or version."""


class ExportError(FunctError, ValueError):
    """A program that has no form in the target format; raised before anything is written."""


class QuantizationError(FunctError, ValueError):
    """A quantizer's request that cannot be carried out, or parameters out of range."""


class RangeError(FunctError, OverflowError):
    """A Python integer outside the range of the dtype that it has to take."""


class AllocationError(FunctError, MemoryError):
    """An array that memory cannot hold; raised before anything is written."""


class ExchangeError(FunctError, BufferError):
    """Elements that cannot be handed over as asked: another device, a dtype the protocol lacks."""


class FallbackWarning(UserWarning):
    """An op works by a slow road: it has no rule or no kernel of its own. Told once per op.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", ft.FallbackWarning)  # slow roads become errors
        ...     ft.vmap(xp.sin)(xp.ones(2)).shape
        (2,)
    """


class ForgottenRulesWarning(UserWarning):
    """A program is written to a file without the derivative rules of functions in it."""


class MissingExtraError(FunctError, ImportError):
    """An optional dependency is absent; the text names the extra that installs it."""


# Of what was given to a function: the text begins with the name of the function that was called.
_OF_ARGUMENTS = (
    ShapeError, DTypeError, ArgumentError, SignatureError, MissingKeyError, UnsupportedOperandError,
    LinAlgError, IndexOutOfBoundsError, RangeError, AllocationError,
)  # fmt: skip
_READING = r"x\[[^\]]*\]: "
# What means the same to a function and to those that it calls: the name of the called is dropped.
_SHARED = (
    r"\w+: (?=(axis|axes|correction|dtype|elements|keepdims|method) |.* is no dtype$)"
)


def _told(what: str, site: Site | None) -> str:
    """what, as the layer or the function says it that the user's line calls."""
    if site is None or not (site.call or site.layer):
        return what
    if site.call.startswith("x.at["):  # its key is read as any other
        what = re.sub(_READING, f"{site.call}: ", what, count=1)
    elif site.call and not _is_of(site.call, what):
        what = re.sub(_SHARED, f"{site.call}: ", what, count=1)
    owner = site.layer or site.call
    return what if _is_of(owner, what) else f"{owner}: {what}"


def _is_of(owner: str, what: str) -> bool:
    """Whether what begins with owner, which may stand behind the name of its package."""
    if owner.startswith("x["):
        return what.startswith("x[")
    return re.match(rf"(\w+\.)*{re.escape(owner)}(?!\w)", what) is not None


def expect_kind(
    error: type[FunctError],
    argument: str,
    given: object,
    kinds: type | tuple[type, ...],
    said: str,
    fix: str | None = None,
) -> None:
    """Raise the error, with the argument's name, unless what is given is of one of the kinds."""
    if not isinstance(given, kinds):
        raise error(f"{argument} must be {said}, got {type(given).__name__}", fix=fix)
