"""Numbers, names, lists and dictionaries as words, for files that are read before all else.

A word a line: its first character says what it is. Python's own modules for such text take longer
to import than a small function's code takes to load. Whatever is no such text raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["read", "spell"]


def spell(value: Any) -> bytes:
    """The value as text: None, an int, a str without line breaks, lists, tuples, dicts of them.

    Raises: TypeError: for anything else.
    """
    words: list[str] = []
    _spell(value, words)
    return "\n".join(words).encode()


def read(text: bytes) -> Any:
    """What was spelled; tuples are lists."""
    words = iter(text.decode().split("\n"))
    value = _read(words)
    if next(words, None) is not None:
        raise ValueError("there is more than one value")
    return value


def _spell(value: Any, words: list[str]) -> None:
    if value is None:
        words.append("n")
    elif isinstance(value, int):
        words.append(f"i{int(value)}")
    elif isinstance(value, str) and "\n" not in value:
        words.append(f"s{value}")
    elif isinstance(value, list | tuple) and value and {v.__class__ for v in value} == {int}:
        words.append(f"I{' '.join(map(str, value))}")
    elif isinstance(value, list | tuple):
        words.append(f"[{len(value)}")
        for v in value:
            _spell(v, words)
    elif isinstance(value, dict):
        words.append(f"{{{len(value)}")
        for k, v in value.items():
            _spell(k, words)
            _spell(v, words)
    else:
        raise TypeError(f"no words for {type(value).__name__}")


def _read(words: Iterator[str]) -> Any:
    word = next(words)
    kind, rest = word[:1], word[1:]
    if kind == "s":
        return rest
    if kind == "I":
        return list(map(int, rest.split(" ")))
    if kind == "i":
        return int(rest)
    if kind == "[":
        return [_read(words) for _ in range(int(rest))]
    if kind == "{":
        return {_read(words): _read(words) for _ in range(int(rest))}
    if word != "n":
        raise ValueError(f"{word!r} is no word")
    return None
