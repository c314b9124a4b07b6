"""Ops in bodies of loops that are written by others, of which loops are machine code.

A pseudo-inverse is that of singular values and vectors; systems with stacks that differ are those
of one stack; a convolution of two sequences is one of images, and one whose windows are single
elements products of matrices, which of integers are sums; an exponential is products, a system and
two loops (`exponential.py`). What loops do not know of numbers of two bytes is computed in float32
and rounded once, as eager execution does.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from funct import ops
from funct.compile.loops.scalars import NARROW, printing, unsupported
from funct.compile.loops.views import VIEWS
from funct.compile.rewriting import quantized
from funct.compile.rewriting.attention import attention, attention_keep, attention_pull
from funct.compile.rewriting.exponential import exponential
from funct.compile.rewriting.new_nodes import Known, NewNodes, renamed
from funct.core import Shape, Value
from funct.graph import Control, Graph, Node, Var, eliminate_dead
from funct.kernels.cpu.convolution.few_products import products
from funct.kernels.table import PAIRS, met
from funct.kernels.windows.convolution import in_roles
from funct.kernels.windows.pointwise import in_tiles, mapped, single, summed_behind, whole
from funct.kernels.windows.views import Sliding
from funct.ops.fast import wrap
from funct.ops.matrices import adjoint

__all__ = ["composed", "on_codes"]

_Way = Callable[[Node, Known], Callable[..., Any] | None]

_SINGLE, _DOUBLE, _INTEGER = map(np.dtype, ("float32", "float64", "int64"))
_SHORT = frozenset(map(np.dtype, ("int8", "uint8", "int16", "uint16")))
_EXACT = 1 << 53
_BRAIN = np.dtype(ml_dtypes.bfloat16)
_LARGE = 1 << 24  # multiplications
_CONVOLUTIONS = ("convolution", "convolution_input", "convolution_weight")
# what eager execution rounds after each step of, or has a neighbour or a sign of its own of
_ROUNDED_OFTEN = frozenset([
    "fold_windows", "linear_recurrence", "nextafter", "reduce_prod", "sampled_matmul",
    "scatter_add", "sign", "sparse_matmul", "weight_only_linear",
])  # fmt: skip


def composed(graph: Graph) -> Graph:
    """The graph with other ops for these."""
    for way in (_widening, _way):
        if any(map(way, graph.nodes)):
            graph = _Composed(graph).run(way)
    return graph


def on_codes(graph: Graph) -> Graph:
    """The graph with layers that are laid out, and loops from numbers to codes and back, where it
    is no body.
    """
    if not any(map(_way_on_codes, graph.nodes)):
        return graph
    return eliminate_dead(_Composed(graph).run(_way_on_codes), guards=False)


class _Composed(NewNodes):
    """One walk over the nodes."""

    prefix = "of"

    def run(self, way_of: Callable[[Any], _Way | None]) -> Graph:
        """Rewrite."""
        new: dict[Any, Any] = {}
        for e in self.graph.nodes:
            way = way_of(e)
            if way is None or not isinstance(e, Node):
                self.nodes.append(renamed(e, new))
                continue
            found = way(e, self.constants) if _is_known(e) else None
            e = renamed(e, new)
            if found is None:
                self.keep(e)
            else:
                self.site = e.site
                new |= zip(e.results, self.spelled(found, e.reads), strict=True)
        return self.finished(new)


def _is_known(e: Node) -> bool:
    arrays = [v for v in (*e.operands, *e.results) if isinstance(v, Var)]
    return all(isinstance(n, int) and n for v in arrays for n in v.shape)


def _pinv(e: Node, known: Known) -> Callable[..., Any]:
    """As eager execution has it, with singular values that count as 0 beside those that do not."""
    rtol = e.operands[1]

    def run(x: Value, *given: Value) -> tuple[Any]:
        least: Any = given[0] if given else rtol
        u, s, vh = ops.svd(x, False)
        rank = len(s.shape)
        largest = ops.reduce_max(s, (rank - 1,), True)
        least = ops.astype(least, s.dtype) if given else least
        if given and least.shape:
            least = ops.reshape(least, (*least.shape, 1))
        kept = ops.greater(s, ops.multiply(least, largest))
        inverse = ops.where(kept, ops.divide(1.0, ops.where(kept, s, 1.0)), 0.0)
        column = ops.reshape(inverse, (*inverse.shape, 1))
        return (ops.matmul(adjoint(vh), ops.multiply(column, adjoint(u))),)

    return run


def _of_one_stack(e: Node, known: Known) -> Callable[..., Any] | None:
    """The same op of matrices that are as many, and of one dtype."""
    a, b = e.operands
    if not isinstance(a, Var) or not isinstance(b, Var):
        return None
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    dtype = np.result_type(a.dtype, b.dtype)
    if a.shape[:-2] == b.shape[:-2] == lead and a.dtype == b.dtype:
        return None
    if prod(a.shape[:-2]) == 1 and e.name in ("solve", "solve_triangular"):
        return _of_one_matrix(e, lead, dtype)

    def run(*given: Value) -> Any:
        found = e.primitive.fn(*[_spread(x, lead, dtype) for x in given], *e.params)
        return found if isinstance(found, tuple) else (found,)

    return run


def _of_one_matrix(e: Node, lead: Shape, dtype: Any) -> Callable[..., Any]:
    """Systems of one matrix: all right sides are columns, and the matrix is taken apart once."""
    n, m = e.results[0].shape[-2:]
    count = prod(lead)

    def run(a: Value, b: Value) -> Any:
        a, b = (x if x.dtype == dtype else ops.astype(x, dtype) for x in (a, b))
        sides = ops.permute_dims(ops.reshape(b, (count, n, m)), (1, 0, 2))
        columns = ops.reshape(sides, (n, count * m))
        found = e.primitive.fn(ops.reshape(a, (n, n)), columns, *e.params)
        back = ops.permute_dims(ops.reshape(found, (n, count, m)), (1, 0, 2))
        return (ops.reshape(back, (*lead, n, m)),)

    return run


def _spread(x: Value, lead: Shape, dtype: Any) -> Value:
    if x.dtype != dtype:
        x = ops.astype(x, dtype)
    return ops.broadcast_to(x, (*lead, *x.shape[-2:]))


def _integer_product(e: Node, known: Known) -> Callable[..., Any] | None:
    """Of integers, products and their sums, which have no order: exact, or wrapped around."""
    x, y = e.operands
    dtype = e.results[0].dtype
    if not isinstance(x, Var) or not isinstance(y, Var) or dtype.kind not in "iu":
        return None

    def run(x: Value, y: Value) -> tuple[Any]:
        left, right = (ops.astype(v, dtype) if v.dtype != dtype else v for v in (x, y))
        left = ops.reshape(left, (*left.shape, 1))
        right = ops.reshape(right, (*right.shape[:-2], 1, *right.shape[-2:]))
        total = ops.reduce_sum(ops.multiply(left, right), (len(e.results[0].shape) - 1,), False)
        return (ops.astype(total, dtype) if total.dtype != dtype else total,)

    return run


def _convolve(e: Node, known: Known) -> Callable[..., Any] | None:
    """A convolution of images with a channel for each pair of sequences; of complex numbers four.
    """
    x, y = e.operands
    (full,), out = e.params, e.results[0]
    if not isinstance(x, Var) or not isinstance(y, Var) or x.dtype != y.dtype:
        return None
    if x.dtype.char not in "fdFD":
        return None
    (n, m), lanes = (x.shape[-1], y.shape[-1]), prod(x.shape[:-1])
    pads = m - 1 if full else 0

    def of_reals(x: Any, y: Any) -> Any:
        images, kernels = ops.reshape(x, (1, lanes, n)), ops.reshape(y, (lanes, 1, m))
        turned = ops.flip(kernels, (2,))
        found = ops.convolution(images, turned, (1,), ((pads, pads),), (1,), lanes)
        return ops.reshape(found, out.shape)

    def run(x: Value, y: Value) -> tuple[Any]:
        if out.dtype.kind != "c":
            return (of_reals(x, y),)
        (a, b), (c, d) = ((ops.real(v), ops.imag(v)) for v in (x, y))
        re = ops.subtract(of_reals(a, c), of_reals(b, d))
        return (ops.complex_of(re, ops.add(of_reals(a, d), of_reals(b, c))),)

    return run


def _imaginary(e: Node, known: Known) -> Callable[..., Any] | None:
    """Nothing, of real numbers."""
    out = e.results[0]
    if e.operands[0].dtype.kind == "c":  # type: ignore[union-attr]
        return None
    return lambda x: (ops.broadcast_to(wrap(np.zeros((), out.dtype)), out.shape),)


def _moved(e: Node, known: Known) -> Callable[..., Any] | None:
    """Nowhere, where all is: in the memory of the processor."""
    return None if set(e.params) != {"cpu"} else lambda x: (x,)


def _transform(e: Node, known: Known) -> Callable[..., Any] | None:
    """A transform of real numbers, as of complex ones."""
    dtype = e.results[0].dtype
    if e.operands[0].dtype.char not in "fd" or dtype.kind != "c":  # type: ignore[union-attr]
        return None
    return lambda x: (e.primitive.fn(ops.astype(x, dtype), *e.params),)


def _mapped(e: Node, known: Known) -> Callable[..., Any] | None:
    """A convolution whose windows are single elements or whole images, or its adjoint in x: a
    product of matrices, where eager execution has one.
    """
    x, w = e.operands
    slide, out = Sliding(*e.params[:4]), e.results[0]
    if not isinstance(x, Var) or not isinstance(w, Var) or x.dtype != w.dtype:
        return None
    back = e.name == "convolution_input"
    images = out.shape if back else x.shape
    as_rows = whole(images, w.shape[2:], slide) or prod(x.shape[2:]) == 1  # each image
    if x.dtype.char not in "fd" or not (as_rows or mapped(x.shape, w.shape, slide)):
        return None
    if products(images, w.shape, slide) is not None:
        return None

    def run(x: Value, w: Value) -> tuple[Any]:
        matrix = ops.reshape(w, (w.shape[0], prod(w.shape[1:])))
        if as_rows:
            flat = ops.reshape(x, (x.shape[0], prod(x.shape[1:])))
            found = ops.matmul(flat, matrix if back else ops.swap_last(matrix))
            return (ops.reshape(found, out.shape),)
        pixels = ops.reshape(x, (*x.shape[:2], prod(x.shape[2:])))
        found = ops.matmul(ops.swap_last(matrix) if back else matrix, pixels)
        return (ops.reshape(found, out.shape),)

    return run


def _weighed(e: Node, known: Known) -> Callable[..., Any] | None:
    """The adjoint in w of such a convolution: products of matrices that are added up, where eager
    execution has them.
    """
    x, g = e.operands
    slide, size, out = Sliding(*e.params[:4]), e.params[4], e.results[0]
    if not isinstance(x, Var) or not isinstance(g, Var) or x.dtype != g.dtype:
        return None
    alone = whole(x.shape, size, slide)
    if x.dtype.char not in "fd" or not (alone or single(x.shape, size, slide)):
        return None
    if products(x.shape, out.shape, slide) is not None:
        return None
    if not alone and in_tiles(x.shape, g.shape, size, slide, x.dtype.itemsize):
        return _exchanged(e) if x.shape[1] > g.shape[1] else None

    def run(x: Value, g: Value) -> tuple[Any]:
        if alone:
            rows, columns = (ops.reshape(v, (v.shape[0], prod(v.shape[1:]))) for v in (g, x))
            found = ops.matmul(ops.swap_last(rows), columns)
            return (ops.reshape(found, out.shape),)
        rows, columns = (ops.reshape(v, (*v.shape[:2], prod(v.shape[2:]))) for v in (g, x))
        if summed_behind(rows.shape, columns.shape):
            found = ops.reduce_sum(ops.matmul(rows, ops.swap_last(columns)), (0,), False)
        else:
            rows, columns = (
                ops.reshape(ops.permute_dims(v, (1, 0, 2)), (v.shape[1], v.shape[0] * v.shape[2]))
                for v in (rows, columns)
            )
            found = ops.matmul(rows, ops.swap_last(columns))
        return (ops.reshape(found, out.shape),)

    return run


def _exchanged(e: Node) -> Callable[..., Any]:
    """Tiles lay out what stands for x, which is the image of fewer channels."""
    turned = 1, 0, *range(2, len(e.results[0].shape))

    def run(x: Value, g: Value) -> tuple[Any]:
        return (ops.permute_dims(e.primitive.fn(g, x, *e.params), turned),)

    return run


def _of_one_precision(e: Node, known: Known) -> Callable[..., Any]:
    """The op of operands in the result's precision, as eager execution has them."""
    dtype, numbers = e.results[0].dtype, e.operands

    def run(*given: Value) -> tuple[Any]:
        rest = iter(given)
        arrays = [next(rest) if isinstance(a, Var) else a for a in numbers]
        alike = [
            ops.astype(a, dtype) if isinstance(a, Value) and a.dtype != dtype else a
            for a in arrays
        ]  # fmt: skip
        return (e.primitive.fn(*alike),)

    return run


