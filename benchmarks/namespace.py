"""Every public function of `funct.array` on 16 elements, next to NumPy or SciPy.

A row is an expression. It is evaluated twice, with `xp` and the arrays of funct and with those of
NumPy; behind an arrow stands what NumPy is asked instead, where it has another name for it or none,
or gives scalars for arrays: an array that is iterated over gives 16 arrays here and 16 numbers
there, so NumPy is asked for the arrays (its own `list(x)` takes 1.2 us).
The budget is what a function of funct may cost above that.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.special

import funct.array as xp
from benchmarks import keywords
from benchmarks.timing import minima

BUDGET_US = 1.0

CHAPTERS = {
    "constants and dtypes": """
xp.__array_namespace_info__()
xp.can_cast(x, xp.float32)       => np.can_cast(x.dtype, np.float32)
xp.finfo(xp.float64)
xp.iinfo(xp.int64)
xp.isdtype(x.dtype, "real floating")
xp.result_type(x, i)
xp.result_type(x, 2.0)
""",
    "creation": """
xp.geomspace(1.0, 8.0, 16)
xp.geomspace(v, 8.0, 4)
xp.logspace(0.0, 2.0, 16)
xp.logspace(v, 2.0, 4)
xp.arange(16)
xp.arange(0.0, 4.0, 0.25)
xp.asarray(x)
xp.asarray(2.0)
xp.asarray(2.0, dtype=xp.float32)
xp.asarray([1.0, 2.0, 3.0])
xp.asarray([1.0, 2.0, 3.0], dtype=xp.float32)
xp.asarray([[1.0, 2.0], [3.0, 4.0]])
xp.asarray([z, z])
xp.asarray([x, y])
xp.asarray(raw)                  => np.array(raw)
xp.asarray(raw, dtype=xp.float32) => np.array(raw, np.float32)
xp.empty(16)
xp.empty_like(x)
xp.eye(4)
xp.from_dlpack(raw)              => np.from_dlpack(raw).copy()
xp.full(16, 2.0)
xp.full_like(x, 2.0)
xp.linspace(0.0, 1.0, 16)
xp.linspace(v, 1.0, 4)
xp.meshgrid(v, v)
xp.ones(16)
xp.ones((4, 4))
xp.ones_like(x)
xp.tril(m)
xp.triu(m)
xp.zeros(16)
xp.zeros((4, 4))
xp.zeros_like(x)
""",
    "elementwise": """
xp.allclose(x, y)
xp.angle(z)
xp.array_equal(x, x)
xp.deg2rad(x)
xp.fmax(x, y)
xp.fmin(x, y)
xp.heaviside(x, 0.5)
xp.isclose(x, y)
xp.nan_to_num(x)
xp.rad2deg(x)
xp.unwrap(x)
xp.abs(x)
xp.acos(x)
xp.acosh(x + 1.0)
xp.add(x, y)
xp.add(x, 2.0)
xp.asin(x)
xp.asinh(x)
xp.atan(x)
xp.atan2(x, y)
xp.atanh(x)
xp.bitwise_and(i, j)
xp.bitwise_invert(i)
xp.bitwise_left_shift(i, 1)
xp.bitwise_or(i, j)
xp.bitwise_right_shift(i, 1)
xp.bitwise_xor(i, j)
xp.ceil(x)
xp.clip(x, 0.2, 0.8)
xp.clip(x, max=0.8)              => np.minimum(x, 0.8)
xp.conj(x)
xp.conj(c)
xp.copysign(x, y)
xp.cos(x)
xp.cosh(x)
xp.divide(x, y)
xp.equal(x, y)
xp.erf(x)                        => scipy.special.erf(x)
xp.exp(x)
xp.expm1(x)
xp.floor(x)
xp.floor_divide(x, y)
xp.floor_divide(i, 2)
xp.fmod(x, y)
xp.greater(x, y)
xp.greater_equal(x, y)
xp.hypot(x, y)
xp.imag(c)
xp.isfinite(x)
xp.isinf(x)
xp.isnan(x)
xp.less(x, y)
xp.less_equal(x, y)
xp.log(x)
xp.log1p(x)
xp.log2(x)
xp.log10(x)
xp.logaddexp(x, y)
xp.logical_and(p, q)
xp.logical_not(p)
xp.logical_or(p, q)
xp.logical_xor(p, q)
xp.maximum(x, y)
xp.minimum(x, y)
xp.multiply(x, y)
xp.negative(x)
xp.nextafter(x, y)
xp.not_equal(x, y)
xp.positive(x)
xp.pow(x, y)
xp.pow(x, 3)
xp.real(c)
xp.reciprocal(x)
xp.remainder(x, y)
xp.round(x)
xp.select([p, q], [x, y], 0.0)
xp.sign(x)
xp.signbit(x)
xp.sin(x)
xp.sinh(x)
xp.sqrt(x)
xp.square(x)
xp.subtract(x, y)
xp.tan(x)
xp.tanh(x)
xp.trunc(x)
xp.where(p, x, y)
xp.where(p, x, 0.0)
""",
    "manipulation": """
