"""What becomes of locks and threads in a forked child, on systems that fork."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["in_child", "whole"]


def whole(lock: Any) -> Any:
    """The lock, which no fork finds taken by a thread that the child does not have."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


def in_child(fun: Callable[[], Any]) -> None:
    """Call fun first thing in every forked child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=fun)
