"""Loops in registers whose arrays are no whole number of vectors, on each processor."""

from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct.compile.program import kernels_text
from funct.device.host import host
from funct.device.llvm import binding
from funct.device.machine_code import emit
from funct.graph import Control, Node
from tests.compile.test_registers import ways_of
from tests.compile.test_targets import NEON, X86

LENGTHS = (1, 2, 3, 7, 15, 17, 31, 33, 48, 50, 63, 100, 127, 128)


def step(w: Any, c: Any, x: Any) -> tuple[Any, Any]:
    """A product, sums of one and of all, extrema, a choice, and what does not change."""
    y = xp.tanh(c @ w + x * xp.max(w[0] * 0.5))
    grid = xp.stack([y, x, c])
    ends = (xp.sum(c * x), xp.min(y), xp.sum(grid), xp.sum(grid, axis=0), xp.sum(grid, axis=1))
    return xp.where(xp.sum(x) > 0, y, c), ends


def run(w: Any, c: Any, xs: Any) -> Any:
    return ft.scan(lambda c, x: step(w, c, x), c, xs)


def given(n: int, dtype: str) -> list[Any]:
    rng = np.random.default_rng(n)
    w, c, xs = rng.normal(size=(n, n)) / n**0.5, rng.normal(size=n), rng.normal(size=(70, n))
    return [xp.asarray(x, dtype=dtype) for x in (w, c, xs)]


@pytest.mark.in_turn
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lengths(n: int, dtype: str) -> None:
    args = given(n, dtype)
    f = ft.jit(run)
    if 3 * n * args[0].dtype.itemsize <= 1024:
        assert ways_of(f, *args)
    eps = float(np.finfo(dtype).eps)
    for a, b in zip(ft.tree.leaves(f(*args)), ft.tree.leaves(run(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2000 * eps)


@pytest.mark.parametrize("n", [3, 17, 33, 50, 100])
def test_whole_numbers_and_truth(n: int) -> None:
    """Exactly eager's; of truth values, too."""
    rng = np.random.default_rng(n)
    xs = xp.asarray(rng.integers(-9, 9, (70, n)))

    def f(xs: Any) -> Any:
        def step(c: Any, x: Any) -> tuple[Any, Any]:
            up = x > c
            ends = (xp.sum(c), xp.max(c * x), xp.prod(x % 3), xp.any(up), xp.all(up | (x < 9)))
            return xp.where(up, x, c - 1), ends

        return ft.scan(step, xs[0], xs)

    for a, b in zip(ft.tree.leaves(ft.jit(f)(xs)), ft.tree.leaves(f(xs)), strict=True):
        np.testing.assert_array_equal(a, b)


def code(n: int, dtype: str) -> tuple[str, Any]:
    """The key of the loop's kernel."""
    nodes = [e for e in ft.make_graph(run)(*given(n, dtype)).nodes if isinstance(e, Node)]
    (loop,) = [e.primitive.kind for e in nodes if isinstance(e.primitive, Control)]
    return "registers", loop.native().code


@pytest.mark.parametrize("cpu", [*X86, "neon", "here"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [17, 33, 42])
def test_processors(n: int, dtype: str, cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code assembles, for processors that are not here too."""
    target = NEON if cpu == "neon" else host() if cpu == "here" else X86[cpu][0]
    made = code(n, dtype)
    monkeypatch.setattr("funct.kernels.llvm.emitter.host", lambda: target)
    text = kernels_text([made])
    if cpu != "neon":
        assert emit(text, target)[:4] == b"\x7fELF"
        return
    llvm = binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(
        cpu=NEON.name, features=NEON.flags, opt=1
    )
    assert ".4s" in machine.emit_assembly(llvm.parse_assembly(text, llvm.create_context())) or (
        dtype == "float64"
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [17, 20, 30, 33, 42])
def test_odd_lengths_are_not_much_more_code(n: int, dtype: str) -> None:
    """LLVM takes vectors of them apart, number by number, if it is let."""
    whole = 1 << (n - 1).bit_length()
    if 3 * whole * np.dtype(dtype).itemsize > 1024:
        whole = n
    odd, even = (len(emit(kernels_text([code(k, dtype)]), host())) for k in (n, whole))
    assert odd < 2 * even


def test_a_long_odd_length_is_little_code() -> None:
    """Truth values too, which go from block to block as bits, and rows of matrices."""

    def f(w: Any, x: Any, c: Any) -> Any:
        up = w[:, 0] > 0

        def step(i: Any, c: Any) -> Any:
            z = w @ c
            return c + 0.01 * (xp.where(up & (z < 2), z, -z) @ w)

        return ft.fori_loop(0, 10, step, c)

    w = xp.asarray(np.random.default_rng(0).normal(size=(200, 30)), dtype="float32")
    args = (w, w, xp.asarray(w[0]))
    nodes = [e for e in ft.make_graph(f)(*args).nodes if isinstance(e, Node)]
    (loop,) = [e.primitive.kind for e in nodes if isinstance(e.primitive, Control)]
    made = emit(kernels_text([("registers", loop.native().code)]), host())
    assert len(made) < 16_000
    np.testing.assert_allclose(ft.jit(f)(*args), f(*args), rtol=2e-4, atol=2e-4)
