"""Does it obey the rules? Derivatives, purity, and every law of a primitive, checked by running."""

from funct.check.grads import check_grads as check_grads
from funct.check.primitive import check_primitive as check_primitive
from funct.transforms.compiled.purity import check_pure as check_pure

__all__ = ["check_grads", "check_primitive", "check_pure"]
