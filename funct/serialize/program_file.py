"""`*.funct`: one zip of graph.json, constants.safetensors and manifest.json. Nothing is executed.

The members are stored, not compressed, so that a file is as large as it says and equal programs are
equal bytes. The manifest has the format's version and the SHA-256 of the other two.
"""

from __future__ import annotations

import hashlib
import io
import os
import warnings
import zipfile
from typing import Any, BinaryIO

from funct.errors import ExportError, FileFormatError, ForgottenRulesWarning
from funct.graph.passes import own_rules
from funct.graph.program import ExportedProgram, expect_program
from funct.graph.strict_json import check_version, dump_json, parse_json
from funct.serialize.graph_file import decode_program, encode_program
from funct.serialize.tensor_file import open_regular, read_tensors, tensor_parts
from funct.serialize.whole_file import file_name, write_whole

__all__ = ["load_program", "save_program"]

Path = str | os.PathLike[str]

_VERSION = 1
_GRAPH, _CONSTANTS, _MANIFEST = "graph.json", "constants.safetensors", "manifest.json"
_MEMBERS = [_MANIFEST, _GRAPH, _CONSTANTS]
_MAX_JSON = 500_000_000
_EPOCH = (1980, 1, 1, 0, 0, 0)


def save_program(program: ExportedProgram, path: Path) -> None:
    """Write a program. A loaded one takes every transform and gives the same bits.

    Args: program: what `export` gave. Functions in it with derivative rules of their own are
    replaced by their bodies, and a `ForgottenRulesWarning` names them. path: where to; by
    convention `*.funct`.
    Raises: ExportError: when an argument or result is no array, nor a tuple, list, dict, dataclass
    or attrs class of such. OSError: as `open` does.
    Example:
        >>> import os, tempfile
        >>> import funct.array as xp
        >>> from funct import export
        >>> program = export.export(lambda x: x * 2.0, (xp.ones(3),))
        >>> path = os.path.join(tempfile.mkdtemp(), "double.funct")
        >>> export.save(program, path)
        >>> export.load(path)(xp.ones(3)).tolist()
        [2.0, 2.0, 2.0]
    """
    expect_program(ExportError, "save: program", program)
    path = file_name("save", path)
    forgotten = own_rules(program.graph)
    if forgotten:
        warnings.warn(
            f"save: {', '.join(forgotten)} {'has' if len(forgotten) == 1 else 'have'} derivative "
            "rules of their own, which are Python and in no file: derivatives of what is loaded "
            "are those of the bodies",
            ForgottenRulesWarning,
            stacklevel=2,
        )
    value, tensors = encode_program(program)
    members = {_GRAPH: dump_json(value), _CONSTANTS: b"".join(tensor_parts(tensors))}
    manifest = {
        "format": "funct program",
        "version": _VERSION,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    members[_MANIFEST] = dump_json(manifest)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in _MEMBERS:
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), members[name])
    write_whole(path, [buffer.getbuffer()])


def load_program(path: Path) -> ExportedProgram:
    """Read what `save_program` wrote.

    Returns: the program, its every shape and dtype derived anew.
    Raises: FileFormatError: for a damaged, hostile or newer file, or where a class that arguments
    or results are of is not imported. OSError: as `open` does.
    Example:
        >>> import funct.array as xp
        >>> from funct import export
        >>> from funct import serialize
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "square.funct")
        >>> serialize.save_program(export.export(lambda x: x * x, (xp.ones(2),)), path)
        >>> serialize.load_program(path)(xp.asarray([2.0, 3.0])).tolist()
        [4.0, 9.0]
    """
    with open_regular(file_name("load", path)) as (file, size):
        try:
            members = _read_members(file, size)
        except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError) as error:
            if isinstance(error, FileFormatError):
                raise
            raise FileFormatError(f"program: not a whole zip file: {error}") from None
    _check_manifest(parse_json(members[_MANIFEST], _MANIFEST), members)
    value = parse_json(members[_GRAPH], _GRAPH)
    data = members[_CONSTANTS]
    return decode_program(value, read_tensors(io.BytesIO(data), len(data)))


def _read_members(file: BinaryIO, size: int) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        if [i.filename for i in infos] != _MEMBERS:
            raise FileFormatError(f"program: the zip must hold {_MEMBERS} in this order")
        for i in infos:
            cap = size if i.filename == _CONSTANTS else min(size, _MAX_JSON)
            stored = i.compress_type == zipfile.ZIP_STORED and i.compress_size == i.file_size
            if not stored or i.flag_bits & 1 or i.file_size > cap:
                raise FileFormatError(
                    f"program: {i.filename} is compressed, encrypted or too large"
                )
        return {i.filename: archive.read(i) for i in infos}


def _check_manifest(manifest: Any, members: dict[str, bytes]) -> None:
    check_version(manifest, "program", _VERSION)
    wanted = {name: hashlib.sha256(members[name]).hexdigest() for name in (_GRAPH, _CONSTANTS)}
    if manifest.keys() != {"format", "version", "sha256"} or manifest["sha256"] != wanted:
        raise FileFormatError("program: the contents do not have the checksums that were written")
