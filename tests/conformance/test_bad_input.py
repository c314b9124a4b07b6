"""Whatever is given to a public function, only funct's own errors come out, and nothing is changed.

A function either returns or raises a `FunctError`: never an AttributeError from inside, never a
MemoryError of the system, never a hang.
"""

import contextlib
import inspect
import random
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funct.array as xp
from funct.errors import FunctError

# Called with what they are for: einsum's first operand is a text, these classes are no functions.
NOT_CALLED = {"Array", "At", "Device", "Ground", "Tensor", "__array_namespace_info__"}
FUNCTIONS = sorted(
    name for name in xp.__all__ if name not in NOT_CALLED and inspect.isroutine(getattr(xp, name))
)

HUGE = (2**40, 2**62, 2**70, -(2**70))
DTYPES = ["bool", "int8", "uint64", "int64", "float32", "float64", "complex128", "bfloat16"]
SHAPES: list[Any] = [(), (0,), (1,), (3,), (2, 3), (3, 3), (2, 0, 1), (1, 2, 3)]
STRANGE: list[Any] = [None, "abc", "", [], [1, 2], [[1], [2, 3]], {}, object, 1.5, b"ab", ()]
NUMBERS: list[Any] = [True, 0, 1, -1, 7, 0.5, float("nan"), float("inf"), 1j]


def _array(rng: random.Random) -> Any:
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
    if rng.random() < 0.15:
        return rng.choice(STRANGE)
    if name in ("dtype", "type", "from_", "to", "kind"):
        return rng.choice([*map(np.dtype, ["f4", "i8", "c16"]), xp.bool, "U3", "nope", int, None])
    if name == "device":
        return rng.choice(["cpu", None, "gpu", "cuda:0", 3])
    if name in ("arrays", "condlist", "choicelist"):
        return rng.choice([(), (_array(rng),), [_array(rng), _array(rng)], _array(rng)])
    if name in _INTEGERS:
        return _integers(rng)
    if name in ("indices", "source", "x2", "sorter") and rng.random() < 0.5:
        return xp.asarray([0, _small(rng)])
    return _array(rng) if rng.random() < 0.7 else rng.choice(NUMBERS)


_INTEGERS = {
    "axis", "axes", "shape", "num", "n_rows", "n_cols", "k", "repetitions", "repeats", "shift", "n",
    "start", "stop", "step", "source", "destination", "minlength", "num_classes", "num_segments",
    "bins", "pad_width", "offset",
}  # fmt: skip


def _call(name: str, rng: random.Random) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    options: dict[str, Any] = {}
    for p in inspect.signature(getattr(xp, name)).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            args += [_argument(p.name, rng) for _ in range(rng.randrange(4))]
        elif p.kind is p.VAR_KEYWORD:
            continue
        elif p.default is p.empty:
            args.append(_argument(p.name, rng))
        elif rng.random() < 0.4:
            options[p.name] = _argument(p.name, rng)
    if any(n in options for n in _positional(name)):  # a gap among those would shift the rest
        options = {n: v for n, v in options.items() if n not in _positional(name)}
    return args, options


def _positional(name: str) -> list[str]:
    parameters = inspect.signature(getattr(xp, name)).parameters.values()
    return [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]


def _bytes(v: Any) -> Any:
    if isinstance(v, xp.Array):
        return np.array(v).tobytes()
    return [_bytes(w) for w in v] if isinstance(v, list | tuple) else None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bad_input(name: str) -> None:
    """Forty calls with arguments of every kind."""

    @settings(max_examples=40)
    @given(st.integers(0, 2**32 - 1))
    def check(seed: int) -> None:
        args, options = _call(name, random.Random(seed))
        before = _bytes([*args, *options.values()])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(FunctError):
                getattr(xp, name)(*args, **options)
        assert _bytes([*args, *options.values()]) == before

    check()
