"""Connectionist temporal classification: the likelihood of a text over all its alignments."""

from __future__ import annotations

from typing import Any

import numpy as np

import funct.array as xp
from funct import ops
from funct.array import Array
from funct.errors import ArgumentError, ShapeError
from funct.kernels.reductions import alignments as kernels
from funct.nn.functional.compiled import concrete
from funct.nn.functional.reduction import in_single, reduced
from funct.ops.fast import wrap
from funct.transforms import custom_vjp, scan, vjp
from funct.transforms.reverse import ReverseTracer

__all__ = ["ctc_loss"]

_NEVER = -1e30  # log of a probability of 0: finite, so that differences of two of them are


@in_single
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """Compute -log p(targets) summed over all alignments with log_probs.

    Args: log_probs: shape (T, N, C) or (T, C). targets: classes, integers of shape (N, S), (S,)
    without a batch, or all samples' one after the other. input_lengths, target_lengths: how much of
    T and S counts, per sample: integers of shape (N,) or (), or Python numbers. blank: the class
    between letters. zero_infinity: 0 instead of inf where a text has no alignment.
    Returns: shape (), or (N,) or () for "none". The mean is that of the losses divided by their
    target_lengths.
    Raises: ShapeError: when the shapes do not fit. ArgumentError: when blank is no class or
    reduction is unknown. IndexOutOfBoundsError: when a target is no class.
    Notes: the derivative is that in log_probs; torch gives the derivative in the logits, which is
    the same after log_softmax.
    Example:
        >>> import funct.array as xp
        >>> from funct.nn import functional as F
        >>> x = xp.log(xp.asarray([[[0.5, 0.5]], [[0.5, 0.5]]]))
        >>> round(float(xp.exp(-F.ctc_loss(x, xp.asarray([[1]]), [2], [1]))), 12)
        0.75

    Source: Graves, Fernández, Gomez, Schmidhuber 2006.
    """
    single = len(log_probs.shape) == 2
    x = xp.expand_dims(log_probs, 1) if single else log_probs  # (T, N, C)
    if len(x.shape) != 3:
        raise ShapeError(
            f"ctc_loss: log_probs must have shape (T, N, C) or (T, C), got {log_probs.shape}"
        )
    _, lanes, classes = x.shape
    if not 0 <= blank < classes:
        raise ArgumentError(f"ctc_loss: blank must be one of {classes} classes, got {blank}")
    n_in, n_out = (_lengths(name, v, lanes) for name, v in (
        ("input_lengths", input_lengths), ("target_lengths", target_lengths)
    ))  # fmt: skip
    labels = _by_rows(targets, n_out, lanes)  # (N, S)
    log_p = _log_likelihood(x, *_text(labels, n_out, blank), n_in, n_out)
    loss = ops.where(ops.less(log_p, 0.5 * _NEVER), 0.0 if zero_infinity else xp.inf, -log_p)
    if reduction == "mean":
        return xp.mean(loss / xp.astype(xp.maximum(n_out, 1), loss.dtype))
    return reduced("ctc_loss", loss[0] if single else loss, reduction)


def _lengths(name: str, value: Any, lanes: int) -> Any:
    n = xp.reshape(xp.asarray(value, dtype=xp.int64), (-1,))
    if n.shape[0] != lanes:
        raise ShapeError(f"ctc_loss: {name} must have {lanes} entries, got {n.shape[0]}")
    return n


def _by_rows(targets: Any, n_out: Any, lanes: int) -> Any:
    """Targets as (N, S); what is behind the text of a sample does not matter."""
    if len(targets.shape) == 1:
        if lanes == 1:
            targets = xp.expand_dims(targets, 0)
        else:  # one after the other
            longest = int(xp.max(n_out))
            starts = ops.cumulative_sum(n_out, 0) - n_out
            place = xp.expand_dims(starts, 1) + xp.arange(longest)
            place = ops.where(xp.arange(longest) < xp.expand_dims(n_out, 1), place, 0)
            targets = xp.reshape(xp.take(targets, xp.reshape(place, (-1,))), place.shape)
    if len(targets.shape) != 2 or targets.shape[0] != lanes:
        raise ShapeError(
            f"ctc_loss: targets must have shape ({lanes}, S) or (S,), got {targets.shape}"
        )
    return targets


