"""Machine code of whole graphs on disk, by what the graph computes.

What `native` makes of a graph is data: the text of a Python function, tables of words, object
files. It is kept under a hash of the graph, of the processor and of this package; found again, it
is loaded, and nothing of the way from graph to code is walked. A file that is damaged, or of
another form, means that the code is made anew.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct.compile.entry import Whole, note_whole
from funct.compile.foreseen import takes
from funct.compile.memory.reuse import Reusable
from funct.compile.native import Native, Type, base_names, refused
from funct.compile.spelled import read, spell
from funct.compile.steps.walker import reload
from funct.core import lookup
from funct.device import disk_cache, host, load_object
from funct.device.machine_code import wanted_by
from funct.device.printed import CODE
from funct.events import tell
from funct.graph import Control, Graph, Node, digest
from funct.kernels.cpu.jobs import Job, job
from funct.kernels.elementwise.thresholds import ASKING
from funct.ops.by_size import chosen
from funct.settings import config
from funct.source import SITES

__all__ = ["kept_as", "stored"]

_SMALL = 1 << 20  # bytes of an array made on the way that is kept with the code
_OWN = frozenset({"run", "slowly", "__builtins__", "constants", "empty", "inf", "nan", SITES})


def stored(
    graph: Graph, make: Callable[[], Native], slowly: Callable[..., Any] = refused, *,
    guards: bool = True,
) -> Callable[..., Any]:  # fmt: skip
    """The function for a graph: loaded where it is kept, made and kept otherwise.

    graph: as it was captured, so that nothing is done to it before its code is found. slowly: see
    `native`. guards: whether the function asks them.
    """
    key = kept_as(graph, guards)
    if key is None:
        return make().run
    body = disk_cache.read(key)
    if body is not None:
        try:
            run = _decoded(body, graph, slowly)
        except Exception as error:  # whatever a file of another form leads to
            reason = f"{type(error).__name__}: {error}"
            tell("cache", lambda: f"{key}: cannot be read ({reason}), made anew")
        else:
            tell("cache", lambda: f"{key}: loaded")
            return run
    made = make()
    _say(made.results, [p.workspace for p in made.programs])
    body = _encoded(made, graph)
    if body is not None:
        disk_cache.write(key, body)
        size = len(body)
        tell("cache", lambda: f"{key}: made, {size} bytes")
    return made.run


def _say(results: Sequence[Type], workspaces: Sequence[int]) -> None:
    takes([*[math.prod(shape) * d.itemsize for shape, d in results], *workspaces])


def kept_as(graph: Graph, guards: bool) -> str | None:
    """The name under which the code of a graph is kept; None where none is."""
    found = digest(graph) if disk_cache.folder() is not None else None
    if found is None:
        return None
    return (
        "graph-"
        + hashlib.sha256(f"{found} {guards} {config.memory_budget} {_here()}".encode()).hexdigest()
    )


def _controls(graph: Graph) -> list[Callable[..., Any]]:
    """The branches and loops of a graph, which are no primitives of the catalogue."""
    nodes = [e for e in graph.nodes if isinstance(e, Node)]
    return [e.primitive.raw for e in nodes if isinstance(e.primitive, Control)]


def _here() -> str:
    return f"{host().name} {host().flags} {CODE} {np.__version__}"


def _encoded(made: Native, graph: Graph) -> bytes | None:
    """The code as bytes; None where something in it has no form."""
    given = {id(x.data): k for k, (_, x) in enumerate(graph.constants)}
    nodes = [e for e in made.fused.graph.nodes if isinstance(e, Node)]
    known = [e.primitive for e in nodes if not isinstance(e.primitive, Control)]
    ops = {id(p.raw): ["op", p.name] for p in known}
    ops |= {id(chosen(p)): ["asked", p.name] for p in known if p.name in ASKING}
    controls = {id(run): k for k, run in enumerate(_controls(graph))}
    programs = {id(p.run): k for k, p in enumerate(made.programs)}
    base = base_names()
    blobs: list[bytes] = []
    arrays: list[Any] = []
    at: dict[int, int] = {}

    def blob(data: bytes) -> int:
        blobs.append(data)
        return len(blobs) - 1

    def array(x: Any) -> list[Any] | None:
        if id(x) in given:
            return ["constant", given[id(x)]]
        if isinstance(x, Job):
            return ["job", x.recipe, x.room]
        if x.nbytes > _SMALL:
            return None
        if id(x) not in at:
            at[id(x)] = len(arrays)
            raw = np.ascontiguousarray(x).tobytes()
            arrays.append([x.dtype.name, list(x.shape), blob(raw)])
        return ["array", at[id(x)]]

    names: dict[str, Any] = {}
    scope = made.run.__globals__
    for name, value in scope.items():
        if name in _OWN or base.get(name) is value:
            continue
        if id(value) in programs:
            names[name] = ["program", programs[id(value)]]
        elif id(value) in ops:
            names[name] = ops[id(value)]
        elif id(value) in controls:
            names[name] = ["control", controls[id(value)]]
        elif isinstance(value, tuple):
            names[name] = ["types", [[shape, d.name] for shape, d in value]]
        elif isinstance(value, np.dtype) and value.isbuiltin:  # those of ml_dtypes too
            names[name] = ["dtype", value.name]
        elif isinstance(value, np.ndarray) and value.dtype.isbuiltin:
            names[name] = array(value)
        else:
            return None
    objects: dict[int, int] = {}
    tables = []
    for p in made.programs:
        kernels = [
            [k, objects.setdefault(id(code), blob(code.object_file)), symbol]
            if id(code) not in objects
            else [k, objects[id(code)], symbol]
            for k, code, symbol in p.kernels
        ]
        held = [[k, array(scope["constants"][v]), offset] for k, v, offset in p.held]
        if any(ref is None for _, ref, _ in held):
            return None
        tables.append([blob(p.table.tobytes()), kernels, held])
    if None in names.values():
        return None
    head = {
        "text": made.text.split("\n"), "names": names, "arrays": arrays, "programs": tables,
        "blobs": [len(b) for b in blobs], "wants": wanted_by(b"".join(blobs)),
        "results": [[shape, dtype.name] for shape, dtype in made.results],
        "workspaces": [p.workspace for p in made.programs],
        "whole": None if made.whole is None
        else _spelled(made.whole),
    }  # fmt: skip
    text = spell(head)
    return b"".join([len(text).to_bytes(8, "little"), text, *blobs])


def _spelled(whole: Whole) -> list[Any]:
    right = whole.reusable
    return [
        whole.arguments, whole.workspace, whole.shared, right.last, right.first, right.begins
    ]  # fmt: skip


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x


def _decoded(body: bytes, graph: Graph, slowly: Callable[..., Any]) -> Callable[..., Any]:
    start = 8 + int.from_bytes(body[:8], "little")
    head = read(body[8:start])
    names = base_names() | {"slowly": slowly}
    results = [(tuple(shape), np.dtype(d)) for shape, d in head["results"]]
    _say(results, head["workspaces"])
    blobs: list[bytes] = []
    for size in head["blobs"]:
        blobs.append(body[start : start + size])
        start += size
    arrays = [np.frombuffer(blobs[k], np.dtype(d)).reshape(shape) for d, shape, k in head["arrays"]]
    constants = [x.data for _, x in graph.constants]

    def array(ref: Any) -> Any:
        if ref[0] == "job":
            kind, *recipe = ref[1]
            found = job(kind, *map(_tuples, recipe))
            if found is None or found.room != ref[2]:
                raise ValueError("this machine has another number of cores")
            return found
        return constants[ref[1]] if ref[0] == "constant" else arrays[ref[1]]

    used = {k for _, kernels, *_ in head["programs"] for _, k, _ in kernels}
    codes = {k: load_object(blobs[k], head["wants"]) for k in used}
    programs, tables = [], []
    kept: list[Any] = [codes, arrays, constants]
    for k, kernels, held in head["programs"]:
        table = np.frombuffer(blobs[k], np.int64).copy()
        for at, code, symbol in kernels:
            table[at] = codes[code].address(symbol)
        for at, ref, offset in held:
            table[at] = array(ref).ctypes.data + offset
        programs.append(reload(table))
        tables.append(table)
    for name, (kind, what) in head["names"].items():
        if kind == "program":
            names[name] = programs[what]
        elif kind in ("op", "asked"):
            prim = lookup(what)
            if prim is None:
                raise KeyError(what)
            names[name] = prim.raw if kind == "op" else chosen(prim)
        elif kind == "control":
            names[name] = _controls(graph)[what]
        elif kind == "types":
            names[name] = tuple([(tuple(shape), np.dtype(d)) for shape, d in what])
        elif kind == "dtype":
            names[name] = np.dtype(what)
        else:
            names[name] = array((kind, what))
    names["constants"] = kept  # programs hold their addresses
    exec(compile("\n".join(head["text"]), "<funct graph>", "exec"), names)
    run: Callable[..., Any] = names["run"]
    if head["whole"] is not None:
        arguments, workspace, shared, *right = map(_tuples, head["whole"])
        ends = tuple(graph.inputs), tuple(graph.outputs)
        reusable = Reusable(*right)
        note_whole(run, Whole(*ends, arguments, tables[0], workspace, kept, reusable, shared))
    return run
