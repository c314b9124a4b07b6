"""What entries (`entry.py`) are told: a table of 64-bit words. It has a head, whose words are named
here, the specs of the inputs (dtype, rank, lengths), those of the results, and whence the program's
arguments come.
"""

from __future__ import annotations

__all__ = [
    "ARRAY", "BYTE", "BYTES", "CALLS", "GIVEN", "HEAD", "INPUTS", "NDARRAY", "NONE", "PROGRAM",
    "RESULTS", "ROOM", "SINGLE", "SPECS_OUT", "WALK", "WARNS", "WHENCE",
]  # fmt: skip

INPUTS, RESULTS, GIVEN, CALLS, ARRAY, NDARRAY, NONE = range(7)
PROGRAM, WALK, BYTES, BYTE, ROOM, SINGLE, SPECS_OUT, WHENCE, WARNS = range(7, 16)
HEAD = 16
