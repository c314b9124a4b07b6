"""Which steps of a graph are calls of a program, and what lowers them; branches and loops, which
hold others, are in `control.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from funct.compile.fusion.calls import Call
from funct.compile.fusion.fuse import Fused
from funct.compile.fusion.groups import Group
from funct.compile.fusion.lower import lower
from funct.compile.fusion.worth import FEW_ELEMENTS
from funct.compile.gathered import is_gather, is_moving, is_update
from funct.compile.steps.along import is_along, lower_along
from funct.compile.steps.attention import is_attention, lower_attention
from funct.compile.steps.elimination import is_elimination, lower_elimination
from funct.compile.steps.factors import is_factors, lower_factors
from funct.compile.steps.flat import is_flat, lower_flat
from funct.compile.steps.folds import is_fold, lower_fold
from funct.compile.steps.fourier import is_fourier, is_of_many_lines, lower_fourier
from funct.compile.steps.gathers import lower_gather
from funct.compile.steps.loop_products import is_numpys_product, lower_loop_product
from funct.compile.steps.lu import is_lu, lower_lu
from funct.compile.steps.matrices import is_matrices, lower_matrices
from funct.compile.steps.moves import is_move, lower_move
from funct.compile.steps.products import is_product, lower_product
from funct.compile.steps.quantized import (
    is_in_few_bits,
    is_layer,
    lower_few_bits,
    lower_layer,
)
from funct.compile.steps.rows import is_doubted_rows, is_rows, lower_rows
from funct.compile.steps.sparse import is_sparse, lower_sparse
from funct.compile.steps.systems import is_systems, lower_systems
from funct.compile.steps.triangles import is_triangle, lower_triangle
from funct.compile.steps.ufuncs import is_ufunc, lower_ufunc
from funct.compile.steps.windows import (
    is_convolution,
    is_places,
    lower_convolution,
    lower_places,
)
from funct.graph import Node, Var

__all__ = ["in_bodies", "in_programs"]

Lowering = Callable[[Any, Fused], list[Call]]
_Table = tuple[tuple[Callable[[Any], bool], Lowering], ...]


def in_programs(step: Any, doubtful: bool = True) -> Lowering | None:
    """What lowers a step that can be part of a program; doubtful: also one that may find that it
    must be done otherwise. None: it is none.
    """
    few, many = (_OF_FEW, _OF_MANY) if doubtful else (_SURE_OF_FEW, _SURE_OF_MANY)
    return _found(few if _is_of_few(step) else many, step)


def in_bodies(step: Any) -> Lowering | None:
    """What lowers a step that is part of a program only in the body of a branch or a loop."""
    return _found(_IN_BODIES, step)


def _found(table: _Table, step: Any) -> Lowering | None:
    for meant, lowered in table:
        if meant(step):
            return lowered
    return None


def _is_group(step: Any) -> bool:
    return isinstance(step, Group)


def _is_of_few(step: Any) -> bool:
    """Whether it is an op on elements so few that to call it takes longer than to do it."""
    if not isinstance(step, Node):
        return False
    for v in (*step.operands, *step.results):
        if isinstance(v, Var) and math.prod(v.shape) > FEW_ELEMENTS:
            return False
    return True


# Whether a step is that, and its calls: first and last,
_FIRST: _Table = (
    (_is_group, lower), (is_update, lower_gather), (is_elimination, lower_elimination),
    (is_triangle, lower_triangle),
)  # fmt: skip
_LAST: _Table = (
    (is_of_many_lines, lower_fourier), (is_move, lower_move), (is_product, lower_product),
    (is_in_few_bits, lower_few_bits), (is_layer, lower_layer),
    (is_numpys_product, lower_loop_product),
)  # fmt: skip

# and between them what is a call of its own where there are many elements: what raises nothing, and
# what may have to be done otherwise, which raises or not
_CALLED: _Table = (
    (is_flat, lower_flat), (is_ufunc, lower_ufunc), (is_fold, lower_fold),
    (is_rows, lower_rows), (is_lu, lower_lu), (is_fourier, lower_fourier),
)  # fmt: skip
_DOUBTED: _Table = (
    (is_gather, lower_gather), (is_along, lower_along), (is_systems, lower_systems),
    (is_doubted_rows, lower_rows), (is_matrices, lower_matrices), (is_factors, lower_factors),
)  # fmt: skip

_SURE_OF_MANY: _Table = (*_FIRST, *_LAST)
_OF_MANY: _Table = (*_FIRST, (is_moving, lower_gather), *_LAST)
_SURE_OF_FEW: _Table = (*_FIRST, *_CALLED, *_LAST)
_OF_FEW: _Table = (*_FIRST, *_CALLED, *_DOUBTED, *_LAST)
_IN_BODIES: _Table = (
    *_CALLED, *_DOUBTED,
    (is_convolution, lower_convolution), (is_places, lower_places), (is_attention, lower_attention),
    (is_sparse, lower_sparse),
)  # fmt: skip
