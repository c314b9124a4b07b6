"""Memory of a first call is touched while its function is captured and made: what it took last
time, or what it returns.
"""

import ctypes
import functools
import mmap
import os
import subprocess
import sys

import numpy as np
import pytest
from msgspec.structs import replace

import funct as ft
import funct.array as xp
from funct.compile import foreseen as block
from funct.compile import returns
from funct.compile.foreseen import _MOST, _key, _sizes, needs, takes
from funct.device import assemble, disk_cache, host, memory
from funct.device.memory import touching as touching_room
from funct.device.memory import touching_text
from funct.device.memory.huge_pages import has_huge_pages
from funct.graph.capture import capture
from tests import laws
from tests.together import together

foreseen = sys.modules["funct.compile.foreseen"]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="addresses are reserved by mmap")
MIB = 1 << 20
F32 = np.dtype(np.float32)
LARGE = [((1024, 512), F32)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache, two cores, and an allocator that serves."""
    monkeypatch.setenv("FUNCT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(foreseen, "host", lambda: replace(host(), cores=2))
    memory.serve()
    return tmp_path


def own_text(monkeypatch, *replaced, **constants):
    """Let `Touching` run a text that differs in so much."""
    for name, value in constants.items():
        monkeypatch.setattr(touching_text, name, value)
    text = touching_text.touching_text()
    wants = "declare i32 @madvise(ptr, i64, i32)\ndeclare i32 @clock_gettime(i32, ptr)\n"
    code = assemble(wants + (text.replace(*replaced) if replaced else text))
    monkeypatch.setattr(touching_room, "front_code", lambda: code)


def step(x):
    return xp.exp(x) + 1.0, xp.sum(x * x, axis=-1), -x


def kept(folder):
    return sorted(folder.glob("memory-*"))


def note(*sizes, fun=step, types=LARGE):
    with block(fun, types):
        takes(sizes)


def known():
    return foreseen._call.get().known


def test_sizes_are_kept_and_known_the_next_time():
    note(MIB, 3 * MIB, MIB)
    with block(step, LARGE):
        assert sorted(known()) == [MIB, MIB, 3 * MIB]
    assert foreseen._call.get() is None


def test_sizes_are_written_where_they_have_changed_alone(folder, monkeypatch):
    note(MIB, 3 * MIB)
    (path,) = kept(folder)
    before = path.read_bytes()
    with monkeypatch.context() as m:
        m.setattr(disk_cache, "write", lambda *_: pytest.fail("nothing is new"))
        note(3 * MIB, MIB)
    note(2 * MIB)
    assert path.read_bytes() != before
    assert _sizes(disk_cache.read(path.name)) == [2 * MIB]


def test_blocks_are_touched_and_wait_in_their_bins():
    size = 37 * MIB
    memory.HOST.empty_cache()
    note(size)
    with block(step, LARGE):
        assert foreseen._call.get().touching[0].begun
    before = ft.device.memory_stats()["num_arena_calls"]
    x = np.empty(size, np.uint8)
    assert not x[:: 1 << 12].any()
    assert ft.device.memory_stats()["num_arena_calls"] == before


@pytest.mark.parametrize("refused", [False, True])
def test_every_page_is_touched_once_where_that_is_wanted(monkeypatch, refused):
    """Also where the system gives no pages at once, as before Linux 5.14."""
    if refused:
        own_text(monkeypatch, _POPULATE_WRITE=-1)
    for size in (1, 4096, MIB + 5, 3 * MIB):
        x = np.full(size + 8192, 7, np.uint8)
        inner = x[4096:-4096]
        touching = memory.Touching([inner])
        assert touching.begun
        touching.end(all_of_it=True)
        touching.end(all_of_it=True)  # which is none any more
        assert np.all(x[:4096] == 7)
        assert np.all(x[-4096:] == 7)
        start = inner.ctypes.data
        assert np.count_nonzero(inner == 0) <= (start + size - 1) // 4096 - start // 4096 + 1


@pytest.mark.parametrize("most", [0, 500_000, 1 << 40])
def test_fresh_pages_are_there_at_the_end(monkeypatch, most):
    """Whether one is, the system says (mincore). most: nanoseconds in which huge ones must come."""
    monkeypatch.setattr(touching_room, "_slow", False)
    own_text(monkeypatch, _SLOW=most)
    x = mmap.mmap(-1, 16 * MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.Touching([np.frombuffer(x, np.uint8)]).end(all_of_it=True)
    given = np.zeros(16 * MIB // mmap.PAGESIZE, np.uint8)
    start = np.frombuffer(x, np.uint8).ctypes.data
    failed = ctypes.CDLL(None).mincore(
        ctypes.c_void_p(start), ctypes.c_size_t(16 * MIB), ctypes.c_void_p(given.ctypes.data)
    )
    assert not failed
    assert np.all(given & 1)
    if has_huge_pages() and most != 500_000:
        assert touching_room._slow == (most == 0)


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("has", [False, True])
def test_pieces_are_all_of_the_arrays(monkeypatch, slow, has):
    """By small pages alone, and with huge ones, which there are none of where those are slow."""
    monkeypatch.setattr(touching_room, "_slow", slow)
    monkeypatch.setattr(touching_room, "has_huge_pages", lambda: has)
    x = np.empty(16 * MIB, np.uint8)
    start = -x.ctypes.data % (2 * MIB)  # of the first huge page
    draw = np.random.default_rng(0).integers
    for _ in range(200):
        at, size = int(draw(start + 3 * MIB)), int(draw(1, 8 * MIB))
        inner = x[at : at + size]
        huge, loose, rest = map(set, map(pages_of, touching_room._pieces([inner])))
        every = set(range(inner.ctypes.data // 4096, (inner.ctypes.data + size - 1) // 4096 + 1))
        assert loose | rest == every
        assert huge | loose == every
        assert not huge or (has and not slow)


def pages_of(ends):
    """The pages of 4 KiB between starts and ends."""
    for first, last in zip(ends[::2], ends[1::2], strict=True):
        yield from range(first // 4096, (last - 1) // 4096 + 1)


def test_nothing_is_touched_after_the_end():
    """So the call may write as soon as it has the blocks."""
    for k in range(50):
        x = np.zeros(3 * MIB, np.uint8)
        memory.Touching([x]).end(all_of_it=bool(k % 2))
        x[:] = 7
        assert np.all(x == 7)


def test_no_arrays_and_a_forked_child():
    memory.Touching([]).end(all_of_it=True)
    touching = memory.Touching([np.empty(64 * MIB, np.uint8)])
    touching._process += 1  # as a child sees it, which has no such thread
    touching.end(all_of_it=True)
    touching._process, touching.begun = os.getpid(), True
    touching.end(all_of_it=False)


@pytest.mark.parametrize(
    "told",
    [
        b"", b"x", b"12", b"1048576", b"1048576x", b"x3", b"-1048576x1", b"1048576x-1", b"1x1",
        b"1048576x0", b"9" * 20 + b"x1", b"1048576x" + b"9" * 12, b"1048576x1 1048576", b"\xff\x00",
        b"1048576.0x1", b"268435456x2", b"1048576x200 1048576x200",
    ],
)  # fmt: skip
def test_what_is_never_written_is_not_believed(told):
    assert _sizes(told) == []


def test_damaged_files_are_written_anew(folder):
    note(MIB)
    (path,) = kept(folder)
    for damage in (b"", b"nonsense", path.read_bytes()[:-1]):
        path.write_bytes(damage)
        with block(step, LARGE):
            assert known() == []
            takes([MIB])
        assert _sizes(disk_cache.read(path.name)) == [MIB]


def test_no_more_than_a_bound_is_kept():
    note(*[1 << 25] * 20, 10, _MOST + 1)
    with block(step, LARGE):
        assert known() == [1 << 25] * 8


def test_names_tell_functions_and_types_apart():
    def other(x):
        return x * 2

    class Callable:
        def __call__(self, x):
            return x

    funs = [step, other, functools.partial(step), Callable()]
    types = [LARGE, [((512, 1024), F32)], [((1024, 512), np.dtype(np.float64))], LARGE * 2]
    assert len({_key(f, t) for f in funs for t in types}) == 16


@pytest.mark.parametrize("why", ["small", "one core", "no folder", "full"])
def test_nothing_is_touched_where_it_does_not_pay(folder, monkeypatch, why):
    types = [((4,), F32)] if why == "small" else LARGE
    if why == "one core":
        monkeypatch.setattr(foreseen, "host", lambda: replace(host(), cores=1))
    if why == "no folder":
        monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    if why == "full":
        monkeypatch.setattr(foreseen, "room", lambda: 2 * MIB - 1)
    for _ in range(2):
        with block(step, types):
            call = foreseen._call.get()
            assert call is None or not call.touching
            takes([MIB])
    assert len(kept(folder)) == (why == "full")


def test_where_no_thread_can_start_nothing_is_touched(monkeypatch):
    own_text(monkeypatch, "call i32 @pthread_create(", "add i32 11, 0 ;")
    touching = memory.Touching([np.full(MIB, 7, np.uint8)])
    assert not touching.begun
    touching.end(all_of_it=True)
    assert np.all(touching._arrays[0] == 7)


def test_an_error_ends_it_and_keeps_nothing(folder):
    def fail():
        with block(step, LARGE):
            takes([MIB])
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail()
    assert not kept(folder)
    assert foreseen._call.get() is None


def test_one_call_within_another_has_its_own(folder):
    with block(step, LARGE):
        takes([MIB])
        with block(step, LARGE * 2):
            takes([2 * MIB])
        takes([3 * MIB])
    assert {tuple(_sizes(disk_cache.read(p.name))) for p in kept(folder)} == {
        (MIB, 3 * MIB), (2 * MIB,),
    }  # fmt: skip


@pytest.fixture
def begun(monkeypatch):
    """The sizes that were touched, call by call."""
    found = []

    class Seen(memory.Touching):
        def __init__(self, arrays):
            found.append([x.nbytes for x in arrays])
            super().__init__(arrays)

    monkeypatch.setattr(foreseen, "Touching", Seen)
    return found


def several(x, y):
    """Of two results that are computed and large one comes twice; the others are neither."""
    made = x * 2.0 + y
    wide = xp.concat([x, y])
    return made, xp.sum(x), x, made, xp.reshape(y, (-1,)), wide, xp.flip(x)


@pytest.mark.parametrize("kept_in", ["", "folder"])
@pytest.mark.parametrize("args", [LARGE, [((4,), F32)]])
def test_what_a_function_returns_is_touched_once_it_is_captured(monkeypatch, begun, kept_in, args):
    if not kept_in:
        monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    x = xp.ones((1024, 512), dtype=xp.float32)
    graph = ft.make_graph(several)(x, x)
    with block(several, args):
        assert begun == []
        returns(graph)
        assert begun == [[2 * MIB, 4 * MIB]]
    assert foreseen._call.get() is None


def test_what_is_known_of_a_call_comes_before_what_it_returns(begun):
    note(3 * MIB)
    with block(step, LARGE):
        returns(ft.make_graph(step)(xp.ones((1024, 512), dtype=xp.float32)))
    assert begun == [[3 * MIB]]


def test_small_results_and_those_of_open_sizes_are_not_touched(begun):
    small = ft.make_graph(step)(xp.ones((64, 512), dtype=xp.float32))
    open_, _ = capture(step, [xp.ones((1024, 512))], label="jit", names=[{0: "n"}])
    for graph in (small, open_):
        with block(step, LARGE):
            returns(graph)
    returns(ft.make_graph(step)(xp.ones((1024, 512))))  # no call is to come
    assert begun == []


def test_first_calls_touch_what_they_return(monkeypatch, begun):
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    x = xp.asarray(np.random.default_rng(0).standard_normal((1024, 512), dtype=np.float32))
    f = ft.jit(step)
    out = [np.array(o) for o in f(x)]
    assert begun == [[2 * MIB, 2 * MIB]]
    laws.same(list(f(x)), out)
    assert len(begun) == 1


def test_first_calls_give_the_same_with_and_without(folder):
    x = xp.asarray(np.random.default_rng(0).standard_normal((1024, 512), dtype=np.float32))
    outs = [[np.array(o) for o in ft.jit(step)(x)] for _ in range(3)]
    (path,) = kept(folder)
    assert _sizes(disk_cache.read(path.name))[-1] == 2 * MIB
    for out in outs[1:]:
        laws.same(out, outs[0])


def test_threads_that_call_at_once_get_right_results():
    x = xp.asarray(np.random.default_rng(0).standard_normal((1024, 512), dtype=np.float32))
    right = [np.array(o) for o in ft.jit(step)(x)]
    for out in together(8, lambda k: ft.jit(step)(x)):
        laws.same([np.asarray(o) for o in out], right)


PROCESS = """
import numpy as np
import funct as ft, funct.array as xp
x = xp.asarray(np.ones((1024, 512), np.float32))
print(float(ft.jit(lambda x: xp.sum(xp.exp(x) * x + xp.tanh(x)))(x)))
y = ft.jit(lambda x: (xp.exp(x) * x + xp.tanh(x), -x))(x)
print(float(np.sum(y[0])), ft.device.llvm.loaded())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="objects are loaded without LLVM there alone")
def test_a_second_process_needs_no_llvm_for_it(folder):
    def told():
        return subprocess.run(
            [sys.executable, "-c", PROCESS], capture_output=True, text=True, check=True,
            env={**os.environ, "OMP_NUM_THREADS": "2"},
        ).stdout.split()  # fmt: skip

    first, second = told(), told()
    assert first[:2] == second[:2]
    assert first[2] == "True"
    assert second[2] == "False"
    assert kept(folder)


