"""What a layer is: an immutable pytree of parameters, buffers and static fields."""

import copy
import pickle
from typing import Any

import pytest

import funct as ft
import funct.array as xp
from funct import nn, tree
from funct.errors import ArgumentError, ImmutableError, TreeError
from tests import laws


class Block(nn.Module):
    """A layer of a user: one parameter, one layer, one buffer, one static field, two in a dict."""

    scale: Any
    inner: nn.Linear
    total: Any = nn.buffer()
    heads: dict[str, Any] = nn.static(default=None)
    power: int = nn.static(default=2)
    more: Any = None

    def __call__(self, x: Any) -> Any:
        """Scaled features."""
        return self.inner(x) * self.scale**self.power


class Wide(Block):
    """A subclass without fields of its own is made as its base is."""


def block(**fields: Any) -> Block:
    """A block of known numbers."""
    inner = nn.Linear(2, 2, key=ft.random.key(0), dtype=xp.float64)
    return Block(xp.asarray(3.0), inner, xp.asarray(0.0), **fields)


def test_fields_are_children_and_static_fields_are_structure() -> None:
    """Arrays are leaves in order, hyper-parameters tell structures apart."""
    x = block()
    paths = [path for path, _ in tree.flatten_with_path(x)]
    assert paths == ["scale", "inner.weight", "inner.bias", "total"]
    assert tree.structure(x) == tree.structure(block())
    assert tree.structure(x) != tree.structure(block(power=3))
    assert tree.structure(tree.map(lambda v: v + 1, x)) == tree.structure(x)
    assert [kind for _, kind, _ in nn.named_leaves(x)] == ["parameter"] * 3 + ["buffer"]
    assert [path for path, _ in nn.named_modules(x)] == ["", "inner"]


def test_subclasses_are_made_as_their_base() -> None:
    """Without fields of its own, a subclass keeps constructor and fields."""
    x = block()
    y = Wide(x.scale, x.inner, x.total)
    assert isinstance(tree.unflatten(tree.structure(y), tree.leaves(y)), Wide)
    laws.same(y(xp.ones(2)), x(xp.ones(2)))


def test_layers_are_immutable() -> None:
    """Assignment raises and names evolve, which leaves the original alone."""
    x = block()
    with pytest.raises(ImmutableError, match=r"Block\.power = …: layers are immutable") as caught:
        x.power = 3  # type: ignore[misc]
    assert caught.value.fix == "layer = layer.evolve(power=…)"
    fix = "declare size in Block, and end its __init__ by self.__attrs_init__(size=…)"
    with pytest.raises(ImmutableError) as caught:
        x.size = 3
    assert caught.value.fix == fix
    assert (x.evolve(power=3).power, x.power) == (3, 2)
    with pytest.raises(ArgumentError, match=r"Block\.evolve: there is no field 'size'"):
        x.evolve(size=1)


def test_repr_shows_structure_not_numbers() -> None:
    """One line for a plain layer, indented lines where layers hold layers."""
    assert repr(block()) == (
        "Block(\n  scale=float64[],\n"
        "  inner=Linear(in_features=2, out_features=2, weight=float64[2, 2], bias=float64[2]),\n"
        "  total=float64[],\n  heads=None,\n  power=2,\n  more=None\n)"
    )
    assert repr(nn.Sequential()) == "Sequential()"
    inside = nn.Sequential(nn.Sequential(nn.ReLU()))
    assert repr(inside) == "Sequential(\n  (0): Sequential(\n    (0): ReLU()\n  )\n)"


def test_layers_are_copied_and_pickled() -> None:
    """A pickled or copied layer has the same structure and numbers."""
    x = block()
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert tree.structure(y) == tree.structure(x)
        laws.same(y, x)


def test_modes_reach_every_layer() -> None:
    """eval_mode and train_mode set the static field `training`, also inside containers."""
    models = {"a": nn.Sequential(nn.Dropout(0.3)), "b": [nn.BatchNorm1d(2)]}
    done = nn.eval_mode(models)
    assert (done["a"][0].training, done["b"][0].training) == (False, False)
    assert (models["a"][0].training, models["b"][0].training) == (True, True)
    assert tree.structure(nn.train_mode(done)) == tree.structure(models)


def test_partition_and_combine_are_inverse() -> None:
    """Every leaf is in just one of the trees, and combine puts them together again."""
    model = nn.Sequential(nn.Linear(2, 3, key=ft.random.key(0)), nn.BatchNorm1d(3))
    filters: list[Any] = [
        nn.is_parameter, nn.is_buffer, nn.is_inexact_array, lambda leaf: leaf.ndim == 2,
        lambda path, leaf: path.endswith("bias"), lambda path, leaf, kind: False,
    ]  # fmt: skip
    taken = [4, 3, 6, 1, 2, 0]
    for given, count in zip(filters, taken, strict=True):
        yes, no = nn.partition(model, given)
        assert (len(tree.leaves(yes)), len(tree.leaves(no))) == (count, 7 - count)
        for both in (nn.combine(yes, no), nn.combine(no, yes)):
            assert tree.structure(both) == tree.structure(model)
            laws.same(both, model)
    assert nn.partition(model)[0][1].running_mean is None
    with pytest.raises(ArgumentError, match="partition: filter must take 1 to 3 arguments, got 0"):
        nn.partition(model, lambda: True)


def test_gradients_have_the_structure_of_the_parameters() -> None:
    """value_and_grad over one part of a partition: no leaf for the other part, no zero either."""
    model = nn.eval_mode(nn.Sequential(nn.Linear(2, 2, key=ft.random.key(0)), nn.BatchNorm1d(2)))
    params, rest = nn.partition(model)
    x = xp.ones((4, 2), dtype=xp.float32)
    value, grads = ft.value_and_grad(lambda p: xp.sum(nn.combine(p, rest)(x)))(params)
    assert tree.structure(grads) == tree.structure(params)
    assert grads[1].bias.tolist() == [4.0, 4.0]
    assert grads[1].running_mean is None
    assert value.shape == ()


def test_ensembles_are_a_vmap_over_models() -> None:
    """Models made from a batch of keys under vmap are one model with batched leaves."""
    keys = ft.random.split(ft.random.key(0), 3)
    many = ft.vmap(lambda k: nn.Linear(2, 4, key=k))(keys)
    assert many.weight.shape == (3, 4, 2)
    x = xp.ones((5, 2), dtype=xp.float32)
    y = ft.vmap(lambda m: m(x))(many)
    laws.close(y[1], nn.Linear(2, 4, key=keys[1])(x), 1e-6, 1e-6)


def test_summary_sees_layers_that_users_wrote() -> None:
    """Inner calls of a user's layer have rows, and buffers are no parameters."""
    text = nn.summary({"net": block()}["net"], ft.ShapeDtype((7, 2), xp.float64))
    assert text.splitlines()[2:] == [
        "-      Block   (7, 2)           1",
        "inner  Linear  (7, 2)           6",
        "---------------------------------",
        "total                           7",
    ]


def test_combine_names_trees_that_differ() -> None:
    """It is combine that refuses them, not the walk inside of it."""
    with pytest.raises(TreeError, match="combine: at the root expected a tuple of length 2"):
        nn.combine((1, None), (None, 2, 3))
