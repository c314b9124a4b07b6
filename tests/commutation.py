"""The commutation matrix: every transform around every transform around every primitive.

A transform is here a function from f to another function of the same operands. What A(B(f)) must
give is what A and B mean, without them: nothing (`jit`), a Python loop over variations of the
operands (`vmap`), a derivative along one direction (`grad`). So there are seven expected values for
one primitive, each computed once, op by op; tests/ops/test_catalogue.py compares the derivatives
among them with differences.

`python -m tests.commutation` checks every pair on every primitive and writes docs/COMMUTATION.md;
with the names of primitives it checks these.
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
# collectives have no samples: they make sense inside a vmap with a name alone
PRIMITIVES = sorted(
    (p for p in catalogue() if p.samples(np.random.default_rng(7))), key=lambda p: p.name
)


@attrs.frozen
class Subject:
    """One primitive at one sample.

    moving: the operands that derivatives are taken in. reason: why there are no derivatives, or "";
    where operands move all the same, the derivative is absent and asking for it must raise.
    """

    name: str
    fun: Fun
    args: tuple[Any, ...]
    moving: tuple[int, ...]
    reason: str
    tol: float


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

    outs = fun(*args)
    at = laws.varying(args)
    absent = {i: r.reason for i in at if isinstance(r := prim.rules[i], Absent)}
    moving = tuple([i for i in at if i not in absent])
    reason = ""
    if not at:
        reason = "no operand is floating or complex"
    elif not any(o.dtype.kind in "fc" for o in outs):
        reason, moving = "no result is floating or complex", ()
    elif not moving:
        reason, moving = " and ".join(sorted(set(absent.values()))), tuple(at)
    exact = all(x.dtype.kind not in "fc" or x.dtype.itemsize >= 8 for x in (*args, *outs))
    return Subject(prim.name, fun, args, moving, reason, 1e-8 if exact else 1e-3)


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
    def rule(primals: Any, tangents: Any) -> Any:
        def moved(*xs: Any) -> Any:
            full = dict(enumerate(primals)) | dict(zip(s.moving, xs, strict=True))
            return fun(*full.values())

        at = [[x[i] for i in s.moving] for x in (primals, tangents)]
        return ft.jvp(moved, *map(tuple, at))

    custom = ft.custom_jvp(fun)
    custom.defjvp(rule)
    return custom


def _custom_vjp(s: Subject, fun: Fun) -> Fun:
    def forward(*args: Any) -> Any:
        outs = fun(*args)
        return outs, (args, outs)

    def backward(kept: Any, cts: Any) -> Any:
        args, outs = kept
        free, xs = _free(s.moving, fun, args)
        pairs = zip(outs, cts, strict=True)
        gs = ft.vjp(free, *xs)[1](tuple([ct for o, ct in pairs if o.dtype.kind in "fc"]))
        found = dict(zip(s.moving, gs, strict=True))
        return tuple([found.get(i) for i in range(len(args))])

    custom = ft.custom_vjp(fun)
    custom.defvjp(forward, backward)
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

    def expected(self, *words: str) -> Any:
        """What transforms with these meanings, the outer one first, must give."""
        words = tuple([w for w in words if w != "value"])
        if words not in self._expected:
            fun = self.subject.fun
            for word in reversed(words):
                fun = MEANINGS[word](self.subject, fun)
            self._expected[words] = fun(*self.subject.args)
        return self._expected[words]

    def check(self, outer: str, inner: str, calls: int = 2) -> bool:
        """Whether the pair applies; then outer(inner(f)) is what it means, also when called again.

        Where it does not, because a derivative is absent, asking for it raises, with the reason.
        """
        s = self.subject
        (mean_a, a), (mean_b, b) = TRANSFORMS[outer], TRANSFORMS[inner]
        fun = a(s, b(s, s.fun))
        if s.reason and "derivative" in (mean_a, mean_b):
            assert not s.moving or s.reason in _refusal(fun, s.args)
            return False
        expected = tuple(self.expected(mean_a, mean_b))
        for _ in range(calls):
            laws.close(tuple(fun(*s.args)), expected, s.tol, s.tol)
        return True


def _refusal(fun: Fun, args: Any) -> str:
    try:
        fun(*args)
    except UndefinedDerivativeError as error:
        return error.what
    return ""


def rotation(k: int) -> list[tuple[str, str]]:
    """The pairs that the k-th primitive is checked on in short: four that follow each other have
    every transform outside, each of them every fourth; after four times as many primitives as there
    are transforms every pair was met.
    """
    names = list(TRANSFORMS)
    return [(names[i], names[(k // 4 - i) % len(names)]) for i in range(k % 4, len(names), 4)]


# The page.


@attrs.frozen
class Count:
    """Of one pair: how many primitives it was checked on, and where it failed: name and error."""

    checked: int
    failures: tuple[tuple[str, str], ...]


def measure(prims: list[Primitive]) -> tuple[dict[tuple[str, str], Count], dict[str, list[str]]]:
    """Every pair on every primitive, and which primitives have no derivatives for which reason."""
    checked: Counter[tuple[str, str]] = Counter()
    failures: dict[tuple[str, str], list[tuple[str, str]]] = {pair: [] for pair in PAIRS}
    reasons: dict[str, list[str]] = {}
    for prim in prims:
        cells = Cells(prim)
        if cells.subject.reason:
            reasons.setdefault(cells.subject.reason, []).append(prim.name)
        for pair in PAIRS:
            try:
                checked[pair] += cells.check(*pair)
            except Exception as error:
                checked[pair] += 1
                text = " ".join(str(error).split())[:300]
                failures[pair].append((prim.name, f"{type(error).__name__}: {text}"))
    return {p: Count(checked[p], tuple(failures[p])) for p in PAIRS}, reasons


def page(
    count: int, counts: dict[tuple[str, str], Count], reasons: dict[str, list[str]]
) -> Iterator[str]:
    """The lines of docs/COMMUTATION.md."""
    yield "# Commutation\n"
    yield f"Every transform around every transform around each of {count} primitives: all that have"
    yield "samples. Written by `make commutation`; `tests/commutation.py` says what a row means.\n"
    yield "Row A, column B: on how many primitives A(B(f)) is what A and B mean, of how many it was"
    yield "checked on. `jit`, `checkpoint`, a branch taken, a loop that stores f's result and a"
    yield "function with its own rules mean f; `vmap` and `scan` mean a Python loop; `grad`, `vjp`,"
    yield "`jvp`, `linearize` and `jet` mean one directional derivative. *Staged*: as one node of a"
    yield "graph.\n"
    names = list(TRANSFORMS)
    yield f"| A \\ B | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for outer in names:
        cells = [counts[outer, inner] for inner in names]
        text = " | ".join(f"{c.checked - len(c.failures)}/{c.checked}" for c in cells)
        yield f"| **{outer}** | {text} |"
    failed = [(p, *f) for p, c in counts.items() for f in c.failures]
    if failed:
        yield "\n## What fails\n"
        yield from (f"- {a} of {b}, `{name}`: {text}" for (a, b), name, text in failed)
    yield "\n## What does not apply\n"
    yield "Pairs with a derivative do not apply to these primitives; where it is a rule that is"
    yield "absent, it was checked that asking for it raises an error with this reason.\n"
    for reason, prims in sorted(reasons.items()):
        yield f"- {reason}: {', '.join(f'`{p}`' for p in prims)}"


def published() -> tuple[int, dict[tuple[str, str], tuple[int, int]]]:
    """What the page says: the number of primitives; of each pair, how many agree and how many were
    checked.
    """
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    count = next(int(w) for line in lines for w in line.split() if w.isdecimal())
    rows = [[c.strip(" *") for c in line.split("|")[1:-1]] for line in lines if line[:1] == "|"]
    names = rows[0][1:]
    cells = {}
    for outer, *texts in rows[2:]:
        for inner, text in zip(names, texts, strict=True):
            agree, checked = text.split("/")
            cells[outer, inner] = int(agree), int(checked)
    return count, cells


def main(names: list[str]) -> int:
    """Check, report what disagrees, and write the page where everything was checked."""
    prims = [p for p in PRIMITIVES if not names or p.name in names]
    counts, reasons = measure(prims)
    failed = [f"{a} of {b}, {n}: {t}" for (a, b), c in counts.items() for n, t in c.failures]
    sys.stdout.write("".join(f"{line}\n" for line in failed))
    sys.stdout.write(f"{len(prims)} primitives, {len(PAIRS)} pairs, {len(failed)} disagree\n")
    if not names:
        PAGE.write_text("\n".join(page(len(prims), counts, reasons)) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
