"""Neural network layers: immutable records of parameters that are called, with torch.nn's names.

    from funct import nn

    model = nn.Sequential(nn.Linear(784, 128, key=k1), nn.ReLU(), nn.Linear(128, 10, key=k2))
    params, rest = nn.partition(model)

Reads best: `module.py` (what a layer is), `linear.py` (the shortest layers), `container.py`.
"""

from funct.nn import functional as functional
from funct.nn import init as init
from funct.nn.activation import GELU as GELU
from funct.nn.activation import ReLU as ReLU
from funct.nn.container import Sequential as Sequential
from funct.nn.convolution import Conv1d as Conv1d
from funct.nn.convolution import Conv2d as Conv2d
from funct.nn.dropout import Dropout as Dropout
from funct.nn.linear import Flatten as Flatten
from funct.nn.linear import Identity as Identity
from funct.nn.linear import Linear as Linear
from funct.nn.module import Module as Module
from funct.nn.module import buffer as buffer
from funct.nn.module import eval_mode as eval_mode
from funct.nn.module import is_stateful as is_stateful
from funct.nn.module import named_leaves as named_leaves
from funct.nn.module import named_modules as named_modules
from funct.nn.module import needs_key as needs_key
from funct.nn.module import static as static
from funct.nn.module import train_mode as train_mode
from funct.nn.normalization import BatchNorm1d as BatchNorm1d
from funct.nn.normalization import BatchNorm2d as BatchNorm2d
from funct.nn.partition import combine as combine
from funct.nn.partition import is_buffer as is_buffer
from funct.nn.partition import is_inexact_array as is_inexact_array
from funct.nn.partition import is_parameter as is_parameter
from funct.nn.partition import partition as partition
from funct.nn.pooling import AvgPool1d as AvgPool1d
from funct.nn.pooling import AvgPool2d as AvgPool2d
from funct.nn.pooling import MaxPool1d as MaxPool1d
from funct.nn.pooling import MaxPool2d as MaxPool2d
from funct.nn.state import load_state_dict as load_state_dict
from funct.nn.state import state_dict as state_dict
from funct.nn.summary import summary as summary

__all__ = [
    "AvgPool1d", "AvgPool2d", "BatchNorm1d", "BatchNorm2d", "Conv1d", "Conv2d", "Dropout",
    "Flatten", "GELU", "Identity", "Linear", "MaxPool1d", "MaxPool2d", "Module", "ReLU",
    "Sequential", "buffer", "combine", "eval_mode", "functional", "init", "is_buffer",
    "is_inexact_array", "is_parameter", "is_stateful", "load_state_dict", "named_leaves",
    "named_modules", "needs_key", "partition", "state_dict", "static", "summary", "train_mode",
]  # fmt: skip
