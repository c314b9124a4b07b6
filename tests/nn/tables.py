"""The cases: calls of every function of nn.functional that is a function of its arguments alone."""

from __future__ import annotations

import json
from typing import Any

from tests.nn.cases import GOLDEN, Case, by_torch


def _conv(name: str, label: str, x: Any, w: Any, **keywords: Any) -> Case:
    return Case(name, label, {"input": x, "weight": w, "bias": (w[0],)}, keywords)


def _transpose(name: str, label: str, x: Any, w: Any, groups: int = 1, **keywords: Any) -> Case:
    inputs = {"input": x, "weight": w, "bias": (w[1] * groups,)}
    return Case(name, label, inputs, {"groups": groups, **keywords})


def _on(name: str, label: str, x: Any, **keywords: Any) -> Case:
    return Case(name, label, {"input": x}, keywords)


def _loss(name: str, label: str, x: Any, target: Any, weight: Any = None, **keywords: Any) -> Case:
    inputs = {"input": x, "target": target} | ({} if weight is None else {"weight": weight})
    return Case(name, label, inputs, keywords, fixed=("target", "weight"))


def _of(name: str, label: str, inputs: dict[str, Any], domains: Any = None, **kw: Any) -> Case:
    fixed = tuple([k for k in ("target", "weight") if k in inputs and "loss" in name])
    return Case(name, label, inputs, kw, domains or {}, fixed)


_W3, _W4 = [0.5, 1.0, 2.0], [0.5, 1.0, 2.0, 0.25]
_W23 = [[1.0, 2.0, 0.5], [0.1, 1.0, 3.0]]
_GRID = [[1, -100], [2, 0]]  # one label of four is ignored
_MIXED = [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]  # probabilities
_CEIL: dict[str, Any] = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}
_SKEW: dict[str, Any] = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}
_WIDE: dict[str, Any] = {"stride": (1, 2), "padding": (1, 1), "dilation": (2, 1)}
_OUT: dict[str, Any] = {"stride": (2, 3), "padding": (1, 0), "output_padding": (1, 2)}

_CONVOLUTIONS = [
    _conv("conv1d", "default", (2, 2, 6), (3, 2, 3)),
    _conv("conv1d", "groups", (1, 4, 7), (4, 2, 2), stride=2, padding=1, dilation=3, groups=2),
    _conv("conv1d", "same", (1, 1, 5), (2, 1, 4), padding="same"),
    _conv("conv1d", "unbatched", (2, 5), (2, 2, 3), padding=1),
    _conv("conv2d", "default", (1, 2, 4, 5), (2, 2, 3, 3)),
    _conv("conv2d", "skew", (1, 2, 6, 5), (2, 1, 3, 2), **_SKEW),
    _conv("conv2d", "same", (1, 1, 4, 4), (1, 1, 3, 2), padding="same", dilation=2),
    _conv("conv2d", "valid", (1, 1, 4, 4), (1, 1, 3, 2), padding="valid"),
    _conv("conv2d", "unbatched", (1, 4, 4), (2, 1, 2, 2)),
    _conv("conv3d", "default", (1, 2, 3, 4, 3), (2, 2, 2, 3, 2)),
    _conv("conv3d", "skew", (1, 2, 4, 4, 4), (2, 1, 2, 2, 1), stride=(2, 1, 2), groups=2),
    _transpose("conv_transpose1d", "default", (2, 2, 4), (2, 3, 3)),
    _transpose("conv_transpose1d", "groups", (1, 4, 3), (4, 1, 2), 2, stride=3, output_padding=2),
    _transpose("conv_transpose1d", "unbatched", (2, 3), (2, 1, 3), padding=1, dilation=2),
    _transpose("conv_transpose2d", "default", (1, 2, 3, 2), (2, 2, 2, 3)),
    _transpose("conv_transpose2d", "skew", (1, 2, 3, 2), (2, 1, 3, 2), 2, **_OUT),
    _transpose("conv_transpose3d", "default", (1, 2, 2, 2, 2), (2, 1, 2, 1, 2), stride=2),
]

