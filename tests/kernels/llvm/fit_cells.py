"""Computes the tables of funct/kernels/llvm/cells.py, which is what this prints.

    python -m tests.kernels.llvm.fit_cells > funct/kernels/llvm/cells.py
    python -m tests.kernels.llvm.fit_cells base > funct/kernels/llvm/base_cells.py
    python -m tests.kernels.llvm.fit_cells tail > funct/kernels/llvm/tail_cells.py
    python -m tests.kernels.llvm.fit_cells inverse > funct/kernels/llvm/inverse_cells.py

Each has 16 numbers, but those of float32 for logarithms to a base, which have 32. Where a cell has
a number of its own, it is one at which the function is almost a float.
"""

import functools
import itertools
import sys

import mpmath
import numpy as np
from mpmath import mpf

from .fit import erfinv_ratio, fit, print_file, rounded, wrapped

LOG2_FROM = 0.703125
CURVES = {  # functions, widths of cells, ends, terms, how far numbers are from middles
    "ERF": (
        mpmath.erf, {"f32": 0.258, "f64": 0.3872}, {"f32": 3.99, "f64": 6.0},
        {"f32": 6, "f64": 12}, 250,
    ),
    "TANH": (mpmath.tanh, {"f32": 0.5836}, {"f32": 9.04}, {"f32": 7}, 700),
}  # fmt: skip


TAILS = {"f32": (1, 6), "f64": (2, 14)}  # from where on x + that begins an octave, and terms


def tail(x):
    return mpmath.exp(x * x) * mpmath.erfc(x)


