"""Machine code from LLVM text: it runs, it is kept, and what is kept may be damaged or refused."""

import ctypes
import os
import platform
import random
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from msgspec.structs import replace

from funct.device import assemble, assemble_all, disk_cache, host, llvm, machine_code, objects
from funct.device.host import Host, vector_bytes
from funct.device.machine_code import LEAN, begin, emit
from tests.together import together

TEXT = """
define i64 @affine(i64 %x) {
  %y = mul i64 %x, 3
  %z = add i64 %y, NUMBER
  ret i64 %z
}
"""


def affine(number):
    code = assemble(TEXT.replace("NUMBER", str(number)))
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("affine"))
    return code, run(5)


def test_the_code_computes(folder):
    _, found = affine(4)
    assert found == 19


def test_equal_texts_share_their_code_while_it_lives(folder):
    first, _ = affine(5)
    second, _ = affine(5)
    assert first is second


def test_an_unknown_name_is_an_error(folder):
    with pytest.raises(KeyError, match="other"):
        assemble(TEXT.replace("NUMBER", "6")).address("other")


def test_text_that_is_not_well_formed_is_an_error_with_llvms_message(folder):
    with pytest.raises(RuntimeError, match="expected"):
        assemble("define nonsense")


def test_a_kept_object_is_loaded_and_not_made_again(folder, monkeypatch):
    affine(7)
    monkeypatch.setattr(machine_code, "emit", lambda *a, **k: pytest.fail("made again"))
    machine_code._loaded.clear()
    assert affine(7)[1] == 22


def test_texts_made_side_by_side_are_those_made_one_by_one(folder):
    texts = [TEXT.replace("NUMBER", str(n)) for n in range(20, 40)]
    kept = assemble(texts[3])
    codes = assemble_all([(t, 1) for t in [*texts, texts[0]]])
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    assert [kind(c.address("affine"))(5) for c in codes] == [*range(35, 55), 35]
    assert codes[3] is kept
    assert codes[-1] is codes[0]
    assert [c.object_file for c in codes[:2]] == [emit(t, host()) for t in texts[:2]]
    assert len(list(folder.iterdir())) == 20


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(machine_code, "host", lambda: replace(host(), cores=2))


def test_what_was_begun_is_not_made_again(two_cores, monkeypatch):
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    begin([TEXT.replace("NUMBER", "50"), TEXT.replace("NUMBER", "51")], 1)
    for thread in set(machine_code._begun.values()):
        thread.join()
    monkeypatch.setattr(machine_code, "emit", lambda *a, **k: pytest.fail("made again"))
    assert [affine(n)[1] for n in (51, 50)] == [66, 65]
    keys = {machine_code.text_key(TEXT.replace("NUMBER", n), 1) for n in ("50", "51")}
    assert not keys & (machine_code._begun.keys() | machine_code._ready.keys())


def test_a_text_is_begun_once_however_often_it_is_wished_for(two_cores, monkeypatch):
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    made, texts = [], [TEXT.replace("NUMBER", str(n)) for n in (54, 55, 56)]
    monkeypatch.setattr(machine_code, "emit", lambda text, *a, **k: made.append(text) or b"")
    for wished in (texts[:1], texts[:2], texts[1:], texts):
        begin(wished, 1)
    for text in texts:
        machine_code._begun.pop(machine_code.text_key(text, 1)).join()
    machine_code._ready.clear()
    assert sorted(made) == texts


@pytest.mark.parametrize("how", ["library", "binding", "processor"])
def test_what_programs_need_is_begun_as_soon_as_llvm_is_there(how):
    text = """
        from msgspec.structs import replace
        from funct.compile.steps import walker
        from funct.device import llvm, machine_code, threads
        machine_code.host = lambda host=machine_code.host: replace(host(), cores=2)
        import funct
        walker.cores = lambda: 2
        begun = machine_code._begun
        assert not begun and not llvm.loaded()
        llvm.LOADING()
        for thread in walker._starters:
            thread.join()
        made = [f.cache_info().currsize for f in (walker._code, threads._pool)]
        assert made == [1, 1] and llvm.loaded() and not begun
    """
    environment = {**os.environ, "FUNCT_CACHE_DIR": ""}
    text = textwrap.dedent(text).replace("LOADING", how)
    subprocess.run([sys.executable, "-c", text], env=environment, check=True)


