"""Code of whole graphs on disk: the same bits, nothing made twice, nothing that can go wrong."""

import logging
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import funct as ft
import funct.array as xp
from funct.compile.native import native
from funct.compile.spelled import read, spell
from funct.compile.stored import stored
from funct.device import disk_cache, machine_code
from funct.graph import Graph, digest, eliminate_dead, share_common
from tests import laws
from tests.strategies import inputs, programs

TABLE = xp.asarray(np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32))


def step(x: Any) -> Any:
    """Loops, a reduction, a product, constants, a gather and ops that are called."""
    y = xp.tanh(x @ TABLE) * xp.asarray([1.5] * 64, dtype=xp.float32)
    z = y - xp.max(y, axis=1, keepdims=True)
    at = xp.asarray([3, 1, 2])
    return xp.sum(xp.exp(z), axis=1), xp.sort(y, axis=1), xp.take(z, at, axis=1), x.mT


def data(n: int = 200) -> Any:
    """A float32 matrix with n rows."""
    return xp.asarray(np.random.default_rng(n).normal(size=(n, 64)).astype(np.float32))


def graph_of(fun: Any, *args: Any) -> Graph:
    """The graph as it is compiled."""
    return eliminate_dead(share_common(ft.make_graph(fun)(*args)))


def never() -> Any:
    """Making code would be wrong."""
    pytest.fail("the code is kept")


def kept(folder: Path) -> list[Path]:
    """The files of whole graphs."""
    return sorted(folder.glob("graph-*"))


def test_kept_code_is_loaded_and_gives_the_same_bits(folder: Path) -> None:
    """A second process, or a second graph of the same, makes nothing."""
    x = data()
    graph = graph_of(step, x)
    first = stored(graph, lambda: native(graph))(x.data)
    assert len(kept(folder)) == 1
    again = graph_of(step, x)
    laws.same(stored(again, never)(x.data), first)
    laws.same(first, ft.jit(step)(x))


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
def test_dtypes_that_numpy_does_not_have_come_back(folder: Path, kind: str) -> None:
    """As results, as constants and as what numbers are cast to."""
    dtype = getattr(xp, kind)
    held = xp.astype(xp.clip(TABLE * 3, 0, 7), dtype)  # what each of them has a number for

    def fun(x: Any) -> Any:
        cast = xp.astype(xp.abs(xp.tanh(x)) * 4, dtype)
        return cast, xp.astype(held, xp.float32) + x[:64], x[:64] + held

    x = data()
    graph = graph_of(fun, x)
    first = stored(graph, lambda: native(graph))(x.data)
    laws.same(stored(graph_of(fun, x), never)(x.data), first)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=programs())
def test_random_programs_come_back(folder: Path, program: Any) -> None:
    """What is loaded computes what was made, to the bit."""
    xs = [xp.asarray(x) for x in inputs(8)]
    graph = graph_of(program, *xs)
    raw = [x.data for x in xs]
    first = stored(graph, lambda: native(graph))(*raw)
    if (folder / "graph-").parent.exists() and kept(folder):
        laws.same(stored(graph, lambda: native(graph))(*raw), first)


