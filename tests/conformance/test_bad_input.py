"""Whatever is given to a public function, only funct's own errors come out, and nothing is changed.

A function either returns or raises a `FunctError`: never an AttributeError from inside, never a
MemoryError of the system, never a hang. What is wrong with an argument is told by the function that
was called, not by one that it calls.
"""

import inspect
import math
import random
import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import optim
from funct.array import direct
from funct.array.dtypes import DTYPES as KNOWN
from funct.errors import (
    AllocationError,
    ArgumentError,
    DTypeError,
    FunctError,
    LinAlgError,
    ShapeError,
    TransformError,
    UnsupportedOperandError,
)
from funct.interop import rebind
from funct.nn import functional

PACKAGES: dict[str, Any] = {
    "xp": xp, "xp.linalg": xp.linalg, "xp.fft": xp.fft, "xp.special": xp.special,
    "functional": functional, "random": ft.random, "optim": optim, "schedule": optim.schedule,
    "rebind": rebind,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"{package}.{name}": fun
    for package, module in PACKAGES.items()
    for name in module.__all__
    if inspect.isroutine(fun := getattr(module, name)) and name != "__array_namespace_info__"
}
FUNCTIONS |= {
    f"x.{name}": getattr(xp.Array, name) for name in dir(xp.Array)
    if not name.startswith("_") and inspect.isroutine(getattr(xp.Array, name))
}  # fmt: skip

class UsersError(Exception):
    """What the user's own code raises."""


class Broken:
    """An object that fails whatever it is asked for."""

    def _fail(self, *_: Any) -> Any:
        raise UsersError

    __len__ = __iter__ = __index__ = __int__ = __float__ = __bool__ = __getitem__ = _fail


class Lying:
    """An object that answers with something else than what it was asked for."""

    def _three(self, *_: Any) -> Any:
        return "3"

    __len__ = __index__ = __int__ = __float__ = __bool__ = _three


HUGE = (2**40, 2**62, 2**70, -(2**70))
DTYPES = ["bool", "int8", "uint64", "int64", "float32", "float64", "complex128", "bfloat16"]
SHAPES: list[Any] = [(), (0,), (1,), (3,), (2, 3), (3, 3), (2, 0, 1), (1, 2, 3)]
STRANGE: list[Any] = [
    None, "abc", "", [], [1, 2], [[1], [2, 3]], {}, object, 1.5, b"ab", (), {1}, slice(None),
    [None], np.array([None, 1], object), np.array(["a"]), np.array(["2020"], "M8[D]"),
    np.longdouble(2), np.zeros(2, [("a", int)]), np.ma.array([1.0, 2.0], mask=[True, False]),
    np.arange(3.0), memoryview(b"ab"), lambda x: x, 2**70, 10**5000, -(10**5000), (10**5000,),
    [10**5000, 1.0], Decimal("1.5"), Decimal("sNaN"), Fraction(1, 3), {1, 2}, (2**62, 2**62),
    (-1, -2), math.nan, (math.nan,), True, (True, False), ..., complex(math.nan, 1.0), Broken(),
    Lying(), bytearray(b"ab"), np.array([10**5000, 1], object), range(3), frozenset({1}),
]  # fmt: skip
NUMBERS: list[Any] = [True, 0, 1, -1, 7, 0.5, float("nan"), float("inf"), 1j]


def any_array(rng: random.Random) -> Any:
    """An array of few elements, of any shape and dtype."""
    shape = rng.choice(SHAPES)
    raw = np.asarray(np.random.default_rng(rng.randrange(99)).integers(0, 4, shape))
    return xp.asarray(raw.astype(getattr(xp, rng.choice(DTYPES))))


def _small(rng: random.Random) -> int:
    return rng.choice([-4, -3, -2, -1, 0, 1, 2, 3, 4])


def _integers(rng: random.Random) -> Any:
    kind = rng.randrange(6)
    if kind < 3:
        return _small(rng)
    if kind == 3:
        return rng.choice(HUGE)
    return tuple(rng.choice([_small(rng), _small(rng), rng.choice(HUGE)]) for _ in range(kind - 2))