def test_how_threads_take_turns_is_as_before_when_all_is_made(two_cores, monkeypatch):
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    before, seen = sys.getswitchinterval(), []
    monkeypatch.setattr(
        machine_code, "emit", lambda *a, **k: seen.append(sys.getswitchinterval()) or b""
    )
    begin([TEXT.replace("NUMBER", "53")], 1)
    (thread,) = {machine_code._begun.pop(machine_code.text_key(TEXT.replace("NUMBER", "53"), 1))}
    thread.join()
    machine_code._ready.clear()
    assert len(seen) == 1
    assert seen[0] < before
    assert sys.getswitchinterval() == before


def test_wrong_text_that_was_begun_is_an_error_where_it_is_asked_for(two_cores, folder):
    begin(["define nonsense"], 1)
    with pytest.raises(RuntimeError, match="expected"):
        assemble("define nonsense", opt=1)


def test_one_core_begins_nothing(monkeypatch):
    monkeypatch.setattr(machine_code, "host", lambda: replace(host(), cores=1))
    begin([TEXT.replace("NUMBER", "52")], 1)
    assert machine_code.text_key(TEXT.replace("NUMBER", "52"), 1) not in machine_code._begun


def test_threads_that_ask_for_one_text_wait_for_one_of_them(folder, monkeypatch):
    """And whoever asks for another text meanwhile waits for nobody."""
    slow, quick = (TEXT.replace("NUMBER", n) for n in ("57", "58"))
    made, at_work, go_on = [], threading.Event(), threading.Event()

    def watched(text, *a, **k):
        made.append(text)
        if text == slow:
            at_work.set()
            assert go_on.wait(60)
        return emit(text, *a, **k)

    monkeypatch.setattr(machine_code, "emit", watched)
    found = []
    threads = [threading.Thread(target=lambda: found.append(affine(57))) for _ in range(4)]
    for t in threads:
        t.start()
    assert at_work.wait(60)
    assert affine(58)[1] == 73
    assert not found
    go_on.set()
    for t in threads:
        t.join()
    assert sorted(made) == sorted([slow, quick])
    assert {x for _, x in found} == {72}
    assert len({id(code) for code, _ in found}) == 1
    assert not machine_code._under_way


def test_who_waited_for_a_text_that_is_wrong_has_the_error_too(folder, monkeypatch):
    at_work, asked, found = threading.Event(), threading.Event(), []

    def watched(text, *a, **k):
        at_work.set()
        assert asked.wait(60)
        return emit(text, *a, **k)

    monkeypatch.setattr(machine_code, "emit", watched)

    def ask():
        with pytest.raises(RuntimeError, match="expected"):
            assemble("define nonsense")
        found.append(1)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    threads[0].start()
    assert at_work.wait(60)
    for t in threads[1:]:
        t.start()
    asked.set()
    for t in threads:
        t.join()
    assert len(found) == 3
    assert not machine_code._under_way


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_fork_waits_for_llvm_and_its_child_for_nobody():
    text = """
        import os, sys, threading, time
        from funct.device import assemble, host, machine_code
        host()
        TEXT = "define i64 @f(i64 %x) {\\n  %y = add i64 %x, N\\n  ret i64 %y\\n}\\n"
        stop = threading.Event()

        def work(first):
            n = first
            while not stop.is_set():
                assemble(TEXT.replace("N", str(n)))
                n += 4

        threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for t in threads:
            t.start()
        for k in range(20):
            time.sleep(0.003)
            child = os.fork()
            if not child:
                for n in range(8):
                    assemble(TEXT.replace("N", str(1000 * (k + 1) + n)))
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for t in threads:
            t.join()
        assert not machine_code._under_way
    """
    environment = {**os.environ, "FUNCT_CACHE_DIR": ""}
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(text)]
    subprocess.run(command, env=environment, check=True, timeout=60)