xp.astype(x, xp.float32)
xp.broadcast_arrays(x, z)
xp.broadcast_shapes((4, 1), (4,))
xp.broadcast_to(v, (4, 4))
xp.broadcast_to(z, (16,))
xp.concat((x, y))
xp.concat((m, m, m), axis=1)
xp.expand_dims(x, axis=0)
xp.flip(x)
xp.flip(m, axis=0)
xp.kron(v, v)
xp.rot90(m)
xp.split(x, 4)
xp.split(x, [3, 9])
xp.matrix_transpose(m)
xp.moveaxis(m, 0, 1)
xp.lib.stride_tricks.sliding_window_view(x, 4) => np.lib.stride_tricks.sliding_window_view(x, 4)
xp.pad(x, 2)
xp.pad(x, (1, 2), mode="edge")
xp.permute_dims(m, (1, 0))
xp.ravel(m)
xp.repeat(x, 2)
xp.reshape(x, (4, 4))
xp.reshape(m, (-1,))
xp.roll(x, 3)
xp.roll(m, 1, axis=0)
xp.squeeze(row, axis=0)
xp.stack((x, y))
xp.stack((x, y, x), axis=1)
xp.tile(x, (2,))
xp.transpose(m)
xp.unstack(m)
""",
    "products": """
xp.einsum("ij,jk->ik", m, n)
xp.matmul(m, n)
xp.matmul(m, v)
xp.matmul(x, y)
xp.outer(v, v)
xp.tensordot(m, n, axes=1)
xp.vecdot(x, y)
""",
    "searching, sorting, sets": """
xp.argwhere(x)
xp.flatnonzero(x)
xp.intersect1d(x, y)
xp.lexsort((x, y))
xp.ravel_multi_index((i, i), (16, 16))
xp.setdiff1d(x, y)
xp.setxor1d(x, y)
xp.union1d(x, y)
xp.unravel_index(i, (4, 4))
xp.argmax(x)
xp.argmax(m, axis=1)
xp.argmin(x)
xp.argsort(x)                    => np.argsort(x, stable=True)
xp.argsort(x, descending=True)   => 15 - np.argsort(x[::-1], stable=True)[::-1]
xp.count_nonzero(x)
xp.isin(i, j)
xp.nonzero(p)
xp.searchsorted(s, y)
xp.sort(x)                       => np.sort(x, stable=True)
xp.sort(x, descending=True)      => np.sort(x, stable=True)[::-1]
xp.take(x, k)
xp.take(m, k, axis=1)
xp.take_along_axis(x, k, axis=0)
xp.top_k(x, 3)                   => highest(x, 3)
xp.unique_all(i)
xp.unique_counts(i)
xp.unique_inverse(i)
xp.unique_values(i)              => np.unique(i)
""",
    "statistics": """