@functools.cache
def tail_cell(k, dtype):
    """A number c in the middle of a cell at which `tail` is almost one of the dtype, what is
    fitted, its weight, and where t lies.
    """
    first = mpf(TAILS[dtype][0])
    a, b = (first * 2 ** (j // 4) * (1 + mpf(j % 4) / 4) - first for j in (k, k + 1))
    near = [rounded((a + b) / 2 + (b - a) * j / 2**14, dtype) for j in range(-300, 301)]
    lost = [abs(tail(c) - rounded(tail(c), dtype)) for c in near]
    c = near[lost.index(min(lost))]
    return c, lambda t: (tail(c + t) - tail(c)) / t, lambda t: abs(t) / tail(c + t), a - c, b - c


def tail_columns(dtype):
    """For each of 16 cells: its number c, the function there, the coefficients of the slope."""
    rows = []
    for k in range(16):
        c, *fitted = tail_cell(k, dtype)
        slope, error = fit(*fitted, TAILS[dtype][1], dtype)
        sys.stderr.write(f"ERFC_CELLS {dtype} {k} {error:.2f}\n")
        rows.append([float(c), float(rounded(tail(c), dtype)), *slope])
    return list(zip(*rows))


INVERSE = {"f32": 6, "f64": 15}  # terms of the inverse error function


def inverse(y):
    """erfinv(x) / x for y = 1 - x²."""
    return erfinv_ratio(-mpmath.log(y))


@functools.cache
def inverse_cell(k, dtype):
    """As `tail_cell`, for halves of octaves below 1: k has the low bits of the exponent, and then
    the first one of the mantissa.
    """
    octave = mpf(2) ** -((12 - (k & ~1)) % 16 // 2 + 1)
    a, b = (octave * (1 + mpf(j) / 2) for j in (k % 2, k % 2 + 1))
    near = [rounded((a + b) / 2 + (b - a) * j / 2**14, dtype) for j in range(-100, 101)]
    lost = [abs(inverse(c) - rounded(inverse(c), dtype)) for c in near]
    c = near[lost.index(min(lost))]
    slope, weight = lambda t: (inverse(c + t) - inverse(c)) / t, lambda t: abs(t) / inverse(c + t)
    return c, slope, weight, a - c, b - c


def inverse_columns(dtype):
    """For each of 16 cells: its number c, the function there, the coefficients of the slope."""
    rows = []
    for k in range(16):
        c, g, weight, a, b = inverse_cell(k, dtype)
        h = mpf(2) ** mpmath.ceil(mpmath.log(b - a, 2))  # powers of distances are small numbers
        scaled = lambda u, g=g, h=h: g(u * h) * h, lambda u, w=weight, h=h: w(u * h) / h
        slope, error = fit(*scaled, a / h, b / h, INVERSE[dtype], dtype)
        sys.stderr.write(f"ERFINV_CELLS {dtype} {k} {error:.2f}\n")
        powers = [float(v / h ** (j + 1)) for j, v in enumerate(slope)]
        rows.append([float(c), float(rounded(inverse(c), dtype)), *powers])
    return list(zip(*rows))


def middle(name, k, dtype):
    """A number near the middle of a cell at which the function is almost one of the dtype."""
    function, steps, *_, far = CURVES[name]
    near = [rounded(steps[dtype] * (k + mpf(j) / 4096), dtype) for j in range(-far, far + 1)]
    lost = [abs(function(c) - rounded(function(c), dtype)) for c in near]
    return near[lost.index(min(lost))] if k else mpf(0)


def curve_cell(name, k, dtype):
    """What is fitted in a cell, its weight, and where t lies if c + t is in the cell."""
    function, steps, ends, *_ = CURVES[name]
    c, step = middle(name, k, dtype), mpf(steps[dtype])
    a = (k - mpf("0.501")) * step - c if k else mpf(10) ** -12
    b = ((k + mpf("0.501")) * step if k < 15 else mpf(ends[dtype])) - c
    own = 0 if k else 1  # around 0 the number itself is in front: its slope may be no float
    return (
        lambda t: (function(c + t) - function(c)) / t - own,
        lambda t: abs(t) / function(c + t),
        a,
        b,
    )


def curve_cells(name, dtype):
    """For each of 16 cells: its number c, f(c), the coefficients of the slope; as columns."""
    function, _, _, terms, _ = CURVES[name]
    rows = []
    for k in range(16):
        c = middle(name, k, dtype)
        slope, error = fit(*curve_cell(name, k, dtype), terms[dtype], dtype)
        sys.stderr.write(f"{name}_CELLS {dtype} {k} {error:.2f}\n")
        rows.append([float(c), float(rounded(function(c), dtype)), *slope])
    return list(zip(*rows))


def edges():
    """The ends of sixteenths of the octave from LOG2_FROM on."""
    first = int(np.float32(LOG2_FROM).view(np.int32))
    ends = (first + np.arange(17, dtype=np.int32) * (1 << 19)).view(np.float32).astype(float)
    return list(itertools.pairwise(ends))


def log_cells(dtype):
    """The numbers c, and log(1 / c), which is almost one of the dtype; c is 1 around 1."""
    inverse = []
    for a, b in edges():
        near = [(round(2**21 / (a + b)) + j) / 2**20 for j in range(-900, 901)]
        lost = [abs(mpmath.log(c) - rounded(mpmath.log(c), dtype)) for c in near]
        inverse.append(1.0 if a <= 1 < b else near[lost.index(min(lost))])
    return inverse, [float(rounded(-mpmath.log(c), dtype)) for c in inverse]


def printed_log_cells():
    """The lines of the natural logarithm's tables."""
    head = (
        f"# sixteenths of the octave from {LOG2_FROM} on: a number c for each, so that c m is about"
        f" 1, and\n# log(1 / c); c is such that it is almost a float\nLOG2_FROM = {LOG2_FROM}\n"
    )
    return head + _of_dtypes("LOG_CELLS", log_cells)


def base_edges(dtype):
    """The ends of the cells of an octave for logarithms to a base."""
    if dtype == "f64":
        return edges()
    return [(1 + k / 32, 1 + (k + 1) / 32) for k in range(32)]


def octave_cells(dtype):
    """The numbers c for sixteenths of the octave from LOG2_FROM on, of float32 for what 32 cells of
    [1, 2) are.

    A mantissa times the c of its cell is at most 0.0323 from 1; c is 1 around 1, and 1/2 next to 2.
    Those of float32 have 6 bits, so that what products lack to 1 is a float.
    """
    bits = {"f32": 6, "f64": 10}[dtype]
    inverse = [round(2 ** (bits + 1) / (a + b)) / 2**bits for a, b in base_edges(dtype)]
    for k, (a, b) in enumerate(base_edges(dtype)):
        if a <= 1 < b or b == 2:
            inverse[k] = 1.0 if b < 2 else 0.5
    return inverse


def logs_of_cells(base):
    """log(1 / c) to a base in two parts, for each dtype; the first ones have so few bits that
    exponents, or what float32 has of their logarithms in 12, are added exactly.

    Where c is less than 0.7 they are those of 2 c and of 2, which cancel below 1.
    """
    high, low = {}, {}
    for dtype, bits in (("f32", 14), ("f64", 40)):
        step = mpmath.log(2, base)
        short = mpmath.nint(step * 2**12) / 2**12
        high[dtype], low[dtype] = [], []
        for c in octave_cells(dtype):
            twice = c < 0.7
            exact = -mpmath.log(2 * c if twice else c, base)
            first = mpmath.nint(exact * 2**bits) / 2**bits
            high[dtype].append(float(first + short if twice else first))
            rest = exact - first + (step - short if twice else 0)
            low[dtype].append(float(rounded(rest, dtype)))
    return high, low


def sixteenths():
    """2^(k/16)."""
    return [float(mpf(2) ** (mpf(k) / 16)) for k in range(16)]


def printed_powers():
    """The lines of the exponential function's table."""
    head = "# 2^(k/16) for k = 0 to 15\nEXP2_SIXTEENTHS"
    return f"{head} = (\n{wrapped(sixteenths(), 4)}\n)  # fmt: skip\n"


def waves(dtype):
    """sin(k pi/8) in two parts."""
    exact = [mpmath.sinpi(mpf(k) / 8) for k in range(16)]
    high = [rounded(v, dtype) for v in exact]
    low = [rounded(v - h, dtype) for v, h in zip(exact, high)]
    return tuple(map(float, high)), tuple(map(float, low))


def tangents(dtype):
    """Numbers whose quotient is almost tan(k pi/16): the sine and cosine, times one near to 1."""
    above, below = [], []
    for k in range(16):
        s, c = mpmath.sinpi(mpf(k) / 16), mpmath.cospi(mpf(k) / 16)
        pairs = [[rounded(v * (1 + mpf(j) / 8192), dtype) for v in (s, c)] for j in range(900)]
        lost = [abs(a * c - b * s) for a, b in pairs]
        found = pairs[lost.index(min(lost))]
        above.append(float(found[0]))
        below.append(float(found[1]))
    return above, below


def printed_waves():
    """The lines of the sine's table."""
    head = "# sin(k pi/8) for k = 0 to 15, in two parts\nSIN_EIGHTHS"
    other = "# numbers whose quotients are almost tan(k pi/16), for k = 0 to 15\nTAN_SIXTEENTHS"
    return "\n".join([_of_dtypes(head, waves), _of_dtypes(other, tangents)])


def _of_dtypes(head, columns):
    kinds = []
    for dtype in ("f32", "f64"):
        lines = [f"        (\n{wrapped(v, 12)}\n        ),\n" for v in columns(dtype)]
        kinds.append(f'    "{dtype}": (\n{"".join(lines)}    ),\n')
    return f"{head} = {{\n{''.join(kinds)}}}  # fmt: skip\n"


def printed_curve(name):
    """The lines of a curve's tables."""
    kinds = []
    _, steps, ends, *_ = CURVES[name]
    for dtype in steps:
        columns = [f"        (\n{wrapped(v, 12)}\n        ),\n" for v in curve_cells(name, dtype)]
        kinds.append(f'    "{dtype}": (\n{"".join(columns)}    ),\n')
    f = name.lower()
    head = (
        f"# {f}(c + t) = C + t P(t) in 16 cells of that width, around 0 {f}(t) = t + t P(t): all c,"
        f" all C\n# and each coefficient of P; from the end on {f} is 1\n"
    )
    return (
        f"{head}{name}_STEP = {steps}\n{name}_END = {ends}\n".replace("'", '"')
        + f"{name}_CELLS = {{\n{''.join(kinds)}}}  # fmt: skip\n"
    )


def printed_tail():
    """The lines of the table of exp(x²) erfc(x)."""
    head = (
        "# exp(x²) erfc(x) = C + t P(t) for x = c + t in 16 cells, quarters of octaves of x + 1 or"
        " x + 2:\n# all c, all C and each coefficient of P\nERFC_CELLS"
    )
    return _of_dtypes(head, tail_columns)


def printed_inverse():
    """The lines of the table of erfinv(x) / x."""
    head = (
        "# erfinv(x) / x = C + t P(t) for 1 - x² = c + t in halves of 8 octaves below 1, by the"
        " last bits of\n# exponents and the first ones of mantissas: all c, all C and each"
        " coefficient of P\nERFINV_CELLS"
    )
    return _of_dtypes(head, inverse_columns)


def printed_octave_cells():
    """The lines of the tables of logarithms to a base."""
    tables = [("LOG2_CELLS", {dtype: octave_cells(dtype) for dtype in ("f32", "f64")})]
    for base in (2, 10):
        parts = zip(("HIGH", "LOW"), logs_of_cells(base))
        tables += [(f"LOG{base}_{name}", part) for name, part in parts]
    lines = []
    for name, columns in tables:
        kinds = [f'    "{k}": (\n{wrapped(v, 8)}\n    ),\n' for k, v in columns.items()]
        lines.append(f"{name} = {{\n{''.join(kinds)}}}  # fmt: skip\n")
    head = (
        "# a number c for each cell, so that c m is about 1, and log2(1 / c) and log10(1 / c), each"
        " in two\n# parts: of float64 sixteenths of the octave from LOG2_FROM on, of float32 32"
        " parts of [1, 2)\n"
    )
    return head + "".join(lines)


if __name__ == "__main__":
    said = "What lanes look up, 16 or 32 numbers each; tests compute them."
    if sys.argv[1:] == ["tail"]:
        print_file(said, ["ERFC_CELLS"], [printed_tail()])
    elif sys.argv[1:] == ["inverse"]:
        print_file(said, ["ERFINV_CELLS"], [printed_inverse()])
    elif sys.argv[1:] == ["base"]:
        names = ["LOG2_CELLS", "LOG2_HIGH", "LOG2_LOW", "LOG10_HIGH", "LOG10_LOW"]
        print_file(said, names, [printed_octave_cells()])
    else:
        names = [f"{name}_{part}" for name in CURVES for part in ("CELLS", "END", "STEP")]
        names += ["LOG2_FROM", "LOG_CELLS", "EXP2_SIXTEENTHS"]
        names += ["SIN_EIGHTHS", "TAN_SIXTEENTHS"]
        parts = [printed_log_cells(), printed_powers(), printed_waves()]
        print_file(said, names, [*parts, *map(printed_curve, CURVES)])