def _text(labels: Any, n_out: Any, blank: int) -> tuple[Any, Any]:
    """The letters with blanks around them and behind them, (N, 2 S + 1), and which of these places
    may be reached without the blank before.
    """
    lanes, longest = labels.shape
    if labels.__class__ is n_out.__class__ is Array:
        text, skips = kernels.text(labels.data, n_out.data, blank)
        return wrap(text), wrap(skips)
    inside = xp.arange(longest) < xp.expand_dims(n_out, 1)
    labels = ops.where(inside, xp.astype(labels, xp.int64), blank)
    blanks = ops.where(ops.equal(labels, labels), blank, labels)
    pairs = xp.reshape(xp.stack([blanks, labels], axis=2), (lanes, 2 * longest))
    text = xp.concat([pairs, xp.full((lanes, 1), blank)], axis=1)
    older = xp.concat([text[:, :2], text[:, :-2]], axis=1) if longest else text
    return text, ops.logical_and(ops.not_equal(text, blank), ops.not_equal(text, older))


def _log_likelihood(x: Any, text: Any, skips: Any, n_in: Any, n_out: Any) -> Any:
    known = x.__class__ is Array or (x.__class__ is ReverseTracer and concrete(x))
    if known and all(v.__class__ is Array for v in (text, n_in, n_out)):
        given = x, text, skips, n_in, n_out
        return _forward(*given)[0] if x.__class__ is Array else _over_alignments(*given)
    return _recursion(x, text, skips, n_in, n_out)


@custom_vjp
def _over_alignments(x: Any, text: Any, skips: Any, n_in: Any, n_out: Any) -> Any:
    """`_recursion`, where all is known: one kernel, and one for the way back."""
    return _forward(x, text, skips, n_in, n_out)[0]


def _forward(x: Any, text: Any, skips: Any, n_in: Any, n_out: Any) -> tuple[Any, Any]:
    given = (text, skips, n_in, n_out)
    if x.__class__ is not Array:
        return _over_alignments(x, *given), (x, *given, None)
    bare = (x.data, text.data, skips.data, n_in.data, n_out.data)
    found = kernels.likelihood(*bare, _NEVER)
    if found is None:
        return _recursion(x, *given), (x, *given, None)
    return wrap(found[0]), (x, *given, wrap(found[1]))


def _back(kept: Any, g: Any) -> tuple[Any, ...]:
    x, *given, alpha = kept
    if g.__class__ is Array and alpha.__class__ is Array:
        text, skips, n_in, n_out = given
        bare = (x.data, text.data, skips.data, n_in.data, n_out.data)
        found = wrap(kernels.likelihood_back(g.data, *bare, alpha.data, _NEVER))
    else:
        found = vjp(lambda x: _recursion(x, *given), x)[1](g)[0]
    return found, None, None, None, None


_over_alignments.defvjp(_forward, _back)


def _recursion(x: Any, text: Any, skips: Any, n_in: Any, n_out: Any) -> Any:
    """Forward over the steps, for each place in the text."""
    steps, places = x.shape[0], np.arange(text.shape[1])
    never = xp.astype(xp.asarray(_NEVER), x.dtype)
    wide = ops.broadcast_to(xp.expand_dims(text, 0), (steps, *text.shape))
    emitted = ops.maximum(xp.take_along_axis(x, wide, axis=2), never)  # (T, N, 2 S + 1)
    alpha = ops.where(xp.asarray(places < 2), emitted[0], never)

    def step(alpha: Any, now: Any) -> Any:
        t, emitted = now
        one, two = _delayed(alpha, 1, never), ops.where(skips, _delayed(alpha, 2, never), never)
        new = ops.logaddexp(ops.logaddexp(alpha, one), two) + emitted
        going = xp.expand_dims(ops.less(t, n_in), 1)
        return ops.where(going, ops.maximum(new, never), alpha), None

    alpha, _ = scan(step, alpha, (xp.arange(1, steps), emitted[1:]))
    last = xp.expand_dims(2 * n_out, 1)  # the blank behind the text, and its last letter
    ends = ops.concat(last, ops.maximum(last - 1, 0), 1)
    final = xp.take_along_axis(alpha, ends, axis=1)
    both = ops.logaddexp(final[:, 0], final[:, 1])
    return ops.where(ops.equal(n_out, 0), final[:, 0], both)


def _delayed(alpha: Any, by: int, never: Any) -> Any:
    """alpha moved by places to the right, with `never` in front."""
    width = alpha.shape[1]
    if width <= by:
        return xp.broadcast_to(never, alpha.shape)
    return xp.concat([xp.broadcast_to(never, (alpha.shape[0], by)), alpha[:, :-by]], axis=1)
