"""Apply what a printer prints to whole arrays."""

import ctypes
import functools

import numpy as np

from funct.device import assemble
from funct.device.host import host
from funct.kernels.llvm import I64, PTR, Module, typed


def text(printer, element, operands, lanes, target=None):
    """A loop over arrays, of any length: whole vectors, then a masked one."""
    module = Module(target)
    names = [f"x{k}" for k in range(operands)]
    f = module.function("f", [("out", PTR), *[(n, PTR) for n in names], ("n", I64)])
    out, *ins, n = f.arguments
    type = typed(element, lanes)

    def body(i, _):
        values = [f.load(type, f.at(p, i, element)) for p in ins]
        f.store(printer(f, *values), f.at(out, i, element))
        return []

    whole = n - f.rem(n, lanes)
    f.loop(0, whole, lanes, body, maybe_empty=True)
    if lanes > 1:
        rest = f.first_lanes(lanes, n - whole)
        values = [f.load(type, f.at(p, whole, element), rest) for p in ins]
        f.store(printer(f, *values), f.at(out, whole, element), rest)
    f.ret()
    return module.text()


@functools.cache
def compiled(printer, element, operands, lanes, target):
    code = assemble(text(printer, element, operands, lanes, target))
    kinds = [ctypes.c_void_p] * (operands + 1) + [ctypes.c_int64]
    return code, ctypes.CFUNCTYPE(None, *kinds)(code.address("f"))


def apply(printer, *arrays, lanes=None, target=None):
    """printer(*arrays), element by element, for contiguous arrays of one dtype and length.

    target: the processor that the text is printed for, of which this one has all that it has.
    """
    element = {"float32": "f32", "float64": "f64"}[arrays[0].dtype.name]
    lanes = lanes or (target or host()).vector_bytes // arrays[0].itemsize
    out = np.empty_like(arrays[0])
    _, entry = compiled(printer, element, len(arrays), lanes, target)
    entry(out.ctypes.data, *[a.ctypes.data for a in arrays], out.size)
    return out