def test_functions_of_no_module_are_known_too():
    """Text that is run in a dict of its own says of no function where it stands."""
    names = {"xp": xp}
    exec("def fun(x): return xp.exp(x) + 1.0", names)
    assert names["fun"].__module__ is None
    x = xp.ones((1024, 512))
    laws.close(ft.jit(names["fun"])(x), np.exp(1.0) + np.ones((1024, 512)), 1e-12, 1e-12)


def test_what_code_takes_is_touched_before_it_is_made(monkeypatch):
    """Nearly as much as it takes then; where it is known from before, nothing."""
    told = []
    native = sys.modules["funct.compile.native"]
    monkeypatch.setattr(native, "needs", lambda sizes: told.append(list(sizes)))

    def columns(x):
        y = xp.sin(x)
        return xp.sum(y @ y.mT, axis=0) + xp.sum(xp.flip(y, axis=0) @ y.mT, axis=0)

    x = xp.asarray(np.random.default_rng(0).standard_normal((512, 512), dtype=np.float32))
    graph, _ = capture(lambda x: [columns(x)], [x])
    made = native.native(graph)
    ((*sizes,),) = told
    assert len(sizes) == len(made.programs) > 0
    assert max(sizes) >= MIB
    for p, size in zip(made.programs, sizes, strict=True):
        assert 0 <= p.workspace - size < MIB // 16
    size = 5 * MIB
    with block(step, LARGE):
        needs([size, 1])
        assert len(foreseen._call.get().touching) == 1
    note(MIB)
    with block(step, LARGE):
        needs([size])
        assert len(foreseen._call.get().touching) == 1  # of what was known
    needs([size])  # no call comes
