"""Pytrees: laws of flattening, registered classes, errors."""

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import deep_tree, tree
from funct.errors import TreeError
from tests import laws

Point = namedtuple("Point", ["x", "y"])


@tree.register
@attrs.frozen
class Layer:
    """A registered class with leaves, a subtree and a static field."""

    weight: Any
    inner: Any = None
    name: str = tree.static_field(default="layer")


LEAVES = st.integers(-9, 9)
TREES = st.recursive(
    st.one_of(LEAVES, st.none()),
    lambda t: st.one_of(
        st.lists(t, max_size=3),
        st.lists(t, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), t, max_size=3),
        st.builds(Point, t, t),
        st.builds(Layer, t, t, st.sampled_from(["p", "q"])),
    ),
    max_leaves=10,
)


@given(TREES)
def test_flatten_and_unflatten_are_inverse(t: Any) -> None:
    """A tree is its leaves and its structure; None and empty containers hold no leaves."""
    leaves, spec = tree.flatten(t)
    assert tree.unflatten(spec, leaves) == t
    assert tree.leaves(t) == leaves
    assert tree.structure(t) == spec
    assert all(isinstance(v, int) for v in leaves)


@given(TREES)
def test_map_is_a_functor(t: Any) -> None:
    """map keeps structure, identity and composition; over several trees it goes in parallel."""
    assert tree.map(lambda v: v, t) == t
    twice = tree.map(lambda v: 2 * v, t)
    assert tree.structure(twice) == tree.structure(t)
    assert tree.map(lambda v: v + 1, twice) == tree.map(lambda v: 2 * v + 1, t)
    assert tree.map(lambda a, b: a - b, twice, t) == t
    assert tree.reduce(lambda a, b: a + b, t, 0) == sum(tree.leaves(t))
    assert tree.all(tree.map(lambda v: True, t))
    assert tree.all(t) == all(tree.leaves(t))


@given(TREES)
def test_paths(t: Any) -> None:
    """Each leaf has one path, in the order of the leaves."""
    pairs = tree.flatten_with_path(t)
    assert [v for _, v in pairs] == tree.leaves(t)
    assert len({p for p, _ in pairs}) == len(pairs)
    assert tree.map_with_path(lambda p, v: v, t) == t


def test_paths_are_dotted() -> None:
    """Keys, indices and field names are joined by dots; a bare leaf has the empty path."""
    t = {"layers": [Layer(1, Point(2, 3)), Layer(4)], "scale": 5}
    assert [p for p, _ in tree.flatten_with_path(t)] == [
        "layers.0.weight", "layers.0.inner.0", "layers.0.inner.1", "layers.1.weight", "scale",
    ]  # fmt: skip
    assert tree.flatten_with_path(1) == [("", 1)]


@given(st.integers(1, 3), TREES)
def test_transpose(n: int, t: Any) -> None:
    """A list of trees becomes a tree of lists, and back."""
    rows = [tree.map(lambda v, k=k: v + k, t) for k in range(n)]
    outer, inner = tree.structure([0] * n), tree.structure(t)
    columns = tree.transpose(outer, inner, rows)
    assert columns == tree.map(lambda *vs: list(vs), *rows)
    if tree.leaves(t):
        assert tree.transpose(inner, outer, columns) == rows


def test_dictionaries_flatten_by_sorted_keys() -> None:
    """The order of insertion makes no difference."""
    assert tree.flatten({"b": 1, "a": 2}) == tree.flatten({"a": 2, "b": 1})
    assert tree.leaves(OrderedDict(b=1, a=2)) == [1, 2]


def test_static_fields_are_structure() -> None:
    """A static field is compared, kept by map, and is no leaf."""
    layer = Layer(xp.ones(2), name="first")
    assert tree.structure(layer) != tree.structure(Layer(xp.ones(2), name="second"))
    doubled = tree.map(lambda v: 2.0 * v, layer)
    assert doubled.name == "first"
    assert doubled.weight.tolist() == [2.0, 2.0]


def test_registered_classes_pass_through_transforms() -> None:
    """grad, vmap and jit take and give registered classes."""
    layer = Layer(xp.asarray([1.0, 2.0]), {"b": xp.asarray(3.0)})

    def loss(layer: Any) -> Any:
        return xp.sum(layer.weight**2) * layer.inner["b"]

    for grad in (ft.grad(loss), ft.jit(ft.grad(loss))):
        g = grad(layer)
        assert isinstance(g, Layer)
        laws.close(g, Layer(xp.asarray([6.0, 12.0]), {"b": xp.asarray(5.0)}))
    many = tree.map(lambda v: xp.stack([v, v]), layer)
    assert ft.vmap(loss)(many).tolist() == [15.0, 15.0]


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"slots": True, "eq": False}])
def test_dataclasses_are_registered_as_attrs_classes_are(options: Any) -> None:
    """Fields are children; those with static=True in their metadata are structure."""
    static = dataclasses.field(default=2, metadata={"static": True})
    fields: Any = ["weight", "inner", ("power", int, static)]
    cls: Any = tree.register(dataclasses.make_dataclass("Part", fields, **options))
    part = cls(xp.asarray([1.0, 2.0]), {"b": xp.asarray(3.0)})
    assert tree.structure(part) != tree.structure(cls(part.weight, part.inner, 3))
    assert [p for p, _ in tree.flatten_with_path(part)] == ["weight", "inner.b"]

    def loss(part: Any) -> Any:
        return xp.sum(part.weight**part.power) * part.inner["b"]

    for grad in (ft.grad(loss), ft.jit(ft.grad(loss))):
        g = grad(part)
        assert isinstance(g, cls)
        assert (g.weight.tolist(), g.inner["b"].tolist(), g.power) == ([6.0, 12.0], 5.0, 2)


