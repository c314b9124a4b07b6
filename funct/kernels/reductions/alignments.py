"""Sums over alignments, where there is machine code: `cpu/reductions` says of what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from funct.kernels.cpu.loops import ready
from funct.kernels.cpu.neural import usable
from funct.kernels.cpu.reductions.alignments import alignments, alignments_back

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["likelihood", "likelihood_back", "text"]

_STEP = 1000  # what a step of plain code costs, in elements


def text(
    labels: NDArray[Any], n_out: NDArray[np.int64], blank: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Letters (N, S), of which n_out count, with blanks around them and behind them, (N, 2 S + 1);
    and which of these places may be reached without the blank before.
    """
    lanes, longest = labels.shape
    letters = np.full((lanes, 2 * longest + 1), blank, np.int64)
    letters[:, 1::2] = np.where(np.arange(longest) < n_out[:, None], labels, blank)
    skips = letters != blank
    skips[:, :2] = False
    skips[:, 2:] &= letters[:, 2:] != letters[:, :-2]
    return letters, skips


def likelihood(
    x: NDArray[Any], text: NDArray[np.int64], skips: NDArray[np.bool_], n_in: NDArray[np.int64],
    n_out: NDArray[np.int64], never: float,
) -> tuple[NDArray[Any], NDArray[Any]] | None:  # fmt: skip
    """The log-likelihood of each lane, and alpha; None where the composition is to be taken: it
    refuses classes that there are none of.
    """
    (steps, lanes, classes), width = x.shape, text.shape[1]
    if x.dtype.char not in "fd" or not usable() or not ready(x.size, _STEP * steps):
        return None
    if not steps or not lanes or text.min() < 0 or text.max() >= classes:
        return None
    if n_out.min() < 0 or 2 * n_out.max() >= width:
        return None
    alpha, room = np.empty((lanes, steps, width), x.dtype), np.empty(4 * lanes * width, x.dtype)
    alignments(x, text, skips, n_in, alpha, room, steps, lanes, classes, width, never, lanes)
    last, before = _ends(alpha, n_out)
    return np.where(n_out == 0, last, np.logaddexp(last, before)), alpha


def likelihood_back(
    g: NDArray[Any], x: NDArray[Any], text: NDArray[np.int64], skips: NDArray[np.bool_],
    n_in: NDArray[np.int64], n_out: NDArray[np.int64], alpha: NDArray[Any], never: float,
) -> NDArray[Any]:  # fmt: skip
    """What x gets where g (lanes,) came to the log-likelihoods."""
    lanes, steps, width = alpha.shape
    last, before = _ends(alpha, n_out)
    both = np.logaddexp(last, before)
    some, k = n_out > 0, np.arange(lanes)
    ends = np.zeros((lanes, width), x.dtype)
    ends[k, 2 * n_out] = np.where(some, g * np.exp(last - both), g)
    ends[k[some], 2 * n_out[some] - 1] = (g * np.exp(before - both))[some]
    y, room = np.zeros(x.shape, x.dtype), np.empty(4 * lanes * width, x.dtype)
    alignments_back(
        x, text, skips, n_in, alpha, ends, y, room, steps, lanes, x.shape[2], width, never, lanes
    )
    return y


def _ends(alpha: NDArray[Any], n_out: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """At the last step the blank behind each text, and its last letter."""
    k = np.arange(len(alpha))
    return alpha[k, -1, 2 * n_out], alpha[k, -1, np.maximum(2 * n_out - 1, 0)]
