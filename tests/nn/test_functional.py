"""nn.functional: torch's values and gradients, the laws of transforms, errors by their text."""

import ast
import functools
import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import export
from funct.errors import (
    ArgumentError,
    DTypeError,
    IndexOutOfBoundsError,
    MissingKeyError,
    ShapeError,
)
from funct.nn import functional as F  # noqa: N812
from tests import laws
from tests.nn import cases
from tests.nn.cases import Case, wave
from tests.nn.tables import BY_ID, CASES

each_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
GOLDEN = cases.stored()


def agree(case: Case, found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Same names, shapes and numbers."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].shape == np.shape(value), name
        np.testing.assert_allclose(
            found[name], value, rtol=case.rtol, atol=1e-11, err_msg=f"{case.id} {name}"
        )


@each_case
def test_values_and_gradients_are_those_that_torch_gave(case: Case) -> None:
    """Output and gradients agree with the stored ones."""
    agree(case, cases.by_funct(case), GOLDEN[case.id])


def test_values_and_gradients_are_those_of_torch() -> None:
    """The stored numbers are what the torch that is installed says."""
    pytest.importorskip("torch", reason="the stored numbers stand in for it")
    for case in CASES:
        agree(case, cases.by_torch(case), GOLDEN[case.id])


@each_case
def test_second_derivatives_are_those_of_torch(case: Case) -> None:
    """Where torch differentiates twice, we agree; elsewhere we differentiate all the same."""
    pytest.importorskip("torch", reason="finite differences of the gradients stand in for it")
    if not case.varying():
        return
    found = cases.second_by_funct(case)
    assert all(np.isfinite(v).all() for v in found.values())
    try:
        expected = cases.by_torch(case, second=True)
    except RuntimeError as error:
        if "not implemented" in str(error) or "not differentiable" in str(error):
            return
        raise
    agree(case, found, expected)


def test_no_case_is_forgotten() -> None:
    """The golden file holds just the cases, and the cases call every function of its arguments."""
    assert set(GOLDEN) == set(BY_ID)
    assert len(BY_ID) == len(CASES)
    by_hand = {"batch_norm", "ctc_loss", "flatten", "multi_head_attention_forward"}
    assert set(F.__all__) - {c.name for c in CASES} == by_hand | DRAWING


# what draws from a key
DRAWING = {
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
    "fractional_max_pool2d", "fractional_max_pool3d", "gumbel_softmax",
}  # fmt: skip


@pytest.mark.parametrize("name", F.__all__)
def test_signature_is_torchs(name: str) -> None:
    """Names, order and defaults are torch's; what is ours is keyword-only and comes last."""
    torch = pytest.importorskip("torch", reason="there is nothing to compare with")
    ours = list(inspect.signature(getattr(F, name)).parameters.values())
    twin = getattr(torch.nn.functional, name, None) or getattr(torch, name)
    twin = getattr(torch.nn.functional, f"{name}_with_indices", twin)
    theirs = described(twin, name)
    own = {"key", "dropout_key"} & {p.name for p in ours} - {n for n, _ in theirs}
    assert all(p.kind is p.KEYWORD_ONLY for p in ours if p.name in own)
    absent = {"_stacklevel", "out"} - {p.name for p in ours}
    mine = [(p.name, p.default) for p in ours if p.name not in own]
    if "softmax" in name or name == "softmin":  # the default of dim is retired there
        mine = [(n, None if n == "dim" and d is inspect.Parameter.empty else d) for n, d in mine]
    assert mine == [(n, d) for n, d in theirs if n not in absent]


def described(twin: Any, name: str) -> list[tuple[str, Any]]:
    """(name, default) of torch's parameters; from the first line of the docstring of built-ins."""
    try:
        found = inspect.signature(twin).parameters.values()
        return [(p.name, p.default) for p in found]
    except ValueError:
        text = " ".join(twin.__doc__.split())
    if name == "flatten":
        text = "flatten(input, start_dim=0, end_dim=-1) -> Tensor"
    head = text[: text.index(")")].replace("approximate = 'none'", "approximate='none'")
    head = head[head.index("(") + 1 :].replace("*, ", "").replace("tensor,", "input,")
    parts = [part.strip().split("=") for part in head.split(",") if "." not in part or "=" in part]
    empty = inspect.Parameter.empty
    return [(n, ast.literal_eval(rest[0]) if rest else empty) for n, *rest in parts]


ONE_OF_EACH = list({c.name: c for c in reversed(CASES)}.values())


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=lambda c: c.name)
def test_transforms_agree_with_loops_and_eager(case: Case, rng: np.random.Generator) -> None:
    """Shapes, jvp, vjp, vmap and jit of every function obey the laws."""
    names = case.varying()
    if not names:
        return
    fixed = {k: xp.asarray(v) for k, v in case.arrays().items()}

    def fun(*xs: Any) -> Any:
        given = {**fixed, **dict(zip(names, xs, strict=True))}
        return getattr(F, case.name)(**given, **case.keywords)

    args = [fixed[k] for k in names]
    laws.check_aval(fun, args)
    laws.check_derivatives(fun, args, rng, order=1)
    laws.check_jit(fun, args)
    laws.check_batch(fun, args, rng)


