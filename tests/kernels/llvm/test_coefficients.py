"""Every polynomial errs by less than half an ulp of its dtype; tables hold what they say."""

import importlib

import numpy as np
import pytest

from funct.kernels.llvm import base_cells, cells
from funct.kernels.llvm.gamma_zeros import GAMMA_ZEROS
from funct.kernels.llvm.inverse_cells import ERFINV_CELLS
from funct.kernels.llvm.tail_cells import ERFC_CELLS

mpmath = pytest.importorskip("mpmath")

from .fit import FAMILIES, FITS, horner  # noqa: E402  (needs mpmath)
from .fit_cells import (  # noqa: E402
    CURVES,
    INVERSE,
    TAILS,
    base_edges,
    curve_cell,
    edges,
    inverse,
    inverse_cell,
    log_cells,
    logs_of_cells,
    middle,
    octave_cells,
    sixteenths,
    tail,
    tail_cell,
    tangents,
    waves,
)
from .fit_zeros import ROWS, TERMS, centre, log_gamma, pole, smooth  # noqa: E402

MOST = {"f32": 2.0**-25.4, "f64": 2.0**-54.4}
# terms, for approximations: so much more error
FEWER = {"ERF_WHOLE": 5, "EXP2_ABOVE": 4, "EXP_FAST": 8}
LOOSER = {"CBRT": 2.0**-17, "ATANH_SHORT": 2.0**-36, "EXP_SHORT": 2.0**-31}


def held(family):
    """The file of a family."""
    return importlib.import_module(f"funct.kernels.llvm.coefficients.{family}")


def test_each_polynomial_is_in_one_file():
    for family, (_, names) in FAMILIES.items():
        assert held(family).__all__ == sorted(names)
    assert sorted(name for _, names in FAMILIES.values() for name in names) == sorted(FITS)


@pytest.mark.parametrize(
    ("family", "name"),
    [(family, name) for family, (_, names) in FAMILIES.items() for name in names],
)
def test_polynomial_is_as_close_as_it_says(family, name):
    _, g, weight, kinds = FITS[name]
    for dtype, (a, b, count) in kinds.items():
        exact, scale = (v[dtype] if isinstance(v, dict) else v for v in (g, weight))
        found = getattr(held(family), name)[dtype]
        assert len(found) == count
        points = [a + (b - a) * (k + mpmath.mpf(1) / 3) / 50 for k in range(50)]
        worst = max(
            scale(x) * abs(horner([mpmath.mpf(c) for c in found], x) - exact(x)) for x in points
        )
        assert worst < LOOSER.get(name, MOST[dtype] * FEWER.get(name, 1))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_cells_are_those_of_an_octave(dtype):
    """The polynomial's reach is that of every cell; their logarithms are those of the numbers."""
    inverse = octave_cells(dtype)
    assert tuple(inverse) == base_cells.LOG2_CELLS[dtype]
    reach = float(FITS["LOG_TAIL"][3]["f32"][1])
    for (a, b), c in zip(base_edges(dtype), inverse, strict=True):
        assert max(abs(a * c - 1), abs(b * c - 1)) <= reach
    for base, short in ((2, 1), (10, round(np.log10(2) * 2**12) / 2**12)):
        held = [getattr(base_cells, f"LOG{base}_{part}")[dtype] for part in ("HIGH", "LOW")]
        high, low = logs_of_cells(base)
        assert [tuple(high[dtype]), tuple(low[dtype])] == held
        digits = {"f32": 2.0**-37, "f64": 2.0**-90}[dtype]
        for c, h, v in zip(inverse, high[dtype], low[dtype], strict=True):
            assert abs(mpmath.mpf(h) + v + mpmath.log(c, base)) < digits
            if c == 0.5:  # below 1 nothing but the polynomial is left
                assert h == short