def test_other_constants_are_another_graph(folder: Path) -> None:
    """Values, dtypes, parameters, numbers and decisions tell graphs apart; names do not."""
    x = data(4)
    k = [xp.asarray([1.0, 2.0]), xp.asarray([1.0, 3.0]), xp.asarray([1, 2])]
    funs: list[Any] = [
        lambda x: x[0, :2] * k[0], lambda x: x[0, :2] * k[1], lambda x: x[0, :2] * k[2],
        lambda x: x * 1.0, lambda x: x * 1, lambda x: x * -0.0, lambda x: x * 0.0,
        lambda x: xp.sum(x, axis=0), lambda x: xp.sum(x, axis=1), lambda x: (x, x), lambda x: x,
    ]  # fmt: skip
    found = [digest(ft.make_graph(f)(x)) for f in funs]
    assert len(set(found)) == len(funs)
    assert found == [digest(ft.make_graph(f)(x)) for f in funs]
    assert digest(ft.make_graph(funs[0])(data(5))) != found[0]
    aval = ft.ShapeDtype(x.shape, x.dtype)
    assert digest(ft.make_graph(lambda x: ft.pure_callback(np.sin, aval, x))(x)) is None
    again = Graph.from_json(ft.make_graph(step)(x).to_json())
    assert digest(again) == digest(ft.make_graph(step)(x))


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other", "nonsense"])
def test_damaged_files_are_made_anew(folder: Path, damage: str) -> None:
    """Whatever is in the file, the result is right, and the file is whole afterwards."""
    x = data()
    graph = graph_of(step, x)
    first = stored(graph, lambda: native(graph))(x.data)
    (path,) = kept(folder)
    good = path.read_bytes()
    if damage == "nonsense":
        disk_cache.write(path.name, b"\x00" * 5)  # with a right checksum
    else:
        path.write_bytes(
            {
                "cut": good[: len(good) // 2],
                "flipped": good[:-9] + bytes([good[-9] ^ 255]) + good[-8:],
                "empty": b"",
                "other": b"x" * len(good),
            }[damage]
        )
    laws.same(stored(graph, lambda: native(graph))(x.data), first)
    laws.same(stored(graph, never)(x.data), first)


def body_of(path: Path) -> tuple[dict[str, Any], bytes]:
    """What a file of a whole graph says, and the bytes that follow."""
    body = disk_cache.read(path.name)
    assert body is not None
    end = 8 + int.from_bytes(body[:8], "little")
    return read(body[8:end]), body[end:]


@pytest.mark.parametrize("other", [
    {}, {"text": ["def run("]}, {"text": 1}, {"text": "no lines"},
    {"blobs": []}, {"blobs": [10**9]}, {"blobs": ["x"]},
    {"programs": [[99, [], []]]}, {"programs": 3}, {"names": {"exp_": ["op", "no_such_op"]}},
    {"names": {"v": ["types", [[3, "float32"]]]}}, {"names": {"v": ["array", 7]}}, {"names": []},
    {"results": [[[4], "nonsense"]]}, {"wants": ["no_such_function"]}, {"wants": 3},
    {"whole": [1]}, {"arrays": [["<f4", [10**9], 0]]}, [], None, "text",
], ids=repr)  # fmt: skip
def test_files_that_say_something_else_are_made_anew(folder: Path, other: Any) -> None:
    """With a right checksum, as another form of this package would leave them."""
    x = data()
    graph = graph_of(step, x)
    first = stored(graph, lambda: native(graph))(x.data)
    (path,) = kept(folder)
    said, rest = body_of(path)
    new = {**said, **other} if other and isinstance(other, dict) else other
    text = spell(new)
    disk_cache.write(path.name, len(text).to_bytes(8, "little") + text + rest)
    made: list[int] = []

    def make() -> Any:
        made.append(1)
        return native(graph)

    laws.same(stored(graph, make)(x.data), first)
    assert made
    laws.same(stored(graph, never)(x.data), first)


def test_code_is_told_what_it_wants(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file says what its code wants of others, so that nobody searches it; code that is not told
    is made anew.
    """
    x = data()
    graph = graph_of(step, x)
    first = stored(graph, lambda: native(graph))(x.data)
    (path,) = kept(folder)
    said, rest = body_of(path)
    assert said["wants"]  # of products
    searched: list[bytes] = []
    monkeypatch.setattr(machine_code, "wanted_by", searched.append)
    for wants, make in ((said["wants"], never), ([], lambda: native(graph))):
        text = spell({**said, "wants": wants})
        disk_cache.write(path.name, len(text).to_bytes(8, "little") + text + rest)
        monkeypatch.setattr(machine_code, "_addresses", {})
        monkeypatch.setattr(machine_code, "_loaded", {})
        laws.same(stored(graph, make)(x.data), first)
    assert not searched
    assert body_of(path)[0]["wants"] == said["wants"]


def test_no_folder_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder that cannot be made or written into, and none at all."""
    x = data()
    graph = graph_of(step, x)
    expected = ft.jit(step)(x)
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    for where in (str(file / "below"), "/proc/nowhere", ""):
        monkeypatch.setenv("FUNCT_CACHE_DIR", where)
        laws.same(stored(graph, lambda: native(graph))(x.data), expected)


def test_a_folder_that_nobody_may_write_into_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept there serves, though it cannot be marked as used; nothing is added."""
    graph = graph_of(step, data())
    stored(graph, lambda: native(graph))
    before = kept(folder)
    assert before

    def refuses(*args: Any, **kwargs: Any) -> None:
        raise PermissionError("read-only")

    for name in ("utime", "replace", "makedirs"):
        monkeypatch.setattr(disk_cache.os, name, refuses)
    run = stored(graph, never)
    laws.close(run(data().data)[0], graph(data())[0], 1e-5, 1e-6)
    disk_cache.write("another", b"body")
    assert kept(folder) == before


def test_the_oldest_go_when_it_is_full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound holds, and what was used last stays."""
    for k in range(20):
        disk_cache.write(f"k{k}", bytes(1000))
        os.utime(folder / f"k{k}", (k, k))
    assert disk_cache.read("k0") is not None, "used now"
    monkeypatch.setattr(disk_cache, "BOUND", 5000)
    monkeypatch.setattr(disk_cache, "_EVERY", 1)
    disk_cache.write("new", bytes(1000))
    left = {p.name for p in folder.iterdir()}
    assert {"k0", "new"} <= left
    assert sum(p.stat().st_size for p in folder.iterdir()) <= 5000


def test_others_may_remove_files_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that find the folder full at once: what is gone counts as gone."""
    for k in range(20):
        disk_cache.write(f"k{k}", bytes(1000))
        os.utime(folder / f"k{k}", (k, k))
    remove = os.unlink

    def late(path: Any) -> None:
        remove(path)
        if str(path).endswith("k3"):
            raise FileNotFoundError(path)

    monkeypatch.setattr(disk_cache.os, "unlink", late)
    monkeypatch.setattr(disk_cache, "BOUND", 5000)
    monkeypatch.setattr(disk_cache, "_EVERY", 1)
    disk_cache.write("new", bytes(1000))
    assert sum(p.stat().st_size for p in folder.iterdir()) <= 5000


PROGRAM = """
import numpy as np, funct as ft, funct.array as xp
x = xp.asarray(np.linspace(0.0, 1.0, 1 << 16).astype("float32"))
f = ft.jit(lambda x: xp.sum(xp.exp(xp.sin(x) * 3.0) / (1.0 + x)))
print(float(f(x)), float(xp.sum(ft.grad(f)(x))))
"""


def test_many_processes_at_once(folder: Path) -> None:
    """Four processes that start with an empty cache agree, and the next one makes nothing."""
    environment = {**os.environ, "FUNCT_LOG": "cache"}

    def start() -> Any:
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    outs = [p.communicate() for p in [start() for _ in range(4)]]
    last, told = start().communicate()
    assert {out for out, _ in outs} == {last}
    assert told.count(": loaded") == 3, "the function and both halves of its derivative"
    assert "made" not in told


def _told(program: str, package: Path | None = None, before: str = "") -> tuple[str, str]:
    """What a process prints, and what it tells of the cache. package: where it finds funct."""
    environment = {**os.environ, "FUNCT_LOG": "cache"}
    command = [sys.executable, "-c", before + program]  # finds what stands where it starts first
    done = subprocess.run(
        command, env=environment, text=True, capture_output=True, check=True, cwd=package
    )
    return done.stdout, done.stderr


def test_two_versions_of_the_package_share_a_folder(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Neither takes what the other made, wherever they differ, and whatever the clock said."""
    other = tmp_path_factory.mktemp("other")
    shutil.copytree(
        Path(ft.__file__).parent, other / "funct", ignore=shutil.ignore_patterns("__pycache__")
    )
    changed = other / "funct" / "compile" / "loops" / "scalars.py"
    times = changed.stat()
    changed.write_text(changed.read_text(encoding="utf-8") + "# another\n", encoding="utf-8")
    os.utime(changed, ns=(times.st_atime_ns, times.st_mtime_ns))
    here = Path(ft.__file__).parent.parent
    told = [_told(PROGRAM, p)[1] for p in (here, other, here)]
    assert [": made, " in t for t in told] == [True, True, False]
    assert [": loaded" in t for t in told] == [False, False, True]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of processes")
def test_a_full_disk_is_tolerated(folder: Path) -> None:
    """A write that fails in the middle leaves nothing behind, and results are right."""
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
    out, _ = _told(PROGRAM, before=full)
    assert max([p.stat().st_size for p in folder.iterdir()], default=0) <= 300
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]
    assert _told(PROGRAM)[0] == out
    assert kept(folder)


def test_processes_that_are_killed_leave_a_cache_that_works(folder: Path) -> None:
    """At any moment: files are renamed when they are whole."""
    out, _ = _told(PROGRAM)
    for file in folder.iterdir():
        file.unlink()
    for seconds in (0.7, 1.1):
        p = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.DEVNULL)
        time.sleep(seconds)
        p.kill()
        p.wait()
    assert _told(PROGRAM)[0] == out