def torch_like(fun: str, x: Any, *args: Any, **keywords: Any) -> Any:
    """torch's answer as an ndarray, or its error."""
    torch = pytest.importorskip("torch", reason="the golden cases stand in for it")
    tensors = [torch.tensor(np.asarray(a)) if hasattr(a, "shape") else a for a in (x, *args)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(torch.nn.functional, fun)(*tensors, **keywords).numpy()


sizes = st.integers(1, 3)


@given(data=st.data())
def test_conv2d_is_torchs_for_all_windows(data: st.DataObject) -> None:
    """Stride, padding, dilation and groups mean what they mean in torch."""
    pair = st.tuples(sizes, sizes)
    groups = data.draw(sizes)
    kernel, stride, dilation = data.draw(pair), data.draw(pair), data.draw(pair)
    padding = data.draw(st.one_of(st.tuples(st.integers(0, 3), sizes), st.just("valid")))
    x = wave((2, 2 * groups, 8, 9))
    w, b = wave((groups * data.draw(sizes), 2, *kernel), 0.5), None
    keywords = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = F.conv2d(xp.asarray(x), xp.asarray(w), b, **keywords)
    expected = torch_like("conv2d", x, w, b, **keywords)
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-10, atol=1e-11)


@given(data=st.data())
def test_pools_are_torchs_for_all_windows(data: st.DataObject) -> None:
    """Kernel, stride, padding, dilation and ceil_mode mean what they mean in torch."""
    pair = st.tuples(sizes, sizes)
    kernel, stride = data.draw(pair), data.draw(st.one_of(st.none(), pair))
    padding = tuple([data.draw(st.integers(0, k // 2)) for k in kernel])
    shape = (1, 2, data.draw(st.integers(3, 9)), data.draw(st.integers(3, 9)))
    keywords = {"stride": stride, "padding": padding, "ceil_mode": data.draw(st.booleans())}
    name = data.draw(st.sampled_from(["max_pool2d", "avg_pool2d"]))
    if name == "max_pool2d":
        keywords["dilation"] = data.draw(pair)
        span = [d * (k - 1) + 1 for d, k in zip(keywords["dilation"], kernel, strict=True)]
        assume(all(n + 2 * p >= s for n, p, s in zip(shape[2:], padding, span, strict=True)))
    else:
        keywords["count_include_pad"] = data.draw(st.booleans())
        keywords["divisor_override"] = data.draw(st.one_of(st.none(), st.integers(1, 5)))
    x = wave(shape)
    y = getattr(F, name)(xp.asarray(x), kernel, **keywords)
    expected = torch_like(name, x, kernel, **keywords)
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-12, atol=1e-13)


def test_softmax_neither_overflows_nor_loses_its_derivative() -> None:
    """Large logits give the exact limit, and a finite gradient."""
    x = xp.asarray([1000.0, 0.0, -1000.0])
    assert F.softmax(x, 0).tolist() == [1.0, 0.0, 0.0]
    assert F.log_softmax(x, 0).tolist() == [0.0, -1000.0, -2000.0]
    g = ft.grad(lambda v: F.cross_entropy(v, xp.asarray(2)))(x)
    assert g.tolist() == [1.0, 0.0, -1.0]


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("dim", [0, -1])
def test_softmax_of_nothing_is_nothing(name: str, shape: tuple[int, ...], dim: int) -> None:
    """As in torch; also where no number stands along the axis."""
    x = xp.zeros(shape)
    f = functools.partial(getattr(F, name), dim=dim)
    slope = ft.grad(lambda v: xp.sum(f(v)))
    for g in (f, slope, ft.jit(f), ft.jit(slope)):
        assert g(x).shape == shape
    assert ft.vmap(f)(x[None]).shape == (1, *shape)


def test_batch_norm_returns_what_torch_writes() -> None:
    """In training the new statistics come back, the variance unbiased, without derivative."""
    x = xp.asarray(wave((4, 2, 3)))
    y, mean, var = F.batch_norm(x, xp.zeros(2), xp.ones(2), training=True, momentum=0.25)
    raw = np.asarray(x).transpose(1, 0, 2).reshape(2, -1)
    np.testing.assert_allclose(np.asarray(mean), 0.25 * raw.mean(1), rtol=1e-13)
    np.testing.assert_allclose(np.asarray(var), 0.75 + 0.25 * raw.var(1, ddof=1), rtol=1e-13)
    flat = np.asarray(y).transpose(1, 0, 2).reshape(2, -1)
    np.testing.assert_allclose(flat.mean(1), 0.0, atol=1e-13)
    np.testing.assert_allclose(flat.var(1), raw.var(1) / (raw.var(1) + 1e-5), rtol=1e-12)
    frozen = ft.grad(lambda v: xp.sum(F.batch_norm(v, xp.zeros(2), xp.ones(2), training=True)[1]))
    assert float(xp.max(xp.abs(frozen(x)))) == 0.0


def test_batch_norm_obeys_the_laws(rng: np.random.Generator) -> None:
    """Training and inference are differentiable and batch; training agrees with torch."""
    x = xp.asarray(wave((4, 2, 3)))
    m, w, b = (xp.asarray(wave((2,), p)) for p in (0.1, 0.2, 0.3))
    v = xp.asarray([0.5, 2.0])
    for training in (False, True):

        def fun(x: Any, w: Any, b: Any, training: bool = training) -> Any:
            out = F.batch_norm(x, m, v, w, b, training)
            return out[0] if training else out

        laws.check_derivatives(fun, [x, w, b], rng, order=2)
        laws.check_batch(fun, [x, w, b], rng)
        laws.check_jit(fun, [x, w, b])
        expected = torch_like("batch_norm", x, m, v, w, b, training)
        np.testing.assert_allclose(np.asarray(fun(x, w, b)), expected, rtol=1e-12)


def test_training_statistics_follow_a_symbolic_batch() -> None:
    """A captured training step counts the batch that it gets, not the one it was captured with."""

    def fun(x: Any) -> Any:
        return F.batch_norm(x, xp.zeros(2), xp.ones(2), training=True)

    program = export.export(fun, (xp.asarray(wave((4, 2))),), dynamic_shapes=({0: "batch"},))
    x = xp.asarray(wave((7, 2), 0.4))
    laws.close(program(x), fun(x), 1e-12, 1e-12)


def test_dropout_keeps_the_mean_and_the_share() -> None:
    """A share p of the elements is 0, the others grow, and the same key draws the same."""
    key = ft.random.key(3)
    y = F.dropout(xp.ones(100_000), 0.3, key=key)
    zeros = float(xp.mean(xp.astype(y == 0, xp.float64)))
    assert abs(zeros - 0.3) < 5 * (0.3 * 0.7 / 1e5) ** 0.5
    assert set(np.unique(np.asarray(y))) == {0.0, 1.0 / 0.7}
    laws.same(F.dropout(xp.ones(100_000), 0.3, key=key), y)
    assert F.dropout(xp.ones(3), 1.0, key=key).tolist() == [0.0, 0.0, 0.0]
    assert F.dropout(xp.ones(3), 0.5, training=False).tolist() == [1.0, 1.0, 1.0]
    assert F.dropout(xp.ones(3, dtype=xp.float32), 0.5, key=key).dtype == xp.float32
    keys = ft.random.split(key, 4)
    rows = ft.vmap(lambda k: F.dropout(xp.ones(9), 0.5, key=k))(keys)
    for k, row in zip(keys, rows, strict=True):
        laws.same(F.dropout(xp.ones(9), 0.5, key=k), row)


def test_dtype_of_the_input_is_kept() -> None:
    """float32 in, float32 out: no Python number widens anything."""
    x = xp.asarray(wave((2, 2, 4, 4)), dtype=xp.float32)
    labels = xp.asarray([[[0, 1, 1, 0]] * 4] * 2)
    outs = [
        F.relu(x), F.gelu(x), F.gelu(x, "tanh"), F.softmax(x, 1), F.log_softmax(x, 1),
        F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.avg_pool2d(x, 2, divisor_override=3),
        F.cross_entropy(x, labels, label_smoothing=0.1), F.mse_loss(x, x + 1.0),
        *F.batch_norm(x, x[0, :, 0, 0], x[0, :, 0, 0], training=True),
        F.batch_norm(x, x[0, :, 0, 0], x[0, :, 0, 0] + 3.0),
    ]  # fmt: skip
    assert all(o.dtype == xp.float32 for o in outs)


X = xp.ones((2, 3, 8, 8))
ERRORS = [
    (lambda: F.linear(xp.ones((2, 3)), xp.ones((4, 5))), ShapeError,
     "linear: input must have 5 features on its last axis, got (2, 3)"),
    (lambda: F.conv2d(X, xp.ones((4, 2, 3, 3))), ShapeError,
     "conv2d: input must have 2 channels, got (2, 3, 8, 8)"),
    (lambda: F.conv2d(xp.ones((3, 8)), xp.ones((4, 3, 3, 3))), ShapeError,
     "conv2d: input must have shape (N, C, H, W) or (C, H, W), got (3, 8)"),
    (lambda: F.conv1d(xp.ones((1, 3, 8)), xp.ones((4, 3))), ShapeError,
     "conv1d: weight must have 3 axes, got (4, 3)"),
    (lambda: F.conv2d(X, xp.ones((4, 3, 3, 3)), stride=2, padding="same"), ArgumentError,
     "conv2d: padding='same' needs stride 1, got (2, 2)"),
    (lambda: F.conv2d(X, xp.ones((4, 3, 3, 3)), padding="full"), ArgumentError,
     "conv2d: padding must be ints, 'same' or 'valid', got 'full'"),
    (lambda: F.conv2d(X, xp.ones((4, 3, 3, 3)), stride=0), ArgumentError,
     "conv2d: stride must be an int or 2 ints >= 1, got 0"),
    (lambda: F.conv2d(X, xp.ones((4, 1, 3, 3)), groups=3), ArgumentError,
     "conv2d: groups must divide 4 output channels, got 3"),
    (lambda: F.max_pool2d(X, 2, padding=2), ArgumentError,
     "max_pool2d: padding must be at most half the kernel (2, 2), got 2"),
    (lambda: F.avg_pool2d(X, (2, 2, 2)), ArgumentError,
     "avg_pool2d: kernel_size must be an int or 2 ints >= 1, got (2, 2, 2)"),
    (lambda: F.avg_pool2d(X, 2, divisor_override=0), ArgumentError,
     "avg_pool2d: divisor_override must not be 0"),
    (lambda: F.gelu(X, "fast"), ArgumentError,
     "gelu: approximate must be 'none' or 'tanh', got 'fast'"),
    (lambda: F.softmax(X, 4), ShapeError,
     "softmax: axis 4 is out of range for an array of rank 4"),
    (lambda: F.flatten(X, 2, 1), ShapeError,
     "flatten: start_dim must not stand behind end_dim, got 2, 1"),
    (lambda: F.dropout(X, 0.5), MissingKeyError, "dropout: a key is needed in training"),
    (lambda: F.dropout(X, 1.5), ArgumentError, "dropout: p must be between 0 and 1, got 1.5"),
    (lambda: F.batch_norm(X, None, None), ShapeError,
     "batch_norm: running_mean and running_var are needed outside of training"),
    (lambda: F.batch_norm(xp.ones((1, 3)), None, None, training=True), ShapeError,
     "batch_norm: training needs more than one value per channel, got (1, 3)"),
    (lambda: F.mse_loss(xp.ones((2, 1)), xp.ones(2)), ShapeError,
     "mse_loss: input and target must have one shape, got (2, 1) and (2,)"),
    (lambda: F.cross_entropy(xp.ones((2, 3)), xp.asarray([0, 1, 2])), ShapeError,
     "cross_entropy: target must have shape (2,) for input (2, 3), got (3,)"),
    (lambda: F.cross_entropy(xp.ones((2, 3)), xp.ones((2, 2))), ShapeError,
     "cross_entropy: probabilities must have input's shape (2, 3), got (2, 2)"),
    (lambda: F.cross_entropy(xp.asarray([1, 2]), xp.asarray(0)), DTypeError,
     "cross_entropy: input must be floating, got int64"),
    (lambda: F.cross_entropy(xp.ones((1, 3)), xp.asarray([0]), reduction="avg"), ArgumentError,
     "cross_entropy: reduction must be 'none', 'mean' or 'sum', got 'avg'"),
    (lambda: F.one_hot(xp.asarray([0]), 0), ArgumentError,
     "one_hot: num_classes must be -1 or positive, got 0"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[e[2][:30] for e in ERRORS])
def test_wrong_arguments_are_named(call: Any, kind: type[Exception], text: str) -> None:
    """Each error names the function, what was expected and what came."""
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).splitlines()[0] == text


@pytest.mark.parametrize("label", [3, -1])
def test_a_label_outside_the_classes_raises(label: int) -> None:
    """A class index below 0 or beyond the last class is an error, not another class."""
    with pytest.raises(IndexOutOfBoundsError):
        F.cross_entropy(xp.ones((1, 3)), xp.asarray([label]))


@pytest.mark.parametrize("way", [lambda f: f, ft.jit, ft.vmap, lambda f: lambda x: ft.vjp(f, x)])
@pytest.mark.parametrize("size", [(2, 8), (8, 1), (2, 2), (0, 0)])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_kernel_larger_than_the_image_raises(way: Any, size: Any, stride: int) -> None:
    """By one element as by more, whatever the stride: no empty result."""
    x, w = xp.ones((2, 1, 3, *size)), xp.ones((4, 3, 3, 3))

    def applied(x: Any) -> Any:
        return F.conv2d(x, w, stride=stride)

    with pytest.raises(ShapeError, match=r"conv2d: kernel \(3, 3\) .* is larger than the padded"):
        way(applied)(x if way is ft.vmap else x[0])
    assert F.conv2d(x[0], w, stride=stride, padding=2).shape[:2] == (1, 4)


@pytest.mark.parametrize(("name", "given", "shape"), [
    ("group_norm", (2,), (4, 6, 6)), ("instance_norm", (), (4, 6, 6)),
    ("layer_norm", ((6,),), (4, 6, 6)), ("rms_norm", ((6,),), (4, 6, 6)),
    ("local_response_norm", (3,), (4, 6, 6)), ("softmax", (1,), (4, 6, 6)),
    ("pixel_shuffle", (2,), (1, 12, 12)), ("channel_shuffle", (2,), (4, 6, 6)),
    ("unfold", (3,), (36, 16)), ("interpolate", (None, 2), (4, 12, 12)),
    ("max_pool2d", (2,), (4, 3, 3)), ("avg_pool2d", (2,), (4, 3, 3)),
    ("adaptive_avg_pool2d", (4,), (4, 4, 4)), ("glu", (1,), (2, 6, 6)),
])  # fmt: skip
def test_no_samples_give_none(name: str, given: Any, shape: tuple[int, ...]) -> None:
    """What is done to each sample is done to none of them too, and so are gradients."""
    x = xp.zeros((0, 4, 6, 6))
    function = getattr(F, name)

    def applied(x: Any) -> Any:
        return function(x, *given)

    y, pull = ft.vjp(applied, x)
    assert y.shape == (0, *shape)
    assert pull(y)[0].shape == x.shape
    assert ft.jit(applied)(x).shape == y.shape


LOSING = ("grid_sample", "multilabel_margin_loss")  # a place of NaN is -1, as torch has it


@pytest.mark.parametrize("case", [c for c in CASES if c.name not in LOSING], ids=lambda c: c.id)
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit])
def test_nan_is_not_lost(case: Case, wrap: Any) -> None:
    """An input of NaN alone gives a result that tells of it, as in torch."""
    arrays = case.arrays()
    fun = wrap(functools.partial(getattr(F, case.name), **case.keywords))
    for name in case.varying():
        given = {k: np.full_like(v, np.nan) if k == name else v for k, v in arrays.items()}
        with np.errstate(invalid="ignore"):
            out = fun(**{k: xp.asarray(v) for k, v in given.items()})
        out = out[0] if isinstance(out, tuple) else out
        assert np.isnan(np.asarray(out)).any(), name
