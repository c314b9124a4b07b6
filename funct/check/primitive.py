"""check_primitive: every law, on every sample of a primitive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct.array import asarray, finfo
from funct.check import laws
from funct.core import INEXACT, Absent, Primitive, Sample
from funct.errors import ArgumentError, LawError, UndefinedDerivativeError
from funct.transforms import jvp, vjp

__all__ = ["check_primitive"]


def check_primitive(op: Any, samples: Sequence[Sample] | None = None, *, tol: float = 1e-9) -> None:
    """Raise unless the op obeys every law on its samples.

    The laws: operands are left alone and equal calls give equal bits; the abstract rule gives the
    shape and dtype of the result; forward mode = differences, reverse mode = its adjoint, to second
    order; vmap = a loop; jit = eager, bit for bit; grad, vmap, jit and hessian agree in every
    order; what is absent raises by name.
    Args: op: what `ft.primitive` gives, or a primitive. samples: in place of the op's own. tol: of
    the comparison between vmap and a loop.
    Raises: LawError: with the law, the sample and what was found. ArgumentError: without samples.
    Example:
        >>> import funct as ft
        >>> from funct import ops
        >>> ft.check_primitive(ops.tan)
    """
    prim = op if isinstance(op, Primitive) else getattr(op, "primitive", None)
    if not isinstance(prim, Primitive):
        raise ArgumentError(
            f"check_primitive: expected an op or a primitive, got {type(op).__name__}"
        )
    chosen = list(prim.samples(np.random.default_rng(7))) if samples is None else list(samples)
    if not chosen:
        raise ArgumentError(
            f"check_primitive: {prim.name} has no samples",
            fix="pass samples=[ft.Sample((x, y), params)], or give them to ft.primitive",
        )
    for k, sample in enumerate(chosen):
        for name, law in _laws(prim, sample, tol):
            try:
                law()
            except AssertionError as error:
                raise LawError(
                    f"check_primitive: {prim.name} breaks the law of {name} on sample {k}: "
                    f"{_text(error)}"
                ) from error


def _text(error: AssertionError) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " | ".join(lines[:6]) or "an assertion failed"


def _laws(prim: Primitive, sample: Sample, tol: float) -> list[tuple[str, Callable[[], None]]]:
    args = [asarray(a) for a in sample.args]

    def call(*a: Any) -> Any:
        return prim.fn(*a, *sample.params)

    def rng() -> Any:
        return np.random.default_rng(0)

    low = any(a.dtype in INEXACT and finfo(a.dtype).eps > 1e-10 for a in args)
    found = [
        ("purity", lambda: laws.check_purity(call, args)),
        ("the abstract rule", lambda: laws.check_aval(call, args)),
        ("batching", lambda: laws.check_batch(call, args, rng(), 1e-5 if low else tol)),
        ("compilation", lambda: laws.check_jit(call, args)),
        ("absence", lambda: _absent(prim, call, args)),
    ]
    if sample.smooth and not any(isinstance(r, Absent) for r in prim.rules):
        found.append(("derivatives", lambda: laws.check_derivatives(call, args, rng())))
        found.append(("nesting", lambda: laws.check_nesting(call, args, rng())))
    return found


def _absent(prim: Primitive, call: Callable[..., Any], args: list[Any]) -> None:
    """A rule that does not exist raises an error with the op's name and the stated reason."""
    for i, rule in enumerate(prim.rules):
        if not isinstance(rule, Absent) or args[i].dtype not in INEXACT:
            continue
        _refuses(prim, i, rule, call, args)


def _refuses(prim: Primitive, i: int, rule: Absent, call: Callable[..., Any], args: Any) -> None:
    def one(x: Any) -> Any:
        return call(*args[:i], x, *args[i + 1 :])

    def push() -> Any:
        return jvp(one, (args[i],), (args[i] * 0.0,))

    def pull() -> Any:
        return vjp(one, args[i])

    for mode in (push, pull):
        try:
            mode()
        except UndefinedDerivativeError as caught:
            text = caught.what
        else:
            text = "no error"
        assert text.startswith(f"{prim.name}: no derivative: {rule.reason}"), (
            f"operand {i} has no rule, and the error says {text!r}"
        )