def test_the_lean_level_computes_the_same_and_is_kept_apart(folder):
    text = TEXT.replace("NUMBER", "60")
    codes = assemble_all([(text, LEAN), (text, 0), (text, 1)])
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    assert [kind(c.address("affine"))(5) for c in codes] == [75] * 3
    assert len({machine_code.text_key(text, k) for k in (LEAN, 0, 1)}) == 3


@pytest.mark.parametrize("version", ["0.44.0", "0.99.1", "1.45.0", "0.45dev.1"])
def test_of_another_llvm_no_option_is_asked(monkeypatch, version):
    monkeypatch.setattr(llvm, "version", lambda: version)
    monkeypatch.setattr(llvm, "binding", lambda: pytest.fail("asked"))
    monkeypatch.setattr(llvm, "_file", llvm._file.__wrapped__)
    monkeypatch.setattr(llvm, "_opened", llvm._opened.__wrapped__)
    assert llvm.lean_level() == 1
    for well in (True, False):
        with llvm._allocating(well=well):
            pass


# Of its values at once all are alive at the end, so who allocates registers how is seen in the code
CROWDED = "\n".join([
    "define <8 x float> @crowded(ptr %p) {",
    "  %x0 = load <8 x float>, ptr %p",
    "  br label %next",
    "next:",
    *[f"  %p{k} = getelementptr <8 x float>, ptr %p, i64 {k}\n"
      f"  %y{k} = load <8 x float>, ptr %p{k}" for k in range(24)],
    "  br label %last",
    "last:",
    "  %s0 = fadd <8 x float> %x0, %y0",
    *[f"  %s{k} = fmul <8 x float> %s{k - 1}, %y{k}" for k in range(1, 24)],
    "  ret <8 x float> %s23",
    "}",
])  # fmt: skip


def test_how_registers_are_allocated_does_not_depend_on_other_threads(folder):
    """Of whatever is made at the same time: only level 0 may differ, and never what asks for the
    good allocator, whose code is kept.
    """
    good = {opt: emit(CROWDED, host(), opt=opt) for opt in (LEAN, 1)}
    quick = emit(CROWDED, host(), opt=0)
    assert quick != good[LEAN], "the text does not tell the allocators apart"
    found = {opt: set() for opt in (LEAN, 0, 1)}

    def work(k):
        opt = (LEAN, 0, 1, 0)[k]
        for _ in range(20):
            found[opt].add(emit(CROWDED, host(), opt=opt))

    together(4, work)
    assert found[LEAN] == {good[LEAN]}
    assert found[1] == {good[1]}
    assert found[0] <= {quick, good[LEAN]}
    assert emit(CROWDED, host(), opt=0) == quick
    assert not llvm._well


def test_code_that_fails_leaves_the_good_allocator(folder, monkeypatch):
    good = emit(CROWDED, host(), opt=LEAN)
    with pytest.raises(ZeroDivisionError), llvm._allocating(well=False):
        raise ZeroDivisionError
    assert emit(CROWDED, host(), opt=LEAN) == good


def test_of_texts_made_side_by_side_one_may_be_wrong(folder):
    texts = [TEXT.replace("NUMBER", str(n)) for n in (50, 51)]
    with pytest.raises(RuntimeError, match="expected"):
        assemble_all([(t, 1) for t in [texts[0], "define nonsense", texts[1]]])
    assert affine(50)[1] == 65


def test_code_that_offers_is_made_beside_the_text_that_calls_it(folder, monkeypatch):
    """Who offers a function assembles it when asked; here it was made in the same go, once."""
    offering = TEXT.replace("NUMBER", "60").replace("@affine", "@offered")
    calling = (
        "declare i64 @offered(i64)\n"
        "define i64 @twice(i64 %x) {\n"
        "  %a = call i64 @offered(i64 %x)\n  %b = call i64 @offered(i64 %a)\n  ret i64 %b\n}\n"
    )
    made = []
    monkeypatch.setattr(machine_code, "_offered", {})
    monkeypatch.setattr(
        machine_code, "emit", lambda text, *a, **k: made.append(text) or emit(text, *a, **k)
    )
    machine_code.offer("offered", lambda: assemble(offering, opt=0).address("offered"))
    codes = assemble_all([(calling, 1), (offering, 0)])
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    once = kind(codes[1].address("offered"))
    assert kind(codes[0].address("twice"))(5) == once(once(5))
    assert sorted(made) == sorted([calling, offering])


