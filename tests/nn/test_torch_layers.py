"""Every layer against torch's of the same name: constructor, state dict, numbers, transforms."""

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import export, nn
from funct.errors import ArgumentError, MissingKeyError, ShapeError
from tests import laws
from tests.nn.cases import wave

KEY = ft.random.key(0)
D = xp.float64
LABELS, MANY = [1, 0, 3], [[1, 0, -1, 2], [3, -1, 0, 0], [0, 1, 2, 3]]

PADS = ("Zero", "Reflection", "Replication", "Circular")

# layer, shapes or values of its inputs
EVERY: list[tuple[Any, tuple[Any, ...]]] = [
    *[
        (kind(), ((2, 3, 4),))
        for kind in (
            nn.ReLU6, nn.SELU, nn.SiLU, nn.Mish, nn.Hardsigmoid, nn.Hardswish, nn.Sigmoid, nn.Tanh,
            nn.LogSigmoid, nn.Softsign, nn.Tanhshrink, nn.ELU, nn.CELU, nn.LeakyReLU, nn.RReLU,
            nn.Hardtanh, nn.Hardshrink, nn.Softshrink, nn.Softplus, nn.GLU, nn.Softmax2d,
            nn.Dropout1d, nn.AlphaDropout, nn.FeatureAlphaDropout,
        )
    ],
    (nn.ELU(0.7), ((2, 3),)),
    (nn.CELU(0.7), ((2, 3),)),
    (nn.LeakyReLU(0.3), ((2, 3),)),
    (nn.RReLU(0.2, 0.4), ((2, 3),)),
    (nn.Hardtanh(-0.5, 0.3), ((2, 3),)),
    (nn.Threshold(0.2, 7.0), ((2, 3),)),
    (nn.Hardshrink(1.0), ((2, 3),)),
    (nn.Softplus(2.0, 3.0), ((2, 3),)),
    (nn.GLU(0), ((2, 3),)),
    (nn.PReLU(dtype=D), ((2, 3),)),
    (nn.PReLU(3, 0.1, dtype=D), ((2, 3, 4),)),
    (nn.Softmax(1), ((2, 3),)),
    (nn.Softmin(0), ((2, 3),)),
    (nn.LogSoftmax(-1), ((2, 3),)),
    (nn.Dropout2d(), ((2, 3, 4, 2),)),
    (nn.Dropout3d(0.2), ((2, 3, 4, 2, 2),)),
    (nn.Bilinear(3, 2, 4, key=KEY, dtype=D), ((2, 3), (2, 2))),
    (nn.Bilinear(3, 2, 4, False, key=KEY, dtype=D), ((2, 3), (2, 2))),
    (nn.Conv1d(2, 4, 3, padding=2, padding_mode="circular", key=KEY, dtype=D), ((2, 2, 5),)),
    (nn.Conv2d(2, 4, (3, 2), padding=(1, 2), padding_mode="reflect", key=KEY, dtype=D),
     ((2, 2, 5, 4),)),
    (nn.Conv2d(2, 4, (4, 2), padding="same", padding_mode="replicate", key=KEY, dtype=D),
     ((2, 2, 5, 4),)),
    (nn.Conv3d(2, 4, 2, key=KEY, dtype=D), ((2, 2, 3, 4, 3),)),
    (nn.Conv3d(2, 4, 2, (2, 1, 1), 1, 1, 2, False, key=KEY, dtype=D), ((2, 2, 3, 4, 3),)),
    (nn.ConvTranspose1d(2, 4, 3, key=KEY, dtype=D), ((2, 2, 5),)),
    (nn.ConvTranspose1d(2, 4, 3, 2, 1, 1, 2, False, 2, key=KEY, dtype=D), ((2, 2, 5),)),
    (nn.ConvTranspose2d(2, 4, (3, 2), 2, key=KEY, dtype=D), ((3, 2, 3, 4),)),
    (nn.ConvTranspose3d(2, 4, 2, 2, key=KEY, dtype=D), ((1, 2, 2, 2, 3),)),
    (nn.MaxPool3d(2), ((1, 2, 4, 4, 5),)),
    (nn.MaxPool2d(2, return_indices=True), ((1, 2, 4, 5),)),
    (nn.AvgPool3d(2, 1, 1, True, False, 3), ((1, 2, 4, 4, 5),)),
    (nn.LPPool1d(2, 3), ((2, 2, 7),)),
    (nn.LPPool2d(2, 2, 1, True), ((2, 2, 4, 5),)),
    (nn.LPPool3d(2, 2), ((2, 4, 4, 5),)),
    (nn.AdaptiveAvgPool1d(3), ((2, 2, 7),)),
    (nn.AdaptiveAvgPool2d((3, None)), ((2, 2, 5, 4),)),
    (nn.AdaptiveAvgPool3d(2), ((2, 4, 3, 5),)),
    (nn.AdaptiveMaxPool1d(3, True), ((2, 2, 7),)),
    (nn.AdaptiveMaxPool2d([3, 2]), ((2, 2, 5, 4),)),
    (nn.AdaptiveMaxPool3d(2), ((2, 4, 3, 5),)),
    (nn.MaxUnpool1d(2), ((1, 1, 2), [[[1, 2]]])),
    (nn.MaxUnpool2d(2, 2), ((1, 1, 1, 2), [[[[1, 6]]]])),
    (nn.MaxUnpool3d(2), ((1, 1, 1, 1, 2), [[[[[1, 2]]]]])),
    (nn.BatchNorm3d(3, dtype=D), ((2, 3, 2, 2, 2),)),
    (nn.BatchNorm2d(3, bias=False, dtype=D), ((2, 3, 2, 2),)),
    (nn.InstanceNorm1d(3), ((2, 3, 4),)),
    (nn.InstanceNorm1d(3, affine=True, dtype=D), ((2, 3, 4),)),
    (nn.InstanceNorm2d(3, 0.1, 0.2, True, True, dtype=D), ((2, 3, 4, 2),)),
    (nn.InstanceNorm3d(3, affine=True, bias=False, dtype=D), ((2, 3, 4, 2, 2),)),
    (nn.LayerNorm(4, dtype=D), ((2, 3, 4),)),
    (nn.LayerNorm((3, 4), 0.1, bias=False, dtype=D), ((2, 3, 4),)),
    (nn.LayerNorm([4], elementwise_affine=False), ((2, 3, 4),)),
    (nn.RMSNorm(4, dtype=D), ((2, 3, 4),)),
    (nn.RMSNorm((3, 4), 0.1, False), ((2, 3, 4),)),
    (nn.GroupNorm(2, 4, dtype=D), ((2, 4, 3),)),
    (nn.GroupNorm(2, 4, 0.1, False), ((2, 4, 3),)),
    (nn.LocalResponseNorm(2), ((2, 4, 3),)),
    (nn.Embedding(5, 3, key=KEY, dtype=D), (MANY[2:],)),
    (nn.Embedding(5, 3, -1, 1.0, key=KEY, dtype=D), (LABELS,)),
    (nn.EmbeddingBag(5, 3, mode="sum", key=KEY, dtype=D), (LABELS, [0, 2])),
    (nn.EmbeddingBag(5, 3, padding_idx=1, key=KEY, dtype=D), (MANY[2:],)),
    (nn.ConstantPad1d(2, 1.5), ((2, 3, 4),)),
    (nn.ConstantPad2d((1, 0, 2, -1), 1.5), ((2, 3, 4),)),
    (nn.ConstantPad3d(1, 1.5), ((2, 3, 4, 2),)),
    *[(getattr(nn, f"{k}Pad1d")((1, 2)), ((2, 3, 4),)) for k in PADS],
    *[(getattr(nn, f"{k}Pad2d")((1, 2, 0, 1)), ((1, 2, 3, 4),)) for k in PADS],
    *[(getattr(nn, f"{k}Pad3d")(1), ((1, 2, 3, 4, 2),)) for k in PADS],
    (nn.Upsample(scale_factor=2), ((1, 2, 3),)),
    (nn.Upsample((5, 6), mode="bicubic", align_corners=True), ((1, 2, 3, 4),)),
    (nn.UpsamplingNearest2d((5, 6)), ((1, 2, 3, 4),)),
    (nn.UpsamplingBilinear2d(scale_factor=2), ((1, 2, 3, 4),)),
    (nn.PixelShuffle(2), ((1, 8, 3, 4),)),
    (nn.PixelUnshuffle(2), ((1, 2, 4, 4),)),
    (nn.ChannelShuffle(2), ((1, 4, 3),)),
    (nn.Unfold(2, padding=1), ((1, 2, 3, 4),)),
    (nn.Fold((3, 4), 2), ((1, 8, 6),)),
    (nn.Unflatten(1, (2, -1)), ((2, 6, 3),)),
    (nn.CosineSimilarity(), ((2, 3), (2, 3))),
    (nn.PairwiseDistance(1.0, 1e-3, True), ((2, 3), (2, 3))),
    (nn.L1Loss(), ((2, 3), (2, 3))),
    (nn.MSELoss(reduction="none"), ((2, 3), (2, 3))),
    (nn.SmoothL1Loss(beta=0.5), ((2, 3), (2, 3))),
    (nn.HuberLoss("sum", 0.5), ((2, 3), (2, 3))),
    (nn.KLDivLoss(reduction="batchmean", log_target=True), ((2, 3), (2, 3))),
    (nn.PoissonNLLLoss(full=True), ((2, 3), [[1.0, 2.0, 3.0], [0.0, 1.0, 5.0]])),
    (nn.GaussianNLLLoss(full=True), ((2, 2), (2, 2), [[0.5, 1.0], [2.0, 0.1]])),
    (nn.CrossEntropyLoss(), ((3, 4), LABELS)),
    (nn.CrossEntropyLoss(xp.asarray(wave((4,)) ** 2), label_smoothing=0.1), ((3, 4), LABELS)),
    (nn.NLLLoss(xp.asarray(wave((4,)) ** 2), ignore_index=0), ((3, 4), LABELS)),
    (nn.BCELoss(xp.asarray([1.0, 2.0])), ([[0.2, 0.9]], [[0.0, 1.0]])),
    (nn.BCEWithLogitsLoss(pos_weight=xp.asarray([1.0, 2.0])), ((1, 2), [[0.0, 1.0]])),
    (nn.SoftMarginLoss(), ((1, 2), [[-1.0, 1.0]])),
    (nn.MultiLabelSoftMarginLoss(xp.asarray([1.0, 2.0])), ((1, 2), [[0.0, 1.0]])),
    (nn.MultiLabelMarginLoss(), ((3, 4), MANY)),
    (nn.MultiMarginLoss(2, 0.5, xp.asarray(wave((4,)) ** 2)), ((3, 4), LABELS)),
    (nn.HingeEmbeddingLoss(0.5), ((2,), [-1.0, 1.0])),
    (nn.CosineEmbeddingLoss(0.1), ((2, 3), (2, 3), [-1.0, 1.0])),
    (nn.MarginRankingLoss(0.1), ((2,), (2,), [-1.0, 1.0])),
    (nn.TripletMarginLoss(0.5, swap=True), ((2, 3), (2, 3), (2, 3))),
    (nn.TripletMarginWithDistanceLoss(margin=0.5), ((2, 3), (2, 3), (2, 3))),
    (nn.CTCLoss(zero_infinity=True), ((5, 2, 4), [[1, 2], [3, 0]], [5, 4], [2, 1])),
    (nn.MultiheadAttention(6, 2, key=KEY, dtype=D), ((3, 2, 6), (4, 2, 6), (4, 2, 6))),
    (nn.MultiheadAttention(6, 3, 0.1, False, True, True, 4, 5, True, key=KEY, dtype=D),
     ((2, 3, 6), (2, 4, 4), (2, 4, 5))),
]  # fmt: skip
IDS = [f"{type(m).__name__}{i}" for i, (m, _) in enumerate(EVERY)]
each_layer = pytest.mark.parametrize(("layer", "inputs"), EVERY, ids=IDS)


