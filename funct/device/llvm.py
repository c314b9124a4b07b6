"""LLVM by llvmlite, which is loaded here alone, at the first use."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["binding"]


@functools.cache
def binding() -> Any:
    """llvmlite.binding, ready to make code for this machine."""
    # 60 ms, and most programs run for seconds before they compile anything
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm
