"""Branches and loops in files and hashes: what one is made of, and how it is made again.

The nodes are made in layers above; each kind says here how, under its name. It is given graphs and
plain values, and must refuse what it would not have been made of: files may hold anything.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from funct.core import ShapeDtype
from funct.errors import FileFormatError
from funct.graph.ir import Control, Graph

__all__ = ["Written", "agree", "avals", "made_again", "remakes", "remakes_are_in", "written"]

Remake = Callable[[Sequence[Graph], tuple[Any, ...]], Control]

_remakes: dict[str, Remake] = {}
_modules: dict[str, str] = {}  # by kind, which module says how, when it is imported


class Written(Struct, frozen=True):
    """A branch or a loop, taken apart: the name of its kind, graphs, numbers and texts."""

    kind: str
    graphs: tuple[Graph, ...]
    values: tuple[Any, ...]


def remakes(kind: str) -> Callable[[Remake], Remake]:
    """Say how a branch or a loop of a kind is made again."""

    def known(remake: Remake) -> Remake:
        _remakes[kind] = remake
        return remake

    return known


def remakes_are_in(modules: Mapping[str, str]) -> None:
    """Say which module has the `remakes` of each kind, so that files need nothing imported."""
    _modules.update(modules)


def written(primitive: Control) -> Written | None:
    """A branch or a loop, taken apart; None where something in it is no data."""
    found: Written | None = primitive.kind.written()
    return found


def made_again(form: Written) -> Control:
    """The branch or the loop. FileFormatError: for what is none."""
    if form.kind in _modules:
        importlib.import_module(_modules[form.kind])
    remake = _remakes.get(form.kind)
    if remake is None:
        raise FileFormatError(f"graph.json: unknown control flow {form.kind[:60]!r}")
    return remake(form.graphs, form.values)


def avals(values: Sequence[Any]) -> list[ShapeDtype]:
    """Types of Vars."""
    return [v.aval for v in values]


def agree(what: str, *given: bool) -> None:
    """Refuse a branch or a loop whose parts do not fit together."""
    if not all(given):
        raise FileFormatError(f"graph.json: the graphs of a {what} do not fit together")