@pytest.mark.parametrize("level", [LEAN, 1, 2])
def test_another_llvmlite_makes_the_same(level, monkeypatch):
    assert llvm.library() is not None
    text, told = TEXT.replace("NUMBER", "60"), llvm.processor()
    ours = emit(text, host(), opt=level)
    monkeypatch.setattr(llvm, "library", lambda: None)
    monkeypatch.setattr(llvm, "lean_level", lambda: 0)
    assert emit(text, host(), opt=level) == ours
    name, features = llvm.processor()
    assert (name, set(features)) == (told[0], set(told[1]))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("define i32 @one() { ret i64 1 }", "value doesn't match"),
        ("define i32 @one() { ret i32 %x }", "use of undefined value '%x'"),
        ("define i32 @one(i1 %p) {\na: br i1 %p, label %b, label %c\n"
         "b: %z = add i32 1, 1\n br label %c\nc: ret i32 %z\n}", "does not dominate"),
    ],
)  # fmt: skip
def test_llvm_says_what_is_wrong_with_a_text(text, said, known, monkeypatch):
    if not known:
        monkeypatch.setattr(llvm, "library", lambda: None)
    with pytest.raises(RuntimeError, match=said):
        emit(text, host())


def test_texts_are_made_by_many_threads_at_once(monkeypatch):
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    texts = [TEXT.replace("NUMBER", str(700 + n)) for n in range(24)]
    alone = [emit(text, host()) for text in texts]
    assert together(24, lambda k: emit(texts[k], host())) == alone


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 4000])
def test_a_damaged_file_is_made_again(folder, damage):
    affine(8)
    (kept,) = folder.iterdir()
    kept.write_bytes(damage)
    machine_code._loaded.clear()
    assert affine(8)[1] == 23
    assert kept.read_bytes() != damage


