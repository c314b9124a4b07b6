"""x[key] and iteration in machine code: what they cost besides NumPy's own indexing.

On small arrays Python's frames are that cost. `read`, `rows` and `bare` begin as Python (what is
below them, `indexing.py` and `keys.py`, is what the code falls back on); once they have been called
so often that it pays, builtin functions take their place, which do the same for the usual keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funct.array import keys
from funct.array.indexing import index, selected
from funct.array.keys_text import DTYPES, PLAIN
from funct.array.reading_text import reading_text
from funct.device import Code, printed
from funct.kernels.cpu.calls import builtin, slot
from funct.kernels.cpu.often import Often
from funct.ops import fast
from funct.ops.fast import wrap
from funct.ops.refusals import out_of_memory

__all__ = ["bare", "read", "rows"]


def _read(x: Any, key: Any) -> Any:
    """x[key] of an Array: a view, if that is possible, for nothing is traced at level 0."""
    try:
        if key.__class__ is int:
            d = x.data[key, ...]  # of no axes rather than a scalar
        elif key.__class__ is slice:
            d = x.data[key]
        else:
            d = selected(x.data, key)
    except MemoryError as error:
        raise out_of_memory("x[...]", error) from None
    except (IndexError, TypeError, ValueError, OverflowError):
        d = None
    if d is None:
        return index(x, key)  # which refuses by name
    r = fast.make(None)
    r.data = d if d.__class__ is np.ndarray else np.asarray(d)
    return r


def _rows(x: Any) -> list[Any]:
    """x[0], x[1] and so on of an Array with axes."""
    return [wrap(x.data[i, ...]) for i in range(len(x.data))]


def _load() -> None:
    """Let the code answer from now on, where this machine has any."""
    global read, rows, bare
    read, rows, bare = _read, _rows, keys.bare
    at = slot(fast.Array, "data")
    if at is not None:
        code = printed(reading_text, at).keep()
        read = _entrance("read", code, _read)
        rows = _entrance("rows", code, _rows)
        bare = _entrance("bare", code, keys.bare)


_often = Often(_load)
read = _often.counted(_read)
rows = _often.counted(_rows)
bare = _often.counted(keys.bare)


def _entrance(name: str, code: Code, miss: Callable[..., Any]) -> Callable[..., Any]:
    objects = [fast.Array, np.ndarray, tuple, list, slice, None, Exception, miss, *PLAIN, *DTYPES]
    table = np.asarray([*map(id, objects)], np.int64)
    return builtin(name, code.address(name), table, objects)
