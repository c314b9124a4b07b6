"""Special values, from the standard's lists, eagerly and compiled: the same bits.

A line of a table is `operands -> result`; `±0?` is a zero, `inf?` an infinity of either sign, `~` a
value up to rounding, and pi stands for the nearest number.
"""

import math
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.transforms.tape import code

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

NAMES = {"inf": math.inf, "nan": math.nan, "pi": math.pi, "π/2": math.pi / 2, "π/4": math.pi / 4,
         "3π/4": 3 * math.pi / 4}  # fmt: skip

REAL = """
sqrt      0 -> 0          sqrt      -0 -> -0        sqrt      inf -> inf      sqrt      -1 -> nan
log       0 -> -inf       log       -0 -> -inf      log       inf -> inf      log       -1 -> nan
log1p     -1 -> -inf      log1p     -0 -> -0        log1p     inf -> inf      log1p     -2 -> nan
log2      1 -> 0          log10     1 -> 0          log2      -0 -> -inf      log10     -0 -> -inf
exp       -inf -> 0       exp       inf -> inf      exp       -0 -> 1         expm1     -0 -> -0
expm1     -inf -> -1      expm1     inf -> inf      sign      -0 -> 0         sign      nan -> nan
tanh      inf -> 1        tanh      -inf -> -1      tanh      -0 -> -0        sinh      -inf -> -inf
cosh      -inf -> inf     asinh     -inf -> -inf    asinh     -0 -> -0        acosh     1 -> 0
acosh     0 -> nan        atanh     1 -> inf        atanh     -1 -> -inf      atanh     -0 -> -0
asin      -0 -> -0        asin      2 -> nan        acos      1 -> 0          acos      2 -> nan
atan      inf -> π/2      atan      -inf -> -π/2    atan      -0 -> -0        sin       inf -> nan
cos       inf -> nan      tan       -inf -> nan     tan       -0 -> -0        cos       -0 -> 1
abs       -0 -> 0         abs       -inf -> inf     round     -0 -> -0        round     2.5 -> 2
round     3.5 -> 4        round     -0.5 -> -0      round     inf -> inf      trunc     -0.5 -> -0
ceil      -0.5 -> -0      floor     -0 -> -0        floor     -inf -> -inf    reciprocal -0 -> -inf
"""

REAL_2 = """
floor_divide  inf 2 -> inf       floor_divide  inf -2 -> -inf     floor_divide  -inf 2 -> -inf
floor_divide  -inf -2 -> inf     floor_divide  1 -inf -> -0       floor_divide  -1 inf -> -0
floor_divide  1 inf -> 0         floor_divide  -1 -inf -> 0       floor_divide  inf inf -> nan
floor_divide  0 0 -> nan         floor_divide  -0 3 -> -0         floor_divide  0 -3 -> -0
floor_divide  1 0 -> inf         floor_divide  1 -0 -> -inf       floor_divide  inf -0 -> -inf
floor_divide  nan inf -> nan     floor_divide  5 -2 -> -3         floor_divide  -7 2 -> -4
remainder     0 3 -> 0           remainder     -0 3 -> 0          remainder     0 -3 -> -0
remainder     -0 -3 -> -0        remainder     1 inf -> 1         remainder     1 -inf -> -inf
remainder     -1 inf -> inf      remainder     -1 -inf -> -1      remainder     inf 2 -> nan
remainder     1 0 -> nan         remainder     5 -3 -> -1         remainder     -5 3 -> 1
divide        1 -0 -> -inf       divide        -0 5 -> -0         divide        inf inf -> nan
pow           nan 0 -> 1         pow           1 nan -> 1         pow           -1 inf -> 1
pow           2 -inf -> 0        pow           0.5 -inf -> inf    pow           -inf 3 -> -inf
pow           -inf -3 -> -0      pow           -inf 2 -> inf      pow           -0 3 -> -0
pow           -0 -3 -> -inf      pow           -0 -2 -> inf       pow           -2 0.5 -> nan
hypot         inf nan -> inf     hypot         nan -inf -> inf    hypot         -3 4 -> 5
atan2         0 -0 -> pi         atan2         -0 -0 -> -pi       atan2         -0 0 -> -0
atan2         1 -inf -> pi       atan2         -1 inf -> -0       atan2         inf -inf -> 3π/4
copysign      nan -0 -> nan      copysign      3 -0 -> -3         nextafter     0 -0 -> -0
logaddexp     inf 1 -> inf       logaddexp     -inf -inf -> -inf  logaddexp     nan inf -> nan
maximum       nan 1 -> nan       minimum       1 nan -> nan       add           -0 0 -> 0
"""

