"""The job of attention, and of its adjoint."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from funct.kernels.cpu.attention import fused, strips
from funct.kernels.cpu.jobs import alone, job_of

if TYPE_CHECKING:
    from funct.kernels.cpu.jobs import Job
    from funct.kernels.windows.views import Sizes

__all__ = ["attention"]


def attention(
    name: str, dtype: str, causal: int, scale: str, rate: str, passes: int, mask: Sizes,
    seed: Sizes, *operands: tuple[Sizes, Sizes],
) -> Job | None:  # fmt: skip
    """Attention, or its adjoint, with a mask of numbers. scale, rate: in hexadecimal digits.
    operands: shapes and strides.
    """
    number = np.dtype(dtype)
    numbers, given = map(float.fromhex, (scale, rate)), [(number, *o) for o in operands]
    how = bool(causal), *numbers, bool(passes)
    made = fused.plan(name, *how, False, mask, seed, *given)
    if made is None:
        return None
    words = np.frombuffer(bytes(8 * len(strips.ADDRESSES)) + made.rest, np.int64)
    backward = name == "attend_back"
    used = ("q", "k", "v", "seed", *(() if passes else ("mask",)), "scratch")
    used += ("lse", "g", "delta", "dq", "dk", "dv") if backward else ("o", "lse")
    found = job_of(fused.entry(number, made.name), words, strips.JOB, used, made.room, made)
    work = 2 * prod(made.lead) * made.queries * operands[1][0][-2] * (made.depth + made.width)
    return alone(found, strips.JOB, work, "workers")
