"""Special functions of ndarrays by SciPy, which is imported here alone and at the first call.

float32 stays float32 and float64 stays float64; integers are taken as float64. The 2-byte floats,
which SciPy does not know, are computed in float32 and rounded once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.dtypes import INTEGER
from funct.kernels.quiet import quiet

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "MOST_DERIVATIVES", "MOST_STEPS", "Raw", "by_name", "comb", "derivative", "erf", "erfc",
    "erfinv", "expn_slope", "find", "in_double", "in_steps", "keep_dtype", "lambertw", "numpys",
    "perm", "several", "spherical",
]  # fmt: skip

Raw = Callable[..., Any]

ndarray = np.ndarray

MOST_STEPS = 10_000_000  # which take a second
MOST_DERIVATIVES = 1000  # of a Bessel function: 2**n, by which their sum is divided, is finite

_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)
_COMPLEX = np.dtype(np.complex128)
_INT = 1 << 31  # what a C int is below
_SINGLES = {_SINGLE, np.dtype(np.complex64)}
_NARROW_INTEGERS = ("int4", "uint4")  # whose kind is that of the narrow floats


@functools.cache
def find(name: str) -> Raw:
    """SciPy's function of that name."""
    # SciPy costs 50 ms and most programs never need it, so it waits for the first call.
    import scipy.special

    found: Raw = getattr(scipy.special, name)
    return found


def lambertw(z: Any, k: Any) -> Any:
    """SciPy's on one branch; other k it cuts to an integer."""
    return find("lambertw")(z, k) if k.__class__ is int else None


def derivative(name: str) -> Raw:
    """SciPy's derivatives of a Bessel function, for which it adds up as many terms as the order."""

    def known(v: Any, z: Any, n: Any) -> Any:
        return find(name)(v, z, n) if n.__class__ is int and n <= MOST_DERIVATIVES else None

    return known


@functools.cache
def _find_ufunc(name: str) -> Raw | None:
    """The ufunc that SciPy's function of that name calls for x >= 0, if it still has one."""
    import scipy.special

    return getattr(scipy.special._ufuncs, "_" + name, None)


@functools.cache
def _ufunc_of(name: str, operands: int) -> Any:
    """The ufunc that computes SciPy's function of that name, also where SciPy is told to ask for
    the kind of its operands first, or calls it from Python; None where there is none of so many.
    """
    found: Any = find(name)
    found = getattr(found, "__wrapped__", found)
    found = found if isinstance(found, np.ufunc) else _find_ufunc(name)
    return found if found is not None and found.nin == operands else None


def spherical(name: str) -> Raw:
    """SciPy's spherical Bessel function of that name, without its way for x < 0 where none is."""

    def known(n: Any, x: Any) -> Any:
        if n.__class__ is not int and np.iscomplexobj(n):
            raise TypeError("an order is real")  # an integer of it would drop the imaginary part
        ufunc = _find_ufunc(name)
        if ufunc is not None and x.dtype.kind == "f" and x.size and x.item(x.argmin()) >= 0:
            return ufunc(n if n.__class__ is int else np.asarray(n, np.int64), x)
        return find(name)(n, x)

    general = keep_dtype(known)

    def raw(n: Any, x: Any) -> Any:
        doubles = x.__class__ is ndarray and x.dtype is _DOUBLE
        return (known if doubles and n.__class__ is int else general)(n, x)

    return raw


def _result_dtype(args: tuple[Any, ...]) -> np.dtype[Any]:
    """The floating dtype of a result; Python numbers are weak."""
    try:
        kind = np.result_type(*args)
    except TypeError:  # narrow dtypes beside others, for which NumPy has loops alone
        arrays = [np.empty(0, a.dtype) for a in args if isinstance(a, ndarray | np.generic)]
        kind = functools.reduce(np.add, arrays).dtype
    return _DOUBLE if kind.kind in "biu" or kind.name in _NARROW_INTEGERS else kind


def keep_dtype(f: Raw) -> Raw:
    """f(*arrays), called with all operands in one precision that SciPy knows."""

    @functools.wraps(f)
    def raw(*args: Any) -> Any:
        numbers = False
        for a in args:
            if a.__class__ is float or a.__class__ is int:
                numbers = True
            elif a.__class__ is not ndarray or (a.dtype is not _DOUBLE and a.dtype is not _COMPLEX):
                return _in_one_precision(f, args)
        if numbers:
            return f(*[a if a.__class__ is ndarray else np.asarray(a, _DOUBLE) for a in args])
        return f(*args)

    return raw


def _of_kind(f: Raw, kind: np.dtype[Any], args: tuple[Any, ...]) -> Any:
    """f of arrays that have one dtype."""
    if kind.num <= INTEGER:
        return f(*[a.astype(_DOUBLE) for a in args])
    if kind in _SINGLES:
        return _narrowed(f(*args), _SINGLE)
    return f(*args) if kind is _COMPLEX else _in_one_precision(f, args)


