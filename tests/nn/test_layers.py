"""Layers: torch's names, keys and values; state in and out; every transform; symbolic batches."""

import inspect
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import export, nn
from funct.errors import ArgumentError, MissingKeyError, ShapeError, UnsupportedOperandError
from tests import laws
from tests.nn.cases import wave

KEY = ft.random.key(0)

# layer, input shape: defaults and others
EVERY: list[tuple[Any, tuple[int, ...]]] = [
    (nn.Linear(4, 3, key=KEY), (2, 4)),
    (nn.Linear(4, 3, key=KEY, bias=False), (2, 5, 4)),
    (nn.Conv1d(4, 6, 3, key=KEY), (2, 4, 9)),
    (nn.Conv1d(4, 6, 3, 2, 1, 2, 2, False, key=KEY), (2, 4, 9)),
    (nn.Conv2d(4, 6, 3, key=KEY), (2, 4, 7, 6)),
    (nn.Conv2d(4, 6, (3, 2), padding="same", groups=2, key=KEY), (2, 4, 7, 6)),
    (nn.Conv2d(4, 4, 3, stride=(2, 1), padding="valid", dilation=2, key=KEY), (2, 4, 7, 6)),
    (nn.BatchNorm1d(4), (2, 4)),
    (nn.BatchNorm1d(4, momentum=None, affine=False), (2, 4, 3)),
    (nn.BatchNorm1d(4, track_running_stats=False), (2, 4)),
    (nn.BatchNorm2d(4, eps=1e-2), (2, 4, 3, 3)),
    (nn.MaxPool1d(2), (2, 3, 7)),
    (nn.MaxPool1d(3, 2, 1, 1, False, True), (2, 3, 8)),
    (nn.MaxPool2d(2), (2, 3, 6, 7)),
    (nn.MaxPool2d([2, 3], dilation=2, ceil_mode=True), (2, 3, 6, 7)),
    (nn.AvgPool1d(2), (2, 3, 7)),
    (nn.AvgPool1d(3, 2, 1, True, False), (2, 3, 8)),
    (nn.AvgPool2d(2), (2, 3, 6, 7)),
    (nn.AvgPool2d(3, 2, 1, True, True, 4), (2, 3, 6, 7)),
    (nn.Dropout(0.5), (2, 3)),
    (nn.Flatten(), (2, 3, 4)),
    (nn.Flatten(1, 2), (2, 3, 4, 5)),
    (nn.ReLU(), (2, 3)),
    (nn.GELU(), (2, 3)),
    (nn.GELU("tanh"), (2, 3)),
    (nn.Identity(), (2, 3)),
    (
        nn.Sequential(
            nn.Conv2d(1, 2, 3, key=KEY), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.2), nn.Linear(8, 3, key=KEY),
        ),
        (2, 1, 6, 6),
    ),
]  # fmt: skip
each_layer = pytest.mark.parametrize(
    ("layer", "shape"), EVERY, ids=[f"{type(m).__name__}{i}" for i, (m, _) in enumerate(EVERY)]
)


def f32(shape: tuple[int, ...], phase: float = 0.0) -> Any:
    """Numbers as a float32 Tensor."""
    return xp.asarray(wave(shape, phase), dtype=xp.float32)


def torch_twin(layer: Any) -> Any:
    """torch's layer of the same name and arguments, with the same numbers in it."""
    torch = pytest.importorskip("torch", reason="layers are compositions of functions with goldens")
    if isinstance(layer, nn.Sequential):
        twin = torch.nn.Sequential(*[torch_twin(m) for m in layer])
    else:
        kind = getattr(torch.nn, type(layer).__name__)
        names = [n for n in inspect.signature(kind).parameters if n in layer.__dict__]
        given = {n: getattr(layer, n) for n in names}
        if "bias" in given:
            given["bias"] = layer.bias is not None
        twin = kind(**given)
    state = {k: torch.tensor(np.asarray(v)) for k, v in nn.state_dict(layer).items()}
    twin.load_state_dict(state)
    return twin


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@each_layer
def test_layer_computes_what_torch_computes(layer: Any, shape: tuple[int, ...]) -> None:
    """In eval mode the same numbers come out, and the state dicts have the same keys and order."""
    twin = torch_twin(layer).eval()
    import torch

    expected = twin(torch.tensor(wave(shape), dtype=torch.float32)).detach().numpy()
    y = nn.eval_mode(layer)(f32(shape))
    assert y.dtype == xp.float32
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-5, atol=1e-5)
    assert list(nn.state_dict(layer)) == list(twin.state_dict())


