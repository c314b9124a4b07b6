"""Functions beyond the standard are NumPy's or SciPy's, and compose with every transform.

One table: a call, what NumPy is asked, and how the operands are made. A call that is differentiable
has all laws, the others values, `jit` and lanes.
"""

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    LinAlgError,
    ShapeError,
    UnsupportedOperandError,
)
from funct.kernels.linalg import chains
from tests import laws
from tests.strategies import filled

RNG = np.random.default_rng
REAL = ("float64", "float32", "int64", "int8", "bool")
ANY = (*REAL, "complex128", "complex64")
FLOAT = ("float64", "float32")
DEFAULT = ("float64", "int64", "complex128")


@attrs.frozen
class Case:
    """A call.

    ours, theirs: the functions. shapes: of the operands. kinds: their dtypes. smooth: whether it
    has derivatives. shape_known: whether the result's shape follows from the operands' shapes.
    """

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...] = ((6,),)
    kinds: tuple[str, ...] = ANY
    smooth: bool = True
    shape_known: bool = True


def same(name: str, *args: Any, module: Any = xp, oracle: Any = np, **options: Any) -> Any:
    """Both functions of one name, with the same further arguments."""
    ours, theirs = getattr(module, name), getattr(oracle, name)
    return (
        lambda *xs: ours(*xs, *args, **options),
        lambda *xs: theirs(*xs, *args, **options),
    )


FFT: dict[str, Any] = {"module": xp.fft, "oracle": np.fft}
LINALG: dict[str, Any] = {"module": xp.linalg, "oracle": np.linalg}
SCIPY: dict[str, Any] = {"module": xp.linalg, "oracle": scipy.linalg}
SOLID = np.eye(3) * 4.0  # keeps matrices away from singular ones


def definite(a: Any) -> Any:
    """A positive definite matrix."""
    return a @ (a.mT.conj() if isinstance(a, np.ndarray) else xp.conj(a.mT)) + SOLID


