"""One function in many threads at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["together"]


def together(count: int, work: Callable[[int], Any], *, turns: float | None = None) -> list[Any]:
    """What work(0) … work(count - 1) give, each in a thread of its own, begun at once; what one of
    them raises is raised here. turns: seconds after which another thread may have Python's lock.
    """
    start = threading.Barrier(count)

    def run(k: int) -> Any:
        start.wait()
        return work(k)

    before = sys.getswitchinterval()
    sys.setswitchinterval(before if turns is None else turns)
    try:
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(run, range(count)))
    finally:
        sys.setswitchinterval(before)
