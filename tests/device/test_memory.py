"""Buffers of arrays: never lent twice while anybody looks, counted, limited, reported, drawn."""

import ctypes
import gc
import json
import os
import pickle
import subprocess
import sys
from html.parser import HTMLParser

import attrs
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import funct as ft
import funct.array as xp
from funct import nn, optim, serialize
from funct.device import memory
from funct.device.memory import host
from funct.device.memory.front import LEAST, set_handler
from funct.device.memory.front_record import UNIT
from funct.errors import AllocationError, ArgumentError, FunctError
from tests.together import together

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="addresses are reserved by mmap")
MIB = 1 << 20


@pytest.fixture(autouse=True)
def serving():
    """NumPy takes its memory from us in every test, with no limit and the options as they are."""
    memory.serve()
    set_handler(memory.HOST.front().capsule)
    yield
    ft.device.set_limit(None)
    ft.device.configure_memory(**attrs.asdict(memory.Options()))
    set_handler(memory.HOST.front().capsule)


def now(name="allocated_bytes", what="current"):
    return ft.device.memory_stats()[f"{name}.all.{what}"]


def test_a_buffer_that_is_dropped_is_lent_again_for_the_same_size():
    x = np.ones(1 << 20)
    where = x.ctypes.data
    del x
    assert np.empty(1 << 20).ctypes.data == where  # last in, first out


def test_arrays_of_one_size_do_not_begin_at_one_place_of_a_page():
    gc.collect()
    ft.device.empty_cache()  # of blocks that others have left, some may begin at one place
    held = [np.empty(1 << 18) for _ in range(8)]
    places = [x.ctypes.data % 4096 for x in held]
    assert len(set(places)) == 8
    assert not any(p % 64 for p in places)


HOLDERS = {
    "view": lambda x: x[3:7],
    "strided": lambda x: x[::2].reshape(2, -1).T,
    "memoryview": memoryview,
    "dlpack": lambda x: x.__dlpack__(),
    "from_dlpack": np.from_dlpack,
    "Array": lambda x: xp.asarray(x, copy=False),
    "Array dlpack": lambda x: xp.asarray(x, copy=False).__dlpack__(copy=False, max_version=(1, 0)),
    "ctypes": ctypes.c_double.from_buffer,
    "iterator": iter,
    "flat": lambda x: x.flat,
    "cycle": lambda x: (lambda c: c.append((c, x[:1])) or c)([]),
}


@pytest.mark.parametrize("kind", HOLDERS)
def test_a_block_is_not_lent_again_while_anything_holds_it(kind):
    gc.collect()
    before = now("allocation")
    x = np.full(1 << 17, 3.0)
    where = x.ctypes.data
    holder = HOLDERS[kind](x)
    del x
    others = [np.zeros(1 << 17) for _ in range(5)]
    assert where not in [o.ctypes.data for o in others]
    assert ctypes.c_double.from_address(where).value == 3.0
    assert now("allocation") == before + 6
    del holder, others
    gc.collect()
    assert now("allocation") == before