def filled(inputs: tuple[Any, ...]) -> list[Any]:
    """Arrays: waves where shapes are given."""
    return [
        wave(v, 0.7 * i) if isinstance(v, tuple) else np.asarray(v) for i, v in enumerate(inputs)
    ]


def torch_twin(layer: Any) -> Any:
    """torch's layer of the same name and arguments, with the same numbers in it."""
    torch = pytest.importorskip("torch", reason="layers are compositions of functions with goldens")
    kind = getattr(torch.nn, type(layer).__name__)
    given = {
        n: getattr(layer, n) for n in inspect.signature(kind).parameters if n in layer.__dict__
    }
    for n in ("weight", "pos_weight"):
        if given.get(n) is not None:
            given[n] = torch.tensor(np.asarray(given[n]))
    if "bias" in given:
        given["bias"] = layer.bias is not None
    if isinstance(layer, nn.MultiheadAttention):
        given |= {"bias": layer.in_proj_bias is not None, "add_bias_kv": layer.bias_k is not None}
        if layer.k_proj_weight is not None:
            given |= {"kdim": layer.k_proj_weight.shape[1], "vdim": layer.v_proj_weight.shape[1]}
    twin = kind(**given).double()
    state = {k: torch.tensor(np.asarray(v)) for k, v in nn.state_dict(layer).items()}
    twin.load_state_dict(state)
    return twin