def _in_one_precision(f: Raw, args: tuple[Any, ...]) -> Any:
    doubles: list[Any] = []
    for a in args:
        if a.__class__ is ndarray and (a.dtype is _DOUBLE or a.dtype.num <= INTEGER):
            doubles.append(a.astype(_DOUBLE, copy=False))
        elif a.__class__ is float or a.__class__ is int:
            doubles.append(np.asarray(a, _DOUBLE))
        else:
            break
    else:
        return f(*doubles)
    singles: list[Any] = []
    for a in args:
        if a.__class__ is ndarray and a.dtype is _SINGLE:
            singles.append(a)
        elif a.__class__ is float or a.__class__ is int:
            singles.append(np.asarray(a, _SINGLE))
        else:
            break
    else:
        return _narrowed(f(*singles), _SINGLE)
    kind = _result_dtype(args)
    wide = np.dtype(np.float32) if kind.itemsize <= 2 else kind
    real = np.empty(0, wide).real.dtype
    y = f(*[np.asarray(a, wide if np.iscomplexobj(a) else real) for a in args])
    if kind.itemsize <= 2 and y.dtype.kind != "c":
        return y.astype(kind)
    return _narrowed(y, real)


def _narrowed(y: Any, real: np.dtype[Any]) -> Any:
    """y, real or complex, in the precision of real."""
    if y.dtype is real or (real is _SINGLE and y.dtype in _SINGLES) or y.real.dtype == real:
        return y
    return y.astype(np.result_type(real, np.complex64) if y.dtype.kind == "c" else real)


def several(name: str) -> Raw:
    """SciPy's function of that name of one array, which has several results."""

    def raw(x: Any) -> Any:
        if x.dtype.num <= INTEGER:
            x = x.astype(_DOUBLE)
        known = x.dtype is _DOUBLE or x.dtype is _COMPLEX or x.dtype in _SINGLES
        return find(name)(x) if known else None

    return raw


def in_double(operands: int) -> Callable[[Raw], Raw]:
    """f(*arrays, *static), called in float64 or complex128; the result is rounded."""

    def declare(f: Raw) -> Raw:
        @functools.wraps(f)
        def raw(*args: Any) -> Any:
            kinds = {a.dtype if a.__class__ is ndarray else None for a in args[:operands]}
            kind = kinds.pop() if len(kinds) == 1 else None
            if kind is not _DOUBLE and kind is not _SINGLE:
                kind = _result_dtype(args[:operands])
            wide = _COMPLEX if kind.kind == "c" else _DOUBLE
            doubles = [np.asarray(a, wide) for a in args[:operands]]
            if len({a.shape for a in doubles}) > 1:
                doubles = list(np.broadcast_arrays(*doubles))
            y = np.asarray(quiet().run(f, *doubles, *args[operands:]))
            return y if y.dtype is kind else y.astype(kind)

        return raw

    return declare


def by_name(
    name: str,
    operands: int,
    *,
    complex_too: bool = False,
    mended: Callable[[Raw], Raw] = lambda f: f,
) -> Raw:
    """SciPy's elementwise function of that name, for operands of any floating dtype.

    complex_too: of real operands the result is complex as well. mended: gives what is called in
    SciPy's place.
    """

    f: Raw | None = None

    def one(x: Any) -> Any:
        if f is None or x.__class__ is not ndarray:
            return general(x)
        kind = x.dtype
        return f(x) if kind is _DOUBLE else _of_kind(f, kind, (x,))

    def two(x: Any, y: Any) -> Any:
        if f is None or x.__class__ is not ndarray or y.__class__ is not ndarray:
            return general(x, y)
        kind = x.dtype
        if kind is not y.dtype:
            return general(x, y)
        return f(x, y) if kind is _DOUBLE else _of_kind(f, kind, (x, y))

    def three(x: Any, y: Any, z: Any) -> Any:
        if f is None or not x.__class__ is y.__class__ is z.__class__ is ndarray:
            return general(x, y, z)
        kind = x.dtype
        if not kind is y.dtype is z.dtype:
            return general(x, y, z)
        return f(x, y, z) if kind is _DOUBLE else _of_kind(f, kind, (x, y, z))

    def four(w: Any, x: Any, y: Any, z: Any) -> Any:
        if f is None or not w.__class__ is x.__class__ is y.__class__ is z.__class__ is ndarray:
            return general(w, x, y, z)
        kind = w.dtype
        if not kind is x.dtype is y.dtype is z.dtype:
            return general(w, x, y, z)
        return f(w, x, y, z) if kind is _DOUBLE else _of_kind(f, kind, (w, x, y, z))

    def general(*args: Any) -> Any:
        nonlocal f
        if f is None:
            if all([a.__class__ is ndarray and not a.size for a in args]):  # noqa: C419
                kind = _result_dtype(args)  # an abstract rule asks: SciPy can wait
                if kind.kind != "c":
                    kind = np.result_type(kind, np.complex64) if complex_too else kind
                    return np.empty(np.broadcast_shapes(*[a.shape for a in args]), kind)
            f = mended(find(name))
        for a in args:
            if a.__class__ is ndarray:
                if a.dtype is not _DOUBLE and a.dtype is not _COMPLEX:
                    return _in_one_precision(f, args)
            elif a.__class__ is int:
                if not -_INT < a < _INT:  # SciPy would take the last 32 bits for a count
                    return _in_one_precision(f, args)
            elif a.__class__ is not float:
                return _in_one_precision(f, args)
        return f(*args)

    raw: Any = {1: one, 2: two, 3: three, 4: four}.get(operands, general)
    raw.__name__ = name
    raw.ufunc = functools.partial(_ufunc_of, name, operands)
    return raw