class Machine(RuleBasedStateMachine):
    """Arrays, views and exports in any order: what each was filled with stays in it."""

    def __init__(self):
        super().__init__()
        set_handler(memory.HOST.front().capsule)
        self.held = []  # (value, a holder whose elements are all value)
        self.number = 0
        self.before = now("requested_bytes"), now("allocation")
        self.arrays = {}

    def keep(self, size, x):
        self.number += 1
        x[...] = self.number
        self.held.append((self.number, x))
        self.arrays[self.number] = size

    @rule(size=st.integers(1, 40) | st.integers(8, 100), how=st.sampled_from("ezf"))
    def make(self, size, how):
        count = size * 9000
        make = {"e": np.empty, "z": np.zeros, "f": np.ones}[how]
        x = make(count, np.int64)
        assert how == "e" or (x == (how == "f")).all()
        self.keep(x.nbytes, x)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), kind=st.sampled_from(["view", "dlpack", "memoryview"]))
    def export(self, data, kind):
        k = data.draw(st.integers(0, len(self.held) - 1))
        value, x = self.held[k]
        other = {
            "view": lambda: x[len(x) // 2 :],
            "dlpack": lambda: np.from_dlpack(x),
            "memoryview": lambda: np.asarray(memoryview(x)),
        }[kind]()
        self.held.append((value, other))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def drop(self, data):
        self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        living = {value for value, _ in self.held}
        self.arrays = {v: n for v, n in self.arrays.items() if v in living}

    @precondition(lambda self: self.held)
    @rule(data=st.data(), size=st.integers(1, 100))
    def resize(self, data, size):
        k = data.draw(st.integers(0, len(self.held) - 1))
        value, x = self.held[k]
        if x.base is None and sum(v == value for v, _ in self.held) == 1:
            kept = min(len(x), size * 9000)
            x.resize(size * 9000, refcheck=False)
            assert (x[:kept] == value).all()
            x[...] = value
            self.arrays[value] = x.nbytes

    @rule()
    def empty(self):
        ft.device.empty_cache()

    @rule(small_most=st.sampled_from([0, 1 << 18, MIB]), divisions=st.sampled_from([1, 32]))
    def configure(self, small_most, divisions):
        ft.device.configure_memory(small_most=small_most, divisions=divisions)

    @invariant()
    def nobody_wrote_into_anothers_block(self):
        for value, x in self.held:
            assert x[0] == x[-1] == x[len(x) // 2] == value

    @invariant()
    def statistics_agree(self):
        ours = [n for n in self.arrays.values() if n >= LEAST]
        assert now("requested_bytes") - self.before[0] == sum(ours)
        assert now("allocation") - self.before[1] == len(ours)
        stats = ft.device.memory_stats()
        for pool in ("small_pool", "large_pool"):
            held, out, idle = (
                stats[f"{name}.{pool}.current"]
                for name in ("allocated_bytes", "reserved_bytes", "inactive_split_bytes")
            )
            assert held + idle <= out
            pieces = [
                block["size"]
                for segment in ft.device.memory_snapshot()["segments"]
                for block in segment["blocks"]
                if segment["pool"] == pool
                and block["state"] == "inactive"
                and len(segment["blocks"]) > 1
            ]
            assert idle == sum(pieces)
            blocks = [
                block["size"]
                for segment in ft.device.memory_snapshot()["segments"]
                for block in segment["blocks"]
                if segment["pool"] == pool and block["state"] == "active"
            ]
            assert (held, stats[f"allocation.{pool}.current"]) == (sum(blocks), len(blocks))
            for name in (
                "allocated_bytes", "allocation", "requested_bytes", "inactive_split_bytes",
            ):  # fmt: skip
                s = {k: stats[f"{name}.{pool}.{k}"] for k in ("current", "allocated", "freed")}
                assert s["current"] == s["allocated"] - s["freed"]

    def teardown(self):
        self.held.clear()
        ft.device.configure_memory(**attrs.asdict(memory.Options()))


Machine.TestCase.settings = settings(stateful_step_count=30)
test_random_sequences = Machine.TestCase


@pytest.mark.parametrize("most", [1 << 16, 1 << 28])
@pytest.mark.parametrize("size", [1 << 16, (1 << 21) - 1, (1 << 21) + 4097])
def test_zeros_are_zeros_in_a_block_that_held_something(size, most, monkeypatch):
    """Whether they are written or pages are new; what lies beside them stays."""
    monkeypatch.setattr(memory.HOST.front().record, "zero_most", most)
    for _ in range(3):
        x, beside = (np.full(size, 7, np.uint8) for _ in range(2))
        start = x.ctypes.data
        del x
        zeros = np.zeros(size, np.uint8)
        assert zeros.ctypes.data == start
        assert not zeros.any()
        assert (beside == 7).all()
        zeros += 1
        assert (zeros == 1).all()


@pytest.mark.parametrize(
    "make",
    [
        np.zeros,
        lambda n: xp.eye(1, n),
        lambda n: xp.bincount(xp.asarray([0, 1]), minlength=n),
        lambda n: xp.segment_sum(xp.ones(2), xp.arange(2), n),
        lambda n: xp.pad(xp.ones(2), (n, n)),
        lambda n: xp.zeros(n).at[0].set(1.0),
        lambda n: nn.functional.conv_transpose1d(xp.ones((1, 1, 2)), xp.ones((1, 1, 1)), stride=n),
    ],
)
def test_zeros_of_any_size_are_counted_and_limited(make, monkeypatch):
    """Also those that take no pages yet."""
    monkeypatch.setattr(memory.HOST.front().record, "zero_most", 1 << 20)
    before = now("requested_bytes")
    for n in (1 << 16, 1 << 18):
        x = make(n)
        assert now("requested_bytes") >= before + 8 * n
        del x
    ft.device.set_limit(now("reserved_bytes"))
    with pytest.raises(MemoryError):
        make(1 << 30)


def test_a_limit_holds_from_when_it_is_set(monkeypatch):
    served = []
    monkeypatch.setattr(host, "_serving", False)
    monkeypatch.setattr(host, "_seen", 0)
    monkeypatch.setattr(memory.HOST.front(), "serve_everybody", lambda: served.append(True))
    ft.device.set_limit(None)
    assert not served
    ft.device.set_limit(1 << 30)
    assert served


def test_sixteen_threads_allocate_at_once():
    before = now("allocation")

    def work(k):
        for n in range(20):
            held = [np.full((k + n) * 3000 + j, k * 1000 + j) for j in range(1, 8)]
            assert all((x == k * 1000 + j).all() for j, x in enumerate(held, 1))

    together(16, work)
    assert now("allocation") == before


def test_large_arrays_of_funct_come_from_the_pool_by_themselves():
    program = (
        "import numpy as np, funct as ft, funct.array as xp\n"
        "name = np._core.multiarray.get_handler_name\n"
        "assert name() == 'default_allocator'\n"
        "xp.ones(10) + xp.asarray([1.0] * 10)\n"
        "assert name() == 'default_allocator'\n"
        "y = xp.ones(1 << 20) + 1\n"
        "assert name() == 'funct'\n"
        "assert ft.device.memory_stats()['allocation.all.current'] == 1\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


KEYS = (0, -1, (3, 5), slice(2, 9, 3), (slice(None, None, -1), 4), (..., 3), (None, 2, slice(1, 3)))


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("write", ["set", "add", "multiply", "max"])
def test_a_compiled_update_keeps_no_array_of_the_length_of_what_it_updates(key, write):
    """Positions are of what is written, not a view of all there are."""

    def update(x):
        return getattr(x.at[key], write)(5.0)

    x = xp.full((1 << 10, 1 << 7), 2.0) + 0.0
    gc.collect()
    before = now("requested_bytes")
    f = ft.jit(update)
    for _ in range(3):
        y = f(x)
    assert (y == update(x)).all()
    del y
    gc.collect()
    assert now("requested_bytes") - before < x.nbytes / 2


MAKERS = (
    "xp.asarray(np.ones(N))", "xp.asarray(np.ones(N), copy=False)", "xp.asarray([1.0] * N)",
    "xp.asarray(np.ones(N), dtype=xp.float32)", "xp.from_dlpack(np.ones(N))", "xp.ones(N)",
    "xp.zeros((4, N))", "xp.full(N, 2.0)", "xp.empty(N)", "xp.arange(N)", "xp.linspace(0, 1, N)",
    "xp.eye(1000)", "xp.ones_like(xp.broadcast_to(xp.asarray(1.0), (N,)))",
    "ft.random.normal(ft.random.key(0), (N,))", "ft.random.uniform(ft.random.key(0), (N,))",
    "ft.random.bits(ft.random.key(0), (N,))", "optim.adam().init(xp.ones(N))",
)  # fmt: skip


@pytest.mark.parametrize("maker", MAKERS)
def test_whatever_makes_a_large_array_asks_for_the_pool(maker, monkeypatch):
    asked = []
    monkeypatch.setattr(host, "_serving", False)
    monkeypatch.setattr(host, "_seen", 0)
    monkeypatch.setattr(memory.HOST.front(), "serve_everybody", lambda: asked.append(maker))
    eval(maker, {"np": np, "xp": xp, "ft": ft, "optim": optim, "N": 1 << 19})
    assert asked == [maker]


def test_every_thread_and_context_is_served():
    program = (
        "import contextvars, threading, numpy as np, funct as ft, funct.array as xp\n"
        "name = np._core.multiarray.get_handler_name\n"
        "made = lambda: ft.device.memory_stats()['allocation.all.current']\n"
        "before, early, found, go = np.ones(1 << 20), [], [], threading.Event()\n"
        "def work():\n"
        "    early.append(np.ones(1 << 20))\n"
        "    go.wait()\n"
        "    found.append((name(early[0]), name(np.ones(1 << 20)), made()))\n"
        "    early.append(np.ones(1 << 20))\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "y = xp.ones(1 << 20) + 1\n"
        "go.set()\n"
        "thread.join()\n"
        "assert found[0][1] == 'funct' and made() == 2\n"
        "contextvars.Context().run(lambda: found.append(np.ones(1 << 20)))\n"
        "assert made() == 3\n"
        "del before, early, found\n"  # some of them NumPy's own from before
        "assert made() == 1\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_somebody_elses_handler_stays():
    program = (
        "import numpy as np, funct.array as xp\n"
        "from funct.device.memory import HOST, front\n"
        "import contextvars\n"
        "front.set_handler(HOST.private().capsule)\n"
        "theirs = front.set_handler(HOST.private().capsule)\n"
        "front.set_handler(theirs)\n"
        "xp.ones(1 << 20) + 1\n"
        "assert front.set_handler(theirs) is theirs\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_arrays_may_outlive_everything_else():
    program = (
        "import atexit, numpy as np, funct.array as xp\n"
        "x = xp.ones(1 << 20) + 1\n"
        "class Late:\n"
        "    def __del__(self, np=np): self.y = np.ones(1 << 20) + np.ones(1 << 19).sum()\n"
        "late = Late()\n"
        "late.me = late\n"
        "atexit.register(lambda: np.ones(1 << 21))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert done.returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork.. was called:RuntimeWarning")  # JAX says so of itself
def test_a_forked_child_has_its_own_copy():
    x = np.full(1 << 18, 5.0)
    child = os.fork()
    if child == 0:
        y = np.full(1 << 18, 6.0)
        ok = (x == 5).all() and (y == 6).all() and y.ctypes.data != x.ctypes.data
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (x == 5).all()


def test_the_limit_holds_and_the_error_says_who_has_the_memory():
    ft.device.empty_cache()
    with ft.device.record_memory():
        ft.device.set_limit(now("reserved_bytes") + 64 * MIB)
        x = xp.ones((4, MIB)) + 1
        with pytest.raises(AllocationError, match=r"asked for 32\.0 MiB; held by arrays") as caught:
            held = [x + k for k in range(5)]
    assert isinstance(caught.value, MemoryError)
    assert "x = xp.ones((4, MIB)) + 1" in str(caught.value)
    assert "in 1 from test_memory.py" in str(caught.value)
    ft.device.set_limit(None)
    held = [x + k for k in range(5)]
    assert len(held) == 5


def whole(x):
    return xp.broadcast_to(xp.asarray(1), x.shape)


def square(x):
    return xp.reshape(x, (1 << 25, 1 << 25))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("concat", lambda x: xp.concat([x, x])),
        ("stack", lambda x: xp.stack([x, x])),
        ("unique_values", xp.unique_values),
        ("sort", xp.sort),
        ("segment_sum", lambda x: xp.segment_sum(xp.ones(2), xp.arange(2), len(x))),
        ("floor_divide", lambda x: whole(x) // whole(x)),
        ("remainder", lambda x: whole(x) % whole(x)),
        ("svd", lambda x: xp.linalg.svd(square(x))),
        ("pinv", lambda x: xp.linalg.pinv(square(x))),
        ("eigvals", lambda x: xp.linalg.eigvals(square(x))),
        ("tolist", lambda x: x.tolist()),
        ("unstack", xp.unstack),
    ],
)
def test_functions_of_one_kernel_refuse_by_name_too(name, call):
    petabytes = xp.broadcast_to(xp.ones(1), (1 << 50,))
    with pytest.raises(AllocationError, match=f"^{name}: "):
        call(petabytes)


@pytest.mark.parametrize(
    "update",
    [
        lambda x: x.at[0].set(1.0),
        lambda x: x.at[0].add(1.0),
        lambda x: x.at[xp.asarray([0, 1])].add(xp.ones(2)),
        lambda x: x.at[xp.asarray([0, 1])].set(xp.ones(2)),
        lambda x: x.at[:2].multiply(xp.ones(2)),
    ],
)
def test_updates_that_find_no_room_are_refused_with_a_report(update):
    with pytest.raises(AllocationError, match=r"x\.at"):
        update(xp.broadcast_to(xp.ones(1), (1 << 50,)))


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("__dlpack__", lambda x, _: np.from_dlpack(x)),
        ("save", lambda x, path: serialize.save({"x": x}, path / "x.safetensors")),
        ("save", lambda x, path: serialize.save({"x": x}, path / "folder")),
        ("step", lambda x, _: optim.sgd(0.1).step(x, x, optim.sgd(0.1).init(x))),
    ],
)
def test_what_leaves_and_finds_no_room_is_refused_with_a_report(name, use, tmp_path):
    with pytest.raises(AllocationError, match=f"^{name}: "):
        use(xp.broadcast_to(xp.ones(1), (1 << 50,)), tmp_path)
    assert not list(tmp_path.glob("*.safetensors"))


def test_without_a_recording_the_error_says_how_much_of_which_size():
    ft.device.empty_cache()
    x = xp.ones((3, MIB)) + 1
    ft.device.set_limit(now("reserved_bytes"))
    with pytest.raises(AllocationError, match=r"\d × 24\.0 MiB"):
        [x + k for k in range(9)]


class AlarmError(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TimeoutError("late"), AlarmError(1, "two")])
@pytest.mark.parametrize("function", ["_answer", "_made", "_handed_out"])
def test_what_a_handler_of_a_signal_raises_while_memory_is_found_reaches_the_program(
    error, function, capfd
):
    """NumPy has its block first, from elsewhere; the error is the one that was raised, also where
    that is before the first line of ours.
    """
    code = getattr(memory.HOST.front(), function).__code__

    def raising(frame, event, _):
        if event == "call" and frame.f_code is code:
            sys.settrace(None)
            raise error

    def work():
        x = np.full(123 << 16, 7, np.uint8)
        assert x.min() == x.max() == 7

    traced = sys.gettrace()
    ft.device.empty_cache()
    sys.settrace(raising)
    with pytest.raises(type(error)) as caught:
        work()
    sys.settrace(traced)
    assert caught.value is error
    assert "ignored" not in capfd.readouterr().err
    assert np.ones(123 << 16, np.uint8).all()


def test_memory_that_only_a_cycle_holds_is_found_before_a_request_fails():
    ft.device.empty_cache()
    ft.device.set_limit(now("reserved_bytes") + 64 * MIB)
    gc.disable()
    try:
        for _ in range(5):
            cycle = [np.ones(4 * MIB)]
            cycle.append(cycle)
            del cycle
    finally:
        gc.enable()
    assert ft.device.memory_stats()["num_alloc_retries"] > 0


def test_a_limit_below_what_is_free_gives_that_back():
    x = np.ones(8 * MIB)
    del x
    assert now("reserved_bytes") >= 64 * MIB
    held = now()
    ft.device.set_limit(0)
    assert now("reserved_bytes") < held + 8 * MIB


@pytest.mark.parametrize("limit", [-1, 1.5, -0.1, "1 GiB", True, 1 << 80])
def test_a_limit_is_checked(limit):
    with pytest.raises(ArgumentError, match="set_limit"):
        ft.device.set_limit(limit)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc")
def test_empty_cache_gives_pages_back():
    x = np.ones(16 * MIB)
    del x
    before = resident()
    assert ft.device.empty_cache() >= 128 * MIB
    assert resident() < before - 100 * MIB


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc")
def test_no_more_than_keep_stays_with_its_pages():
    ft.device.configure_memory(keep=32 * MIB)
    ft.device.empty_cache()
    before = resident()
    for size in range(5, 13):
        x = np.ones(size * MIB)
        del x
    assert resident() < before + 64 * MIB
    for size in range(5, 13):
        assert (np.ones(size * MIB) == 1).all()


def test_peaks_start_again():
    x = np.ones(4 * MIB)
    del x
    assert now(what="peak") >= now() + 32 * MIB
    ft.device.reset_peak()
    assert now(what="peak") == now()


def test_scopes_stand_in_each_other():
    with ft.device.memory_scope() as outer:
        x = np.ones(4 * MIB)
        with ft.device.memory_scope() as inner:
            y = np.ones(2 * MIB)
            del y
        del x
    small, both = 16 * MIB + UNIT, 48 * MIB + 2 * UNIT
    assert (inner.allocated, inner.freed, inner.peak) == (small, small, small)
    assert (outer.allocated, outer.freed, outer.peak) == (both, both, both)
    assert (inner.allocations, outer.allocations) == (1, 2)
    assert (inner.requested, outer.requested) == (16 * MIB, 48 * MIB)


@pytest.mark.parametrize("seed", range(6))
def test_scopes_of_several_threads_begin_and_end_in_any_order(seed):
    """Each knows what was there most since it began, and no other's peak is lost or counted."""
    gc.collect()
    before = ft.device.memory_stats()["allocated_bytes.large_pool.peak"]
    random, held, scopes, most = np.random.default_rng(seed), [], [], 0
    for _ in range(60):
        what = random.integers(5)
        if what == 0 and len(scopes) < 5:
            scope = ft.device.memory_scope()
            scopes.append([scope, scope.__enter__(), now(), now()])
        elif what == 1 and scopes:
            scope, seen, first, largest = scopes.pop(random.integers(len(scopes)))
            scope.__exit__(None, None, None)
            assert seen.peak == largest - first
        elif what == 2 and held:
            held.pop(random.integers(len(held)))
        else:
            held.append(np.ones(int(random.integers(1, 9)) * MIB // 2))
        most = max(most, ft.device.memory_stats()["allocated_bytes.large_pool.current"])
        for entry in scopes:
            entry[3] = max(entry[3], now())
    for scope, seen, first, largest in scopes:
        scope.__exit__(None, None, None)
        assert seen.peak == largest - first
    assert ft.device.memory_stats()["allocated_bytes.large_pool.peak"] >= max(before, most)


def idle_bytes():
    """What is neither lent nor a piece of a divided segment: blocks that wait in bins, and whole
    free segments."""
    blocks = [s["blocks"] for s in ft.device.memory_snapshot()["segments"]]
    waiting = sum(b["size"] for each in blocks for b in each if b["state"] == "cached")
    return waiting + sum(b[0]["size"] for b in blocks if [x["state"] for x in b] == ["inactive"])


@pytest.mark.parametrize("waiting", [0, 5, 32, 80])
def test_a_scope_tells_what_became_of_the_system_s_memory(waiting):
    """Growth of what is reserved, calls for it, retries and failures are those of the block.

    What waits in a bin (MiB) is brought back for a request that no bin can meet: it then is a piece
    of a segment, or the beginning of one that grows.
    """
    gc.collect()
    ft.device.empty_cache()
    np.empty(waiting * MIB, np.uint8)
    with ft.device.memory_scope() as outer:
        with ft.device.memory_scope() as nothing:
            pass
        size = now("reserved_bytes") + 32 * MIB  # more than any hole has that others have left
        idle = idle_bytes()
        with ft.device.memory_scope() as grown:
            x = np.empty(size, np.uint8)
        idle -= idle_bytes()
        ft.device.set_limit(now("reserved_bytes") + MIB)
        with ft.device.memory_scope() as full, pytest.raises(MemoryError):
            np.empty(now("reserved_bytes") + 2 * MIB, np.uint8)
        ft.device.set_limit(None)
    del x
    assert (nothing.reserved, nothing.arena_calls, nothing.retries) == (0, 0, 0)
    assert grown.reserved >= 32 * MIB
    assert grown.active == grown.allocated - grown.freed >= grown.requested == size
    assert grown.inactive_split == grown.reserved - grown.active + idle
    assert grown.arena_calls >= 1
    assert (full.retries, full.failures) == (1, 1)
    assert (outer.retries, outer.failures) == (1, 1)


def test_what_waits_in_a_bin_is_no_free_piece():
    """It is whole for the next array of its size; `empty_cache` brings it back to its segment."""
    ft.device.empty_cache()
    held = np.ones(MIB)  # the segment stays in use
    ft.device.reset_peak()
    before = now("inactive_split_bytes")
    x = np.ones(4 * MIB)
    taken = now("inactive_split_bytes")
    del x
    assert now("inactive_split_bytes") == taken
    assert now("inactive_split_bytes", "peak") == max(before, taken)
    x = np.ones(4 * MIB)  # out of the bin
    assert now("inactive_split_bytes") == taken
    del held, x


def test_a_private_pool_has_segments_of_its_own():
    pool = ft.device.PrivatePool()
    with pool:
        x = np.ones(MIB)
        with ft.device.PrivatePool():
            np.ones(MIB)
        y = np.ones(MIB)
    z = np.ones(MIB)
    mine = [(s.address, s.address + s.size) for s in pool.segments()]

    def inside(a):
        return any(low <= a.ctypes.data < high for low, high in mine)

    assert (inside(x), inside(y), inside(z)) == (True, True, False)
    del x, y
    assert pool.empty_cache() >= 16 * MIB
    assert pool.segments() == []


def test_a_snapshot_is_json_and_a_page(tmp_path):
    with ft.device.record_memory():
        x = xp.ones((2, MIB)) + 1
        y = x * 2
        del y
        found = ft.device.memory_snapshot(tmp_path / "a.json")
        ft.device.memory_snapshot(tmp_path / "a.html")
    assert json.loads((tmp_path / "a.json").read_text())["stats"] == found["stats"]
    times = [e["time"] for e in found["events"]]
    assert times == sorted(times)
    assert times[-1] - times[0] < 10**10
    of_y = [e["bytes"] for e in found["events"] if "y = x * 2" in e["site"]]
    assert of_y == [16 * MIB, -16 * MIB]
    active = [b for s in found["segments"] for b in s["blocks"] if b["site"]]
    assert [b["requested"] for b in active] == [16 * MIB]
    for s in found["segments"]:
        assert sum(b["size"] for b in s["blocks"]) == s["size"]
    page = (tmp_path / "a.html").read_text()
    HTMLParser().feed(page)
    assert "y = x * 2" in page
    assert "<polygon" in page
    assert "http" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize("path", ["a.pickle", "a", b"a.json", 3, 3.5, object(), []])
def test_a_snapshot_goes_to_a_known_kind_of_file(path):
    with pytest.raises(ArgumentError, match=r"json or \.html"):
        ft.device.memory_snapshot(path)


@pytest.mark.parametrize("device", ["paper", 3, None, [], {}])
def test_a_device_is_the_name_of_one(device):
    for name in ("memory_stats", "memory_summary", "memory_snapshot", "reset_peak", "empty_cache"):
        with pytest.raises(ArgumentError, match=f"{name}: no memory of device"):
            getattr(ft.device, name)(device=device)


@pytest.mark.parametrize("most", ["x", None, [], 3.5, float("nan"), 0, -1, 2**70])
def test_a_recording_has_a_number_of_events(most):
    with pytest.raises(ArgumentError, match="record_memory: most"), ft.device.record_memory(most):
        pass


def test_a_recording_is_there_until_the_next_one():
    """Who looks after the block sees what happened in it."""
    with ft.device.record_memory():
        x = xp.ones((2, MIB)) + 1
        del x
    y = xp.ones((2, MIB)) + 1
    found = ft.device.memory_snapshot()["events"]
    assert [e["bytes"] for e in found] == [16 * MIB, -16 * MIB]
    with ft.device.record_memory():
        assert ft.device.memory_snapshot()["events"] == []
    del y


def test_a_page_without_a_recording_says_so(tmp_path):
    with ft.device.record_memory():
        pass
    ft.device.memory_snapshot(tmp_path / "a.html")
    assert "record_memory" in (tmp_path / "a.html").read_text()


def test_the_summary_has_the_numbers():
    x = np.ones(3 * MIB)
    text = ft.device.memory_summary()
    assert "memory of cpu" in text
    assert memory.readable(now()) in text
    del x


@pytest.mark.parametrize("name", ["memory_stats", "memory_summary", "empty_cache", "reset_peak"])
def test_an_unknown_device_is_an_error(name):
    with pytest.raises(ArgumentError, match=name):
        getattr(ft.device, name)("tpu:0")


def test_an_unknown_option_is_an_error():
    with pytest.raises(ArgumentError, match="max_split"):
        ft.device.configure_memory(max_split=3)


@pytest.mark.parametrize("option", [
    {"small_most": 0}, {"small_most": 1 << 62}, {"small_segment": 64 << 10},
    {"small_segment": 1 << 62}, {"large_segment": 64 << 10}, {"large_segment": 1 << 62},
    {"max_split_size": 0}, {"max_split_size": 1 << 62}, {"keep": 0}, {"keep": 1 << 62},
    {"gc_threshold": 1}, {"expandable": False},
])  # fmt: skip
def test_memory_is_found_under_options_at_their_ends(option):
    ft.device.configure_memory(**option)
    for size in (1 << 16, 100_001, MIB, 5 * MIB + 3, 40 * MIB):
        held = [np.full(size, k, np.uint8) for k in range(3)]
        assert [int(x.min()) for x in held] == [int(x.max()) for x in held] == [0, 1, 2]
    del held
    ft.device.empty_cache()


@pytest.mark.parametrize("divisions", [1, 2, 4, 8, 16, 32])
def test_sizes_are_rounded_to_a_division_of_the_octave(divisions):
    ft.device.configure_memory(divisions=divisions)
    for granules in (1, 3, 9, 17, 33, 100, 1000):
        with ft.device.memory_scope() as scope:
            x = np.empty(granules << 16, np.uint8)
            del x
        octave = 1 << (granules.bit_length() - 1)
        step = max(octave // divisions, 1)
        assert scope.allocated == (-(-granules // step) * step << 16) + UNIT


def test_blocks_are_counted_as_they_were_made_whatever_is_configured_meanwhile():
    """A block stays of its pool and of its size: sums agree, and come back to the beginning."""
    gc.collect()
    ft.device.configure_memory(divisions=32)
    before = ft.device.memory_stats()
    small, odd = np.ones(60_000), np.ones(33 << 16, np.uint8)
    ft.device.configure_memory(divisions=1, small_most=0)
    del odd
    again = np.ones(32 << 16, np.uint8)  # lies in what is one granule longer
    for pool in ("small_pool", "large_pool"):
        blocks = [
            block["size"]
            for segment in ft.device.memory_snapshot()["segments"]
            for block in segment["blocks"]
            if segment["pool"] == pool and block["state"] == "active"
        ]
        assert ft.device.memory_stats()[f"allocated_bytes.{pool}.current"] == sum(blocks)
    del small, again
    after = ft.device.memory_stats()
    for pool in ("small_pool", "large_pool"):
        for name in ("allocation", "allocated_bytes", "requested_bytes"):
            assert after[f"{name}.{pool}.current"] == before[f"{name}.{pool}.current"]


def test_no_block_is_lent_for_more_than_it_holds_where_classes_change_in_the_middle():
    """A thread may give back a block between the emptying of the bins and the new classes."""
    ft.device.configure_memory(divisions=32)
    front = memory.HOST.front()
    x = np.ones(7 << 16, np.uint8)
    del x  # into the bin that is for 8 granules where an octave has one class
    front.record.divisions = 0
    y = np.ones(8 << 16, np.uint8)
    sizes = [
        (block["size"], block["requested"])
        for segment in ft.device.memory_snapshot()["segments"]
        for block in segment["blocks"]
        if block["state"] == "active"
    ]
    assert all(size >= requested for size, requested in sizes)
    del y


@pytest.mark.parametrize("shape", [(2**62,), (2**31, 2**31), (2**62, 8), (1 << 44,), (2**63 - 1,)])
@pytest.mark.parametrize("make", [xp.ones, xp.zeros, xp.empty])
def test_sizes_that_overflow_are_a_typed_error(make, shape):
    with pytest.raises(FunctError):
        make(shape) + 1


GROWING = {
    "tile": lambda x, n: xp.tile(x, (n, n)),
    "repeat": lambda x, n: xp.repeat(x, 2 * n),
    "broadcast_to": lambda x, n: xp.broadcast_to(x[:1, :1], (n, n)) + 1,
    "kron": lambda x, n: xp.kron(xp.broadcast_to(x[:1, :1], (n, n)), x),
    "matmul": lambda x, n: xp.broadcast_to(x[0, 0], (n, 3)) @ xp.broadcast_to(x[0, 0], (3, n)),
    "where": lambda x, n: xp.where(xp.broadcast_to(x[0, 0], (n,)) > 0, 1.0, 2.0),
    "stack": lambda x, n: xp.stack([xp.broadcast_to(x[0, 0], (n,))] * 3),
    "vmap": lambda x, n: ft.vmap(lambda y: y + 1)(xp.broadcast_to(x[0, 0], (n,))),
}


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("n", [1 << 62, (1 << 63) - 1, 1 << 63, 1 << 70])
def test_sizes_that_overflow_are_a_typed_error_where_they_are_captured_too(name, n):
    """Also where a sum follows, so that no array of that size would be made."""
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])

    def total(x):
        return xp.sum(GROWING[name](x, n))

    for transform in (lambda f: f, ft.jit, ft.vmap, ft.grad, lambda f: ft.jit(ft.grad(f))):
        with pytest.raises(FunctError):
            transform(total)(x if transform is not ft.vmap else xp.stack([x, x]))


def test_arrays_in_blocks_pickle_and_copy():
    x = xp.ones((2, MIB)) + 1
    assert (pickle.loads(pickle.dumps(x)) == x).all()
