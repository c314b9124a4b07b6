"""Run tests as on a processor that this machine is not: with AVX-512, with AVX-VNNI, or without.

    python -m pytest -p tests.wider …    # FUNCT_WIDER=znver5 (if unset), arrowlake, haswell …

Kernels are printed for that processor, with its vectors and instructions. LLVM then makes code for
the processor that is here: it takes vectors apart into those that there are, and an instruction
that is called by name is defined below, lane by lane. So all is tested but the choice of the
machine's own instructions, and the time they take. The code for `haswell`, which has AVX2 and no
more, is its own.
"""

import importlib
import os
import re
import tempfile
from typing import Any

import pytest

from funct.device import llvm

__all__: list[str] = []

_AVX512 = (
    "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd", "avx512vbmi", "avx512vbmi2",
    "avx512vnni", "avx512bf16", "avx512ifma", "avx512bitalg", "avx512vpopcntdq",
)  # fmt: skip
_PROCESSORS = {
    "znver5": (*_AVX512, "avxvnni"),
    "znver4": _AVX512,
    "sapphirerapids": (*_AVX512, "avxvnni", "avx512fp16"),
    "skylake-avx512": _AVX512[:5],
    "arrowlake": ("avxvnni",),
    "haswell": (),
}
_NARROW = "haswell"
_NEWER = ("amx", "avx10", "avx512", "avxvnni", "evex512")  # what it has not begins so

_DECLARED = re.compile(r"^declare (.+) @llvm\.x86\.(avx512[\w.]*)\((.*)\)$", re.MULTILINE)
_ASM = re.compile(r'(%\S+) = call ({.*?}) asm "", ".*?"\((.*)\)$', re.MULTILINE)
_VECTOR = re.compile(r"<(\d+) x (\w+)>")

# What lane {k} of a result is. {n}: how many lanes. {t}, {e}: the vector's type and its element's;
# {i}, {w}: the same of the second operand, {m} of the third. {before}: {k} - 1.
_LANES = {
    "avx512.permvar.": """
  %i{k} = extractelement {i} %1, i32 {k}
  %j{k} = urem {w} %i{k}, {n}
  %v{k} = extractelement {t} %0, {w} %j{k}""",
    "avx512.vpermi2var.": """
  %i{k} = extractelement {i} %1, i32 {k}
  %j{k} = urem {w} %i{k}, {n}
  %p{k} = extractelement {t} %0, {w} %j{k}
  %q{k} = extractelement {t} %2, {w} %j{k}
  %b{k} = and {w} %i{k}, {n}
  %c{k} = icmp ne {w} %b{k}, 0
  %v{k} = select i1 %c{k}, {e} %q{k}, {e} %p{k}""",
    "avx512.mask.scalef.": """
  %p{k} = extractelement {t} %0, i32 {k}
  %n{k} = extractelement {i} %1, i32 {k}
  %v{k} = call {e} @wider.scalef.{e}({e} %p{k}, {e} %n{k})""",
    "avx512.mask.reduce.": """
  %x{k} = extractelement {t} %0, i32 {k}
  %v{k} = call {e} @wider.above_floor.{e}({e} %x{k})""",
    "avx512.mask.getexp.ps": """
  %x{k} = extractelement {t} %0, i32 {k}
  %v{k} = call float @wider.exponent.float(float %x{k})""",
    "avx512.mask.getmant.ps": """
  %x{k} = extractelement {t} %0, i32 {k}
  %v{k} = call float @wider.mantissa.float(float %x{k})""",
    "avx512.rsqrt14.": """
  %x{k} = extractelement {t} %0, i32 {k}
  %v{k} = call {e} @wider.rough.{e}({e} %x{k})""",
    "avx512.rcp14.": """
  %x{k} = extractelement {t} %0, i32 {k}
  %v{k} = call {e} @wider.reciprocal.{e}({e} %x{k})""",
    # of all classes of numbers: all but normal ones above 0
    "avx512.fpclass.": """
  %x{k} = extractelement {x} %0, i32 {k}
  %v{k} = call i1 @wider.special.{f}({f} %x{k})""",
    "avx512.pmaddw.d.": """
  %a{k} = extractelement <{n} x i32> %words0, i32 {k}
  %b{k} = extractelement <{n} x i32> %words1, i32 {k}
  %v{k} = call i32 @wider.pairs(i32 %a{k}, i32 %b{k})""",
    "avx512.vpdpbusd.": """
  %x{k} = extractelement {t} %0, i32 {k}
  %a{k} = extractelement <{n} x i32> %words1, i32 {k}
  %b{k} = extractelement <{n} x i32> %words2, i32 {k}
  %v{k} = call i32 @wider.bytes(i32 %x{k}, i32 %a{k}, i32 %b{k})""",
    "avx512bf16.dpbf16ps.": """
  %x{k} = extractelement {t} %0, i32 {k}
  %a{k} = extractelement <{n} x i32> %words1, i32 {k}
  %b{k} = extractelement <{n} x i32> %words2, i32 {k}
  %v{k} = call float @wider.halves(float %x{k}, i32 %a{k}, i32 %b{k})""",
    # those under the mask, one after the other, over what the second operand has
    "avx512.mask.compress.": """
  %x{k} = extractelement {t} %0, i32 {k}
  %m{k} = extractelement {m} %2, i32 {k}
  %s{k} = insertelement {t} %r{before}, {e} %x{k}, i32 %at{before}
  %r{k} = select i1 %m{k}, {t} %s{k}, {t} %r{before}
  %o{k} = zext i1 %m{k} to i32
  %at{k} = add i32 %at{before}, %o{k}""",
}

