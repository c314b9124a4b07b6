"""The commutation matrix: every transform around every transform around every primitive.

A transform is here a function from f to another function of the same operands. What A(B(f)) must
give is what A and B mean, without them: nothing (`jit`), a Python loop over variations of the
operands (`vmap`), a derivative along one direction (`grad`). So there are seven expected values for
one primitive, and each of them is computed once, op by op.

`python -m tests.commutation [primitive ...]` checks every pair on every primitive, or on those that
are named; without names it writes docs/COMMUTATION.md.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import funct as ft
import funct.array as xp
from funct.core import Absent, Primitive, Sample, ShapeDtype, catalogue
from funct.errors import UndefinedDerivativeError
from tests import laws

Fun = Callable[..., tuple[Any, ...]]  # of a sample's operands; a tuple of results
PAGE = Path(__file__).parent.parent / "docs" / "COMMUTATION.md"
LANES = 3


@attrs.frozen
class Subject:
    """One primitive at one sample.

    moving: the operands that derivatives are taken in. reason: why there are none, or "".
    """

    name: str
    fun: Fun
    args: tuple[Any, ...]
    moving: tuple[int, ...]
    reason: str
    smooth: bool
    tol: float

    def refuses(self) -> bool:
        """Whether a derivative that is absent raises, with the reason."""
        at = laws.varying(self.args)
        try:
            _jvp(attrs.evolve(self, moving=tuple(at)), self.fun)(*self.args)
        except UndefinedDerivativeError as error:
            return self.reason in error.what
        return False


def primitives() -> list[Primitive]:
    """Those that have samples, by name; collectives make sense inside a vmap with a name alone."""
    found = [p for p in catalogue() if p.samples(np.random.default_rng(7))]
    return sorted(found, key=lambda p: p.name)


def subject(prim: Primitive) -> Subject:
    """The primitive at the sample that says most: smooth, in float64, not empty, small."""

    def rank(sample: Sample) -> tuple[bool, ...]:
        arrays = [np.asarray(a) for a in sample.args]
        return (
            any(a.size == 0 for a in arrays),
            not sample.smooth,
            not any(a.dtype == np.float64 for a in arrays),
            sum(a.size for a in arrays) > 64,
            all(a.size == 1 for a in arrays),
        )

    sample = min(prim.samples(np.random.default_rng(7)), key=rank)
    args = tuple([xp.asarray(a) for a in sample.args])

    def fun(*xs: Any) -> tuple[Any, ...]:
        out = prim.fn(*xs, *sample.params)
        return out if isinstance(out, tuple) else (out,)

    at = laws.varying(args)
    rules = [prim.rules[i] for i in at]
    moving = tuple([i for i, r in zip(at, rules, strict=True) if not isinstance(r, Absent)])
    outs = fun(*args)
    if not at:
        reason = "no operand is floating or complex"
    elif not any(o.dtype.kind in "fc" for o in outs):
        reason, moving = "no result is floating or complex", ()
    else:
        reason = next((r.reason for r in rules if isinstance(r, Absent)), "") if not moving else ""
    exact = all(x.dtype.kind not in "fc" or x.dtype.itemsize >= 8 for x in (*args, *outs))
    return Subject(
        prim.name, fun, args, moving, reason, sample.smooth, 1e-8 if exact else 1e-3
    )


# What carries a value along: directions, weights and variations depend on shape and dtype alone,
# so that the same ones are met at any depth.


def _pattern(x: Any, start: float) -> Any:
    """A fixed generic array like x."""
    phase = start + np.arange(int(np.prod(x.shape))).reshape(tuple(x.shape))
    wave = np.cos(1.7 * phase) + (1j * np.sin(2.3 * phase) if x.dtype.kind == "c" else 0.0)
    return xp.asarray(wave.astype(x.dtype))


def _direction(x: Any) -> Any:
    return _pattern(x, 1.0)


def _weight(o: Any) -> Any:
    return _pattern(o, 2.0)


def _product(xs: Any, ys: Any) -> tuple[Any, ...]:
    """The real inner product of two tuples of arrays, as one result."""
    terms = [xp.sum(xp.real(xp.conj(x) * y)) for x, y in zip(xs, ys, strict=True)]
    return (sum(terms[1:], terms[0]),)


def _variations(x: Any) -> Any:
    """LANES times x on a new first axis; floating elements change and stay in their domain."""
    if x.dtype.kind not in "fc":
        return xp.stack([x] * LANES)
    return xp.stack([x * xp.asarray(1.0 + 0.02 * k, dtype=x.dtype) for k in range(LANES)])


def _free(at: tuple[int, ...], fun: Fun, args: Any) -> tuple[Fun, tuple[Any, ...]]:
    """The floating results of fun as a function of the moving operands, and these."""
    return laws.restrict(fun, args, at), tuple([args[i] for i in at])


# Transforms: of a subject and a function, the function that is to be compared.


def _jvp(s: Subject, fun: Fun) -> Fun:
    def run(*args: Any) -> Any:
        free, xs = _free(s.moving, fun, args)
        _, push = ft.jvp(free, xs, tuple([_direction(x) for x in xs]))
        return _product([_weight(o) for o in push], push)

    return run


def _linearize(s: Subject, fun: Fun) -> Fun:
    def run(*args: Any) -> Any:
        free, xs = _free(s.moving, fun, args)
        push = ft.linearize(free, *xs)[1](*[_direction(x) for x in xs])
        return _product([_weight(o) for o in push], push)

    return run


def _jet(s: Subject, fun: Fun) -> Fun:
    def run(*args: Any) -> Any:
        free, xs = _free(s.moving, fun, args)
        _, series = ft.jet(free, xs, tuple([[_direction(x)] for x in xs]))
        push = [terms[0] for terms in series]
        return _product([_weight(o) for o in push], push)

    return run


def _vjp(s: Subject, fun: Fun) -> Fun:
    def run(*args: Any) -> Any:
        free, xs = _free(s.moving, fun, args)
        outs, pull = ft.vjp(free, *xs)
        gs = pull(tuple([_weight(o) for o in outs]))
        return _product([_direction(x) for x in xs], gs)

    return run


def _grad(s: Subject, fun: Fun) -> Fun:
    def run(*args: Any) -> Any:
        free, xs = _free(s.moving, fun, args)

        def scalar(*xs: Any) -> Any:
            outs = free(*xs)
            return _product([_weight(o) for o in outs], outs)[0]

        gs = ft.grad(scalar, tuple(range(len(xs))))(*xs)
        return _product([_direction(x) for x in xs], gs)

    return run


def _vmap(s: Subject, fun: Fun) -> Fun:
    return lambda *args: ft.vmap(fun)(*[_variations(x) for x in args])


def _scan(s: Subject, fun: Fun) -> Fun:
    def run(*args: Any) -> Any:
        rows = tuple([_variations(x) for x in args])
        return ft.scan(lambda carry, row: (carry + 1, fun(*row)), 0, rows)[1]

    return run


def _jit(s: Subject, fun: Fun) -> Fun:
    return ft.jit(fun)


def _checkpoint(s: Subject, fun: Fun) -> Fun:
    return ft.checkpoint(fun)


def _cond(s: Subject, fun: Fun) -> Fun:
    def other(*args: Any) -> Any:
        return tuple([xp.zeros_like(o) for o in fun(*args)])

    return lambda *args: ft.cond(xp.any(args[0] == args[0]), fun, other, *args)


def _while_loop(s: Subject, fun: Fun) -> Fun:
    def run(*args: Any) -> Any:
        like = ft.eval_shape(fun, *[ShapeDtype(x.shape, x.dtype) for x in args])
        outs = tuple([xp.zeros(o.shape, dtype=o.dtype) for o in like])
        return ft.while_loop(
            lambda state: state[0] < 2,
            lambda state: (state[0] + 1, state[1], fun(*state[1])),
            (xp.asarray(0), args, outs),
        )[2]

    return run


def _custom_jvp(s: Subject, fun: Fun) -> Fun:
    custom = ft.custom_jvp(fun)
    custom.defjvp(lambda primals, tangents: ft.jvp(fun, primals, tangents))
    return custom


def _custom_vjp(s: Subject, fun: Fun) -> Fun:
    def backward(args: Any, cts: Any) -> Any:
        at = laws.varying(args)
        free, xs = _free(tuple(at), fun, args)
        outs, pull = ft.vjp(free, *xs)
        gs = dict(zip(at, pull(tuple([c for c in cts if c.dtype.kind in "fc"])), strict=True))
        assert len(outs) == len([c for c in cts if c.dtype.kind in "fc"])
        return tuple([gs.get(i) for i in range(len(args))])

    custom = ft.custom_vjp(fun)
    custom.defvjp(lambda *args: (fun(*args), args), backward)
    return custom


def _staged(carrier: Callable[[Subject, Fun], Fun]) -> Callable[[Subject, Fun], Fun]:
    """The same as one node, with its body captured."""
    return lambda s, fun: ft.jit(carrier(s, fun))


# What they mean, with neither levels nor graphs around the primitive but those of one jvp.


def _loop(s: Subject, fun: Fun) -> Fun:
    def run(*args: Any) -> Any:
        many = [_variations(x) for x in args]
        rows = [fun(*[x[k] for x in many]) for k in range(LANES)]
        return tuple([xp.stack(list(column)) for column in zip(*rows, strict=True)])

    return run


def _itself(s: Subject, fun: Fun) -> Fun:
    return fun


MEANINGS = {"value": _itself, "loop": _loop, "derivative": _jvp}
TRANSFORMS: dict[str, tuple[str, Callable[[Subject, Fun], Fun]]] = {
    "grad": ("derivative", _grad),
    "vjp": ("derivative", _vjp),
    "jvp": ("derivative", _jvp),
    "linearize": ("derivative", _linearize),
    "jet": ("derivative", _jet),
    "vmap": ("loop", _vmap),
    "scan": ("loop", _scan),
    "scan, staged": ("loop", _staged(_scan)),
    "jit": ("value", _jit),
    "checkpoint": ("value", _checkpoint),
    "cond": ("value", _cond),
    "cond, staged": ("value", _staged(_cond)),
    "while_loop": ("value", _while_loop),
    "while_loop, staged": ("value", _staged(_while_loop)),
    "custom_jvp": ("value", _custom_jvp),
    "custom_vjp": ("value", _custom_vjp),
}
PAIRS = list(product(TRANSFORMS, repeat=2))


class Cells:
    """The pairs of one primitive; expected values are computed when they are first asked for."""

    def __init__(self, prim: Primitive) -> None:
        self.subject = subject(prim)
        self._expected: dict[tuple[str, ...], Any] = {}

    def expected(self, words: tuple[str, ...]) -> Any:
        """What transforms with these meanings, the outer one first, must give."""
        words = tuple([w for w in words if w != "value"])
        if words not in self._expected:
            fun = self.subject.fun
            for word in reversed(words):
                fun = MEANINGS[word](self.subject, fun)
            self._expected[words] = fun(*self.subject.args)
        return self._expected[words]

    def applies(self, outer: str, inner: str) -> bool:
        """Whether the pair means something for this primitive."""
        s = self.subject
        return not s.reason or "derivative" not in (TRANSFORMS[outer][0], TRANSFORMS[inner][0])

    def check(self, outer: str, inner: str) -> None:
        """outer(inner(f)) is what it means, on the call that compiles and on the next."""
        s = self.subject
        (mean_a, a), (mean_b, b) = TRANSFORMS[outer], TRANSFORMS[inner]
        fun = a(s, b(s, s.fun))
        expected = self.expected((mean_a, mean_b))
        for _ in range(2 if "jit" in (outer, inner) else 1):
            laws.close(tuple(fun(*s.args)), tuple(expected), s.tol, s.tol)


@attrs.frozen
class Count:
    """What was found for one pair."""

    agree: int
    other: int  # primitives for which the pair means nothing
    failures: tuple[tuple[str, str], ...]  # primitive and what was found


def measure(prims: list[Primitive]) -> dict[tuple[str, str], Count]:
    """Every pair on every primitive."""
    agree: Counter[tuple[str, str]] = Counter()
    other: Counter[tuple[str, str]] = Counter()
    failures: dict[tuple[str, str], list[tuple[str, str]]] = {pair: [] for pair in PAIRS}
    for prim in prims:
        cells = Cells(prim)
        for pair in PAIRS:
            if not cells.applies(*pair):
                other[pair] += 1
                continue
            try:
                cells.check(*pair)
            except Exception as error:
                text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                failures[pair].append((prim.name, text))
            else:
                agree[pair] += 1
        sys.stderr.write(".")
        sys.stderr.flush()
    return {p: Count(agree[p], other[p], tuple(failures[p])) for p in PAIRS}


def main(names: list[str]) -> int:
    prims = [p for p in primitives() if not names or p.name in names]
    counts = measure(prims)
    for pair, count in counts.items():
        for name, text in count.failures:
            sys.stderr.write(f"\n{' of '.join(pair)}, {name}: {text}")
    return 1 if any(c.failures for c in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