PAIR = ((6,), (6,))
CASES: dict[str, Case] = {
    "isclose": Case(*same("isclose", 1.5, 0.5), PAIR, smooth=False),
    "allclose": Case(*same("allclose", 5.0), PAIR, smooth=False),
    "array_equal": Case(*same("array_equal"), PAIR, smooth=False),
    "nan_to_num": Case(*same("nan_to_num")),
    "union1d": Case(*same("union1d"), ((6,), (2, 3)), smooth=False, shape_known=False),
    "intersect1d": Case(*same("intersect1d"), ((6,), (5,)), smooth=False, shape_known=False),
    "setdiff1d": Case(*same("setdiff1d"), ((6,), (5,)), smooth=False, shape_known=False),
    "setxor1d": Case(*same("setxor1d"), ((6,), (5,)), smooth=False, shape_known=False),
    "split in parts": Case(*same("split", 3)),
    "split at indices": Case(*same("split", [4, 2, -1, 9], axis=1), ((2, 6),)),
    "rot90": Case(*same("rot90"), ((2, 3),)),
    "rot90 thrice": Case(*same("rot90", -1, (2, 0)), ((2, 1, 3),)),
    "rot90 twice": Case(*same("rot90", 2), ((2, 3),)),
    "angle": Case(*same("angle"), kinds=("complex128", "complex64", "float64")),
    "angle in degrees": Case(*same("angle", True), kinds=("complex128",)),
    "deg2rad": Case(*same("deg2rad"), kinds=FLOAT),
    "rad2deg": Case(*same("rad2deg"), kinds=FLOAT),
    "unwrap": Case(*same("unwrap", period=2.0), kinds=(*FLOAT, "int64")),
    "unwrap along 0": Case(*same("unwrap", 2.5, axis=0), ((4, 2),), FLOAT),
    "average": Case(*same("average")),
    "average with weights": Case(
        lambda x, w: xp.average(x, 1, xp.square(w) + 1.0),
        lambda x, w: np.average(x, 1, np.square(w) + 1.0), ((2, 3), (3,)),
        ("float64", "complex128"),
    ),
    "average over two axes": Case(
        lambda x, w: xp.average(x, (2, 0), xp.square(w) + 1.0),
        lambda x, w: np.average(x, (2, 0), np.square(w) + 1.0), ((2, 3, 4), (4, 2)), ("float64",),
    ),
    "average over negative axes": Case(
        lambda x, w: xp.average(x, (-1, 1), xp.square(w) + 1.0, keepdims=True),
        lambda x, w: np.average(x, (-1, 1), np.square(w) + 1.0, keepdims=True),
        ((2, 3, 4), (4, 3)), ("float64",),
    ),
    "average of all": Case(
        lambda x, w: xp.average(x, weights=xp.square(w) + 1.0),
        lambda x, w: np.average(x, weights=np.square(w) + 1.0), ((2, 3), (2, 3)), ("float64",),
    ),
    "percentile": Case(*same("percentile", 30.0), kinds=(*FLOAT, "int64")),
    "percentiles": Case(*same("percentile", [0, 75.0], axis=0), ((4, 2),), ("float64", "int64")),
    "nanpercentile": Case(*same("nanpercentile", (10, 20)), kinds=("float64",)),
    "correlate": Case(*same("correlate"), ((6,), (4,)), ("float64", "int64", "complex128")),
    "correlate the shorter": Case(*same("correlate", "same"), ((3,), (6,)), ("complex128",)),
    "vander": Case(*same("vander"), ((4,),), ("float64", "int64", "int8", "complex128")),
    "vander upwards": Case(*same("vander", 3, True), ((4,),), ("float64", "bool")),
    "vander of no columns": Case(*same("vander", 0), ((4,),), ("float64",), smooth=False),
    "polyval": Case(*same("polyval"), ((3,), (2, 4)), ("float64", "int64", "complex128")),
    "polyder": Case(*same("polyder", 2), kinds=("float64", "int64", "complex128")),
    "polyder of a constant": Case(*same("polyder"), ((1,),), ("float64",)),
    "polyint": Case(*same("polyint", 2, [1.0, 2.0]), kinds=("float64", "int64", "complex128")),
    "polyfit": Case(*same("polyfit", 2), PAIR, ("float64",)),
    "polyfit with weights": Case(
        lambda x, y, w: xp.polyfit(x, y, 1, w=xp.square(w) + 0.5),
        lambda x, y, w: np.polyfit(x, y, 1, w=np.square(w) + 0.5), ((6,), (6, 2), (6,)),
        ("float64",),
    ),
    "argwhere": Case(*same("argwhere"), ((2, 3),), smooth=False, shape_known=False),
    "flatnonzero": Case(*same("flatnonzero"), ((2, 3),), smooth=False, shape_known=False),
    "lexsort": Case(
        lambda x, y: xp.lexsort([x, y]), lambda x, y: np.lexsort([x, y]), PAIR, REAL, smooth=False
    ),
    "lexsort along 0": Case(
        lambda x, y: xp.lexsort([x, y, x], axis=0), lambda x, y: np.lexsort([x, y, x], axis=0),
        ((4, 2), (4, 2)), ("int64",), smooth=False,
    ),
    "fmax": Case(*same("fmax"), PAIR, REAL),
    "fmin": Case(*same("fmin"), PAIR, REAL),
    "heaviside": Case(*same("heaviside"), PAIR, ("float64", "float32", "int64")),
    "fft2": Case(*same("fft2", **FFT), ((2, 3, 4),), ("complex128",)),
    "ifft2": Case(*same("ifft2", **FFT), ((2, 3, 4),), ("complex128",)),
    "rfft2": Case(*same("rfft2", **FFT), ((2, 3, 4),), ("float64",)),
    "irfft2": Case(*same("irfft2", **FFT), ((2, 3, 4),), ("float64",)),
    "norm": Case(*same("norm", **LINALG), ((2, 3),), ("float64", "complex128")),
    "norm of vectors": Case(
        *same("norm", 3, 0, True, **LINALG), ((2, 3),), ("float64",)
    ),
    "norm of matrices": Case(
        *same("norm", 1, (2, 0), True, **LINALG), ((2, 3, 4),), ("float64",)
    ),
    "nuclear norm": Case(
        *same("norm", "nuc", **LINALG), ((2, 3),), ("float64",)
    ),
    "cond": Case(*same("cond", **LINALG), ((2, 3),), ("float64",)),
    "cond by rows": Case(
        lambda x: xp.linalg.cond(x + SOLID, xp.inf),
        lambda x: np.linalg.cond(x + SOLID, np.inf), ((3, 3),), ("float64", "complex128"),
    ),
    "cond the other way": Case(
        *same("cond", -2, **LINALG), ((2, 3),), ("float64",)
    ),
    "multi_dot": Case(
        lambda *xs: xp.linalg.multi_dot(xs), lambda *xs: np.linalg.multi_dot(xs),
        ((2,), (2, 3), (3, 4), (4, 1)), ("float64", "complex128", "int64"),
    ),
    "multi_dot of two": Case(
        lambda *xs: xp.linalg.multi_dot(xs), lambda *xs: np.linalg.multi_dot(xs),
        ((2, 3), (3,)), ("float64",),
    ),
    "block_diag": Case(
        *same("block_diag", **SCIPY), ((2, 3), (2,), ()), ANY
    ),
    "toeplitz": Case(
        *same("toeplitz", **SCIPY), ((3,), (4,)), ANY
    ),
    "toeplitz of one": Case(*same("toeplitz", **SCIPY), ((3,),), ANY),
    "cho_solve": Case(
        lambda a, b: xp.linalg.cho_solve(xp.linalg.cho_factor(definite(a)), b),
        lambda a, b: np.linalg.solve(definite(a), b), ((3, 3), (3,)), ("float64", "complex128"),
    ),
    "cho_solve, lower": Case(
        lambda a, b: xp.linalg.cho_solve(xp.linalg.cho_factor(definite(a), True), b),
        lambda a, b: np.linalg.solve(definite(a), b), ((3, 3), (3, 2)), ("float64", "complex128"),
    ),
}  # fmt: skip