def altered(good):
    """Files of the same beginning: cut, or with other numbers in headers and tables."""
    yield from (
        b"",
        b"\0" * 5,
        b"\x7fELF\x02\x01" + b"\xff" * 200,
        good[:40],
        good[: len(good) // 2],
    )
    r = random.Random(0)
    for k in range(500):
        file = bytearray(good)
        first, end = ((0, 64), (len(good) - 512, len(good)))[k % 2]
        for _ in range(r.randint(1, 4)):
            file[r.randrange(first, end)] = r.randrange(256)
        yield bytes(file)


@pytest.mark.skipif(not objects.LOADS, reason="elsewhere LLVM loads objects")
def test_what_is_no_object_is_made_anew_though_its_checksum_is_right(folder):
    """Whatever the file says, it leads nobody anywhere in memory."""
    code, _ = affine(80)
    text = TEXT.replace("NUMBER", "80")
    key, good = machine_code.text_key(text, 1), code.object_file
    remade = 0
    for file in altered(good):
        del code
        disk_cache.write(key, file)
        code = assemble(text)
        assert code.address("affine")
        remade += disk_cache.read(key) != file
    assert remade > 100
    with pytest.raises(ValueError, match="this is no object file"):
        machine_code.load_object(good[:70])
    with pytest.raises(ValueError, match="of another kind"):
        machine_code.load_object(b"\0" * 5)


def test_a_time_to_come_holds_no_file(folder, monkeypatch):
    """A clock that was wrong: those files are the first to go, unless somebody reads them."""
    monkeypatch.setattr(disk_cache, "BOUND", 400)
    monkeypatch.setattr(disk_cache, "_EVERY", 1)
    later = time.time() + 10 * 365 * 86400
    for key in "abcd":
        disk_cache.write(key, bytes(50))
        os.utime(folder / key, (later, later))
    assert disk_cache.read("c") == bytes(50)
    assert (folder / "c").stat().st_mtime < later - 1e6
    for key in "efgh":
        disk_cache.write(key, bytes(50))
    assert not {"a", "b", "d"} & {p.name for p in folder.iterdir()}
    assert {"f", "g", "h"} <= {p.name for p in folder.iterdir()}
    soon = time.time() + 60  # another machine's clock, a minute fast
    os.utime(folder / "h", (soon, soon))
    disk_cache.write("i", bytes(50))
    assert (folder / "h").exists()


SHARING = """
import random, sys
from funct.device import disk_cache
disk_cache.BOUND, disk_cache._EVERY = 20_000, 1
r = random.Random(int(sys.argv[1]))
for k in range(150):
    n = r.randrange(60)
    found = disk_cache.read(f"key{n}")
    assert found in (None, bytes([n]) * 1000), n
    disk_cache.write(f"key{n}", bytes([n]) * 1000)
"""


def test_many_processes_share_a_folder_that_is_full(folder, monkeypatch):
    """All write and remove at once: nobody fails, reads halves, or leaves more than the bound."""
    started = [
        subprocess.Popen([sys.executable, "-c", SHARING, str(k)], stderr=subprocess.PIPE, text=True)
        for k in range(5)
    ]
    assert [p.communicate()[1] for p in started] == [""] * 5
    assert not any(p.returncode for p in started)
    monkeypatch.setattr(disk_cache, "BOUND", 20_000)
    monkeypatch.setattr(disk_cache, "_EVERY", 1)
    disk_cache.write("last", b"")
    files = list(folder.iterdir())
    assert sum(p.stat().st_size for p in files) <= 20_000
    assert not [p for p in files if p.name.startswith(".")]
    assert len(files) > 10


@pytest.mark.parametrize("said", [b"", b"  "])
def test_what_says_nothing_of_the_processor_is_asked_anew(folder, monkeypatch, said):
    module = sys.modules["funct.device.host"]
    monkeypatch.setattr(module, "loaded", lambda: False)
    monkeypatch.setattr(module, "_key", lambda: "host-this")
    disk_cache.write("host-this", said)
    assert module._named() == (host().name, host().features)
    assert disk_cache.read("host-this") not in (None, said)


def test_a_file_under_the_name_of_another_is_a_damaged_one(folder):
    affine(8)
    (first,) = folder.iterdir()
    affine(12)
    (second,) = set(folder.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    machine_code._loaded.clear()
    assert affine(12)[1] == 27


@pytest.mark.parametrize("error", [PermissionError, OSError])
def test_a_folder_that_may_not_be_written_is_tolerated(folder, monkeypatch, error):
    affine(9)
    (kept,) = folder.iterdir()

    def refused(path, mode="r", *rest):
        if "x" in mode or "w" in mode:  # a mode of the folder would not stop root
            raise error(path)
        return open(path, mode, *rest)

    monkeypatch.setattr(disk_cache, "open", refused, raising=False)
    assert affine(10)[1] == 25
    machine_code._loaded.clear()
    assert affine(9)[1] == 24  # what is there is read all the same
    assert list(folder.iterdir()) == [kept]


def test_a_folder_that_cannot_be_is_tolerated(monkeypatch):
    monkeypatch.setenv("FUNCT_CACHE_DIR", "/dev/null/nowhere")
    assert affine(11)[1] == 26


def test_the_oldest_files_go_first(folder, monkeypatch):
    monkeypatch.setattr(disk_cache, "BOUND", 300)
    monkeypatch.setattr(disk_cache, "_EVERY", 1)
    for k, key in enumerate("abcd"):
        disk_cache.write(key, bytes(100))
        os.utime(folder / key, (k, k))
    disk_cache.write("e", bytes(100))
    assert sorted(p.name for p in folder.iterdir()) == ["d", "e"]


@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("x86-64", {"sse2"}),
        ("haswell", {"avx2", "fma"}),
        ("znver4", {"avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"}),
    ],
)
def test_objects_are_made_for_other_processors_too(name, features):
    held = frozenset(features)
    other = Host(name, held, vector_bytes(held), 1)
    assert machine_code.emit(TEXT.replace("NUMBER", "1"), other)[:4] == b"\x7fELF"


def test_the_host_has_vectors_and_cores():
    assert host().vector_bytes in (16, 32, 64)
    assert host().cores >= 1