xp.average(x)
xp.average(x, weights=y)
xp.correlate(x, v)
xp.nanpercentile(x, 30.0)
xp.percentile(x, 30.0)
xp.polyder(v)
xp.polyfit(x, y, 1)
xp.polyint(v)
xp.polyval(v, x)
xp.vander(v)
xp.all(p)
xp.any(p)
xp.bincount(i)
xp.convolve(x, v)
xp.corrcoef(m)
xp.cov(m)
xp.cumprod(x)
xp.cumsum(x)
xp.cumsum(m)
xp.cumulative_max(x)             => np.maximum.accumulate(x)
xp.cumulative_min(x)             => np.minimum.accumulate(x)
xp.cumulative_prod(x)
xp.cumulative_sum(x)
xp.cumulative_sum(x, include_initial=True)
xp.diff(x)
xp.digitize(y, s)
xp.gradient(x)
xp.gradient(m, axis=0)
xp.histogram(x, 4)
xp.histogram_bin_edges(x, 4)
xp.interp(y, s, x)
xp.logsumexp(x)                  => scipy.special.logsumexp(x)
xp.max(x)
xp.max(m, axis=0)
xp.mean(x)
xp.mean(m, axis=0)
xp.median(x)
xp.min(x)
xp.nanargmax(x)
xp.nanargmin(x)
xp.nancumprod(x)
xp.nancumsum(x)
xp.nanmax(x)
xp.nanmean(x)
xp.nanmedian(x)
xp.nanmin(x)
xp.nanprod(x)
xp.nanquantile(x, 0.3)
xp.nanstd(x)
xp.nansum(x)
xp.nanvar(x)
xp.one_hot(i, 16)                => (i[:, None] == np.arange(16)).astype(np.float64)
xp.prod(x)
xp.quantile(x, 0.3)
xp.segment_sum(x, i, 16)         => np.bincount(i, x, 16)
xp.std(x)
xp.sum(x)
xp.sum(m, axis=0)
xp.sum(m, axis=1, keepdims=True)
xp.trapezoid(x)
xp.var(x)
""",
    "linalg": """
xp.linalg.cholesky(h)
xp.linalg.block_diag(m, v)       => scipy.linalg.block_diag(m, v)
xp.linalg.cho_factor(h)          => (np.triu(scipy.linalg.cho_factor(h)[0]), False)
xp.linalg.cho_solve((m, True), v) => scipy.linalg.cho_solve((m, True), v)
xp.linalg.cond(m)
xp.linalg.multi_dot((m, n, v))
xp.linalg.norm(m)
xp.linalg.norm(x, 1)
xp.linalg.toeplitz(v)            => scipy.linalg.toeplitz(v)
xp.cross(t, t)
xp.linalg.cross(t, t)
xp.linalg.det(h)
xp.linalg.diagonal(m)
xp.diag(x)
xp.roots(x)
xp.linalg.eig(m)
xp.linalg.eigh(h)
xp.linalg.eigvals(m)
xp.linalg.eigvalsh(h)
xp.linalg.expm(m)                => scipy.linalg.expm(m)
xp.linalg.inv(h)
xp.linalg.lstsq(m, v)
xp.linalg.lu(m)                  => scipy.linalg.lu(m)
xp.linalg.matmul(m, n)
xp.linalg.matrix_norm(m)
xp.linalg.matrix_norm(m, ord=2)
xp.linalg.matrix_power(m, 3)
xp.linalg.matrix_rank(m)
xp.linalg.matrix_transpose(m)
xp.linalg.outer(v, v)
xp.linalg.pinv(m)
xp.linalg.qr(m)
xp.linalg.slogdet(h)
xp.linalg.solve(h, m)
xp.linalg.solve(h, v)
xp.linalg.solve_triangular(h, m) => scipy.linalg.solve_triangular(h, m)
xp.linalg.svd(m)
xp.linalg.svdvals(m)
xp.linalg.tensordot(m, n, axes=1)
xp.linalg.trace(m)
xp.linalg.vecdot(x, y)
xp.linalg.vector_norm(x)
xp.linalg.vector_norm(x, ord=3)
""",
    "fft": """
