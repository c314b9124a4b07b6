"""What a value, a level, a rule and a primitive are. Imports no op and no Tensor."""

from funct.core.dtypes import FLOATING as FLOATING
from funct.core.dtypes import INEXACT as INEXACT
from funct.core.dtypes import NARROW as NARROW
from funct.core.dtypes import NARROW_INTEGERS as NARROW_INTEGERS
from funct.core.dtypes import WIDE as WIDE
from funct.core.dtypes import common_dtype as common_dtype
from funct.core.dtypes import in_wide as in_wide
from funct.core.dtypes import narrow_of as narrow_of
from funct.core.dtypes import narrow_operands as narrow_operands
from funct.core.dtypes import product_dtype as product_dtype
from funct.core.dtypes import product_in_wide as product_in_wide
from funct.core.foreign import ask as ask
from funct.core.level import Level as Level
from funct.core.level import bind as bind
from funct.core.level import bind1 as bind1
from funct.core.level import bind2 as bind2
from funct.core.level import bind_region as bind_region
from funct.core.level import expect_below as expect_below
from funct.core.level import ground_level as ground_level
from funct.core.level import handed_on as handed_on
from funct.core.level import set_ground as set_ground
from funct.core.level import top_level as top_level
from funct.core.level import usable as usable
from funct.core.open_number import OpenNumber as OpenNumber
from funct.core.open_number import Sheet as Sheet
from funct.core.open_number import closed as closed
from funct.core.open_number import dtype_beside as dtype_beside
from funct.core.primitive import Lowering as Lowering
from funct.core.primitive import OnnxWriter as OnnxWriter
from funct.core.primitive import Primitive as Primitive
from funct.core.primitive import Sample as Sample
from funct.core.primitive import ShapeDtype as ShapeDtype
from funct.core.primitive import Shared as Shared
from funct.core.primitive import catalogue as catalogue
from funct.core.primitive import enter as enter
from funct.core.primitive import join as join
from funct.core.primitive import lookup as lookup
from funct.core.primitive import variant as variant
from funct.core.region import Met as Met
from funct.core.region import Region as Region
from funct.core.rule import Absent as Absent
from funct.core.rule import Derived as Derived
from funct.core.rule import Diagonal as Diagonal
from funct.core.rule import Joint as Joint
from funct.core.rule import Linear as Linear
from funct.core.rule import Pair as Pair
from funct.core.rule import Rule as Rule
from funct.core.size import Size as Size
from funct.core.size import SizeScope as SizeScope
from funct.core.size import is_one as is_one
from funct.core.size import larger as larger
from funct.core.size import no_capture as no_capture
from funct.core.size import open_shape as open_shape
from funct.core.size import size_values as size_values
from funct.core.size import smaller as smaller
from funct.core.value import Number as Number
from funct.core.value import Operand as Operand
from funct.core.value import Shape as Shape
from funct.core.value import Value as Value

__all__ = [
    "FLOATING", "INEXACT", "NARROW", "NARROW_INTEGERS", "WIDE", "Absent", "Derived", "Diagonal",
    "Joint", "Level", "Linear",
    "Lowering", "Met", "Number", "OnnxWriter", "OpenNumber", "Operand", "Pair", "Primitive",
    "Region",
    "Rule", "Sample",
    "Shape", "ShapeDtype", "Size", "SizeScope", "Value", "ask", "bind", "bind1", "bind2",
    "bind_region",
    "catalogue", "common_dtype", "enter", "expect_below", "ground_level", "handed_on",
    "in_wide", "is_one", "join", "larger", "lookup",
    "narrow_of", "narrow_operands", "no_capture", "open_shape", "product_dtype",
    "product_in_wide",
    "set_ground", "size_values", "smaller", "top_level", "usable", "variant",
]  # fmt: skip
