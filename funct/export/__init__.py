"""Programs that leave the process: captured, saved, and written as ONNX."""

from funct.export.dynamic_shapes import Dim as Dim
from funct.export.program import export as export
from funct.export.to_onnx import to_onnx as to_onnx
from funct.graph.program import ExportedProgram as ExportedProgram
from funct.serialize import load_program as load
from funct.serialize import save_program as save

__all__ = ["Dim", "ExportedProgram", "export", "load", "save", "to_onnx"]