xp.fft.fft(x)
xp.fft.fft(c)
xp.fft.fft2(m)
xp.fft.ifft2(m)
xp.fft.irfft2(w)
xp.fft.rfft2(m)
xp.fft.fftfreq(16)
xp.fft.fftn(m)
xp.fft.fftshift(x)
xp.fft.hfft(c)
xp.fft.ifft(c)
xp.fft.ifftn(m)
xp.fft.ifftshift(x)
xp.fft.ihfft(x)
xp.fft.irfft(c)
xp.fft.irfftn(w)
xp.fft.rfft(x)
xp.fft.rfftfreq(16)
xp.fft.rfftn(m)
""",
    "operators": """
x + y
x + 2.0
2.0 + x
x - y
2.0 - x
x * y
x / y
2.0 / x
x // y
x % y
x ** y
x ** 2
m @ n
x @ y
i & j
i | j
i ^ j
i << 1
i >> 1
~i
-x
+x
abs(x)
x < y
x <= y
x > y
x >= y
x == y
x != y
bool(z)
int(z)
float(z)
complex(z)
operator.index(b)
x + raw
raw + x
raw * x
i // x
x // 2.0
i // 2
m @ raw.reshape(4, 4)
x + c
x + np.float64(2.0)
0.5 in x
len(x)
list(m)
list(x)                          => [x[i, ...] for i in range(16)]
np.asarray(x)
x.__array_namespace__()
x.__dlpack_device__()
""",
    "indexing": """
x[3]
x[2:5]
x[::-1]
x[...]
x[None]
m[1, 2]
m[1]
m[:, 1]
m[1:3, ::2]
m[..., 0]
m[:, None]
x[b]
x[np.int64(3)]
x[k]
x[p]
x[x > 0.5]
x[[0, 1]]
x[np.asarray([0, 1])]
c[k]
i[k]
p[k]
m[k]
m[p[:4]]
m[m > 0.5]
m[k, k]
m[k, 1]
m[1, k]
m[1:3, k]
m[:, k]
m[:, p[:4]]
m[[0, 1], [1, 2]]
m[:, [0, 1]]
x.at[3].get()                    => x[3]
x.at[k].get()                    => x[k]
x.at[3].set(1.0)                 => written(x, 3, 1.0)
x.at[2:5].set(1.0)               => written(x, slice(2, 5), 1.0)
x.at[k].set(1.0)                 => written(x, k, 1.0)
x.at[p].set(1.0)                 => written(x, p, 1.0)
m.at[1, 2].set(1.0)              => written(m, (1, 2), 1.0)
x.at[2:5].set(t)                 => written(x, slice(2, 5), t)
x.at[2:5].set([1.0, 2.0, 3.0])   => written(x, slice(2, 5), [1.0, 2.0, 3.0])
x.at[[0, 1]].set(1.0)            => written(x, [0, 1], 1.0)
x.at[k].set(t)                   => written(x, k, t)
m.at[k, k].set(1.0)              => written(m, (k, k), 1.0)
m.at[:, 1].set(v)                => written(m, (slice(None), 1), v)
c.at[2:5].set(1j)                => written(c, slice(2, 5), 1j)
i.at[2:5].set(1)                 => written(i, slice(2, 5), 1)
p.at[2:5].set(True)              => written(p, slice(2, 5), True)
x.at[3].add(1.0)                 => combined(np.add, x, 3, 1.0)
x.at[2:5].add(1.0)               => combined(np.add, x, slice(2, 5), 1.0)
x.at[k].add(1.0)                 => scattered(np.add, x, k, 1.0)
x.at[p].add(1.0)                 => combined(np.add, x, p, 1.0)
x.at[k].add(t)                   => scattered(np.add, x, k, t)
m.at[k, k].add(1.0)              => scattered(np.add, m, (k, k), 1.0)
m.at[:, 1].add(v)                => combined(np.add, m, (slice(None), 1), v)
i.at[k].add(1)                   => scattered(np.add, i, k, 1)
c.at[k].add(1j)                  => scattered(np.add, c, k, 1j)
x.at[k].multiply(2.0)            => scattered(np.multiply, x, k, 2.0)
x.at[k].divide(2.0)              => scattered(np.divide, x, k, 2.0)
x.at[2:5].multiply(2.0)          => combined(np.multiply, x, slice(2, 5), 2.0)
x.at[2:5].divide(2.0)            => combined(np.divide, x, slice(2, 5), 2.0)
x.at[2:5].power(2.0)             => combined(np.power, x, slice(2, 5), 2.0)
x.at[2:5].min(0.5)               => combined(np.minimum, x, slice(2, 5), 0.5)
x.at[2:5].max(0.5)               => combined(np.maximum, x, slice(2, 5), 0.5)
""",
    "methods and attributes": """