_POOLS = [
    _on("max_pool1d", "default", (1, 2, 7), kernel_size=3),
    _on("max_pool1d", "ceil", (1, 2, 8), kernel_size=3, stride=3, padding=1, ceil_mode=True),
    _on("max_pool1d", "indices", (2, 2, 8), kernel_size=3, stride=2, return_indices=True),
    _on("max_pool2d", "default", (1, 2, 5, 4), kernel_size=2),
    _on("max_pool2d", "wide", (2, 6, 7), kernel_size=(2, 3), **_WIDE),
    _on("max_pool2d", "ceil", (1, 1, 5, 6), kernel_size=2, stride=3, padding=1, ceil_mode=True),
    _on("max_pool2d", "indices", (2, 6, 7), kernel_size=(2, 3), return_indices=True, **_WIDE),
    _on("max_pool3d", "default", (1, 2, 3, 4, 4), kernel_size=2),
    _on("max_pool3d", "indices", (1, 3, 4, 5), kernel_size=2, padding=1, return_indices=True),
    _on("avg_pool1d", "default", (1, 2, 7), kernel_size=3),
    _on("avg_pool1d", "ceil", (1, 2, 8), **_CEIL),
    _on("avg_pool2d", "default", (1, 2, 5, 4), kernel_size=2),
    _on("avg_pool2d", "exclude", (1, 1, 5, 6), **_CEIL, count_include_pad=False),
    _on("avg_pool2d", "divisor", (1, 1, 5, 6), **_CEIL, divisor_override=5),
    _on("avg_pool3d", "default", (1, 1, 4, 3, 4), kernel_size=(2, 3, 1)),
    _on("avg_pool3d", "exclude", (1, 3, 4, 5), **_CEIL, count_include_pad=False),
    _of("lp_pool1d", "default", {"input": (1, 2, 7)}, {"input": "positive"},
        norm_type=3, kernel_size=3),
    _on("lp_pool1d", "sum", (2, 7), norm_type=1, kernel_size=3, stride=2),
    _on("lp_pool2d", "default", (1, 2, 4, 5), norm_type=2, kernel_size=2, ceil_mode=True),
    _on("lp_pool3d", "default", (1, 4, 2, 4), norm_type=2, kernel_size=2),
    _on("adaptive_avg_pool1d", "default", (1, 2, 7), output_size=3),
    _on("adaptive_avg_pool2d", "default", (1, 2, 5, 4), output_size=(3, None)),
    _on("adaptive_avg_pool2d", "one", (2, 5, 4), output_size=1),
    _on("adaptive_avg_pool3d", "default", (1, 2, 3, 4, 5), output_size=(2, 5, 3)),
    _on("adaptive_max_pool1d", "default", (1, 2, 7), output_size=3),
    _on("adaptive_max_pool1d", "indices", (2, 7), output_size=4, return_indices=True),
    _on("adaptive_max_pool2d", "default", (1, 2, 5, 4), output_size=(3, 2)),
    _on("adaptive_max_pool2d", "indices", (1, 2, 5, 4), output_size=(3, 5), return_indices=True),
    _on("adaptive_max_pool3d", "default", (1, 3, 4, 5), output_size=(2, 2, 3)),
    Case("max_unpool1d", "default", {"input": (1, 1, 3), "indices": [[[1, 2, 5]]]},
         {"kernel_size": 2}),
    Case("max_unpool2d", "size", {"input": (1, 1, 2), "indices": [[[4, 8]]]},
         {"kernel_size": 2, "output_size": (3, 5)}),
    Case("max_unpool3d", "default", {"input": (1, 1, 1, 1, 2), "indices": [[[[[5, 2]]]]]},
         {"kernel_size": 2}),
]  # fmt: skip

