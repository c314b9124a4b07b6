"""check_grads: the derivatives of a function against differences, in both modes and any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from funct import tree
from funct.array import asarray, finfo, stack
from funct.array.trees import flat_arrays
from funct.core import INEXACT
from funct.errors import ArgumentError, GradientError
from funct.transforms import jvp, vjp, vmap
from funct.transforms.given import expect_functions

__all__ = ["check_grads"]

Fun = Callable[..., Any]
_MODES = {"fwd": "forward", "rev": "reverse"}


def check_grads(
    fun: Fun,
    args: Any,
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    *,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    fast: bool = False,
    batched: bool = True,
    nondet_tol: float = 0.0,
    seed: int = 0,
) -> None:
    """Raise unless fun's derivatives are what central differences say.

    Args: args: a tuple of pytrees, where fun is smooth; integer leaves are constants. order: check
    the derivatives of the derivatives too, up to this order. modes: "fwd" (jvp) and "rev" (vjp).
    eps: step; atol, rtol: |analytic - numeric| <= atol + rtol |numeric|; the defaults suit the
    lowest precision among the leaves. fast: compare along one random direction instead of element
    by element, which costs the same for any size and cannot say which element is wrong. batched:
    vmap of the pullback must equal a loop. nondet_tol: how much two equal calls may differ. seed:
    of the random directions.
    Complex arguments are two real ones; the derivative need not be holomorphic. A zero cotangent
    must give zeros.
    Raises: GradientError: with the argument, the element, the numeric and the analytic value.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> ft.check_grads(lambda x: xp.sum(xp.sin(x) * x), (xp.ones(2),))
        >>> f = ft.custom_vjp(xp.sin)
        >>> f.defvjp(lambda x: (xp.sin(x), x), lambda x, g: (g * 2.0,))
        >>> try:
        ...     ft.check_grads(f, (xp.asarray(0.0),), order=1, modes=["rev"])
        ... except ft.errors.GradientError as error:
        ...     print(error.what)
        check_grads: reverse mode: d result / d argument 0 is 2.0, differences give 1.0
    """
    expect_functions("check_grads", fun=fun)
    args = tuple(args) if isinstance(args, tuple | list) else (args,)
    unknown = [m for m in modes if m not in _MODES]
    if unknown or order < 1:
        raise ArgumentError(
            f"check_grads: modes are 'fwd' and 'rev' and order is at least 1, got {tuple(modes)} "
            f"and {order}"
        )
    named = tree.flatten_with_path(args)
    leaves, spec = flat_arrays(args)
    at = [k for k, x in enumerate(leaves) if x.dtype in INEXACT]
    if not at:
        raise ArgumentError("check_grads: no argument has floating or complex elements")
    paths: list[str] = []

    def flat(*xs: Any) -> list[Any]:
        full = list(leaves)
        for k, x in zip(at, xs, strict=True):
            full[k] = x
        found = tree.flatten_with_path(fun(*spec.unflatten(full)))
        found = [(p, asarray(o)) for p, o in found]
        found = [(p, o) for p, o in found if o.dtype in INEXACT]
        paths[:] = [p for p, _ in found]
        return [o for _, o in found]

    low = any(finfo(leaves[k].dtype).eps > 1e-10 for k in at)
    rule = _Tolerance(
        eps if eps is not None else (1e-2 if low else 1e-6),
        atol if atol is not None else (1e-2 if low else 1e-5),
        rtol if rtol is not None else (1e-2 if low else 1e-4),
        nondet_tol,
    )
    where = [_place("argument ", named[k][0]) for k in at]
    _Check(flat, [leaves[k] for k in at], where, paths, "", tuple(modes), fast, batched, rule).run(
        order, np.random.default_rng(seed)
    )


class _Tolerance(Struct, frozen=True):
    eps: float
    atol: float
    rtol: float
    nondet: float


class _Check(Struct, frozen=True):
    """One function from a flat list of floating arrays to another, at a point."""

    fun: Fun
    xs: list[Any]
    where: list[str]  # names of the arguments
    paths: list[str]  # of the results
    history: str  # which derivative this function is
    modes: tuple[str, ...]
    fast: bool
    batched: bool
    tol: _Tolerance

    def run(self, order: int, rng: Any) -> None:
        """All checks, and those of the derivatives."""
        outs = self.fun(*self.xs)
        if not outs:
            return
        self._deterministic(outs)
        ts = [_noise(rng, x) for x in self.xs]
        cts = [_noise(rng, o) for o in outs]
        if self.fast:
            self._along(ts, cts)
        else:
            self._elements(outs)
        if "rev" in self.modes:
            self._zeros(outs)
            if self.batched:
                self._batch(cts)
        if order < 2:
            return
        rule = replace(self.tol, atol=self.tol.atol * 10, rtol=self.tol.rtol * 10)
        for mode in self.modes:
            step: Fun = (
                (lambda *xs: jvp(self.fun, xs, tuple(ts))[1])
                if mode == "fwd"
                else (lambda *xs: _adjoint(self.fun, xs)(cts))
            )
            history = f"{_MODES[mode]} mode of {self.history}" if self.history else _MODES[mode]
            names = list(self.paths) if mode == "fwd" else [f"[{w}]" for w in self.where]
            replace(self, fun=step, paths=names, history=history, tol=rule).run(order - 1, rng)

    def _push(self, ts: Sequence[Any]) -> list[Any]:
        return list(jvp(self.fun, tuple(self.xs), tuple(ts))[1])

    def _difference(self, ts: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
        """Central differences along ts."""
        h = self.tol.eps
        moved = [
            self.fun(*[x + t * (s * h) for x, t in zip(self.xs, ts, strict=True)]) for s in (1, -1)
        ]
        return [(_wide(a) - _wide(b)) / (2 * h) for a, b in zip(moved[0], moved[1], strict=True)]

    def _elements(self, outs: list[Any]) -> None:
        """Every entry of the Jacobian, complex numbers as pairs of reals."""
        rows: list[tuple[int, Any, Any, list[Any]]] = []
        if "rev" in self.modes:
            pull = _adjoint(self.fun, self.xs)
            for j, o in enumerate(outs):
                for spot, phase, unit in _basis(o):
                    cts = [unit if i == j else _zero(v) for i, v in enumerate(outs)]
                    rows.append((j, spot, phase, [_wide(g) for g in pull(cts)]))
        for k, x in enumerate(self.xs):
            for index, turn, unit in _basis(x):
                ts = [unit if i == k else _zero(v) for i, v in enumerate(self.xs)]
                numeric = self._difference(ts)
                if "fwd" in self.modes:
                    for j, (t, n) in enumerate(zip(self._push(ts), numeric, strict=True)):
                        for spot in np.ndindex(n.shape):
                            self._compare("fwd", _wide(t)[spot], n[spot], (j, spot), (k, index))
                for j, spot, phase, grads in rows:
                    analytic = np.real(np.conj(grads[k][index]) * turn)
                    exact = np.real(np.conj(phase) * numeric[j][spot])
                    self._compare("rev", analytic, exact, (j, spot), (k, index))

    def _along(self, ts: list[Any], cts: list[Any]) -> None:
        """The derivative along one direction, seen from one direction."""
        numeric = _inner(cts, self._difference(ts))
        if "fwd" in self.modes:
            self._compare("fwd", _inner(cts, self._push(ts)), numeric, None, None)
        if "rev" in self.modes:
            grads = _adjoint(self.fun, self.xs)(cts)
            self._compare("rev", _inner(grads, ts), numeric, None, None)

    def _compare(self, mode: str, analytic: Any, numeric: Any, out: Any, arg: Any) -> None:
        bad = ~(np.abs(analytic - numeric) <= self.tol.atol + self.tol.rtol * np.abs(numeric))
        if not bad:
            return
        if out is None:
            what = "the derivative along a random direction"
        else:
            (j, spot), (k, index) = out, arg
            what = (
                f"d {_place('result ', self.paths[j], spot)} / d {_place(self.where[k], '', index)}"
            )
        of = f" of the derivative by {self.history} mode" if self.history else ""
        raise GradientError(
            f"check_grads: {_MODES[mode]} mode{of}: {what} is {_number(analytic)}, differences "
            f"give {_number(numeric)}"
        )

    def _deterministic(self, outs: list[Any]) -> None:
        for o, again in zip(outs, self.fun(*self.xs), strict=True):
            worst = np.abs(_wide(o) - _wide(again)).max(initial=0.0)
            if worst > self.tol.nondet:
                raise GradientError(
                    f"check_grads: the function is not deterministic: two calls differ by {worst}",
                    fix="pass the random key as an argument, or set nondet_tol",
                )

    def _zeros(self, outs: list[Any]) -> None:
        for k, g in enumerate(_adjoint(self.fun, self.xs)([_zero(o) for o in outs])):
            if np.any(_wide(g) != 0):
                raise GradientError(
                    f"check_grads: reverse mode: a zero cotangent gives {_wide(g).tolist()} for "
                    f"{self.where[k]}"
                )

    def _batch(self, cts: list[Any]) -> None:
        pull = _adjoint(self.fun, self.xs)
        scales = (1.0, -0.5, 2.0)
        many = [stack([c * s for s in scales]) for c in cts]
        together = vmap(pull)(many)
        for row, s in enumerate(scales):
            alone = pull([c * s for c in cts])
            for k, (a, b) in enumerate(zip(alone, together, strict=True)):
                if not np.allclose(_wide(a), _wide(b)[row], self.tol.rtol, self.tol.atol):
                    raise GradientError(
                        f"check_grads: reverse mode: vmap of the pullback gives "
                        f"{_wide(b)[row].tolist()} for {self.where[k]}, one by one it is "
                        f"{_wide(a).tolist()}"
                    )


def _adjoint(fun: Fun, xs: Sequence[Any]) -> Callable[[list[Any]], list[Any]]:
    """The pullback in the engine's convention, whatever the user's."""
    pull: Fun = vjp(fun, *xs)[1].adjoint
    return pull


def _wide(x: Any) -> np.ndarray[Any, Any]:
    raw = np.asarray(x)
    return raw.astype(np.complex128 if raw.dtype.kind == "c" else np.float64)


def _zero(x: Any) -> Any:
    return asarray(np.zeros(x.shape, x.dtype))


def _noise(rng: Any, x: Any) -> Any:
    t = rng.normal(size=x.shape)
    if x.dtype.kind == "c":
        t = t + 1j * rng.normal(size=x.shape)
    return asarray(np.asarray(t, x.dtype))


def _basis(x: Any) -> Iterator[tuple[tuple[int, ...], complex, Any]]:
    """(index, phase, unit array): one per real dimension of x."""
    for index in np.ndindex(tuple(x.shape)):
        for phase in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
            raw = np.zeros(x.shape, x.dtype)
            raw[index] = phase
            yield index, phase, asarray(raw)


def _inner(a: Sequence[Any], b: Sequence[Any]) -> float:
    return float(sum(np.real(np.vdot(_wide(x), _wide(y))) for x, y in zip(a, b, strict=True)))


def _place(head: str, path: str, index: Any = ()) -> str:
    text = f"{head}{path}".strip()
    return f"{text}[{', '.join(map(str, index))}]" if index else text


def _number(x: Any) -> str:
    value = complex(x)
    return repr(round(value.real, 9)) if value.imag == 0 else repr(value)
