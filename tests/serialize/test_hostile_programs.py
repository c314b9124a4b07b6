"""`*.funct`: damaged and hostile files raise FileFormatError and nothing else."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct.array as xp
from funct import export, ops
from funct.core import catalogue
from funct.errors import FileFormatError
from tests.serialize.test_program_file import ARGS, model, same_bits

MEMBERS = ["manifest.json", "graph.json", "constants.safetensors"]


def packed(**changes: Any) -> bytes:
    """A valid file with members replaced; `resum` also writes the fitting checksums."""
    program = export.export(model, ARGS, dynamic_shapes=({0: "N"},))
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        export.save(program, f"{folder}/a.funct")
        with zipfile.ZipFile(f"{folder}/a.funct") as archive:
            members = {n: archive.read(n) for n in MEMBERS}
    edit = changes.pop("graph", None)
    if edit is not None:
        value = json.loads(members["graph.json"])
        value = edit(value) or value
        members["graph.json"] = json.dumps(value).encode()
    members |= {k.replace("_", "."): v for k, v in changes.items()}
    manifest = json.loads(members["manifest.json"])
    manifest["sha256"] = {n: hashlib.sha256(members[n]).hexdigest() for n in MEMBERS[1:]}
    if "manifest_json" not in changes:
        members["manifest.json"] = json.dumps(manifest).encode()
    return zipped([(n, members[n]) for n in MEMBERS])


def zipped(members: list[tuple[str, bytes]], kind: int = zipfile.ZIP_STORED) -> bytes:
    """A zip of these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return buffer.getvalue()


VALID = packed()


def load(data: bytes, folder: Path) -> Any:
    """Load a program from bytes."""
    path = folder / "hostile.funct"
    path.write_bytes(data)
    return export.load(path)


def test_the_valid_file_is_valid(tmp_path: Path) -> None:
    """What the hostile files are made from loads."""
    same_bits(load(VALID, tmp_path)(*ARGS), model(*ARGS))


