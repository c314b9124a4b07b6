"""The benchmarks of the namespace and of kernels leave nothing out and compare equals. Nothing is
timed here.
"""

import importlib
import itertools
import pkgutil
import re
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from benchmarks import kernels, small
from benchmarks.namespace import call, rows, scope
from benchmarks.peers import optional
from funct.compile.executable import call_by_call
from funct.core import Value
from funct.kernels import cpu, indexing, linalg, table
from funct.kernels.cpu.loops import Kernel, available
from funct.kernels.cpu.prepared import Prepared
from funct.kernels.linalg import few, products
from funct.kernels.order import sorting
from funct.tree import leaves

ROWS = [pair for pairs in rows().values() for pair in pairs]
ASKED = "\n".join(ours for ours, _ in ROWS)

# What the function leaves open (vectors are known up to their phase), and records of each library's
# own.
OPEN = {
    "xp.empty(16)", "xp.empty_like(x)", "xp.linalg.eig(m)", "x.device", "x.level",
    "xp.finfo(xp.float64)", "xp.iinfo(xp.int64)", "xp.__array_namespace_info__()",
    "x.__array_namespace__()", "xp.linalg.eig(w)", "xp.linalg.eigh(a)", "xp.linalg.svd(w)",
    "xp.linalg.svd(w.reshape(8, 2))", "xp.linalg.svd(w.reshape(2, 8))",
    'xp.linalg.qr(w[:, :2], mode="complete")',
}  # fmt: skip


def _functions(namespace: types.ModuleType, prefix: str) -> Iterator[str]:
    for name in namespace.__all__:
        found = getattr(namespace, name)
        if isinstance(found, types.ModuleType):
            yield from _functions(found, f"{prefix}.{name}")
        elif callable(found) and not isinstance(found, type):
            yield f"{prefix}.{name}"


def test_every_function_has_a_row() -> None:
    """A function that is added to the namespace is measured."""
    assert [n for n in _functions(xp, "xp") if n + "(" not in ASKED] == []


@pytest.mark.parametrize("owner", [xp.Array, xp.At])
def test_every_method_and_attribute_has_a_row(owner: type) -> None:
    """What is added to arrays is measured."""
    asked = set(re.findall(r"\.(\w+)", ASKED))
    engine = vars(Value)  # what dispatch reads is nobody's to call
    assert [n for n in dir(owner) if n[0] != "_" and n not in asked and n not in engine] == []


OPERATORS = (
    "+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==",
    "!=",
)  # fmt: skip


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_has_a_row(operator: str) -> None:
    """Python's operators are measured too."""
    assert f" {operator} " in ASKED


@pytest.mark.parametrize(("ours", "theirs"), ROWS, ids=[ours for ours, _ in ROWS])
def test_both_sides_of_a_row_are_equal(ours: str, theirs: str) -> None:
    """NumPy is asked for the same thing."""
    if ours in OPEN:
        call(theirs, True)()
        call(ours, False)()
    else:
        _compare(call(ours, False)(), call(theirs, True)())


def _gives_arrays(ours: str) -> bool:
    return all(isinstance(v, xp.Tensor) for v in leaves(call(ours, False)()))


@pytest.mark.parametrize("ours", [ours for ours, _ in ROWS if _gives_arrays(ours)])
def test_short_ways_give_the_bits_that_calls_of_their_ops_give(ours: str) -> None:
    """A function computes at once on concrete arrays what its ops give."""
    names = scope(False)
    arrays = {name: v for name, v in names.items() if isinstance(v, xp.Tensor)}
    eager = eval(ours, names)
    graph = ft.make_graph(lambda given: eval(ours, {**names, **given}))(arrays)
    found = call_by_call(graph)(*[np.asarray(v) for v in leaves(arrays)])
    for v, w in zip(leaves(eager), found, strict=True):
        assert (v.shape, v.dtype) == (w.shape, w.dtype)
        assert np.asarray(v).tobytes() == np.asarray(w).tobytes()


def _compare(a: Any, b: Any) -> None:
    if isinstance(a, tuple | list):
        assert len(a) == len(b)
        for v, w in zip(a, b, strict=True):
            _compare(v, w)
    elif isinstance(a, xp.Tensor | np.ndarray | complex):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    else:
        assert a == b


SIZES = (100_000, 1_000)  # reach each way through the irregular kernels
HEAVY = 1.5e8  # operations or bytes: what rows beyond that call, smaller ones call too


def _kernels() -> Iterator[tuple[str, Kernel]]:
    for place in pkgutil.walk_packages(cpu.__path__, f"{cpu.__name__}."):
        for v in vars(importlib.import_module(place.name)).values():
            if isinstance(v, Kernel) and v.fn.__module__ == place.name:
                yield _name(v), v


def _name(k: Kernel) -> str:
    return f"{k.fn.__module__}.{k.fn.__name__}"


def _prepared() -> Iterator[Prepared]:
    places = [pkgutil.iter_modules(p.__path__, f"{p.__name__}.") for p in (indexing, linalg)]
    for place in itertools.chain(*places):
        for v in vars(importlib.import_module(place.name)).values():
            if isinstance(v, Prepared):
                yield v
    yield from few.ALREADY.values()


class _Anything(set[int]):
    def __contains__(self, item: object) -> bool:
        return True


@pytest.mark.skipif(not available(), reason="there is no LLVM to compile with")
def test_every_kernel_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the table, and functions that are compiled: some row of a benchmark calls each."""
    wanted = {r.place for r in table.ROWS if r.needs and table.available().issuperset(r.needs)}
    called: set[str] = set()

    def watched(name: str, call: Any) -> Any:
        def seen(*args: Any) -> Any:
            called.add(name)
            return call(*args)

        return seen

    found = dict(_kernels())
    wanted |= found.keys()
    for name, k in found.items():
        k.__call__ = watched(name, k.__call__)
    products.product.load()  # as after some thousand calls, which rows there do not have here
    for prepared in _prepared():  # and as what has come before
        prepared.load()
        monkeypatch.setattr(prepared, "_met_once", _Anything())
    located = Kernel.located
    monkeypatch.setattr(Kernel, "located", lambda k, *a: called.add(_name(k)) or located(k, *a))
    load = table._load
    monkeypatch.setattr(table, "_load", lambda place: called.add(place) or load(place))
    try:
        _run_all(monkeypatch)
    finally:
        for k in found.values():  # what it was before does not know the code that has come since
            k.__call__ = k._entries.call if k._entries else k._miss
    assert sorted(wanted - called) == []


def _run_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row of the kernels but the heaviest, and of small arrays, without peers."""
    for calls in (small.layers() | small.draws()).values():
        calls["funct"]()
    for file in kernels.FILES:
        if hasattr(file, "optional"):  # SciPy makes the sparse matrices
            alone = {"scipy.sparse": optional("scipy.sparse")}.get
            monkeypatch.setattr(file, "optional", alone)
        irregular = file in (kernels.irregular, kernels.draws)
        for row in file.rows(SIZES) if irregular else file.rows():
            if irregular or row.work <= HEAVY:
                row.call()
    monkeypatch.setattr(sorting, "packs_slowly", lambda: False)  # as on other processors
    for row in itertools.chain(kernels.irregular.rows(SIZES), kernels.samples.rows()):
        if row.name.startswith("sort"):
            row.call()


@pytest.mark.slow
@pytest.mark.parametrize("file", kernels.FILES)
def test_every_row_of_the_kernels_runs(file: types.ModuleType) -> None:
    """Ours and the peers', once."""
    for row in file.rows():
        row.call()
        for peer in row.peers.values():
            peer()
