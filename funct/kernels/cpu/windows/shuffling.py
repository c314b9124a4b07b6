"""Channels as pixels and back, of few elements: one call, where NumPy copies two by two.

r² channels beside each other are r × r pixels. back: whether pixels become channels.
"""

from __future__ import annotations

from typing import Any

from funct.kernels.cpu.loops import kernel

__all__ = ["few_pixels", "few_pixels_last"]


@kernel
def few_pixels(x: Any, y: Any, planes: int, r: int, h: int, w: int, back: bool) -> None:
    """Between (planes, r, r, h, w) and (planes, h, r, w, r)."""
    for p in range(planes):
        for i in range(r):
            for j in range(r):
                for a in range(h):
                    channel = (((p * r + i) * r + j) * h + a) * w
                    pixel = ((p * h + a) * r + i) * w * r + j
                    for b in range(w):
                        if back:
                            y[channel + b] = x[pixel + b * r]
                        else:
                            y[pixel + b * r] = x[channel + b]


@kernel
def few_pixels_last(x: Any, y: Any, rows: int, r: int, w: int, c: int) -> None:
    """From (rows, w, c, r, r) to (rows, r, w, r, c)."""
    for p in range(rows):
        for b in range(w):
            for i in range(r):
                for j in range(r):
                    channel = (p * w + b) * c * r * r + i * r + j
                    pixel = (((p * r + i) * w + b) * r + j) * c
                    for k in range(c):
                        y[pixel + k] = x[channel + k * r * r]