EVERY_KERNEL = """
import numpy as np, funct as ft, funct.array as xp
r = np.random.default_rng(0)
w, h, xs = (xp.asarray(r.normal(size=s).astype("f")) for s in ((8, 8), (8,), (600, 8)))
big = xp.asarray(r.normal(size=(200, 300)).astype("f"))
cell = lambda c, x: (xp.tanh(c @ w * 0.1 + x), xp.sum(xp.exp(c)))
for f, args in (
    (lambda h, xs: ft.scan(cell, h, xs), (h, xs)),
    (ft.grad(lambda h, xs: xp.sum(ft.scan(cell, h, xs)[1])), (h, xs)),
    (lambda h, xs: ft.scan(lambda c, x: (c * 0.5 + x, c), h, xs), (h, xs)),
    (lambda h: ft.while_loop(lambda c: xp.sum(c) < 900, lambda c: xp.sin(c) + c + 2, h), (h,)),
    (lambda h: ft.cond(xp.sum(h) > 0, xp.sin, xp.cos, h), (h,)),
    (lambda b: xp.sum(xp.exp(b), axis=1) @ b, (big,)),
    (lambda b: xp.sum(xp.tanh(b @ b.T), axis=0), (big,)),
    (lambda b: b[:, 3:9] * xp.mean(b) + xp.max(b, axis=1, keepdims=True), (big,)),
):
    for leaf in ft.tree.leaves(ft.jit(f)(*args)):
        print(np.asarray(leaf).tobytes().hex())
"""