@each_layer
def test_layer_computes_what_torch_computes(layer: Any, inputs: tuple[Any, ...]) -> None:
    """In eval mode the same numbers come out, and the state dicts have the same keys and order."""
    twin = torch_twin(layer).eval()
    import torch

    xs = filled(inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = twin(*[torch.tensor(x) for x in xs])
    found = nn.eval_mode(layer)(*[xp.asarray(x) for x in xs])
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = found if isinstance(found, tuple) else (found,)
    for a, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), e.detach().numpy(), rtol=1e-7, atol=1e-9)
    assert list(nn.state_dict(layer)) == list(twin.state_dict())


@pytest.mark.parametrize("kind", sorted({type(m) for m, _ in EVERY}, key=lambda k: k.__name__))
def test_constructor_is_torchs(kind: type) -> None:
    """Arguments have torch's names, order and defaults; ours end in key and dtype."""
    torch = pytest.importorskip("torch", reason="there is nothing to compare with")
    ours = list(inspect.signature(kind).parameters.values())
    theirs = list(inspect.signature(getattr(torch.nn, kind.__name__)).parameters.values())
    expected = [
        (p.name, p.default) for p in theirs if p.name not in {"device", "dtype", "args", "kwargs"}
    ]
    assert [(p.name, p.default) for p in ours if p.name not in {"key", "dtype"}] == expected


