"""Fits the polynomials of funct/kernels/llvm/coefficients: this prints the file of a family.

    python tests/kernels/llvm/fit.py error > funct/kernels/llvm/coefficients/error.py

Each is a minimax polynomial, in arithmetic of 50 digits. The first coefficients are rounded to the
dtype one by one, and the rest is fitted again after each.
"""

import sys
import textwrap

import mpmath
import numpy as np
from mpmath import mp, mpf

mp.dps = 50


def least(target, weights, powers):
    """The combination of powers (rows: points) closest to the target, by weighted squares.

    Lawson's iteration (C. Lawson, 1961) weighs the points by their errors, which makes the largest
    error least.
    """
    count = len(powers[0])
    lawson = [mpf(1)] * len(target)
    best = None
    for _ in range(14):
        rows, right = mpmath.matrix(count, count), mpmath.matrix(count, 1)
        both = [w * w * v for w, v in zip(weights, lawson)]
        scaled = [[w * v for v in row] for w, row in zip(both, powers)]
        for i in range(count):
            for j in range(i + 1):
                rows[i, j] = rows[j, i] = mpmath.fdot((r[i], p[j]) for r, p in zip(scaled, powers))
            right[i] = mpmath.fdot((r[i], t) for r, t in zip(scaled, target))
        solved = mpmath.lu_solve(rows, right)
        c = [solved[j] for j in range(count)]
        errors = [
            abs(w * (mpmath.fdot(zip(c, row)) - t)) for w, row, t in zip(weights, powers, target)
        ]
        worst = max(errors)
        if best is None or worst < best[0]:
            best = (worst, c)
        lawson = [v * (e / worst + mpf("0.01")) for v, e in zip(lawson, errors)]
        mean = sum(lawson) / len(lawson)
        lawson = [v / mean for v in lawson]
    return best[1]


def rounded(number, dtype):
    """The nearest number of the dtype."""
    near = float(number) if dtype == "f64" else float(np.float32(float(number)))
    return mpf(near)


def horner(coefficients, x):
    """The polynomial at x; the constant comes first."""
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def fit(g, weight, a, b, count, dtype):
    """Coefficients in the dtype, and log2 of the error that they leave."""
    a, b = mpf(a), mpf(b)
    points = [(a + b) / 2 - (b - a) / 2 * mpmath.cos(mp.pi * (k + 0.5) / 160) for k in range(160)]
    target, weights = [g(x) for x in points], [weight(x) for x in points]
    fixed = []
    while len(fixed) < count:
        k = len(fixed)
        left = [t - horner(fixed, x) for t, x in zip(target, points)]
        c = least(left, weights, [[x**j for j in range(k, count)] for x in points])
        # rounding the later coefficients is far below everything else
        fixed += [rounded(v, dtype) for v in (c if k >= 3 else c[:1])]
    grid = [a + (b - a) * (k + mpf(1) / 3) / 700 for k in range(700)]
    worst = max(weight(x) * abs(horner(fixed, x) - g(x)) for x in grid)
    return [float(c) for c in fixed], float(mpmath.log(worst, 2))


def even(f):
    """The function of x² that equals f of x."""
    return lambda z: f(mpmath.sqrt(z))


def erfc_scaled(q, k):
    x = k * (1 + q) / (1 - q)
    return (1 + 2 * x) * mpmath.exp(x * x) * mpmath.erfc(x)


def erfc_slope(q, k):
    q = q or mpf(10) ** -20
    return (erfc_scaled(q, k) - erfc_scaled(mpf(0), k)) / q


def erfinv_ratio(w):
    """erfinv(x) / x for w = -log(1 - x²)."""
    x = mpmath.sqrt(-mpmath.expm1(-w))
    return mpmath.erfinv(x) / x if x else mpmath.sqrt(mp.pi) / 2


def erfinv_slope(t, of):
    """(ratio - C) / t where w = of(t), C the ratio at t = 0."""
    t = t or mpf(10) ** -20
    return (erfinv_ratio(of(t)) - erfinv_ratio(of(0))) / t


def erfinv_fit(of):
    """What is fitted, and its weight."""
    return lambda t: erfinv_slope(t, of), lambda t: abs(t) / erfinv_ratio(of(t))


def stirling(z):
    x = 1 / mpmath.sqrt(z)
    exact = mpmath.loggamma(x) - (x - mpf("0.5")) * mpmath.log(x) + x - mpmath.log(2 * mp.pi) / 2
    return exact * x


