"""`xp.linalg`: the linear algebra extension of the Array API, and functions of NumPy's and SciPy's.

A matrix is the last two axes of an array, all before them is a stack. Floating dtypes of single and
double precision, real or complex; float32 stays float32. Shapes that do not fit raise ShapeError, a
matrix that is singular or not positive definite where it must not be raises LinAlgError.

Every function has derivatives of every order. Where there is none - equal eigenvalues, the norm of
0 - the result is finite: conventions stand with the functions, reasons in funct/ops/matrices.py.
"""

from funct.array.direct import entrances as _entrances
from funct.array.linalg.decompositions import cholesky as cholesky
from funct.array.linalg.decompositions import eig as eig
from funct.array.linalg.decompositions import eigh as eigh
from funct.array.linalg.decompositions import eigvals as eigvals
from funct.array.linalg.decompositions import eigvalsh as eigvalsh
from funct.array.linalg.decompositions import lu as lu
from funct.array.linalg.decompositions import qr as qr
from funct.array.linalg.decompositions import svd as svd
from funct.array.linalg.decompositions import svdvals as svdvals
from funct.array.linalg.norms import cond as cond
from funct.array.linalg.norms import matrix_norm as matrix_norm
from funct.array.linalg.norms import matrix_rank as matrix_rank
from funct.array.linalg.norms import norm as norm
from funct.array.linalg.norms import vector_norm as vector_norm
from funct.array.linalg.solving import cho_factor as cho_factor
from funct.array.linalg.solving import cho_solve as cho_solve
from funct.array.linalg.solving import det as det
from funct.array.linalg.solving import inv as inv
from funct.array.linalg.solving import lstsq as lstsq
from funct.array.linalg.solving import pinv as pinv
from funct.array.linalg.solving import slogdet as slogdet
from funct.array.linalg.solving import solve as solve
from funct.array.linalg.solving import solve_triangular as solve_triangular
from funct.array.linalg.structure import block_diag as block_diag
from funct.array.linalg.structure import cross as cross
from funct.array.linalg.structure import diagonal as diagonal
from funct.array.linalg.structure import matrix_power as matrix_power
from funct.array.linalg.structure import multi_dot as multi_dot
from funct.array.linalg.structure import toeplitz as toeplitz
from funct.array.linalg.structure import trace as trace
from funct.array.manipulation import matrix_transpose as matrix_transpose
from funct.array.products import matmul as matmul
from funct.array.products import outer as outer
from funct.array.products import tensordot as tensordot
from funct.array.products import vecdot as vecdot
from funct.ops import expm as expm

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "cond", "cross", "det", "diagonal", "eig",
    "eigh", "eigvals", "eigvalsh", "expm", "inv", "lstsq", "lu", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr",
    "slogdet", "solve", "solve_triangular", "svd", "svdvals", "tensordot", "toeplitz", "trace",
    "vecdot", "vector_norm",
]  # fmt: skip

_entrances(globals())
