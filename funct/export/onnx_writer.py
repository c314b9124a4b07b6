"""`Writer`: what lowerings write to. Plain records of names, nodes and initializers; no onnx here.

Reads best after `core/primitive.py` (OnnxWriter) and `onnx_dtypes.py`; `onnx_model.py` makes
protobuf of it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from funct.core import ShapeDtype, Size
from funct.export.onnx_dtypes import as_boolean, computing_dtype, result_dtype, value_inputs

__all__ = ["OnnxNode", "Writer"]

_INT64 = np.dtype(np.int64)


@attrs.define
class OnnxNode:
    """One ONNX node before it becomes protobuf."""

    op_type: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    name: str
    doc: str


class Writer:
    """Names, nodes and initializers of one ONNX graph.

    symbols: symbolic size -> (input name, axis) where it is read off.
    """

    def __init__(self, symbols: Mapping[str, tuple[str, int]]) -> None:
        self.nodes: list[OnnxNode] = []
        self.initializers: dict[str, np.ndarray[Any, Any]] = {}
        self.infos: dict[str, ShapeDtype] = {}
        self.results: tuple[ShapeDtype, ...] = ()
        self._symbols = symbols
        self._dtypes: dict[str, np.dtype[Any]] = {}
        self._taken: set[str] = set()
        self._constants: dict[Any, str] = {}
        self._sizes: dict[str, str] = {}
        self._scope = ("", "")

    # names --------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """The name, or with a number behind it where it is taken."""
        found, k = name, 1
        while found in self._taken:
            k += 1
            found = f"{name}.{k}"
        self._taken.add(found)
        return found

    def declare(self, name: str, aval: ShapeDtype) -> str:
        """Give a value a type."""
        self.infos[name] = aval
        self._dtypes[name] = aval.dtype
        return name

    def enter(self, name: str, doc: str, results: tuple[ShapeDtype, ...]) -> None:
        """Begin the lowering of one graph node."""
        self._scope = (name, doc)
        self.results = results

    def rename(self, names: Mapping[str, str]) -> None:
        """Give values other names, everywhere."""
        for node in self.nodes:
            node.inputs = [names.get(n, n) for n in node.inputs]
            node.outputs = [names.get(n, n) for n in node.outputs]

    # what lowerings call ------------------------------------------------------------------------

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Append a node with one output and return that output's name."""
        return self.op_many(op_type, 1, *inputs, **attributes)[0]

    def op_many(self, op_type: str, count: int, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        """Append a node with several outputs."""
        at = [k for k in value_inputs(op_type, len(inputs)) if k < len(inputs) and inputs[k]]
        own = self._dtypes[inputs[at[0]]] if at else _INT64
        op_type = as_boolean(op_type, own)
        dtype = computing_dtype(op_type, own)
        if dtype == own:
            return self._append(op_type, count, list(inputs), attributes)
        wide = [self.cast(n, dtype) if k in at else n for k, n in enumerate(inputs)]
        outputs = self._append(op_type, count, wide, attributes)
        kept = self._dtypes[outputs[0]] == dtype  # a test or a count stays what it is
        return (self.cast(outputs[0], own) if kept else outputs[0], *outputs[1:])

    def _append(
        self, op_type: str, count: int, inputs: list[str], attributes: dict[str, Any]
    ) -> tuple[str, ...]:
        scope, doc = self._scope
        outputs = [self.unique(scope or op_type) for _ in range(count)]
        self.nodes.append(OnnxNode(op_type, inputs, outputs, attributes, outputs[0], doc))
        known = [self._dtypes[n] for n in inputs if n]
        self._dtypes[outputs[0]] = result_dtype(op_type, known, attributes.get("to"))
        self._dtypes.update(dict.fromkeys(outputs[1:], _INT64))  # indices of MaxPool and TopK
        return tuple(outputs)

    def cast(self, name: str, dtype: Any) -> str:
        """The value in another dtype; the name itself where it has that dtype already."""
        to = np.dtype(dtype)
        if self._dtypes[name] == to:
            return name
        return self._append("Cast", 1, [name], {"to": to})[0]

    def constant(self, value: Any, dtype: Any = None) -> str:
        """The name of an initializer that holds value."""
        raw = np.asarray(value, dtype)
        key = (raw.dtype.name, raw.shape, raw.tobytes())
        if key not in self._constants:
            label = (
                "_".join(str(v) for v in raw.reshape(-1)[:4].tolist()) if raw.size <= 4 else "array"
            )
            self._constants[key] = self.initializer(f"constant_{label}", raw)
        return self._constants[key]

    def initializer(self, name: str, raw: np.ndarray[Any, Any]) -> str:
        """A new named initializer."""
        name = self.declare(self.unique(name), ShapeDtype(raw.shape, raw.dtype))
        self.initializers[name] = raw
        return name

    def shape_of(self, name: str) -> tuple[Any, ...]:
        """Shape of an operand or a constant, symbolic sizes included."""
        return self.infos[name].shape

    def dtype_of(self, name: str) -> np.dtype[Any]:
        """Dtype of a named value."""
        return self._dtypes[name]

    # sizes --------------------------------------------------------------------------------------

    def dims(self, shape: tuple[Any, ...], *, infer: bool = False) -> str:
        """The name of a 1-D int64 value that holds shape, computed where sizes are symbolic."""
        symbolic = [k for k, n in enumerate(shape) if isinstance(n, Size)]
        if infer and len(symbolic) == 1 and 0 not in shape:  # Reshape forbids -1 beside 0
            shape = tuple([-1 if k in symbolic else n for k, n in enumerate(shape)])
            symbolic = []
        if not symbolic:
            return self.constant(list(shape), _INT64)
        parts = [
            self._size(n) if isinstance(n, Size) else self.constant([n], _INT64) for n in shape
        ]
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def _size(self, size: Size) -> str:
        return self._evaluate(ast.parse(repr(size), mode="eval").body)

    def _evaluate(self, e: ast.expr) -> str:
        """A size's expression as ONNX operators on int64 values of shape (1,); each part once."""
        text = ast.unparse(e)
        if text not in self._sizes:
            self._sizes[text] = self._computed(e)
        return self._sizes[text]

    def _computed(self, e: ast.expr) -> str:
        if isinstance(e, ast.Name):
            name, axis = self._symbols[e.id]
            return self.op("Shape", name, start=axis, end=axis + 1)
        if isinstance(e, ast.Constant):
            return self.constant([e.value], _INT64)
        if isinstance(e, ast.UnaryOp):
            return self.op("Neg", self._evaluate(e.operand))
        if isinstance(e, ast.Call):  # the larger of two
            return self.op("Max", *[self._evaluate(a) for a in e.args])
        assert isinstance(e, ast.BinOp), f"a size is no polynomial: {ast.unparse(e)}"
        x, y = self._evaluate(e.left), self._evaluate(e.right)
        if isinstance(e.op, ast.FloorDiv):  # Div truncates, Mod has the sign of the divisor
            return self.op("Div", self.op("Sub", x, self.op("Mod", x, y)), y)
        return self.op(_SIZE_OPS[type(e.op)], x, y)


_SIZE_OPS: dict[type[ast.operator], str] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Mod: "Mod",
}  # fmt: skip