COMPLEX = """
exp    0 0 -> 1 0            exp    -0 0 -> 1 0           exp    1 inf -> nan nan
exp    1 nan -> nan nan      exp    inf 0 -> inf 0        exp    -inf 2 -> -0 0
exp    inf 2 -> -inf inf     exp    -inf inf -> ±0? ±0?   exp    inf inf -> inf? nan
exp    -inf nan -> ±0? ±0?   exp    inf nan -> inf? nan   exp    nan 0 -> nan 0
exp    nan 1 -> nan nan      exp    nan nan -> nan nan
expm1  0 0 -> 0 0            expm1  1 inf -> nan nan      expm1  1 nan -> nan nan
expm1  inf 0 -> inf 0        expm1  -inf 2 -> -1 0        expm1  inf 2 -> -inf inf
expm1  -inf inf -> -1 ±0?    expm1  inf inf -> inf? nan   expm1  -inf nan -> -1 ±0?
expm1  -0 0 -> 0 0           expm1  -0 -0 -> 0 -0         expm1  inf nan -> inf? nan
expm1  nan 0 -> nan 0        expm1  nan 1 -> nan nan
log    -0 0 -> -inf pi       log    0 0 -> -inf 0         log    1 inf -> inf π/2
log    -inf 1 -> inf pi      log    inf 1 -> inf 0        log    -inf inf -> inf 3π/4
log    inf inf -> inf π/4    log    inf nan -> inf nan    log    nan inf -> inf nan
log    nan 1 -> nan nan
log1p  -1 0 -> -inf 0        log1p  1 inf -> inf π/2      log1p  -inf 1 -> inf pi
log1p  inf 1 -> inf 0        log1p  -inf inf -> inf 3π/4  log1p  inf inf -> inf π/4
log1p  -inf nan -> inf nan   log1p  nan inf -> inf nan    log1p  nan 1 -> nan nan
sqrt   -0 0 -> 0 0           sqrt   nan inf -> inf inf    sqrt   -inf 1 -> 0 inf
sqrt   inf 1 -> inf 0        sqrt   -inf nan -> nan inf?  sqrt   inf nan -> inf nan
sqrt   nan 1 -> nan nan      sqrt   1 nan -> nan nan
sinh   0 0 -> 0 0            sinh   0 inf -> ±0? nan      sinh   1 inf -> nan nan
sinh   inf 0 -> inf 0        sinh   inf 2 -> -inf inf     sinh   inf inf -> inf? nan
sinh   inf nan -> inf? nan   sinh   nan 0 -> nan 0        sinh   nan 1 -> nan nan
cosh   0 0 -> 1 0            cosh   0 inf -> nan ±0?      cosh   1 inf -> nan nan
cosh   inf 0 -> inf 0        cosh   inf 2 -> -inf inf     cosh   inf inf -> inf? nan
cosh   inf nan -> inf nan    cosh   nan 0 -> nan ±0?      cosh   nan 1 -> nan nan
tanh   0 0 -> 0 0            tanh   1 inf -> nan nan      tanh   0 inf -> 0 nan
tanh   1 nan -> nan nan      tanh   0 nan -> 0 nan        tanh   inf 1 -> 1 0
tanh   inf 2 -> 1 0          tanh   inf inf -> 1 ±0?      tanh   inf nan -> 1 ±0?
tanh   nan 0 -> nan 0        tanh   nan 1 -> nan nan
asinh  0 0 -> 0 0            asinh  1 inf -> inf π/2      asinh  1 nan -> nan nan
asinh  inf 1 -> inf 0        asinh  inf inf -> inf π/4    asinh  nan 0 -> nan 0
asinh  nan 1 -> nan nan      asinh  nan inf -> inf? nan
acosh  0 0 -> 0 π/2          acosh  1 inf -> inf π/2      acosh  -inf 1 -> inf pi
acosh  inf 1 -> inf 0        acosh  -inf inf -> inf 3π/4  acosh  inf inf -> inf π/4
acosh  inf nan -> inf nan    acosh  nan inf -> inf nan    acosh  nan 1 -> nan nan
atanh  0 0 -> 0 0            atanh  0 nan -> 0 nan        atanh  1 0 -> inf 0
atanh  1 inf -> 0 π/2        atanh  1 nan -> nan nan      atanh  inf 1 -> 0 π/2
atanh  inf inf -> 0 π/2      atanh  inf nan -> 0 nan      atanh  nan 1 -> nan nan
atanh  nan inf -> ±0? π/2
acos   0 0 -> π/2 -0         acos   0 nan -> π/2 nan      acos   1 inf -> π/2 -inf
acos   -inf 1 -> pi -inf     acos   inf 1 -> 0 -inf       acos   -inf inf -> 3π/4 -inf
acos   inf inf -> π/4 -inf   acos   inf nan -> nan inf?   acos   nan inf -> nan -inf
sign   0 0 -> 0 0            sign   -0 -0 -> 0 0          sign   nan 1 -> nan nan
sign   1 nan -> nan nan      sign   inf 1 -> 1 0
abs    inf nan -> inf        abs    nan -inf -> inf       abs    nan 1 -> nan
round  nan 2.5 -> nan 2      round  -0 -0.5 -> -0 -0      round  inf 1.5 -> inf 2
"""


