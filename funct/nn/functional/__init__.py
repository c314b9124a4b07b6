"""Pure functions with torch.nn.functional's names, positional order, keywords and defaults.

What torch has deprecated (`size_average`, `reduce`, `inplace`, `_stacklevel`) is left out;
parameters that stand behind such a gap are keyword-only, so that no call means something else here.
"""

from funct.nn.functional.activation import gelu as gelu
from funct.nn.functional.activation import log_softmax as log_softmax
from funct.nn.functional.activation import relu as relu
from funct.nn.functional.activation import softmax as softmax
from funct.nn.functional.convolution import conv1d as conv1d
from funct.nn.functional.convolution import conv2d as conv2d
from funct.nn.functional.dropout import dropout as dropout
from funct.nn.functional.linear import flatten as flatten
from funct.nn.functional.linear import linear as linear
from funct.nn.functional.linear import one_hot as one_hot
from funct.nn.functional.loss import cross_entropy as cross_entropy
from funct.nn.functional.loss import mse_loss as mse_loss
from funct.nn.functional.loss import nll_loss as nll_loss
from funct.nn.functional.normalization import batch_norm as batch_norm
from funct.nn.functional.pooling import avg_pool1d as avg_pool1d
from funct.nn.functional.pooling import avg_pool2d as avg_pool2d
from funct.nn.functional.pooling import max_pool1d as max_pool1d
from funct.nn.functional.pooling import max_pool2d as max_pool2d

__all__ = [
    "avg_pool1d", "avg_pool2d", "batch_norm", "conv1d", "conv2d", "cross_entropy", "dropout",
    "flatten", "gelu", "linear", "log_softmax", "max_pool1d", "max_pool2d", "mse_loss", "nll_loss",
    "one_hot", "relu", "softmax",
]  # fmt: skip
