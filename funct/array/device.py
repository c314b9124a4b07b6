"""Devices: opaque values that compare with each other and with their names."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

import attrs

from funct.errors import ArgumentError, MissingExtraError, UnsupportedOperandError

__all__ = ["CPU", "Device", "as_device", "check_device"]


@attrs.frozen(eq=False, repr=False)
class Device:
    """A place where elements lie. It equals its name: `x.device == "cpu"`."""

    name: str

    def __eq__(self, other: object) -> bool:
        return self.name == (other.name if isinstance(other, Device) else other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


CPU = Device("cpu")
_CUDA = re.compile(r"cuda(:\d+)?")


def as_device(function: str, device: Any) -> Device:
    """The device that `device` names, None for the default one; else an error."""
    if device is None or device == "cpu":
        return CPU
    if not isinstance(device, str):
        raise UnsupportedOperandError(
            f"{function}: device must be a Device, its name or None, got {device!r}"
        )
    if not _CUDA.fullmatch(device):
        raise ArgumentError(f"{function}: there is no device {device!r}; the devices are: cpu")
    if find_spec("cupy") is None:
        raise MissingExtraError(
            f"{function}: arrays on {device} need CuPy", fix="pip install 'funct[cuda13]'"
        )
    raise ArgumentError(
        f"{function}: CuPy is installed, but arrays on {device} are not implemented yet; "
        "the devices are: cpu"
    )


def check_device(function: str, device: Any) -> None:
    """Refuse a device on which `function` cannot put its result."""
    if device is not None and device is not CPU:
        as_device(function, device)
