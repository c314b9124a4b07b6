"""The record that machine code and Python share: one table gives the ctypes structure and the text.

Text says `%x = get field`, for a load from the `%front` that its function is given, `%x = at field`
for the place, and `%x = of %entry field` for the place in an entry of the table of units.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from typing import Any

__all__ = ["BINS", "GRANULE", "NUMPY", "UNIT", "Record", "expanded"]

GRANULE = 1 << 16  # bytes, in which sizes are counted
UNIT = max(1 << 13, mmap.PAGESIZE)  # bytes, in which places are counted: a block has one to spare
BINS = 4096
NUMPY = ("context", "malloc", "calloc", "realloc", "free")  # NumPy's own

_WORD, _PLACE = ("i64", ctypes.c_int64), ("ptr", ctypes.c_void_p)
_STATS = ("[2 x [3 x [4 x i64]]]", ctypes.c_int64 * 4 * 3 * 2)
_BINS = (f"[{BINS} x i32]", ctypes.c_int32 * BINS)
_FIELDS: dict[str, tuple[str, Any]] = {
    "lock": _WORD,
    "recorded": _WORD,  # whether each event is
    "base": _PLACE,  # the reserved range
    "extent": _WORD,  # and its bytes
    "table": _PLACE,  # an entry for each unit
    "least": _WORD,  # bytes of a request that is ours
    "zero_most": _WORD,  # bytes that are zeroed here
    "divisions": _WORD,  # classes in an octave, as a power of two
    "small": _WORD,  # most granules of a small block
    "keep": _WORD,  # bytes that may wait in bins
    "waiting": _WORD,  # bytes that do
    "due": _WORD,  # bytes of large blocks, handed out until now, with which Python is asked
    "miss": _PLACE,
    "answer": _PLACE,  # the function of Python's that `miss` calls
    "raised": _PLACE,  # by that, and not yet heard of
    **dict.fromkeys(NUMPY, _PLACE),
    "room": _PLACE,  # for a record of frees
    "count": _WORD,
    "length": _WORD,
    "stats": _STATS,  # small, large; blocks, bytes, requested; now, most, added, taken
    "bins": _BINS,  # first unit of each bin, + 1
}
# + 1; a number, and a bit for a block of the large pool, negative: cold; bytes
_ENTRY = {"next": "i32", "granules": "i32", "asked": "i64"}
_LARGE_BIT = 30  # granules of a block are fewer: 64 TiB


class Record(ctypes.Structure):
    """`%front` of the text."""

    _fields_ = tuple([(name, kind) for name, (_, kind) in _FIELDS.items()])


def expanded(text: str) -> str:
    """LLVM text, from text in the words above, behind the types that it uses."""
    fields = {name: (k, t) for k, (name, (t, _)) in enumerate(_FIELDS.items())}
    entries = list(_ENTRY)

    def got(found: re.Match[str]) -> str:
        name, field = found.groups()
        number, kind = fields[field]
        place = f"%{name}.at = getelementptr %front, ptr %front, i64 0, i32 {number}"
        return f"{place}\n  %{name} = load {kind}, ptr %{name}.at"

    def at(found: re.Match[str]) -> str:
        return f"= getelementptr %front, ptr %front, i64 0, i32 {fields[found[1]][0]}"

    def of(found: re.Match[str]) -> str:
        return f"= getelementptr %entry, ptr {found[1]}, i64 0, i32 {entries.index(found[2])}"

    for pattern, meaning in (
        (r"%(\w+) = get (\w+)", got), (r"= at (\w+)", at), (r"= of (%\w+) (\w+)", of),
    ):  # fmt: skip
        text = re.sub(pattern, meaning, text)
    sizes = {
        "GRANULE": GRANULE.bit_length() - 1, "UNIT": UNIT.bit_length() - 1, "BINS": BINS,
        "LARGE_BIT": _LARGE_BIT, "LARGE": 1 << _LARGE_BIT, "COUNT": (1 << _LARGE_BIT) - 1,
    }  # fmt: skip
    for name, number in sizes.items():
        text = re.sub(rf"\b{name}\b", str(number), text)
    front = ", ".join([kind for kind, _ in _FIELDS.values()])
    types = f"%front = type {{ {front} }}\n%entry = type {{ {', '.join(_ENTRY.values())} }}\n"
    return types + text
