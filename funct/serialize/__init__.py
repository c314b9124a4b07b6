"""Files: state as safetensors, programs as one container. Nothing is ever unpickled."""

from funct.serialize.state import load as load
from funct.serialize.state import save as save
from funct.serialize.whole_file import write_whole as write_whole

__all__ = ["load", "save", "write_whole"]