@each_layer
def test_constructor_is_torchs(layer: Any, shape: tuple[int, ...]) -> None:
    """Arguments have torch's names, order and defaults; ours end in key and dtype."""
    torch = pytest.importorskip("torch", reason="there is nothing to compare with")
    ours = list(inspect.signature(type(layer)).parameters.values())
    theirs = list(inspect.signature(getattr(torch.nn, type(layer).__name__)).parameters.values())
    missing = {"device", "dtype", "args", "kwargs"}
    expected = [(p.name, p.default) for p in theirs if p.name not in missing]
    own = {"key", "dtype", "layers"}
    assert [(p.name, p.default) for p in ours if p.name not in own] == expected


@each_layer
def test_layer_exports_with_a_symbolic_batch(layer: Any, shape: tuple[int, ...]) -> None:
    """A program captured at one batch size computes the same at another."""
    layer = nn.eval_mode(layer)
    program = export.export(layer, (f32(shape),), dynamic_shapes=({0: "batch"},))
    x = f32((5, *shape[1:]), 0.4)
    laws.close(program(x), layer(x), 1e-6, 1e-6)


@each_layer
def test_layer_obeys_transforms(layer: Any, shape: tuple[int, ...]) -> None:
    """jit = eager, vmap = loop, and the gradient of the parameters is that of a jitted loss."""
    layer = nn.eval_mode(layer)
    x = f32(shape)
    call = ft.jit(lambda m, v: m(v))
    laws.close(call(layer, x), layer(x), 1e-5, 1e-6)
    many = f32((3, *shape), 0.1)
    rows = [layer(many[i]) for i in range(3)]
    laws.close(ft.vmap(layer)(many), xp.stack(rows), 1e-5, 1e-6)
    params, rest = nn.partition(layer)

    def loss(p: Any) -> Any:
        y = nn.combine(p, rest)(x)
        return xp.sum(y * y)

    grads = ft.grad(loss)(params)
    assert ft.tree.structure(grads) == ft.tree.structure(params)
    laws.close(ft.jit(ft.grad(loss))(params), grads, 1e-4, 1e-4)


@pytest.mark.parametrize("momentum", [0.1, 0.5, None])
def test_batch_norm_keeps_torchs_statistics(momentum: float | None) -> None:
    """Over several steps the outputs and buffers are torch's, and inference then uses them."""
    torch = pytest.importorskip("torch", reason="test_batch_norm_by_hand stands in for it")
    twin = torch.nn.BatchNorm2d(3, momentum=momentum).double()
    layer = nn.BatchNorm2d(3, momentum=momentum, dtype=xp.float64)
    for t in range(4):
        x = wave((2 + t, 3, 2, 2), t)
        y, layer = layer(xp.asarray(x))
        np.testing.assert_allclose(np.asarray(y), twin(torch.tensor(x)).detach(), rtol=1e-10)
    for name, value in twin.state_dict().items():
        found = nn.state_dict(layer)[name]
        assert str(found.dtype) == str(value.dtype).removeprefix("torch.")
        np.testing.assert_allclose(np.asarray(found), value, rtol=1e-12)
    x = wave((1, 3, 2, 2), 9.0)
    y = nn.eval_mode(layer)(xp.asarray(x))
    np.testing.assert_allclose(np.asarray(y), twin.eval()(torch.tensor(x)).detach(), rtol=1e-10)


def test_batch_norm_by_hand() -> None:
    """The cumulative mean over two batches is the mean of their means and variances."""
    layer = nn.BatchNorm1d(1, momentum=None, dtype=xp.float64)
    for values in ([1.0, 3.0], [5.0, 9.0]):
        _, layer = layer(xp.asarray(values)[:, None])
    assert layer.running_mean.tolist() == [4.5]
    assert layer.running_var.tolist() == [5.0]
    assert int(layer.num_batches_tracked) == 2
    y = nn.eval_mode(layer)(xp.asarray([[4.5]]))
    assert y.tolist() == [[0.0]]


def test_training_is_explicit_about_state() -> None:
    """A container with batch norm returns (y, container) in training, and y after eval_mode."""
    k1, k2 = ft.random.split(KEY)
    model = nn.Sequential(
        nn.Linear(3, 4, key=k1),
        nn.Sequential(nn.BatchNorm1d(4), nn.ReLU()),
        nn.Linear(4, 2, key=k2),
    )
    x = f32((6, 3))
    assert nn.is_stateful(model)
    before = nn.state_dict(model)
    y, new = model(x)
    assert y.shape == (6, 2)
    assert ft.tree.structure(new) == ft.tree.structure(model)
    assert int(new[1][0].num_batches_tracked) == 1
    laws.same(nn.state_dict(model), before)
    done = nn.eval_mode(new)
    assert not nn.is_stateful(done)
    assert done(x).shape == (6, 2)
    assert ft.tree.structure(nn.train_mode(done)) == ft.tree.structure(model)


