"""Looking into functions under transforms."""

from funct.transforms.callback import debug_print as print
from funct.transforms.watching.intercept import trace_dispatch as trace_dispatch

__all__ = ["print", "trace_dispatch"]
