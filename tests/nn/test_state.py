"""state_dict and load_state_dict: torch's keys, weights both ways, errors by their text."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import nn
from funct.errors import StateDictError
from tests import laws
from tests.nn.cases import wave


def small_cnn() -> nn.Sequential:
    """Two convolutions with batch norm, nested, and a linear head."""
    k1, k2, k3 = ft.random.split(ft.random.key(1), 3)
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, key=k1), nn.BatchNorm2d(4), nn.ReLU()),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, bias=False, key=k2),
        nn.BatchNorm2d(8, affine=False),
        nn.GELU(),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(32, 10, key=k3),
    )


KEYS = [
    "0.0.weight", "0.0.bias", "0.1.weight", "0.1.bias", "0.1.running_mean", "0.1.running_var",
    "0.1.num_batches_tracked", "2.weight", "3.running_mean", "3.running_var",
    "3.num_batches_tracked", "7.weight", "7.bias",
]  # fmt: skip


def torch_cnn() -> Any:
    """The same network by torch."""
    t = pytest.importorskip("torch", reason="KEYS are what torch calls them").nn
    return t.Sequential(
        t.Sequential(t.Conv2d(1, 4, 3, padding=1), t.BatchNorm2d(4), t.ReLU()),
        t.MaxPool2d(2), t.Conv2d(4, 8, 3, bias=False), t.BatchNorm2d(8, affine=False), t.GELU(),
        t.Flatten(), t.Dropout(0.25), t.Linear(32, 10),
    )  # fmt: skip


def test_keys_are_dotted_positions_and_names() -> None:
    """Keys, order, shapes and dtypes are those of torch."""
    found = nn.state_dict(small_cnn())
    assert list(found) == KEYS
    assert found["0.1.num_batches_tracked"].dtype == xp.int64
    assert list(torch_cnn().state_dict()) == KEYS


def test_weights_go_to_torch_and_come_back() -> None:
    """Logits agree after a copy in either direction, after some training too."""
    twin = torch_cnn()
    import torch

    model = small_cnn()
    for t in range(3):
        x = xp.asarray(wave((4, 1, 8, 8), t), dtype=xp.float32)
        _, model = model(x, key=ft.random.key(t))
    twin.load_state_dict({k: torch.tensor(np.asarray(v)) for k, v in nn.state_dict(model).items()})
    x = wave((5, 1, 8, 8), 0.5).astype(np.float32)
    expected = twin.eval()(torch.tensor(x)).detach().numpy()
    y = nn.eval_mode(model)(xp.asarray(x))
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-5, atol=1e-5)
    back = nn.load_state_dict(nn.eval_mode(small_cnn()), twin.state_dict())
    laws.same(nn.state_dict(back), nn.state_dict(model))
    with_grad = dict(twin.named_parameters()) | dict(twin.named_buffers())
    laws.same(nn.load_state_dict(back, with_grad), back)


def numbers() -> dict[str, Any]:
    """A state dict for the network: small waves, positive variances."""
    out: dict[str, Any] = {}
    for i, (key, x) in enumerate(nn.state_dict(small_cnn()).items()):
        values = 0.2 * wave(x.shape, i)
        out[key] = abs(values) + 0.5 if key.endswith("running_var") else values.astype(x.dtype)
    return out


# torch_cnn().double().eval() with numbers(), of wave((1, 1, 8, 8)): torch 2.13.0, CPU
LOGITS = [
    -0.512937737, 0.652681436, 0.204541005, -0.323323374, -0.038976988,
    -0.40856066, 0.513309006, 0.389045128, -0.571397607, -0.014406911,
]  # fmt: skip


def test_logits_are_those_that_torch_gave() -> None:
    """The whole network with known numbers gives the stored logits; so does the torch installed."""
    model = nn.load_state_dict(nn.eval_mode(small_cnn()), numbers())
    y = model(xp.asarray(wave((1, 1, 8, 8)), dtype=xp.float32))
    np.testing.assert_allclose(np.asarray(y)[0], LOGITS, rtol=1e-5, atol=1e-6)
    twin = torch_cnn().double().eval()
    import torch

    twin.load_state_dict({k: torch.tensor(v) for k, v in numbers().items()})
    expected = twin(torch.tensor(wave((1, 1, 8, 8)))).detach().numpy()[0]
    np.testing.assert_allclose(expected, LOGITS, rtol=1e-7, atol=1e-8)


def test_arrays_of_all_kinds_are_taken_and_copied() -> None:
    """Tensors, NumPy arrays and DLPack exporters are copied: later writes do not reach us."""

    class Capsule:
        """Speaks DLPack only."""

        def __init__(self, x: Any) -> None:
            self.x = x

        def __dlpack__(self, **options: Any) -> Any:
            return self.x.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.x.__dlpack_device__()

    layer = nn.Linear(2, 1, key=ft.random.key(0))
    raw = np.asarray([[1.0, 2.0]])
    for kind in (lambda x: x, xp.asarray, Capsule):
        given = raw.copy()
        loaded = nn.load_state_dict(layer, {"weight": kind(given), "bias": np.float32([3.0])})
        given[:] = 9.0
        assert loaded.weight.tolist() == [[1.0, 2.0]]
        assert (loaded.weight.dtype, loaded.bias.dtype) == (xp.float32, xp.float32)
    assert layer.weight.tolist() != [[1.0, 2.0]]


def test_bfloat16_of_torch_is_taken() -> None:
    """torch's bfloat16, which NumPy cannot hold, is widened without loss."""
    torch = pytest.importorskip("torch", reason="nothing else has this dtype")
    layer = nn.Linear(2, 1, key=ft.random.key(0), bias=False)
    loaded = nn.load_state_dict(
        layer, {"weight": torch.tensor([[1.5, -2.0]], dtype=torch.bfloat16)}
    )
    assert loaded.weight.tolist() == [[1.5, -2.0]]