def test_a_training_step_is_a_function() -> None:
    """Value, gradient, new statistics and fresh dropout come out of one jitted step."""
    k1, k2, k3 = ft.random.split(KEY, 3)
    model = nn.Sequential(
        nn.Linear(3, 8, key=k1),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(8, 2, key=k2),
    )

    def loss(params: Any, rest: Any, x: Any, y: Any, key: Any) -> Any:
        logits, new = nn.combine(params, rest)(x, key=key)
        return nn.functional.cross_entropy(logits, y), new

    @ft.jit
    def step(model: Any, x: Any, y: Any, key: Any) -> Any:
        params, rest = nn.partition(model)
        (value, new), grads = ft.value_and_grad(loss, has_aux=True)(params, rest, x, y, key)
        params = ft.tree.map(lambda p, g: p - 0.5 * g, params, grads)
        return nn.combine(params, nn.partition(new)[1]), value

    x = f32((16, 3))
    y = xp.asarray(np.asarray(x)[:, 0] > 0, dtype=xp.int64)
    values = []
    for i in range(30):
        model, value = step(model, x, y, ft.random.fold_in(k3, i))
        values.append(float(value))
    assert values[-1] < 0.5 * values[0]
    assert int(model[1].num_batches_tracked) == 30
    assert step.cache_info().misses == 1


def test_unbatched_inputs_pass_as_in_torch() -> None:
    """A layer of signals or images takes one without the batch axis."""
    for layer, shape in EVERY:
        if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.MaxPool1d | nn.MaxPool2d | nn.AvgPool2d):
            x = f32(shape)
            laws.close(layer(x[0]), layer(x)[0], 1e-6, 1e-6)


def test_initial_values_have_torchs_distribution() -> None:
    """Weight and bias are uniform on ±1 / sqrt(fan_in): bounds, mean and variance."""
    conv = nn.Conv2d(8, 64, 5, groups=2, key=KEY)
    for layer, fan_in in ((nn.Linear(400, 300, key=KEY), 400), (conv, 4 * 25)):
        bound = fan_in**-0.5
        for values in (np.asarray(layer.weight), np.asarray(layer.bias)):
            assert np.abs(values).max() <= bound * (1 + 1e-6)
            sigma = bound / 3**0.5
            assert abs(values.mean()) < 5 * sigma / values.size**0.5
            assert abs(values.std() - sigma) < 5 * sigma / values.size**0.5
    assert float(nn.Linear(2, 2, key=KEY).weight[0, 0]) != float(
        nn.Linear(2, 2, key=ft.random.key(1)).weight[0, 0]
    )


def test_parameters_may_be_short_floats() -> None:
    """float16 parameters are drawn in float32 and rounded: the same numbers."""
    short, full = (nn.Linear(5, 3, key=KEY, dtype=d) for d in (xp.float16, xp.float32))
    assert short.weight.dtype == short.bias.dtype == xp.float16
    laws.same(short.weight, xp.astype(full.weight, xp.float16))


def test_initialisers_have_their_moments() -> None:
    """Every random initialiser has the mean and standard deviation that its formula states."""
    shape, fan_in, fan_out = (300, 200, 3), 600, 900
    expected = {
        "uniform": (0.5, 12**-0.5), "normal": (0.0, 1.0),
        "xavier_uniform": (0.0, (2 / (fan_in + fan_out)) ** 0.5),
        "xavier_normal": (0.0, (2 / (fan_in + fan_out)) ** 0.5),
        "kaiming_uniform": (0.0, (2 / fan_in) ** 0.5), "kaiming_normal": (0.0, (2 / fan_in) ** 0.5),
    }  # fmt: skip
    for name, (mean, std) in expected.items():
        x = np.asarray(getattr(nn.init, name)(KEY, shape))
        assert x.dtype == np.float32
        assert abs(x.mean() - mean) < 5 * std / x.size**0.5, name
        assert abs(x.std() - std) < 5 * std / x.size**0.5, name
    out = np.asarray(nn.init.kaiming_normal(KEY, shape, mode="fan_out", nonlinearity="relu"))
    assert abs(out.std() - (2 / fan_out) ** 0.5) < 1e-3
    assert nn.init.constant(KEY, (2,), 3.0).tolist() == [3.0, 3.0]
    assert (nn.init.zeros(KEY, (1,)).item(), nn.init.ones(KEY, (1,)).item()) == (0.0, 1.0)