@each_layer
def test_layer_obeys_transforms(layer: Any, inputs: tuple[Any, ...]) -> None:
    """jit = eager, vmap = loop over the first input, and gradients of parameters are finite."""
    layer = nn.eval_mode(layer)
    xs = [xp.asarray(x) for x in filled(inputs)]
    out = layer(*xs)
    laws.close(ft.jit(lambda m, *v: m(*v))(layer, *xs), out, 1e-9, 1e-9)
    many = xp.stack([xs[0], xp.flip(xs[0], axis=0), xs[0]])
    axes = (0, *[None] * (len(xs) - 1))
    rows = [layer(many[i], *xs[1:]) for i in range(3)]
    lanes = ft.vmap(layer, in_axes=axes)(many, *xs[1:])
    laws.close(lanes, ft.tree.map(lambda *v: xp.stack(list(v)), *rows), 1e-9, 1e-9)
    params, rest = nn.partition(layer)

    def total(p: Any) -> Any:
        y = nn.combine(p, rest)(*xs)
        return xp.sum((y[0] if isinstance(y, tuple) else y) ** 2)

    for g in ft.tree.leaves(ft.grad(total)(params)):
        assert np.isfinite(np.asarray(g)).all()


@each_layer
def test_layer_exports_with_a_symbolic_batch(layer: Any, inputs: tuple[Any, ...]) -> None:
    """A program captured at one batch size computes the same at another."""
    xs = [xp.asarray(x) for x in filled(inputs)]
    if len({x.shape[0] for x in xs}) > 1 or isinstance(layer, nn.CTCLoss):
        return  # time or bags come first
    layer = nn.eval_mode(layer)
    program = export.export(layer, tuple(xs), dynamic_shapes=tuple([{0: "batch"} for _ in xs]))
    more = [xp.concat([x, x, x], axis=0) for x in xs]
    laws.close(program(*more), layer(*more), 1e-9, 1e-9)


def test_every_layer_of_torch_is_here_or_named() -> None:
    """What torch.nn has and we have not stands in this list, which may only shrink."""
    torch = pytest.importorskip("torch", reason="there is nothing to compare with")
    types = {n: v for n, v in vars(torch.nn).items() if isinstance(v, type)}
    theirs = {n for n, v in types.items() if issubclass(v, torch.nn.Module)}
    lazy = {n for n in theirs if n.startswith("Lazy")}  # shapes come from a first call
    recurrent = {"GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"}
    stacks = {n for n in theirs if n.startswith("Transformer")}
    mutable = {"Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList"}
    others = {
        "AdaptiveLogSoftmaxWithLoss", "CrossMapLRN2d", "DataParallel", "FractionalMaxPool2d",
        "FractionalMaxPool3d", "LinearCrossEntropyLoss", "NLLLoss2d", "SyncBatchNorm",
    }  # fmt: skip
    assert theirs - set(nn.__all__) <= lazy | recurrent | stacks | mutable | others


def test_instance_norm_keeps_torchs_statistics() -> None:
    """In training the new statistics come back, as torch writes them."""
    torch = pytest.importorskip("torch", reason="the formula is that of batch norm per sample")
    layer = nn.InstanceNorm1d(3, track_running_stats=True, dtype=D)
    twin = torch.nn.InstanceNorm1d(3, track_running_stats=True).double()
    for t in range(3):
        x = wave((2, 3, 5), t)
        assert nn.is_stateful(layer)
        y, layer = layer(xp.asarray(x))
        np.testing.assert_allclose(np.asarray(y), twin(torch.tensor(x)).detach(), rtol=1e-10)
    for name, value in twin.state_dict().items():
        np.testing.assert_allclose(np.asarray(nn.state_dict(layer)[name]), value, rtol=1e-12)