def parts(out: Any) -> list[Any]:
    """The arrays of a result."""
    return list(out) if isinstance(out, tuple | list) else [out]


def tolerance(kind: str) -> float:
    """Some rounding errors of a dtype."""
    return 3e-5 if kind in ("float32", "complex64") else 1e-9


@pytest.mark.parametrize(("name", "kind"), [(n, k) for n, c in CASES.items() for k in c.kinds])
def test_values(name: str, kind: str) -> None:
    """The oracle's values, eagerly and compiled. So are the dtypes, for the default ones; of others
    NumPy makes float16, or float64.
    """
    case = CASES[name]
    compiled, near = ft.jit(case.ours), tolerance(kind)
    for seed in range(8):
        raw = [filled(shape, kind, seed + i) for i, shape in enumerate(case.shapes)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = [np.asarray(b) for b in parts(case.theirs(*raw))]
        for fun in (case.ours, compiled) if seed < 2 else (case.ours,):
            got = parts(fun(*[xp.asarray(x) for x in raw]))
            for a, b in zip(got, want, strict=True):
                laws.close(a, b.astype(a.dtype), near, near)
                assert a.dtype == b.dtype or kind not in DEFAULT


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.shape_known])
def test_transforms(name: str) -> None:
    """Derivatives are those of differences, and lanes those of a loop."""
    case = CASES[name]
    kind = "complex128" if case.kinds[0] == "complex128" else "float64"
    args = [xp.asarray(RNG(i).normal(size=s).astype(kind)) for i, s in enumerate(case.shapes)]
    if kind == "complex128":
        args = [x + 1j * xp.flip(x) for x in args]
    fun = lambda *xs: tuple(parts(case.ours(*xs)))  # noqa: E731
    laws.check_batch(fun, args, RNG(0), 1e-7)
    if case.smooth:
        laws.check_derivatives(fun, args, RNG(0), order=1)


EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 1.0 + 1e-9, -2.5]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("isclose", {}), ("isclose", {"equal_nan": True}), ("isclose", {"atol": np.inf}),
        ("array_equal", {"equal_nan": True}), ("fmax", {}), ("fmin", {}), ("heaviside", {}),
    ],
)  # fmt: skip
def test_pairs_of_special_values(name: str, options: dict[str, Any]) -> None:
    """Infinities, NaN and zeros of both signs, each beside each."""
    x, y = (v.ravel() for v in np.meshgrid(EDGES, EDGES))
    fun = getattr(xp, name)
    with np.errstate(invalid="ignore"):
        want = np.asarray(getattr(np, name)(x, y, **options))
        laws.same(fun(xp.asarray(x), xp.asarray(y), **options), want)


def test_nan_to_num_of_special_values() -> None:
    """Each part of a complex number on its own; numbers given in place of the limits."""
    x, y = (v.ravel() for v in np.meshgrid(EDGES, EDGES))
    z = x.astype(complex)
    z.imag = y
    for options in ({}, {"nan": 3.0, "posinf": 9.0, "neginf": -9.0}):
        for v in (x, x.astype(np.float32), z):
            laws.same(xp.nan_to_num(xp.asarray(v), **options), np.nan_to_num(v, **options))
    assert ft.grad(lambda v: xp.sum(xp.nan_to_num(v)))(xp.asarray([np.nan, 2.0])).tolist() == [0, 1]


