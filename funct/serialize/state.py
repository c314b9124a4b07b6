"""save and load: a tree of arrays as one safetensors file, or as a folder with checksums."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from funct import tree as pytree
from funct.array import Array, Tensor, asarray
from funct.errors import DTypeError, FileFormatError, StateDictError, TransformError
from funct.ops.fast import wrap
from funct.ops.refusals import finding_room
from funct.serialize.checkpoint import read_checkpoint, write_checkpoint
from funct.serialize.tensor_file import open_regular, read_tensors, tensor_parts
from funct.serialize.whole_file import file_name, write_whole

__all__ = ["load", "save"]

Path = str | os.PathLike[str]


def save(tree: Any, path: Path) -> None:
    """Write a tree of arrays: `*.safetensors` is one file, any other path a checkpoint folder.

    The names are the dotted paths of the leaves, "0.weight"; a layer of `nn` gets torch's keys. The
    file appears whole or not at all.

    Args: tree: any pytree; its leaves are arrays or numbers. path: where to.
    Raises: StateDictError: when two leaves have one name. FileFormatError: for a dtype that the
    format does not have. TransformError: for values that are traced. OSError: as `open` does.
    Example:
        >>> import os, tempfile
        >>> import funct.array as xp
        >>> from funct import serialize
        >>> path = os.path.join(tempfile.mkdtemp(), "state.safetensors")
        >>> serialize.save({"a": xp.ones(2), "b": [xp.zeros(3)]}, path)
        >>> sorted(serialize.load(path))
        ['a', 'b.0']
    """
    path = file_name("save", path)
    kind = _kind(path)
    tensors = _named(tree)
    with finding_room("save"):
        if kind == "file":
            write_whole(path, tensor_parts(tensors))
        else:
            write_checkpoint(path, tensors)


def load(path: Path, like: Any = None) -> Any:
    """Read what `save` or another safetensors writer wrote. Nothing in a file is ever executed.

    Args: path: as for `save`. like: a tree of arrays or `ShapeDtype`s; None for a flat dict.
    Returns: dict name -> Array; or a tree like `like`, with shapes and dtypes checked.
    Raises: FileFormatError: for a damaged or hostile file. StateDictError: when the file does not
    hold what `like` wants; it names the tensor, what was expected and what was found.
    Example:
        >>> import os, tempfile
        >>> import funct.array as xp
        >>> from funct import serialize
        >>> like = {"a": xp.zeros(2), "b": [xp.zeros(3)]}
        >>> path = os.path.join(tempfile.mkdtemp(), "state.safetensors")
        >>> serialize.save(like, path)
        >>> serialize.load(path, like)["b"][0].shape
        (3,)
    """
    path = file_name("load", path)
    if _kind(path) == "file":
        with open_regular(path) as (file, size):
            found = read_tensors(file, size)
    else:
        found = read_checkpoint(path)
    arrays = {name: wrap(x) for name, x in found.items()}
    return arrays if like is None else _matched(arrays, like)


def _kind(name: str) -> str:
    if name.endswith(".funct"):
        raise FileFormatError(
            f"{os.path.basename(name)}: a .funct file holds a program, not a tree of arrays",
            fix="use export.save and export.load",
        )
    return "file" if name.endswith(".safetensors") else "folder"


def _named(tree: Any) -> dict[str, np.ndarray[Any, Any]]:
    named: dict[str, np.ndarray[Any, Any]] = {}
    for name, leaf in pytree.flatten_with_path(tree):
        x = _as_array(name, leaf)
        if x.__class__ is not Array:
            raise TransformError(
                f"save: {name!r} is traced by {x.level.label} and has no value yet"
            )
        if name in named:
            raise StateDictError(f"save: two leaves are named {name!r}")
        named[name] = x.data
    return named


def _as_array(name: str, leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf
    try:
        return asarray(leaf)
    except DTypeError as error:
        where = f"tree at {name}" if name else "tree"
        kind = type(leaf).__name__
        raise DTypeError(f"save: {where} must be arrays or numbers, got {kind}") from error


def _matched(found: dict[str, Any], like: Any) -> Any:
    wanted = pytree.flatten_with_path(like)
    names = {name for name, _ in wanted}
    missing, unexpected = sorted(names - found.keys()), sorted(found.keys() - names)
    if missing or unexpected:
        raise StateDictError(f"load: missing {_listed(missing)}, unexpected {_listed(unexpected)}")
    for name, leaf in wanted:
        expected = leaf if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else asarray(leaf)
        got = found[name]
        if tuple(expected.shape) != got.shape or expected.dtype != got.dtype:
            raise StateDictError(
                f"load: {name!r} must be {expected.dtype}{list(expected.shape)}, "
                f"found {got.dtype}{list(got.shape)}"
            )
    return pytree.unflatten(pytree.structure(like), [found[name] for name, _ in wanted])


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:8])
    return f"[{shown}, … {len(names)} in all]" if len(names) > 8 else f"[{shown}]"