def _rows(table: str) -> list[tuple[str, list[str], list[str]]]:
    words = table.split()
    rows: list[tuple[str, list[str], list[str]]] = []
    for w in words:
        if w[0].isalpha() and w not in NAMES and w != "inf?":
            rows.append((w, [], []))
            side = 1
        elif w == "->":
            side = 2
        else:
            rows[-1][side].append(w)  # type: ignore[union-attr]
    return rows


def _number(word: str) -> float:
    if word.startswith("-"):
        return -_number(word[1:])
    return NAMES[word] if word in NAMES else float(word)


def _agrees(got: float, word: str, kind: str) -> bool:
    if word == "±0?":
        return got == 0
    if word == "inf?":
        return math.isinf(got)
    expected = _number(word)
    if math.isnan(expected) or math.isnan(got):
        return math.isnan(expected) and math.isnan(got)
    if expected == 0 or math.isinf(expected):
        return got == expected and math.copysign(1, got) == math.copysign(1, expected)
    return math.isclose(got, expected, rel_tol=1e-6 if "32" in kind or "64" in kind else 1e-15)


def _check(name: str, args: list[Any], expected: list[str], kind: str) -> None:
    f = getattr(xp, name)
    for n in (0, 1, 9):  # 0-d, and both sides of a vector loop's remainder
        xs = [xp.asarray(np.full((n,) if n else (), a, kind)) for a in args]
        out = f(*xs)
        assert isinstance(out, xp.Array)
        bits = np.asarray(out)
        assert np.asarray(ft.jit(f)(*xs)).tobytes() == bits.tobytes()
        for v in bits.ravel():
            parts = [v.real, v.imag] if len(expected) == 2 else [v]
            assert all(map(_agrees, map(float, parts), expected, [kind] * 2)), (n, v)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("row", _rows(REAL) + _rows(REAL_2), ids=lambda r: " ".join([r[0], *r[1]]))
def test_real(row: Any, kind: str) -> None:
    """Real functions at the edges of their domains."""
    name, args, expected = row
    _check(name, [_number(a) for a in args], expected, kind)


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
@pytest.mark.parametrize("row", _rows(COMPLEX), ids=lambda r: " ".join([r[0], *r[1]]))
def test_complex(row: Any, kind: str) -> None:
    """Complex functions, and their mirror images: f(conj(z)) is conj(f(z))."""
    name, (a, b), expected = row
    re, im = _number(a), _number(b)
    _check(name, [complex(re, im)], expected, kind)
    if len(expected) == 2 and name != "sign":
        mirrored = [expected[0], expected[1] if "?" in expected[1] else _minus(expected[1])]
        _check(name, [complex(re, -im)], mirrored, kind)


def _minus(word: str) -> str:
    return word[1:] if word.startswith("-") else f"-{word}"


EDGES = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, -2.5, 7.25, math.inf, -math.inf, math.nan)


