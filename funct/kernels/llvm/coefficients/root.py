"""Coefficients of polynomials for the cube root, lowest first."""

__all__ = [
    "CBRT",
]  # fmt: skip

# (1 - e)^(-1/3) = P(e), |e| <= 0.125; where iteration starts
# relative error: f32 2^-17.8, f64 2^-17.8
CBRT = {
    "f32": (
        0.9999955296516418, 0.3333224952220917, 0.2244991511106491, 0.17540907859802246,
    ),
    "f64": (
        0.9999955366656257, 0.3333223460911106, 0.22449853433184072, 0.17541962254472568,
    ),
}  # fmt: skip
