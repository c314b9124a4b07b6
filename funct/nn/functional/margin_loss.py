"""Losses that want a margin: between classes, between a pair, around a triplet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import funct.array as xp
from funct import ops
from funct.errors import ArgumentError, ShapeError
from funct.nn.functional.arguments import from_begin
from funct.nn.functional.compiled import compiled
from funct.nn.functional.distance import cosine_similarity, pairwise_distance
from funct.nn.functional.reduction import check_same_shape, in_single, reduced, refuse_retired

__all__ = [
    "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip


@compiled
@in_single
def soft_margin_loss(
    input: Any, target: Any, size_average: None = None, reduce: None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute log(1 + exp(-t x)) for labels t of 1 and -1, without overflow.

    Raises: ShapeError: when the shapes differ. ArgumentError: when reduction is unknown.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x, t = xp.asarray([1000.0, 1000.0]), xp.asarray([1, -1])
        >>> F.soft_margin_loss(x, t, reduction="none").tolist()
        [0.0, 1000.0]

    Source: torch.nn.functional.soft_margin_loss.
    """
    refuse_retired("soft_margin_loss", size_average, reduce)
    check_same_shape("soft_margin_loss", input, target)
    return reduced("soft_margin_loss", ops.logaddexp(-target * input, 0.0), reduction)


@compiled
@in_single
def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, size_average: None = None, reduce: None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute the mean over the classes of the binary cross entropy with logits x.

    Args: input: shape (N, C) or (C,). target: 0 or 1, of that shape. weight: per class, (C,).
    Returns: shape (), or (N,) for "none".
    Raises: ShapeError: when the shapes differ. ArgumentError: when reduction is unknown.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x, t = xp.zeros((1, 3)), xp.asarray([[1, 0, 1]])
        >>> round(float(F.multilabel_soft_margin_loss(x, t)), 4)  # log(2)
        0.6931

    Source: torch.nn.functional.multilabel_soft_margin_loss.
    """
    name = "multilabel_soft_margin_loss"
    refuse_retired(name, size_average, reduce)
    check_same_shape(name, input, target)
    loss = (1.0 - target) * input + ops.logaddexp(-input, 0.0)
    loss = loss if weight is None else loss * weight
    return reduced(name, xp.mean(loss, axis=-1), reduction)


@compiled
@in_single
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, size_average: None = None, reduce: None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute the distance x where the label t is 1, max(0, margin - x) where it is -1.

    Raises: ArgumentError: when reduction is unknown.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x, t = xp.asarray([0.25, 0.25]), xp.asarray([1, -1])
        >>> F.hinge_embedding_loss(x, t, reduction="none").tolist()
        [0.25, 0.75]

    Source: torch.nn.functional.hinge_embedding_loss.
    """
    refuse_retired("hinge_embedding_loss", size_average, reduce)
    near = ops.where(ops.not_equal(target, -1), input, 0.0)
    far = ops.where(ops.not_equal(target, 1), ops.relu(margin - input), 0.0)
    return reduced("hinge_embedding_loss", near + far, reduction)


@compiled
@in_single
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: None = None,
    reduce: None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute max(0, margin - t (x1 - x2)): t = 1 wants x1 ranked higher, t = -1 x2.

    Raises: ShapeError: when the ranks differ. ArgumentError: when reduction is unknown.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> a, b, t = xp.asarray([3.0, 1.0]), xp.asarray([1.0, 2.0]), xp.asarray([1, 1])
        >>> F.margin_ranking_loss(a, b, t, reduction="none").tolist()
        [0.0, 1.0]

    Source: torch.nn.functional.margin_ranking_loss.
    """
    name = "margin_ranking_loss"
    refuse_retired(name, size_average, reduce)
    if not len(input1.shape) == len(input2.shape) == len(target.shape):
        raise ShapeError(
            f"{name}: input1, input2 and target must have one rank, got {input1.shape}, "
            f"{input2.shape} and {target.shape}"
        )
    return reduced(name, ops.relu(margin - target * (input1 - input2)), reduction)


@compiled
@in_single
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: None = None,
    reduce: None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute 1 - cos(x1, x2) where the label t is 1, max(0, cos(x1, x2) - margin) where it is -1.

    Args: input1, input2: shape (N, D) or (D,). target: shape (N,) or ().
    Raises: ShapeError: when the shapes do not fit. ArgumentError: when reduction is unknown.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> a, b = xp.asarray([1.0, 0.0]), xp.asarray([3.0, 4.0])
        >>> [round(float(F.cosine_embedding_loss(a, b, xp.asarray(t))), 6) for t in (1, -1)]
        [0.4, 0.6]

    Source: torch.nn.functional.cosine_embedding_loss.
    """
    name = "cosine_embedding_loss"
    refuse_retired(name, size_average, reduce)
    check_same_shape(name, input1, input2, "input2")
    if target.shape != input1.shape[:-1]:
        raise ShapeError(
            f"{name}: target must have shape {input1.shape[:-1]} for inputs {input1.shape}, "
            f"got {target.shape}"
        )
    cos = cosine_similarity(input1, input2, dim=-1)
    near = ops.where(ops.equal(target, 1), 1.0 - cos, 0.0)
    far = ops.where(ops.equal(target, -1), ops.relu(cos - margin), 0.0)
    return reduced(name, near + far, reduction)


