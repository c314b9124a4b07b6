"""For code that knows the Array API and not funct: arrays it may write into, and plug-ins.

`rebind` is an Array API namespace of its own; `funct.interop.einops`, imported by name, makes
`einops.rearrange` and its kin take Tensors.
"""

from funct.interop import rebind as rebind

__all__ = ["rebind"]