def _pow(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except ValueError:  # a pole, or no real number
        odd = y % 2 == 1
        return math.copysign(math.inf, x if odd else 1.0) if x == 0 else math.nan


def _signed(size: float, x: float, y: float) -> float:
    return math.copysign(size, math.copysign(1, x) * math.copysign(1, y))


def _floor_divide(x: float, y: float) -> float:
    none = math.isnan(x) or math.isnan(y) or x == y == 0 or (math.isinf(x) and math.isinf(y))
    if none:
        return math.nan
    if math.isinf(x) or y == 0:
        return _signed(math.inf, x, y)
    return _signed(0.0, x, y) if x == 0 or math.isinf(y) else float(math.floor(x / y))


def _remainder(x: float, y: float) -> float:
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return math.nan
    if math.isinf(y):
        alike = math.copysign(1, x) == math.copysign(1, y)
        return math.copysign(0.0, y) if x == 0 else x if alike else y
    return math.copysign(x - math.floor(x / y) * y, y)


def _logaddexp(x: float, y: float) -> float:
    if math.isnan(x) or math.isnan(y):
        return math.nan
    top = max(x, y)
    return top if math.isinf(top) else top + math.log1p(math.exp(-abs(x - y)))


MODELS = {
    "pow": _pow, "floor_divide": _floor_divide, "remainder": _remainder, "atan2": math.atan2,
    "hypot": math.hypot, "copysign": math.copysign, "logaddexp": _logaddexp,
}  # fmt: skip


def _each(f: Any, x: Any, y: Any, number: str) -> Any:
    """f of one pair at a time, where one of the two may be a Python number or a 0-d array."""
    out = []
    for a, b in zip(x, y, strict=True):
        left = float(a) if number == "left" else xp.asarray(a if number == "0-d" else [a] * 3)
        right = float(b) if number == "right" else xp.asarray([b] * 3 if number == "left" else b)
        out.append(np.asarray(f(left, right)).ravel()[0])
    return np.asarray(out)


def _taped(f: Any, x: Any, y: Any, hold: Any) -> Any:
    """Where a tape records each call."""
    out = []
    for a, b in zip(x, y, strict=True):
        run = ft.value_and_grad(lambda v, b=b: (0.0 * v[0], f(v, hold(b))), has_aux=True)
        out.append(np.asarray(run(xp.asarray([a] * 3))[0][1])[0])
    return np.asarray(out)


WAYS = {
    "arrays": lambda f, x, y: f(xp.asarray(x), xp.asarray(y)),
    "vmap": lambda f, x, y: ft.vmap(f)(xp.asarray(x), xp.asarray(y)),
    "machine code": lambda f, x, y: ft.jit(f, mode="reduce-overhead")(xp.asarray(x), xp.asarray(y)),
    "0-d": lambda f, x, y: _each(f, x, y, "0-d"),
    "one exponent": lambda f, x, y: _each(f, x, y, ""),
    "number on the left": lambda f, x, y: _each(f, x, y, "left"),
    "number on the right": lambda f, x, y: _each(f, x, y, "right"),
    "tape": lambda f, x, y: _taped(f, x, y, lambda b: xp.asarray([b] * 3)),
    "tape and 0-d": lambda f, x, y: _taped(f, x, y, xp.asarray),
    "tape and number": lambda f, x, y: _taped(f, x, y, float),
}


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_every_pair(name: str, way: str, kind: str, monkeypatch: Any) -> None:
    """Each pair of awkward numbers, whatever holds them: the value and its sign of 0."""
    monkeypatch.setattr(code, "_OFTEN", 0)
    monkeypatch.setattr(code, "_LOADED", 0)
    x, y = (v.ravel().astype(kind) for v in np.meshgrid(EDGES, EDGES))
    found = np.asarray(WAYS[way](getattr(xp, name), x, y))
    expected = np.asarray([*map(MODELS[name], x.tolist(), y.tolist())], kind)
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(expected[found == 0]))
    np.testing.assert_allclose(found, expected, 4e-7 if kind == "float32" else 1e-15)


def test_log1p_near_zero() -> None:
    """What the length of 1 + z loses to rounding is kept."""
    z = 3e-17 + 4e-9j  # |1 + z|**2 - 1 = 6e-17 + 16e-18
    out = complex(xp.log1p(xp.asarray(z)))
    assert math.isclose(out.real, 3.8e-17, rel_tol=1e-9)
    assert math.isclose(out.imag, 4e-9, rel_tol=1e-12)


def test_expm1_does_not_overflow_early() -> None:
    """exp(800) is infinite, exp(800) * sin(1e-300) is not."""
    out = complex(xp.expm1(xp.asarray(800 + 1e-300j)))
    assert out.real == math.inf
    assert 1e47 < out.imag < 1e48


@pytest.mark.parametrize("kind", ["int8", "int64", "uint8", "uint64"])
def test_rounding_keeps_integers(kind: str) -> None:
    """round, floor, ceil and trunc of integers are those integers, in their dtype."""
    x = xp.asarray(np.asarray([0, 1, 2, 100], kind))
    for f in (xp.round, xp.floor, xp.ceil, xp.trunc):
        for g in (f, ft.jit(f)):
            assert g(x).dtype == x.dtype
            assert bool(xp.all(g(x) == x))


def test_kernels_write_into_operands() -> None:
    """A compiled chain, which reuses buffers, gives the bits of the eager one."""
    edges = [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan]
    z = xp.asarray([complex(a, b) for a in edges for b in edges])
    x = xp.asarray([a for a in edges for _ in edges])
    y = xp.asarray([b for _ in edges for b in edges])

    def chain(z: Any) -> Any:
        return [f(z + 1) for f in (xp.tanh, xp.expm1, xp.log1p, xp.round)]

    def divided(x: Any, y: Any) -> Any:
        return [(x + 0) // (y + 0), (x + 0) // y, x // (y + 0), (x + 0) // 2.0, 2.0 // (x + 0)]

    for f, args in ((chain, (z,)), (divided, (x, y))):
        for eager, compiled in zip(f(*args), ft.jit(f)(*args), strict=True):
            assert np.asarray(eager).tobytes() == np.asarray(compiled).tobytes()