@pytest.mark.parametrize(
    "name", ["compressed", "extra", "missing", "twice", "order", "empty", "text"]
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_wrong_zip(name: str, tmp_path: Path) -> None:
    """Only exactly the three stored members are accepted."""
    with zipfile.ZipFile(io.BytesIO(VALID)) as archive:
        members = [(n, archive.read(n)) for n in MEMBERS]
    data = {
        "compressed": lambda: zipped(members, zipfile.ZIP_DEFLATED),
        "extra": lambda: zipped([*members, ("../evil", b"")]),
        "missing": lambda: zipped(members[:2]),
        "twice": lambda: zipped([*members, members[1]]),
        "order": lambda: zipped(members[::-1]),
        "empty": lambda: b"",
        "text": lambda: b"hello" * 100,
    }[name]()
    with pytest.raises(FileFormatError):
        load(data, tmp_path)


def test_bomb(tmp_path: Path) -> None:
    """A member that says it is larger than the file is refused before it is read."""
    data = bytearray(VALID)
    at = data.rindex(b"PK\x01\x02")  # the last entry of the directory: constants
    data[at + 20 : at + 28] = (2**31).to_bytes(4, "little") * 2
    with pytest.raises(FileFormatError, match="too large"):
        load(bytes(data), tmp_path)


def test_newer_version(tmp_path: Path) -> None:
    """A file of a later version says so."""
    manifest = json.dumps(
        {"format": "funct program", "version": 2, "sha256": {}, "new": 1}
    ).encode()
    with pytest.raises(FileFormatError, match="written in version 2, this funct reads 1"):
        load(packed(manifest_json=manifest), tmp_path)


def test_wrong_checksum(tmp_path: Path) -> None:
    """Contents that were changed without their checksum are refused."""
    with zipfile.ZipFile(io.BytesIO(VALID)) as archive:
        members = [(n, archive.read(n)) for n in MEMBERS]
    members[1] = (members[1][0], members[1][1].replace(b"tanh", b"sinh"))
    with pytest.raises(FileFormatError, match="checksums"):
        load(zipped(members), tmp_path)


def _set(*path: Any) -> Callable[[Any], Any]:
    """An edit that puts the last of path at the place that the rest of it names."""

    def edit(value: Any) -> None:
        for k in path[:-2]:
            value = value[k]
        value[path[-2]] = path[-1]

    return edit


EDITS: dict[str, Callable[[Any], Any]] = {
    "not an object": lambda v: [v],
    "a key more": _set("more", 1),
    "unknown primitive": _set("nodes", 0, "op", "system"),
    "primitive of another arity": _set("nodes", 0, "op", "add"),
    "primitive of another type": _set("nodes", 1, "op", "argmax"),
    "operand that is absent": _set("nodes", 0, "in", 0, "v99"),
    "operand that comes later": _set("nodes", 0, "in", 0, "v2"),
    "operand that is no number": _set("nodes", 0, "in", 0, None),
    "operand that is a tree": _set("nodes", 0, "in", 0, [["x0"]]),
    "parameter more": _set("nodes", 0, "params", [1]),
    "result of another shape": _set("nodes", 0, "out", 0, 2, [9, 9]),
    "result of another dtype": _set("nodes", 0, "out", 0, 1, "float32"),
    "result without a name": _set("nodes", 0, "out", 0, 0, "__import__('os')"),
    "result that exists": _set("nodes", 1, "out", 0, 0, "v0"),
    "result more": lambda v: v["nodes"][0]["out"].append(["v98", "float64", []]),
    "site with a path": _set("nodes", 0, "at", "/etc/passwd:1"),
    "unknown dtype": _set("inputs", 0, 1, "object"),
    "negative axis": _set("inputs", 0, 2, [-1, 3]),
    "huge axis": _set("inputs", 0, 2, [2**70, 3]),
    "boolean axis": _set("inputs", 0, 2, [True, 3]),
    "size that is code": _set("inputs", 0, 2, 0, {"size": "__import__('os').system('true')"}),
    "size of an unknown symbol": _set("inputs", 0, 2, 0, {"size": "M"}),
    "size not in normal form": _set("inputs", 0, 2, 0, {"size": "N + 0"}),
    "size that is deep": _set("inputs", 0, 2, 0, {"size": "(" * 900 + "N" + ")" * 900}),
    "size divided by zero": _set("inputs", 0, 2, 0, {"size": "N // 0"}),
    "symbol named like code": _set("symbols", 0, 0, "run"),
    "symbol of no input": _set("symbols", 0, 1, 7),
    "symbol of no axis": _set("symbols", 0, 2, 7),
    "symbol with a negative example": _set("symbols", 0, 3, -7),
    "output that is absent": _set("outputs", 0, "v97"),
    "output more": lambda v: v["outputs"].append("x0"),
    "tree of another size": _set("in_tree", {"tuple": [{"tuple": ["*"]}, {"dict": []}]}),
    "tree of a class": _set("out_tree", {"os.system": ["*"]}),
    "record of no class": _set("out_tree", {"record": ["os", "system", [["a", "*"]], []]}),
    "record of no record": _set("out_tree", {"record": ["subprocess", "Popen", [["a", "*"]], []]}),
    "record of nowhere": _set("out_tree", {"record": ["antigravity", "A", [], []]}),
    "record with other fields": _set(
        "out_tree", {"record": ["funct.core.region", "Region", [["name", "*"]], []]}
    ),
    "record without fields": _set("out_tree", {"record": ["funct.core.region", "Region", "*", 3]}),
    "record that is deep": _set("out_tree", {"record": ["os", "path." * 9999, [], []]}),
    "tree with a key twice": _set("out_tree", {"dict": [["a", "*"], ["a", "*"]]}),
    "names that are numbers": _set("input_names", [1, 2]),
    "name of no constant": _set("constant_names", {"c9": "w"}),
    "constant that is absent": lambda v: v["constants"].append(["c9", "float64", []]),
    "constant of another shape": _set("constants", 0, 2, [4, 3]),
    "guard that is code": lambda v: v["nodes"].append(
        {"guard": "size", "of": None, "expected": "exit() == 1", "at": None}
    ),
    "guard of a chain": lambda v: v["nodes"].append(
        {"guard": "size", "of": None, "expected": "1 < N < 9", "at": None}
    ),
    "guard of an unknown kind": lambda v: v["nodes"].append(
        {"guard": "eval", "of": "x0", "expected": 1, "at": None}
    ),
    "guard of another type": lambda v: v["nodes"].append(
        {"guard": "bool", "of": "x0", "expected": "yes", "at": None}
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_wrong_graph(edit: Callable[[Any], Any], tmp_path: Path) -> None:
    """A graph that breaks a rule is refused though its checksum fits."""
    with pytest.raises(FileFormatError):
        load(packed(graph=edit), tmp_path)


@pytest.mark.parametrize(
    "text",
    [b'{"a":1,"a":2}', b"[" * 500 + b"]" * 500, b"[" * 100_000, b"\xff", b'"\\ud800"', b"NaN", b""],
)
def test_wrong_json(text: bytes, tmp_path: Path) -> None:
    """JSON with a key twice, too deep, not UTF-8 or not JSON is refused."""
    with pytest.raises(FileFormatError):
        load(packed(graph_json=text), tmp_path)


def test_windows_stay_in_memory(tmp_path: Path) -> None:
    """A stride that would step out of the array is refused, also where shapes agree."""
    x = xp.ones((1, 1, 8))
    program = export.export(lambda x: ops.windows(x, (2,), (1,), (1,)), (x,))
    export.save(program, tmp_path / "a.funct")
    with zipfile.ZipFile(tmp_path / "a.funct") as archive:
        value = json.loads(archive.read("graph.json"))
        constants = archive.read("constants.safetensors")
    value["nodes"][0]["params"] = [[2], [-1], [1]]
    value["nodes"][0]["out"][0][2] = [1, 1, -5, 2]
    members = {"graph.json": json.dumps(value).encode(), "constants.safetensors": constants}
    sums = {n: hashlib.sha256(d).hexdigest() for n, d in members.items()}
    manifest = json.dumps({"format": "funct program", "version": 1, "sha256": sums}).encode()
    with pytest.raises(FileFormatError):
        load(zipped([("manifest.json", manifest), *members.items()]), tmp_path)


@given(st.data())
def test_flipped_bits(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """A damaged file raises FileFormatError, or the damage was immaterial."""
    folder = tmp_path_factory.mktemp("flips")
    damaged = bytearray(VALID)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, 8 * len(VALID) - 1))
        damaged[at // 8] ^= 1 << at % 8
    try:
        loaded = load(bytes(damaged), folder)
    except FileFormatError:
        return
    same_bits(loaded(*ARGS), model(*ARGS))


@given(st.integers(0, len(VALID) - 1))
def test_truncated(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    """A file that ends early raises FileFormatError."""
    with pytest.raises(FileFormatError):
        load(VALID[:length], tmp_path_factory.mktemp("short"))


PRIMITIVES = [p.name for p in catalogue()]


@given(st.data())
def test_random_edits(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """A change of one JSON value, checksums fitting, raises FileFormatError or is a program."""
    leaves: list[tuple[Any, Any]] = []

    def collect(v: Any) -> None:
        for k in v.keys() if isinstance(v, dict) else range(len(v)):
            leaves.append((v, k))
            if isinstance(v[k], dict | list):
                collect(v[k])

    def edit(value: Any) -> None:
        collect(value)
        holder, k = data.draw(st.sampled_from(leaves))
        holder[k] = data.draw(
            st.one_of(
                st.none(), st.booleans(), st.integers(-3, 9), st.integers(), st.floats(),
                st.text(),
                st.sampled_from(PRIMITIVES),
                st.sampled_from(["x0", "c0", "v1", "*", "N", "float32"]),
                st.sampled_from([{"size": "N"}, {"dtype": "int8"}, {"float": "inf"}, [], {}]),
            )
        )  # fmt: skip

    with contextlib.suppress(FileFormatError):
        load(packed(graph=edit), tmp_path_factory.mktemp("edit"))