def _argument(name: str, rng: random.Random) -> Any:
    """A value for a parameter: now and then of its kind, now and then of none."""
    if rng.random() < 0.25:
        k = rng.randrange(len(STRANGE) + 1)
        return STRANGE[k - 1] if k else (i for i in (0, 1))  # which a call uses up
    if name in ("dtype", "type", "from_", "to", "kind"):
        return rng.choice([*map(np.dtype, ["f4", "i8", "c16"]), xp.bool, "U3", "nope", int, None])
    if name == "key":
        return ft.random.key(1) if rng.random() < 0.8 else any_array(rng)
    if name == "device":
        return rng.choice(["cpu", None, "gpu", "cuda:0", 3])
    if name in ("arrays", "condlist", "choicelist"):
        return rng.choice([(), (any_array(rng),), [any_array(rng), any_array(rng)], any_array(rng)])
    if name in _INTEGERS:
        return _integers(rng)
    if name in ("indices", "source", "x2", "sorter") and rng.random() < 0.5:
        return xp.asarray([0, _small(rng)])
    return any_array(rng) if rng.random() < 0.7 else rng.choice(NUMBERS)


_INTEGERS = {
    "axis", "axes", "shape", "num", "n_rows", "n_cols", "k", "repetitions", "repeats", "shift", "n",
    "start", "stop", "step", "source", "destination", "minlength", "num_classes", "num_segments",
    "bins", "pad_width", "offset", "dim", "kernel_size", "stride", "padding", "dilation", "groups",
    "output_size", "size", "s", "pad", "normalized_shape", "upscale_factor", "seed", "data",
    "decimals",
}  # fmt: skip


def _call(name: str, rng: random.Random) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    options: dict[str, Any] = {}
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            args += [_argument(p.name, rng) for _ in range(rng.randrange(4))]
        elif p.kind is p.VAR_KEYWORD:
            continue
        elif p.default is p.empty:
            args.append(any_array(rng) if p.name == "self" else _argument(p.name, rng))
        elif rng.random() < 0.4:
            options[p.name] = _argument(p.name, rng)
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
    if any(n in options for n in positional):  # a gap among those would shift the rest
        options = {n: v for n, v in options.items() if n not in positional}
    return args, options


def _bytes(v: Any) -> Any:
    if isinstance(v, xp.Array | np.ndarray) and v.dtype != object:
        return np.array(v).tobytes()
    return [_bytes(w) for w in v] if isinstance(v, list | tuple) else None


def _dtypes(v: Any) -> set[Any]:
    return {x.dtype for x in ft.tree.leaves(v) if isinstance(x, xp.Tensor)}


def is_told_by(name: str, error: FunctError) -> bool:
    """Whether the text begins with the name of what was called, or that of a package before it."""
    return re.match(rf"(\w+\.)*{re.escape(name)}(?!\w)", error.what) is not None


def _told(name: str, error: FunctError) -> bool:
    """Of errors about arguments: transforms tell theirs. Some functions have two names."""
    return is_told_by(FUNCTIONS[name].__name__, error) or isinstance(error, TransformError)


def _check(name: str, seed: int) -> None:
    """A FunctError by name, or a result that holds numbers; the arguments are what they were."""
    args, options = _call(name, random.Random(seed))
    before = _bytes([*args, *options.values()])
    told: FunctError | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = FUNCTIONS[name](*args, **options)
        except FunctError as error:
            told = error
        except UsersError:
            pass
        else:
            assert _dtypes(out) <= KNOWN
    assert told is None or _told(name, told), told.what
    assert _bytes([*args, *options.values()]) == before


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n.startswith("xp.")])
def test_bad_input(name: str) -> None:
    """Calls with arguments of every kind."""
    given(st.integers(0, 2**32 - 1))(lambda seed: _check(name, seed))()


@pytest.mark.parametrize("package", [p for p in (*PACKAGES, "x") if not p.startswith("xp")])
def test_bad_input_elsewhere(package: str) -> None:
    """The same for all functions of a package, and for the methods of arrays."""
    for name in [n for n in FUNCTIONS if n.startswith(f"{package}.")]:
        for seed in range(15):
            _check(name, seed)


def _traced(way: str, fun: Callable[..., Any], args: list[Any]) -> Any:
    """fun, whose Tensors go through a transform."""
    arrays = [a for a in args if isinstance(a, xp.Array)]

    def call(*traced: Any) -> Any:
        left = iter(traced)
        return fun(*[next(left) if isinstance(a, xp.Array) else a for a in args])

    if way == "jit":
        return ft.jit(call)(*arrays)
    if way == "vmap":
        return ft.vmap(call)(*[xp.stack([a, a]) for a in arrays])
    return ft.jvp(call, tuple(arrays), tuple([xp.zeros_like(a) for a in arrays]))


def _as_first_called(fun: Any) -> Any:
    """A public function as it is before anybody calls it: its body is printed then."""
    names = getattr(fun, "__globals__", {})
    return direct._public(names["fun"], None) if "printed" in names else fun