def test_transposed_convolution_reaches_a_size() -> None:
    """output_size picks among the sizes that a stride leaves open."""
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2, key=KEY)
    x = xp.ones((1, 1, 4, 4), dtype=xp.float32)
    assert layer(x).shape == (1, 1, 9, 9)
    assert layer(x, output_size=(10, 9)).shape == (1, 1, 10, 9)
    with pytest.raises(ArgumentError, match="output_size must be at least"):
        layer(x, output_size=(11, 9))


def test_initial_values_have_torchs_distribution() -> None:
    """Bounds and moments of what is drawn, and the constants."""
    conv = nn.ConvTranspose2d(6, 64, 5, groups=2, key=KEY)
    bound = (32 * 25) ** -0.5
    for values in (np.asarray(conv.weight), np.asarray(conv.bias)):
        assert np.abs(values).max() <= bound * (1 + 1e-6)
        assert np.abs(values).max() > 0.8 * bound
    table = np.asarray(nn.Embedding(500, 40, 7, key=KEY).weight)
    assert not table[7].any()
    assert abs(table.std() - 1.0) < 0.02
    heads = nn.MultiheadAttention(32, 4, key=KEY)
    edge = (6 / (32 + 96)) ** 0.5
    weight = np.asarray(heads.in_proj_weight)
    assert 0.95 * edge < np.abs(weight).max() <= edge
    assert not np.asarray(heads.in_proj_bias).any()
    assert not np.asarray(heads.out_proj.bias).any()
    assert nn.PReLU().weight.tolist() == [0.25]


def test_layers_that_draw_say_so() -> None:
    """RReLU and attention with dropout need keys in training, and only there."""
    for layer in (nn.RReLU(), nn.Dropout2d(), nn.MultiheadAttention(4, 2, 0.5, key=KEY)):
        assert nn.needs_key(layer)
        assert not nn.needs_key(nn.eval_mode(layer))
    x = xp.ones((3, 2, 4), dtype=xp.float32)
    heads = nn.MultiheadAttention(4, 2, 0.5, key=KEY)
    with pytest.raises(MissingKeyError, match="MultiheadAttention: a key is needed in training"):
        heads(x, x, x)
    y, _ = heads(x, x, x, dropout_key=KEY)
    assert y.shape == (3, 2, 4)
    with pytest.raises(MissingKeyError, match="RReLU: a key is needed"):
        nn.RReLU()(x)
    assert nn.RReLU()(x, key=KEY).shape == x.shape


ERRORS = [
    (lambda: nn.ReLU(inplace=True), ArgumentError,
     "ReLU: inplace must be False, got True: arrays are immutable"),
    (nn.Softmax, ArgumentError, "Softmax: dim must be an axis, got None"),
    (lambda: nn.Hardtanh(min_value=0.0), ArgumentError,
     "Hardtanh: min_value and max_value must be None, got 0.0 and None"),
    (lambda: nn.L1Loss(False), ArgumentError,
     "L1Loss: size_average and reduce must be None, got False and None"),
    (lambda: nn.MSELoss(reduction="avg"), ArgumentError,
     "MSELoss: reduction must be 'none', 'mean' or 'sum', got 'avg'"),
    (lambda: nn.GroupNorm(3, 4), ArgumentError,
     "GroupNorm: num_groups must divide num_channels=4, got 3"),
    (lambda: nn.InstanceNorm1d(3)(xp.ones((2, 4, 5))), ShapeError,
     "InstanceNorm1d: x must have shape (N, 3, L) or (3, L), got (2, 4, 5)"),
    (lambda: nn.ZeroPad2d((1, 2)), ArgumentError,
     "ZeroPad2d: padding must be an int or 4 ints, got (1, 2)"),
    (lambda: nn.Embedding(3, 2, 5, key=KEY), ArgumentError,
     "Embedding: padding_idx must be within 3 rows, got 5"),
    (lambda: nn.MultiheadAttention(6, 4, key=KEY), ArgumentError,
     "MultiheadAttention: num_heads must divide embed_dim=6, got 4"),
    (lambda: nn.ConvTranspose1d(2, 2, 3, padding_mode="circular", key=KEY), ArgumentError,
     "ConvTranspose1d: padding_mode must be 'zeros', got 'circular'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[e[2][:30] for e in ERRORS])
def test_wrong_arguments_are_named(call: Any, kind: type[Exception], text: str) -> None:
    """Each error names the layer, what was expected and what came."""
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).splitlines()[0] == text
