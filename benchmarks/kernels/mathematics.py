"""Functions of vectors on 4096 numbers in the cache, in GB/s of what goes in and comes out.

funct/peer above 1 means that funct is faster; the peer of a fast function is the exact one. Errors
are in tests/kernels/llvm/test_functions.py and test_fast.py.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import scipy.special

import funct.array as xp
from benchmarks.kernels.row import Row
from benchmarks.peers import optional
from funct.device import Code, assemble, host
from funct.kernels.llvm import PTR, Module, typed
from funct.kernels.llvm.fast import FAST
from funct.kernels.llvm.functions import FUNCTIONS

TITLE = "functions of vectors, one thread [GB/s]"

COUNT = 4096
_FEW = 500  # complex numbers, of which NumPy's function is corrected
_OF_TWO = {"atan2": np.arctan2, "hypot": np.hypot, "logaddexp": np.logaddexp, "pow": np.power}
_OF_HALVES = {"copysign": np.copysign, "logical_and": np.logical_and}
_NAMES: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "log2": np.log2, "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "cbrt": np.cbrt, "erf": scipy.special.erf, "erfc": scipy.special.erfc,
    "erfinv": scipy.special.erfinv,
    "expit": scipy.special.expit, "gammaln": scipy.special.gammaln, **_OF_TWO,
}  # fmt: skip
_TORCH = {"expit": "sigmoid", "gammaln": "lgamma", "cbrt": ""}


def rows() -> Iterator[Row]:
    """Every row."""
    torch: Any = optional("torch")
    for name, numpy in _NAMES.items():
        for dtype in (np.float32, np.float64):
            given = _operands(name, dtype)
            peers: dict[str, Callable[[], object]] = {
                "numpy": lambda numpy=numpy, given=given: numpy(*given)
            }
            theirs = getattr(torch, _TORCH.get(name, name), None) if torch is not None else None
            if theirs is not None:
                tensors = [torch.asarray(x) for x in given]
                peers["torch"] = lambda theirs=theirs, tensors=tensors: theirs(*tensors)
            call = _compiled(FUNCTIONS[name], given)
            moved = given[0].nbytes * (len(given) + 1)
            yield Row(f"{name} {np.dtype(dtype).name}", moved, call, peers)
            if name in FAST:
                fast = _compiled(FAST[name], given)
                yield Row(f"fast {name} {np.dtype(dtype).name}", moved, fast, {"exact": call})
    for name, numpy in (_OF_TWO | _OF_HALVES).items():
        for half in ("float16", "bfloat16"):
            yield _of_halves(name, numpy, half)
    for power in (2, 0.5):
        for dtype in ("float16", "bfloat16", "float32"):
            yield _power(power, dtype)
    z = np.exp(np.linspace(0, 20j, _FEW)) * np.linspace(0.0, 1.0, _FEW)
    x = xp.asarray(z)
    yield Row("log1p complex128", 2 * z.nbytes, lambda: xp.log1p(x), {"numpy": lambda: np.log1p(z)})


def _power(power: float, dtype: str) -> Row:
    """x ** power, by an array's operator."""
    torch: Any = optional("torch")
    x = np.linspace(0.1, 9.0, COUNT, dtype=np.float32).astype(getattr(ml_dtypes, dtype, dtype))
    array = xp.asarray(x)
    peers: dict[str, Callable[[], object]] = {"numpy": lambda: x**power}
    if torch is not None:
        t = torch.asarray(x.astype(np.float32)).to(getattr(torch, dtype))
        peers["torch"] = lambda: t**power
    return Row(f"x ** {power} {dtype}", 2 * x.nbytes, lambda: array**power, peers)


def _of_halves(name: str, numpy: Any, dtype: str) -> Row:
    """The eager function of two arrays of halves."""
    torch: Any = optional("torch")
    given = [(v / 3).astype(getattr(ml_dtypes, dtype, dtype)) for v in _operands(name, np.float32)]
    ours, function = [xp.asarray(v) for v in given], getattr(xp, name)
    peers: dict[str, Callable[[], object]] = {"numpy": lambda: numpy(*given)}
    if torch is not None:
        theirs = getattr(torch, name)
        tensors = [torch.from_numpy(v.astype(np.float32)).to(getattr(torch, dtype)) for v in given]
        peers["torch"] = lambda: theirs(*tensors)
    return Row(f"{name} {dtype}", 3 * given[0].nbytes, lambda: function(*ours), peers)


def _operands(name: str, dtype: Any) -> list[Any]:
    low = {"acosh": 1.0, "log": 0.1, "log2": 0.1, "log10": 0.1, "pow": 0.1, "gammaln": 0.1}
    high = {"asin": 1.0, "acos": 1.0, "atanh": 1.0, "erfinv": 1.0}
    rng = np.random.default_rng(0)
    count = 2 if name in _OF_TWO or name in _OF_HALVES else 1
    return [
        rng.uniform(low.get(name, -0.9), high.get(name, 8.0), COUNT).astype(dtype)
        for _ in range(count)
    ]


def _compiled(function: Any, given: list[Any]) -> Callable[[], object]:
    """The function over the whole array, as a fused loop would print it."""
    element = {4: "f32", 8: "f64"}[given[0].itemsize]
    type = typed(element, host().vector_bytes // given[0].itemsize)
    module = Module()
    f = module.function("f", [("out", PTR), *[(f"x{k}", PTR) for k in range(len(given))]])
    out, *ins = f.arguments

    def body(i: Any, _: Any) -> list[Any]:
        values = [f.load(type, f.at(p, i, element)) for p in ins]
        f.store(function(f, *values), f.at(out, i, element))
        return []

    f.loop(0, COUNT, type.lanes, body)
    f.ret()
    code: Code = assemble(module.text())
    result = np.empty_like(given[0])
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (1 + len(given)))(code.address("f"))
    places = [a.ctypes.data for a in (result, *given)]
    return lambda keep=(code, result, given): entry(*places)
