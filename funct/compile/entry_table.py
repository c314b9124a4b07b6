"""What entries (`entry.py`) are told: a table of 64-bit words. It has a head, whose words are named
here, the specs of the inputs (dtype, rank, lengths), those of the results, and whence the program's
arguments come.
"""

from __future__ import annotations

__all__ = [
    "ARRAY", "BYTE", "BYTES", "CALLS", "COPIED", "DENSE_ONES", "GIVEN", "HEAD", "INPUTS", "NDARRAY",
    "NONE", "ONE_ORDER", "ORDERS", "PROGRAM", "RESULTS", "ROOM", "SINGLE", "SPECS_OUT", "WALK",
    "WARNS", "WHENCE",
]  # fmt: skip

INPUTS, RESULTS, GIVEN, CALLS, ARRAY, NDARRAY, NONE = range(7)
PROGRAM, WALK, BYTES, BYTE, ROOM, SINGLE, SPECS_OUT, WHENCE, WARNS, ORDERS = range(7, 17)
HEAD = 17

# What becomes of arrays that are not dense: the few elements of others are copied; they are
# refused; or all of them, and the results, lie in one order, whichever.
COPIED, DENSE_ONES, ONE_ORDER = range(3)
