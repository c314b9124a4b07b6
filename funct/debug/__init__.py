"""Looking into functions under transforms."""

from funct.transforms.callback import debug_print as print

__all__ = ["print"]