def test_another_process_finds_what_this_one_made(tmp_path: Path) -> None:
    """Whatever a table holds is right where memory lies elsewhere: no address is kept."""
    first, second = (
        subprocess.run(
            [sys.executable, "-c", EVERY_KERNEL], check=True, capture_output=True, text=True,
            env={**os.environ, "FUNCT_CACHE_DIR": str(tmp_path), "FUNCT_LOG": "cache"},
        )
        for _ in range(2)
    )  # fmt: skip
    assert first.stdout == second.stdout != ""
    assert first.stderr.count(": made, ") >= 3
    assert second.stderr.count(": loaded") == first.stderr.count(": made, ")


def test_long_chains_compile() -> None:
    """Two thousand cheap ops in a row: no recursion, and as many kernels as their work asks for."""

    def f(x: Any) -> Any:
        for k in range(1000):
            x = xp.maximum(x * 0.999 + 0.001, -x) if k % 50 else xp.sin(x)
        return x

    x = data(300)
    laws.close(ft.jit(f)(x), f(x), 1e-5, 1e-5)


def test_loops_that_differ_in_numbers_are_compiled_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Hundreds of terms, each with a number of its own: a handful of kernels."""

    def f(x: Any) -> Any:
        terms = [xp.sin(x * (0.01 * k)) for k in range(300)]
        while len(terms) > 1:
            terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)] + (
                terms[-1:] if len(terms) % 2 else []
            )
        return terms[0]

    x = data(300)
    with caplog.at_level(logging.DEBUG, "funct.code"):
        found = ft.jit(f)(x)
    laws.close(found, f(x), 1e-4, 1e-4)
    made = [r.getMessage() for r in caplog.records]  # what runs kernels may be made here as well
    assert 0 < sum(m.startswith("kernel") for m in made) <= 5


def test_loops_are_kept(folder: Path) -> None:
    """One with functions, too."""
    x = xp.asarray(np.linspace(0.0, 1.0, 1 << 14))

    def f(x: Any) -> Any:
        return x * 2.0, ft.while_loop(lambda c: c > 0.3, lambda c: xp.sin(c) - 0.01, x[-1])

    graph = ft.make_graph(f)(x)
    before = len(kept(folder))
    for made in (1, 1):
        found = stored(graph, lambda: native(graph))(x.data)
        laws.close(xp.asarray(found[1]), f(x)[1], 1e-14, 1e-14)
        assert len(kept(folder)) == before + made


@pytest.mark.parametrize("count", [1, 16, 17, 40])
def test_functions_of_many_arrays_come_back(folder: Path, count: int) -> None:
    """Arrays that are not dense, or that repeat a number, as well."""

    def fun(*xs: Any) -> Any:
        s = xp.sum(xs[0], axis=0)
        return [x * 2 + s for x in xs], [xp.exp(x) for x in xs[:2]], xp.sort(xs[-1], axis=1)

    made = [np.random.default_rng(k).normal(size=(32, 64)) for k in range(count)]
    xs = [xp.asarray(x.astype("f")) for x in made]
    graph = graph_of(fun, *xs)
    raw = [x.data for x in xs]
    first = stored(graph, lambda: native(graph))(*raw)
    again = stored(graph, never)
    laws.same(again(*raw), first)
    turned = [np.asfortranarray(x) for x in raw[:-1]] + [np.broadcast_to(raw[-1][:1], (32, 64))]
    laws.same(again(*turned), again(*[np.ascontiguousarray(x) for x in turned]))
    zeros = [np.broadcast_to(np.float32(0), (32, 64))] * count
    laws.same(again(*zeros), again(*[np.zeros((32, 64), np.float32)] * count))


def test_not_every_process_looks_at_the_size_of_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who writes one byte in so many does, wherever a process begins to count."""
    chance = "import os; os.urandom = lambda n: bytes([70]) * n\n"
    code = "from funct.device import disk_cache; print(disk_cache._written)"
    assert int(_told(code, before=chance)[0]) == 70 * disk_cache._EVERY // 256
    looked: list[str] = []
    monkeypatch.setattr(disk_cache, "_shrink", looked.append)
    monkeypatch.setattr(disk_cache, "_EVERY", 6400)
    monkeypatch.setattr(disk_cache, "_written", 1600)
    for k in range(300):
        disk_cache.write(f"k{k}", bytes(64 - disk_cache._SUM))
    assert looked == [str(folder)] * 3