# p 2^floor(n), rounded once: 0 2^inf and inf 2^-inf are NaN. Differences to the floor are 0 for
# infinities. The odd ones of pairs of bfloat16 come first, each sum is rounded, and what is below
# the normal numbers is 0 for it. Rough inverse roots have 14 bits.
_SCALARS = """
declare double @ldexp(double, i32)
declare double @llvm.floor.f64(double)
declare float @llvm.floor.f32(float)
declare double @llvm.fabs.f64(double)
declare float @llvm.fabs.f32(float)
declare float @llvm.fma.f32(float, float, float)
declare double @llvm.sqrt.f64(double)
declare float @llvm.sqrt.f32(float)
declare i32 @llvm.vector.reduce.add.v2i32(<2 x i32>)
declare i32 @llvm.vector.reduce.add.v4i32(<4 x i32>)
define internal double @wider.scalef.double(double %p, double %n) {
  %odd = fcmp uno double %n, %p
  br i1 %odd, label %nan, label %known
nan:
  %sum = fadd double %n, %p
  ret double %sum
known:
  %up = fcmp oeq double %n, 0x7FF0000000000000
  br i1 %up, label %high, label %other
high:
  %most = fmul double %p, %n
  ret double %most
other:
  %down = fcmp oeq double %n, 0xFFF0000000000000
  br i1 %down, label %low, label %usual
low:
  %least = fmul double %p, 0.0
  ret double %least
usual:
  %above = fcmp ogt double %n, 5000.0
  %a = select i1 %above, double 5000.0, double %n
  %below = fcmp olt double %a, -5000.0
  %b = select i1 %below, double -5000.0, double %a
  %whole = call double @llvm.floor.f64(double %b)
  %k = fptosi double %whole to i32
  %y = call double @ldexp(double %p, i32 %k)
  ret double %y
}
define internal float @wider.scalef.float(float %p, float %n) {
  %P = fpext float %p to double
  %N = fpext float %n to double
  %y = call double @wider.scalef.double(double %P, double %N)
  %r = fptrunc double %y to float
  ret float %r
}
define internal double @wider.above_floor.double(double %x) alwaysinline {
  %f = call double @llvm.floor.f64(double %x)
  %d = fsub double %x, %f
  %a = call double @llvm.fabs.f64(double %x)
  %c = fcmp oeq double %a, 0x7FF0000000000000
  %r = select i1 %c, double 0.0, double %d
  ret double %r
}
define internal float @wider.above_floor.float(float %x) alwaysinline {
  %f = call float @llvm.floor.f32(float %x)
  %d = fsub float %x, %f
  %a = call float @llvm.fabs.f32(float %x)
  %c = fcmp oeq float %a, 0x7FF0000000000000
  %r = select i1 %c, float 0.0, float %d
  ret float %r
}
define internal double @wider.rough.double(double %x) alwaysinline {
  %s = call double @llvm.sqrt.f64(double %x)
  %r = call double @wider.reciprocal.double(double %s)
  ret double %r
}
define internal float @wider.rough.float(float %x) alwaysinline {
  %s = call float @llvm.sqrt.f32(float %x)
  %r = call float @wider.reciprocal.float(float %s)
  ret float %r
}
define internal double @wider.reciprocal.double(double %x) alwaysinline {
  %y = fdiv double 1.0, %x
  %b = bitcast double %y to i64
  %c = and i64 %b, -274877906944
  %r = bitcast i64 %c to double
  ret double %r
}
define internal float @wider.reciprocal.float(float %x) alwaysinline {
  %y = fdiv float 1.0, %x
  %b = bitcast float %y to i32
  %c = and i32 %b, -512
  %r = bitcast i32 %c to float
  ret float %r
}
define internal i1 @wider.special.double(double %x) alwaysinline {
  %a = fcmp oge double %x, 0x0010000000000000
  %b = fcmp olt double %x, 0x7FF0000000000000
  %c = and i1 %a, %b
  %r = xor i1 %c, true
  ret i1 %r
}
define internal i1 @wider.special.float(float %x) alwaysinline {
  %y = fpext float %x to double
  %a = fcmp oge double %y, 0x3810000000000000
  %b = fcmp olt double %y, 0x7FF0000000000000
  %c = and i1 %a, %b
  %r = xor i1 %c, true
  ret i1 %r
}
define internal float @wider.exponent.float(float %x) alwaysinline {
  %y = fpext float %x to double
  %a = call double @llvm.fabs.f64(double %y)
  %b = bitcast double %a to i64
  %c = lshr i64 %b, 52
  %d = sub i64 %c, 1023
  %n = sitofp i64 %d to float
  %zero = fcmp oeq float %x, 0.0
  %p = select i1 %zero, float 0xFFF0000000000000, float %n
  %far = icmp eq i64 %c, 2047
  %q = fptrunc double %a to float
  %r = select i1 %far, float %q, float %p
  ret float %r
}
define internal float @wider.mantissa.float(float %x) alwaysinline {
  %y = fpext float %x to double
  %a = call double @llvm.fabs.f64(double %y)
  %b = bitcast double %a to i64
  %c = and i64 %b, 4503599627370495
  %d = or i64 %c, 4607182418800017408
  %m = bitcast i64 %d to double
  %n = fptrunc double %m to float
  %below = fcmp ult float %x, 0.0
  %r = select i1 %below, float 0x7FF8000000000000, float %n
  ret float %r
}
define internal i32 @wider.pairs(i32 %a, i32 %b) alwaysinline {
  %x = bitcast i32 %a to <2 x i16>
  %y = bitcast i32 %b to <2 x i16>
  %X = sext <2 x i16> %x to <2 x i32>
  %Y = sext <2 x i16> %y to <2 x i32>
  %p = mul <2 x i32> %X, %Y
  %r = call i32 @llvm.vector.reduce.add.v2i32(<2 x i32> %p)
  ret i32 %r
}
define internal i32 @wider.bytes(i32 %s, i32 %a, i32 %b) alwaysinline {
  %x = bitcast i32 %a to <4 x i8>
  %y = bitcast i32 %b to <4 x i8>
  %X = zext <4 x i8> %x to <4 x i32>
  %Y = sext <4 x i8> %y to <4 x i32>
  %p = mul <4 x i32> %X, %Y
  %t = call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> %p)
  %r = add i32 %s, %t
  ret i32 %r
}
define internal i32 @wider.flushed(i32 %x) alwaysinline {
  %e = and i32 %x, 2139095040
  %c = icmp eq i32 %e, 0
  %s = and i32 %x, -2147483648
  %r = select i1 %c, i32 %s, i32 %x
  ret i32 %r
}
define internal float @wider.added(float %s, i32 %a, i32 %b) alwaysinline {
  %p = call i32 @wider.flushed(i32 %a)
  %q = call i32 @wider.flushed(i32 %b)
  %x = bitcast i32 %p to float
  %y = bitcast i32 %q to float
  %t = call float @llvm.fma.f32(float %x, float %y, float %s)
  %u = bitcast float %t to i32
  %v = call i32 @wider.flushed(i32 %u)
  %r = bitcast i32 %v to float
  ret float %r
}
define internal float @wider.halves(float %s, i32 %a, i32 %b) alwaysinline {
  %odd_a = and i32 %a, -65536
  %odd_b = and i32 %b, -65536
  %even_a = shl i32 %a, 16
  %even_b = shl i32 %b, 16
  %t = call float @wider.added(float %s, i32 %odd_a, i32 %odd_b)
  %r = call float @wider.added(float %t, i32 %even_a, i32 %even_b)
  ret float %r
}
"""