m.T
p.all()
p.any()
x.argmax()
x.argmin()
x.argsort()                      => x.argsort(stable=True)
x.astype(xp.float32)
x.astype(float)
i.astype(xp.float64)
x.clip(0.2, 0.8)
x.concrete()                     => x
x.conj()
x.conjugate()                    => x.conj()
x.copy()
x.cumprod()
x.cumsum()
m.cumsum()
m.cumsum(axis=0)
x.data                           => x
x.device
x.dot(y)
m.dot(n)
m.dot(v)
x.dtype
m.flat                           => m.reshape(-1)
m.flatten()
x.view(xp.complex128)
c.view(xp.float64)
c.imag
x.is_contiguous()                => x.flags.c_contiguous
z.item()
x.level                          => None
m.mT
x.max()
x.mean()
x.min()
x.ndim
p.nonzero()
x.prod()
x.ptp()                          => xp.ptp(x)
m.ravel()
c.real
x.repeat(2)
x.reshape(4, 4)
x.reshape((4, 4))
x.round()
x.round(1)
s.searchsorted(y)
x.shape
x.size
row.squeeze()
x.std()
x.var()
x.flat
x.strides
x.itemsize
x.nbytes
x.sum()
m.sum(axis=0)
m.swapaxes(0, 1)
x.take(k)
m.take(k, axis=1)
x.to_device("cpu")
x.tolist()
m.transpose()
""",
}  # fmt: skip


def rows() -> dict[str, list[tuple[str, str]]]:
    """For each chapter, what funct is asked and what NumPy is."""
    found = {}
    for chapter, text in (CHAPTERS | keywords.CHAPTERS).items():
        pairs = [line.partition("=>")[::2] for line in text.strip().splitlines()]
        found[chapter] = [
            (a.strip(), b.strip() or a.strip().replace("xp.special", "scipy.special"))
            for a, b in pairs
        ]
    return found | {"special": _special()}


# Operands of functions that take integers or options; all others take arrays alone.
_SPECIAL = {
    "bdtr": "1.0, 5, x", "bdtrc": "1.0, 5, x", "bdtri": "1.0, 5, x", "comb": "5.0, x",
    "expn": "2, x", "factorial": "x", "ivp": "1.0, x", "jn": "1, x", "jvp": "1.0, x", "kn": "1, x",
    "kvp": "1.0, x", "lambertw": "x", "log_softmax": "x", "logsumexp": "x", "lpmv": "1, 2.0, x",
    "multigammaln": "x + 1.0, 2", "nbdtr": "1, 5, x", "nbdtrc": "1, 5, x", "nbdtri": "1, 5, x",
    "pdtri": "1, x", "perm": "5.0, x", "polygamma": "1, x", "sinc": "x", "softmax": "x",
    "softplus": "x", "spherical_in": "1, x", "spherical_jn": "1, x", "spherical_kn": "1, x",
    "spherical_yn": "1, x", "yn": "1, x", "yvp": "1.0, x", "zeta": "x + 1.0, y",
}  # fmt: skip


def _special() -> list[tuple[str, str]]:
    """SciPy's names, called with as many arrays as they take."""
    found = []
    for name in xp.special.__all__:
        count = len(inspect.signature(getattr(xp.special, name)).parameters)
        given = _SPECIAL.get(name) or ", ".join("xyxy"[:count])
        found.append((f"xp.special.{name}({given})", f"scipy.special.{name}({given})"))
    return found


def written(x: Any, key: Any, v: Any) -> Any:
    """A copy of x with v at key."""
    out = x.copy()
    out[key] = v
    return out


