"""`export`: captured programs, symbolic sizes and their bounds, names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import export, nn
from funct.errors import DTypeError, ExportError, GuardError, ShapeError, TreeError

X = xp.reshape(xp.arange(12, dtype=xp.float64), (4, 3))


def test_it_is_the_function() -> None:
    """A program gives the function's bits and takes every transform."""
    fun = lambda x: xp.sum(xp.tanh(x) * 2.0)  # noqa: E731
    program = export.export(fun, (X,))
    assert float(program(X)) == float(fun(X))
    assert ft.grad(program)(X).tolist() == ft.grad(fun)(X).tolist()
    stack = xp.stack([X, X + 1.0])
    assert ft.vmap(program)(stack).tolist() == ft.vmap(fun)(stack).tolist()
    assert float(ft.jit(program)(X)) == float(fun(X))


def test_parameters_keep_their_names() -> None:
    """The arrays of a layer are constants with their dotted paths; a method of it works too."""
    model = nn.Sequential(nn.Linear(3, 2, key=ft.random.key(0)), nn.ReLU())
    x = xp.astype(X, xp.float32)
    for fun in (model, model.__call__):
        program = export.export(fun, (x,))
        assert list(program.constant_names.values()) == ["0.weight", "0.bias"]
        assert [v.name for v, _ in program.graph.constants] == list(program.constant_names)
        assert [v.name for v in program.graph.inputs] == ["x0"]
        assert program(x).tolist() == model(x).tolist()


def test_names_of_inputs_and_outputs() -> None:
    """Arguments are named by parameter and path."""
    fun = lambda a, *rest, key: {"y": a["w"] + key, "z": rest[0]}  # noqa: E731
    program = export.export(fun, ({"w": X}, X), {"key": X})
    assert program.input_names == ("a.w", "arg1", "key")
    assert program.output_names == ("output.y", "output.z")


def test_symbolic_sizes() -> None:
    """Named axes take any length, negative axes count from the end."""
    fun = lambda x, y: x @ y  # noqa: E731
    program = export.export(fun, (X, X.T), dynamic_shapes=({-2: "N"}, (None, "M")))
    assert str(program.graph.outputs[0].shape) == "(N, M)"
    assert program(xp.ones((7, 3)), xp.ones((3, 2))).shape == (7, 2)
    with pytest.raises(ShapeError, match=r"must have shape \(N, 3\), got \(7, 2\)"):
        program(xp.ones((7, 2)), xp.ones((3, 2)))


def test_sizes_of_a_dict() -> None:
    """Entries are found by key, whatever the order of the keys."""
    fun = lambda t: xp.sum(t["b"]) + xp.sum(t["a"])  # noqa: E731
    tree = {"b": xp.ones((2, 5)), "a": xp.ones(3)}
    program = export.export(fun, (tree,), dynamic_shapes=({"b": {1: "N"}},))
    assert float(program({"a": xp.ones(3), "b": xp.ones((2, 8))})) == 19.0


def test_one_name_is_one_length() -> None:
    """A name on two axes ties them together, in the examples and in every call."""
    fun = lambda x, y: (xp.sum(x), xp.sum(y))  # noqa: E731
    shapes = ({0: "N"}, {0: "N"})
    with pytest.raises(ExportError, match="'N' is 4 and 5 in the examples"):
        export.export(fun, (X, xp.ones(5)), dynamic_shapes=shapes)
    program = export.export(fun, (X, xp.ones(4)), dynamic_shapes=shapes)
    with pytest.raises(ShapeError, match="input 'y' has N = 6, another input has N = 5"):
        program(xp.ones((5, 3)), xp.ones(6))


def test_bounds() -> None:
    """A Dim's bounds hold for the example and for every call."""
    dim = export.Dim("N", min=2, max=6)
    program = export.export(lambda x: x * 2.0, (X,), dynamic_shapes=({0: dim},))
    assert program(xp.ones((6, 3))).shape == (6, 3)
    for n in (1, 7):
        with pytest.raises(GuardError, match=r"N [<>]= "):
            program(xp.ones((n, 3)))
    with pytest.raises(ExportError, match="an example has N = 4, outside of"):
        export.export(lambda x: x, (X,), dynamic_shapes=({0: export.Dim("N", min=5)},))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("2 b",), "must be named by an identifier, got '2 b'"),
        ((3,), "must be named by an identifier, got 3"),
        (("class",), "must be named by an identifier, got 'class'"),
        (("N", 5, 2), "max of N must be at least min, got min 5 and max 2"),
        (("N", -1), "min of N must be an int from 0 on, got -1"),
        (("N", 1.5), "min of N must be an int from 0 on, got 1.5"),
        (("N", 0, 2.5), "max of N must be an int from 0 on, got 2.5"),
        (("N", True), "min of N must be an int from 0 on, got True"),
        (("N", None), "min of N must be an int from 0 on, got None"),
        (("N", 0, "many"), "max of N must be an int from 0 on, got 'many'"),
    ],
)
def test_sizes_that_there_are_not(given: tuple[Any, ...], told: str) -> None:
    """They are refused where they are written down, before anything is exported."""
    with pytest.raises(ExportError, match=rf"^export.Dim: .*{told}"):
        export.Dim(*given)
    assert export.Dim("N", np.int64(2), 2).max == 2


def fixed(x: Any) -> Any:
    """Fixes the first axis."""
    return x * xp.asarray(np.zeros((x.shape[0], 1)))


def also_fixed(x: Any) -> Any:
    """Fixes it by way of another size."""
    return x[1:] * xp.asarray(np.zeros((x.shape[0] - 1, 1)))


@pytest.mark.parametrize("fun", [fixed, also_fixed], ids=lambda f: f.__name__)
def test_fixing_a_symbolic_size(fun: Any) -> None:
    """A function that needs the number of a symbolic size is refused, with its line."""
    with pytest.raises(ExportError, match="was to stay symbolic") as caught:
        export.export(fun, (X,), dynamic_shapes=({0: "N"},))
    assert caught.value.site is not None
    assert "np.zeros" in caught.value.site.text


@pytest.mark.parametrize(
    "shapes",
    [
        ({0: "N"}, {0: "M"}), ({2: "N"},), ({"0": "N"},), ({0: "no name"},), ({0: "class"},),
        ({0: "v1"},), ("N",), ({0: 3},),
    ],
)  # fmt: skip
def test_wrong_dynamic_shapes(shapes: Any) -> None:
    """A tree of another structure, an axis that is absent and a name that is none are refused."""
    with pytest.raises(ExportError):
        export.export(lambda x: x, (X,), dynamic_shapes=shapes)


def test_wrong_arguments() -> None:
    """Other structures, shapes and dtypes are refused by name."""
    program = export.export(lambda x: x, (X,))
    with pytest.raises(TreeError):
        program(X, X)
    with pytest.raises(ShapeError, match="'x' must have shape"):
        program(X[1:])
    with pytest.raises(DTypeError, match="'x' must be float64, got float32"):
        program(xp.astype(X, xp.float32))


def test_decisions_are_kept() -> None:
    """A branch on a value holds for values that take it, and others are refused."""
    program = export.export(lambda x: x if xp.sum(x) > 0 else -x, (X,))
    assert program(X + 1.0).tolist() == (X + 1.0).tolist()
    with pytest.raises(GuardError):
        program(-X - 1.0)


def test_closing_over_a_transform() -> None:
    """A function that closes over a traced value cannot be captured on its own."""
    with pytest.raises(ExportError, match="closes over a value of an outer transform"):
        ft.grad(lambda y: [export.export(lambda x: x * y, (X,)), y][1])(xp.asarray(1.0))
