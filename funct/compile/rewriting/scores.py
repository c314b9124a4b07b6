"""What a value may be to attention: scores, their maxima, what is made of them, where that ends.

Axes are numbered as those of the product of queries and keys.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from funct.compile.rewriting.terms import Terms
from funct.graph import Node, Var

__all__ = ["NEW", "Axes", "End", "Made", "Mask", "Product", "Scores", "Softmax", "Top"]

NEW = -1  # an axis that is none of the scores'

Axes = tuple[int, ...]  # which of the scores' axes each axis is


class Product(Struct, frozen=True, eq=False):
    """A product of two arrays with one inner axis, and one axis each that the other has not.

    operands: with their labels. labels, sizes: of the result.
    """

    operands: tuple[tuple[Var, str], tuple[Var, str]]
    labels: str
    sizes: tuple[Any, ...]

    def side(self, label: str) -> tuple[Var, str]:
        """The operand that has the label, which one of them has."""
        return next(o for o in self.operands if label in o[1])


class Mask(Struct, frozen=True, eq=False):
    """What hides keys: axes as those of the product's result. fill: what hidden scores are; None:
    the mask is numbers that are added.
    """

    of: Any
    axes: Axes
    fill: float | None
    hides: bool = False


class Scores(Struct, frozen=True, eq=False):
    """A product, scaled and masked; axes: which of the product's axes each is."""

    product: Product
    axes: Axes
    scale: float = 1.0
    mask: Mask | None = None


class Top(Struct, frozen=True, eq=False):
    """The maxima of scores along an axis, as it is numbered in the product; or which scores are
    such ("ties"), how many there are in a row ("count"), or 1 / count for each of them ("shares").
    """

    scores: Scores
    along: int
    axes: Axes
    kind: str = "top"


class Softmax(Struct, frozen=True, eq=False):
    """The exponentials of scores less their maxima along the axis of keys; of: themselves."""

    scores: Scores
    along: int
    of: Var

    @property
    def queries(self) -> int:
        """The axis of queries."""
        labels = self.scores.product.labels
        (_, a), (_, b) = self.scores.product.operands
        own = [k for k, c in enumerate(labels) if (c in a) != (c in b)]
        return next(k for k in own if k != self.along)

    def lies(self, axis: int) -> tuple[Var, Axes]:
        """The operand with that axis of its own, and which axes are its: NEW for its features."""
        product = self.scores.product
        of, labels = product.side(product.labels[axis])
        return of, tuple([product.labels.find(c) for c in labels])


class Made(Struct, frozen=True, eq=False):
    """What is made of exponentials. d: the product that it has a factor of, and how that lies."""

    softmax: Softmax
    axes: Axes
    terms: Terms
    d: tuple[Product, Axes] | None = None


class End(Struct, frozen=True, eq=False):
    """A product that leaves the matrix behind.

    kind: "o", "dq", "dk" or "dv". order: which axes its own are. factor: what it is multiplied by.
    other: what it multiplies by, and how that lies. d: the cotangents by values, if they are in it.
    """

    node: Node
    kind: str
    order: Axes
    factor: float
    other: tuple[Var, Axes]
    d: tuple[Product, Axes] | None
