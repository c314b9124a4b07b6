"""Calls of SciPy on arrays of any namespace, as in `scipy_calls.py`: signals, rotations, Fourier
transforms, quadrature, interpolation, roots and derivatives.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import scipy.differentiate as differentiate
import scipy.fft as sfft
import scipy.integrate as integrate
import scipy.interpolate as interpolate
import scipy.optimize as optimize
import scipy.optimize.elementwise as elementwise
import scipy.signal as signal
from scipy.spatial.transform import RigidTransform, Rotation, Slerp

__all__ = ["DIFFERENTIABLE", "REFUSED", "VALUES"]

Call = Callable[[Any], Any]


def _namespace(x: Any) -> Any:
    return x.__array_namespace__()


def _steps(x: Any) -> Any:
    return _namespace(x).asarray([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])


def _rotated(x: Any) -> Any:
    return Rotation.from_rotvec(x).apply(x)


def _moved(x: Any) -> Any:
    return RigidTransform.from_components(x, Rotation.from_rotvec(x * 0.5))


DIFFERENTIABLE: dict[str, Call] = {
    "differentiate.derivative": lambda x: differentiate.derivative(lambda t: t * t * t, x[:, 0]).df,
    "differentiate.derivative args": lambda x: (
        differentiate.derivative(lambda t, c: _namespace(t).sin(c * t), x[:, 0], args=(x[:, 1],)).df
    ),
    "differentiate.jacobian": lambda x: differentiate.jacobian(lambda t: t * t * t, x[:, 0]).df,
    "fft.rfft": lambda x: abs(sfft.rfft(x, axis=0)),
    "fft.fftn": lambda x: abs(sfft.fftn(x)),
    "fft.irfft": lambda x: sfft.irfft(x, axis=0),
    "fft.hfft": lambda x: sfft.hfft(x, axis=0),
    "fft.fftshift": sfft.fftshift,
    "fft.fht": lambda x: sfft.fht(x[:, 0], 0.1, 0.2),
    "fft.ihfft": lambda x: abs(sfft.ihfft(x, axis=0)),
    "fft.ifft2": lambda x: abs(sfft.ifft2(x)),
    "fft.irfftn": sfft.irfftn,
    "fft.fft2 norm": lambda x: abs(sfft.fft2(x, norm="ortho")),
    "integrate.trapezoid": lambda x: integrate.trapezoid(x, axis=0),
    "integrate.cumulative_trapezoid": lambda x: integrate.cumulative_trapezoid(x, axis=0),
    "integrate.cumulative_simpson": lambda x: integrate.cumulative_simpson(x, axis=0),
    "integrate.trapezoid x": lambda x: integrate.trapezoid(
        x[:, 0], x=_namespace(x).cumulative_sum(x[:, 1])
    ),
    "integrate.romb": lambda x: integrate.romb(x[:5], axis=0),
    "integrate.fixed_quad": lambda x: integrate.fixed_quad(
        lambda t: _namespace(x).sum(x[:, 0]) * t**2, x[0, 0], x[1, 0]
    )[0],
    "integrate.tanhsinh": lambda x: (
        integrate.tanhsinh(lambda t: t**2 * _namespace(t).exp(-t), x[:, 0] * 0.0, x[:, 0]).integral
    ),
    "integrate.tanhsinh args": lambda x: (
        integrate.tanhsinh(
            lambda t, c: _namespace(t).exp(-c * t), x[:, 0], x[:, 0] + 1, args=(x[:, 1],)
        ).integral
    ),
    "integrate.nsum": lambda x: (
        integrate.nsum(
            lambda k, c: c**k, x[:, 0] * 0 + 1.0, x[:, 0] * 0 + 6.0, args=(x[:, 0] / 4.0,)
        ).sum
    ),
    "integrate.cubature": lambda x: (
        integrate.cubature(
            lambda t: _namespace(t).exp(-t[:, 0] * t[:, 1]), x[0, :2] * 0.0, x[0, :2]
        ).estimate
    ),
    "integrate.cumulative_trapezoid x": lambda x: integrate.cumulative_trapezoid(
        x[:, 0], x=_namespace(x).cumulative_sum(x[:, 1]), initial=0
    ),
    "integrate.cumulative_simpson x": lambda x: integrate.cumulative_simpson(
        x[:, 0], x=_namespace(x).cumulative_sum(x[:, 1])
    ),
    "interpolate.RBF": lambda x: interpolate.RBFInterpolator(x[:, :2], x[:, 2])(x[:2, :2] + 0.1),
    "interpolate.RBF gaussian": lambda x: interpolate.RBFInterpolator(
        x[:, :2], x[:, 2], kernel="gaussian", epsilon=1.0
    )(x[:2, :2] + 0.1),
    "optimize.rosen": lambda x: optimize.rosen(x[:, 0]),
    "optimize.rosen_der": lambda x: optimize.rosen_der(x[:, 0]),
    "optimize.rosen_hess_prod": lambda x: optimize.rosen_hess_prod(x[:, 0], x[:, 1]),
    "optimize.find_root": lambda x: (
        elementwise.find_root(
            lambda t, c: t**2 - c, (x[:, 0] * 0, x[:, 0] * 0 + 3), args=(x[:, 0],)
        ).x
    ),
    "optimize.find_minimum": lambda x: (
        elementwise.find_minimum(
            lambda t, c: (t - c) ** 2,
            (x[:, 0] * 0 - 1, x[:, 0] + 0.2, x[:, 0] * 0 + 3),
            args=(x[:, 0],),
        ).x
    ),
    "optimize.find_minimum f": lambda x: (
        elementwise.find_minimum(
            lambda t, c: (t - c) ** 2 + c,
            (x[:, 0] * 0 - 1, x[:, 0] + 0.2, x[:, 0] * 0 + 3),
            args=(x[:, 0],),
        ).f_x
    ),
    "optimize.bracket_root": lambda x: elementwise.bracket_root(
        lambda t, c: t**2 - c, x[:, 0] * 0 + 0.1, args=(x[:, 0],)
    ).bracket[1],
    "optimize.bracket_minimum": lambda x: elementwise.bracket_minimum(
        lambda t, c: (t - c) ** 2, x[:, 0] * 0 + 0.1, args=(x[:, 0],)
    ).bracket[1],
    "optimize.rosen_hess": lambda x: optimize.rosen_hess(x[:, 0]),
    "rigid.as_matrix": lambda x: _moved(x).as_matrix(),
    "rigid.apply": lambda x: _moved(x).apply(x),
    "rigid.inv": lambda x: _moved(x).inv().as_matrix(),
    "rigid.product": lambda x: (_moved(x) * _moved(x * 0.3)).as_matrix(),
    "rigid.exp": lambda x: _moved(x).as_exp_coords(),
    "rigid.from_exp": lambda x: RigidTransform.from_exp_coords(
        _namespace(x).concat([x, x * 0.5], axis=1)
    ).as_matrix(),
    "rigid.dual": lambda x: _moved(x).as_dual_quat(),
    "rigid.pow": lambda x: (_moved(x) ** 0.5).as_matrix(),
    "rigid.mean": lambda x: _moved(x * 0.3).mean().as_matrix(),
    "rotation.from_rotvec": lambda x: Rotation.from_rotvec(x).as_matrix(),
    "rotation.apply": _rotated,
    "rotation.as_quat": lambda x: Rotation.from_euler("xyz", x).as_quat(),
    "rotation.as_rotvec": lambda x: Rotation.from_rotvec(x).as_rotvec(),
    "rotation.magnitude": lambda x: Rotation.from_rotvec(x).magnitude(),
    "rotation.product": lambda x: (
        Rotation.from_rotvec(x) * Rotation.from_rotvec(x * 0.5).inv()
    ).as_matrix(),
    "rotation.from_quat": lambda x: Rotation.from_quat(
        _namespace(x).concat([x, x[:, :1]], axis=1)
    ).as_matrix(),
    "rotation.from_matrix": lambda x: Rotation.from_matrix(
        _namespace(x).stack([x[2:5].T @ x[2:5], x[:3].T @ x[:3]])
    ).as_matrix(),
    "rotation.from_mrp": lambda x: Rotation.from_mrp(x).as_rotvec(),
    "rotation.as_mrp": lambda x: Rotation.from_rotvec(x).as_mrp(),
    "rotation.as_euler": lambda x: Rotation.from_rotvec(x).as_euler("zyx"),
    "rotation.from_davenport": lambda x: Rotation.from_davenport(
        _namespace(x).eye(3), "extrinsic", x
    ).as_matrix(),
    "rotation.pow": lambda x: (Rotation.from_rotvec(x) ** 0.5).as_rotvec(),
    "rotation.mean": lambda x: Rotation.from_rotvec(x * 0.3).mean().as_matrix(),
    "rotation.align": lambda x: Rotation.align_vectors(x, x[:, ::-1])[0].as_matrix(),
    "rotation.align rssd": lambda x: Rotation.align_vectors(x, x[:, ::-1])[1],
    "rotation.inv apply": lambda x: Rotation.from_rotvec(x).apply(x, inverse=True),
    "rotation.reduce": lambda x: Rotation.from_rotvec(x).reduce().as_rotvec(),
    "rotation.item": lambda x: Rotation.from_rotvec(x)[1:3].as_matrix(),
    "rotation.concatenate": lambda x: Rotation.concatenate(
        [Rotation.from_rotvec(x), Rotation.from_rotvec(x * 0.2)]
    ).magnitude(),
    "rotation.slerp": lambda x: Slerp(_steps(x), Rotation.from_rotvec(x))(
        _steps(x)[:4] + 0.3
    ).as_rotvec(),
    "signal.hilbert": lambda x: abs(signal.hilbert(x, axis=0)),
    "signal.fftconvolve": lambda x: signal.fftconvolve(x[:, 0], x[:3, 1]),
    "signal.resample": lambda x: signal.resample(x, 4, axis=0),
    "signal.convolve fft": lambda x: signal.convolve(x[:, 0], x[:3, 1], method="fft"),
    "signal.correlate fft": lambda x: signal.correlate(x[:, 0], x[:3, 1], method="fft"),
    "signal.fftconvolve 2d": lambda x: signal.fftconvolve(x, x[:2, :2], mode="same"),
    "signal.oaconvolve": lambda x: signal.oaconvolve(_namespace(x).tile(x[:, 0], (5,)), x[:3, 1]),
    "signal.envelope": lambda x: signal.envelope(x[:, 0], (1, 3)),
    "signal.hilbert2": lambda x: abs(signal.hilbert2(x)),
    "signal.vectorstrength": lambda x: signal.vectorstrength(x[:, 0], 3.0)[0],
    "signal.gausspulse": lambda x: signal.gausspulse(x[:, 0], 0.5),
    "signal.gauss_spline": lambda x: signal.gauss_spline(x[:, 0], 3),
    "signal.freqs": lambda x: abs(signal.freqs(x[:3, 0], x[:3, 1], x[:, 2])[1]),
    "signal.freqz": lambda x: abs(signal.freqz(x[:3, 0], x[:3, 1], worN=5)[1]),
    "signal.freqz w": lambda x: abs(signal.freqz(x[:3, 0], worN=x[:, 2])[1]),
    "signal.freqz_sos": lambda x: abs(
        signal.freqz_sos(
            _namespace(x).concat([x[0, :] * 0.1, _namespace(x).asarray([1.0, 0.1, 0.1])])[None, :],
            worN=5,
        )[1]
    ),
    "signal.tf2zpk": lambda x: signal.tf2zpk(x[:3, 0], x[:3, 1])[2],
    "signal.zpk2tf": lambda x: signal.zpk2tf(x[:2, 0], x[:3, 1], x[0, 2])[1],
    "signal.lp2lp": lambda x: signal.lp2lp(x[:3, 0], x[:3, 1], 0.7)[0],
    "signal.lp2hp": lambda x: signal.lp2hp(x[:3, 0], x[:3, 1], 0.7)[0],
    "signal.lp2bp": lambda x: signal.lp2bp(x[:3, 0], x[:3, 1], 0.7)[0],
    "signal.lp2bs": lambda x: signal.lp2bs(x[:3, 0], x[:3, 1], 0.7)[0],
    "signal.lp2lp_zpk": lambda x: signal.lp2lp_zpk(x[:2, 0], x[:3, 1], x[0, 2], 0.7)[2],
    "signal.bilinear_zpk": lambda x: signal.bilinear_zpk(x[:2, 0], x[:3, 1], x[0, 2], 2.0)[1],
    "signal.firwin": lambda x: signal.firwin(5, x[0, 0] / 4.0),
    "signal.normalize": lambda x: signal.normalize(x[:3, 0], x[:3, 1])[0],
    "signal.abcd_normalize": lambda x: signal.abcd_normalize(x[:3], x[:3, :1], x[:1], x[:1, :1])[0],
}

VALUES: dict[str, Call] = {
    "differentiate.hessian": lambda x: (
        differentiate.hessian(lambda t: _namespace(t).sum(t * t * t, axis=0), x[:3, 0]).ddf
    ),
    "fft.fftfreq": lambda x: sfft.fftfreq(6, xp=_namespace(x)),
    "fft.dct": lambda x: sfft.dct(x, axis=0),
    "integrate.simpson": lambda x: integrate.simpson(x, axis=0),
    "integrate.quad_vec": lambda x: integrate.quad_vec(lambda t: x[:, 0] * t, 0.0, 1.0)[0],
    "integrate.simpson x": lambda x: integrate.simpson(
        x[:, 0], x=_namespace(x).cumulative_sum(x[:, 1])
    ),
    "interpolate.Pchip": lambda x: interpolate.PchipInterpolator(_steps(x), x[:, 0])(
        _steps(x)[:4] + 0.3
    ),
    "interpolate.Akima": lambda x: interpolate.Akima1DInterpolator(_steps(x), x[:, 0])(
        _steps(x)[:4] + 0.3
    ),
    "interpolate.CubicSpline": lambda x: interpolate.CubicSpline(_steps(x), x[:, 0])(
        _steps(x)[:4] + 0.3
    ),
    "interpolate.Hermite": lambda x: interpolate.CubicHermiteSpline(_steps(x), x[:, 0], x[:, 1])(
        _steps(x)[:4] + 0.3
    ),
    "interpolate.make_interp_spline": lambda x: interpolate.make_interp_spline(_steps(x), x[:, 0])(
        _steps(x)[:4] + 0.3
    ),
    "interpolate.make_smoothing_spline": lambda x: interpolate.make_smoothing_spline(
        _steps(x), x[:, 0]
    )(_steps(x)[:4] + 0.3),
    "interpolate.RegularGrid": lambda x: interpolate.RegularGridInterpolator(
        (_steps(x), _steps(x)[:3]), x
    )(_namespace(x).asarray([[0.5, 0.5], [2.2, 1.1]])),
    "interpolate.PPoly": lambda x: interpolate.PPoly(x[:, :2], _steps(x)[:3])(_steps(x)[:2] + 0.5),
    "interpolate.BSpline": lambda x: interpolate.BSpline(_steps(x), x[:4, 0], 1)(
        _steps(x)[1:3] + 0.5
    ),
    "interpolate.BarycentricInterpolator": lambda x: interpolate.BarycentricInterpolator(
        _steps(x), x[:, 0]
    )(_steps(x)[:4] + 0.3),
    "interpolate.AAA": lambda x: interpolate.AAA(_steps(x), x[:, 0])(_steps(x)[:4] + 0.3),
    "interpolate.interp1d": lambda x: interpolate.interp1d(_steps(x), x[:, 0])(_steps(x)[:4] + 0.3),
    "signal.windows.hann": lambda x: signal.windows.hann(7, xp=_namespace(x)),
    "signal.windows.kaiser": lambda x: signal.windows.kaiser(7, 2.0, xp=_namespace(x)),
    "signal.windows.gaussian": lambda x: signal.windows.gaussian(7, 2.0, xp=_namespace(x)),
    "signal.windows.tukey": lambda x: signal.windows.tukey(7, 0.5, xp=_namespace(x)),
    "signal.windows.chebwin": lambda x: signal.windows.chebwin(8, 60, xp=_namespace(x)),
    "signal.windows.taylor": lambda x: signal.windows.taylor(8, xp=_namespace(x)),
    "signal.convolve": lambda x: signal.convolve(x[:, 0], x[:3, 1]),
    "signal.medfilt": lambda x: signal.medfilt(x, 3),
    "signal.detrend": lambda x: signal.detrend(x, axis=0, type="constant"),
    "signal.detrend linear": lambda x: signal.detrend(x, axis=0),
    "signal.detrend const": lambda x: signal.detrend(x, axis=0, type="constant"),
    "signal.group_delay": lambda x: signal.group_delay((x[:3, 0], x[:3, 1]), w=5)[1],
    "signal.bilinear": lambda x: signal.bilinear(x[:3, 0], x[:3, 1])[0],
    "signal.kaiser_beta": lambda x: signal.kaiser_beta(x[0, 0] * 30),
    "signal.savgol": lambda x: signal.savgol_filter(x[:, 0], 3, 1),
    "signal.resample_poly": lambda x: signal.resample_poly(x[:, 0], 2, 1),
    "signal.upfirdn": lambda x: signal.upfirdn(x[:3, 0], x[:, 1], 2),
    "signal.lfilter": lambda x: signal.lfilter(x[:3, 0], x[:3, 1], x[:, 2]),
    "signal.lfilter_zi": lambda x: signal.lfilter_zi(x[:3, 0], x[:3, 1]),
    "signal.filtfilt": lambda x: signal.filtfilt(
        x[:2, 0], _namespace(x).asarray([1.0, 0.1]), _namespace(x).tile(x[:, 1], (3,))
    ),
    "signal.deconvolve": lambda x: signal.deconvolve(x[:, 0], x[:3, 1])[0],
    "signal.wiener": lambda x: signal.wiener(x, 3),
    "signal.cspline1d": lambda x: signal.cspline1d(x[:, 0]),
    "signal.czt": lambda x: abs(signal.czt(x[:, 0], 8)),
    "signal.periodogram": lambda x: signal.periodogram(x[:, 0])[1],
    "signal.welch": lambda x: signal.welch(x[:, 0], nperseg=4)[1],
    "signal.csd": lambda x: abs(signal.csd(x[:, 0], x[:, 1], nperseg=4)[1]),
    "signal.stft": lambda x: abs(signal.stft(x[:, 0], nperseg=4)[2]),
    "signal.chirp": lambda x: signal.chirp(x[:, 0], 1.0, 2.0, 3.0),
    "signal.sawtooth": lambda x: signal.sawtooth(x[:, 0]),
    "signal.square": lambda x: signal.square(x[:, 0]),
    "signal.sweep_poly": lambda x: signal.sweep_poly(x[:, 0], x[:3, 1]),
    "signal.decimate": lambda x: signal.decimate(_namespace(x).tile(x[:, 0], (6,)), 2, ftype="fir"),
    "signal.lombscargle": lambda x: signal.lombscargle(_steps(x), x[:, 0], x[:, 1]),
}

# SciPy writes into its arrays here, which a Tensor refuses: these need the handles of `rebind`.
REFUSED = {
    "differentiate.derivative", "differentiate.derivative args", "differentiate.hessian",
    "differentiate.jacobian", "integrate.cumulative_simpson", "integrate.cumulative_simpson x",
    "integrate.nsum", "integrate.tanhsinh", "integrate.tanhsinh args", "interpolate.Akima",
    "interpolate.Pchip", "optimize.bracket_minimum", "optimize.bracket_root",
    "optimize.find_minimum", "optimize.find_minimum f", "optimize.find_root", "optimize.rosen_der",
    "optimize.rosen_hess", "optimize.rosen_hess_prod", "rigid.apply", "rigid.as_matrix",
    "rigid.dual", "rigid.exp", "rigid.from_exp", "rigid.inv", "rigid.mean", "rigid.pow",
    "rigid.product", "rotation.align", "rotation.align rssd", "rotation.as_euler",
    "rotation.as_quat", "rotation.from_davenport", "rotation.from_matrix", "rotation.product",
    "rotation.slerp", "signal.deconvolve", "signal.envelope", "signal.hilbert", "signal.hilbert2",
    "signal.lp2bp", "signal.lp2bs", "signal.lp2hp", "signal.oaconvolve",
    "signal.resample", "signal.savgol", "signal.windows.chebwin",
    "signal.windows.taylor",
}  # fmt: skip
if np.lib.NumpyVersion(scipy.__version__) >= "1.18.0":  # which writes in more of them
    REFUSED |= {"signal.lfilter_zi", "signal.sawtooth", "signal.square"}
