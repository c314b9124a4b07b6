"""Pure functions with torch.nn.functional's names, positional order, keywords and defaults.

What torch does by writing is done by returning: `inplace` must be False, `batch_norm` and
`instance_norm` return the new running statistics. What it draws from a global generator is drawn
from a keyword-only `key`. `size_average` and `reduce`, which torch has retired, keep their places
and must be None. `softmax` and its kin need `dim`.
"""

from funct.array.direct import entrances as _entrances
from funct.nn.functional.activation import celu as celu
from funct.nn.functional.activation import elu as elu
from funct.nn.functional.activation import gelu as gelu
from funct.nn.functional.activation import glu as glu
from funct.nn.functional.activation import hardshrink as hardshrink
from funct.nn.functional.activation import hardsigmoid as hardsigmoid
from funct.nn.functional.activation import hardswish as hardswish
from funct.nn.functional.activation import hardtanh as hardtanh
from funct.nn.functional.activation import leaky_relu as leaky_relu
from funct.nn.functional.activation import logsigmoid as logsigmoid
from funct.nn.functional.activation import mish as mish
from funct.nn.functional.activation import prelu as prelu
from funct.nn.functional.activation import relu as relu
from funct.nn.functional.activation import relu6 as relu6
from funct.nn.functional.activation import rrelu as rrelu
from funct.nn.functional.activation import selu as selu
from funct.nn.functional.activation import sigmoid as sigmoid
from funct.nn.functional.activation import silu as silu
from funct.nn.functional.activation import softplus as softplus
from funct.nn.functional.activation import softshrink as softshrink
from funct.nn.functional.activation import softsign as softsign
from funct.nn.functional.activation import tanh as tanh
from funct.nn.functional.activation import tanhshrink as tanhshrink
from funct.nn.functional.activation import threshold as threshold
from funct.nn.functional.adaptive_pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from funct.nn.functional.adaptive_pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from funct.nn.functional.adaptive_pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from funct.nn.functional.adaptive_pooling import adaptive_max_pool1d as adaptive_max_pool1d
from funct.nn.functional.adaptive_pooling import adaptive_max_pool2d as adaptive_max_pool2d
from funct.nn.functional.adaptive_pooling import adaptive_max_pool3d as adaptive_max_pool3d
from funct.nn.functional.attention import (
    multi_head_attention_forward as multi_head_attention_forward,
)
from funct.nn.functional.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from funct.nn.functional.average_pooling import avg_pool1d as avg_pool1d
from funct.nn.functional.average_pooling import avg_pool2d as avg_pool2d
from funct.nn.functional.average_pooling import avg_pool3d as avg_pool3d
from funct.nn.functional.average_pooling import lp_pool1d as lp_pool1d
from funct.nn.functional.average_pooling import lp_pool2d as lp_pool2d
from funct.nn.functional.average_pooling import lp_pool3d as lp_pool3d
from funct.nn.functional.classification_loss import binary_cross_entropy as binary_cross_entropy
from funct.nn.functional.classification_loss import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from funct.nn.functional.classification_loss import cross_entropy as cross_entropy
from funct.nn.functional.classification_loss import nll_loss as nll_loss
from funct.nn.functional.convolution import conv1d as conv1d
from funct.nn.functional.convolution import conv2d as conv2d
from funct.nn.functional.convolution import conv3d as conv3d
from funct.nn.functional.convolution import conv_transpose1d as conv_transpose1d
from funct.nn.functional.convolution import conv_transpose2d as conv_transpose2d
from funct.nn.functional.convolution import conv_transpose3d as conv_transpose3d
from funct.nn.functional.ctc_loss import ctc_loss as ctc_loss
from funct.nn.functional.distance import cdist as cdist
from funct.nn.functional.distance import cosine_similarity as cosine_similarity
from funct.nn.functional.distance import normalize as normalize
from funct.nn.functional.distance import pairwise_distance as pairwise_distance
from funct.nn.functional.distance import pdist as pdist
from funct.nn.functional.dropout import alpha_dropout as alpha_dropout
from funct.nn.functional.dropout import dropout as dropout
from funct.nn.functional.dropout import dropout1d as dropout1d
from funct.nn.functional.dropout import dropout2d as dropout2d
from funct.nn.functional.dropout import dropout3d as dropout3d
from funct.nn.functional.dropout import feature_alpha_dropout as feature_alpha_dropout
from funct.nn.functional.embedding import embedding as embedding
from funct.nn.functional.embedding import embedding_bag as embedding_bag
from funct.nn.functional.fractional_pooling import fractional_max_pool2d as fractional_max_pool2d
from funct.nn.functional.fractional_pooling import fractional_max_pool3d as fractional_max_pool3d
from funct.nn.functional.interpolation import interpolate as interpolate
from funct.nn.functional.interpolation import upsample as upsample
from funct.nn.functional.linear import bilinear as bilinear
from funct.nn.functional.linear import linear as linear
from funct.nn.functional.linear import one_hot as one_hot
from funct.nn.functional.margin_loss import cosine_embedding_loss as cosine_embedding_loss
from funct.nn.functional.margin_loss import hinge_embedding_loss as hinge_embedding_loss
from funct.nn.functional.margin_loss import margin_ranking_loss as margin_ranking_loss
from funct.nn.functional.margin_loss import multi_margin_loss as multi_margin_loss
from funct.nn.functional.margin_loss import multilabel_margin_loss as multilabel_margin_loss
from funct.nn.functional.margin_loss import (
    multilabel_soft_margin_loss as multilabel_soft_margin_loss,
)
from funct.nn.functional.margin_loss import soft_margin_loss as soft_margin_loss
from funct.nn.functional.margin_loss import triplet_margin_loss as triplet_margin_loss
from funct.nn.functional.margin_loss import (
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from funct.nn.functional.max_pooling import max_pool1d as max_pool1d
from funct.nn.functional.max_pooling import max_pool2d as max_pool2d
from funct.nn.functional.max_pooling import max_pool3d as max_pool3d
from funct.nn.functional.max_pooling import max_unpool1d as max_unpool1d
from funct.nn.functional.max_pooling import max_unpool2d as max_unpool2d
from funct.nn.functional.max_pooling import max_unpool3d as max_unpool3d
from funct.nn.functional.normalization import batch_norm as batch_norm
from funct.nn.functional.normalization import group_norm as group_norm
from funct.nn.functional.normalization import instance_norm as instance_norm
from funct.nn.functional.normalization import layer_norm as layer_norm
from funct.nn.functional.normalization import local_response_norm as local_response_norm
from funct.nn.functional.normalization import rms_norm as rms_norm
from funct.nn.functional.padding import pad as pad
from funct.nn.functional.rearrangement import channel_shuffle as channel_shuffle
from funct.nn.functional.rearrangement import flatten as flatten
from funct.nn.functional.rearrangement import fold as fold
from funct.nn.functional.rearrangement import pixel_shuffle as pixel_shuffle
from funct.nn.functional.rearrangement import pixel_unshuffle as pixel_unshuffle
from funct.nn.functional.rearrangement import unfold as unfold
from funct.nn.functional.regression_loss import gaussian_nll_loss as gaussian_nll_loss
from funct.nn.functional.regression_loss import huber_loss as huber_loss
from funct.nn.functional.regression_loss import kl_div as kl_div
from funct.nn.functional.regression_loss import l1_loss as l1_loss
from funct.nn.functional.regression_loss import mse_loss as mse_loss
from funct.nn.functional.regression_loss import poisson_nll_loss as poisson_nll_loss
from funct.nn.functional.regression_loss import smooth_l1_loss as smooth_l1_loss
from funct.nn.functional.sampling import affine_grid as affine_grid
from funct.nn.functional.sampling import grid_sample as grid_sample
from funct.nn.functional.softmax import gumbel_softmax as gumbel_softmax
from funct.nn.functional.softmax import log_softmax as log_softmax
from funct.nn.functional.softmax import softmax as softmax
from funct.nn.functional.softmax import softmin as softmin

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "cdist", "celu", "channel_shuffle", "conv1d", "conv2d",
    "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d",
    "dropout3d", "elu", "embedding", "embedding_bag", "feature_alpha_dropout", "flatten", "fold",
    "fractional_max_pool2d", "fractional_max_pool3d", "gaussian_nll_loss", "gelu", "glu",
    "grid_sample", "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div",
    "l1_loss", "layer_norm", "leaky_relu", "linear", "local_response_norm", "log_softmax",
    "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d",
    "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss",
    "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance",
    "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6",
    "rms_norm", "rrelu", "scaled_dot_product_attention", "selu", "sigmoid", "silu",
    "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink",
    "softsign", "tanh", "tanhshrink", "threshold", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "unfold", "upsample",
]  # fmt: skip

_entrances(globals())
