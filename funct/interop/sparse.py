"""Sparse matrices of other libraries under the transforms: products, and derivatives in entries."""

from __future__ import annotations

from typing import Any, Self

import attrs
import numpy as np

from funct import ops
from funct.array.conversion import asarray, promoted
from funct.array.tensor import Array, Tensor
from funct.errors import DTypeError, ShapeError
from funct.kernels.linalg.csr import product
from funct.tree import register, static_field

__all__ = ["CSR"]


def _tensor(x: Any) -> Any:
    return asarray(x)


@register
@attrs.frozen(eq=False, repr=False)
class CSR:
    """A matrix compressed by rows, as `scipy.sparse.csr_array`; `A @ x` and `A.T @ x` are dense.

    Args: data: (p,), the entries in the order of their rows, real or complex. indices: (p,)
    integers, their columns. indptr: (m + 1,) integers, where each row begins. shape: (m, n).
    A pytree, whose leaves are data, indices and indptr; derivatives in data are computed at the
    entries alone. Entries of one place add up. x @ A is (A.T @ x.T).T.
    Raises: DTypeError, ShapeError: for leaves that fit no matrix of that shape; a product raises
    IndexOutOfBoundsError for a column that the matrix has not.
    Example:
        >>> import funct as ft
        >>> import funct.array as xp
        >>> from funct.interop import CSR
        >>> a = CSR(xp.asarray([1.0, 2.0, 3.0]), [0, 2, 1], [0, 2, 3], (2, 3))
        >>> (a @ xp.asarray([1.0, 10.0, 100.0])).tolist()
        [201.0, 30.0]
        >>> ft.grad(lambda a: xp.sum(a @ xp.ones(3)), allow_int=True)(a).data.tolist()
        [1.0, 1.0, 1.0]

    Source: JAX `experimental.sparse.CSR`, SciPy `sparse.csr_array`.
    """

    data: Any = attrs.field(converter=_tensor)
    indices: Any = attrs.field(converter=_tensor)
    indptr: Any = attrs.field(converter=_tensor)
    shape: tuple[Any, Any] = static_field(converter=tuple)
    transposed: bool = static_field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        for name, kinds in (("data", "iufcV"), ("indices", "iu"), ("indptr", "iu")):
            leaf = getattr(self, name)
            if leaf.dtype.kind not in kinds:
                raise DTypeError(f"CSR: {name} must be numbers of another kind, got {leaf.dtype}")
            if len(leaf.shape) != 1:
                raise ShapeError(f"CSR: {name} must be 1-D, got shape {leaf.shape}")
        rows = self.shape[1 if self.transposed else 0]
        if self.data.shape != self.indices.shape or self.indptr.shape[0] != rows + 1:
            raise ShapeError(
                f"CSR: a matrix {self.shape} has as many indices as entries and a start for each "
                f"row and the end, got {self.data.shape}, {self.indices.shape} and "
                f"{self.indptr.shape}"
            )

    @classmethod
    def from_scipy_sparse(cls, matrix: Any) -> Self:
        """Any matrix or array of scipy.sparse."""
        rows = matrix.tocsr()
        return cls(rows.data, rows.indices, rows.indptr, rows.shape)

    @classmethod
    def fromdense(cls, x: Any) -> Self:
        """The elements of a matrix that are not 0; which they are is asked of its values."""
        x = asarray(x)
        raw = x.concrete()
        at = [np.asarray(i) for i in np.nonzero(raw)]
        flat = ops.reshape(x, (raw.size,))
        places = asarray(at[0] * raw.shape[1] + at[1])
        starts = np.concatenate(([0], np.cumsum(np.bincount(at[0], minlength=raw.shape[0]))))
        return cls(ops.take(flat, places, 0), at[1], starts, raw.shape)

    @property
    def T(self) -> Self:
        """The transpose, of the same leaves."""
        return attrs.evolve(self, shape=self.shape[::-1], transposed=not self.transposed)

    def todense(self) -> Tensor:
        """The matrix with its zeros."""
        eye = asarray(np.eye(self.shape[1], dtype=self.data.dtype))
        dense: Tensor = self @ eye
        return dense

    def __matmul__(self, x: Any) -> Any:
        x = asarray(x)
        shape, own, data = x.shape, self.shape, self.data
        if len(shape) not in (1, 2) or shape[0] != own[1]:
            raise ShapeError(f"CSR: {own} @ x needs x ({own[1]}, ...), got {shape}")
        n, at = own[0 if self.transposed else 1], (self.indices, self.indptr)
        if data.__class__ is x.__class__ is at[0].__class__ is at[1].__class__ is Array:
            made = product(data.data, x.data, at[0].data, at[1].data, n, self.transposed)
            if made is not None:
                return ops.fast.wrap(made)
        if data.dtype is not x.dtype and data.dtype != x.dtype:
            data, x = promoted([data, x])
        wide = ops.reshape(x, (shape[0], 1)) if len(shape) == 1 else x
        y = ops.sparse_matmul(data, wide, *at, n, self.transposed)
        return ops.reshape(y, (y.shape[0],)) if len(shape) == 1 else y

    def __repr__(self) -> str:
        return f"CSR({self.shape}, {self.data.shape[0]} entries, {self.data.dtype})"
