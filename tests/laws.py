"""The laws that tests apply: those of the package, under the name that tests use."""

from funct.check.laws import (
    STEP,
    check_aval,
    check_batch,
    check_derivatives,
    check_jit,
    check_nesting,
    check_purity,
    close,
    inner,
    lanes,
    noise,
    raw,
    restrict,
    rounded_alike,
    same,
    varying,
)

__all__ = [
    "STEP", "check_aval", "check_batch", "check_derivatives", "check_jit", "check_nesting",
    "check_purity", "close", "inner", "lanes", "noise", "raw", "restrict", "rounded_alike", "same",
    "varying",
]  # fmt: skip