def combined(ufunc: Any, x: Any, key: Any, v: Any) -> Any:
    """A copy of x with v combined at a key that selects no element twice."""
    out = x.copy()
    out[key] = ufunc(out[key], v)
    return out


def scattered(ufunc: Any, x: Any, key: Any, v: Any) -> Any:
    """A copy of x with v combined at an array of positions."""
    out = x.copy()
    ufunc.at(out, key, v)
    return out


def highest(x: Any, k: int) -> tuple[Any, Any]:
    """The k largest elements in descending order, and where they are."""
    at = x.shape[0] - 1 - np.argsort(x[::-1], stable=True)[: -k - 1 : -1]
    return x[at], at


def operands() -> dict[str, Any]:
    """The arrays that the rows speak of."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.1, 0.9, (2, 16))
    m, n = rng.uniform(0.1, 0.9, (2, 4, 4))
    i, j = rng.integers(0, 16, (2, 16))
    return {
        "x": x, "y": y, "m": m, "n": n, "i": i, "j": j, "p": x > 0.5, "q": y > 0.5,
        "c": x + 1j * y, "w": m + 1j * n, "s": np.sort(x), "v": x[:4].copy(), "t": x[:3].copy(),
        "h": m @ m.T + np.eye(4), "k": np.asarray([0, 3, 1]), "row": x.reshape(1, 16).copy(),
        "z": np.asarray(0.5), "b": np.asarray(3),
        "f": x.astype("f4"), "g": y.astype("f4"), "mf": m.astype("f4"),
        "vf": np.sort(x[:4]).astype("f4"),
        "hf": (m @ m.T + np.eye(4)).astype("f4"), "mi": i.reshape(4, 4), "u": i.astype("u1"),
        "d": (x + 1j * y).astype("c8"),
        "a": (m + 1j * n) @ (m.T - 1j * n.T) + np.eye(4),
    }  # fmt: skip


def scope(theirs: bool) -> dict[str, Any]:
    """The names that rows use, with NumPy's arrays or with funct's."""
    given = operands()
    return {
        **(given if theirs else {name: xp.asarray(a) for name, a in given.items()}),
        "raw": given["x"], "xp": np if theirs else xp, "np": np, "scipy": scipy,
        "operator": operator, "written": written, "combined": combined, "scattered": scattered,
        "highest": highest,
    }  # fmt: skip


def call(expression: str, theirs: bool) -> Callable[[], Any]:
    """What evaluates an expression, on NumPy's arrays or on funct's."""
    found: Callable[[], Any] = eval("lambda: " + expression, scope(theirs))
    return found


def run(only: str = "", rounds: int = 40, round_s: float = 0.002) -> str:
    """The table, and what of it lies above the budget; only: a pattern of expressions."""
    head = f"{'16 elements [us]':36s}{'numpy':>9s}{'funct':>9s}{'above':>9s}{'ratio':>8s}"
    lines, over = [head, "-" * len(head)], []
    for chapter, pairs in rows().items():
        asked = [pair for pair in pairs if re.search(only, pair[0])]
        if asked:
            lines += ["", chapter]
        for ours, theirs in asked:
            calls = {"numpy": call(theirs, True), "funct": call(ours, False)}
            best = minima(calls, rounds, round_s)
            if best["funct"] - best["numpy"] > BUDGET_US:  # or the machine had other work
                again = minima(calls, 4 * rounds, round_s)
                best = {name: min(best[name], again[name]) for name in best}
            above = best["funct"] - best["numpy"]
            ratio = best["funct"] / best["numpy"]
            cells = f"{best['numpy']:9.2f}{best['funct']:9.2f}{above:9.2f}{ratio:8.2f}"
            lines.append(f"  {ours:34s}{cells}")
            if above > BUDGET_US:
                over.append((above, ours))
    lines += ["", f"above NumPy by more than {BUDGET_US} us: {len(over)}"]
    return "\n".join(lines + [f"{above:9.2f}  {ours}" for above, ours in sorted(over)[::-1]])