ln2, pi, sqrt = mpmath.ln(2), mp.pi, mpmath.sqrt
r_exp = ln2 / 2 * mpf("1.01")
r_sin = pi / 4 * mpf("1.04")
r_tan = pi / 4 * mpf("1.001")
r_part = pi / 16 * mpf("1.001")
r_short = pi / 32 * mpf("1.001")
t8 = mpmath.tan(pi / 8) * mpf("1.001")
s_log = mpf("0.17158")
erf_centre = mpf("7.42")
r_table = mpf("0.0323")

FITS = {
    "EXP": (
        "exp(r) = 1 + r + r² P(r), |r| <= ln2/2",
        lambda r: (mpmath.expm1(r) - r) / r**2,
        lambda r: abs(r * r / mpmath.expm1(r)) if r else mpf(0),
        {"f32": (-r_exp, r_exp, 6), "f64": (-r_exp, r_exp, 11)},
    ),
    "EXP_SIXTEENTH": (
        "the same, |r| <= ln2/32",
        lambda r: (mpmath.expm1(r) - r) / r**2 if r else mpf(1) / 2,
        lambda r: abs(r * r / mpmath.exp(r)),
        {"f32": (-r_exp / 16, r_exp / 16, 2), "f64": (-r_exp / 16, r_exp / 16, 5)},
    ),
    "LOG": (
        "f32: log(1 + f) = f - f²/2 + f³ P(f), sqrt(1/2) <= 1 + f <= sqrt(2)",
        lambda f: (mpmath.log1p(f) - f + f * f / 2) / f**3,
        lambda f: abs(f**3 / mpmath.log1p(f)) if f else mpf(0),
        {"f32": (sqrt(mpf("0.5")) - 1, sqrt(mpf(2)) - 1, 9)},
    ),
    "LOG_CELL": (
        "log(1 + f) = f + f² P(f), |f| <= 0.0323",
        lambda f: (mpmath.log1p(f) - f) / f**2 if f else mpf(-1) / 2,
        lambda f: abs(f * f / mpmath.log1p(f)) if f else mpf(0),
        {"f32": (-r_table, r_table, 4), "f64": (-r_table, r_table, 9)},
    ),
    "ATANH": (
        "2 atanh(s) = 2 s + s z P(z), z = s², |s| <= 0.1716",
        even(lambda s: 2 * (mpmath.atanh(s) - s) / s**3),
        even(lambda s: s**3 / mpmath.atanh(s)),
        {"f64": (mpf(10) ** -12, s_log**2, 7)},
    ),
    "ATANH_WIDE": (
        "the same, |s| <= 0.27",
        even(lambda s: 2 * (mpmath.atanh(s) - s) / s**3),
        even(lambda s: s**3 / mpmath.atanh(s)),
        {
            "f32": (mpf(10) ** -12, mpf("0.27") ** 2, 4),
            "f64": (mpf(10) ** -12, mpf("0.27") ** 2, 9),
        },
    ),
    "ATANH_SHORT": (
        "the same, as exact as pow of float32 asks for",
        even(lambda s: 2 * (mpmath.atanh(s) - s) / s**3),
        even(lambda s: s**3 / mpmath.atanh(s)),
        {"f64": (mpf(10) ** -12, s_log**2, 4)},
    ),
    "EXP_SHORT": (
        "exp(r) as above, as exact as pow of float32 asks for",
        lambda r: (mpmath.expm1(r) - r) / r**2,
        lambda r: abs(r * r / mpmath.expm1(r)) if r else mpf(0),
        {"f64": (-r_exp, r_exp, 6)},
    ),
    "EXP_FAST": (
        "exp(r) as above, with fewer terms",
        lambda r: (mpmath.expm1(r) - r) / r**2,
        lambda r: abs(r * r / mpmath.exp(r)) if r else mpf(0),
        {"f32": (-r_exp, r_exp, 4), "f64": (-r_exp, r_exp, 9)},
    ),
    "SIN_HALF": (
        "sin(r) = r + r³ P(r²), |r| <= pi/2",
        even(lambda r: (mpmath.sin(r) - r) / r**3),
        even(lambda r: abs(r**3 / mpmath.sin(r))),
        {"f32": (mpf(10) ** -12, 4 * r_sin**2, 4), "f64": (mpf(10) ** -12, 4 * r_sin**2, 8)},
    ),
    "ERF_WHOLE": (
        "erf(x) = x P(x² - 7.42), |x| <= 3.85",
        lambda t: mpmath.erf(sqrt(t + erf_centre)) / sqrt(t + erf_centre),
        lambda t: sqrt(t + erf_centre) / mpmath.erf(sqrt(t + erf_centre)),
        {"f32": (mpf(10) ** -12 - erf_centre, erf_centre, 15)},
    ),
    "LOG_TAIL": (
        "log(1 + r) = r - r²/2 + r³ P(r), |r| <= 0.0323, as exact as pow asks for",
        lambda r: (mpmath.log1p(r) - r + r * r / 2) / r**3 if r else mpf(1) / 3,
        lambda r: abs(r**3 / mpmath.log1p(r)) if r else mpf(0),
        {"f32": (-r_table, r_table, 4), "f64": (-r_table, r_table, 9)},
    ),
    "EXP2_WHOLE": (
        "2^r = 1 + r P(r), |r| <= 1/2",
        lambda r: (mpf(2) ** r - 1) / r if r else ln2,
        lambda r: abs(r) / mpf(2) ** r,
        {"f32": (mpf("-0.501"), mpf("0.501"), 6), "f64": (mpf("-0.501"), mpf("0.501"), 12)},
    ),
    "ATANH_TAIL": (
        "atanh(s) = s + s³/3 + s⁵ P(s²), |s| <= 0.1716",
        even(lambda s: (mpmath.atanh(s) - s - s**3 / 3) / s**5),
        even(lambda s: s**5 / mpmath.atanh(s)),
        {"f64": (mpf(10) ** -8, s_log**2, 9)},
    ),
    "SIN": (
        "sin(r) = r + r³ P(r²), |r| <= pi/4",
        even(lambda r: (mpmath.sin(r) - r) / r**3),
        even(lambda r: abs(r**3 / mpmath.sin(r))),
        {"f32": (mpf(10) ** -12, r_sin**2, 3), "f64": (mpf(10) ** -12, r_sin**2, 6)},
    ),
    "COS": (
        "cos(r) = 1 - r²/2 + r⁴ P(r²), |r| <= pi/4",
        even(lambda r: (mpmath.cos(r) - 1 + r * r / 2) / r**4),
        even(lambda r: abs(r**4 / mpmath.cos(r))),
        {"f32": (mpf(10) ** -8, r_sin**2, 3), "f64": (mpf(10) ** -8, r_sin**2, 6)},
    ),
    "TAN": (
        "tan(r) = r + r³ P(r²), |r| <= pi/4",
        even(lambda r: (mpmath.tan(r) - r) / r**3),
        even(lambda r: abs(r**3 / mpmath.tan(r))),
        {"f32": (mpf(10) ** -12, r_tan**2, 7), "f64": (mpf(10) ** -12, r_tan**2, 14)},
    ),
    "SIN_SIXTEENTH": (
        "sin(r) = r + r³ P(r²), |r| <= pi/16",
        even(lambda r: (mpmath.sin(r) - r) / r**3),
        even(lambda r: abs(r**3 / mpmath.sin(r))),
        {"f32": (mpf(10) ** -12, r_part**2, 2), "f64": (mpf(10) ** -12, r_part**2, 4)},
    ),
    "COS_SIXTEENTH": (
        "cos(r) = 1 + r² P(r²), |r| <= pi/16",
        even(lambda r: (mpmath.cos(r) - 1) / r**2),
        even(lambda r: r**2),
        {"f32": (mpf(10) ** -8, r_part**2, 2), "f64": (mpf(10) ** -8, r_part**2, 5)},
    ),
    "TAN_SIXTEENTH": (
        "tan(r) = r + r³ P(r²), |r| <= pi/32",
        even(lambda r: (mpmath.tan(r) - r) / r**3),
        even(lambda r: abs(r**3 / mpmath.tan(r))),
        {"f32": (mpf(10) ** -12, r_short**2, 2), "f64": (mpf(10) ** -12, r_short**2, 5)},
    ),
    "ASIN": (
        "asin(x) = x + x³ P(x²), 0 <= x <= 1/2",
        even(lambda x: (mpmath.asin(x) - x) / x**3),
        even(lambda x: x**3 / mpmath.asin(x)),
        {"f32": (mpf(10) ** -12, mpf("0.2501"), 6), "f64": (mpf(10) ** -12, mpf("0.2501"), 13)},
    ),
    "ATAN": (
        "atan(x) = x + x³ P(x²), 0 <= x <= tan(pi/8)",
        even(lambda x: (mpmath.atan(x) - x) / x**3),
        even(lambda x: x**3 / mpmath.atan(x)),
        {"f32": (mpf(10) ** -12, t8**2, 5), "f64": (mpf(10) ** -12, t8**2, 11)},
    ),
    "SINH": (
        "sinh(x) = x + x³ P(x²), 0 <= x <= 1",
        even(lambda x: (mpmath.sinh(x) - x) / x**3),
        even(lambda x: x**3 / mpmath.sinh(x)),
        {"f32": (mpf(10) ** -12, mpf("1.001"), 4), "f64": (mpf(10) ** -12, mpf("1.001"), 8)},
    ),
    "TANH": (
        "tanh(x) = x + x³ P(x²), 0 <= x <= 0.55",
        even(lambda x: (mpmath.tanh(x) - x) / x**3),
        even(lambda x: x**3 / mpmath.tanh(x)),
        {"f32": (mpf(10) ** -12, mpf("0.3026"), 5), "f64": (mpf(10) ** -12, mpf("0.3026"), 10)},
    ),
    "ERF": (
        "erf(x) = x + x P(x²), 0 <= x <= 1",
        even(lambda x: mpmath.erf(x) / x - 1),
        even(lambda x: x / mpmath.erf(x)),
        {"f32": (mpf(10) ** -12, mpf("1.001"), 7), "f64": (mpf(10) ** -12, mpf("1.001"), 14)},
    ),
    "ERF_NEAR": (
        "the same, 0 <= x <= 0.7",
        even(lambda x: mpmath.erf(x) / x - 1),
        even(lambda x: x / mpmath.erf(x)),
        {"f32": (mpf(10) ** -12, mpf("0.4901"), 6), "f64": (mpf(10) ** -12, mpf("0.4901"), 11)},
    ),
    "ERF_TAIL": (
        "erf(x) = 1 - 2^P(x), 1 <= x <= 3.95 or 5.95",
        lambda x: mpmath.log(mpmath.erfc(x), 2),
        lambda x: mpmath.erfc(x) * ln2,
        {"f32": (mpf("0.999"), mpf("3.95"), 7), "f64": (mpf("0.999"), mpf("5.95"), 18)},
    ),
    "EXP2_PART": (
        "2^r = 1 + r P(r), |r| <= 1/2, as exact as erf asks for",
        lambda r: (mpf(2) ** r - 1) / r if r else ln2,
        lambda r: abs(r) * mpmath.erfc(1),
        {"f32": (mpf("-0.501"), mpf("0.501"), 6), "f64": (mpf("-0.501"), mpf("0.501"), 11)},
    ),
    "EXP2_ABOVE": (
        "2^r = 1 + r P(r), 0 <= r <= 1, as exact as attention asks for",
        lambda r: (mpf(2) ** r - 1) / r if r else ln2,
        lambda r: abs(r) / mpf(2) ** r,
        {"f32": (mpf(0), mpf(1), 5)},
    ),
    "ERFC": (
        "exp(x²) erfc(x) (1 + 2 x) = C + q P(q), q = (x - k) / (x + k), 0.69 <= x; k = 2 or 4",
        {"f32": lambda q: erfc_slope(q, 2), "f64": lambda q: erfc_slope(q, 4)},
        {
            "f32": lambda q: abs(q) / erfc_scaled(q, 2),
            "f64": lambda q: abs(q) / erfc_scaled(q, 4),
        },
        {
            "f32": (mpf("-1.31") / mpf("2.69"), mpf("8.2") / mpf("12.2"), 9),
            "f64": (mpf("-3.31") / mpf("4.69"), mpf("0.75"), 20),
        },
    ),
    "LGAMMA": (
        "log|gamma(2 + t)| = t (C + t P(t)), |t| <= 1/2",
        lambda t: (mpmath.loggamma(2 + t) / t - (1 - mp.euler)) / t if t else (pi**2 / 6 - 1) / 2,
        lambda t: abs(t * t / mpmath.loggamma(2 + t)) if t else mpf(0),
        {"f32": (mpf("-0.5001"), mpf("0.5001"), 10), "f64": (mpf("-0.5001"), mpf("0.5001"), 19)},
    ),
    "STIRLING": (
        "log(gamma(x)) = (x - 1/2) log(x) - x + log(2 pi)/2 + P(1/x²) / x, x >= 8",
        stirling,
        lambda z: sqrt(z) / 8,
        {"f32": (mpf(10) ** -9, mpf(1) / 64, 2), "f64": (mpf(10) ** -9, mpf(1) / 64, 7)},
    ),
    "ERFINV": (
        "erfinv(x) / x = C + t P(t), t = w = -log(1 - x²) <= 1",
        *erfinv_fit(lambda t: t),
        {"f32": (mpf(10) ** -9, mpf("1.001"), 5), "f64": (mpf(10) ** -9, mpf("1.001"), 11)},
    ),
    "ERFINV_FAR": (
        "the same for t = w - 3, 1 <= w <= 5 or 6.25",
        *erfinv_fit(lambda t: t + 3),
        {"f32": (mpf("-2.001"), mpf("2.001"), 9), "f64": (mpf("-2.001"), mpf("3.251"), 21)},
    ),
    "ERFINV_TAIL": (
        "and for t = sqrt(w) - 3 or 4 beyond",
        *({"f32": a, "f64": b} for a, b in zip(*(
            erfinv_fit(lambda t, c=c: (t + c) ** 2) for c in (3, 4)
        ))),
        {"f32": (mpf("-0.77"), mpf("1.001"), 10), "f64": (mpf("-1.6463"), mpf("2.01"), 30)},
    ),
    "CBRT": (
        "(1 - e)^(-1/3) = P(e), |e| <= 0.125; where iteration starts",
        lambda e: 1 / mpmath.cbrt(1 - e),
        lambda e: mpmath.cbrt(1 - e),
        {"f32": (mpf("-0.125"), mpf("0.125"), 4), "f64": (mpf("-0.125"), mpf("0.125"), 4)},
    ),
}  # fmt: skip