def _is_mixed(e: Node) -> bool:
    """Whether it is a product, or a function, of operands in several precisions or of integers."""
    dtype = e.results[0].dtype
    kinds = {v.dtype for v in e.operands if isinstance(v, Var)}
    if dtype.char not in "fd" or kinds == {dtype}:
        return False
    if e.name == "matmul":
        return True
    if hasattr(e.primitive.raw, "ufunc"):
        known = all(k.char in "fd" or k.kind in "iu" for k in kinds)
        return known and not e.params and len(e.results) == 1
    own, whole = printing(e), any(k.kind in "iub" for k in kinds)
    return whole and own is not None and own.operands == "same" and bool(unsupported(e))


def _widened(e: Node, known: Known) -> Callable[..., Any]:
    """The op in float32, rounded once."""

    def run(*given: Value) -> tuple[Any, ...]:
        wide = iter([ops.astype(x, _SINGLE) if x.dtype in NARROW else x for x in given])
        operands = [next(wide) if isinstance(a, Var) else a for a in e.operands]
        found = e.primitive.fn(*operands, *e.params)
        found = found if isinstance(found, tuple) else (found,)
        wanted = [v.dtype for v in e.results]
        return tuple(
            [ops.astype(y, d) if d in NARROW else y for y, d in zip(found, wanted, strict=True)]
        )

    return run


