"""Lanes of a batch that go different ways through Python control flow.

`bool()`, `int()` and their like on a batched value have one answer where all lanes agree. Where
they do not, `agreed` raises `Parting`: the run is given up, also where a bare `except` of the
user's has caught that, and the function is run again for each group of lanes that agree so far.
Functions are pure, so this is right; the cost grows with the number of distinct paths, not with the
number of lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct import ops
from funct.array import asarray, concat, result_type
from funct.core import Level
from funct.core.level import escaped
from funct.errors import ConcretizationError, ShapeError
from funct.ops.counting import lifted
from funct.ops.fast import wrap

__all__ = ["Laned", "Lanes", "Path", "agreed", "by_path", "joined", "select"]

Lanes = slice | np.ndarray[Any, Any] | None  # None: all of them
Path = tuple[Lanes, list[Any]]  # some lanes, and what the function gave for them


class Parting(BaseException):
    """Lanes of a level disagree. No Exception: user code that catches those must not see it."""

    def __init__(self, level: Laned, groups: list[np.ndarray[Any, Any]]) -> None:
        super().__init__(level.label)
        self.level = level
        self.groups = groups


class Laned(Level):
    """A level of many lanes. parting: how they part, once they have disagreed. asked: whether the
    function took a decision on a value of theirs.
    """

    __slots__ = ("asked", "parting")

    def __init__(self, label: str, fun: Callable[..., Any] | None) -> None:
        super().__init__(label, fun)
        self.parting: Parting | None = None
        self.asked = False


def agreed(level: Laned, rows: Any) -> Any:
    """The one row that all lanes have, bit for bit; else part the lanes by their rows.

    Raises: ConcretizationError: when there is no lane to ask. EscapedTracerError: when the level is
    closed.
    """
    if not level.open:
        escaped("bool, int or float", level)
    level.asked = True
    count = len(rows)
    if count == 0:
        raise ConcretizationError(
            f"{level.label}: the function asks for a value, and the batch is empty",
            fix="choose by where or cond, loop by while_loop or scan, which need no lane to ask",
        )
    bits = np.ascontiguousarray(rows).reshape(count, -1)
    if bits.size == 0:
        return rows[0]
    bits = bits.view(np.uint8)  # a NaN equals itself, and -0.0 is not 0.0
    if (bits == bits[:1]).all():
        return rows[0]
    groups: dict[bytes, list[int]] = {}
    for k, row in enumerate(bits):
        groups.setdefault(row.tobytes(), []).append(k)
    level.parting = Parting(level, [np.asarray(g, np.int64) for g in groups.values()])
    raise level.parting


def by_path(
    part: Callable[[Lanes, Any], tuple[Laned, Callable[[], list[Any]]]],
    size: Any,
    chunks: Sequence[slice] = (),
) -> list[Path]:
    """Run each chunk of lanes, and again each group into which it parts.

    part: makes a level for some lanes, and the call that runs the function on them.
    """
    done: list[Path] = []
    todo: list[Lanes] = [*chunks[::-1]] if chunks else [None]
    while todo:
        lanes = todo.pop()
        level, call = part(lanes, _count(lanes, size))
        outs: list[Any] = []
        try:
            outs = call()
        except (Parting, Exception) as raised:  # an exception may come from who caught a Parting
            other = isinstance(raised, Parting) and raised.level is not level
            if other or level.parting is None:
                raise
        finally:
            level.open = False
        if level.parting is None:
            done.append((lanes, outs))
            continue
        known = np.arange(int(size))[lanes if lanes is not None else slice(None)]
        todo += [known[g] for g in level.parting.groups[::-1]]
    return done


def _count(lanes: Lanes, size: Any) -> Any:
    if lanes is None:
        return size
    return len(range(*lanes.indices(size))) if isinstance(lanes, slice) else len(lanes)


def select(x: Any, lanes: Lanes) -> Any:
    """Some lanes of x, which has all of them on axis 0."""
    if lanes is None:
        return x
    return x[lanes] if isinstance(lanes, slice) else ops.take(x, wrap(lanes), 0)


def joined(name: str, paths: Sequence[Path], size: Any) -> list[Any]:
    """The results of all lanes, in their order.

    A Python number that some lanes gave adopts the dtype that the others gave.
    Raises: ShapeError: when lanes gave results of different shapes.
    """
    if len(paths) == 1:
        return [_spread(x, None, size) for x in paths[0][1]]
    order = None
    if any(isinstance(lanes, np.ndarray) for lanes, _ in paths):
        order = np.argsort(np.concatenate([np.arange(int(size))[lanes] for lanes, _ in paths]))
    out = []
    for k in range(len(paths[0][1])):
        given = [results[k] for _, results in paths]
        dtype = result_type(*given) if any(_is_number(x) for x in given) else None
        parts = [
            _spread(x, dtype, _count(lanes, size))
            for x, (lanes, _) in zip(given, paths, strict=True)
        ]
        shapes = {tuple(p.shape[1:]) for p in parts}
        if len(shapes) > 1:
            raise ShapeError(f"{name}: lanes must give results of one shape, got {sorted(shapes)}")
        whole = concat(parts)
        out.append(whole if order is None else ops.take(whole, wrap(order), 0))
    return out


def _is_number(x: Any) -> bool:
    return isinstance(x, bool | int | float | complex)


def _spread(x: Any, dtype: Any, count: Any) -> Any:
    if not _is_number(x):
        return x
    x = asarray(x, dtype=dtype)
    return ops.broadcast_to(lifted(x, (count,)), (count,))
