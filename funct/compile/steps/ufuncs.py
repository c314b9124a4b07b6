"""Functions of each element that are a library's: the loops behind its ufuncs, by address.

So the numbers are those of eager execution. Most are SciPy's special functions.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from funct.compile.fusion.calls import Address, Call, Word
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.lower import copy, places_of
from funct.compile.steps.mended import MENDED, call_mended
from funct.device.machine_code import offer
from funct.graph import Node, Var
from funct.kernels.cpu.elementwise.ufunc_loops import Loop, generalized
from funct.kernels.elementwise.functions import power, real_ufunc
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value

__all__ = ["NUMPYS", "data_of", "is_ufunc", "loop_of_numpy", "lower_ufunc", "print_ufunc"]

NUMPYS = "numpys_"
"""Before the name of an op that is left to NumPy's loops, by which loops of ours leave it alone."""


def is_ufunc(step: Any) -> bool:
    """Whether a step is such a function, of numbers of one dtype that its library has a loop for.

    Operands have the result's shape, broadcast to it, or are Python numbers, which adopt its dtype.
    """
    if not isinstance(step, Node) or len(step.results) != 1 or step.params:
        return False
    out, raw = step.results[0], step.primitive.raw
    if _ufunc_of(raw) is None or (raw is power and not _is_plain_power(step)):
        return False
    if out.dtype.char not in "fd" or not all(isinstance(n, int) and n for n in out.shape):
        return False
    operands: Any = step.operands
    known = all(v.dtype == out.dtype if isinstance(v, Var) else _is_number(v) for v in operands)
    return known and _loop(raw, len(operands), out.dtype) is not None


def _is_number(v: Any) -> bool:
    return v.__class__ is float or (v.__class__ is int and abs(v) < 1 << 24)


def _is_plain_power(e: Node) -> bool:
    """Whether eager execution takes NumPy's function for it, and not one for a number."""
    x, y = e.operands
    if not isinstance(x, Var) or not x.shape:
        return False
    if isinstance(y, Var):
        return math.prod(y.shape) > 1
    return isinstance(y, float) and not float(2 * y).is_integer()


def _ufunc_of(raw: Any) -> Any:
    """The function whose loop eager execution runs, or what gives it; None where there is none."""
    ufunc = real_ufunc(raw)
    if ufunc is None or getattr(np, ufunc.__name__, None) is not ufunc:
        return getattr(raw, "ufunc", None)
    return ufunc


@functools.cache
def _loop(raw: Any, operands: int, dtype: np.dtype[Any]) -> Loop | None:
    """What eager execution runs for so many operands of a dtype."""
    ufunc = _ufunc_of(raw)
    ufunc = ufunc if isinstance(ufunc, np.ufunc) else ufunc()
    if not isinstance(ufunc, np.ufunc) or (ufunc.nin, ufunc.nout) != (operands, 1):
        return None
    alike = (dtype,) * operands
    try:
        chosen = ufunc.resolve_dtypes((*alike, None))
    except TypeError:
        return None
    if chosen != (*alike, dtype):
        return None
    found = generalized(ufunc, f"{dtype.char * operands}->{dtype.char}")
    if found is None or not found.function:
        return None
    name = _symbol(raw, dtype)
    offer(name, lambda: found.function)
    offer(f"{name}_data", lambda: found.data)
    return found


def loop_of_numpy(ufunc: np.ufunc, dtype: np.dtype[Any]) -> tuple[str, bool] | None:
    """The name by which machine code calls the loop of one of NumPy's functions of numbers of one
    dtype, and whether it is handed `NAME_data`; None where there is none.
    """
    found = _loop(ufunc, ufunc.nin, dtype)
    return None if found is None else (_symbol(ufunc, dtype), found.data != 0)


def _symbol(raw: Any, dtype: np.dtype[Any]) -> str:
    whose = "numpy" if isinstance(_ufunc_of(raw), np.ufunc) else "scipy"
    return f"{whose}_{raw.__name__}_of_{dtype.name}"


def lower_ufunc(node: Node, fused: Fused) -> list[Call]:
    """The call, after copies of what is not laid out like the result."""
    out = node.results[0]
    n, byte = math.prod(out.shape), out.dtype.itemsize
    calls: list[Call] = []
    places: list[Word] = []
    strides: list[Word] = []
    for v in node.operands:
        if not isinstance(v, Var):
            places.append(int(np.asarray([v, 0], out.dtype).view(np.int64)[0]))
            strides.append(0)
            continue
        size = math.prod(v.shape)
        if size in (1, n):
            added, (place,) = places_of((v,), fused)
        else:
            added, view = copy(fused.views[v].broadcast(out.shape), fused)
            place = Address(view.root, view.offset * byte)
        calls += added
        places.append(place)
        strides.append(0 if size == 1 else byte)
    raw = node.primitive.raw
    loop = _loop(raw, len(places), out.dtype)
    assert loop is not None, "asked for by `is_ufunc`"
    numbers = tuple([not isinstance(v, Var) for v in node.operands])
    kernel = ("ufunc", _symbol(raw, out.dtype), (*numbers, False), loop.data != 0)
    words = (*places, Address(out), n, *strides, byte)
    return [*calls, Call(kernel, words, 1, (out,))]


def print_ufunc(
    module: Module, name: str, loop: str, numbers: tuple[bool, ...], data: bool
) -> None:
    """Add the kernel of a function. Frame: places of operands and result, or numbers themselves;
    how many elements there are, and strides.
    """
    f = module.function(name, [("frame", PTR), ("task", I64)])
    frame, _ = f.arguments
    held = data_of(f, loop, data)
    arrays = len(numbers)
    table = f.allocate(PTR, arrays)  # which a loop may change
    for k, is_number in enumerate(numbers):
        own = f.at(frame, k, "i64")
        f.store(own if is_number else f.load(PTR, own), f.at(table, k, "i64"))
    length, strides = f.at(frame, arrays, "i64"), f.at(frame, arrays + 1, "i64")
    if loop in MENDED:
        call_mended(f, loop, table, length, strides, held)
    else:
        f.call(loop, None, [table, length, strides, held])
    f.ret()


def data_of(f: Emitter, loop: str, data: bool) -> Value:
    """What a loop is handed besides arrays."""
    if not data:
        return f.null()
    f.module.declare(f"@{loop}_data", f"declare void @{loop}_data()")  # an address
    return f.address(f"{loop}_data")
