"""Attention and embeddings: masks, shared heads, projections, bags; torch's numbers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct.errors import ArgumentError, ShapeError
from funct.nn import functional as F  # noqa: N812
from tests import laws
from tests.nn.cases import wave
from tests.nn.torch_twin import agree_with_torch

MASK = np.asarray([[True, False, True], [False, False, False]])


@given(data=st.data())
def test_attention_is_torchs(data: st.DataObject) -> None:
    """All masks, scales and groups of heads."""
    kind = data.draw(st.sampled_from(["none", "causal", "boolean", "float"]))
    heads = data.draw(st.sampled_from([1, 2, 4]))
    keywords: dict[str, Any] = {"scale": data.draw(st.sampled_from([None, 0.7]))}
    inputs: dict[str, Any] = {
        "query": (2, 4, 2, 3),
        "key": (2, heads, 3, 3),
        "value": (2, heads, 3, 5),
    }
    keywords["enable_gqa"] = heads != 4
    if kind == "causal":
        keywords["is_causal"] = True
    elif kind != "none":
        inputs["attn_mask"] = MASK if kind == "boolean" else (4, 2, 3)
    agree_with_torch("scaled_dot_product_attention", inputs, **keywords)


def test_a_query_without_keys_gives_nothing() -> None:
    """A row that is masked as a whole is 0 with derivative 0, for both kinds of masks."""
    q, k, v = (xp.asarray(wave((2, 3), t)) for t in (0.0, 0.5, 1.0))
    low = xp.asarray([[0.0, 0.0], [-float("inf"), -float("inf")]])
    for mask in (low == 0.0, low):

        def fun(q: Any, k: Any, v: Any, mask: Any = mask) -> Any:
            return F.scaled_dot_product_attention(q, k, v, mask)

        assert fun(q, k, v)[1].tolist() == [0.0, 0.0, 0.0]
        grads = ft.grad(lambda *a: xp.sum(fun(*a)), (0, 1, 2))(q, k, v)
        assert all(np.isfinite(np.asarray(g)).all() for g in grads)
        assert grads[0][1].tolist() == [0.0, 0.0, 0.0]


def test_dropout_of_weights_keeps_the_mean() -> None:
    """Over many queries the mean output is that without dropout."""
    q = xp.zeros((20_000, 1, 2))
    v = xp.broadcast_to(xp.asarray([[1.0], [3.0]]), (20_000, 2, 1))
    k = xp.zeros((20_000, 2, 2))
    y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.3, dropout_key=ft.random.key(0))
    assert abs(float(xp.mean(y)) - 2.0) < 0.05


@pytest.mark.parametrize("dtype", [xp.float16, xp.bfloat16])
@pytest.mark.parametrize("masked", [False, True])
def test_narrow_dtypes_are_computed_in_float32(dtype: Any, masked: bool) -> None:
    """The result is float32's, rounded once; so are derivatives, but for the rounded result."""
    narrow = [xp.astype(xp.asarray(wave((2, 9, 4), t)), dtype) for t in (0.0, 0.5, 1.0)]
    narrow += [xp.astype(xp.asarray(wave((9, 9), 0.3)), dtype)] if masked else []
    wide = [xp.astype(x, xp.float32) for x in narrow]
    fun = F.scaled_dot_product_attention
    (found, pull), (expected, wide_pull) = ft.vjp(fun, *narrow), ft.vjp(fun, *wide)
    assert found.dtype == dtype
    assert np.array_equal(np.asarray(found), np.asarray(xp.astype(expected, dtype)))
    for x, y in zip(pull(narrow[0]), wide_pull(wide[0]), strict=True):
        assert x.dtype == dtype
        unit = float(xp.finfo(dtype).eps) * float(xp.max(xp.abs(y)))
        assert float(xp.max(xp.abs(xp.astype(x, xp.float32) - y))) <= 4 * unit


