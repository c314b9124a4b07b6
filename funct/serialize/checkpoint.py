"""Checkpoint folders: a safetensors file and a manifest with its name and every tensor's checksum.

Writing the manifest is the commit: until it is renamed into place, a reader sees the old state.
Files that no manifest names are left-overs of an interrupted write and are removed by the next one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import zlib
from typing import Any

import numpy as np

from funct.errors import FileFormatError
from funct.graph.strict_json import check_version, dump_json, parse_json
from funct.serialize.tensor_file import open_regular, read_tensors, tensor_parts
from funct.serialize.whole_file import write_whole

__all__ = ["read_checkpoint", "write_checkpoint"]

Path = str | os.PathLike[str]
Tensors = dict[str, np.ndarray[Any, Any]]

_MANIFEST = "manifest.json"
_DATA = re.compile(r"tensors-[0-9a-f]{16}\.safetensors")
_VERSION = 1
_MAX_MANIFEST = 100_000_000


def write_checkpoint(path: Path, tensors: Tensors) -> None:
    """Write the folder, or a new state of it."""
    sums = {name: _checksum(x) for name, x in tensors.items()}
    digest = hashlib.sha256(dump_json(sums)).hexdigest()[:16]
    data = f"tensors-{digest}.safetensors"
    os.makedirs(path, exist_ok=True)
    write_whole(os.path.join(path, data), tensor_parts(tensors))
    manifest = {"format": "funct checkpoint", "version": _VERSION, "data": data, "crc32": sums}
    write_whole(os.path.join(path, _MANIFEST), [dump_json(manifest)])
    for name in os.listdir(path):
        if _DATA.fullmatch(name) and name != data:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(path, name))


def read_checkpoint(path: Path) -> Tensors:
    """The tensors of the last state that was written whole, their checksums verified."""
    if os.path.exists(path) and not os.path.isdir(path):
        raise FileFormatError(f"load: {os.fspath(path)} is no folder and not named *.safetensors")
    with open_regular(os.path.join(path, _MANIFEST)) as (file, size):
        if size > _MAX_MANIFEST:
            raise FileFormatError(f"checkpoint: a manifest of {size} bytes")
        manifest = parse_json(file.read(), "checkpoint")
    data, sums = _check_manifest(manifest)
    with open_regular(os.path.join(path, data)) as (file, size):
        tensors = read_tensors(file, size)
    if tensors.keys() != sums.keys():
        raise FileFormatError("checkpoint: the manifest names other tensors than the file holds")
    for name, x in tensors.items():
        if _checksum(x) != sums[name]:
            raise FileFormatError(
                f"checkpoint: {name!r} does not have the checksum that was written"
            )
    return tensors


def _check_manifest(manifest: Any) -> tuple[str, dict[str, int]]:
    check_version(manifest, "checkpoint", _VERSION)
    keys = {"format", "version", "data", "crc32"}
    if manifest.keys() != keys:
        raise FileFormatError(f"checkpoint: the manifest must hold {sorted(keys)}")
    data, sums = manifest["data"], manifest["crc32"]
    if not isinstance(data, str) or not _DATA.fullmatch(data):
        raise FileFormatError(f"checkpoint: {data!r} is no name of a data file")
    if not isinstance(sums, dict):
        raise FileFormatError("checkpoint: crc32 must map names to numbers")
    return data, sums


def _checksum(x: np.ndarray[Any, Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(x).reshape(-1).view(np.uint8).data)