def _in_doubles(e: Node, known: Known) -> Callable[..., Any] | None:
    """A convolution of short integers, whose sums doubles hold; wrapped around."""
    dtype = e.results[0].dtype
    most = max([prod(v.shape) for v in e.operands if isinstance(v, Var)])
    if most << 16 * dtype.itemsize > _EXACT:
        return None

    def run(*given: Value) -> tuple[Any]:
        total = e.primitive.fn(*[ops.astype(v, _DOUBLE) for v in given], *e.params)
        return (ops.astype(ops.astype(total, _INTEGER), dtype),)

    return run


def _widening(e: Any) -> _Way | None:
    """Where an op is no loop as it is, because of what its numbers are, and would be of others."""
    if not isinstance(e, Node) or isinstance(e.primitive, Control) or e.primitive.effect:
        return None
    if e.name in _CONVOLUTIONS and e.results[0].dtype in _SHORT:
        return _in_doubles
    if _is_mixed(e):
        return _of_one_precision
    dtypes = {v.dtype for v in (*e.operands, *e.results) if isinstance(v, Var)}
    if dtypes.isdisjoint(NARROW) or e.name in VIEWS or e.name in _ROUNDED_OFTEN:
        return None
    if not unsupported(e) or _is_quicker_in_pairs(e):
        return None
    if hasattr(e.primitive.raw, "ufunc") and any(d.kind in "iub" for d in dtypes):
        return None  # whole numbers, which eager execution rounds to two bytes too
    return _widened


