"""Devices: opaque values that compare with each other and with their names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from funct.device.places import find_place, known_places
from funct.errors import ArgumentError, MissingExtraError, UnsupportedOperandError
from funct.ops.refusals import shown

__all__ = ["CPU", "Device", "as_device", "check_device", "devices", "placed"]

F = TypeVar("F", bound=Callable[..., Any])


class Device(Struct, frozen=True, eq=False):
    """A place where elements lie. It equals its name: `x.device == "cpu"`.

    Example:
        >>> import funct.array as xp
        >>> xp.zeros(2).device == "cpu", xp.zeros(2).device
        (True, cpu)
    """

    name: str

    def __eq__(self, other: object) -> bool:
        return self.name == (other.name if isinstance(other, Device) else other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


CPU = Device("cpu")


def devices() -> tuple[Device, ...]:
    """Every device of the machine, the host first."""
    return (CPU, *[Device(place.name) for place in known_places()])


def as_device(function: str, device: Any) -> Device:
    """The device that `device` names, None for the default one; else an error."""
    if device is None:
        return CPU
    name = device.name if isinstance(device, Device) else device
    if not isinstance(name, str):
        raise UnsupportedOperandError(
            f"{function}: device must be a Device, its name or None, got {shown(device)}"
        )
    if name == "cpu":
        return CPU
    try:
        place = find_place(name)
    except MissingExtraError as error:
        raise MissingExtraError(f"{function}: {error.what}", fix=error.fix) from None
    except ArgumentError as error:
        raise ArgumentError(f"{function}: {error.what}") from None
    if place is None:
        known = ", ".join(map(str, devices()))
        raise ArgumentError(f"{function}: there is no device {name!r}; the devices are: {known}")
    return Device(place.name)


def check_device(function: str, device: Any) -> None:
    """Refuse what names no device."""
    if device is not None and device is not CPU:
        as_device(function, device)


def placed(fun: F) -> F:
    """Let a function that makes arrays on the host make them on any `device`."""
    name = fun.__name__

    @functools.wraps(fun)
    def call(*args: Any, device: Any = None, **options: Any) -> Any:
        if device is None or device is CPU:
            return fun(*args, **options)
        target = as_device(name, device)
        return fun(*args, **options).to_device(target)

    return call  # type: ignore[return-value]