RECORDS: dict[str, Any] = {
    "dataclass": dataclasses.make_dataclass,
    "frozen dataclass": lambda n, f: dataclasses.make_dataclass(n, f, frozen=True),
    "define": attrs.make_class,
    "frozen": lambda n, f: attrs.make_class(n, f, frozen=True),
    "slots": lambda n, f: attrs.make_class(n, f, slots=True),
}
CONTAINERS: dict[str, Any] = {
    "named tuple": Point,
    "dict": lambda x, y: {"x": x, "y": y},
    "OrderedDict": lambda x, y: OrderedDict(y=y, x=x),
    "defaultdict": lambda x, y: defaultdict(int, x=x, y=y),
    "deque": lambda x, y: deque([x, y]),
    "list": lambda x, y: [x, y],
}


def product(t: Any) -> Any:
    """Of the two children of a tree."""
    x, y = tree.leaves(t)
    return xp.sum(x * y)


def transformed(t: Any) -> list[Any]:
    """What transforms of a function of a tree give."""
    return [
        f(t) for f in (
            product, ft.jit(product), ft.grad(product), ft.jit(ft.grad(product)), ft.vmap(product),
            lambda t: ft.jvp(product, (t,), (t,)), lambda t: ft.vjp(product, t)[0],
            lambda t: ft.scan(lambda c, _: (tree.map(lambda v: v * 2.0, c), None), t, None, 2)[0],
        )
    ]  # fmt: skip


@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers_are_trees(kind: str) -> None:
    """Every transform takes and gives them."""
    t = CONTAINERS[kind](xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0]))
    plain = transformed({"x": tree.leaves(t)[0], "y": tree.leaves(t)[1]})
    for found, expected in zip(transformed(t), plain, strict=True):
        laws.same(tree.leaves(found), tree.leaves(expected))
    assert type(ft.grad(product)(t)) is type(t)


@pytest.mark.parametrize("kind", RECORDS)
def test_records_are_trees(kind: str) -> None:
    """Every transform takes and gives them; nobody has to register their class."""
    cls = RECORDS[kind]("Record", ["x", "y"])
    t = cls(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0]))
    plain = transformed({"x": t.x, "y": t.y})
    for found, expected in zip(transformed(t), plain, strict=True):
        laws.same(tree.leaves(found), tree.leaves(expected))
    assert type(ft.grad(product)(t)) is cls


def test_classes_that_cannot_be_registered() -> None:
    """A class without fields or functions, and one that is a pytree."""
    with pytest.raises(TreeError, match="int is neither an attrs class nor a dataclass"):
        tree.register(int)
    with pytest.raises(TreeError, match="Layer is a pytree already"):
        tree.register(Layer)


def test_leaves_may_be_anything_while_a_tree_is_rebuilt() -> None:
    """Converters and validators do not run on leaves: a tree of shapes has the same class."""

    @tree.register
    @attrs.frozen
    class Checked:
        value: Any = attrs.field(validator=attrs.validators.instance_of(np.ndarray))

    t = Checked(np.ones(2))
    assert tree.map(lambda v: v.shape, t).value == (2,)


def test_structure_errors() -> None:
    """Two structures that differ are both shown."""
    with pytest.raises(TreeError) as caught:
        tree.same_structure("cond", {"a": 1}, {"a": 1, "b": 2})
    assert caught.value.what == "cond: expected the structure {'a': *}, got {'a': *, 'b': *}"
    tree.same_structure("cond", {"a": 1}, {"a": 2})
    with pytest.raises(TreeError, match="map: "):
        tree.map(lambda a, b: a, [1, 2], [1])
    with pytest.raises(TreeError, match="unflatten: "):
        tree.unflatten(tree.structure([1, 2]), [1])
    with pytest.raises(TreeError) as caught:
        tree.transpose(tree.structure([0]), tree.structure((0, 0)), [1])
    assert caught.value.what == "transpose: expected the structure [(*, *)], got [*]"