_ACTIVATIONS = [
    *[
        _on(name, "default", (2, 3, 3))
        for name in (
            "celu", "elu", "gelu", "hardshrink", "hardswish", "hardtanh",
            "leaky_relu", "logsigmoid", "mish", "relu", "relu6", "rrelu", "selu", "sigmoid", "silu",
            "softplus", "softshrink", "softsign", "tanh", "tanhshrink",
        )
    ],
    _on("gelu", "tanh", (2, 3), approximate="tanh"),
    Case("celu", "alpha", {"input": (2, 3)}, {"alpha": 0.7}, rtol=1e-7),
    Case("hardsigmoid", "default", {"input": (2, 3)}, rtol=1e-7),
    _on("elu", "alpha", (2, 3), alpha=0.7),
    _on("hardtanh", "range", (2, 3), min_val=-0.5, max_val=1.5),
    _on("leaky_relu", "slope", (2, 3), negative_slope=0.3),
    _on("softplus", "beta", (2, 3), beta=3.0, threshold=4.0),
    _on("softshrink", "lambda", (2, 3), lambd=0.9),
    _on("hardshrink", "lambda", (2, 3), lambd=1.2),
    _on("threshold", "default", (2, 3), threshold=0.3, value=7.0),
    _on("glu", "default", (2, 4)),
    _on("glu", "first", (4, 3), dim=0),
    Case("prelu", "one", {"input": (2, 3), "weight": (1,)}),
    Case("prelu", "channels", {"input": (2, 3, 2), "weight": (3,)}),
    _on("softmax", "rows", (2, 3), dim=1),
    _on("softmax", "middle", (2, 3, 2), dim=-2),
    _on("softmin", "rows", (2, 3), dim=1),
    _on("log_softmax", "rows", (2, 3), dim=-1),
]  # fmt: skip