WHOLE = """
@count = global i64 40
@room = internal global [3 x i64] zeroinitializer
@table = private constant [2 x double] [double 0.5, double 2.5]
declare i64 @labs(i64)
declare ptr @memset(ptr, i32, i64)
define i64 @step(i64 %x) {
  %before = load i64, ptr @count
  %after = add i64 %before, 1
  store i64 %after, ptr @count
  %at = getelementptr i64, ptr @room, i64 2
  %kept = load i64, ptr %at
  store i64 %x, ptr %at
  %absolute = call i64 @labs(i64 %x)
  %sum = add i64 %absolute, %kept
  ret i64 %sum
}
define double @read(i64 %k) {
  %at = getelementptr double, ptr @table, i64 %k
  %x = load double, ptr %at
  ret double %x
}
"""


def test_what_is_loaded_without_llvm_is_what_llvm_loads(monkeypatch):
    """Code, constants, variables that start with a value or zero, functions of the C library."""
    made = emit(WHOLE, host())
    ours = machine_code._load(made, made=True)
    monkeypatch.setattr(machine_code, "mapped", lambda *a: None)
    for code in (ours, machine_code._load(made, made=True)):
        step = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("step"))
        read = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(code.address("read"))
        count = ctypes.c_int64.from_address(code.address("count"))
        assert [step(-7), step(5), step(-1)] == [7, 5 - 7, 1 + 5]
        assert (count.value, read(0), read(1)) == (43, 0.5, 2.5)
        with pytest.raises(KeyError, match="labs"):
            code.address("labs")


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="elsewhere LLVM loads objects"
)
def test_kept_code_is_run_without_llvm(tmp_path):
    """A second process loads the code of a compiled function, and LLVM not at all."""
    program = (
        "import sys, numpy as np, funct as ft, funct.array as xp\n"
        "x = xp.asarray(np.linspace(0, 1, 100_000, dtype=np.float32))\n"
        "f = ft.jit(lambda x: xp.sum(xp.exp(x) * x - 1))\n"
        "print(float(f(x)), float(f(x)), float(f(x)), ft.device.llvm.loaded())"
    )
    env = {**os.environ, "FUNCT_CACHE_DIR": str(tmp_path)}
    told = [
        subprocess.run(
            [sys.executable, "-c", program], env=env, check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert told[0][:3] == told[1][:3]
    assert [t[3] for t in told] == ["True", "False"]


def test_an_object_for_another_processor_is_left_to_llvm():
    other = emit(TEXT.replace("NUMBER", "1"), host())
    assert (
        objects.mapped(b"\x7fELF\x02\x01" + bytes(12) + b"\xb7" + other[19:], lambda n: 0) is None
    )
    assert objects.mapped(b"MZ" + other, lambda n: 0) is None


def test_a_function_that_is_nowhere_is_left_to_llvm():
    text = "declare void @there_is_no_such_function()\n" + (
        "define void @f() {\n  call void @there_is_no_such_function()\n  ret void\n}\n"
    )
    assert objects.mapped(emit(text, host()), machine_code._found) is None


def test_what_is_made_and_not_loaded_yet_is_made_once(monkeypatch):
    """By a batch whose other texts take longer."""
    monkeypatch.setenv("FUNCT_CACHE_DIR", "")
    emitted, goes_on = [], threading.Event()
    emit = machine_code.emit

    def told(text, *given, **how):
        emitted.append(text)
        made = emit(text, *given, **how)
        if "slow_one" in text:
            assert goes_on.wait(60)
        return made

    monkeypatch.setattr(machine_code, "emit", told)
    quick, slow = (f"define i32 @{name}() {{ ret i32 1871 }}" for name in ("quick_one", "slow_one"))
    batch = threading.Thread(target=machine_code.assemble_all, args=([(quick, 1), (slow, 1)],))
    batch.start()
    while slow not in emitted:
        time.sleep(1e-3)
    machine_code._under_way[machine_code.text_key(quick, 1)].done.wait()
    code = machine_code.assemble(quick)
    goes_on.set()
    batch.join()
    assert code.has("quick_one")
    assert emitted.count(quick) == 1
    assert not {machine_code.text_key(t, 1) for t in (quick, slow)} & machine_code._under_way.keys()