@compiled
@in_single
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None,
    size_average: None = None, reduce: None = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute Σ_{c ≠ t} max(0, margin - x_t + x_c)^p / C for class indices t.

    Args: input: scores, shape (N, C) or (C,). target: integers, shape (N,) or (). p: 1 or 2.
    weight: per class, shape (C,).
    Returns: shape (), or target's for "none".
    Raises: ShapeError: when the shapes do not fit. ArgumentError: when p is neither 1 nor 2.
    IndexOutOfBoundsError: when an index is outside [0, C).
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> float(F.multi_margin_loss(xp.asarray([[0.0, 2.0, 1.5, 0.0]]), xp.asarray([1])))
        0.125

    Source: torch.nn.functional.multi_margin_loss.
    """
    name = "multi_margin_loss"
    refuse_retired(name, size_average, reduce)
    if p not in (1, 2):
        raise ArgumentError(f"{name}: p must be 1 or 2, got {p}")
    if not input.shape or target.shape != input.shape[:-1]:
        raise ShapeError(
            f"{name}: target must have shape {input.shape[:-1]} for input {input.shape}, "
            f"got {target.shape}"
        )
    classes = input.shape[-1]
    at = xp.expand_dims(from_begin(target, classes), -1)
    short = ops.relu(margin - xp.take_along_axis(input, at, axis=-1) + input)
    loss = short if p == 1 else short * short
    if weight is not None:
        loss = loss * xp.reshape(xp.take(weight, xp.reshape(at, (-1,))), at.shape)
    loss = ops.where(at == xp.arange(classes), 0.0, loss)
    return reduced(name, xp.mean(loss, axis=-1), reduction)


@in_single
def multilabel_margin_loss(
    input: Any, target: Any, size_average: None = None, reduce: None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute Σ_{j, c} max(0, 1 - x_j + x_c) / C over the classes j of a sample and the others c.

    Args: input: scores, shape (N, C) or (C,). target: integers of that shape: the classes of the
    sample, then -1; what follows the first -1 counts for nothing.
    Returns: shape (), or (N,) for "none".
    Raises: ShapeError: when the shapes differ. IndexOutOfBoundsError: when an index is above C - 1.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.asarray([[2.0, 0.5, 1.0, 0.0]])
        >>> float(F.multilabel_margin_loss(x, xp.asarray([[0, 2, -1, 0]])))
        0.125

    Source: torch.nn.functional.multilabel_margin_loss.
    """
    name = "multilabel_margin_loss"
    refuse_retired(name, size_average, reduce)
    check_same_shape(name, input, target)
    classes, axis = input.shape[-1], len(input.shape) - 1
    ended = ops.cumulative_sum(xp.astype(ops.less(target, 0), xp.int64), axis)
    valid = ops.equal(ended, 0)  # (..., C)
    at = ops.where(valid, target, 0)
    hits = ops.logical_and(xp.expand_dims(at, -1) == xp.arange(classes), xp.expand_dims(valid, -1))
    own = ops.any(hits, (axis,), False)  # (..., C): whether a class is one of the sample's
    wanted = xp.expand_dims(xp.take_along_axis(input, at, axis=-1), -1)  # (..., C, 1)
    short = ops.relu(1.0 - wanted + xp.expand_dims(input, -2))  # (..., j, c)
    counts = ops.logical_and(xp.expand_dims(valid, -1), ops.logical_not(xp.expand_dims(own, -2)))
    loss = xp.sum(ops.where(counts, short, 0.0), axis=(-2, -1)) / classes
    return reduced(name, loss, reduction)


@compiled
@in_single
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: None = None, reduce: None = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Compute max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm distance.

    Args: anchor, positive, negative: shape (N, D) or (D,). eps: added to each difference. swap:
    take d(positive, negative) where it is the smaller one.
    Returns: shape (), or (N,) for "none".
    Raises: ArgumentError: when margin is not positive or reduction is unknown.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> a, p, n = xp.asarray([[0.0]]), xp.asarray([[1.0]]), xp.asarray([[1.5]])
        >>> round(float(F.triplet_margin_loss(a, p, n)), 4)
        0.5

    Source: Balntas, Riba, Ponsa, Mikolajczyk 2016.
    """

    def distance(a: Any, b: Any) -> Any:
        return pairwise_distance(a, b, p, eps)

    refuse_retired("triplet_margin_loss", size_average, reduce)
    return _triplet(
        "triplet_margin_loss", anchor, positive, negative, distance, margin, swap, reduction
    )


def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *,
    distance_function: Callable[[Any, Any], Any] | None = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """`triplet_margin_loss` with a distance of one's own; None is `pairwise_distance`.

    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> apart = lambda x, y: xp.max(xp.abs(x - y), axis=-1)
        >>> a, p, n = xp.asarray([[0.0]]), xp.asarray([[1.0]]), xp.asarray([[1.5]])
        >>> float(F.triplet_margin_with_distance_loss(a, p, n, distance_function=apart))
        0.5

    Source: torch.nn.functional.triplet_margin_with_distance_loss.
    """
    return _triplet(
        "triplet_margin_with_distance_loss", anchor, positive, negative,
        distance_function or pairwise_distance, margin, swap, reduction,
    )  # fmt: skip


def _triplet(
    name: str, anchor: Any, positive: Any, negative: Any, distance: Callable[[Any, Any], Any],
    margin: float, swap: bool, reduction: str,
) -> Any:  # fmt: skip
    if margin <= 0:
        raise ArgumentError(f"{name}: margin must be positive, got {margin}")
    if not len(anchor.shape) == len(positive.shape) == len(negative.shape):
        raise ShapeError(
            f"{name}: anchor, positive and negative must have one rank, got {anchor.shape}, "
            f"{positive.shape} and {negative.shape}"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return reduced(name, ops.relu(near - far + margin), reduction)