def explained(text: str) -> str:
    """A text with definitions in place of the instructions that this processor may not have."""
    text = _ASM.sub(_made, text)
    if "@llvm.x86.avx512" not in text:
        return text
    text = _DECLARED.sub(_definition, text).replace("@llvm.x86.avx512", "@wider.avx512")
    known = set(re.findall(r"^declare .*? (@[\w.]+)\(", text, re.MULTILINE))
    added = [
        line for line in _SCALARS.splitlines()
        if not line.startswith("declare") or not known.intersection(re.findall(r"@[\w.]+", line))
    ]  # fmt: skip
    return "\n".join([text, *added, ""])


def _made(found: re.Match[str]) -> str:
    """The aggregate of values that stay in registers; the registers are not of this processor."""
    name, kind = found[1], found[2]
    values = re.findall(r"<.*?> %\S+(?=,|$)", found[3])
    rest, lines = "poison", []
    for k, value in enumerate(values):
        to = f"{name}.{k}" if k < len(values) - 1 else name
        lines.append(f"{to} = insertvalue {kind} {rest}, {value}, {k}")
        rest = to
    return "\n  ".join(lines)


def _definition(found: re.Match[str]) -> str:
    result, name = found[1], found[2]
    kinds = [part.strip() for part in re.split(r",\s*(?![^<]*>)", found[3])]
    lanes = next(lines for start, lines in _LANES.items() if name.startswith(start))
    (n, element), (_, word) = (_shape(kind) for kind in (result, kinds[1 % len(kinds)]))
    body = [f"define internal {result} @wider.{name}({found[3]}) {{"]
    body += [
        f"  %words{k} = bitcast {kinds[k]} %{k} to <{n} x i32>"
        for k in range(3) if f"%words{k}," in lanes
    ]  # fmt: skip
    if "%at" in lanes:
        body += [f"  %r-1 = select i1 true, {result} %1, {result} %1", "  %at-1 = add i32 0, 0"]
    for k in range(n):
        types = {"t": result, "e": element, "i": kinds[1], "w": word, "m": kinds[-1]}
        types |= {"x": kinds[0], "f": _shape(kinds[0])[1]}
        body.append(lanes.format(k=k, before=k - 1, n=n, **types))
        if "%at" not in lanes:
            rest = f"%r{k - 1}" if k else "poison"
            body.append(f"  %r{k} = insertelement {result} {rest}, {element} %v{k}, i32 {k}")
    return "\n".join([*body, f"  ret {result} %r{n - 1}", "}"])


