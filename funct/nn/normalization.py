"""Normalisation layers: over the batch, over features, over groups of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import funct.array as xp
from funct.array import Tensor
from funct.errors import ArgumentError, ShapeError
from funct.nn import functional
from funct.nn.functional.arguments import shape_of, spatial_letters, unbatched
from funct.nn.module import Module, buffer, static

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "LayerNorm", "LocalResponseNorm", "RMSNorm",
]  # fmt: skip


class _Tracking(Module):
    """What layers with running statistics of their channels share."""

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

    def _start(
        self, num_features: int, eps: float, momentum: float | None, affine: bool, tracked: bool,
        bias: bool, dtype: Any,
    ) -> None:  # fmt: skip
        def filled(value: float, wanted: bool) -> Any:
            return xp.full((num_features,), value, dtype=dtype) if wanted else None

        self.__attrs_init__(
            num_features, eps, momentum, affine, tracked, True, filled(1.0, affine),
            filled(0.0, affine and bias), filled(0.0, tracked), filled(1.0, tracked),
            xp.asarray(0, dtype=xp.int64) if tracked else None,
        )  # fmt: skip

    @property
    def keeps_state(self) -> bool:
        """Whether a call returns (y, layer)."""
        return self.training and self.running_mean is not None


class _BatchNorm(_Tracking):
    """What batch normalisation of any rank shares."""

    ranks: ClassVar[tuple[int, ...]]
    layouts: ClassVar[str]

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, *, bias: bool = True,
        dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        self._start(num_features, eps, momentum, affine, track_running_stats, bias, dtype)

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
        name, shape = type(self).__name__, shape_of(x)
        if len(shape) not in self.ranks:
            raise ShapeError(f"{name}: x must have shape {self.layouts}, got {shape}")
        if shape[1] != self.num_features:
            raise ShapeError(
                f"{name}: x must have {self.num_features} channels on axis 1, got {shape}"
            )


class BatchNorm1d(_BatchNorm):
    """Normalise each feature of (N, C) or each channel of (N, C, L) over everything else.

    Args: num_features: C. eps: added to the variance. momentum: weight of the new value in the
    running statistics; None: cumulative mean. affine: learn weight and, with bias, bias.
    track_running_stats: False normalises by the batch in both modes. dtype: of parameters and
    statistics.
    Notes: in training a call returns (y, layer), and `nn.eval_mode(layer)` then uses the
    statistics.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> layer = nn.BatchNorm1d(1)
        >>> y, layer = layer(xp.asarray([[1.0], [3.0]], dtype=xp.float32))
        >>> layer.running_mean.tolist() == [xp.asarray(0.2, dtype=xp.float32).item()]
        True

    Source: Ioffe, Szegedy 2015, arXiv:1502.03167; torch.nn.BatchNorm1d.
    """

    ranks = (2, 3)
    layouts = "(N, C) or (N, C, L)"


class BatchNorm2d(_BatchNorm):
    """Normalise each channel of (N, C, H, W) over everything else.

    Args, Notes: as `BatchNorm1d`.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> from funct import nn
        >>> x = ft.random.normal(ft.random.key(0), shape=(8, 3, 4, 4), dtype=xp.float32)
        >>> y, layer = nn.BatchNorm2d(3)(x)  # in training with new running statistics
        >>> bool(xp.all(xp.abs(xp.mean(y, axis=(0, 2, 3))) < 1e-5)), int(layer.num_batches_tracked)
        (True, 1)

    Source: Ioffe, Szegedy 2015, arXiv:1502.03167; torch.nn.BatchNorm2d.
    """

    ranks = (4,)
    layouts = "(N, C, H, W)"


class BatchNorm3d(_BatchNorm):
    """Normalise each channel of (N, C, D, H, W) over everything else.

    Args, Notes: as `BatchNorm1d`.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> layer = nn.eval_mode(nn.BatchNorm3d(3))
        >>> layer(xp.ones((8, 3, 2, 4, 4), dtype=xp.float32)).shape
        (8, 3, 2, 4, 4)

    Source: Ioffe, Szegedy 2015, arXiv:1502.03167; torch.nn.BatchNorm3d.
    """

    ranks = (5,)
    layouts = "(N, C, D, H, W)"


class _InstanceNorm(_Tracking):
    """What instance normalisation of any rank shares."""

    rank: ClassVar[int]

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, *, bias: bool = True, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        self._start(num_features, eps, momentum, affine, track_running_stats, bias, dtype)

    def __call__(self, x: Any) -> Any:
        """x (N, C, *S) or (C, *S) normalised; in training with statistics (y, the new layer).

        Raises: ShapeError: when rank or channels do not fit, or there is one value per channel.
        """
        name, shape = type(self).__name__, shape_of(x)
        missing = self.rank + 2 - len(shape)
        if missing not in (0, 1) or shape[1 - missing] != self.num_features:
            axes = spatial_letters(self.rank)
            raise ShapeError(
                f"{name}: x must have shape (N, {self.num_features}, {axes}) or "
                f"({self.num_features}, {axes}), got {shape}"
            )
        x = xp.expand_dims(x, 0) if missing else x
        by_input = self.training or self.running_mean is None
        out = functional.instance_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, by_input,
            self.momentum, self.eps,
        )  # fmt: skip
        if not self.keeps_state:
            return unbatched(out, bool(missing))
        y, mean, var = out
        return unbatched(y, bool(missing)), self.evolve(running_mean=mean, running_var=var)


class InstanceNorm1d(_InstanceNorm):
    """Normalise each channel of each sample of (N, C, L).

    Args: num_features: C. eps: added to the variance. momentum: weight of the new value in the
    running statistics. affine: learn weight and, with bias, bias. track_running_stats: keep running
    statistics and use them in inference. dtype: of parameters and statistics.
    Notes: with track_running_stats a call in training returns (y, layer). num_batches_tracked stays
    0, as in torch.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> y = nn.InstanceNorm1d(2)(xp.asarray([[[1.0, 3.0], [10.0, 30.0]]]))
        >>> [round(v, 3) for v in xp.ravel(y).tolist()]
        [-1.0, 1.0, -1.0, 1.0]

    Source: Ulyanov, Vedaldi, Lempitsky 2016, arXiv:1607.08022; torch.nn.InstanceNorm1d.
    """

    rank = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalise each channel of each sample of (N, C, H, W). Args, Notes: as `InstanceNorm1d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.InstanceNorm2d(3)(xp.ones((8, 3, 4, 4))).shape
        (8, 3, 4, 4)
    """

    rank = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each sample of (N, C, D, H, W). Args: as `InstanceNorm1d`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.InstanceNorm3d(3)(xp.ones((8, 3, 2, 4, 4))).shape
        (8, 3, 2, 4, 4)
    """

    rank = 3


def _lengths(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(Module):
    """Normalise over the last axes.

    Args: normalized_shape: their lengths, an int for one. eps: added to the variance.
    elementwise_affine: learn weight and, with bias, bias. dtype: of the parameters.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> nn.LayerNorm(2, eps=0.0)(xp.asarray([[1.0, 3.0]])).tolist()
        [[-1.0, 1.0]]

    Source: Ba, Kiros, Hinton 2016, arXiv:1607.06450; torch.nn.LayerNorm.
    """

    normalized_shape: tuple[int, ...] = static()
    eps: float = static()
    elementwise_affine: bool = static()
    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5,
        elementwise_affine: bool = True, bias: bool = True, *, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        shape, learn = _lengths(normalized_shape), elementwise_affine
        self.__attrs_init__(
            shape, eps, learn, xp.ones(shape, dtype=dtype) if learn else None,
            xp.zeros(shape, dtype=dtype) if learn and bias else None,
        )  # fmt: skip

    def __call__(self, x: Any) -> Any:
        """x, same shape. Raises: ShapeError: when x does not end in normalized_shape."""
        return functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """Divide by the root of the mean square over the last axes.

    Args: normalized_shape, elementwise_affine, dtype: as in `LayerNorm`. eps: None is the dtype's
    machine epsilon.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> y = nn.RMSNorm(2)(xp.asarray([1.0, 7.0]))
        >>> [round(v, 3) for v in y.tolist()]
        [0.2, 1.4]

    Source: Zhang, Sennrich 2019, arXiv:1910.07467; torch.nn.RMSNorm.
    """

    normalized_shape: tuple[int, ...] = static()
    eps: float | None = static()
    elementwise_affine: bool = static()
    weight: Tensor | None

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None,
        elementwise_affine: bool = True, *, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        shape = _lengths(normalized_shape)
        weight = xp.ones(shape, dtype=dtype) if elementwise_affine else None
        self.__attrs_init__(shape, eps, elementwise_affine, weight)

    def __call__(self, x: Any) -> Any:
        """x, same shape. Raises: ShapeError: when x does not end in normalized_shape."""
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """Normalise each sample of (N, C, *S) over groups of channels.

    Args: num_groups: divides num_channels, C. eps: added to the variance. affine: learn weight and,
    with bias, bias. dtype: of the parameters.
    Raises: ArgumentError: when num_groups does not divide num_channels.
    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> x = xp.asarray([[[1.0], [3.0], [10.0], [10.0]]])
        >>> [round(v, 3) for v in xp.ravel(nn.GroupNorm(2, 4, eps=1e-4)(x)).tolist()]
        [-1.0, 1.0, 0.0, 0.0]

    Source: Wu, He 2018, arXiv:1803.08494; torch.nn.GroupNorm.
    """

    num_groups: int = static()
    num_channels: int = static()
    eps: float = static()
    affine: bool = static()
    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, *,
        bias: bool = True, dtype: Any = xp.float32,
    ) -> None:  # fmt: skip
        if num_groups < 1 or num_channels % num_groups:
            raise ArgumentError(
                f"GroupNorm: num_groups must divide num_channels={num_channels}, got {num_groups}"
            )
        n = (num_channels,)
        self.__attrs_init__(
            num_groups, num_channels, eps, affine, xp.ones(n, dtype=dtype) if affine else None,
            xp.zeros(n, dtype=dtype) if affine and bias else None,
        )  # fmt: skip

    def __call__(self, x: Any) -> Any:
        """x, same shape. Raises: ShapeError: when the channels do not fit."""
        shape = shape_of(x)
        if len(shape) < 2 or shape[1] != self.num_channels:
            raise ShapeError(
                f"GroupNorm: x must have {self.num_channels} channels on axis 1, got {shape}"
            )
        return functional.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


class LocalResponseNorm(Module):
    """Divide by the size of neighbouring channels; see `functional.local_response_norm`.

    Example:
        >>> import funct.array as xp
        >>> from funct import nn
        >>> y = nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)(xp.ones((1, 3, 1)))
        >>> [round(v, 4) for v in xp.ravel(y).tolist()]
        [0.3333, 0.25, 0.3333]
    """

    size: int = static()
    alpha: float = static(default=1e-4)
    beta: float = static(default=0.75)
    k: float = static(default=1.0)

    def __call__(self, x: Any) -> Any:
        """x (N, C, *S), same shape. Raises: as `functional.local_response_norm`."""
        return functional.local_response_norm(x, self.size, self.alpha, self.beta, self.k)
