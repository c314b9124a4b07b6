"""Programs that leave the process: captured, saved, and written as ONNX."""

from funct.export.program import Dim as Dim
from funct.export.program import export as export
from funct.graph.program import ExportedProgram as ExportedProgram

__all__ = ["Dim", "ExportedProgram", "export"]
