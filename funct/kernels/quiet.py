"""Calls of NumPy that do not warn, at a fifth of what entering `np.errstate` costs.

NumPy keeps what it does about floating-point errors in a context variable, so a context in which
that is settled can be entered again and again. A context is entered once at a time: each call has a
copy of its own, which takes no longer than an attribute.
"""

from __future__ import annotations

from contextvars import Context
from typing import Any

import numpy as np

__all__ = ["asking", "quiet"]


def _settled(how: dict[str, Any], handler: Any = None) -> Any:
    found = Context()
    found.run(np.seterrcall, handler)
    found.run(np.seterr, **how)
    return found.copy


quiet = _settled({"all": "ignore"})
"""`quiet().run(f, *args)` is f(*args) without warnings."""


def asking(handler: Any) -> Any:
    """As `quiet`, but where a result is invalid `handler` is called, which may raise."""
    return _settled({"all": "ignore", "invalid": "call"}, handler)
