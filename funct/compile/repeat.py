"""A loop as one program: no Python between its steps.

The program is the same for any number of steps: that comes with the call, and how many were made is
told at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funct.compile.forms import Refused, Repeat
from funct.compile.fusion.calls import Address
from funct.compile.program import link
from funct.graph import Var

__all__ = ["Loop"]


class Loop:
    """A program that repeats a body, whatever arrays and number of steps it is given.

    made: what `made` gives of its form.
    """

    def __init__(self, made: Any) -> None:
        form: Repeat = made.form
        body = form.body
        n, split = form.carry, form.constants + form.carry
        self.n = n
        self.rows = body.outputs[n:]
        given = [Var(f"given{k}", v.shape, v.dtype) for k, v in enumerate(body.inputs)]
        results = [
            Var(f"result{k}", v.shape, v.dtype)
            for k, v in enumerate((*body.inputs[form.constants : split], *self.rows))
        ]
        self.carries = [(v.shape, v.dtype) for v in results[:n]]
        limit, count = (Var(name, (1,), np.dtype(np.int64)) for name in ("limit", "count"))
        calls = made.repeat(
            [Address(v) for v in given], [Address(v) for v in results],
            Address(limit), Address(count),
        )  # fmt: skip
        self.constants = made.constants  # whose addresses the program holds
        held = {v: x.ctypes.data for v, x in self.constants.items()}
        self.program = link(calls, [*given, *results, limit, count], held)

    def __call__(self, operands: Sequence[Any], limit: int) -> tuple[tuple[Any, ...], int]:
        """The last carry and the ys, for so many steps at most; how many steps were made.

        operands: the body's inputs, with the rows of an x in one array. Raises: Refused: where an
        op must raise, which the same steps in Python do.
        """
        carry = [np.empty(shape, dtype) for shape, dtype in self.carries]
        ys = [np.empty((limit, *v.shape), v.dtype) for v in self.rows]
        given = [x if x.__class__ is np.ndarray else np.asarray(x) for x in operands]
        count = np.empty(1, np.int64)
        rest = [*carry, *ys, np.array([limit]), count, np.empty(self.program.workspace, np.uint8)]
        try:
            done = self.program.run(*given, *rest)
            if done is False:
                dense = [np.require(x, requirements=["C", "A"]) for x in given]
                done = self.program.run(*dense, *rest)
        except (FloatingPointError, Warning) as error:  # as `np.errstate` or a filter says
            raise Refused from error
        if done is None:
            raise Refused
        return (*carry, *ys), int(count[0])
