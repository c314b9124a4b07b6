"""summary: a model as a table, from shapes alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funct import tree
from funct.nn.module import Module, eval_mode, named_leaves, named_modules, static
from funct.nn.partition import is_parameter
from funct.transforms import eval_shape

__all__ = ["summary"]


class _Probe(Module):
    """Stands for a layer, and notes the shape of what it returns."""

    layer: Module
    path: str = static()
    seen: Any = static()

    @property
    def keeps_state(self) -> bool:
        return self.layer.keeps_state

    @property
    def draws(self) -> bool:
        return self.layer.draws

    def __getattr__(self, name: str) -> Any:
        if name == "layer":  # not set yet: copying and pickling ask for attributes early
            raise AttributeError(name)
        return getattr(self.layer, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = self.layer(*args, **kwargs)
        self.seen.notes[self.path] = [tuple(y.shape) for y in tree.leaves(out)]
        return out


class _Notes:
    """A static value: it hashes by identity."""

    def __init__(self) -> None:
        self.notes: dict[str, list[tuple[Any, ...]]] = {}


def summary(model: Any, example: Any) -> str:
    """A table of the model's layers: path, layer, output shape, parameters.

    Args: example: an input, or a `ShapeDtype`: the model runs on shapes alone, in eval mode, and
    nothing is computed.
    Returns: text, one line per layer; a layer that was not called has no shape. Parameters of inner
    layers are counted on their own line only; the total counts each once.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> k1, k2 = ft.random.split(ft.random.key(0))
        >>> model = nn.Sequential(nn.Linear(4, 8, key=k1), nn.ReLU(), nn.Linear(8, 2, key=k2))
        >>> print(nn.summary(model, ft.ShapeDtype((3, 4), xp.float32)))
        path   layer       output  parameters
        -------------------------------------
        -      Sequential  (3, 2)           0
        0      Linear      (3, 8)          40
        1      ReLU        (3, 8)           0
        2      Linear      (3, 2)          18
        -------------------------------------
        total                              58
    """
    seen = _Notes()
    eval_shape(_probed(eval_mode(model), "", seen), example)
    counts: dict[str, int] = {}
    owners = [path for path, _ in named_modules(model)]
    for path, kind, leaf in named_leaves(model):
        if is_parameter(path, leaf, kind):
            owner = max((o for o in owners if _inside(path, o)), key=len, default="")
            counts[owner] = counts.get(owner, 0) + leaf.size
    rows = [
        (path or "-", type(m).__name__, _shown(seen.notes.get(path)), str(counts.get(path, 0)))
        for path, m in named_modules(model)
    ]
    return _table(rows, str(sum(counts.values())))


def _inside(path: str, owner: str) -> bool:
    return not owner or path.startswith(f"{owner}.")


def _probed(node: Any, path: str, seen: _Notes) -> Any:
    """The tree with a probe around every layer."""
    level = tree.one_level(node)
    if level is None:
        return node
    pairs, build = level
    below = f"{path}." if path else ""
    new = build([_probed(child, f"{below}{name}", seen) for name, child in pairs])
    return _Probe(new, path, seen) if isinstance(new, Module) else new


def _shown(shapes: list[tuple[Any, ...]] | None) -> str:
    return "" if shapes is None else ", ".join(str(s) for s in shapes)


def _table(rows: Sequence[tuple[str, str, str, str]], total: str) -> str:
    every = [("path", "layer", "output", "parameters"), *rows, ("total", "", "", total)]
    wide = [max(len(row[i]) for row in every) for i in range(4)]
    lines = [
        f"{path:<{wide[0]}}  {layer:<{wide[1]}}  {shape:<{wide[2]}}  {count:>{wide[3]}}"
        for path, layer, shape, count in every
    ]
    rule = "-" * len(lines[0])
    return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1]])
