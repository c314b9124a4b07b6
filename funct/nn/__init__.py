"""Neural network layers: immutable records of parameters that are called, with torch.nn's names.

    from funct import nn

    model = nn.Sequential(nn.Linear(784, 128, key=k1), nn.ReLU(), nn.Linear(128, 10, key=k2))
    params, rest = nn.partition(model)

Reads best: `module.py` (what a layer is), `linear.py` (the shortest layers), `container.py`.
"""

from funct.nn import functional as functional
from funct.nn import init as init
from funct.nn.activation import GELU as GELU
from funct.nn.activation import GLU as GLU
from funct.nn.activation import SELU as SELU
from funct.nn.activation import Hardsigmoid as Hardsigmoid
from funct.nn.activation import Hardswish as Hardswish
from funct.nn.activation import LogSigmoid as LogSigmoid
from funct.nn.activation import Mish as Mish
from funct.nn.activation import ReLU as ReLU
from funct.nn.activation import ReLU6 as ReLU6
from funct.nn.activation import Sigmoid as Sigmoid
from funct.nn.activation import SiLU as SiLU
from funct.nn.activation import Softplus as Softplus
from funct.nn.activation import Softsign as Softsign
from funct.nn.activation import Tanh as Tanh
from funct.nn.activation import Tanhshrink as Tanhshrink
from funct.nn.attention import MultiheadAttention as MultiheadAttention
from funct.nn.container import Sequential as Sequential
from funct.nn.convolution import Conv1d as Conv1d
from funct.nn.convolution import Conv2d as Conv2d
from funct.nn.convolution import Conv3d as Conv3d
from funct.nn.convolution import ConvTranspose1d as ConvTranspose1d
from funct.nn.convolution import ConvTranspose2d as ConvTranspose2d
from funct.nn.convolution import ConvTranspose3d as ConvTranspose3d
from funct.nn.distance import CosineSimilarity as CosineSimilarity
from funct.nn.distance import PairwiseDistance as PairwiseDistance
from funct.nn.dropout import AlphaDropout as AlphaDropout
from funct.nn.dropout import Dropout as Dropout
from funct.nn.dropout import Dropout1d as Dropout1d
from funct.nn.dropout import Dropout2d as Dropout2d
from funct.nn.dropout import Dropout3d as Dropout3d
from funct.nn.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from funct.nn.embedding import Embedding as Embedding
from funct.nn.embedding import EmbeddingBag as EmbeddingBag
from funct.nn.linear import Bilinear as Bilinear
from funct.nn.linear import Flatten as Flatten
from funct.nn.linear import Identity as Identity
from funct.nn.linear import Linear as Linear
from funct.nn.loss import BCELoss as BCELoss
from funct.nn.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from funct.nn.loss import CrossEntropyLoss as CrossEntropyLoss
from funct.nn.loss import CTCLoss as CTCLoss
from funct.nn.loss import GaussianNLLLoss as GaussianNLLLoss
from funct.nn.loss import HuberLoss as HuberLoss
from funct.nn.loss import KLDivLoss as KLDivLoss
from funct.nn.loss import L1Loss as L1Loss
from funct.nn.loss import MSELoss as MSELoss
from funct.nn.loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from funct.nn.loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from funct.nn.loss import MultiMarginLoss as MultiMarginLoss
from funct.nn.loss import NLLLoss as NLLLoss
from funct.nn.loss import PoissonNLLLoss as PoissonNLLLoss
from funct.nn.loss import SmoothL1Loss as SmoothL1Loss
from funct.nn.loss import SoftMarginLoss as SoftMarginLoss
from funct.nn.metric_loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from funct.nn.metric_loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from funct.nn.metric_loss import MarginRankingLoss as MarginRankingLoss
from funct.nn.metric_loss import TripletMarginLoss as TripletMarginLoss
from funct.nn.metric_loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
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
from funct.nn.normalization import BatchNorm3d as BatchNorm3d
from funct.nn.normalization import GroupNorm as GroupNorm
from funct.nn.normalization import InstanceNorm1d as InstanceNorm1d
from funct.nn.normalization import InstanceNorm2d as InstanceNorm2d
from funct.nn.normalization import InstanceNorm3d as InstanceNorm3d
from funct.nn.normalization import LayerNorm as LayerNorm
from funct.nn.normalization import LocalResponseNorm as LocalResponseNorm
from funct.nn.normalization import RMSNorm as RMSNorm
from funct.nn.padding import CircularPad1d as CircularPad1d
from funct.nn.padding import CircularPad2d as CircularPad2d
from funct.nn.padding import CircularPad3d as CircularPad3d
from funct.nn.padding import ConstantPad1d as ConstantPad1d
from funct.nn.padding import ConstantPad2d as ConstantPad2d
from funct.nn.padding import ConstantPad3d as ConstantPad3d
from funct.nn.padding import ReflectionPad1d as ReflectionPad1d
from funct.nn.padding import ReflectionPad2d as ReflectionPad2d
from funct.nn.padding import ReflectionPad3d as ReflectionPad3d
from funct.nn.padding import ReplicationPad1d as ReplicationPad1d
from funct.nn.padding import ReplicationPad2d as ReplicationPad2d
from funct.nn.padding import ReplicationPad3d as ReplicationPad3d
from funct.nn.padding import ZeroPad1d as ZeroPad1d
from funct.nn.padding import ZeroPad2d as ZeroPad2d
from funct.nn.padding import ZeroPad3d as ZeroPad3d
from funct.nn.partition import combine as combine
from funct.nn.partition import is_buffer as is_buffer
from funct.nn.partition import is_inexact_array as is_inexact_array
from funct.nn.partition import is_parameter as is_parameter
from funct.nn.partition import partition as partition
from funct.nn.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from funct.nn.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from funct.nn.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from funct.nn.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from funct.nn.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from funct.nn.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from funct.nn.pooling import AvgPool1d as AvgPool1d
from funct.nn.pooling import AvgPool2d as AvgPool2d
from funct.nn.pooling import AvgPool3d as AvgPool3d
from funct.nn.pooling import LPPool1d as LPPool1d
from funct.nn.pooling import LPPool2d as LPPool2d
from funct.nn.pooling import LPPool3d as LPPool3d
from funct.nn.pooling import MaxPool1d as MaxPool1d
from funct.nn.pooling import MaxPool2d as MaxPool2d
from funct.nn.pooling import MaxPool3d as MaxPool3d
from funct.nn.pooling import MaxUnpool1d as MaxUnpool1d
from funct.nn.pooling import MaxUnpool2d as MaxUnpool2d
from funct.nn.pooling import MaxUnpool3d as MaxUnpool3d
from funct.nn.rearrangement import ChannelShuffle as ChannelShuffle
from funct.nn.rearrangement import Fold as Fold
from funct.nn.rearrangement import PixelShuffle as PixelShuffle
from funct.nn.rearrangement import PixelUnshuffle as PixelUnshuffle
from funct.nn.rearrangement import Unflatten as Unflatten
from funct.nn.rearrangement import Unfold as Unfold
from funct.nn.rearrangement import Upsample as Upsample
from funct.nn.rearrangement import UpsamplingBilinear2d as UpsamplingBilinear2d
from funct.nn.rearrangement import UpsamplingNearest2d as UpsamplingNearest2d
from funct.nn.rectifier import CELU as CELU
from funct.nn.rectifier import ELU as ELU
from funct.nn.rectifier import Hardshrink as Hardshrink
from funct.nn.rectifier import Hardtanh as Hardtanh
from funct.nn.rectifier import LeakyReLU as LeakyReLU
from funct.nn.rectifier import PReLU as PReLU
from funct.nn.rectifier import RReLU as RReLU
from funct.nn.rectifier import Softshrink as Softshrink
from funct.nn.rectifier import Threshold as Threshold
from funct.nn.recurrent import GRU as GRU
from funct.nn.recurrent import LSTM as LSTM
from funct.nn.recurrent import RNN as RNN
from funct.nn.recurrent_cell import GRUCell as GRUCell
from funct.nn.recurrent_cell import LSTMCell as LSTMCell
from funct.nn.recurrent_cell import RNNCell as RNNCell
from funct.nn.softmax import LogSoftmax as LogSoftmax
from funct.nn.softmax import Softmax as Softmax
from funct.nn.softmax import Softmax2d as Softmax2d
from funct.nn.softmax import Softmin as Softmin
from funct.nn.state import load_state_dict as load_state_dict
from funct.nn.state import state_dict as state_dict
from funct.nn.summary import summary as summary
from funct.nn.transformer import TransformerDecoder as TransformerDecoder
from funct.nn.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from funct.nn.transformer import TransformerEncoder as TransformerEncoder
from funct.nn.transformer import TransformerEncoderLayer as TransformerEncoderLayer

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AlphaDropout", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "BCELoss", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear", "CELU",
    "CTCLoss", "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d",
    "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
    "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss", "CosineSimilarity",
    "CrossEntropyLoss", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "ELU", "Embedding",
    "EmbeddingBag", "FeatureAlphaDropout", "Flatten", "Fold", "GELU", "GLU", "GRU", "GRUCell",
    "GaussianNLLLoss", "GroupNorm", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "HingeEmbeddingLoss", "HuberLoss", "Identity", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "KLDivLoss", "L1Loss", "LPPool1d", "LPPool2d", "LPPool3d", "LSTM", "LSTMCell",
    "LayerNorm", "LeakyReLU", "Linear", "LocalResponseNorm", "LogSigmoid", "LogSoftmax", "MSELoss",
    "MarginRankingLoss", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d", "Mish", "Module", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "MultiheadAttention", "NLLLoss", "PReLU", "PairwiseDistance", "PixelShuffle",
    "PixelUnshuffle", "PoissonNLLLoss", "RMSNorm", "RNN", "RNNCell", "RReLU", "ReLU", "ReLU6",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "SELU", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss", "SoftMarginLoss",
    "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink",
    "Threshold", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer", "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Unflatten",
    "Unfold", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d",
    "ZeroPad3d", "buffer", "combine", "eval_mode", "functional", "init", "is_buffer",
    "is_inexact_array", "is_parameter", "is_stateful", "load_state_dict", "named_leaves",
    "named_modules", "needs_key", "partition", "state_dict", "static", "summary", "train_mode",
]  # fmt: skip