@pytest.mark.in_turn
@pytest.mark.parametrize("before", [_as_first_called, lambda fun: fun], ids=["first", "later"])
@pytest.mark.parametrize("way", ["jit", "vmap", "jvp"])
def test_bad_input_inside_transforms(way: str, before: Any) -> None:
    """What is refused by name eagerly is refused by name inside, with the user's line."""
    rng = random.Random(5)
    for name in [n for n in FUNCTIONS if n.startswith(("xp.", "functional."))]:
        for _ in range(3 if way == "jit" else 8):
            args, _ = _call(name, rng)
            if not any(isinstance(a, xp.Array) for a in args):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    assert _dtypes(_traced(way, before(FUNCTIONS[name]), args)) <= KNOWN
                except UsersError:
                    continue
                except FunctError as error:
                    refused = error
                else:
                    continue
            assert refused.site is not None, name
            assert _told(name, refused), refused.what


@pytest.mark.parametrize("huge", [2**40, 2**63, 2**70])
def test_sizes_that_no_array_has(huge: int) -> None:
    """They are refused at once, for what they are."""
    x, image, key = xp.ones(3), xp.ones((1, 1, 4, 4)), ft.random.key(0)
    calls: list[Callable[[], Any]] = [
        lambda: xp.repeat(xp.ones(4, dtype=xp.int4), huge) + 1,
        lambda: xp.tile(x, (huge,)) + 1,
        lambda: xp.pad(x, huge),
        lambda: xp.bincount(xp.asarray([1]), minlength=huge),
        lambda: xp.segment_sum(x, xp.asarray([0, 1, 2]), huge),
        lambda: xp.arange(huge),
        lambda: xp.linspace(0, 1, huge),
        lambda: xp.fft.fft(x, n=huge),
        lambda: xp.fft.fftfreq(huge),
        lambda: xp.split(xp.ones(0), huge),
        lambda: ft.random.uniform(key, (huge,)),
        lambda: ft.random.permutation(key, huge),
        lambda: functional.interpolate(image, huge, mode="bilinear"),
        lambda: functional.interpolate(image, scale_factor=float(huge)),
        lambda: functional.adaptive_avg_pool2d(image, huge),
        lambda: functional.pad(image, (huge, huge)),
        lambda: functional.pdist(_long(huge)[:, None]),
    ]
    for call in calls:
        with pytest.raises(AllocationError):
            call()


@pytest.mark.parametrize("axis", [Decimal("sNaN"), np.array([1, 2], object), Broken()])
def test_axes_that_refuse_to_be_compared(axis: Any) -> None:
    for method in ("diagonal", "trace"):
        with pytest.raises((FunctError, UsersError)):
            getattr(xp.ones((2, 3)), method)(axis2=axis)


@pytest.mark.parametrize("huge", [2**31, 2**70])
@pytest.mark.parametrize("name", ["jvp", "yvp", "ivp", "kvp"])
def test_orders_of_derivatives_that_would_be_added_up_for_ever(name: str, huge: int) -> None:
    fun = getattr(xp.special, name)
    for f in (fun, ft.jit(fun, static_argnums=2)):
        with pytest.raises(ArgumentError, match=f"{name}: n must be 1000 at most"):
            f(0.5, xp.ones(3), huge)


def _long(n: int, value: float = 1.0) -> Any:
    """An array of n elements, which are one in memory."""
    return xp.broadcast_to(xp.asarray(value), (n,))


def test_results_that_no_array_is() -> None:
    """Operands may be there where what is made of them cannot be."""
    x, i = _long(2**40), _long(2**59, 1)
    calls: list[Callable[[], Any]] = [
        lambda: x[:, None] + x,
        lambda: x[:, None] @ x[None],
        lambda: xp.einsum("i,j->ij", x, x),
        lambda: xp.linalg.outer(x, x),
        lambda: xp.kron(x, x),
        lambda: xp.meshgrid(*[xp.ones(1000)] * 12),
        lambda: xp.repeat(xp.ones(4), 2**61),
        lambda: xp.tile(xp.ones(4), (2**61,)),
        lambda: xp.concat([_long(2**59)] * 40),
        lambda: xp.take(xp.ones(4), i),
        lambda: xp.ones(4)[i],
        lambda: ft.jit(lambda x: x[:, None] + x)(x),
        lambda: ft.vmap(lambda x: x + xp.ones(8))(_long(2**59)),
    ]
    for call in calls:
        with pytest.raises(AllocationError):
            call()


