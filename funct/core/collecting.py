"""Python's collector of cycles looks at new objects seldom while code is made.

To capture a function and to make its code takes tens of thousands of objects that live on. The
collector would look at them time and again, and find nothing. A collector that is off, or asked for
by name, does what it did.

    with seldom:
        ...
"""

from __future__ import annotations

import gc

from funct.device.meanwhile import Meanwhile

__all__ = ["seldom"]

_MANY = 1 << 17  # new objects, of 10 to 20 MB
_Thresholds = tuple[int, int, int]


def _put(thresholds: _Thresholds) -> None:
    gc.set_threshold(*thresholds)


def _other(now: _Thresholds) -> _Thresholds:
    return (_MANY, *now[1:]) if 0 < now[0] < _MANY else now


seldom = Meanwhile(gc.get_threshold, _put, _other)
