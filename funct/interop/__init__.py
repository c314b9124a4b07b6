"""For code that knows the Array API and not funct: arrays it may write into, and plug-ins.

`rebind` is an Array API namespace of its own; `funct.interop.einops`, imported by name, makes
`einops.rearrange` and its kin take Tensors, `extra.teach` array-api-extra's `at`. `CSR` is a sparse
matrix, SciPy's for one, under the transforms.
"""

from funct.interop import extra as extra
from funct.interop import rebind as rebind
from funct.interop.sparse import CSR as CSR

__all__ = ["CSR", "extra", "rebind"]
