"""What NumPy keeps under `numpy.lib`, for clients that ask a namespace for it there."""

from funct.array.lib import stride_tricks as stride_tricks

__all__ = ["stride_tricks"]