_LOSSES = [
    _loss("cross_entropy", "default", (3, 4), [1, 3, 0]),
    _loss("cross_entropy", "vector", (4,), 2),
    _loss("cross_entropy", "weight", (3, 4), [1, 3, 0], _W4),
    _loss("cross_entropy", "ignore", (3, 4), [1, -100, 0], label_smoothing=0.1),
    _loss("cross_entropy", "both", (3, 4), [1, 2, 0], _W4, ignore_index=2, label_smoothing=0.2),
    _loss("cross_entropy", "none", (2, 3, 2), _GRID, reduction="none", label_smoothing=0.1),
    _loss("cross_entropy", "sum", (2, 3, 2), _GRID, reduction="sum"),
    _loss("cross_entropy", "probabilities", (2, 3), _MIXED),
    _loss("cross_entropy", "smoothed", (2, 3), _MIXED, _W3, label_smoothing=0.3),
    _loss("nll_loss", "default", (3, 4), [1, 3, 0]),
    _loss("nll_loss", "weight", (2, 3, 2), [[1, 1], [2, 0]], _W3, ignore_index=0),
    _loss("mse_loss", "default", (2, 3), (2, 3)),
    _loss("mse_loss", "none", (2, 3), (2, 3), reduction="none"),
    _loss("mse_loss", "weight", (2, 3), (2, 3), _W23),
    Case("l1_loss", "default", {"input": (2, 3), "target": (2, 3)}),
    _loss("l1_loss", "weight", (2, 3), (2, 3), _W23),
    Case("smooth_l1_loss", "default", {"input": (2, 3), "target": (2, 3)}),
    Case("smooth_l1_loss", "beta", {"input": (2, 3), "target": (2, 3)},
         {"beta": 0.3, "reduction": "none"}),
    Case("huber_loss", "delta", {"input": (2, 3), "target": (2, 3)}, {"delta": 0.6}),
    _loss("huber_loss", "weight", (2, 3), (2, 3), _W23),
    Case("kl_div", "default", {"input": (2, 3), "target": (2, 3)}, {"reduction": "batchmean"},
         {"input": "log", "target": "unit"}),
    Case("kl_div", "zeros", {"input": (2, 3), "target": _MIXED}, {"reduction": "sum"}),
    Case("kl_div", "logarithms", {"input": (2, 3), "target": (2, 3)},
         {"log_target": True, "reduction": "none"}, {"input": "log", "target": "log"}),
    Case("gaussian_nll_loss", "default",
         {"input": (2, 3), "target": (2, 3), "var": (2, 3)}, {"full": True}, {"var": "positive"}),
    Case("gaussian_nll_loss", "rows", {"input": (2, 3), "target": (2, 3), "var": (2, 1)},
         {"reduction": "none"}, {"var": "positive"}),
    Case("poisson_nll_loss", "default", {"input": (2, 3), "target": (2, 3)}, {"full": True},
         {"target": "positive"}, ("target",)),
    Case("poisson_nll_loss", "rate", {"input": (2, 3), "target": (2, 3)},
         {"log_input": False, "reduction": "sum"}, {"input": "positive"}),
    Case("binary_cross_entropy", "default", {"input": (2, 3), "target": (2, 3)}, {},
         {"input": "unit", "target": "unit"}),
    Case("binary_cross_entropy", "weight", {"input": (2, 3), "target": (2, 3), "weight": _W3},
         {"reduction": "sum"}, {"input": "unit", "target": "bit"}),
    Case("binary_cross_entropy_with_logits", "default", {"input": (2, 3), "target": (2, 3)}, {},
         {"target": "unit"}),
    Case("binary_cross_entropy_with_logits", "weights",
         {"input": (2, 3), "target": (2, 3), "weight": _W23, "pos_weight": _W3},
         {"reduction": "none"}, {"target": "bit"}),
    _of("soft_margin_loss", "default", {"input": (2, 3), "target": (2, 3)}, {"target": "sign"}),
    _of("multilabel_soft_margin_loss", "weight",
        {"input": (2, 3), "target": (2, 3), "weight": _W3}, {"target": "bit"}, reduction="none"),
    _of("hinge_embedding_loss", "default", {"input": (2, 3), "target": (2, 3)},
        {"target": "sign"}, margin=0.7),
    _of("margin_ranking_loss", "default", {"input1": (5,), "input2": (5,), "target": (5,)},
        {"target": "sign"}, margin=0.3),
    _of("cosine_embedding_loss", "default", {"input1": (4, 3), "input2": (4, 3), "target": (4,)},
        {"target": "sign"}, margin=0.1, reduction="none"),
    Case("multi_margin_loss", "default", {"input": (3, 4), "target": [1, 3, 0]}),
    Case("multi_margin_loss", "squares",
         {"input": (3, 4), "target": [1, 3, 0], "weight": _W4},
         {"p": 2, "margin": 0.7, "reduction": "none"}),
    Case("multilabel_margin_loss", "default",
         {"input": (2, 4), "target": [[3, 0, -1, 1], [2, -1, -1, -1]]}, {"reduction": "none"}),
    Case("multilabel_margin_loss", "vector", {"input": (4,), "target": [3, 0, 1, 2]}),
    Case("triplet_margin_loss", "default",
         {"anchor": (3, 4), "positive": (3, 4), "negative": (3, 4)}),
    Case("triplet_margin_loss", "swap",
         {"anchor": (3, 4), "positive": (3, 4), "negative": (3, 4)},
         {"swap": True, "p": 3.0, "margin": 2.0, "reduction": "none"}),
    Case("triplet_margin_with_distance_loss", "default",
         {"anchor": (3, 4), "positive": (3, 4), "negative": (3, 4)}, {"margin": 0.5}),
]  # fmt: skip

