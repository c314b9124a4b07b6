"""Recurrent and Transformer layers: torch's values, gradients, names; jit; what is refused."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import nn, tree
from funct.errors import ArgumentError, MissingKeyError, ShapeError
from tests import laws

D = xp.float64
KEY = ft.random.key(0)
RNG = np.random.default_rng(0)


def _torch(x: Any) -> Any:
    torch = pytest.importorskip("torch")
    return torch.tensor(np.asarray(x))


def _same(ours: Any, theirs: Any) -> None:
    theirs = list(tree.leaves(theirs))
    for a, b in zip(tree.leaves(ours), theirs, strict=True):
        np.testing.assert_allclose(np.asarray(a), b.detach().numpy(), rtol=1e-9, atol=1e-12)


_OWN: dict[str, dict[str, Any]] = {
    "LSTM": {"proj_size": 2, "num_layers": 2},
    "RNN": {"nonlinearity": "relu"},
    "GRU": {"num_layers": 3},
}
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    (cls, options)
    for cls in ("RNN", "LSTM", "GRU")
    for options in (
        {},
        {"num_layers": 2, "bidirectional": True},
        {"batch_first": True, "bias": False},
        {
            "LSTM": {"proj_size": 2, "num_layers": 2},
            "RNN": {"nonlinearity": "relu"},
            "GRU": {"num_layers": 3},
        }[cls],
    )
]


@pytest.mark.parametrize(("cls", "options"), OPTIONS, ids=str)
@pytest.mark.parametrize("shape", [(5, 2, 3), (5, 3)], ids=["batch", "single"])
def test_recurrent_layers_are_torch_s(cls: str, options: Any, shape: Any) -> None:
    """Names, values with and without a first state, and gradients of all weights."""
    torch = pytest.importorskip("torch")
    layer = getattr(nn, cls)(3, 4, **options, key=KEY, dtype=D)
    twin = getattr(torch.nn, cls)(3, 4, **options).double()
    assert list(nn.state_dict(layer)) == list(twin.state_dict())
    layer = nn.load_state_dict(layer, twin.state_dict())
    x = xp.asarray(RNG.normal(size=shape))
    ours, theirs = layer(x), twin(_torch(x))
    _same(ours, theirs)
    _same(layer(x, ours[1]), twin(_torch(x), theirs[1]))
    (twin(_torch(x))[0] ** 2).sum().backward()
    for wrap in (lambda f: f, ft.jit):
        g = nn.state_dict(wrap(ft.grad(lambda m: xp.sum(m(x)[0] ** 2)))(layer))
        _same(list(g.values()), [p.grad for p in twin.parameters()])


@pytest.mark.parametrize("cls", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells_are_torch_s(cls: str) -> None:
    """One step, of a batch and of one sample; a layer is its cell, step by step."""
    torch = pytest.importorskip("torch")
    cell, twin = getattr(nn, cls)(3, 4, key=KEY, dtype=D), getattr(torch.nn, cls)(3, 4).double()
    assert list(nn.state_dict(cell)) == list(twin.state_dict())
    cell = nn.load_state_dict(cell, twin.state_dict())
    for shape in ((2, 3), (3,)):
        x = xp.asarray(RNG.normal(size=shape))
        _same(cell(cell_in := x, cell(x)), twin(_torch(cell_in), twin(_torch(x))))


def test_a_layer_is_its_cell() -> None:
    """The last state of a layer is that of a loop over the cell."""
    layer = nn.GRU(3, 4, key=KEY, dtype=D)
    w = {n.removesuffix("_l0"): v for n, v in nn.state_dict(layer).items()}
    cell = nn.load_state_dict(nn.GRUCell(3, 4, key=KEY, dtype=D), w)
    xs = xp.asarray(RNG.normal(size=(6, 2, 3)))
    h = None
    for x in xs:
        h = cell(x, h)
    laws.close(layer(xs)[1][0], h)
    assert layer.weight_ih_l0.shape == (12, 3)


TRANSFORMERS: list[dict[str, Any]] = [
    {}, {"norm_first": True, "activation": "gelu"}, {"batch_first": True, "bias": False},
]  # fmt: skip


@pytest.mark.parametrize("options", TRANSFORMERS, ids=str)
def test_transformer_layers_are_torch_s(options: Any) -> None:
    """Encoder and decoder, alone and stacked, with masks."""
    torch = pytest.importorskip("torch")
    x, memory = (xp.asarray(RNG.normal(size=(5, 3, 8))) for _ in range(2))
    length = 3 if options.get("batch_first") else 5
    mask = xp.asarray(np.triu(np.ones((length, length), bool), 1))

    def pair(name: str) -> tuple[Any, Any]:
        ours = nn.eval_mode(getattr(nn, name)(8, 2, 16, **options, key=KEY, dtype=D))
        theirs = getattr(torch.nn, name)(8, 2, 16, **options).double().eval()
        assert list(nn.state_dict(ours)) == list(theirs.state_dict())
        return nn.load_state_dict(ours, theirs.state_dict()), theirs

    one, twin = pair("TransformerEncoderLayer")
    _same(one(x), twin(_torch(x)))
    _same(one(x, mask), twin(_torch(x), _torch(mask)))
    stack = nn.TransformerEncoder(one, 2, nn.LayerNorm(8, dtype=D))
    norm = torch.nn.LayerNorm(8).double()
    twins = torch.nn.TransformerEncoder(twin, 2, norm, enable_nested_tensor=False).eval()
    assert list(nn.state_dict(stack)) == list(twins.state_dict())
    _same(stack(x), twins(_torch(x)))
    one, twin = pair("TransformerDecoderLayer")
    _same(one(x, memory), twin(_torch(x), _torch(memory)))
    _same(
        nn.TransformerDecoder(one, 2)(x, memory),
        torch.nn.TransformerDecoder(twin, 2).eval()(_torch(x), _torch(memory)),
    )


def test_dropout_needs_a_key() -> None:
    """In training, where something is dropped; the same key drops the same."""
    x = xp.ones((5, 2, 8))
    many = nn.GRU(8, 8, 2, dropout=0.5, key=KEY, dtype=D)
    layer = nn.TransformerEncoderLayer(8, 2, 16, key=KEY, dtype=D)
    for m in (many, layer, nn.TransformerEncoder(layer, 2)):
        with pytest.raises(MissingKeyError, match="a key is needed in training"):
            m(x)
        laws.same(m(x, key=KEY), m(x, key=KEY))
        a, b = tree.leaves(m(x, key=KEY))[0], tree.leaves(nn.eval_mode(m)(x))[0]
        assert float(xp.max(xp.abs(a - b))) > 1e-3
        ft.jit(lambda m, x: m(x, key=KEY))(m, x)
    nn.GRU(8, 8, dropout=0.5, key=KEY, dtype=D)(x)  # one layer drops nothing


def test_what_does_not_fit_is_refused() -> None:
    """Sizes, names, shapes: by name."""
    for make, match in (
        (lambda: nn.RNN(0, 4, key=KEY), "RNN: input_size must be positive"),
        (lambda: nn.RNN(3, 4, nonlinearity="sin", key=KEY), "must be 'tanh' or 'relu'"),
        (lambda: nn.LSTM(3, 4, proj_size=4, key=KEY), "proj_size must be from 0"),
        (lambda: nn.TransformerEncoderLayer(8, 2, activation="sin", key=KEY), "'relu', 'gelu'"),
        (lambda: nn.TransformerEncoder(nn.Identity(), 0), "num_layers must be positive"),
    ):
        with pytest.raises(ArgumentError, match=match):
            make()
    layer = nn.LSTM(3, 4, key=KEY)
    with pytest.raises(ShapeError, match="LSTM: x must have 2 or 3 axes and 3 features"):
        layer(xp.ones((5, 2, 4), dtype=xp.float32))
    with pytest.raises(ShapeError, match="a state must have shape"):
        layer(xp.ones((5, 2, 3), dtype=xp.float32), (xp.zeros((1, 2, 3)), xp.zeros((1, 2, 4))))
    with pytest.raises(ShapeError, match="GRUCell: x must have shape"):
        nn.GRUCell(3, 4, key=KEY)(xp.ones((2, 4)))
    with pytest.raises(AttributeError, match="no attribute 'weight'"):
        _ = layer.weight
