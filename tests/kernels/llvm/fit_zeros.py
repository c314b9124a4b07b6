"""Computes the table of funct/kernels/llvm/gamma_zeros.py, which is what this prints.

    python -m tests.kernels.llvm.fit_zeros > funct/kernels/llvm/gamma_zeros.py

A row for each half of a unit left of 0: log|gamma(x)| around its zero there, or around a point
where there is none. With z = -n + r that point, d = x - z and c = log|gamma(z)|,

    log|gamma(x)| = c - log(1 + d / r) + d P(d),

where the logarithm has the pole at -n and P what is left, which is smooth.
"""

import mpmath
from mpmath import mp, mpf

from .fit import print_file, rounded, wrapped

ROWS, TERMS = 45, 22


def log_gamma(x):
    return mpmath.log(abs(mpmath.gamma(x)))


def pole(k):
    """The pole in the half unit from -(k + 1) / 2 to -k / 2."""
    return -mpf((k + 1) // 2)


def centre(k):
    """The zero of log|gamma| between -(k + 1) / 2 and -k / 2, or the middle where there is none."""
    a, b = -mpf(k + 1) / 2, -mpf(k) / 2
    if k < 4:
        return (a + b) / 2
    if k < 6:
        return mpmath.findroot(log_gamma, a + mpf("0.043") if k == 4 else a + mpf("0.252"))
    at, near = pole(k), (mpf(1) if k % 2 else mpf(-1)) / 4
    for _ in range(80):  # |x - pole| = |gamma(x) (x - pole)| at the zero
        near *= abs(mpmath.gamma(at + near))
    return at + near


def smooth(k):
    """P, and from where to where."""
    z, at = centre(k), pole(k)
    c, r, tiny = log_gamma(z), z - at, mpf(10) ** -25

    def ratio(d):
        d = next(v for v in (d, d + tiny, d + 2 * tiny) if v and v + r)
        return (log_gamma(z + d) - c + mpmath.log(1 + d / r)) / d

    return ratio, -mpf(k + 1) / 2 - z, -mpf(k) / 2 - z


def polynomial(k):
    """The polynomial that equals P at Chebyshev's points."""
    ratio, a, b = smooth(k)
    points = [
        (a + b) / 2 + (b - a) / 2 * mpmath.cos(mp.pi * (2 * j + 1) / (2 * TERMS))
        for j in range(TERMS)
    ]
    powers = mpmath.matrix([[x**j for j in range(TERMS)] for x in points])
    return list(mpmath.lu_solve(powers, mpmath.matrix([ratio(x) for x in points])))


def two(x):
    """A number as two floats."""
    high = rounded(x, "f64")
    return [float(high), float(x - high)]


def row(k):
    """Its numbers in the order in which they are read."""
    z = centre(k)
    least, *others = polynomial(k)
    value = log_gamma(z) if k < 4 else mpf(0)
    return [*two(z), *two(1 / (z - pole(k))), *two(value), *two(least), *map(float, others)]


if __name__ == "__main__":
    mp.dps = 80
    rows = "".join([f"    (\n{wrapped(row(k), 8)}\n    ),\n" for k in range(ROWS)])
    what = (
        "# z, 1 / r, c and the first coefficient, each in two parts; the other coefficients\n"
        f"GAMMA_ZEROS = (\n{rows})  # fmt: skip\n"
    )
    print_file(
        "log|gamma| around its zeros left of 0, a row for each half of a unit; tests compute it.",
        ["GAMMA_ZEROS"],
        [what],
    )
