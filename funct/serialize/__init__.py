"""Files: state as safetensors, programs as one container. Nothing is ever unpickled."""

from funct.graph.json_form import graph_hash as graph_hash
from funct.graph.size_text import is_symbol_name as is_symbol_name
from funct.serialize.program_file import load_program as load_program
from funct.serialize.program_file import save_program as save_program
from funct.serialize.state import load as load
from funct.serialize.state import save as save
from funct.serialize.whole_file import write_whole as write_whole

__all__ = [
    "graph_hash", "is_symbol_name", "load", "load_program", "save", "save_program",
    "write_whole",
]  # fmt: skip
