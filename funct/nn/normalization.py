"""Batch normalisation layers: BatchNorm1d, BatchNorm2d."""

from __future__ import annotations

from typing import Any, ClassVar

import funct.array as xp
from funct.array import Tensor
from funct.errors import ShapeError
from funct.nn import functional
from funct.nn.module import Module, buffer, static

__all__ = ["BatchNorm1d", "BatchNorm2d"]


class _BatchNorm(Module):
    """What batch normalisation of any rank shares."""

    ranks: ClassVar[tuple[int, ...]]
    layouts: ClassVar[str]

    num_features: int = static()
    eps: float = static()
    momentum: float | None = static()
    affine: bool = static()
    track_running_stats: bool = static()
    training: bool = static()
    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None = buffer()
    running_var: Tensor | None = buffer()
    num_batches_tracked: Tensor | None = buffer()

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, *, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        def filled(value: float, wanted: bool) -> Any:
            return xp.full((num_features,), value, dtype=dtype) if wanted else None

        tracked = track_running_stats
        self.__attrs_init__(
            num_features, eps, momentum, affine, tracked, True, filled(1.0, affine),
            filled(0.0, affine), filled(0.0, tracked), filled(1.0, tracked),
            xp.asarray(0, dtype=xp.int64) if tracked else None,
        )  # fmt: skip

    @property
    def keeps_state(self) -> bool:
        """Whether a call returns (y, layer)."""
        return self.training and self.running_mean is not None

    def __call__(self, x: Any) -> Any:
        """x normalised; in training (y, the layer with its new running statistics).

        Without running statistics it returns y alone, normalised by the batch, in both modes.
        Raises: ShapeError: when rank or channels do not fit, or training has one value per channel.
        """
        self._check(x)
        if not self.keeps_state:
            by_batch = self.training or self.running_mean is None
            return functional.batch_norm(
                x, None if by_batch else self.running_mean, None if by_batch else self.running_var,
                self.weight, self.bias, by_batch, 0.0, self.eps,
            )  # fmt: skip
        count = self.num_batches_tracked + 1  # type: ignore[operator]
        y, mean, var = functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, True,
            self._momentum(count), self.eps,
        )  # fmt: skip
        return y, self.evolve(running_mean=mean, running_var=var, num_batches_tracked=count)

    def _momentum(self, count: Any) -> Any:
        """Weight of the new value; None in the record stands for the cumulative mean."""
        if self.momentum is not None:
            return self.momentum
        return 1.0 / xp.astype(count, self.running_mean.dtype)  # type: ignore[union-attr]

    def _check(self, x: Any) -> None:
        name = type(self).__name__
        if len(x.shape) not in self.ranks:
            raise ShapeError(f"{name}: x must have shape {self.layouts}, got {x.shape}")
        if x.shape[1] != self.num_features:
            raise ShapeError(
                f"{name}: x must have {self.num_features} channels on axis 1, got {x.shape}"
            )


class BatchNorm1d(_BatchNorm):
    """Normalise each feature of (N, C) or each channel of (N, C, L) over everything else.

    Args: num_features: C. eps: added to the variance. momentum: weight of the new value in the
    running statistics; None: cumulative mean. affine: learn weight and bias. track_running_stats:
    False normalises by the batch in both modes. dtype: of parameters and statistics.
    Notes: in training a call returns (y, layer), and `nn.eval_mode(layer)` then uses the
    statistics.
    Source: Ioffe, Szegedy 2015, arXiv:1502.03167; torch.nn.BatchNorm1d.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> layer = nn.BatchNorm1d(1)
        >>> y, layer = layer(xp.asarray([[1.0], [3.0]], dtype=xp.float32))
        >>> layer.running_mean.tolist() == [xp.asarray(0.2, dtype=xp.float32).item()]
        True
    """

    ranks = (2, 3)
    layouts = "(N, C) or (N, C, L)"


class BatchNorm2d(_BatchNorm):
    """Normalise each channel of (N, C, H, W) over everything else.

    Args, Notes: as `BatchNorm1d`.
    Source: Ioffe, Szegedy 2015, arXiv:1502.03167; torch.nn.BatchNorm2d.
    """

    ranks = (4,)
    layouts = "(N, C, H, W)"