@pytest.mark.parametrize("num", [0, 1, 2, 5])
@pytest.mark.parametrize("endpoint", [True, False])
def test_spacing(num: int, endpoint: bool) -> None:
    """logspace and geomspace are NumPy's; the ends of geomspace are the ends given."""
    for start, stop in ((0, 3), (2.0, -1.5)):
        for options in ({}, {"base": 2.0}):
            got = xp.logspace(start, stop, num, endpoint=endpoint, **options)
            laws.close(got, np.logspace(start, stop, num, endpoint, **options), 1e-13)
    for start, stop in ((1, 1000), (-3.0, -0.7), (5, 5)):
        got = xp.geomspace(start, stop, num, endpoint=endpoint)
        laws.close(got, np.geomspace(start, stop, num, endpoint), 1e-13)
        assert got[:1].tolist() == [start][:num]
        assert not endpoint or got[1:][-1:].tolist() == [stop] * (num > 1)
    ends = [xp.asarray(2.0), xp.asarray(7.0)]
    laws.check_derivatives(lambda a, b: xp.geomspace(a, b, num, endpoint=endpoint), ends, RNG(0))


@given(
    st.integers(0, 99), st.sampled_from([0, 1, 4]), st.booleans(), st.sampled_from([0, 1, -1]),
    st.sampled_from([((3,), ()), ((), (3,)), ((2, 1), (3,)), ((0,), (1,)), ((3,), (3,))]),
)  # fmt: skip
def test_spacing_between_arrays(
    seed: int, num: int, endpoint: bool, axis: int, shapes: tuple[tuple[int, ...], ...]
) -> None:
    """Ends that are arrays broadcast, in every dtype and under transforms; they are hit exactly."""
    rng = RNG(seed)
    sign = rng.choice([-1.0, 1.0])
    for dtype in ("float64", "float32", "int32"):
        a, b = ((sign * rng.integers(1, 9, s)).astype(dtype) for s in shapes)
        for ours, theirs in ((xp.linspace, np.linspace), (xp.logspace, np.logspace),
                             (xp.geomspace, np.geomspace)):  # fmt: skip

            def call(u: Any, v: Any, ours: Any = ours) -> Any:
                return ours(u, v, num, endpoint=endpoint, axis=axis)

            wide = a.astype(float), b.astype(float)
            expected = theirs(*wide, num, endpoint=endpoint, axis=axis)  # type: ignore[operator]
            got = call(xp.asarray(a), xp.asarray(b))
            expected = expected.astype(theirs(a, b, num, axis=axis).dtype)  # type: ignore[operator]
            tolerance = 1e-5 if dtype == "float32" else 1e-12
            laws.close(got, expected, tolerance)
            laws.close(ft.jit(call)(xp.asarray(a), xp.asarray(b)), expected, tolerance)
            if dtype == "float64":
                laws.check_derivatives(call, [xp.asarray(a), xp.asarray(b)], rng)
            if num > 1 and endpoint and ours is not xp.logspace:
                ends = np.take(np.asarray(got), [0, -1], axis)
                laws.same(ends, np.take(expected, [0, -1], axis))
    low, high = xp.asarray([-1.5, 0.25]), xp.asarray([2.5, -3.75])
    floors = np.linspace([-1.5, 0.25], [2.5, -3.75], 5, dtype="int64")
    laws.same(xp.linspace(low, high, 5, dtype=xp.int64), floors)
    tiny = xp.asarray([1e-200])  # the product of ends is 0
    laws.close(xp.geomspace(tiny, 4.0 * tiny, 3), np.geomspace([1e-200], [4e-200], 3), 1e-12)


NUMBERS = [
    2, 1.5, True, np.int8(2), np.float16(1.5), np.float32(1.5), np.float64(1.5), np.bool_(True),
]  # fmt: skip


