"""save and load of trees: torch's format, our checks, folders with checksums."""

from __future__ import annotations

import contextlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import funct as ft
import funct.array as xp
from funct import nn, serialize, tree
from funct.errors import FileFormatError, StateDictError, TransformError

DTYPES = [
    *["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"],
    *["float16", "float32", "float64", "complex64", "complex128"],
    *["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"],
]  # fmt: skip


def array(kind: str, *shape: int) -> Any:
    """An array of small numbers of a dtype, ml_dtypes' among them."""
    dtype = np.dtype(getattr(ml_dtypes, kind)) if hasattr(ml_dtypes, kind) else np.dtype(kind)
    return xp.asarray((np.arange(int(np.prod(shape))) % 7).reshape(shape).astype(dtype))


def same(a: Any, b: Any) -> None:
    """Check that two trees agree bit for bit."""
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        assert np.asarray(x.data).tobytes() == np.asarray(y.data).tobytes()


@pytest.fixture(params=["state.safetensors", "folder"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a file and a folder to save to."""
    return tmp_path / request.param


@pytest.mark.parametrize("kind", DTYPES)
def test_every_dtype(kind: str, path: Path) -> None:
    """Arrays of every dtype and rank come back bit for bit."""
    state = {"m": array(kind, 2, 3), "s": array(kind), "e": array(kind, 0, 2)}
    serialize.save(state, path)
    same(serialize.load(path, state), state)


def test_views(path: Path) -> None:
    """A transposed, reversed or broadcast view is stored in C order."""
    x = xp.reshape(xp.arange(6), (2, 3))
    state = {"t": x.T, "r": x[::-1, ::2], "b": xp.broadcast_to(x[0], (4, 3))}
    serialize.save(state, path)
    same(serialize.load(path), {k: xp.asarray(np.ascontiguousarray(v)) for k, v in state.items()})


def test_names_are_paths(path: Path) -> None:
    """Names are dotted paths; `like` gives the tree back."""
    state = {"a": [xp.ones(2), (xp.zeros(3), None)], "b": {"c": 2.5}}
    serialize.save(state, path)
    found = serialize.load(path)
    assert set(found) == {"a.0", "a.1.0", "b.c"}
    back = serialize.load(path, state)
    assert tree.structure(back) == tree.structure(state)
    assert float(back["b"]["c"]) == 2.5


def test_layers(path: Path) -> None:
    """A model is saved under torch's keys and loads into a model of the same structure."""
    layer = nn.Linear(3, 2, key=ft.random.key(0))
    serialize.save(layer, path)
    assert set(serialize.load(path)) == {"weight", "bias"}
    other = nn.Linear(3, 2, key=ft.random.key(1))
    same(serialize.load(path, other), layer)


def test_same_contents_are_same_bytes(tmp_path: Path) -> None:
    """The order of a dict's keys does not show."""
    a, b = xp.ones(3), xp.zeros(2, dtype=xp.int8)
    serialize.save({"a": a, "b": b}, tmp_path / "1.safetensors")
    serialize.save({"b": b, "a": a}, tmp_path / "2.safetensors")
    assert (tmp_path / "1.safetensors").read_bytes() == (tmp_path / "2.safetensors").read_bytes()


def test_like_is_checked(path: Path) -> None:
    """Missing and unexpected names, other shapes and dtypes are named."""
    serialize.save({"a": xp.ones(2), "b": xp.ones(3)}, path)
    with pytest.raises(StateDictError, match=r"missing \[c\], unexpected \[b\]"):
        serialize.load(path, {"a": xp.ones(2), "c": xp.ones(3)})
    with pytest.raises(StateDictError, match=r"'b' must be float64\[4\], found float64\[3\]"):
        serialize.load(path, {"a": xp.ones(2), "b": xp.ones(4)})
    with pytest.raises(StateDictError, match=r"'b' must be float32\[3\], found float64\[3\]"):
        serialize.load(path, {"a": xp.ones(2), "b": ft.ShapeDtype((3,), np.float32)})


def test_what_cannot_be_saved(path: Path) -> None:
    """Two leaves of one name, a reserved name and a traced value are refused; nothing is left."""
    with pytest.raises(StateDictError, match=r"two leaves are named 'a\.b'"):
        serialize.save({"a.b": xp.ones(1), "a": {"b": xp.ones(1)}}, path)
    with pytest.raises(FileFormatError, match="reserved"):
        serialize.save({"__metadata__": xp.ones(1)}, path)
    with pytest.raises(TransformError, match="'x' is traced by grad"):
        ft.grad(lambda x: [serialize.save({"x": x}, path), xp.sum(x)][1])(xp.ones(1))
    assert not path.is_file()


def test_where_it_cannot_be_saved(tmp_path: Path) -> None:
    """An absent folder, a folder of that name and a program's suffix are refused."""
    with pytest.raises(FileNotFoundError):
        serialize.save({}, tmp_path / "absent" / "a.safetensors")
    (tmp_path / "b.safetensors").mkdir()
    with pytest.raises(IsADirectoryError):
        serialize.save({}, tmp_path / "b.safetensors")
    with pytest.raises(FileFormatError, match="holds a program"):
        serialize.save({}, tmp_path / "c.funct")


def test_interrupted_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When writing fails, the old file is whole and nothing lies beside it."""
    path = tmp_path / "a.safetensors"
    serialize.save({"x": xp.ones(2)}, path)

    def full(fd: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        serialize.save({"x": xp.zeros(2)}, path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]
    assert serialize.load(path)["x"].tolist() == [1.0, 1.0]


# other writers and readers ----------------------------------------------------------------------


def test_the_reference_reader_agrees(tmp_path: Path) -> None:
    """The safetensors package reads what we write."""
    from safetensors.numpy import load_file

    state = {k: array(k, 2, 3) for k in DTYPES[:12]}
    serialize.save(state, tmp_path / "a.safetensors")
    for k, x in load_file(tmp_path / "a.safetensors").items():
        assert x.dtype == state[k].dtype
        np.testing.assert_array_equal(x, np.asarray(state[k]))


def test_torch_reads_ours(tmp_path: Path) -> None:
    """torch loads a layer that we saved, bfloat16 and float8 too."""
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    layer = nn.Linear(3, 2, key=ft.random.key(0))
    serialize.save(layer, tmp_path / "a.safetensors")
    theirs = torch.nn.Linear(3, 2)
    theirs.load_state_dict(load_file(tmp_path / "a.safetensors"))
    np.testing.assert_array_equal(theirs.weight.detach().numpy(), np.asarray(layer.weight))
    kinds = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "complex64", "bool"]
    state = {k: array(k, 4) for k in kinds}
    serialize.save(state, tmp_path / "b.safetensors")
    for k, x in load_file(tmp_path / "b.safetensors").items():
        assert str(x.dtype) == f"torch.{k}"
        assert x.to(torch.complex64).tolist() == np.asarray(state[k]).astype("F").tolist()


def test_we_read_torchs(tmp_path: Path) -> None:
    """A file that torch wrote loads, into a layer too."""
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    theirs = torch.nn.Linear(3, 2)
    extra = {"half": torch.ones(2, dtype=torch.bfloat16), "flag": torch.tensor([True, False])}
    save_file(theirs.state_dict() | extra, tmp_path / "a.safetensors", {"format": "pt"})
    found = serialize.load(tmp_path / "a.safetensors")
    assert found["half"].dtype == ml_dtypes.bfloat16
    assert found["flag"].tolist() == [True, False]
    save_file(theirs.state_dict(), tmp_path / "b.safetensors")
    layer = serialize.load(tmp_path / "b.safetensors", nn.Linear(3, 2, key=ft.random.key(0)))
    np.testing.assert_array_equal(np.asarray(layer.weight), theirs.weight.detach().numpy())


# hostile files ----------------------------------------------------------------------------------


def raw(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    """A file with this header, text or JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    """One tensor's part of a header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


TEXT = json.dumps({"a": entry()}).encode()
HOSTILE: dict[str, bytes] = {
    "huge header": raw(TEXT, b"\0" * 8, 2**63),
    "header longer than the file": raw(TEXT, b"\0" * 8, 200),
    "leading space": raw(b" " + TEXT, b"\0" * 8),
    "a key twice": raw(b'{"a":%s,"a":%s}' % (TEXT[6:-1], TEXT[6:-1]), b"\0" * 8),
    "a field twice": raw(TEXT.replace(b'"dtype"', b'"dtype":"I8","dtype"'), b"\0" * 8),
    "list": raw([], b""),
    "no JSON": raw(b"{", b""),
    "not UTF-8": raw(b'{"\xff":1}', b""),
    "deep": raw(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "entry is no object": raw({"a": 3}),
    "field missing": raw({"a": {"dtype": "F32", "shape": [2]}}, b"\0" * 8),
    "field more": raw({"a": entry() | {"more": 1}}, b"\0" * 8),
    "unknown dtype": raw({"a": entry("F31")}, b"\0" * 8),
    "dtype is no text": raw({"a": entry(["F32"])}, b"\0" * 8),
    "negative axis": raw({"a": entry(shape=(-2,))}, b"\0" * 8),
    "float axis": raw({"a": entry(shape=(2.0,))}, b"\0" * 8),
    "boolean axis": raw({"a": entry(shape=(True, 2))}, b"\0" * 8),
    "product overflows": raw({"a": entry(shape=(2**62, 2**62, 16))}, b"\0" * 8),
    "empty with huge axes": raw({"a": entry(shape=(0, 2**62, 2**62), offsets=(0, 0))}),
    "too many axes": raw({"a": entry(shape=(1,) * 65, offsets=(0, 4))}, b"\0" * 4),
    "offsets reversed": raw({"a": entry(offsets=(8, 0))}, b"\0" * 8),
    "offsets negative": raw({"a": entry(offsets=(-8, 0))}, b"\0" * 8),
    "three offsets": raw({"a": entry(offsets=(0, 8, 8))}, b"\0" * 8),
    "size differs": raw({"a": entry(shape=(3,))}, b"\0" * 8),
    "beyond the end": raw({"a": entry(offsets=(8, 16))}, b"\0" * 8),
    "hole": raw({"a": entry(), "b": entry(offsets=(12, 20))}, b"\0" * 20),
    "overlap": raw({"a": entry(), "b": entry(offsets=(4, 12))}, b"\0" * 12),
    "alias": raw({"a": entry(), "b": entry()}, b"\0" * 8),
    "trailing bytes": raw({"a": entry()}, b"\0" * 9),
    "bool above 1": raw({"a": entry("BOOL", (2,), (0, 2))}, b"\1\2"),
    "metadata is no text": raw({"__metadata__": {"a": 1}}),
    "metadata is a list": raw({"__metadata__": []}),
    "unknown kind": raw({"__metadata__": {"funct.dtype.a": "object"}, "a": entry()}, b"\0" * 8),
    "kind does not fit": raw({"__metadata__": {"funct.dtype.a": "int4"}, "a": entry()}, b"\0" * 8),
    "kind of nothing": raw({"__metadata__": {"funct.dtype.b": "int4"}, "a": entry()}, b"\0" * 8),
    "int4 beyond 7": raw(
        {"__metadata__": {"funct.dtype.a": "int4"}, "a": entry("I8", (1,), (0, 1))}, b"\x08"
    ),
    "empty": b"",
}  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_file(data: bytes, tmp_path: Path) -> None:
    """A file that breaks a rule of the format raises FileFormatError."""
    path = tmp_path / "a.safetensors"
    path.write_bytes(data)
    with pytest.raises(FileFormatError):
        serialize.load(path)


def test_truncated_anywhere(tmp_path: Path) -> None:
    """A file that ends early raises FileFormatError, wherever it ends."""
    path = tmp_path / "a.safetensors"
    serialize.save({"a": xp.ones(3), "b": xp.zeros((2, 2), dtype=xp.int8)}, path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            serialize.load(path)


@given(st.binary(max_size=60), st.integers(0, 70))
def test_noise(tmp_path_factory: pytest.TempPathFactory, header: bytes, length: int) -> None:
    """Arbitrary bytes raise FileFormatError or are an empty state."""
    path = tmp_path_factory.mktemp("noise") / "a.safetensors"
    path.write_bytes(raw(header, length=length))
    with contextlib.suppress(FileFormatError):
        assert serialize.load(path) == {}


def test_no_regular_file(tmp_path: Path) -> None:
    """A folder, a pipe and an absent file are told apart."""
    (tmp_path / "a.safetensors").mkdir()
    with pytest.raises(FileFormatError, match="no regular file"):
        serialize.load(tmp_path / "a.safetensors")
    os.mkfifo(tmp_path / "b.safetensors")
    with pytest.raises(FileFormatError, match="no regular file"):
        serialize.load(tmp_path / "b.safetensors")
    with pytest.raises(FileNotFoundError):
        serialize.load(tmp_path / "c.safetensors")
    (tmp_path / "d.bin").write_bytes(b"x")
    with pytest.raises(FileFormatError, match="no folder"):
        serialize.load(tmp_path / "d.bin")


# folders ----------------------------------------------------------------------------------------


def test_folder_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the manifest is renamed the old state is what loads; left-overs are swept later."""
    path = tmp_path / "checkpoint"
    serialize.save({"x": xp.ones(2)}, path)
    replace = os.replace

    def stop_at_manifest(a: str, b: str) -> None:
        if b.endswith("manifest.json"):
            raise OSError("power failed")
        replace(a, b)

    monkeypatch.setattr(os, "replace", stop_at_manifest)
    with pytest.raises(OSError, match="power"):
        serialize.save({"x": xp.zeros(2)}, path)
    assert serialize.load(path)["x"].tolist() == [1.0, 1.0]
    monkeypatch.undo()
    serialize.save({"x": xp.full(2, 3.0)}, path)
    assert serialize.load(path)["x"].tolist() == [3.0, 3.0]
    assert len(list(path.iterdir())) == 2


def test_folder_checksums(tmp_path: Path) -> None:
    """A flipped bit of a tensor is noticed and the tensor named."""
    path = tmp_path / "checkpoint"
    serialize.save({"x": xp.ones(2), "y": xp.ones(3)}, path)
    (data,) = path.glob("tensors-*")
    damaged = bytearray(data.read_bytes())
    damaged[-1] ^= 1
    data.write_bytes(damaged)
    with pytest.raises(FileFormatError, match="'y' does not have the checksum"):
        serialize.load(path)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"version": 2}, "written in version 2, this funct reads 1"),
        ({"version": 2, "more": 1}, "written in version 2, this funct reads 1"),
        ({"version": 0}, "0 is no version"),
        ({"format": "x"}, "of another format"),
        ({"data": "../tensors"}, "is no name of a data file"),
        ({"data": 3}, "is no name of a data file"),
        ({"crc32": []}, "crc32 must map names to numbers"),
        ({"crc32": {"z": 1}}, "names other tensors than the file holds"),
        ({"more": 1}, "the manifest must hold"),
    ],
)
def test_folder_manifest(change: dict[str, Any], text: str, tmp_path: Path) -> None:
    """A manifest of another version or form, or one that points elsewhere, is refused."""
    path = tmp_path / "checkpoint"
    serialize.save({"x": xp.ones(2)}, path)
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(FileFormatError, match=text):
        serialize.load(path)
