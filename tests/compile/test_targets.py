"""Code for processors that are not here: it assembles, and uses the widest registers they have."""

import re
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile import stored
from funct.compile.loops.kernel import Kernel
from funct.compile.program import kernels_text
from funct.device.host import Host, vector_bytes
from funct.device.llvm import binding
from funct.device.machine_code import assembly, emit
from tests.compile.test_native import compiled

AVX2 = frozenset({"avx", "avx2", "fma", "sse4.1", "sse2"})
AVX512 = AVX2 | {"avx512f", "avx512dq", "avx512bw", "avx512vl"}
# name: (processor, its widest registers, and wider ones that it has not)
X86 = {
    "sse": (Host("x86-64", frozenset({"sse2", "sse4.1"}), 16, 1), "xmm", "ymm"),
    "avx2": (Host("haswell", AVX2, 32, 1), "ymm", "zmm"),
    "avx512": (Host("znver4", AVX512, 64, 1), "zmm", None),
    "avx512, xeon": (Host("sapphirerapids", AVX512, 64, 1), "zmm", None),
}
NEON = Host("neoverse-n1", frozenset({"neon", "fp-armv8"}), 16, 1)

PROGRAMS: dict[str, Any] = {
    "functions": lambda x: xp.exp(x) * xp.sin(x) + xp.tanh(x) ** 1.5,
    "rows": lambda x: xp.exp(x - xp.max(x, axis=1, keepdims=True)),
    "sums": lambda x: xp.sum(xp.sqrt(xp.abs(x)), axis=0),
    "choices": lambda x: xp.where(x > 0, xp.log1p(x), xp.astype(xp.floor(x), xp.float32)),
    "repeated": lambda x: xp.repeat(x, 2, axis=1) * 2.0 + xp.repeat(x, 2, axis=1)[:, ::-1],
    "repeated oddly": lambda x: xp.repeat(x, 3, axis=1) * 2.0,
    "zeros around": lambda x: xp.pad(x, 1)[2:, 1:-1] + xp.pad(x, 1)[1:-1, :-2] - x,
    "pieces": lambda x: xp.roll(x, 1, axis=0) + xp.concat([-x[:, 64:], x[:, :64]], axis=1),
    "integers": lambda x: xp.astype(xp.astype(x, xp.int32) * 3 + 1, xp.float32),
}


def printed(name: str, target: Host, monkeypatch: pytest.MonkeyPatch) -> str:
    """The loops of a program as LLVM text for a processor."""
    x = np.random.default_rng(0).normal(size=(64, 128)).astype(np.float32)
    made = compiled(PROGRAMS[name], x)
    monkeypatch.setattr("funct.kernels.llvm.emitter.host", lambda: target)
    text = kernels_text([c.kernel for c in made.calls if isinstance(c.kernel, Kernel)])
    assert text
    return text


@pytest.mark.parametrize("cpu", X86)
@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_use_the_registers_of_each_processor(
    name: str, cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSE, AVX2 and AVX-512."""
    target, widest, beyond = X86[cpu]
    assert vector_bytes(target.features) == target.vector_bytes
    text = printed(name, target, monkeypatch)
    lines = assembly(text, target)
    assert widest in lines
    assert beyond is None or beyond not in lines
    assert emit(text, target)[:4] == b"\x7fELF"


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_use_neon(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four floats in a register, fused products where there are any, nothing of x86."""
    llvm = binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    text = printed(name, NEON, monkeypatch)
    assert "x86" not in text
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(
        cpu=NEON.name, features=NEON.flags, opt=1
    )
    module = llvm.parse_assembly(text, llvm.create_context())
    lines = machine.emit_assembly(module)
    assert re.search(r"v\d+\.4s", lines)
    if name == "functions":
        assert re.search(r"fml[as]\s+v\d+\.4s", lines)


def test_kept_code_belongs_to_one_processor(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another processor, other features, and another state of this package look elsewhere."""
    monkeypatch.setenv("FUNCT_CACHE_DIR", str(tmp_path))
    graph = ft.make_graph(PROGRAMS["rows"])(xp.ones((4, 4), dtype=xp.float32))
    keys = [stored.kept_as(graph, True)]
    for target in (X86["avx2"][0], X86["avx512"][0], X86["avx512, xeon"][0]):
        monkeypatch.setattr("funct.compile.stored.host", lambda target=target: target)
        keys.append(stored.kept_as(graph, True))
    monkeypatch.setattr("funct.compile.stored.CODE", "another version")
    keys.append(stored.kept_as(graph, True))
    assert None not in keys
    assert len(set(keys)) == len(keys)