FAMILIES = {  # what the file of each is for, and has
    "exponential": (
        "exponentials",
        ("EXP", "EXP_SIXTEENTH", "EXP_SHORT", "EXP_FAST", "EXP2_WHOLE", "EXP2_PART", "EXP2_ABOVE"),
    ),
    "logarithm": (
        "logarithms, some by way of atanh",
        ("LOG", "LOG_CELL", "LOG_TAIL", "ATANH", "ATANH_WIDE", "ATANH_SHORT", "ATANH_TAIL"),
    ),
    "trigonometric": (
        "sines, cosines, tangents and their inverses",
        ("SIN", "COS", "TAN", "SIN_HALF", "SIN_SIXTEENTH", "COS_SIXTEENTH", "TAN_SIXTEENTH", "ASIN",
         "ATAN"),
    ),
    "hyperbolic": ("sinh and tanh", ("SINH", "TANH")),
    "error": (
        "error functions and their inverse",
        ("ERF", "ERF_NEAR", "ERF_TAIL", "ERF_WHOLE", "ERFC", "ERFINV", "ERFINV_FAR", "ERFINV_TAIL"),
    ),
    "gamma": ("the logarithm of the gamma function", ("LGAMMA", "STIRLING")),
    "root": ("the cube root", ("CBRT",)),
}  # fmt: skip


