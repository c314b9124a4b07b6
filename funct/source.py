"""Where in the user's code something happened, and under which transforms.

Ground floor: everyone may call it, it imports nothing of funct. A frame is "the user's" when its
file lies outside this package.
"""

from __future__ import annotations

import linecache
import os
import sys
from types import FrameType

import attrs

__all__ = ["Site", "active_transforms", "user_site"]

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


@attrs.frozen
class Site:
    """One line of the user's code."""

    file: str
    line: int

    @property
    def text(self) -> str:
        """The source line, stripped; empty where the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        head = f"{os.path.basename(self.file)}:{self.line}"
        return f"{head}  {self.text}" if self.text else head


def user_site(depth: int = 1) -> Site | None:
    """The innermost line outside this package, or None."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_PACKAGE) and not name.startswith("<funct"):
            return Site(name, frame.f_lineno)
        frame = frame.f_back
    return None


def active_transforms() -> tuple[str, ...]:
    """Labels of the transforms that are running, innermost first.

    Dispatch is by the data alone, so there is no stack to ask; every transform keeps its level in a
    local variable named `level` while the user's function runs. Only errors pay for this walk.
    """
    labels: list[str] = []
    seen: set[int] = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            level = frame.f_locals.get("level")
            if getattr(level, "open", False) is True and id(level) not in seen:
                seen.add(id(level))
                label = getattr(level, "label", "")
                if label:
                    labels.append(label)
        frame = frame.f_back
    return tuple(labels)
