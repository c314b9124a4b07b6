"""The safetensors format: a length, a JSON header, one buffer that the tensors tile without holes.

Written: tensors sorted by alignment and name, so that equal contents are equal bytes. Read:
everything is checked against the size of the file before it is allocated; nothing is executed.

Source: https://github.com/huggingface/safetensors. Stricter than its readers in two points of its
own text: a key that stands twice and a header that does not begin with "{" are refused. complex128,
int4 and uint4, which it lacks, are stored as F64 pairs and bytes, and `__metadata__` says so.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import attrs
import ml_dtypes
import numpy as np

from funct.errors import FileFormatError
from funct.graph.strict_json import dump_json, parse_json

__all__ = ["Entry", "open_regular", "read_header", "read_tensors", "tensor_parts"]

_MAX_HEADER = 100_000_000
_MAX_RANK = 64  # NumPy's
_METADATA = "__metadata__"
_KIND = "funct.dtype."

_CODES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(bool), "U8": np.dtype("u1"), "I8": np.dtype("i1"), "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"), "U32": np.dtype("<u4"), "I32": np.dtype("<i4"), "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"), "F16": np.dtype("<f2"), "F32": np.dtype("<f4"), "F64": np.dtype("<f8"),
    "C64": np.dtype("<c8"), "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn), "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
}  # fmt: skip
_NAMES = {dtype.name: code for code, dtype in _CODES.items()}

# dtypes that the format lacks: how their elements are stored
_STORED_AS: dict[str, np.dtype[Any]] = {
    "complex128": np.dtype("<f8"),
    "int4": np.dtype("i1"),
    "uint4": np.dtype("u1"),
}
_DTYPES: dict[str, np.dtype[Any]] = {
    "complex128": np.dtype("<c16"),
    "int4": np.dtype(ml_dtypes.int4),
    "uint4": np.dtype(ml_dtypes.uint4),
}

_LIMITS = {"int4": (-8, 7), "uint4": (0, 15)}


@attrs.frozen
class Entry:
    """One tensor of a file: where it lies and what it is. kind: a dtype that the format lacks."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int
    kind: str | None


def tensor_parts(tensors: Mapping[str, np.ndarray[Any, Any]]) -> Iterator[bytes | memoryview]:
    """The bytes of a safetensors file, in parts."""
    stored = {n: _stored(n, x) for n, x in tensors.items()}
    order = sorted(stored, key=lambda n: (-stored[n].dtype.itemsize, n))
    header: dict[str, Any] = {}
    kinds = {_KIND + n: tensors[n].dtype.name for n in order if tensors[n].dtype.name in _STORED_AS}
    if kinds:
        header[_METADATA] = kinds
    at = 0
    for name in order:
        x = stored[name]
        span = [at, at + x.nbytes]
        header[name] = {
            "dtype": _NAMES[x.dtype.name], "shape": list(x.shape), "data_offsets": span,
        }  # fmt: skip
        at += x.nbytes
    text = dump_json(header)
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for name in order:
        yield stored[name].reshape(-1).view(np.uint8).data


