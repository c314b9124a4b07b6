"""Kernels for CPUs, as LLVM text for the processor at hand.

Dense ones (`convolution`, `products`) are generated around one micro-kernel (`dense/tile.py`);
those whose places are data (`order`, `indexing`, `windows`, `random`), functions of elements
(`elementwise`) and most of `reductions` are loops written in Python (`loops.py`), which
`printer.py` turns into text. `calls.py`, `often.py` and `scratch.py` stand between machine code and
Python. The plain implementation of each stands in the folder of the same name beside this one.
"""
