"""Chapter: Airy functions and their derivatives, DLMF chapter 9: w'' = z w."""

from __future__ import annotations

from typing import Any

from funct import ops
from funct.core import Operand, Value
from funct.kernels.special import functions as kernels
from funct.ops.samples import reals
from funct.ops.special.room import room

__all__ = ["airy_ai", "airy_aip", "airy_bi", "airy_bip"]

_ANY = reals(complex_too=True)


def _part(k: int) -> Any:
    return kernels.keep_dtype(lambda z: kernels.find("airy")(z)[k])


def _airy_ai_rule(g: Value, z: Value) -> Value:
    return g * ops.special.airy_aip(z)


@room(_part(0), _airy_ai_rule, samples=_ANY)
def airy_ai(z: Operand, /) -> Value:
    """Airy function Ai."""


def _airy_aip_rule(g: Value, z: Value) -> Value:
    return g * (z * ops.special.airy_ai(z))


@room(_part(1), _airy_aip_rule, samples=_ANY)
def airy_aip(z: Operand, /) -> Value:
    """Derivative of Ai."""


def _airy_bi_rule(g: Value, z: Value) -> Value:
    return g * ops.special.airy_bip(z)


@room(_part(2), _airy_bi_rule, samples=_ANY)
def airy_bi(z: Operand, /) -> Value:
    """Airy function Bi."""


def _airy_bip_rule(g: Value, z: Value) -> Value:
    return g * (z * ops.special.airy_bi(z))


@room(_part(3), _airy_bip_rule, samples=_ANY)
def airy_bip(z: Operand, /) -> Value:
    """Derivative of Bi."""