def test_a_window_far_longer_than_the_signal() -> None:
    """It costs no more than the elements that it meets, also where there is machine code."""
    xp.sort(xp.ones(1 << 16))  # which loads LLVM
    x, pool = xp.asarray([[[4.0, 1.0, 3.0, 2.0]]]), functional.max_pool1d
    with pytest.raises(ShapeError, match="is larger than the padded shape"):
        pool(x, 2**40)
    assert pool(x, 2**40, 2**40, 2**39).tolist() == [[[4.0]]]
    assert pool(x, 2**40, 1, 2**39).tolist() == [[[4.0] * 5]]


FOREIGN = [
    np.array([1, 2], object), np.array([1, 2], np.longdouble), np.array([1, 2], np.clongdouble),
    np.array([1, 2], "m8[D]"), np.array(["a", "b"]), np.longdouble(1), np.timedelta64(1, "D"),
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, v: x + v, lambda x, v: v * x, xp.maximum, lambda x, v: xp.where(x > 0, x, v),
    lambda x, v: x @ v, lambda x, v: v @ x, lambda x, v: x.at[0].set(v), xp.equal,
    lambda x, v: xp.concat([x, v]), lambda x, v: x**v,
]  # fmt: skip


@pytest.mark.parametrize("foreign", FOREIGN, ids=lambda v: str(v.dtype))
@pytest.mark.parametrize("way", ["eager", "jit", "vmap", "jvp"])
def test_foreign_dtypes_are_refused(foreign: Any, way: str) -> None:
    """NumPy's arrays of dtypes that Tensors have not are no operands, wherever they are met."""
    x = xp.asarray([1.0, 2.0])
    for fun in BINARY:
        with pytest.raises((DTypeError, UnsupportedOperandError)):
            _ = fun(x, foreign) if way == "eager" else _traced(way, fun, [x, foreign])


def test_the_other_byte_order_is_an_operand() -> None:
    """As everywhere in NumPy."""
    swapped = np.array([1.0, 2.0], ">f8")
    for fun in (lambda x: x + swapped, lambda x: swapped * x, lambda x: x @ swapped):
        out = fun(xp.asarray([3.0, 4.0]))
        assert out.dtype == np.float64
        np.testing.assert_array_equal(out, fun(np.array([3.0, 4.0])))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_matrices_that_are_not_finite(dtype: str, bad: float) -> None:
    """LAPACK's iterations would run without end on some of them."""
    a = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(dtype)
    a[1, 0, 0] = bad
    x = xp.asarray(a)
    solve = xp.linalg.lstsq
    for fun in (xp.linalg.svd, xp.linalg.pinv, xp.linalg.eig, lambda x: solve(x[1], x[1])):
        with pytest.raises(LinAlgError, match="finite"):
            fun(x)


def test_a_refusal_names_the_argument() -> None:
    """Function, argument, what was expected, what came, the line and the transform."""
    with pytest.raises(UnsupportedOperandError) as caught:
        ft.grad(lambda x: xp.sum(functional.glu("abc") * x))(1.0)
    what, where, context = str(caught.value).splitlines()[:3]
    assert what == "glu: input must be a Tensor, got str"
    assert "test_bad_input.py" in where
    assert context == "  under grad"