def test_the_cotangent_of_a_mask_is_computed_only_where_it_is_wanted() -> None:
    """It is a matrix of all weights; a mask of numbers alone must not bring one about."""
    q, k, v, mask = (xp.asarray(wave((5, 5), t)) for t in (0.0, 0.5, 1.0, 1.5))

    def total(q: Any, mask: Any) -> Any:
        return xp.sum(F.scaled_dot_product_attention(q, k, v, mask) ** 2)

    def seen(argnums: int) -> list[str]:
        names: list[str] = []

        def rule(primitive: Any, operands: Any, params: Any) -> Any:
            names.append(primitive.name)
            return NotImplemented

        ft.intercept(ft.grad(total, argnums), rule)(q, mask)
        return names

    assert ("exp" in seen(0), "exp" in seen(1)) == (False, True)
    compiled = [ft.jit(ft.grad(total, argnums)).show(q, mask, form="graph") for argnums in (0, 1)]
    assert [" exp(" in text for text in compiled] == [False, True]


# several heads ------------------------------------------------------------------------------------

E, H, LANES, L, S = 6, 2, 2, 3, 4


def _weights() -> dict[str, Any]:
    return {
        "embed_dim_to_check": E, "num_heads": H, "in_proj_weight": wave((3 * E, E), 0.2),
        "in_proj_bias": wave((3 * E,), 0.3), "bias_k": None, "bias_v": None,
        "add_zero_attn": False, "dropout_p": 0.0, "out_proj_weight": wave((E, E), 0.4),
        "out_proj_bias": wave((E,), 0.5),
    }  # fmt: skip


