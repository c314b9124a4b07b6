"""Files appear whole or not at all: write beside the target, flush to disk, rename."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable

__all__ = ["write_whole"]


def write_whole(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Write parts to path: a reader sees the old file or the whole new one; errors leave nothing.

    Raises: OSError: as `open` does, when the folder is absent or may not be written.
    Example:
        >>> from funct import serialize
        >>> import os, pathlib, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "state.bin")
        >>> serialize.write_whole(path, [b"head", b"body"])
        >>> pathlib.Path(path).read_bytes()
        b'headbody'
    """
    target = os.fspath(path)
    folder = os.path.dirname(target) or "."
    if os.path.isdir(target):
        raise IsADirectoryError(f"{target} is a directory")
    handle, beside = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(target)}.")
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, _mode())  # mkstemp makes files private
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise
    _flush_folder(folder)


def _mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _flush_folder(folder: str) -> None:
    """Make the rename itself durable, where the system lets a folder be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
