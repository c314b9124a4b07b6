"""Conversions from and to float16 for processors that have none, as LLVM calls them.

LLVM takes them for granted as functions of the compiler's library, which a Python process seldom
has: code that nobody can call would be called at address 0. Results are those of processors that
have the instructions (F16C): nearest, ties to even, once; a NaN keeps its first digits, quiet.
"""

from __future__ import annotations

__all__ = ["NAMES", "TEXT"]

NAMES = ("__extendhfsf2", "__truncsfhf2", "__truncdfhf2")

# Below 2^-14 the sum with 2^28, whose last digit is 2^-24, rounds to whole steps of float16.
TEXT = """
define float @__extendhfsf2(half %h) {
  %short = bitcast half %h to i16
  %bits = zext i16 %short to i32
  %sign0 = and i32 %bits, 32768
  %sign = shl i32 %sign0, 16
  %size0 = and i32 %bits, 32767
  %size = shl i32 %size0, 13
  %normal = add i32 %size, 939524096
  %endless = add i32 %size, 1879048192
  %few0 = add i32 %size, 947912704
  %few1 = bitcast i32 %few0 to float
  %few2 = fsub float %few1, 0x3F10000000000000
  %few = bitcast float %few2 to i32
  %is_few = icmp ult i32 %size0, 1024
  %is_endless = icmp uge i32 %size0, 31744
  %is_nan = icmp ugt i32 %size0, 31744
  %quiet = select i1 %is_nan, i32 4194304, i32 0
  %rest = select i1 %is_endless, i32 %endless, i32 %normal
  %known = select i1 %is_few, i32 %few, i32 %rest
  %signed = or i32 %known, %sign
  %all = or i32 %signed, %quiet
  %x = bitcast i32 %all to float
  ret float %x
}

define half @__truncdfhf2(double %x) {
  %bits = bitcast double %x to i64
  %sign0 = lshr i64 %bits, 48
  %sign = and i64 %sign0, 32768
  %size = and i64 %bits, 9223372036854775807
  %digits = lshr i64 %size, 42
  %odd = and i64 %digits, 1
  %up0 = add i64 %size, 2199023255551
  %up1 = add i64 %up0, %odd
  %up = lshr i64 %up1, 42
  %normal = sub i64 %up, 1032192
  %value = bitcast i64 %size to double
  %sum = fadd double %value, 0x41B0000000000000
  %sum_bits = bitcast double %sum to i64
  %few = sub i64 %sum_bits, 4733283208366391296
  %nan0 = and i64 %digits, 1023
  %nan = or i64 %nan0, 32256
  %is_few = icmp ult i64 %size, 4544132024016830464
  %is_endless = icmp uge i64 %size, 4679237813814689792
  %is_nan = icmp ugt i64 %size, 9218868437227405312
  %small = select i1 %is_few, i64 %few, i64 %normal
  %large = select i1 %is_endless, i64 31744, i64 %small
  %known = select i1 %is_nan, i64 %nan, i64 %large
  %signed = or i64 %known, %sign
  %short = trunc i64 %signed to i16
  %h = bitcast i16 %short to half
  ret half %h
}

define half @__truncsfhf2(float %x) {
  %wide = fpext float %x to double
  %h = call half @__truncdfhf2(double %wide)
  ret half %h
}
"""
