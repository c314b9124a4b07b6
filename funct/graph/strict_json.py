"""JSON as our files have it: UTF-8, no key twice, no NaN, no deep nesting."""

from __future__ import annotations

from typing import Any

from funct.errors import FileFormatError

__all__ = ["check_version", "dump_json", "parse_json"]

_DEPTH = 60


def dump_json(value: Any) -> bytes:
    """The one spelling of a value: compact, keys in the order given."""
    import json  # a fiftieth of the time that `import funct` takes

    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def parse_json(data: bytes, what: str) -> Any:
    """The value; FileFormatError, which begins with `what`, for what is not strict JSON."""
    import json

    try:
        text = data.decode()
        value = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
        text.encode()
        _check_depth(value)
    except RecursionError:
        raise FileFormatError(f"{what}: JSON is nested too deeply") from None
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise FileFormatError(f"{what}: not valid JSON: {error}") from None
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [k for k, _ in pairs]
        twice = next(k for k in names if names.count(k) > 1)
        raise ValueError(f"the key {twice!r} stands twice")
    for name in found:
        name.encode()  # a lone surrogate is no text
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEPTH):
        level = [w for v in level if isinstance(v, dict | list) for w in _children(v)]
        if not level:
            return
    raise RecursionError


def _children(v: Any) -> list[Any]:
    return list(v.values()) if isinstance(v, dict) else v


def check_version(manifest: Any, what: str, version: int) -> None:
    """Raise FileFormatError unless manifest is of format "funct <what>", in a version we read.

    Comes before any other check: a newer file may hold more than we know of.
    """
    if not isinstance(manifest, dict) or manifest.get("format") != f"funct {what}":
        raise FileFormatError(f"{what}: the manifest is of another format")
    given = manifest.get("version")
    if type(given) is not int or given < 1:
        raise FileFormatError(f"{what}: {given!r} is no version")
    if given > version:
        raise FileFormatError(
            f"{what}: written in version {given}, this funct reads {version}",
            fix="install a newer funct",
        )
