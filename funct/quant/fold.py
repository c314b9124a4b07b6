"""Fold per-channel affine maps into the convolution or linear layer before them.

    a * (conv(x, w) + b) + c = conv(x, a w) + (a b + c)      a, b, c: one number per channel

A batch normalization in evaluation mode is such a map: subtract a constant, divide by one,
multiply, add. The rewrite is algebra on whatever chain of these ops stands there, so it needs to
know no layer. It runs after constant folding; the sums are done in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from funct import ops
from funct.graph import Graph, Node, Var
from funct.quant.rewrite import Rewriter, constants_of, sole_users

__all__ = ["Affine", "channel_axis", "fold_affine", "per_channel"]

Numbers = np.ndarray[Any, Any]
_AFFINE = ("add", "subtract", "multiply", "divide", "negative")


@attrs.frozen(eq=False)
class Affine:
    """y = factor * x + offset, one number of each per output channel."""

    factor: Numbers
    offset: Numbers

    def then(self, node: Node, value: Numbers | None, first: bool) -> Affine:
        """This map, followed by a node with the constant `value`; first: it is the left operand."""
        a, b = self.factor, self.offset
        if node.name == "negative":
            return Affine(-a, -b)
        assert value is not None, "only negative takes one operand"
        if node.name == "add":
            return Affine(a, b + value)
        if node.name == "subtract":
            return Affine(-a, value - b) if first else Affine(a, b - value)
        if node.name == "multiply":
            return Affine(a * value, b * value)
        return Affine(a / value, b / value)


def channel_axis(layer: Node) -> int | None:
    """The axis of output channels in the result of a layer; None for any other node."""
    if layer.name == "convolution":
        return 1
    if layer.name == "matmul" and len(layer.operands[1].shape) == 2:  # type: ignore[union-attr]
        return len(layer.results[0].shape) - 1
    return None


def per_channel(value: Any, like: Var, axis: int) -> Numbers | None:
    """The numbers of `value` per channel, if it varies along the channels of `like` alone."""
    x = np.asarray(value, np.float64)
    channels, rank = like.shape[axis], len(like.shape)
    if x.ndim > rank:
        return None
    shape = (1,) * (rank - x.ndim) + x.shape
    if any(n != 1 for i, n in enumerate(shape) if i != axis) or shape[axis] not in (1, channels):
        return None
    return np.broadcast_to(x.ravel(), (channels,))


def fold_affine(graph: Graph) -> Graph:
    """The graph in which every layer is followed by one bias at most.

    A bias that stays is one addition of a constant with one number per channel.
    """
    constants, users = constants_of(graph), sole_users(graph)
    new = Rewriter(graph)
    done: set[Node] = set()
    for e in graph.nodes:
        if e in done:
            continue
        chain = _chain(e, constants, users) if isinstance(e, Node) else []
        if len(chain) > 1 or (chain and not _is_bias(chain[0], e, constants)):  # type: ignore[arg-type]
            _write_folded(new, e, chain, constants)  # type: ignore[arg-type]
            done.update(chain)
        else:
            new.keep(e)
    return new.graph()


def _chain(layer: Node, constants: Mapping[Var, Any], users: Mapping[Var, Node]) -> list[Node]:
    """The affine nodes behind a layer with constant weights."""
    axis = channel_axis(layer)
    if axis is None or layer.operands[1] not in constants or layer.results[0].dtype.kind != "f":
        return []
    chain: list[Node] = []
    value = layer.results[0]
    while (node := users.get(value)) is not None and _step(node, value, axis, constants):
        chain.append(node)
        value = node.results[0]
    return chain


def _step(node: Node, value: Var, axis: int, constants: Mapping[Var, Any]) -> bool:
    """Whether a node is affine in `value`, channel by channel, and keeps its type."""
    if node.name not in _AFFINE or node.results[0].dtype != value.dtype:
        return False
    if len(node.results[0].shape) != len(value.shape):
        return False
    if node.name == "negative":
        return True
    if node.name == "divide" and node.operands[0] is not value:
        return False
    other = node.operands[0 if node.operands[1] is value else 1]
    if isinstance(other, Var) and other not in constants:
        return False
    held = constants[other] if isinstance(other, Var) else other
    return per_channel(held, value, axis) is not None


def _is_bias(node: Node, layer: Node, constants: Mapping[Var, Any]) -> bool:
    """Whether a node adds a constant with one number per channel."""
    axis = channel_axis(layer)
    assert axis is not None, "a layer has channels"
    held = [a for a in node.operands if isinstance(a, Var) and a in constants]
    channels = layer.results[0].shape[axis]
    return node.name == "add" and len(held) == 1 and constants[held[0]].size == channels


def _write_folded(
    new: Rewriter, layer: Node, chain: list[Node], constants: Mapping[Var, Any]
) -> None:
    axis = channel_axis(layer)
    assert axis is not None, "a layer has channels"
    value = layer.results[0]
    channels = value.shape[axis]
    total = Affine(np.ones(channels), np.zeros(channels))
    for node in chain:
        first = node.operands[0] is not value
        other = node.operands[0] if first else node.operands[-1]
        held = constants[other] if isinstance(other, Var) and other in constants else other
        numbers = None if node.name == "negative" else per_channel(held, value, axis)
        total = total.then(node, numbers, first)
        value = node.results[0]
    x, w = layer.operands
    y = new.node(
        _OPS[layer.name], (x, _scaled(new, layer, w, constants, total.factor)), layer.params,
        site=layer.site,
    )  # fmt: skip
    # (1, O, 1, ...) for a convolution, (O,) for a linear layer
    shape = [channels] if layer.name == "matmul" else [1, channels, *[1] * len(value.shape[2:])]
    bias = new.constant(total.offset.reshape(shape).astype(y.dtype))
    new.node(ops.add, (y, bias), site=chain[-1].site, result=chain[-1].results[0])


_OPS: dict[str, Callable[..., Any]] = {"convolution": ops.convolution, "matmul": ops.matmul}


def _scaled(
    new: Rewriter, layer: Node, w: Any, constants: Mapping[Var, Any], factor: Numbers
) -> Var:
    """The weights with each output channel multiplied; the same constant where nothing changes."""
    if np.all(factor == 1):
        return w
    held = np.asarray(constants[w])
    at = 0 if layer.name == "convolution" else 1
    shape = [len(factor) if i == at else 1 for i in range(held.ndim)]
    return new.constant((held.astype(np.float64) * factor.reshape(shape)).astype(held.dtype))