def _stored(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """x in C order, little-endian, in a dtype that the format has."""
    kind = x.dtype.name
    if name == _METADATA:
        raise FileFormatError(f"save: the name {_METADATA!r} is reserved by the format")
    if kind not in _NAMES and kind not in _STORED_AS:
        raise FileFormatError(f"save: {name!r} has dtype {kind}, which the format does not have")
    if kind == "complex128":
        pairs = np.ascontiguousarray(x, "<c16").reshape(x.shape)
        return pairs.reshape(-1).view("<f8").reshape(*x.shape, 2)
    to = _STORED_AS[kind] if kind in _STORED_AS else _CODES[_NAMES[kind]]
    return np.ascontiguousarray(x.astype(to, copy=False)).reshape(x.shape)


# reading ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, int]]:
    """The open file and its size; FileFormatError for a folder, a pipe or a device."""
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        raise FileFormatError(f"load: {os.fspath(path)} is no regular file")
    with open(path, "rb") as file:
        yield file, os.fstat(file.fileno()).st_size


def read_tensors(file: BinaryIO, size: int) -> dict[str, np.ndarray[Any, Any]]:
    """All tensors of a file of that many bytes, by name, in the order of the header."""
    entries, begin = read_header(file, size)
    return {e.name: _read(file, begin, e) for e in entries}


def read_header(file: BinaryIO, size: int) -> tuple[list[Entry], int]:
    """What a file holds, and where its buffer begins; every number is checked against its size."""
    if size < 8:
        raise FileFormatError(f"safetensors: {size} bytes are too few for a header")
    (length,) = struct.unpack("<Q", _exactly(file, 8))
    if length > min(_MAX_HEADER, size - 8):
        raise FileFormatError(f"safetensors: a header of {length} bytes in a file of {size}")
    text = _exactly(file, length)
    if not text.startswith(b"{"):
        raise FileFormatError("safetensors: the header does not begin with '{'")
    header = parse_json(text, "safetensors")
    kinds = _kinds(header.pop(_METADATA, {}))
    entries = [_entry(name, given, kinds) for name, given in header.items()]
    _check_tiling(entries, size - 8 - length)
    unknown = kinds.keys() - header.keys()
    if unknown:
        raise FileFormatError(f"safetensors: metadata of a tensor that is absent: {min(unknown)!r}")
    return entries, 8 + length


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise FileFormatError(f"safetensors: the file ends {count - len(data)} bytes early")
    return data


def _kinds(metadata: Any) -> dict[str, str]:
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FileFormatError("safetensors: __metadata__ must map text to text")
    found = {k.removeprefix(_KIND): v for k, v in metadata.items() if k.startswith(_KIND)}
    for name, kind in found.items():
        if kind not in _DTYPES:
            raise FileFormatError(f"safetensors: {name!r} has unknown dtype {kind!r}")
    return found


def _entry(name: str, given: Any, kinds: Mapping[str, str]) -> Entry:
    if not isinstance(given, dict) or given.keys() != {"dtype", "shape", "data_offsets"}:
        raise FileFormatError(f"safetensors: {name!r} must have dtype, shape and data_offsets")
    code, shape, span = given["dtype"], given["shape"], given["data_offsets"]
    if not isinstance(code, str) or code not in _CODES:
        raise FileFormatError(f"safetensors: {name!r} has unknown dtype {code!r}")
    if not _are_counts(shape) or len(shape) > _MAX_RANK:
        raise FileFormatError(f"safetensors: {name!r} has shape {_short(shape)}")
    if not _are_counts(span) or len(span) != 2 or span[0] > span[1]:
        raise FileFormatError(f"safetensors: {name!r} has data_offsets {_short(span)}")
    dtype, kind = _CODES[code], kinds.get(name)
    count = dtype.itemsize
    for n in shape:
        count *= n
    if count != span[1] - span[0]:
        raise FileFormatError(
            f"safetensors: {name!r} is {code}{_short(shape)}, which takes {count} bytes; "
            f"its data_offsets {span} hold {span[1] - span[0]}"
        )
    if kind is not None and (
        _STORED_AS[kind] != dtype or (kind == "complex128" and shape[-1:] != [2])
    ):
        raise FileFormatError(f"safetensors: {name!r} is {code}{shape} and cannot be {kind}")
    return Entry(name, dtype, tuple(shape), span[0], span[1], kind)


def _are_counts(v: Any) -> bool:
    return isinstance(v, list) and all(type(n) is int and 0 <= n < 2**63 for n in v)


def _short(v: Any) -> str:
    text = repr(v)
    return text if len(text) < 80 else text[:77] + "..."


def _check_tiling(entries: list[Entry], size: int) -> None:
    at = 0
    for e in sorted(entries, key=lambda e: (e.start, e.stop)):
        if e.start != at:
            raise FileFormatError(
                f"safetensors: {e.name!r} begins at {e.start}, the tensor before it ends at {at}"
            )
        at = e.stop
    if at != size:
        raise FileFormatError(f"safetensors: the tensors take {at} bytes, the file holds {size}")


def _read(file: BinaryIO, begin: int, e: Entry) -> np.ndarray[Any, Any]:
    raw = np.empty(e.stop - e.start, np.uint8)
    file.seek(begin + e.start)
    if file.readinto(raw.data) != len(raw):  # type: ignore[attr-defined]
        raise FileFormatError(f"safetensors: the file ends within {e.name!r}")
    if e.dtype == np.dtype(bool) and np.any(raw > 1):
        raise FileFormatError(f"safetensors: {e.name!r} is BOOL and holds a byte above 1")
    try:
        x = raw.view(e.dtype).reshape(e.shape)
    except ValueError as error:  # an empty array with axes beyond NumPy's limit
        raise FileFormatError(f"safetensors: {e.name!r}: {error}") from None
    return _unstored(x, e)


def _unstored(x: np.ndarray[Any, Any], e: Entry) -> np.ndarray[Any, Any]:
    if e.kind is None:
        return x.astype(x.dtype.newbyteorder("="), copy=False)
    if e.kind == "complex128":
        return x.reshape(-1).view("<c16").reshape(e.shape[:-1]).astype(complex, copy=False)
    low, high = _LIMITS[e.kind]
    if x.size and (x.min() < low or x.max() > high):
        raise FileFormatError(f"safetensors: {e.name!r} is {e.kind} and holds a number beyond it")
    return x.astype(_DTYPES[e.kind])