def _shape(kind: str) -> tuple[int, str]:
    """Lanes and element of a vector's type; of another, one of it."""
    found = _VECTOR.fullmatch(kind)
    return (int(found[1]), found[2]) if found else (1, kind)


_IN_OTHER_PROCESSES = (
    "test_processors_without_avx512_multiply_bytes_in_fours",
    "test_compiled_functions_run_in_other_processes",  # whose sums have the order of vectors
)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Before anything has asked what the processor is; nothing happens where this is imported."""
    _pretend(os.environ.get("FUNCT_WIDER", "znver5"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What tests such a processor in a process of its own would find the real one there."""
    for item in items:
        if item.name.startswith(_IN_OTHER_PROCESSES):
            item.add_marker(pytest.mark.skip(reason="another process is not told of the processor"))


def _pretend(name: str) -> None:
    """Tell the host's description of another processor, and LLVM of this one."""
    os.environ["FUNCT_CACHE_DIR"] = tempfile.mkdtemp(prefix="funct-wider-")  # none of it is kept
    real, features = llvm.processor()
    if name == _NARROW:
        real, features = name, [f for f in features if not f.startswith(_NEWER)]
    flags = ",".join(f"+{f}" for f in sorted(features))
    wider = frozenset({*features, *_PROCESSORS[name]})
    emit = llvm.emit_object

    def emitted(text: str, name: str, features: str, opt: int = 1) -> bytes:
        return emit(explained(text), real, flags, opt)

    # imported by name: `funct.device.host` is a function too
    host: Any = importlib.import_module("funct.device.host")
    code: Any = importlib.import_module("funct.device.machine_code")
    host._named = lambda: (name, wider)
    host.host.cache_clear()
    code.emit_object = emitted
    assert host.host().name == name