def _is_quicker_in_pairs(e: Node) -> bool:
    """Whether a product is so large that Python between the steps is worth instructions that
    multiply pairs of bfloat16, which programs do not have: twice as fast as float32.
    """
    if e.results[0].dtype != _BRAIN or not met(PAIRS):
        return False
    shapes = [v.shape for v in (*e.operands, *e.results) if isinstance(v, Var)]
    if e.name == "matmul":
        return prod(shapes[2]) * shapes[0][-1] >= _LARGE
    if e.name in _CONVOLUTIONS:
        _, w, y = in_roles(e.name, *shapes)
        return prod(y) * prod(w[1:]) >= _LARGE
    return False


def _way(e: Any) -> _Way | None:
    if not isinstance(e, Node):
        return None
    return _WAYS.get(e.name)


def _way_on_codes(e: Any) -> _Way | None:
    return quantized.PROGRAMS.get(e.name) if isinstance(e, Node) else None


_WAYS: dict[str, _Way] = {
    "attention": attention, "attention_keep": attention_keep, "attention_pull": attention_pull,
    "convolution": _mapped, "convolution_input": _mapped, "convolution_weight": _weighed,
    "convolve": _convolve,
    "expm": exponential, "fft": _transform, "imag": _imaginary, "lstsq": _of_one_stack,
    "matmul": _integer_product, "pinv": _pinv, "solve": _of_one_stack,
    "solve_triangular": _of_one_stack, "to_device": _moved, **quantized.WAYS,
}  # fmt: skip
