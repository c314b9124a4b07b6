"""Files appear whole or not at all: write beside the target, flush to disk, rename."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from typing import Any

from funct.errors import ArgumentError, SignatureError

__all__ = ["file_name", "write_whole"]


def file_name(function: str, path: object) -> str:
    """The path as a text. SignatureError for what is no path, ArgumentError for what names no file;
    both name the function.
    """
    given: Any = path
    try:
        name = os.fsdecode(given)
    except TypeError:
        kind = type(path).__name__
        text = f"{function}: path must be a text or an os.PathLike, got {kind}"
        raise SignatureError(text) from None
    if not name or "\0" in name:
        raise ArgumentError(f"{function}: path must name a file, got {name!r}")
    return name


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
    target = file_name("write_whole", path)
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