X, IDS, KEY = xp.asarray(np.arange(6.0).reshape(2, 3)), xp.asarray([0, 1, 0]), ft.random.key(0)
# What is called, with what it must be told in: its own name, and what came.
BELOW_ZERO: dict[str, Callable[[], Any]] = {
    "bincount: minlength": lambda: xp.bincount(IDS, minlength=-1),
    "diff: n": lambda: xp.diff(X, n=-1),
    "eye: shape": lambda: xp.eye(-1),
    "geomspace: num": lambda: xp.geomspace(1.0, 2.0, -1),
    "linspace: num": lambda: xp.linspace(0.0, 1.0, -1),
    "logspace: num": lambda: xp.logspace(0.0, 1.0, -1),
    "one_hot: num_classes": lambda: xp.one_hot(IDS, -1),
    "random.choice: a": lambda: ft.random.choice(KEY, -1),
    "random.permutation: x": lambda: ft.random.permutation(KEY, -1),
    "random.split: shape": lambda: ft.random.split(KEY, -1),
    "repeat: repeats": lambda: xp.repeat(X, -1),
    "segment_sum: num_segments": lambda: xp.segment_sum(X[0], IDS, -1),
    "tile: repetitions": lambda: xp.tile(X, (-1,)),
    "vander: order": lambda: xp.vander(X[0], -1),
    "zeros: shape": lambda: xp.zeros(-1),
}
UNLIKE: dict[str, Callable[[], Any]] = {
    r"clip: shapes \(2, 3\) and \(2,\)": lambda: xp.clip(X, xp.ones(2), 2.0),
    r"clip: shapes \(2, 3\) and \(4, 3\)": lambda: xp.clip(X, 0.0, xp.ones((4, 3))),
    r"random.bernoulli: shapes \(4,\) and \(3,\)": lambda: ft.random.bernoulli(
        KEY, xp.full(4, 0.5), shape=(3,)
    ),
    r"random.bernoulli: p of shape \(2, 1\) does not broadcast to \(3,\)": (
        lambda: ft.random.bernoulli(KEY, xp.full((2, 1), 0.5), shape=(3,))
    ),
    r"trapezoid: x must have y's shape \(2, 3\) or \(3,\), got \(4,\)": lambda: xp.trapezoid(
        X, xp.arange(4.0)
    ),
}


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eagerly", "jit"])
@pytest.mark.parametrize("told", BELOW_ZERO)
def test_fewer_than_none_are_refused(told: str, way: Any) -> None:
    """By the function that was called, and not by an op that it calls."""
    with pytest.raises(FunctError, match=rf"^{told} must not be negative, got .*-1"):
        way(BELOW_ZERO[told])()


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eagerly", "jit"])
@pytest.mark.parametrize("told", UNLIKE)
def test_shapes_that_do_not_fit_are_told_as_they_were_given(told: str, way: Any) -> None:
    with pytest.raises(ShapeError, match=f"^{told}"):
        way(UNLIKE[told])()


LONG = 10**5000  # which Python does not write
TOO_LONG: dict[str, Callable[[], Any]] = {
    "zeros": lambda: xp.zeros(LONG),
    "zeros ": lambda: xp.zeros((-LONG, 2)),
    "arange": lambda: xp.arange(LONG),
    "sum": lambda: xp.sum(X, axis=LONG),
    "reshape": lambda: xp.reshape(X, (LONG,)),
    "take": lambda: xp.take(X, IDS, axis=-LONG),
    "asarray": lambda: xp.asarray(LONG),
    "random.key": lambda: ft.random.key(LONG),
    "random.uniform": lambda: ft.random.uniform(KEY, (LONG,)),
    "softmax": lambda: functional.softmax(X, dim=LONG),
    "diag": lambda: xp.diag(X[0], LONG),
    "x[...]": lambda: X[LONG],
    "x.at[...].set": lambda: X.at[-LONG].set(1.0),
}


@pytest.mark.parametrize("way", [lambda f: f, ft.jit], ids=["eagerly", "jit"])
@pytest.mark.parametrize("name", TOO_LONG)
def test_ints_that_python_does_not_write(name: str, way: Any) -> None:
    """They are told by their length, and by the function that was called."""
    with pytest.raises(FunctError, match=r"an int of 166\d\d bits") as caught:
        way(TOO_LONG[name])()
    assert is_told_by(name.strip().removeprefix("random."), caught.value)


def test_a_step_of_any_length() -> None:
    """What is left of such a range is its start."""
    for call in (lambda f: f(), lambda f: ft.jit(f)()):
        for stop, step, left in ((5, LONG, [0]), (-5, -LONG, [0]), (0, LONG, []), (5, -LONG, [])):
            found = call(lambda stop=stop, step=step: xp.arange(0, stop, step))
            assert found.dtype == np.int64
            assert found.tolist() == left


def test_a_list_in_itself_is_refused() -> None:
    """As any that is nested deeper than an array has axes, alone and beside arrays."""
    endless: list[Any] = []
    endless.append(endless)
    for call in (
        lambda: xp.asarray(endless), lambda: xp.asarray([xp.ones(1), endless]),
        lambda: xp.concat(endless), lambda: xp.allclose(endless, X),
        lambda: ft.jit(lambda x: xp.stack([x, xp.asarray([x, endless])]))(X),
    ):  # fmt: skip
        with pytest.raises(ShapeError, match="nested deeper than the 64 axes"):
            call()


def test_errors_of_the_users_own_code_stay_as_they_are() -> None:
    """What a callback raises is not for us to name."""

    def distance(x: Any, y: Any) -> Any:
        raise ValueError("mine")

    x = xp.ones((2, 3))
    with pytest.raises(ValueError, match=r"^mine$"):
        functional.triplet_margin_with_distance_loss(x, x, x, distance_function=distance)
