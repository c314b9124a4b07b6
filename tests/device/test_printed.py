"""Code by what prints its text: found again nothing is printed, and nothing is mixed up."""

import ctypes
import functools
import os
import subprocess
import sys

import numpy as np
import pytest
from msgspec.structs import replace

from funct.device import disk_cache, host, machine_code, printed, printed_all
from funct.device import printed as _face
from funct.device.printed import kept
from funct.kernels.cpu.elementwise import ufunc_loops

room = sys.modules[_face.__module__]
asked: list[object] = []


def affine(number):
    """Text of x -> 3 x + number."""
    asked.append(number)
    body = f"%y = mul i64 %x, 3\n  %z = add i64 %y, {int(number)}\n  ret i64 %z"
    return f"define i64 @affine(i64 %x) {{\n  {body}\n}}\n"


affine.__module__ = "funct.of_ours"  # others' functions have no form


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty folder, and nothing loaded."""
    monkeypatch.setenv("FUNCT_CACHE_DIR", str(tmp_path))
    machine_code._loaded.clear()
    asked.clear()
    return tmp_path


def at_five(code):
    """What the code computes of 5."""
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("affine"))(5)


def another_process():
    """What is loaded is forgotten."""
    machine_code._loaded.clear()


def test_what_is_kept_is_not_printed(monkeypatch):
    monkeypatch.setattr(room, "told", lambda: True)  # the processor: it is asked once a process
    assert not kept(affine, 4)
    assert at_five(printed(affine, 4)) == 19
    assert kept(affine, 4)
    another_process()
    assert at_five(printed(affine, 4)) == 19
    asked.clear()
    assert kept(affine, 4)
    assert [at_five(c) for c in printed_all([(affine, (4,)), (affine, (5,))])] == [19, 20]
    assert asked == [5]


@pytest.mark.parametrize("change", ["CODE", "_AROUND", "version", "host"])
def test_other_code_of_ours_another_llvm_and_another_processor_print_anew(monkeypatch, change):
    """Two versions of the package may share a folder: each finds what it made."""
    printed(affine, 4)
    with monkeypatch.context() as patch:
        if change in ("CODE", "_AROUND"):
            patch.setattr(room, change, "another")
        elif change == "version":
            patch.setattr(room, "version", lambda: "another")
        else:
            there = replace(host(), cache_bytes=host().cache_bytes + 1)
            patch.setattr(room, "host", lambda: there)
        printed(affine, 4)
    assert asked == [4, 4]
    another_process()
    printed(affine, 4)
    assert asked == [4, 4]


def test_arguments_are_told_apart():
    """Also those that Python calls equal; what has no form is printed each time."""
    given = [1, True, 1.0, "1", (1,), ((1,),), np.dtype("f4"), np.dtype("i4"), host()]
    given += [replace(host(), features=frozenset()), affine, {"a": 1}]
    forms = [room._form(x) for x in given]
    assert None not in forms
    assert len(set(forms)) == len(given)
    assert room._form(functools.cache(affine)) == room._form(affine)
    here = lambda: 1  # noqa: E731
    assert [room._form(x) for x in (here, (1, here), object(), at_five, frozenset("ab"))] == [
        None
    ] * 5


@pytest.mark.parametrize("damage", [b"", b"none", b"x" * 400])
def test_damaged_files_are_made_again(cache, damage):
    printed(affine, 4)
    for file in cache.iterdir():
        file.write_bytes(damage)
        another_process()
        assert at_five(printed(affine, 4)) == 19


def test_what_nobody_offers_so_far_is_printed(monkeypatch):
    """Unless its name says whom to ask: what is then offered needs no text."""

    def offers(number):
        asked.append(number)
        machine_code.offer("an_offer", lambda: ctypes.addressof(at))
        return f"declare i64 @an_offer()\n{affine(number)}"

    at = ctypes.c_int64()
    offers.__module__, offers.__qualname__ = "funct.of_ours", "offers"
    monkeypatch.setattr(machine_code, "_offered", dict(machine_code._offered))
    assert at_five(printed(offers, 4)) == 19
    another_process()
    printed(offers, 4)
    assert asked == [4, 4]
    another_process()
    del machine_code._offered["an_offer"]
    assert at_five(printed(offers, 4)) == 19
    assert asked == [4] * 4
    another_process()
    del machine_code._offered["an_offer"]

    def family(name):
        machine_code.offer(name, lambda: ctypes.addressof(at))

    monkeypatch.setattr(machine_code, "_families", {"an": family})
    assert at_five(printed(offers, 4)) == 19
    assert asked == [4] * 4


def test_loops_of_numpys_are_offered_by_their_names():
    """As those who print texts name them; others are not there."""
    for name in ("exp", "add", "floor_divide"):
        for found in ufunc_loops.by_count(getattr(np, name), np.dtype(np.float64)):
            if found != "null":
                known = machine_code._offered.pop(found.removeprefix("@"))
                ufunc_loops.by_count.cache_clear()
                ufunc_loops.offered.cache_clear()
                machine_code._families["numpy"](found.removeprefix("@"))
                assert machine_code._offered[found.removeprefix("@")]() == known()
    for name in ("numpy_nothing_float64", "numpy_exp_float99", "numpy_exp", "numpy_pi_float64"):
        machine_code._families["numpy"](name)
        assert name not in machine_code._offered


def test_the_object_may_be_gone(cache):
    """The oldest files go first, so one of both may be there alone."""
    printed(affine, 4)
    files = sorted(cache.iterdir(), key=lambda p: p.name.startswith("text-"))
    assert [p.name.startswith("text-") for p in files if not p.name.startswith("host-")] == [
        False, True,
    ]  # fmt: skip
    files[0].unlink()
    another_process()
    assert at_five(printed(affine, 4)) == 19
    assert files[0].exists()


@pytest.mark.parametrize("file", ["compile/one.py", "compile/loops/two.py", "kernels/cpu/x/y.py"])
def test_a_change_in_any_folder_that_makes_code_is_seen(tmp_path, file):
    """Also below the folders, and where the time says nothing."""
    for name in (*[f"{m}/__init__.py" for m in room._MAKERS], file):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a = 1\n", encoding="utf-8")
        os.utime(tmp_path / name, (1, 1))
    before = room._state(str(tmp_path))
    assert room._state(str(tmp_path)) == before
    os.utime(tmp_path / file, (2, 2))
    touched = room._state(str(tmp_path))
    (tmp_path / file).write_text("a = 1234\n", encoding="utf-8")
    os.utime(tmp_path / file, (1, 1))
    assert len({before, touched, room._state(str(tmp_path))}) == 3


PROGRAM = """
import inspect, sys, numpy as np, funct.array as xp
from funct.device import llvm
from funct.nn import functional
if "warm" in sys.argv:
    def refuses(*a): raise AssertionError("printed")
    inspect.getsource = refuses  # which kernels are printed from
