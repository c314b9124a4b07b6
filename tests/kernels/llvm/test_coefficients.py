"""Every polynomial errs by less than half an ulp of its dtype."""

import pytest

from funct.kernels.llvm import coefficients

mpmath = pytest.importorskip("mpmath")

from .fit import FITS, horner  # noqa: E402  (needs mpmath)

MOST = {"f32": 2.0**-25.4, "f64": 2.0**-54.4}
# terms, for approximations: so much more error
FEWER = {"ERF_WHOLE": 5, "EXP2_ABOVE": 4, "EXP_FAST": 8}
LOOSER = {"CBRT": 2.0**-17, "ATANH_SHORT": 2.0**-36, "EXP_SHORT": 2.0**-31}


@pytest.mark.parametrize("name", FITS)
def test_polynomial_is_as_close_as_it_says(name):
    _, g, weight, kinds = FITS[name]
    for dtype, (a, b, count) in kinds.items():
        exact, scale = (v[dtype] if isinstance(v, dict) else v for v in (g, weight))
        found = getattr(coefficients, name)[dtype]
        assert len(found) == count
        points = [a + (b - a) * (k + mpmath.mpf(1) / 3) / 50 for k in range(50)]
        worst = max(
            scale(x) * abs(horner([mpmath.mpf(c) for c in found], x) - exact(x)) for x in points
        )
        assert worst < LOOSER.get(name, MOST[dtype] * FEWER.get(name, 1))
