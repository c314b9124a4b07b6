"""What is worth machine code, and when: a function of shapes and numbers of steps alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from funct.compile.forms import Choice, Repeat
from funct.compile.fusion.groups import REDUCTIONS, is_apart, why_not
from funct.compile.gathered import changes_few
from funct.compile.loops.views import VIEWS
from funct.graph import Control, Graph, Node, Var
from funct.ops.linalg import contract_layout

__all__ = [
    "ELEMENT_OPS", "FEW_ELEMENTS", "is_of_small_matrices", "is_stack_by_vectors", "worth",
    "worth_looping",
]  # fmt: skip

ELEMENT_OPS = 1 << 14  # from which loops are made for a graph
FEW_ELEMENTS = 1 << 10  # on which an op takes less time than a call of it
_CALL = 1 << 10  # elements that NumPy computes while it is called
# Calls of `add` that one of these takes as long as, if more than one; of views, any.
_TWO = (
    "astype", "concat", "broadcast_to", "contract", "equal", "greater", "greater_equal", "less",
    "less_equal", "matmul", "maximum", "minimum", "not_equal", "pow",
)  # fmt: skip
_CALLS = dict.fromkeys(REDUCTIONS, 3) | dict.fromkeys(_TWO, 2) | {"where": 3, "slice_": 1}
# The same of what is no loops, less what NumPy's own loop in it takes.
_CALLS_APART = {
    "cholesky": 7, "cumulative_prod": 4, "cumulative_sum": 4, "det": 6, "eig": 12, "eigh": 10,
    "eigvals": 8, "eigvalsh": 8, "inv": 7, "lstsq": 18, "lu": 12, "put_along_axis": 5, "qr": 12,
    "scatter": 6, "scatter_add": 7, "slogdet": 8, "solve": 7, "solve_triangular": 3, "svd": 12,
    "svdvals": 7, "take_along_axis": 4,
}  # fmt: skip
# The same of ops on codes, which look at scales and zero points at each call, and lay out a layer.
_CALLS_ON_CODES = dict.fromkeys(
    ("dequantize", "quantize", "quantized_add", "quantized_convolution", "quantized_linear"), 16
)
# Passes of NumPy that an op takes as long as, if more than one. Of functions that it or SciPy
# computes number by number, some err by more than the 2 ulp of ours.
_SLOW = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosh", "erf", "erfc",
    "erfinv", "exp2", "expit", "expm1", "gammaln", "hypot", "log", "log10", "log1p", "log2",
    "logaddexp", "ndtr", "sinh", "tan", "tanh",
)  # fmt: skip
_PASSES = {"relu": 4, "sigmoid": 6} | dict.fromkeys(_SLOW, 4)
_FEW = 1 << 12  # elements of all that a branch or a loop is given and gives
_NARROW = 1 << 6  # elements that a step of another loop is given and gives
_LONG_STACK, _SHORT_SUM = 64, 64  # matrices, and terms of each sum, that are no work for BLAS
_SHORT_ROW, _MANY_ROWS = 7, 1 << 12
_MANY_MATRICES, _SMALL_SIDE = 256, 16
_MATRIX = 100  # elements of an op that take NumPy as long as one of a stack of products
_SMALL, _ALONE = 1 << 13, 1 << 18  # multiplications of a product that one core computes
_MULTIPLICATIONS = 64  # in the time of an element
_FEW_ROWS, _FEW_ROWS_OF_DETERMINANT = 4, 3
_NODE_STEPS = 48  # from which a loop of known length becomes a program

_SINGLE = frozenset({np.dtype(np.float32)})
_SUMMED = _SINGLE | {np.dtype(np.float64)}


def worth(
    graph: Graph, *, calls: Graph | None = None, held: Callable[[Node], bool] = lambda e: False
) -> bool:
    """Whether loops over the graph's elements would save more than they cost to make.

    calls: the graph as it is called op by op, where that is saved often: not where each length of
    an axis gets loops of its own. held: whether a program can hold a branch or a loop, or what is
    none on few elements.
    """
    work = 0
    for e in graph.nodes:
        if not isinstance(e, Node) or e.name in VIEWS:
            continue
        loops = not why_not(e) or is_apart(e)
        shapes = [v.shape for v in (*e.operands, *e.results) if isinstance(v, Var)]
        short = is_stack_by_vectors(e) or is_of_small_matrices(e)
        if short or _is_small_stack(e):
            work += max([_MATRIX * math.prod(s[:-2]) for s in shapes])
        work += _of_products(e)
        if short or loops or changes_few(e):
            work += max([math.prod(s) for s in shapes]) * _PASSES.get(e.name, 1)
        if work >= ELEMENT_OPS:  # one op on a large array is enough, and found sooner
            return True
    return calls is not None and work + _CALL * _calls_of(calls, held) >= ELEMENT_OPS


def _calls_of(graph: Graph, held: Callable[[Node], bool]) -> int:
    """Calls of NumPy that a program would save; those of loops are looked at where it matters."""
    known = {v for v, _ in graph.constants}
    found = sum([_calls_of_one(e, held) + _calls_on_codes(e, known) for e in graph.nodes])
    for e in graph.nodes:
        if found * _CALL < ELEMENT_OPS and (inner := _calls_in(e)) and held(e):  # type: ignore[arg-type]
            found += inner
    return found


def _calls_in(e: object) -> int:
    """Calls of NumPy in a branch, or in the steps of a loop, on so few elements that they take most
    of the time; a `while` may have many. Of many steps of few numbers a program can do more than
    a loop by itself (`apart.py`).
    """
    if not isinstance(e, Node) or not isinstance(e.primitive, Control):
        return 0
    form = e.primitive.kind.form()
    few = _elements([v for v in (*e.operands, *e.results) if isinstance(v, Var)]) <= _FEW
    if isinstance(form, Choice):
        return max(map(_calls, form.graphs)) if few else 0
    if not isinstance(form, Repeat):
        return 0
    if not few and _elements((*form.body.inputs, *form.body.outputs)) > _NARROW:
        return 0
    return _calls(form.body) * (ELEMENT_OPS // _CALL if form.steps is None else form.steps)


def _elements(held: Iterable[Var]) -> int:
    return sum([math.prod(v.shape) for v in held])


def _calls(graph: Graph) -> int:
    return sum([_calls_of_one(e, lambda e: True) + _calls_in(e) for e in graph.nodes])


def _calls_of_one(e: object, held: Callable[[Node], bool]) -> int:
    """As long as how many calls an entry takes that a program would save."""
    if not isinstance(e, Node):
        return 0
    if e.name in _CALLS_APART:
        return _CALLS_APART[e.name] * held(e)
    known = _CALLS.get(e.name, int(e.name not in VIEWS))
    product = e.name in ("matmul", "contract")
    saved = not why_not(e) or is_apart(e) or product or any(v.dtype.kind == "c" for v in e.reads)
    return known if saved else 0


def _calls_on_codes(e: object, known: set[Var]) -> int:
    """The same of an op on codes, which programs take if all but the codes is known."""
    if not isinstance(e, Node) or e.name not in _CALLS_ON_CODES:
        return 0
    given = [v for v in e.operands if isinstance(v, Var) and v not in known]
    return _CALLS_ON_CODES[e.name] if len(given) <= 1 + (e.name == "quantized_add") else 0


def _is_small_stack(e: Node) -> bool:
    """Whether a node multiplies many matrices, small enough to be computed in registers."""
    if e.name == "contract":
        return _is_of_small_products(e, _SMALL_SIDE)
    if e.name != "matmul" or any(v.dtype not in _SUMMED for v in e.results):
        return False
    given = [v for v in e.operands if isinstance(v, Var)]
    return len(given) == 2 and all(n <= _SMALL_SIDE for v in given for n in v.shape[-2:])


def _of_products(e: Node) -> int:
    """Elements of an op that take as long as a stack of products, which NumPy computes one after
    the other, and a program on all cores. Small ones have no use of that, large ones have threads.
    """
    if e.name != "matmul" or any(v.dtype not in _SUMMED for v in (*e.reads, *e.results)):
        return 0
    out, terms = e.results[0].shape, e.reads[0].shape[-1]
    count, each = math.prod(out[:-2]), math.prod(out[-2:]) * terms
    return count * each // _MULTIPLICATIONS if count > 1 and _SMALL < each <= _ALONE else 0


def is_stack_by_vectors(e: Node) -> bool:
    """Whether a node multiplies each of many small matrices by a vector, or many short rows by one:
    loops do that better.
    """
    if e.name != "matmul":
        return False
    x, y = e.operands
    if not isinstance(x, Var) or not isinstance(y, Var) or x.dtype not in _SUMMED:
        return False
    stack, (rows, terms), columns = x.shape[:-2], x.shape[-2:], y.shape[-1]
    if len(y.shape) == 2 and columns == 1 and 1 < terms <= _SHORT_ROW:
        return y.dtype == x.dtype and math.prod(x.shape[:-1]) >= _MANY_ROWS
    short = columns == 1 and rows > 1 and 1 < terms <= _SHORT_SUM
    return short and y.shape[:-2] == stack and math.prod(stack) >= _LONG_STACK


def is_of_small_matrices(e: Node) -> bool:
    """Whether a node is about many matrices of a few rows, which are lanes of vectors then."""
    if e.name == "contract":
        return _is_of_small_products(e, _FEW_ROWS)
    if e.name not in ("matmul", "det", "cofactor"):
        return False
    given = [v for v in e.operands if isinstance(v, Var)]
    # products of elements, which are wide for float32 alone, overflow where a pivoted LU does not
    summed = _SUMMED if e.name == "matmul" else _SINGLE
    if len(given) < len(e.operands) or any(v.dtype not in summed for v in (*given, *e.results)):
        return False
    most = _FEW_ROWS if e.name == "matmul" else _FEW_ROWS_OF_DETERMINANT
    few = all(1 <= n <= most for v in given for n in v.shape[-2:]) and given[0].shape[-1] > 1
    lead = np.broadcast_shapes(*[v.shape[:-2] for v in given])
    return few and math.prod(lead) >= _MANY_MATRICES


def _is_of_small_products(e: Node, most: int) -> bool:
    """The same of `contract`, which becomes `matmul`."""
    x, y = e.operands
    if not isinstance(x, Var) or not isinstance(y, Var) or {x.dtype, y.dtype} - _SUMMED:
        return False
    of_x, of_y, both, left, inner, _ = contract_layout(e.params[0])
    xs, ys = [x.shape[a] for a in of_x], [y.shape[a] for a in of_y]
    cores = (xs[both : both + left], xs[both + left :], ys[both + inner :])
    few = all(1 <= math.prod(core) <= most for core in cores)
    return inner > 0 and few and math.prod(xs[:both]) >= _MANY_MATRICES


def worth_looping(body: Graph, steps: int) -> bool:
    """Whether so many steps save more than the code costs to make."""
    return steps * _weight(body) >= _NODE_STEPS


def _weight(body: Graph) -> int:
    """Entries that a step goes through. A loop inside that may be long is worth it by itself."""
    weight = len(body.nodes)
    for e in body.nodes:
        if isinstance(e, Node) and isinstance(e.primitive, Control):
            form = e.primitive.kind.form()
            if isinstance(form, Repeat):
                weight += _NODE_STEPS if form.steps is None else form.steps * _weight(form.body)
            elif isinstance(form, Choice):
                weight += max(map(_weight, form.graphs))
    return weight
