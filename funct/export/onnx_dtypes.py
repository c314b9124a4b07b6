"""Which dtypes ONNX operators compute in: NumPy promotes and wraps around, ONNX does neither.

Small integers are computed in int32 or int64 and cast back: sums, differences and products then
wrap around as NumPy's do, because ONNX's Cast between integers drops the high bits. The table says
what onnxruntime's CPU kernels take, which is less than the standard allows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funct.core import Primitive, common_dtype

__all__ = ["as_boolean", "computing_dtype", "operand_dtypes", "result_dtype", "value_inputs"]

DType = np.dtype[Any]

_BOOL, _INT64, _FLOAT32 = np.dtype(bool), np.dtype(np.int64), np.dtype(np.float32)

_AS_BOOLEAN = {
    "Add": "Or", "Mul": "And", "Max": "Or", "Min": "And", "BitwiseAnd": "And", "BitwiseOr": "Or",
    "BitwiseXor": "Xor", "BitwiseNot": "Not", "Abs": "Identity", "Floor": "Identity",
    "Ceil": "Identity", "Round": "Identity",
}  # fmt: skip
_ON_WHOLE_NUMBERS = {"Floor": "Identity", "Ceil": "Identity", "Round": "Identity"}

_WIDE = ("int32", "int64")
_ORDERED = ("int8", "uint8", "int32", "int64", "uint32", "uint64")
_NUMBERS = ("int16", "uint16", *_ORDERED)
_INTEGERS = {
    "Max": _ORDERED, "Min": _ORDERED, "Pow": _WIDE, "Less": _NUMBERS, "LessOrEqual": _NUMBERS,
    "Greater": _NUMBERS, "GreaterOrEqual": _NUMBERS, "Neg": ("int8", "int16", *_WIDE),
    "ReduceSum": _WIDE, "ReduceProd": _WIDE, "CumSum": _WIDE, "Einsum": _WIDE,
    "ReduceMax": ("int8", "uint8", *_WIDE), "ReduceMin": ("int8", "uint8", *_WIDE),
    "ArgMax": ("int8", "uint8", *_WIDE), "ArgMin": ("int8", "uint8", *_WIDE),
    "TopK": ("int8", "uint8", *_WIDE), "Pad": ("bool", *_ORDERED), "MatMul": _WIDE,
    "Where": ("uint8", *_WIDE), "Sub": _NUMBERS, "Sign": _NUMBERS,
}  # fmt: skip

# Exact modulo 2**64 or a mere choice: uint64 may pass through int64.
_MODULAR = {"Neg", "ReduceSum", "ReduceProd", "CumSum", "Einsum", "MatMul", "Where", "Pad"}

_NO_BFLOAT16 = {
    "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Round",
    "TopK", "Einsum", "Conv", "ConvTranspose", "MaxPool", "AveragePool",
}  # fmt: skip

_TESTS = {
    "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not", "IsNaN",
    "IsInf",
}  # fmt: skip
_LOGIC = {"And", "Or", "Xor", "Not"}
_COUNTS = {"Shape", "Size", "ArgMax", "ArgMin", "NonZero"}
_ONE_VALUE = {
    "ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "CumSum", "ArgMax", "ArgMin",
    "TopK",
}  # fmt: skip


def as_boolean(op_type: str, dtype: DType) -> str:
    """The operator that does on this dtype what op_type does on floating numbers."""
    if dtype == _BOOL:
        return _AS_BOOLEAN.get(op_type, op_type)
    return _ON_WHOLE_NUMBERS.get(op_type, op_type) if dtype.kind in "iu" else op_type


def computing_dtype(op_type: str, dtype: DType) -> DType:
    """The dtype in which to compute op_type on values of dtype."""
    if dtype.name == "bfloat16":
        return _FLOAT32 if op_type in _NO_BFLOAT16 else dtype
    if dtype.kind not in "iub":
        return dtype
    if op_type in ("IsNaN", "IsInf"):
        return _FLOAT32
    native = _INTEGERS.get(op_type)
    if native is None or dtype.name in native:
        return dtype
    if dtype == np.uint64:
        return _INT64 if op_type in _MODULAR else dtype
    return _INT64 if dtype == np.uint32 else np.dtype(np.int32)


def value_inputs(op_type: str, count: int) -> tuple[int, ...]:
    """Which of count inputs hold the values that an operator computes on; the rest are indices."""
    if op_type == "Where":
        return (1, 2)
    if op_type == "Pad":
        return (0, 2)
    return (0,) if op_type in _ONE_VALUE else tuple(range(count))


def result_dtype(op_type: str, inputs: list[DType], to: DType | None) -> DType:
    """Dtype of an operator's first output. to: its attribute of that name, where it has one."""
    if to is not None:
        return to
    if op_type in _TESTS:
        return _BOOL
    if op_type in _COUNTS:
        return _INT64
    if op_type == "QuantizeLinear":
        return inputs[2] if len(inputs) > 2 else np.dtype(np.uint8)
    if op_type in ("ConvInteger", "MatMulInteger"):
        return np.dtype(np.int32)
    return inputs[1] if op_type in ("Where", "DequantizeLinear") else inputs[0]


def operand_dtypes(prim: Primitive, operands: tuple[Any, ...], result: DType) -> list[DType]:
    """What NumPy converts the operands of an elementwise primitive to before it computes."""
    count = len(operands)
    if prim.name == "where":
        return [_BOOL, result, result]
    if result != _BOOL:
        return [result] * count
    if isinstance(prim.onnx, str) and prim.onnx in _LOGIC:
        return [_BOOL] * count
    return [_promoted(operands)] * count


def _promoted(operands: tuple[Any, ...]) -> DType:
    known = [a.dtype for a in operands if hasattr(a, "dtype")]
    numbers = [a for a in operands if not hasattr(a, "dtype")]
    dtype: DType = np.result_type(common_dtype(*known), *numbers)
    if dtype.kind in "iu":
        span = np.iinfo(dtype)
        if not all(span.min <= n <= span.max for n in numbers):
            return _INT64  # NumPy compares with an integer that does not fit by value
    return dtype