FORMS: dict[str, dict[str, Any]] = {
    "default": {},
    "weights of each head": {"average_attn_weights": False},
    "no weights": {"need_weights": False},
    "padding": {"key_padding_mask": np.asarray([[False] * 4, [False, True, True, False]])},
    "mask": {"attn_mask": np.triu(np.ones((L, S), bool), 2)},
    "causal": {
        "attn_mask": np.triu(np.ones((L, S), bool), 1), "is_causal": True, "need_weights": False,
    },
    "masks of each head": {"attn_mask": wave((LANES * H, L, S))},
    "both": {
        "attn_mask": wave((L, S)),
        "key_padding_mask": np.asarray([[0.0] * 4, [0.0, -np.inf, 0.0, 0.0]]),
    },
    "one more key": {
        "bias_k": wave((1, 1, E)), "bias_v": wave((1, 1, E), 1.0), "add_zero_attn": True,
        "key_padding_mask": np.asarray([[False] * 4, [True] * 4]),
    },
    "separate": {
        "use_separate_proj_weight": True, "in_proj_weight": None,
        "q_proj_weight": wave((E, E)), "k_proj_weight": wave((E, E), 0.1),
        "v_proj_weight": wave((E, E), 0.2),
    },
    "no biases": {"in_proj_bias": None, "out_proj_bias": None},
    "fixed": {
        "static_k": wave((LANES * H, S, E // H)), "static_v": wave((LANES * H, S, E // H), 1.0),
    },
}  # fmt: skip


@pytest.mark.parametrize("single", [False, True], ids=["batch", "single"])
@pytest.mark.parametrize("form", FORMS)
def test_multi_head_attention_is_torchs(form: str, single: bool) -> None:
    """Output, weights and the gradient of the query."""
    torch = pytest.importorskip("torch", reason="test_heads_are_attention_by_hand stands in for it")
    lanes = () if single else (LANES,)
    keywords = {**_weights(), **FORMS[form]}
    if single:
        if form in ("masks of each head", "fixed"):
            keywords |= {k: v[:H] for k, v in FORMS[form].items()}
        if "key_padding_mask" in keywords:
            keywords["key_padding_mask"] = keywords["key_padding_mask"][1]
    xs = [wave((n, *lanes, E), p) for n, p in ((L, 0.0), (S, 0.6), (S, 1.2))]

    def made(make: Any) -> dict[str, Any]:
        return {k: make(v) if isinstance(v, np.ndarray) else v for k, v in keywords.items()}

    q = torch.tensor(xs[0], requires_grad=True)
    y, w = torch.nn.functional.multi_head_attention_forward(
        q, torch.tensor(xs[1]), torch.tensor(xs[2]), **made(torch.tensor)
    )
    (y * torch.tensor(wave(tuple(y.shape)))).sum().backward()

    def total(v: Any) -> Any:
        rest = [xp.asarray(x) for x in xs[1:]]
        y, w = F.multi_head_attention_forward(v, *rest, **made(xp.asarray))
        return xp.sum(y * xp.asarray(wave(y.shape))), (y, w)

    g, (found, weights) = ft.grad(total, has_aux=True)(xp.asarray(xs[0]))
    np.testing.assert_allclose(np.asarray(found), y.detach(), rtol=1e-9, atol=1e-12)
    cancelled = max(1e-12, 1e-13 * float(q.grad.abs().max()))  # what terms of that size leave
    np.testing.assert_allclose(np.asarray(g), q.grad, rtol=1e-9, atol=cancelled)
    if w is None:
        assert weights is None
    else:
        np.testing.assert_allclose(np.asarray(weights), w.detach(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_the_output_is_one_with_weights_and_without(form: str) -> None:
    """Without them no matrix of weights is held."""
    xs = [xp.asarray(wave((n, LANES, E), p)) for n, p in ((L, 0.0), (S, 0.6), (S, 1.2))]
    given = {
        k: xp.asarray(v) if isinstance(v, np.ndarray) else v
        for k, v in {**_weights(), **FORMS[form]}.items()
    }
    with_, without = (
        F.multi_head_attention_forward(*xs, **{**given, "need_weights": needed})
        for needed in (True, False)
    )
    assert without[1] is None
    laws.close(with_[0], without[0])


def test_heads_are_attention_by_hand() -> None:
    """With identity projections, each half of the features attends for itself."""
    x = xp.asarray(wave((S, LANES, E)))
    eye = xp.eye(E)
    y, _ = F.multi_head_attention_forward(
        x, x, x, E, H, xp.concat([eye, eye, eye]), None, None, None, False, 0.0, eye, None
    )
    rows = xp.permute_dims(xp.reshape(x, (S, LANES, H, E // H)), (1, 2, 0, 3))
    each = F.scaled_dot_product_attention(rows, rows, rows)
    laws.close(y, xp.reshape(xp.permute_dims(each, (2, 0, 1, 3)), (S, LANES, E)))


# embeddings ---------------------------------------------------------------------------------------


@given(data=st.data())
def test_embedding_bag_is_torchs(data: st.DataObject) -> None:
    """Bags of any length, also empty ones and ones of padding alone."""
    mode = data.draw(st.sampled_from(["sum", "mean", "max"]))
    n = data.draw(st.integers(1, 6))
    index = np.asarray(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=3)))
    keywords: dict[str, Any] = {
        "mode": mode,
        "padding_idx": data.draw(st.sampled_from([None, 1, -1])),
    }
    if mode == "max":  # equal maxima share the derivative here
        index = np.unique(index)
        cuts = [c for c in cuts if c <= len(index)]
    inputs: dict[str, Any] = {"input": index, "weight": (4, 3), "offsets": np.asarray([0, *cuts])}
    if data.draw(st.booleans()):
        inputs["offsets"] = np.asarray([0, *cuts, len(index)])
        keywords["include_last_offset"] = True
    if mode == "sum" and data.draw(st.booleans()):
        inputs["per_sample_weights"] = (len(index),)
    agree_with_torch("embedding_bag", inputs, **keywords)


def test_bags_obey_transforms(rng: np.random.Generator) -> None:
    """Second derivatives, vmap and jit of every mode, with equal bags and with offsets."""
    table, index = xp.asarray(wave((5, 2))), xp.asarray([4, 0, 2, 1])
    for mode in ("sum", "mean", "max"):
        for i, cuts in ((index, xp.asarray([0, 1, 1])), (xp.reshape(index, (2, 2)), None)):

            def fun(w: Any, i: Any = i, cuts: Any = cuts, mode: str = mode) -> Any:
                return F.embedding_bag(i, w, cuts, mode=mode)

            laws.check_derivatives(fun, [table], rng, order=2)
            laws.check_batch(fun, [table], rng)
            laws.check_jit(fun, [table])


def test_max_norm_scales_rows_without_writing() -> None:
    """Long rows have length max_norm in the result, short ones stay, and the table is untouched."""
    table = xp.asarray([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    y = F.embedding(xp.asarray([0, 1, 2]), table, max_norm=1.0)
    np.testing.assert_allclose(np.asarray(y), [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]], rtol=1e-6)
    assert table[0].tolist() == [3.0, 4.0]
    g = ft.grad(lambda w: xp.sum(F.embedding(xp.asarray([0, 2]), w, max_norm=1.0)))(table)
    assert np.isfinite(np.asarray(g)).all()


X, T = xp.ones((1, 2, 3)), xp.ones((4, 3))
I = xp.asarray([0, 1])
ERRORS = [
    (lambda: F.scaled_dot_product_attention(X, X, X, T, is_causal=True), ArgumentError,
     "scaled_dot_product_attention: attn_mask must be None with is_causal=True, got an array"),
    (lambda: F.scaled_dot_product_attention(X, xp.ones((1, 2, 4)), X), ShapeError,
     "scaled_dot_product_attention: query and key must agree in the last axis"),
    (lambda: F.embedding(I, T, sparse=True), ArgumentError, "embedding: sparse must be False: "),
    (lambda: F.embedding(I, T, scale_grad_by_freq=True), ArgumentError,
     "embedding: scale_grad_by_freq must be False: "),
    (lambda: F.embedding(I, T, 4), ArgumentError,
     "embedding: padding_idx must be within 4 rows, got 4"),
    (lambda: F.embedding(I, T[0]), ShapeError,
     "embedding: weight must have shape (V, D), got (3,)"),
    (lambda: F.embedding_bag(I, T), ShapeError,
     "embedding_bag: input must be (B, L), or (n,) with offsets, got (2,)"),
    (lambda: F.embedding_bag(I, T, I, mode="median"), ArgumentError,
     "embedding_bag: mode must be 'sum', 'mean' or 'max', got 'median'"),
    (lambda: F.embedding_bag(I, T, I, per_sample_weights=xp.ones(2)), ArgumentError,
     "embedding_bag: per_sample_weights need mode 'sum', got 'mean'"),
    (lambda: F.bilinear(X, X, T), ShapeError,
     "bilinear: weight must have shape (O, I1, I2), got (4, 3)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[e[2][:40] for e in ERRORS])
def test_wrong_arguments_are_named(call: Any, kind: type[Exception], text: str) -> None:
    """Each error names the function, what was expected and what came."""
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("keys", [0, 1, 5])
@pytest.mark.parametrize("queries", [0, 1, 3, 9])
def test_any_lengths(queries, keys, size, causal):
    """Few queries and many, more than keys and fewer; nothing to look at gives 0."""
    rng = np.random.default_rng(queries + 10 * keys)
    shapes = (2, queries, size), (2, keys, size), (2, keys, 4)
    q, k, v = (rng.standard_normal(s).astype("f4") for s in shapes)
    scores = q @ k.mT * size**-0.5
    seen = np.tri(queries, keys, dtype=bool) if causal else np.ones((queries, keys), bool)
    weights = np.where(seen, np.exp(scores), 0)
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-30)
    given = [xp.asarray(a) for a in (q, k, v)]
    found = F.scaled_dot_product_attention(*given, is_causal=causal)
    np.testing.assert_allclose(np.asarray(found), weights @ v, rtol=1e-5, atol=1e-6)
    slopes = ft.grad(
        lambda *a: xp.sum(F.scaled_dot_product_attention(*a, is_causal=causal)), argnums=(0, 1, 2)
    )(*given)
    assert [s.shape for s in slopes] == list(shapes)
    expected = np.broadcast_to(weights.sum(-2)[..., None], v.shape)
    np.testing.assert_allclose(np.asarray(slopes[2]), expected, rtol=1e-5, atol=1e-6)
