"""Files: state as safetensors, programs as one container. Nothing is ever unpickled."""

from funct.serialize.whole_file import write_whole as write_whole

__all__ = ["write_whole"]
