"""From a `Writer` to a checked `ModelProto` and to a file. The one place that imports onnx."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funct.core import ShapeDtype
from funct.errors import ExportError, MissingExtraError
from funct.export.onnx_writer import OnnxNode, Writer
from funct.serialize import write_whole

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["ModelHeader", "build_model", "load_onnx", "write_model"]

FIRST_OPSET = 18  # reductions take their axes as an input, Shape a range, Scatter a reduction

_LIMIT = 2**31 - 1  # protobuf's, for one message

_ENUMS = {
    "bool": "BOOL", "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
    "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
    "float16": "FLOAT16", "float32": "FLOAT", "float64": "DOUBLE", "bfloat16": "BFLOAT16",
    "float8_e4m3fn": "FLOAT8E4M3FN", "float8_e5m2": "FLOAT8E5M2", "int4": "INT4", "uint4": "UINT4",
    "complex64": "COMPLEX64", "complex128": "COMPLEX128",
}  # fmt: skip


@attrs.frozen
class ModelHeader:
    """What a model says about itself."""

    name: str
    opset: int
    version: str
    metadata: Mapping[str, str]


def load_onnx() -> Any:
    """The onnx package; MissingExtraError names the extra that installs it."""
    try:
        onnx = import_module("onnx")
        for part in ("checker", "helper", "numpy_helper"):
            import_module(f"onnx.{part}")
    except ImportError:
        raise MissingExtraError(
            "to_onnx: the package onnx is not installed", fix='pip install "funct[onnx]"'
        ) from None
    return onnx


def check_opset(onnx: Any, opset: Any) -> None:
    """Raise ExportError for an opset that the lowerings or the installed onnx do not know."""
    newest = onnx.defs.onnx_opset_version()
    if not isinstance(opset, int) or not FIRST_OPSET <= opset <= newest:
        raise ExportError(
            f"to_onnx: opset must be an int from {FIRST_OPSET} to {newest} (the newest of onnx "
            f"{onnx.__version__}), got {opset!r}"
        )


def build_model(
    onnx: Any,
    writer: Writer,
    inputs: Sequence[tuple[str, ShapeDtype]],
    outputs: Sequence[tuple[str, ShapeDtype]],
    header: ModelHeader,
) -> ModelProto:
    """The model, checked with shape inference. inputs, outputs: names and types, in order."""
    helper = onnx.helper
    used = {n for node in writer.nodes for n in node.inputs}
    stored = {n: x for n, x in writer.initializers.items() if n in used}
    ends = {n for n, _ in (*inputs, *outputs)} | set(stored)
    made = {n for node in writer.nodes for n in node.outputs} - ends
    if sum(x.nbytes for x in stored.values()) > _LIMIT:
        raise ExportError("to_onnx: the constants exceed 2 GiB, which one ONNX file cannot hold")
    graph = helper.make_graph(
        [_node(onnx, n) for n in writer.nodes],
        header.name,
        [_value_info(onnx, n, t) for n, t in inputs],
        [_value_info(onnx, n, t) for n, t in outputs],
        [_tensor(onnx, n, x) for n, x in stored.items()],
        value_info=[_value_info(onnx, n, t) for n, t in writer.infos.items() if n in made],
    )
    opsets = [helper.make_opsetid("", header.opset)]
    model = helper.make_model(
        graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="funct", producer_version=header.version,
    )  # fmt: skip
    helper.set_model_props(model, dict(header.metadata))
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # the checker has several exception classes without a public base
        raise ExportError(f"to_onnx: onnx refuses the model: {error}") from error
    return model


def _enum(onnx: Any, dtype: np.dtype[Any]) -> int:
    return int(getattr(onnx.TensorProto, _ENUMS[dtype.name]))


def _value_info(onnx: Any, name: str, aval: ShapeDtype) -> Any:
    dims = [n if isinstance(n, int) else str(n) for n in aval.shape]
    return onnx.helper.make_tensor_value_info(name, _enum(onnx, aval.dtype), dims)


def _tensor(onnx: Any, name: str, x: np.ndarray[Any, Any]) -> Any:
    tensor = onnx.numpy_helper.from_array(np.ascontiguousarray(x).reshape(x.shape), name)
    return tensor


def _node(onnx: Any, node: OnnxNode) -> Any:
    attributes = {
        k: _enum(onnx, v) if isinstance(v, np.dtype) else v for k, v in node.attributes.items()
    }
    return onnx.helper.make_node(
        node.op_type,
        node.inputs,
        node.outputs,
        name=node.name,
        doc_string=node.doc or None,
        **attributes,
    )


def write_model(model: ModelProto, path: str | os.PathLike[str]) -> None:
    """Write beside `path`, then rename: a reader sees the old file or the whole new one."""
    write_whole(path, [model.SerializeToString(deterministic=True)])