_NORMS = [
    Case("layer_norm", "default", {"input": (2, 3, 4)}, {"normalized_shape": (4,)}),
    Case("layer_norm", "affine", {"input": (2, 3, 2), "weight": (3, 2), "bias": (3, 2)},
         {"normalized_shape": (3, 2), "eps": 0.1}),
    Case("rms_norm", "default", {"input": (2, 4)}, {"normalized_shape": (4,)}),
    Case("rms_norm", "weight", {"input": (2, 4), "weight": (4,)},
         {"normalized_shape": (4,), "eps": 0.1}),
    Case("group_norm", "default", {"input": (2, 4, 3)}, {"num_groups": 2}),
    Case("group_norm", "affine", {"input": (2, 4, 2, 2), "weight": (4,), "bias": (4,)},
         {"num_groups": 2}),
    Case("instance_norm", "default", {"input": (2, 3, 4)}),
    Case("instance_norm", "affine", {"input": (2, 3, 2, 2), "weight": (3,), "bias": (3,)},
         {"eps": 0.1}),
    Case("instance_norm", "running",
         {"input": (2, 3, 2), "running_mean": (3,), "running_var": (3,), "weight": (3,)},
         {"use_input_stats": False}, {"running_var": "positive"}, ("running_mean", "running_var")),
    _on("local_response_norm", "default", (2, 5, 3), size=3, alpha=0.5),
    _on("local_response_norm", "even", (1, 4, 2, 2), size=2, alpha=0.5, beta=0.5, k=2.0),
    _on("normalize", "default", (2, 3)),
    _on("normalize", "three", (2, 3, 2), p=3.0, dim=-1),
    Case("cosine_similarity", "default", {"x1": (2, 3), "x2": (2, 3)}),
    Case("cosine_similarity", "broadcast", {"x1": (2, 1, 3), "x2": (4, 3)}, {"dim": -1}),
    Case("pairwise_distance", "default", {"x1": (2, 3), "x2": (2, 3)}),
    Case("pairwise_distance", "one", {"x1": (2, 3), "x2": (3,)}, {"p": 1.0, "keepdim": True}),
    Case("cdist", "default", {"x1": (4, 3), "x2": (3, 3)}),
    Case("cdist", "sizes", {"x1": (2, 3, 2), "x2": (4, 2)}, {"p": 1.0}),
    Case("cdist", "three", {"x1": (2, 3), "x2": (4, 3)}, {"p": 3.0}),
    Case("cdist", "maximum", {"x1": (2, 3), "x2": (4, 3)}, {"p": float("inf")}),
    Case("cdist", "products", {"x1": (4, 3), "x2": (2, 3)},
         {"compute_mode": "use_mm_for_euclid_dist"}),
    _on("pdist", "default", (4, 3)),
    _on("pdist", "maximum", (4, 3), p=float("inf")),
]  # fmt: skip

_LINEAR = [
    Case("linear", "batch", {"input": (2, 3), "weight": (4, 3), "bias": (4,)}),
    Case("linear", "vector", {"input": (3,), "weight": (4, 3)}),
    Case("linear", "leading", {"input": (2, 2, 3), "weight": (2, 3)}),
    Case("bilinear", "default",
         {"input1": (2, 3), "input2": (2, 2), "weight": (4, 3, 2), "bias": (4,)}),
    Case("bilinear", "vector", {"input1": (3,), "input2": (2,), "weight": (4, 3, 2)}),
    _on("one_hot", "default", [1, 0, 3]),
    Case("embedding", "default", {"input": [[1, 0], [2, 1]], "weight": (3, 2)}),
    Case("embedding", "padding", {"input": [1, 0, 2], "weight": (3, 2)}, {"padding_idx": -3}),
    Case("embedding_bag", "mean", {"input": [[1, 0], [2, 1]], "weight": (3, 2)}),
    Case("embedding_bag", "sum",
         {"input": [1, 0, 2, 1], "weight": (3, 2), "offsets": [0, 3, 3],
          "per_sample_weights": (4,)}, {"mode": "sum"}),
    Case("embedding_bag", "max",
         {"input": [1, 0, 2, 1], "weight": (3, 2), "offsets": [0, 3, 4]},
         {"mode": "max", "include_last_offset": True, "padding_idx": 0}),
    Case("scaled_dot_product_attention", "default",
         {"query": (1, 2, 3, 4), "key": (1, 2, 5, 4), "value": (1, 2, 5, 2)}),
    Case("scaled_dot_product_attention", "causal",
         {"query": (2, 3, 4), "key": (2, 3, 4), "value": (2, 3, 2)},
         {"is_causal": True, "scale": 0.3}),
    Case("scaled_dot_product_attention", "mask",
         {"query": (2, 3, 4), "key": (2, 2, 4), "value": (2, 2, 2), "attn_mask": (3, 2)}),
    Case("scaled_dot_product_attention", "boolean",
         {"query": (2, 3, 4), "key": (2, 2, 4), "value": (2, 2, 2),
          "attn_mask": [[True, False], [False, False], [True, True]]}),
    Case("scaled_dot_product_attention", "grouped",
         {"query": (1, 4, 2, 3), "key": (1, 2, 2, 3), "value": (1, 2, 2, 3)},
         {"enable_gqa": True}),
]  # fmt: skip

