"""Errors name what the user called: the function, the update, the layer; eagerly and in programs.

What every public function does with bad arguments is in test_bad_input.py; here are layers, and
indices, which are refused only when a program runs.
"""

from __future__ import annotations

import inspect
import itertools
import random
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import nn
from funct.errors import (
    FunctError,
    IndexOutOfBoundsError,
    LinAlgError,
    MissingKeyError,
    ShapeError,
)
from funct.nn import functional
from tests.conformance.test_bad_input import STRANGE, UsersError, any_array, is_told_by
from tests.nn.test_torch_layers import EVERY

X, FAR = xp.asarray(np.arange(12.0).reshape(3, 4)), xp.asarray([0, 7, 1])
LABELS, COLUMN = xp.asarray([0, 9, 1]), xp.asarray([[9], [0], [0]])
KEY = ft.random.key(0)

Ways = dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]]
WAYS: Ways = {
    "eagerly": lambda f: f,
    "jit": ft.jit,
    "grad": lambda f: ft.grad(lambda x, i: xp.sum(f(x, i))),
    "jit(grad)": lambda f: ft.jit(ft.grad(lambda x, i: xp.sum(f(x, i)))),
    "vmap": lambda f: lambda x, i: ft.vmap(f)(xp.stack([x, x]), xp.stack([i, i])),
    "jit(vmap)": lambda f: lambda x, i: ft.jit(ft.vmap(f))(xp.stack([x, x]), xp.stack([i, i])),
}
OUTSIDE: dict[str, tuple[Callable[..., Any], Any]] = {
    "x[...]": (lambda x, i: x[i], FAR),
    "x[...] ": (lambda x, i: x[i, i], FAR),
    **{
        f"x.at[...].{name}": (lambda x, i, name=name: getattr(x.at[i], name)(2.0), FAR)
        for name in ("set", "add", "multiply", "divide", "power", "min", "max")
    },
    "take": (lambda x, i: xp.take(x, i, axis=0), FAR),
    "take_along_axis": (lambda x, i: xp.take_along_axis(x, i, axis=1), COLUMN),
    "nll_loss": (functional.nll_loss, LABELS),
    "cross_entropy": (functional.cross_entropy, LABELS),
    "embedding": (lambda x, i: functional.embedding(i, x), FAR),
    "CrossEntropyLoss: cross_entropy": (nn.CrossEntropyLoss(), LABELS),
    "max_unpool1d": (lambda x, i: functional.max_unpool1d(x, i, 2), xp.full((3, 4), 99)),
    "MaxUnpool1d: max_unpool1d": (nn.MaxUnpool1d(2), xp.full((3, 4), 99)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OUTSIDE)
def test_indices_out_of_bounds_name_what_was_called(name: str, way: str) -> None:
    """By the same words in every transform, whatever ops the function is made of."""
    if name == "x.at[...].add" and way == "jit(grad)":
        pytest.skip("its derivative needs no index, so the program has none")
    fun, i = OUTSIDE[name]
    with pytest.raises(IndexOutOfBoundsError) as caught:
        WAYS[way](fun)(X, i)
    assert caught.value.what.startswith(f"{name.rstrip()}: index {int(xp.max(i))} is out of bounds")
    assert "test_told_by_name.py" in str(caught.value)


@pytest.mark.parametrize("name", OUTSIDE)
def test_programs_that_ran_before_name_what_was_called(name: str) -> None:
    """The index is refused by a program that many calls have gone through."""
    fun, i = OUTSIDE[name]
    program = ft.jit(fun)
    for _ in range(4):
        program(X, xp.zeros_like(i))
    with pytest.raises(IndexOutOfBoundsError, match=f"^{re.escape(name.rstrip())}: index"):
        program(X, i)


def test_a_loss_of_many_elements_names_the_line_of_this_call() -> None:
    """Its program was captured on another line, for which it stands no more."""
    x, good = xp.ones((3000, 40)), xp.asarray(np.zeros(3000, int))
    functional.cross_entropy(x, good)  # the line of the capture
    with pytest.raises(IndexOutOfBoundsError) as caught:
        functional.cross_entropy(x, good.at[5].set(99))  # the line of the call
    assert caught.value.what.startswith("cross_entropy: index 99")
    assert "the line of the call" in str(caught.value)


def test_what_has_the_users_lines_computes_the_same_program() -> None:
    """Names that errors have are no part of a program: its hash is that of its ops."""
    from funct.graph import digest

    read, taken = lambda x: x[FAR], lambda x: xp.take(x, FAR, axis=0)
    graphs = [ft.make_graph(f)(xp.ones((9, 4))) for f in (read, taken)]
    assert digest(graphs[0]) == digest(graphs[1])
    calls = [e.site.call for g in graphs for e in g.nodes if e.site is not None]
    assert calls == ["x[...]", "take"]


def test_a_function_that_the_user_calls_back_is_told_for_itself() -> None:
    """The innermost line of the user's counts."""
    with pytest.raises(ShapeError, match=r"^sum: axis 5"):
        ft.map(lambda row: xp.sum(row, axis=5), X)


def test_layers_in_layers() -> None:
    """A container says which layer it was; one that is made of others is told with what it was."""
    model = nn.Sequential(nn.Identity(), nn.ReflectionPad2d(9))
    with pytest.raises(FunctError, match=r"^ReflectionPad2d: pad: mode 'reflect' needs"):
        model(xp.ones((1, 1, 3, 3)))
    with pytest.raises(FunctError, match=r"^TransformerEncoderLayer: MultiheadAttention: num_he"):
        nn.TransformerEncoderLayer(4, 3, key=KEY)


@pytest.mark.parametrize("rank", [2, 3])
def test_fractional_pooling_says_what_it_needs_a_key_for(rank: int) -> None:
    """It draws in evaluation too, so training is no reason."""
    pool = getattr(functional, f"fractional_max_pool{rank}d")
    with pytest.raises(MissingKeyError, match="without _random_samples a key is needed") as caught:
        pool(xp.ones((1,) + (4,) * (rank + 1)), 2, output_size=2)
    assert "training" not in caught.value.what
    assert caught.value.fix == "pass key=random.key(seed)"


def test_a_filling_that_is_no_number_is_told_by_its_name() -> None:
    """As the argument that it was given as."""
    for call in (lambda: xp.full((2,), "a"), lambda: xp.full_like(xp.ones(2), "a")):
        with pytest.raises(FunctError, match=r"^full(_like)?: fill_value must be a Tensor, got st"):
            call()


SQUARE = xp.zeros((3, 3))
MATRICES: list[Any] = [
    SQUARE, -xp.eye(3), xp.full((3, 3), xp.nan), xp.ones((2, 3)), xp.ones(3), xp.ones(2),
    xp.ones((3, 3), dtype="int64"), xp.zeros((2, 3, 3)), xp.ones((4, 3, 3)), xp.asarray(1.0), 2.0,
]  # fmt: skip
# `f: g: x must be ...`: the last name is that of the function whose arguments are spoken of
SPOKEN = re.compile(
    r"(?:.*?\b)?(?P<name>\w+): (?P<argument>\w+)(\[\d\])?( and (?P<other>\w+))? (must|is|has) "
)
NO_ARGUMENTS = {"operands", "arrays", "matrices", "axes", "shapes", "elements"}


def _refusals(name: str) -> Iterator[FunctError]:
    fun = getattr(xp.linalg, name)
    needed = [
        p for p in inspect.signature(fun).parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_POSITIONAL
    ]  # fmt: skip
    for args in itertools.product(MATRICES, repeat=len(needed)):
        compiled = all(isinstance(a, xp.Array) for a in args) and any(a is SQUARE for a in args)
        for call in (fun, ft.jit(fun)) if compiled else (fun,):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    call(*args)
                except FunctError as error:
                    yield error


@pytest.mark.parametrize(
    "name", [n for n in xp.linalg.__all__ if inspect.isroutine(getattr(xp.linalg, n))]
)
def test_errors_speak_of_arguments_that_there_are(name: str) -> None:
    """By the names of the public function that is said to be called, and each name once."""
    for error in _refusals(name):
        found = SPOKEN.match(error.what)
        if found is None or found["argument"] in NO_ARGUMENTS:
            continue
        public = getattr(xp.linalg, found["name"], None) or getattr(xp, found["name"], None)
        assert public is not None, error.what
        known = inspect.signature(public).parameters
        for argument in filter(None, (found["argument"], found["other"])):
            assert argument in known, error.what


def test_numerical_failures_name_their_argument() -> None:
    """Eagerly and in programs, with the parameter's name."""
    for ways in (lambda f: f, ft.jit):
        for fun, args, text in (
            (xp.linalg.solve, (SQUARE, SQUARE), "solve: x1 is singular"),
            (xp.linalg.solve_triangular, (SQUARE, SQUARE), "solve_triangular: a has a 0 on"),
            (xp.linalg.inv, (SQUARE,), "inv: x is singular"),
        ):
            with pytest.raises(LinAlgError) as caught:
                ways(fun)(*args)
            assert caught.value.what.startswith(text)


def test_a_factor_that_is_no_pair_is_refused() -> None:
    """By the function that was given it."""
    with pytest.raises(FunctError, match=r"^cho_solve: c_and_lower must be cho_factor's pair"):
        xp.linalg.cho_solve(xp.ones((3, 3)), xp.ones(3))
    with pytest.raises(ShapeError, match=r"^cho_solve: c_and_lower\[0\] must be square"):
        xp.linalg.cho_solve((xp.ones((2, 3)), True), xp.ones(3))


def test_a_system_is_told_with_the_shapes_that_it_was_given() -> None:
    """A vector is no column."""
    for solve in (xp.linalg.solve, xp.linalg.solve_triangular, xp.linalg.lstsq):
        with pytest.raises(ShapeError, match=rf"^{solve.__name__}: .*\(3, 3\) and .*\(2,\)"):
            solve(xp.ones((3, 3)), xp.ones(2))


OTHERS: list[Any] = [
    nn.Linear(3, 2, key=KEY), nn.RNN(3, 2, key=KEY), nn.LSTM(3, 2, key=KEY),
    nn.GRU(3, 2, key=KEY), nn.RNNCell(3, 2, key=KEY), nn.LSTMCell(3, 2, key=KEY),
    nn.GRUCell(3, 2, key=KEY), nn.Flatten(), nn.MaxPool1d(2), nn.AvgPool1d(2), nn.AvgPool2d(2),
    nn.BatchNorm1d(3), nn.Dropout(), nn.TransformerEncoderLayer(4, 2, 8, key=KEY),
    nn.TransformerDecoderLayer(4, 2, 8, key=KEY),
]  # fmt: skip


def _calls(layer: Any) -> Iterator[int]:
    """How many arguments it may be called with."""
    kinds = inspect.signature(layer).parameters.values()
    given = [p for p in kinds if p.kind is p.POSITIONAL_OR_KEYWORD]
    least = sum(p.default is p.empty for p in given)
    yield from range(least, min(len(given), least + 2) + 1)


def _refused(name: str, call: Callable[[], Any]) -> None:
    told: FunctError | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except FunctError as error:
            told = error
        except UsersError:
            pass
    assert told is None or is_told_by(name, told), told.what


@pytest.mark.parametrize(
    "layer", [*[layer for layer, _ in EVERY], *OTHERS], ids=lambda v: type(v).__name__
)
def test_layers_that_are_called_with_anything(layer: Any) -> None:
    """A result, or an error that begins with the layer's name."""
    rng = random.Random(3)
    for count in _calls(layer):
        for _ in range(12):
            args = [rng.choice([any_array(rng), rng.choice(STRANGE)]) for _ in range(count)]
            _refused(type(layer).__name__, lambda: layer(*args))  # noqa: B023


VALUES: list[Any] = [
    1, 2, 3, 4, -1, 0, 2**40, 2**62, 2**70, -(2**70), 2.5, float("nan"), True, 1j, (2, 2), (1, -1),
    "mean", "zeros",
]  # fmt: skip
KINDS = [
    kind for name in nn.__all__
    if inspect.isclass(kind := getattr(nn, name)) and issubclass(kind, nn.Module)
    and kind is not nn.Module
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_layers_that_are_made_of_anything(kind: Any) -> None:
    """A layer, or an error that begins with its name."""
    rng = random.Random(5)
    for _ in range(40):
        args: list[Any] = []
        fields: dict[str, Any] = {}
        for p in inspect.signature(kind).parameters.values():
            value = rng.choice(VALUES) if rng.random() < 0.7 else rng.choice(STRANGE)
            if p.kind is p.VAR_POSITIONAL:
                args += [value, value]
            elif p.name == "key":
                fields["key"] = KEY if rng.random() < 0.8 else value
            elif p.default is p.empty or rng.random() < 0.3:
                fields[p.name] = value
        _refused(kind.__name__, lambda: kind(*args, **fields))  # noqa: B023


def test_loops_end() -> None:
    """Orders and dimensions that are as large as integers are."""
    assert xp.polyder(xp.ones(3), m=2**62).shape == (0,)
    assert xp.vander(xp.asarray([2]), 5000).shape == (1, 5000)
    with pytest.raises(FunctError, match=r"^multigammaln: d must be between 1 and 65536"):
        xp.special.multigammaln(1.0, 2**62)
    with pytest.raises(FunctError, match=r"^polyint: m must be at most 4096"):
        xp.polyint(xp.ones(3), m=2**62)


def test_complex_options_of_real_functions_are_refused() -> None:
    """Half of the number would be dropped."""
    with pytest.raises(FunctError, match=r"^nan_to_num: posinf must be real, got 1j"):
        xp.nan_to_num(xp.ones(2), posinf=1j)
    with pytest.raises(FunctError, match=r"^pinv: rtol must be real, got"):
        xp.linalg.pinv(xp.eye(2), rtol=xp.asarray(1j))


def test_integers_that_no_dtype_holds() -> None:
    """They are refused by name, where NumPy makes objects of them."""
    for n in (2**64, 2**70):
        with pytest.raises(FunctError, match=r"^abs: an integer does not fit"):
            xp.abs(n)
    with pytest.raises(FunctError, match=r"^beta: "):
        xp.special.beta(10**400, xp.ones(2, dtype=xp.int8))