@pytest.mark.parametrize("name", ["linspace", "logspace"])
@pytest.mark.parametrize("stop", NUMBERS, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("start", NUMBERS, ids=lambda v: type(v).__name__)
def test_spacing_between_numbers(name: str, start: Any, stop: Any) -> None:
    """NumPy's numbers count as they do there; a program has the dtype that eager calls have."""
    ours, theirs = getattr(xp, name), getattr(np, name)
    expected = theirs(start, stop, 4)
    ways: list[Callable[[], Any]] = [
        lambda: ours(start, stop, 4),
        lambda: ft.jit(lambda a, b: ours(a, b, 4))(start, stop),
        ft.jit(lambda: ours(start, stop, 4)),
        lambda: ft.vmap(lambda a: ours(a, stop, 4))(xp.asarray([start]))[0],
    ]
    if isinstance(start, np.generic):
        ways.append(lambda: ours(xp.asarray(start), stop, 4))
    for way in ways:
        if way is ways[3] and not isinstance(start, np.generic):
            continue  # an array is no number of Python's
        found = way()
        assert found.dtype == expected.dtype
        laws.close(found, expected, 4 * np.finfo(expected.dtype).eps)


@given(st.integers(0, 99))
def test_places(seed: int) -> None:
    """ravel_multi_index and unravel_index are NumPy's, and each undoes the other."""
    shape = tuple(RNG(seed).integers(1, 6, 3).tolist())
    flat = RNG(seed).integers(0, np.prod(shape), (2, 3)).astype(np.int8)
    at = xp.unravel_index(xp.asarray(flat), shape)
    for a, b in zip(at, np.unravel_index(flat, shape), strict=True):
        laws.same(a, np.asarray(b, np.int64))
    laws.same(xp.ravel_multi_index(at, shape), flat.astype(np.int64))
    wide = (100, 100)  # a product that int8 cannot hold
    last = [xp.asarray(v, dtype=xp.int8) for v in (99, 98)]
    assert xp.ravel_multi_index(last, wide).tolist() == 9998


def test_what_is_asked_of_values() -> None:
    """Singular matrices, indices in an array, and operands of two dtypes."""
    assert xp.linalg.cond(xp.zeros((2, 2, 2))).tolist() == [np.inf, np.inf]
    assert xp.linalg.cond(xp.ones((2, 2)), -2).item() == pytest.approx(0.0, abs=1e-15)
    parts = xp.split(xp.arange(6), xp.asarray([2, 3]))
    assert [p.tolist() for p in parts] == [[0, 1], [2], [3, 4, 5]]
    assert xp.setdiff1d(xp.asarray([1, 2], dtype=xp.int8), xp.asarray([2.0])).dtype == xp.int8
    assert xp.polyval([1.0, 2.0], 3.0).item() == 5.0
    v = xp.asarray([1.0, 2.0])
    assert xp.linalg.multi_dot([v, xp.eye(2), v]).item() == 5.0


def test_a_chain_may_be_longer_than_calls_are_deep() -> None:
    """A product of many matrices, in the order that costs least."""
    limit = sys.getrecursionlimit()
    chain = [np.eye(2)[:: 1 - 2 * (k % 2)] for k in range(300)]
    sys.setrecursionlimit(len(inspect.stack(0)) + 150)
    try:
        laws.same(xp.linalg.multi_dot([xp.asarray(x) for x in chain]), np.eye(2))
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("sizes", [(3, 3, 3, 3), (3, 3, 3, 1), (5, 3, 3, 2)])
def test_chains_of_squares_go_from_the_last_on(sizes: tuple[int, ...]) -> None:
    """Nothing costs less; a vector before them makes them go from the first on."""
    assert chains._steps(sizes) == (0, 1, 2, -1, -1)
    assert chains._steps((1, *sizes[1:-1], 3)) == (0, 1, -1, 2, -1)


def test_unequal_shapes_are_not_equal() -> None:
    """Neither broadcasting nor an error."""
    assert not bool(xp.array_equal(xp.zeros(3), xp.zeros((1, 3))))


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: xp.split(xp.zeros(5), 2), ShapeError, "split: 2 equal parts do not make up axis 0"),
    (lambda: xp.rot90(xp.zeros((2, 2)), axes=(0,)), ArgumentError, "rot90: axes must be two"),
    (lambda: xp.unwrap(xp.zeros(2) * 1j), DTypeError, "unwrap: x must be real"),
    (lambda: xp.average(xp.zeros((2, 3)), weights=xp.ones(2)), ShapeError, "average: weights must"),
    (lambda: xp.vander(xp.zeros((2, 2))), ShapeError, "vander: x must have rank 1"),
    (lambda: xp.polyder(xp.zeros(2), -1), ArgumentError, "polyder: order must not be negative"),
    (lambda: xp.polyfit(xp.zeros(2), xp.zeros(3), 1), ShapeError, "polyfit: y must have a row"),
    (lambda: xp.geomspace(-1.0, xp.ones(2)), ArgumentError, "geomspace: start and stop must"),
    (lambda: xp.geomspace(1j, 2.0), UnsupportedOperandError, "geomspace: start must be real"),
    (lambda: xp.geomspace(xp.ones(2), xp.ones(3)), ShapeError, "shapes"),
    (lambda: xp.linspace(xp.ones(2), 3.0, 4, axis=2), AxisError, "linspace: axis 2 is out of"),
    (lambda: xp.geomspace(-1.0, 1.0), ArgumentError, "geomspace: start and stop must"),
    (lambda: xp.unravel_index(xp.asarray(1.0), (2,)), DTypeError, "unravel_index: indices must be"),
    (lambda: xp.ravel_multi_index([xp.asarray(1)], (2, 2)), ShapeError, "ravel_multi_index: one"),
    (lambda: xp.linalg.norm(xp.zeros((2, 2, 2)), 1), ArgumentError, "norm: axis must name one"),
    (lambda: xp.linalg.cond(xp.zeros((2, 2)), 1), LinAlgError, "singular"),
    (lambda: xp.linalg.multi_dot([xp.zeros((2, 2))]), ShapeError, "multi_dot: arrays must be two"),
    (lambda: xp.linalg.block_diag(xp.zeros((1, 1, 1))), ShapeError, "block_diag: arrays must have"),
    (lambda: xp.lexsort([xp.zeros(2), xp.zeros(3)]), ShapeError, "lexsort: keys must be arrays of"),
    (lambda: xp.lexsort([]), ShapeError, "lexsort: keys must be arrays of one shape"),
    (lambda: xp.argwhere(xp.asarray(1)), ShapeError, "argwhere: x must have an axis"),
    (lambda: xp.heaviside(1j, xp.asarray(1.0)), DTypeError, "heaviside: x1 and x2 must be real"),
    (lambda: xp.percentile(xp.zeros(2), 101), ArgumentError, "percentile: q must lie between"),
    (lambda: xp.linalg.cond(xp.zeros((0, 2))), ShapeError, "cond: matrices must not be empty"),
    (lambda: xp.linalg.toeplitz(xp.zeros((2, 2))), ShapeError, "toeplitz: c and r must have"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSED, ids=[t for _, _, t in REFUSED])
