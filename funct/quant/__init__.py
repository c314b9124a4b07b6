"""Quantization as values: export, prepare, calibrate, convert.

    program = export.export(model, (x,))
    prepared = quant.prepare_pt2e(program, quant.int8_static())
    prepared = quant.calibrate(prepared, batches)
    quantized = quant.convert_pt2e(prepared)

Nothing is changed in place. The result is an ExportedProgram: it is called, transformed, saved and
exported like any other, and its value is that of exact integer arithmetic; see `convert_pt2e`.
"""

from funct.quant.convert import convert_pt2e as convert_pt2e
from funct.quant.histogram import HistogramObserver as HistogramObserver
from funct.quant.int8_static import Int8Static as Int8Static
from funct.quant.int8_static import bias_qparams as bias_qparams
from funct.quant.int8_static import int8_static as int8_static
from funct.quant.observer import MinMaxObserver as MinMaxObserver
from funct.quant.observer import MovingAverageMinMaxObserver as MovingAverageMinMaxObserver
from funct.quant.observer import Observer as Observer
from funct.quant.observer import PerChannelMinMaxObserver as PerChannelMinMaxObserver
from funct.quant.prepare import PreparedProgram as PreparedProgram
from funct.quant.prepare import calibrate as calibrate
from funct.quant.prepare import merge as merge
from funct.quant.prepare import prepare_pt2e as prepare_pt2e
from funct.quant.quantizer import ComposableQuantizer as ComposableQuantizer
from funct.quant.quantizer import Quantizer as Quantizer
from funct.quant.spec import DerivedQuantizationSpec as DerivedQuantizationSpec
from funct.quant.spec import FixedQParamsQuantizationSpec as FixedQParamsQuantizationSpec
from funct.quant.spec import QuantizationAnnotation as QuantizationAnnotation
from funct.quant.spec import QuantizationSpec as QuantizationSpec
from funct.quant.spec import SharedQuantizationSpec as SharedQuantizationSpec
from funct.quant.weight_only import WeightOnly as WeightOnly
from funct.quant.weight_only import int4_weight_only as int4_weight_only
from funct.quant.weight_only import int8_weight_only as int8_weight_only

__all__ = [
    "ComposableQuantizer", "DerivedQuantizationSpec", "FixedQParamsQuantizationSpec",
    "HistogramObserver", "Int8Static", "MinMaxObserver", "MovingAverageMinMaxObserver", "Observer",
    "PerChannelMinMaxObserver", "PreparedProgram", "QuantizationAnnotation", "QuantizationSpec",
    "Quantizer", "SharedQuantizationSpec", "WeightOnly", "bias_qparams", "calibrate",
    "convert_pt2e", "int4_weight_only", "int8_static", "int8_weight_only", "merge", "prepare_pt2e",
]  # fmt: skip
