"""Calls of SciPy by lists of names: name -> function of a positive (6, 3) array.

What SciPy lists as its functions of any namespace (`xp_capabilities_table`) and the other tables
lack. All are compared with NumPy alone; `REFUSED` write into arrays.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.cluster.hierarchy as hierarchy
import scipy.constants as constants
import scipy.fft as fft
import scipy.ndimage as ndimage
import scipy.signal as signal
import scipy.special as special
from scipy.spatial.transform import RigidTransform, Rotation, Slerp

__all__ = ["DIFFERENTIABLE", "REFUSED", "VALUES"]

Call = Callable[[Any], Any]
LINKAGES = "average centroid complete median single ward weighted"
OF_LINKAGES = "inconsistent leaves_list maxdists to_mlab_linkage"
FFTS = """hfft2 hfftn ifft ifft2 ifftn ihfft2 ihfftn irfft2 irfftn rfft2 rfftn ifftshift dct dctn
    dst dstn idct idctn idst idstn"""
FILTERS: dict[Any, tuple[str, ...]] = {
    None: ("laplace", "prewitt", "sobel", "spline_filter", "spline_filter1d"),
    3: (
        "maximum_filter",
        "maximum_filter1d",
        "median_filter",
        "minimum_filter",
        "minimum_filter1d",
        "uniform_filter",
        "uniform_filter1d",
        "grey_closing",
        "grey_dilation",
        "grey_erosion",
        "grey_opening",
        "black_tophat",
        "white_tophat",
        "morphological_gradient",
        "morphological_laplace",
    ),
    1.5: (
        "gaussian_filter1d",
        "gaussian_gradient_magnitude",
        "gaussian_laplace",
        "shift",
        "rotate",
        "fourier_gaussian",
        "fourier_shift",
        "fourier_uniform",
        "fourier_ellipsoid",
    ),
}
MEASURES = "center_of_mass extrema maximum maximum_position median minimum standard_deviation"
OF_MASKS = """binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss
    binary_opening binary_propagation distance_transform_bf distance_transform_cdt
    distance_transform_edt"""
WINDOWS = """barthann blackman blackmanharris bohman boxcar cosine exponential flattop hamming
    lanczos nuttall parzen taylor triang"""
SPECIAL = """cosm1 cosdg sindg tandg cotdg exp10 exp2 gamma gammasgn i0e i1 i1e j0 j1 k0 k0e k1 k1e
    y0 y1 zetac ellipkm1"""
OF_COUNTS = "bdtr bdtrc bdtri nbdtr nbdtrc nbdtri"


def _like(x: Any, values: Any) -> Any:
    return x.__array_namespace__().asarray(np.asarray(values))


def _wave(x: Any) -> Any:
    return _like(x, np.sin(np.arange(50.0)))


def _sections(x: Any) -> Any:
    return _like(x, signal.butter(4, 0.3, output="sos"))


def _ratio(x: Any) -> Any:
    return [_like(x, v) for v in signal.butter(3, 0.3)]


def _zeros_and_poles(x: Any) -> Any:
    return [_like(x, v) for v in signal.butter(4, 0.3, output="zpk")]


def _rotations(x: Any) -> Rotation:
    return Rotation.from_quat(_like(x, [[0.1, 0.2, 0.3, 0.9], [0.5, 0.5, 0.1, 0.2]]))


def _motions(x: Any) -> RigidTransform:
    return RigidTransform.from_components(x[:2, :], _rotations(x))


def _named(module: Any, names: str, *args: Any, part: Any = lambda x: x) -> dict[str, Call]:
    """module.name(part(x), *args) by name; the first of several results."""

    def call(name: str) -> Call:
        def run(x: Any) -> Any:
            out = getattr(module, name)(part(x), *args)
            return out[0] if isinstance(out, tuple) else out

        return run

    return {f"{module.__name__.rpartition('.')[2]}.{n}": call(n) for n in names.split()}


def _window(name: str) -> Call:
    return lambda x: getattr(signal.windows, name)(9, xp=x.__array_namespace__()) * x[0, 0]


def _count(name: str) -> Call:
    return lambda x: getattr(special, name)(
        _like(x, np.full((6, 3), 2)), _like(x, np.full((6, 3), 5)), x / 4.0
    )


DIFFERENTIABLE: dict[str, Call] = {}
VALUES: dict[str, Call] = {
    **_named(hierarchy, LINKAGES),
    **_named(hierarchy, OF_LINKAGES, part=hierarchy.linkage),
    **_named(fft, FFTS),
    **_named(ndimage, MEASURES),
    **_named(ndimage, OF_MASKS, part=lambda x: x > 0.8),
    **{
        k: f
        for size, names in FILTERS.items()
        for k, f in _named(ndimage, " ".join(names), *([size] if size else [])).items()
    },
    **_named(special, SPECIAL, part=lambda x: x / 4.0),
    **{f"special.{n}": _count(n) for n in OF_COUNTS.split()},
    **{f"windows.{n}": _window(n) for n in WINDOWS.split()},
    "constants.temperature": lambda x: constants.convert_temperature(x, "C", "F"),
    "constants.lambda2nu": constants.lambda2nu,
    "hierarchy.optimal_leaf_ordering": lambda x: hierarchy.optimal_leaf_ordering(
        hierarchy.linkage(x), x
    ),
    "ndimage.affine": lambda x: ndimage.affine_transform(x, _like(x, [[1.0, 0.1], [0.0, 1.0]])),
    "ndimage.coordinates": lambda x: ndimage.map_coordinates(
        x, _like(x, [[0.5, 1.0], [1.0, 1.5]])
    ),
    "ndimage.vectorized": lambda x: ndimage.vectorized_filter(
        x, x.__array_namespace__().sum, size=3
    ),
    "signal.freqz_zpk": lambda x: abs(signal.freqz_zpk(*_zeros_and_poles(x), worN=8)[1]),
    "signal.freqs": lambda x: signal.freqs(*_ratio(x), worN=_like(x, [1.0, 2.0]))[1],
    "signal.lp2bp": lambda x: signal.lp2bp_zpk(*_zeros_and_poles(x), 1.0, 0.5)[1],
    "signal.lp2hp": lambda x: signal.lp2hp_zpk(*_zeros_and_poles(x), 2.0)[1],
    "signal.zpk2sos": lambda x: signal.zpk2sos(*_zeros_and_poles(x)),
    "signal.tf2sos": lambda x: signal.tf2sos(*_ratio(x)),
    "signal.sos2zpk": lambda x: signal.sos2zpk(_sections(x))[1],
    "signal.sosfilt_zi": lambda x: signal.sosfilt_zi(_sections(x)),
    "signal.firls": lambda x: signal.firls(
        5, _like(x, [0.0, 0.3, 0.5, 1.0]), _like(x, [1.0, 1.0, 0.0, 0.0])
    ),
    "signal.convolve2d": lambda x: signal.convolve2d(x, x[:2, :]),
    "signal.correlate2d": lambda x: signal.correlate2d(x, x[:2, :], mode="same"),
    "signal.medfilt2d": signal.medfilt2d,
    "signal.order_filter": lambda x: signal.order_filter(x, _like(x, np.ones((3, 3))), 1),
    "signal.minimum_phase": lambda x: signal.minimum_phase(_like(x, signal.firwin(9, 0.4))),
    "signal.savgol_coeffs": lambda x: signal.savgol_coeffs(5, 2, xp=x.__array_namespace__()),
    "signal.argrelmax": lambda x: signal.argrelmax(_wave(x))[0],
    "signal.argrelmin wrap": lambda x: signal.argrelmin(x, axis=0, order=2, mode="wrap")[0],
    "signal.cspline1d_eval": lambda x: signal.cspline1d_eval(
        signal.cspline1d(_wave(x)), _like(x, [1.5, 2.5])
    ),
    "rotation.product": lambda x: (_rotations(x) * _rotations(x)).as_quat(),
    "rotation.power": lambda x: (_rotations(x) ** 2.0).as_matrix(),
    "rotation.apply": lambda x: _rotations(x)[0].apply(x),
    "rotation.davenport": lambda x: _rotations(x).as_davenport(
        _like(x, np.eye(3)), "extrinsic"
    ),
    "rotation.slerp": lambda x: Slerp(_like(x, [0.0, 1.0]), _rotations(x))(
        _like(x, [0.5])
    ).as_quat(),
    "motion.product": lambda x: (_motions(x) * _motions(x)).as_matrix(),
    "motion.power": lambda x: (_motions(x) ** 0.5).as_matrix(),
    "motion.dual": lambda x: RigidTransform.from_dual_quat(_motions(x).as_dual_quat()).as_matrix(),
}  # fmt: skip
REFUSED = {
    "windows.taylor", "signal.sos2zpk", "signal.sosfilt_zi", "signal.minimum_phase",
    "signal.savgol_coeffs", "rotation.davenport", "rotation.slerp", "motion.product",
    "motion.power", "motion.dual",
}  # fmt: skip
