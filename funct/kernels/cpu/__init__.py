"""Kernels for CPUs, as LLVM text for the processor at hand.

Dense ones are generated (`dense/tile.py`); irregular ones are loops written in Python
(`loops.py`). The plain implementation of each stands in the folder above.
"""