def printed(name):
    """The lines of one entry, and the errors on stderr."""
    formula, g, weight, kinds = FITS[name]
    errors, lines = [], []
    for dtype, (a, b, count) in kinds.items():
        if isinstance(g, dict):
            c, error = fit(g[dtype], weight[dtype], a, b, count, dtype)
        else:
            c, error = fit(g, weight, a, b, count, dtype)
        errors.append(f"{dtype} 2^{error:.1f}")
        lines.append(f'    "{dtype}": (\n{wrapped(c, 8)}\n    ),\n')
        sys.stderr.write(f"{name} {dtype} {error:.2f}\n")
    head = f"# {formula}\n# relative error: {', '.join(errors)}"
    return f"{head}\n{name} = {{\n{''.join(lines)}}}  # fmt: skip\n"


def wrapped(values, indent):
    """Several in a line."""
    text = ", ".join(map(repr, values)) + ","
    return textwrap.fill(text, 100, initial_indent=" " * indent, subsequent_indent=" " * indent)


def print_file(said, names, parts):
    """A file of constants: what it says of itself, what it lists, their lines."""
    listed = wrapped(sorted(names), 4).replace("'", '"')
    sys.stdout.write(f'"""{said}"""\n\n__all__ = [\n{listed}\n]  # fmt: skip\n\n')
    sys.stdout.write("\n".join(parts))


if __name__ == "__main__":
    about, names = FAMILIES[sys.argv[1]]
    said = f"Coefficients of polynomials for {about}, lowest first."
    print_file(said, names, map(printed, names))
