"""What the compiler does, told to whoever listens: `FUNCT_LOG=graph,loops,fusion,code,cache`.

Each stage is a logger of the standard library, `funct.graph` and so on. The variable turns stages
on from outside; a program may set the loggers' levels itself. Nothing is formatted, and `logging`
is not even imported, while nobody listens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["STAGES", "tell"]

STAGES = ("graph", "loops", "fusion", "code", "cache")


def _logger(stage: str) -> Any:
    """None while nobody has `logging`, or a thread is in the middle of importing it."""
    get = getattr(sys.modules.get("logging"), "getLogger", None)
    return None if get is None else get(f"funct.{stage}")


def _start(wanted: str) -> None:
    """Send the stages that are named to standard error; `all` means each."""
    import logging  # a tenth of the time that `import funct` takes, for a variable seldom set

    names = [w.strip() for w in wanted.split(",") if w.strip()]
    for name in names:
        if name not in (*STAGES, "all"):
            sys.stderr.write(f"FUNCT_LOG: no stage {name!r}; there is all, {', '.join(STAGES)}\n")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    for stage in STAGES:
        if stage in names or "all" in names:
            _logger(stage).setLevel(logging.DEBUG)
            _logger(stage).addHandler(handler)
            _logger(stage).propagate = False


def tell(stage: str, text: Callable[[], str]) -> None:
    """Tell a stage's listeners; the text is made only for them."""
    logger = _logger(stage)
    if logger is not None and logger.isEnabledFor(10):
        logger.debug("%s", text())


if os.environ.get("FUNCT_LOG"):
    _start(os.environ["FUNCT_LOG"])