def test_powers_of_two():
    assert tuple(sixteenths()) == cells.EXP2_SIXTEENTHS


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(
    ("held", "terms", "function", "cell"),
    [
        (ERFC_CELLS, {k: n for k, (_, n) in TAILS.items()}, tail, tail_cell),
        (ERFINV_CELLS, INVERSE, inverse, inverse_cell),
    ],
)
def test_cells_of_octaves(held, terms, function, cell, dtype):
    """As those of curves; the function is almost a float where it is looked up."""
    centres, values, *slopes = held[dtype]
    assert len(slopes) == terms[dtype]
    digits = {"f32": 24, "f64": 53}[dtype]
    for k, (near, value, *slope) in enumerate(zip(centres, values, *slopes)):
        c, g, weight, a, b = cell(k, dtype)
        assert c == near
        assert abs(value - function(c)) <= abs(value) * 2.0 ** -(digits + 4)
        for j in range(20):
            t = a + (b - a) * (j + mpmath.mpf(1) / 3) / 20
            assert weight(t) * abs(horner([mpmath.mpf(c) for c in slope], t) - g(t)) < MOST[dtype]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_waves(dtype):
    """The numbers are those that are printed; quotients are tangents to many more digits."""
    assert waves(dtype) == cells.SIN_EIGHTHS[dtype]
    assert tuple(map(tuple, tangents(dtype))) == cells.TAN_SIXTEENTHS[dtype]
    digits = {"f32": 24, "f64": 53}[dtype]
    for k, (s, c) in enumerate(zip(*cells.TAN_SIXTEENTHS[dtype])):
        exact = mpmath.sinpi(mpmath.mpf(k) / 16), mpmath.cospi(mpmath.mpf(k) / 16)
        assert abs(exact[0] * c - exact[1] * s) < 2.0 ** -(digits + 5)


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name, curve in CURVES.items() for dtype in curve[1]]
)
def test_cells_of_curves(name, dtype):
    """Each polynomial is that close all over its cell; the last cell reaches where 1 comes out."""
    function, steps, ends, terms, _ = CURVES[name]
    parts = [getattr(cells, f"{name}_{part}")[dtype] for part in ("STEP", "END", "CELLS")]
    step, end, (centres, values, *slopes) = parts
    assert (step, end) == (steps[dtype], ends[dtype])
    assert len(slopes) == terms[dtype]
    for k, (c, value, *slope) in enumerate(zip(centres, values, *slopes)):
        assert c == middle(name, k, dtype)
        digits = {"f32": 24, "f64": 53}[dtype]
        assert abs(value - function(c)) <= 2.0 ** -(digits + 2)
        g, weight, a, b = curve_cell(name, k, dtype)
        for j in range(50):
            t = a + (b - a) * (j + mpmath.mpf(1) / 3) / 50
            assert weight(t) * abs(horner([mpmath.mpf(c) for c in slope], t) - g(t)) < MOST[dtype]
    assert 1 - function(mpmath.mpf(end)) < 2.0 ** -(digits + 1)
    assert round(end / step) == 15


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_cells_of_log(dtype):
    """The polynomial reaches over each cell; the logarithms are almost floats."""
    inverse, values = log_cells(dtype)
    assert (tuple(inverse), tuple(values)) == cells.LOG_CELLS[dtype]
    reach = float(FITS["LOG_CELL"][3][dtype][1])
    digits = {"f32": 24, "f64": 53}[dtype]
    for (a, b), c, value in zip(edges(), inverse, values):
        assert max(abs(a * c - 1), abs(b * c - 1)) <= reach
        assert abs(value + mpmath.log(c)) <= abs(value) * 2.0 ** -(digits + 5)


@pytest.mark.parametrize("k", range(ROWS))
def test_zeros_of_gamma(k):
    """Where they are, to the last digit of two floats; polynomials are close all over a row."""
    with mpmath.workdps(80):
        found = [mpmath.mpf(v) for v in GAMMA_ZEROS[k]]
        z, inverse, value, least = (a + b for a, b in zip(found[:8:2], found[1:8:2]))
        assert abs(z - centre(k)) <= abs(z) * 2.0**-106
        assert abs(inverse * (centre(k) - pole(k)) - 1) <= 2.0**-106
        if k >= 4:
            assert value == 0  # what is left of a zero is all error
        ratio, a, b = smooth(k)
        assert len(found) == 7 + TERMS
        for j in range(30):
            d = a + (b - a) * (j + mpmath.mpf(1) / 3) / 30
            exact = abs(log_gamma(centre(k) + d))
            assert abs(d * (horner([least, *found[8:]], d) - ratio(d))) < exact * MOST["f64"]
