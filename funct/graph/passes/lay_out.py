"""Where the elements of images lie: channels last stay last from op to op.

Convolutions and poolings take channels first by their shapes, and give what they are given by their
memory: of images whose channels are last, such images. Shapes do not say that, and loops after
them would put all elements in the other order. Here it is said: between transposes, which are views
and cancel, `convolution` of channels first is `convolution_last`, and elementwise ops between two
of them are computed as the elements lie, as are their sums, and images that are given so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from funct.core import Primitive, ShapeDtype, lookup, variant
from funct.graph.given import of_graph
from funct.graph.ir import Graph, Node, Var
from funct.graph.passes.compose_views import VIEWS
from funct.graph.passes.peephole import Maker, Rule, fresh_names, made_by, peephole, rebuilt

__all__ = ["lay_out"]

_MATRICES = 3  # axes of many; what is turned there is no image
_IMAGES = ("convolution", "convolution_input", "max_pool", "avg_pool")  # of the first operand


def _known(name: str) -> Primitive:
    prim = lookup(name)
    assert prim is not None
    return prim


_RESHAPE, _PERMUTE = _known("reshape"), _known("permute_dims")


def _first(n: int) -> tuple[int, ...]:
    """The axes that put channels from the last place to their place after the batch."""
    return (0, n - 1, *range(1, n - 1))


def _last(n: int) -> tuple[int, ...]:
    """The axes that put them back."""
    return (0, *range(2, n), 1)


def _with_channels_last(name: str) -> tuple[str, Primitive]:
    """The op on images whose shapes have channels last."""
    prim = _known(name)

    def around(op: Callable[..., Any], view: Callable[..., Any]) -> Callable[..., Any]:
        def run(x: Any, *rest: Any) -> Any:
            n = len(x.shape)
            return view(op(view(x, _first(n)), *rest), _last(n))

        return run

    def aval(args: Any, params: Any) -> ShapeDtype:
        x, *rest = args
        n = len(x.shape)
        found = prim.aval([_PERMUTE.aval((x,), (_first(n),)), *rest], params)
        wanted = _PERMUTE.aval((found,), (_last(n),))
        assert isinstance(wanted, ShapeDtype)
        return wanted

    raw, fn = around(prim.raw, _PERMUTE.raw), around(prim.fn, _PERMUTE.fn)
    return name, variant(prim, f"{name}_last", fn, raw=raw, aval=aval)


_LAST = dict(map(_with_channels_last, _IMAGES))


@of_graph
def lay_out(graph: Graph) -> Graph:
    """The graph with ops on images as the images lie in memory.

    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct.graph import lay_out
        >>> from funct.nn.functional import conv2d
        >>> def f(x, w):
        ...     y = conv2d(xp.permute_dims(x, (0, 3, 1, 2)), w)
        ...     return xp.permute_dims(y * 2.0, (0, 2, 3, 1))
        >>> graph = lay_out(ft.make_graph(f)(xp.ones((1, 8, 8, 3)), xp.ones((4, 3, 3, 3))))
        >>> [node.name for node in graph.nodes if node.name != "permute_dims"]
        ['convolution_last', 'multiply']
    """
    rules = _Rules(graph)
    if not rules.laid and not any(isinstance(e, Node) and e.name in _LAST for e in graph.nodes):
        return graph
    return peephole(graph, rules.by_name())


def _images_given(graph: Graph) -> Iterator[Var]:
    """What comes with its channels last and is turned around."""
    given = set(graph.inputs)
    for e in graph.nodes:
        if isinstance(e, Node) and e.name == "permute_dims" and e.operands[0] in given:
            (x,) = e.reads
            if len(x.shape) > _MATRICES and e.params[0] == _first(len(x.shape)):
                yield x


class _Rules:
    """What becomes of transposes in a graph with images. laid: the values that have their channels
    last, by their shapes too, or come from such an image by elements and rows.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.fresh = fresh_names(graph)
        self.laid: set[Any] = set(_images_given(graph))

    def by_name(self) -> dict[str, tuple[Rule, ...]]:
        """The rules, with those that compose transposes."""
        nodes = [e for e in self.graph.nodes if isinstance(e, Node)]
        loops = {e.name for e in nodes if e.primitive.spread is not None}
        sums = {e.name for e in nodes if e.name.startswith("reduce_")}
        rules: dict[str, tuple[Rule, ...]] = dict.fromkeys(loops, (self.between,))
        rules |= dict.fromkeys(sums, (self.reduced,))
        return rules | dict.fromkeys(_LAST, (self.image,)) | VIEWS

    def image(self, node: Node, maker: Maker) -> Any:
        """An op on images of a transpose, as one on what was transposed."""
        x = self._below(node.operands[0], maker)
        if x is None:
            return None
        return self._moved(node, _LAST[node.name], (x, *node.operands[1:]))

    def between(self, node: Node, maker: Maker) -> Any:
        """An elementwise op on the transpose of such an image, and on what stands beside it."""
        n = len(node.results[0].shape)
        below = [self._below(a, maker) for a in node.operands]
        if len(node.results) > 1 or self.laid.isdisjoint(below):
            return self.follow(node, maker)
        operands: list[Any] = []
        views: list[Node] = []
        for a, v in zip(node.operands, below, strict=True):
            if isinstance(a, Var) and v is None and a.shape:
                operands.append(self._turned(a, n, views))
            else:
                operands.append(a if v is None else v)
        return [*views, *self._moved(node, node.primitive, tuple(operands))]

    def reduced(self, node: Node, maker: Maker) -> Any:
        """A reduction of the transpose of such an image, where what is left stands as it stood."""
        (a,), (axes, keepdims, *rest) = node.operands, node.params
        x = self._below(a, maker)
        if x is None or x not in self.laid:
            return self.follow(node, maker)
        order = _first(len(x.shape))
        left = [k for i, k in enumerate(order) if i not in axes]
        if not keepdims and left != sorted(left):
            return self.follow(node, maker)
        params = (tuple(sorted([order[i] for i in axes])), keepdims, *rest)
        if keepdims:
            return self._moved(node, node.primitive, (x,), params)
        self.laid.update(node.results)
        return rebuilt(node, node.primitive, (x,), params)

    def follow(self, node: Node, maker: Maker) -> None:
        """What is made of such an image is one."""
        if not self.laid.isdisjoint(node.reads):
            self.laid.update(node.results)

    def _below(self, a: Any, maker: Maker) -> Var | None:
        """The value with channels last of which an operand is the transpose."""
        m = made_by(maker, a, "permute_dims")
        if m is None or len(a.shape) < 3 or m.params[0] != _first(len(a.shape)):
            return None
        (x,) = m.reads
        return x

    def _turned(self, a: Var, n: int, views: list[Node]) -> Var:
        """Another operand with its channels last: a bias, or what comes from elsewhere, once."""
        shape = (1,) * (n - len(a.shape)) + tuple(a.shape)
        if len(a.shape) < n:
            full = Var(self.fresh(), shape, a.dtype)
            views.append(Node(_RESHAPE, (a,), (shape,), (full,)))
            a = full
        found = Var(self.fresh(), tuple([shape[k] for k in _last(n)]), a.dtype)
        views.append(Node(_PERMUTE, (a,), (_last(n),), (found,)))
        return found

    def _moved(
        self, node: Node, primitive: Primitive, operands: tuple[Any, ...], params: Any = None
    ) -> list[Node]:
        """The op on values with channels last, and its result as it was."""
        params = node.params if params is None else params
        aval = primitive.aval(operands, params)
        assert isinstance(aval, ShapeDtype)
        below = Var(self.fresh(), aval.shape, aval.dtype)
        self.laid.add(below)
        inner = Node(primitive, operands, params, (below,), node.site)
        axes = _first(len(aval.shape))
        return [inner, *rebuilt(node, _PERMUTE, (below,), (axes,))]
