"""state_dict and load_state_dict: a model's arrays by name, interchangeable with torch's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

import funct.array as xp
from funct import tree
from funct.array import Tensor
from funct.core import NARROW
from funct.errors import FunctError, StateDictError
from funct.nn.module import named_leaves
from funct.nn.partition import is_inexact_array

__all__ = ["load_state_dict", "state_dict"]

M = TypeVar("M")


def state_dict(model: Any) -> dict[str, Any]:
    """The model's arrays by dotted path, buffers too, with torch's keys and in torch's order.

    Example:
        >>> import funct as ft
        >>> from funct import nn
        >>> list(nn.state_dict(nn.Sequential(nn.Linear(2, 3, key=ft.random.key(0)))))
        ['0.weight', '0.bias']
    """
    return {path: leaf for path, _, leaf in named_leaves(model) if hasattr(leaf, "shape")}


def load_state_dict(model: M, mapping: Mapping[str, Any], strict: bool = True) -> M:
    """The model with its arrays replaced by those of the mapping.

    Args: mapping: key -> Tensor, NumPy array, torch tensor, or anything with `__array__` or
    `__dlpack__`; all are copied. strict: whether missing and unexpected keys are errors; False
    keeps the model's own arrays for the former and passes over the latter.
    Returns: a model of the same structure and dtypes: floats are cast to the model's float dtype,
    integers only where nothing is lost.
    Raises: StateDictError: naming every key that is missing, unexpected, of another shape or of
    another kind of dtype, with what was expected and what was found.
    Example:
        >>> import funct as ft, numpy as np
        >>> from funct import nn
        >>> layer = nn.Linear(2, 1, key=ft.random.key(0), bias=False)
        >>> nn.load_state_dict(layer, {"weight": np.ones((1, 2))}).weight
        Array([[1., 1.]], dtype=float32)
    """
    expected = state_dict(model)
    problems = _key_problems(expected, mapping) if strict else []
    found: dict[str, Any] = {}
    for key in expected.keys() & mapping.keys():
        try:
            found[key] = _fitted(expected[key], mapping[key])
        except _MisfitError as misfit:
            problems.append(f"{key}: {misfit}")
    if problems:
        raise StateDictError(
            "load_state_dict: " + "\n    ".join(["the mapping does not fit", *problems])
        )
    leaves, spec = tree.flatten(model)
    paths = [path for path, _, _ in named_leaves(model)]
    return tree.unflatten(spec, [found.get(p, x) for p, x in zip(paths, leaves, strict=True)])


class _MisfitError(Exception):
    """Why one entry cannot stand for another."""


def _key_problems(expected: Mapping[str, Any], mapping: Mapping[str, Any]) -> list[str]:
    missing = [
        f"{k}: missing, expected {_described(v)}" for k, v in expected.items() if k not in mapping
    ]
    return missing + [f"{k}: unexpected" for k in mapping if k not in expected]


def _fitted(own: Any, given: Any) -> Any:
    """The given value as a Tensor of own's shape and dtype."""
    new = _tensor(given)
    if tuple(new.shape) != tuple(own.shape):
        raise _MisfitError(f"expected shape {tuple(own.shape)}, got {tuple(new.shape)}")
    if new.dtype == own.dtype:
        return new
    floats = is_inexact_array(own) and is_inexact_array(new)
    same_kind = own.dtype.kind == new.dtype.kind or not NARROW.isdisjoint((own.dtype, new.dtype))
    if not (same_kind and (floats or np.can_cast(new.dtype, own.dtype, "safe"))):
        raise _MisfitError(f"expected dtype {own.dtype}, got {new.dtype}")
    return xp.astype(new, own.dtype)


def _tensor(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "detach"):  # a torch tensor or Parameter
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":  # has no NumPy form; float32 holds it exactly
            value = value.float()
    try:
        if hasattr(value, "__array__"):
            return xp.asarray(np.asarray(value))  # the inner one shares, the outer one copies
        return xp.from_dlpack(value)
    except (FunctError, TypeError, AttributeError, BufferError) as error:
        raise _MisfitError(f"expected an array, got {type(value).__name__}") from error


def _described(x: Any) -> str:
    return f"{x.dtype} of shape {tuple(x.shape)}"
