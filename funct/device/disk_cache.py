"""Bytes on disk by key, for what is costly to make and can always be made again.

A file is written beside its place and renamed; it starts with a checksum of its key and of what
follows, so that a file under another's name is a damaged one. Whatever goes wrong – no directory,
no right to write, a damaged file – means that the bytes are made again. `FUNCT_CACHE_DIR` says
where ("" for nowhere); the oldest files go when all are over the bound.

The files hold machine code that is run. The checksum tells damage, not intent: whoever may write
into the folder may run code as whoever reads it, as with Python's own `__pycache__`. So a folder
is shared among people who trust each other, if at all, and best made by a user for herself.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import time

__all__ = ["BOUND", "folder", "read", "write"]

BOUND = 256 << 20  # bytes
_SUM = 32  # bytes of a checksum
_EVERY = BOUND // 32  # bytes that are written between two looks at the size of all
_AHEAD = 3600.0  # seconds by which another machine's clock may be fast
# A look takes a tenth of a second where files are many, as long as it takes to make a few of them,
# and most processes write little: it comes after so many bytes of them all.
_written = _EVERY * os.urandom(1)[0] // 256
_numbers = itertools.count()  # of this process's writes


def folder() -> str | None:
    """Where the files are; None where nothing is kept."""
    named = os.environ.get("FUNCT_CACHE_DIR")
    if named is not None:
        return named or None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "funct")


def read(key: str) -> bytes | None:
    """What was kept under the key, if it is there and undamaged."""
    where = folder()
    if where is None:
        return None
    place = os.path.join(where, key)
    try:
        with open(place, "rb") as file:
            held = file.read()
    except OSError:
        return None
    with contextlib.suppress(OSError):  # whose folder nobody may write into has no oldest
        os.utime(place)  # used now: the oldest go first
    body = held[_SUM:]
    return body if _sum(key, body) == held[:_SUM] else None


def write(key: str, body: bytes) -> None:
    """Keep the bytes under the key, where that is possible."""
    global _written
    where = folder()
    if where is None:
        return
    try:
        os.makedirs(where, exist_ok=True)
        beside = os.path.join(where, f".{key}.{os.getpid()}.{next(_numbers)}")
        try:
            with open(beside, "xb") as file:
                file.write(_sum(key, body) + body)
            os.replace(beside, os.path.join(where, key))
        except OSError:
            os.unlink(beside)
            return
        _written += _SUM + len(body)  # where threads lose some of it, the look is a little late
        if _written >= _EVERY:
            _written = 0
            _shrink(where)
    except OSError:
        return


def _sum(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).digest()


def _shrink(where: str) -> None:
    """Remove the files that were used longest ago, until all are within the bound.

    A time to come says nothing of when a file was used, and would hold it for ever: such files are
    the first to go. One that is read has a right time again.
    """
    found, now = [], time.time()
    with os.scandir(where) as entries:
        for e in entries:
            with contextlib.suppress(OSError):  # another process has removed it
                s = e.stat()
                if e.is_file():
                    used = s.st_mtime if s.st_mtime < now + _AHEAD else 0.0
                    found.append((used, s.st_size, e.path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= BOUND:
            break
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        total -= size