def test_refused(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    """What does not fit is an error that names the function."""
    with pytest.raises(error, match=text):
        call()


X2 = np.asarray([[0.3, -1.2, 2.0], [0.7, 0.1, -0.4]])
BY_POSITION: dict[str, tuple[Any, ...]] = {
    "all": (X2, 0), "any": (X2, 1), "argmax": (X2, 0), "argmin": (X2, 1), "argsort": (X2, 0),
    "concat": ([X2, X2], 1), "count_nonzero": (X2, 0), "empty_like": (X2, "float32"),
    "eye": (2, 3, 1), "fft.fft": (X2, 2, 0), "fft.irfftn": (X2, (2, 2), (0, 1)),
    "fft.fftshift": (X2, 0), "flip": (X2, 1), "full": (2, 3.0, "float32"),
    "full_like": (X2, 1.0, "float32"), "max": (X2, 0), "mean": (X2, 0), "min": (X2, 0),
    "nansum": (X2, 0, "float64"), "ones": (2, "int32"), "prod": (X2, 0, "float64"),
    "repeat": (X2, 2, 0), "roll": (X2, 1, 0), "searchsorted": (np.sort(X2[0]), X2[1], "right"),
    "sort": (X2, 0), "stack": ([X2, X2], 1), "std": (X2, 0), "sum": (X2, 0, "float64"),
    "take": (X2, np.asarray([1, 0]), 1), "tensordot": (X2, X2.T, 1), "tril": (X2, -1),
    "triu": (X2, 1), "var": (X2, 1), "zeros": ((2, 2), "float32"), "zeros_like": (X2, "int64"),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_POSITION)
def test_arguments_by_position_are_numpys(name: str) -> None:
    """The standard names axes and dtypes; who comes from NumPy or JAX puts them in their places."""
    args = BY_POSITION[name]
    ours, numpys = (functools.reduce(getattr, name.split("."), package) for package in (xp, np))
    mine = [
        [xp.asarray(x) for x in a] if isinstance(a, list)
        else xp.asarray(a) if isinstance(a, np.ndarray) else a
        for a in args
    ]  # fmt: skip
    found, expected = ours(*mine), numpys(*args)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if name != "empty_like":
        np.testing.assert_allclose(np.asarray(found), expected)