def _chain(depth: int) -> Any:
    """Containers of every kind, one in the other, an array at every 50th step."""
    t: Any = xp.asarray(0.5)
    for k in range(depth):
        x = None if k % 50 else xp.asarray(0.1 + 1e-5 * k)
        t = ((t, x), [x, t], {"b": t, "a": x}, Point(x, t), Layer(x, t))[k % 5]
    return t


@given(TREES)
def test_deep_walks_are_the_usual_ones(t: Any) -> None:
    """What is used for deep trees agrees with optree on shallow ones."""
    for none_is_leaf in (False, True):
        leaves, spec = deep_tree.flatten(t, none_is_leaf=none_is_leaf)
        expected, known = tree.flatten(t, none_is_leaf=none_is_leaf)
        assert leaves == expected
        assert spec.unflatten(leaves) == t == known.unflatten(leaves)
        assert spec == deep_tree.flatten(t, none_is_leaf=none_is_leaf)[1]
        assert hash(spec) == hash(deep_tree.flatten(t, none_is_leaf=none_is_leaf)[1])
        assert spec.flatten_up_to(t) == leaves
        assert [c.num_leaves for c in spec.children()] == [c.num_leaves for c in known.children()]
        both = deep_tree.broadcast_prefix(t, t, none_is_leaf=none_is_leaf)
        assert both == tree.broadcast_prefix("it", t, t, none_is_leaf=none_is_leaf)
    assert list(deep_tree.flatten_with_path(t)) == tree.flatten_with_path(t)


def test_trees_may_be_ten_thousand_deep() -> None:
    """No walk recurses: flatten, map, paths, and grad, vmap and jit take such arguments."""
    t = _chain(10_000)
    leaves, spec = tree.flatten(t)
    assert len(leaves) == 201
    assert tree.leaves(spec.unflatten(leaves)) == leaves
    assert tree.structure(t) == spec
    assert tree.structure(_chain(9_999)) != spec
    assert tree.structure((1,)) != spec
    assert tree.all(tree.map(lambda a, b: a is b, t, t))
    tree.same_structure("it", t, tree.map(lambda v: 2.0 * v, t))
    with pytest.raises(TreeError, match="map"):
        tree.map(lambda a, b: a, t, _chain(9_999))
    with pytest.raises(TreeError, match="expected 201 leaves"):
        tree.unflatten(spec, leaves[1:])

    def loss(t: Any) -> Any:
        first = tree.leaves(t)
        return xp.sum(first[0] * first[-1]) + 3.0 * first[5]

    expected = [float(g) for g in ft.grad(lambda *xs: loss(xs), tuple(range(201)))(*leaves)]
    for g in (ft.grad(loss), ft.jit(ft.grad(loss))):
        found = g(t)
        assert tree.structure(found) == spec
        assert [float(v) for v in tree.leaves(found)] == expected
    lanes = tree.map(lambda v: xp.stack([v, v]), t)
    assert ft.vmap(loss, in_axes=(tree.map(lambda v: 0, t),))(lanes).shape == (2,)


WHAT_LEAVES: dict[str, Any] = {
    "none": lambda x: x is None, "tuples": lambda x: type(x) is tuple, "all": lambda x: True,
    "layers": lambda x: isinstance(x, Layer), "nothing": lambda x: False,
}  # fmt: skip


@pytest.mark.parametrize("name", WHAT_LEAVES)
@given(t=TREES)
def test_leaves_that_a_function_names(name: str, t: Any) -> None:
    """What it says of is a leaf in every walk, also in trees too deep for optree."""
    is_leaf = WHAT_LEAVES[name]
    leaves, spec = tree.flatten(t, is_leaf)
    assert tree.unflatten(spec, leaves) == t
    assert tree.leaves(t, is_leaf=is_leaf) == leaves
    assert tree.structure(t, is_leaf) == spec
    assert tree.map(lambda *x: x, t, t, is_leaf=is_leaf) == tree.unflatten(
        spec, [(v, v) for v in leaves]
    )
    named = tree.flatten_with_path(t, is_leaf)
    assert [v for _, v in named] == leaves
    joined = tree.map_with_path(lambda *x: x, t, t, is_leaf=is_leaf)
    assert joined == tree.unflatten(spec, [(p, v, v) for p, v in named])
    folded = tree.reduce(lambda a, b: [*a, b], t, [], is_leaf)
    assert folded == leaves
    assert tree.all(t, is_leaf=is_leaf) == all(leaves)
    assert deep_tree.flatten(t, is_leaf)[0] == leaves
    assert list(deep_tree.flatten_with_path(t, is_leaf)) == named


def test_reduce_begins_with_the_first_leaf() -> None:
    """As functools.reduce does; of no leaves there is nothing to begin with."""
    assert tree.reduce(lambda a, b: a - b, {"a": 9, "b": (2, [3])}) == 4
    with pytest.raises(TreeError, match="reduce: the tree has no leaves"):
        tree.reduce(lambda a, b: a + b, ())
