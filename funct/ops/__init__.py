"""One room per primitive, one file per chapter of the Array API. Rules reach other rooms as `ops.name`.

These functions take normal parameters (non-negative axes, tuples); the standard's signatures are in
`funct.array`.
"""

from funct.core import Sample as Sample
from funct.ops import families as families
from funct.ops.convolution import *
from funct.ops.elementwise import *
from funct.ops.families import first_axis as first_axis
from funct.ops.indexing import *
from funct.ops.linalg import *
from funct.ops.logic import *
from funct.ops.manipulation import *
from funct.ops.pooling import *
from funct.ops.random import *
from funct.ops.sorting import *
from funct.ops.statistical import *