r = np.random.default_rng(0)
x = xp.asarray(r.normal(size=(64, 2000)).astype("f"))
w = xp.asarray(r.normal(size=(8, 4, 3, 3)).astype("f"))
print(np.asarray(xp.sort(x, axis=1)).tobytes().hex()[:4000])
y = functional.conv2d(xp.reshape(x, (8, 4, 50, 80)), w)
print(np.asarray(functional.max_pool2d(y, 2)).tobytes().hex()[:4000])
print(llvm.loaded())
"""


def test_another_process_prints_nothing(cache):
    """Whatever the seed of its hashes is: features are a set."""
    outs = []
    for seed, arguments in (("1", []), ("2", ["warm"]), ("3", ["warm"])):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PROGRAM, *arguments]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        outs.append(done.stdout.split())
    assert outs[0][:2] == outs[1][:2] == outs[2][:2]
    assert [out[2] for out in outs] == ["True", "False", "False"]


@pytest.mark.parametrize("said", [b"", b"\xff\xfe", b"../other", b"0" * 64, b"  "])
def test_a_name_that_leads_nowhere_is_printed_anew(monkeypatch, cache, said):
    monkeypatch.setattr(room, "told", lambda: True)
    assert at_five(printed(affine, 4)) == 19
    (name,) = cache.glob("text-*")
    another_process()
    disk_cache.write(name.name, said)
    kept(affine, 4)
    assert at_five(printed(affine, 4)) == 19
    assert disk_cache.read(name.name) != said