def test_every_misfit_is_named_at_once() -> None:
    """Missing and unexpected keys, shapes and dtypes stand in one error, with what was found."""
    model = nn.Sequential(nn.Linear(2, 3, key=ft.random.key(0)), nn.BatchNorm1d(3))
    given: dict[str, Any] = dict(nn.state_dict(model))
    del given["0.bias"]
    given["2.weight"] = np.zeros(3)
    given["0.weight"] = np.zeros((3, 3))
    given["1.weight"] = np.zeros(3, np.int64)
    given["1.num_batches_tracked"] = np.asarray(1.5)
    given["1.bias"] = "zeros"
    with pytest.raises(StateDictError) as caught:
        nn.load_state_dict(model, given)
    head, *lines = caught.value.what.splitlines()
    assert head == "load_state_dict: the mapping does not fit"
    assert sorted(line.strip() for line in lines) == [
        "0.bias: missing, expected float32 of shape (3,)",
        "0.weight: expected shape (3, 2), got (3, 3)",
        "1.bias: expected an array, got str",
        "1.num_batches_tracked: expected dtype int64, got float64",
        "1.weight: expected dtype float32, got int64",
        "2.weight: unexpected",
    ]


def test_not_strict_passes_over_missing_and_unexpected_keys() -> None:
    """strict=False keeps what the mapping lacks, and still refuses a wrong shape."""
    layer = nn.Linear(2, 1, key=ft.random.key(0))
    loaded = nn.load_state_dict(layer, {"bias": np.ones(1), "other": 3}, strict=False)
    laws.same(loaded.weight, layer.weight)
    assert loaded.bias.tolist() == [1.0]
    with pytest.raises(StateDictError, match=r"bias: expected shape \(1,\), got \(2,\)"):
        nn.load_state_dict(layer, {"bias": np.ones(2)}, strict=False)
