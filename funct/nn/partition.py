"""partition and combine: a model as two trees, one to differentiate and one to hold still."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from funct import tree
from funct.core import INEXACT
from funct.errors import ArgumentError, TreeError
from funct.nn.module import named_leaves

__all__ = ["combine", "is_buffer", "is_inexact_array", "is_parameter", "partition"]

M = TypeVar("M")


def is_inexact_array(leaf: Any) -> bool:
    """Whether a leaf is an array of floating or complex numbers.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> [nn.is_inexact_array(leaf) for leaf in (xp.ones(2), xp.arange(2), 1.0)]
        [True, False, False]
    """
    dtype = getattr(leaf, "dtype", None)
    if dtype is None or dtype in INEXACT:
        return dtype is not None
    return dtype.kind not in "biu" and "float" in dtype.name  # a name takes 5 µs to be made


def is_parameter(path: str, leaf: Any, kind: str) -> bool:
    """The default filter of `partition`: floating arrays that are no buffers.

    Example:
        >>> from funct import nn
        >>> leaves = list(nn.named_leaves(nn.BatchNorm1d(2)))
        >>> [path for path, kind, leaf in leaves if nn.is_parameter(path, leaf, kind)]
        ['weight', 'bias']
    """
    return kind == "parameter" and is_inexact_array(leaf)


def is_buffer(path: str, leaf: Any, kind: str) -> bool:
    """Filter of `partition`: state that is no parameter, such as running statistics.

    Example:
        >>> from funct import nn
        >>> state, rest = nn.partition(nn.BatchNorm1d(2), nn.is_buffer)
        >>> state.weight is None, state.running_mean.tolist()
        (True, [0.0, 0.0])
    """
    return kind == "buffer"


def partition(model: M, filter: Callable[..., bool] = is_parameter) -> tuple[M, M]:
    """Split a model into the leaves that the filter takes, and the rest.

    Args: model: any pytree. filter: called with as many of these as it has required positional
    parameters, in the order leaf | path, leaf | path, leaf, kind, where path is dotted
    ("0.weight") and kind is "parameter" or "buffer".
    Returns: two trees of the model's structure. Where a leaf went to the other tree stands None,
    which has no leaves: `grad`, `tree.map` and optimizers pass over it.
    Raises: ArgumentError: when the filter takes none or more than three parameters.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> model = nn.eval_mode(nn.BatchNorm1d(2))
        >>> params, rest = nn.partition(model)
        >>> params.running_mean is None, rest.weight is None
        (True, True)
        >>> def loss(p):
        ...     return xp.sum(nn.combine(p, rest)(xp.ones((4, 2), dtype=xp.float32)))
        >>> ft.grad(loss)(params).bias.tolist()
        [4.0, 4.0]
    """
    takes = _three_arguments(filter)
    leaves, spec = tree.flatten(model)
    picked = [takes(path, leaf, kind) for path, kind, leaf in named_leaves(model)]
    pairs = list(zip(leaves, picked, strict=True))
    yes = tree.unflatten(spec, [leaf if p else None for leaf, p in pairs])
    no = tree.unflatten(spec, [None if p else leaf for leaf, p in pairs])
    return yes, no


def combine(*trees: Any) -> Any:
    """Undo `partition`: at each place the first value that is not None.

    Raises: TreeError: when the trees differ in more than their empty places.
    Example:
        >>> from funct import nn
        >>> nn.combine((1, None), (None, 2))
        (1, 2)
    """
    try:
        return tree.map(_first, *trees, none_is_leaf=True)
    except TreeError as error:
        raise TreeError(error.what.replace("map:", "combine:", 1)) from None


def _first(*values: Any) -> Any:
    return next((v for v in values if v is not None), None)


def _three_arguments(filter: Callable[..., bool]) -> Callable[[str, Any, str], bool]:
    try:
        parameters = inspect.signature(filter).parameters.values()
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        count = sum(p.kind in kinds and p.default is p.empty for p in parameters)
    except ValueError:  # some builtins have no signature
        count = 1
    if count == 1:
        return lambda path, leaf, kind: filter(leaf)
    if count == 2:
        return lambda path, leaf, kind: filter(path, leaf)
    if count != 3:
        raise ArgumentError(f"partition: filter must take 1 to 3 arguments, got {count}")
    return filter