def test_gains_are_torchs() -> None:
    """calculate_gain gives what torch gives, for every nonlinearity."""
    torch = pytest.importorskip("torch", reason="the numbers are constants of the source")
    for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "selu"):
        assert nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    for slope in (None, 0.2):
        expected = torch.nn.init.calculate_gain("leaky_relu", slope)
        assert nn.init.calculate_gain("leaky_relu", slope) == expected


def test_dropout_draws_per_layer_and_only_in_training() -> None:
    """Each layer of a container has its own key; the same key gives the same output."""
    model = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5))
    x = xp.ones(10_000)
    y = model(x, key=KEY)
    laws.same(model(x, key=KEY), y)
    assert abs(float(xp.mean(xp.astype(y == 4.0, xp.float64))) - 0.25) < 0.03
    laws.same(nn.eval_mode(model)(x, key=KEY), x)
    assert nn.needs_key(model)
    assert not nn.needs_key(nn.eval_mode(model))
    assert nn.Dropout(0.0)(x) is x


def test_sequential_is_a_sequence() -> None:
    """Length, indices, slices and iteration are those of a tuple."""
    parts = (nn.ReLU(), nn.Identity(), nn.Flatten())
    model = nn.Sequential(*parts)
    assert len(model) == 3
    assert list(model) == list(parts)
    assert model[-1] is parts[2]
    assert isinstance(model[1:], nn.Sequential)
    assert list(model[1:]) == list(parts[1:])
    assert nn.Sequential()(xp.ones(2)).tolist() == [1.0, 1.0]
    with pytest.raises(IndexError, match="Sequential: index 3 is out of range for 3 layers"):
        model[3]


IMAGES = xp.ones((8, 3, 32, 32))
ERRORS = [
    (lambda: nn.Linear(64, 2, key=KEY)(xp.ones((8, 32))), ShapeError,
     "Linear: x must have 64 features on its last axis, got (8, 32)"),
    (lambda: nn.Conv2d(4, 2, 3, key=KEY)(IMAGES), ShapeError,
     "Conv2d: x must have 4 channels on axis 1, got (8, 3, 32, 32)"),
    (lambda: nn.Conv1d(4, 2, 3, key=KEY)(IMAGES), ShapeError,
     "Conv1d: x must have shape (N, C, L) or (C, L), got (8, 3, 32, 32)"),
    (lambda: nn.Conv2d(4, 2, 3, groups=4, key=KEY), ArgumentError,
     "Conv2d: groups must divide in_channels=4 and out_channels=2, got 4"),
    (lambda: nn.Conv2d(4, 2, 3, padding_mode="mirror", key=KEY), ArgumentError,
     "Conv2d: padding_mode must be one of ['zeros', 'reflect', 'replicate', 'circular'], "
     "got 'mirror'"),
    (lambda: nn.Conv2d(4, 2, 3, stride=2, padding="same", key=KEY), ArgumentError,
     "Conv2d: padding='same' needs stride 1, got (2, 2)"),
    (lambda: nn.BatchNorm2d(4)(IMAGES), ShapeError,
     "BatchNorm2d: x must have 4 channels on axis 1, got (8, 3, 32, 32)"),
    (lambda: nn.BatchNorm1d(3)(IMAGES), ShapeError,
     "BatchNorm1d: x must have shape (N, C) or (N, C, L), got (8, 3, 32, 32)"),
    (lambda: nn.Dropout(0.5)(IMAGES), MissingKeyError, "Dropout: a key is needed in training"),
    (lambda: nn.Sequential(nn.ReLU(), nn.Dropout(0.5))(IMAGES), MissingKeyError,
     "Dropout: a key is needed in training"),
    (lambda: nn.Dropout(-0.1), ArgumentError, "Dropout: p must be between 0 and 1, got -0.1"),
    (lambda: nn.GELU("quick"), ArgumentError,
     "GELU: approximate must be 'none' or 'tanh', got 'quick'"),
    (lambda: nn.Sequential(xp.sin), UnsupportedOperandError,
     "Sequential: layer 0 must be a Module, got function"),
    (lambda: nn.init.calculate_gain("sine"), ArgumentError,
     "calculate_gain: nonlinearity must be one of ['conv1d', 'conv2d', 'conv3d', 'leaky_relu', "
     "'linear', 'relu', 'selu', 'sigmoid', 'tanh'], got 'sine'"),
    (lambda: nn.init.xavier_normal(KEY, (3,)), ShapeError,
     "init: shape must have at least 2 axes (out, in, *kernel), got (3,)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[e[2][:30] for e in ERRORS])
def test_wrong_arguments_are_named(call: Any, kind: type[Exception], text: str) -> None:
    """Each error names the layer, what was expected and what came."""
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).splitlines()[0] == text