_IMAGES = [
    _on("pad", "constant", (2, 3), pad=(1, -1, 0, 2), value=1.5),
    _on("pad", "zeros", (2, 2), pad=(2, 1)),
    _on("pad", "reflect", (1, 2, 3, 4), pad=(3, 1, 0, 2), mode="reflect"),
    _on("pad", "replicate", (1, 2, 3), pad=(2, 4), mode="replicate"),
    _on("pad", "circular", (1, 2, 3, 2), pad=(2, 1, 3, 0), mode="circular"),
    _on("interpolate", "nearest", (1, 1, 3), size=7),
    _on("interpolate", "exact", (1, 1, 3, 2), scale_factor=(2.5, 1.7), mode="nearest-exact"),
    _on("interpolate", "linear", (1, 1, 4), scale_factor=2.3, mode="linear"),
    _on("interpolate", "bilinear", (1, 1, 4, 3), size=(3, 5), mode="bilinear"),
    _on("interpolate", "corners", (1, 1, 4, 3), size=(7, 2), mode="bilinear", align_corners=True),
    _on("interpolate", "bicubic", (1, 1, 4, 3), scale_factor=1.6, mode="bicubic"),
    _on("interpolate", "trilinear", (1, 1, 2, 3, 2), size=(3, 2, 3), mode="trilinear"),
    _on("interpolate", "area", (1, 1, 5, 4), size=(3, 2), mode="area"),
    _on("interpolate", "smooth", (1, 1, 7, 6), size=(3, 4), mode="bilinear", antialias=True),
    _on("upsample", "default", (1, 1, 2, 2), scale_factor=2, mode="bilinear"),
    Case("grid_sample", "default", {"input": (1, 2, 3, 4), "grid": (1, 2, 3, 2)}),
    Case("grid_sample", "border", {"input": (1, 2, 3, 4), "grid": (1, 2, 3, 2)},
         {"padding_mode": "border", "align_corners": True}),
    Case("grid_sample", "reflection", {"input": (1, 2, 3, 4), "grid": (1, 3, 3, 2)},
         {"padding_mode": "reflection"}),
    Case("grid_sample", "nearest", {"input": (1, 2, 3, 4), "grid": (1, 2, 3, 2)},
         {"mode": "nearest"}),
    Case("grid_sample", "bicubic", {"input": (1, 1, 3, 4), "grid": (1, 2, 3, 2)},
         {"mode": "bicubic", "padding_mode": "border"}),
    Case("grid_sample", "volume", {"input": (1, 1, 2, 3, 2), "grid": (1, 1, 2, 2, 3)},
         {"align_corners": True}),
    Case("affine_grid", "plane", {"theta": (2, 2, 3)}, {"size": (2, 1, 2, 3)}),
    Case("affine_grid", "volume", {"theta": (1, 3, 4)},
         {"size": (1, 1, 2, 1, 2), "align_corners": True}),
    _on("unfold", "default", (1, 2, 4, 5), kernel_size=(2, 3)),
    _on("unfold", "skew", (2, 4, 5), kernel_size=2, dilation=(1, 2), padding=1, stride=(2, 1)),
    _on("fold", "default", (1, 8, 6), output_size=(3, 4), kernel_size=2),
    _on("fold", "skew", (4, 6), output_size=(4, 3), kernel_size=2, padding=1, stride=2),
    _on("pixel_shuffle", "default", (1, 8, 2, 1), upscale_factor=2),
    _on("pixel_unshuffle", "default", (1, 2, 4, 2), downscale_factor=2),
    _on("channel_shuffle", "default", (1, 6, 2), groups=3),
]  # fmt: skip

CASES = [*_LINEAR, *_CONVOLUTIONS, *_POOLS, *_ACTIVATIONS, *_LOSSES, *_NORMS, *_IMAGES]
BY_ID = {c.id: c for c in CASES}


def write() -> None:
    """Ask torch again."""
    found = {c.id: {k: v.round(12).tolist() for k, v in by_torch(c).items()} for c in CASES}
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write()