def in_steps(name: str, counted: int) -> Raw:
    """SciPy's function of that name, of three operands, which takes as many steps as one of the
    first, those that are counted, is large. ValueError: for so many that they take seconds, or have
    no end.
    """
    found = by_name(name, 3)

    def raw(*args: Any) -> Any:
        for a in args[:counted]:
            size = np.abs(a)
            if ((size > MOST_STEPS) & (size < np.inf)).any():
                most = f"parameters must be {MOST_STEPS:,} at most, for the steps they take"
                raise ValueError(f"{most}, got {np.max(size[size < np.inf])}")
        return found(*args)

    raw.__name__ = name
    return raw


def numpys(ufunc: Any, name: str) -> Raw:
    """SciPy's function of that name, of real numbers NumPy's, which is vectors where SciPy's is
    one number after the other.
    """
    general = by_name(name, 1)

    def raw(x: Any) -> Any:
        if x.__class__ is ndarray and (x.dtype is _SINGLE or x.dtype is _DOUBLE):
            return ufunc(x)
        return general(x)

    told: Any = raw
    told.__name__ = name
    told.ufunc = lambda: ufunc
    return raw


def comb(n: Any, k: Any) -> Any:
    """Number of choices of k out of n things; 0 unless 0 <= k <= n."""
    inside = (k >= 0) & (k <= n)
    if np.count_nonzero(inside) == np.size(inside):
        return find("binom")(n, k)
    return np.where(inside, find("binom")(n, k), 0.0)


def perm(n: Any, k: Any) -> Any:
    """Number of ordered choices of k out of n things; 0 unless 0 <= k <= n."""
    inside = (k >= 0) & (k <= n)
    if np.count_nonzero(inside) == np.size(inside):
        return find("poch")(n - k + 1.0, k)
    return np.where(inside, find("poch")(n - k + 1.0, k), 0.0)


def erf(x: NDArray[Any], /) -> NDArray[Any]:
    """Error function, 2/√π ∫₀ˣ exp(−t²) dt, of each element."""
    return _erf(x)


def erfc(x: NDArray[Any], /) -> NDArray[Any]:
    """Complementary error function, 1 − erf(x), without cancellation for large x."""
    return _erfc(x)


def erfinv(x: NDArray[Any], /) -> NDArray[Any]:
    """Inverse of erf. ±inf at ±1, NaN outside [−1, 1]; ±0 at ±0, where SciPy gives 0."""
    y = _erfinv(x)
    return np.copysign(y, x.astype(y.dtype, copy=False))


_erf, _erfc, _erfinv = (by_name(name, 1) for name in ("erf", "erfc", "erfinv"))
for _raw in (erf, erfc):
    vars(_raw)["ufunc"] = functools.partial(_ufunc_of, _raw.__name__, 1)


def expn_slope(n: Any, x: Any, order: int) -> Any:
    """Derivative of SciPy's expn in x, (−1)ᵒʳᵈᵉʳ ∫₁^∞ e^−xt / tⁿ⁻ᵒʳᵈᵉʳ dt: DLMF 8.19.13.

    For n − order ≤ 0, where SciPy has no integral, by DLMF 8.19.1: Γ(1 − n, x) xⁿ⁻¹.
    """

    @keep_dtype
    def slope(n: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
        whole = np.trunc(n)
        left = whole - order
        below = left <= 0
        a = np.where(below, 1.0 - left, 1.0).astype(x.dtype)
        finite = np.where(x > 0, x, 1.0).astype(x.dtype)
        size = find("gamma")(a) * find("gammaincc")(a, finite) / finite**a
        at_zero = np.where(x == 0, np.inf, np.nan)
        closed = np.where(x > 0, size, at_zero)
        y = np.where(below, closed, find("expn")(np.maximum(left, 1), x)) * (-1.0) ** order
        return np.where(whole < 0, y.dtype.type(np.nan), y)

    return slope(n, x)


@in_double(1)
def exprel_slope(x: NDArray[Any], n: int) -> Any:
    """∫₀¹ tⁿ eˣᵗ dt, the n-th derivative of (eˣ − 1) / x; DLMF 13.4.1.

    SciPy's series takes as many steps as x is long; beyond 1000 all is infinite.
    """
    return find("hyp1f1")(n + 1.0, n + 2.0, np.minimum(x, 1000.0)) / (n + 1)
