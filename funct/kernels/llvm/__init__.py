"""Kernels as LLVM text: the emitter, and mathematics of vectors as functions of it."""

from funct.kernels.llvm.emitter import Emitter, Module, each
from funct.kernels.llvm.values import BOOL, F32, F64, I32, I64, PTR, Type, Value, typed

__all__ = [
    "BOOL", "Emitter", "F32", "F64", "I32", "I64", "Module", "PTR", "Type", "Value", "each",
    "typed",
]  # fmt: skip
