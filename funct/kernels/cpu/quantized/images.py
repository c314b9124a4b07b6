"""Convolutions of images of codes that are one call each: from codes as they lie to codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from funct.kernels.cpu import scratch as memory
from funct.kernels.cpu.quantized.kept import kept
from funct.kernels.cpu.runners import filling

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from funct.kernels.cpu.record import Fields
    from funct.kernels.windows.views import Sizes

__all__ = ["CALL", "Images"]

CALL = ("x", "w", "bias", "y", "scratch")  # the fields that a call fills in


class Images(Struct, frozen=True, eq=False):
    """What is prepared for shapes, and how sums become codes.

    ready: lays out weights, and makes what sums begin with. kind: what that depends on but for
    them. place: of the entry. job: all fields, those of a call open. held: what the job points to.
    """

    ready: Callable[[NDArray[np.int8]], tuple[NDArray[Any], NDArray[np.int32]]]
    kind: Any
    place: int
    fields: Fields
    job: NDArray[np.int64]
    scratch_bytes: int
    shape: Sizes
    dtype: np.dtype[Any]
    held: Any

    def function(self) -> Callable[[NDArray[Any], NDArray[np.int8]], NDArray[Any]]:
        """Codes of the result, of dense codes and of weights, which are kept as they are laid."""
        fill = filling(self.place, self.job, [self.fields.place(name) for name in CALL])
        make = memory.maker(self.shape, self.dtype)

        def run(x: NDArray[Any], w: NDArray[np.int8]) -> NDArray[Any]:
            y = make()
            laid = kept(w, self.kind, self.ready)
            fill(x, *laid, y, memory.scratch(self.scratch_bytes))
            return y

        return run
