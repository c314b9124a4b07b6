"""Kernels for CPUs, as LLVM text for the processor at hand or as numba."""
