"""Whatever is given to what saves, loads, exports and quantizes, only errors of funct's or of the
file system come out, and they name the argument.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import export, quant, serialize
from funct.errors import FunctError

X = xp.ones((2, 2), dtype=xp.float32)
PROGRAM = export.export(lambda x: x @ X, (X,))
PREPARED = quant.prepare_pt2e(PROGRAM, quant.int8_static("minmax"))
GIVEN: dict[str, Any] = {
    "a": PREPARED, "args": (X,), "b": PREPARED, "batches": [], "bits": 8, "dtype": "int8",
    "derive_qparams_fn": quant.bias_qparams, "derived_from": PROGRAM.graph.inputs, "fun": xp.sin,
    "observer_or_fake_quant_ctor": quant.MinMaxObserver, "fun_or_program": xp.sin,
    "graph": PROGRAM.graph, "parts": [b"part"], "path": "absent",
    "prepared": PREPARED, "program": PROGRAM, "quantizer": quant.int8_static(), "quantizers": [],
    "scale": 0.5, "tree": {"a": X}, "zero_point": 0,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    f"{package.__name__.removeprefix('funct.')}.{name}": getattr(package, name)
    for package in (serialize, export, quant)
    for name in package.__all__
    if name not in ("bias_qparams", "ExportedProgram", "PreparedProgram")  # made by functions
}
STRANGE = [
    None, object(), b"bytes", b"\0", "", "a\0b", "absent", 2.5, True, -1, 1 << 70, float("nan"),
    np.asarray(["a"]), np.asarray([None]), X, len, PROGRAM, PREPARED, {"a": object()},
]  # fmt: skip
WORTHLESS = (object, float, bool, type(len))
CHECKED = ("args", "batches", "derived_from", "dtype", "fun", "graph", "group_size", "kwargs",
           "input_qspec_map", "observer", "path", "prepared", "program", "quantizer",
           "quantizers", "tree")  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_no_argument_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    given = {n: GIVEN[n] for n in parameters if n in GIVEN}
    for argument in [n for n in parameters if n in CHECKED]:
        for strange in STRANGE:
            error = _refusal(FUNCTIONS[name], {**given, argument: strange})
            if isinstance(error, FunctError):
                assert argument in error.what or strange.__class__ not in WORTHLESS, error.what


def _refusal(fun: Callable[..., Any], given: dict[str, Any]) -> FunctError | OSError | None:
    """What the call raises, where it is the function that refuses."""
    try:
        fun(**given)
    except (FunctError, FileNotFoundError, IsADirectoryError) as error:
        return error
    return None


def test_a_refusal_says_what_is_wanted() -> None:
    with pytest.raises(
        TypeError, match=r"load: path must be a text or an os\.PathLike, got NoneType"
    ):
        export.load(None)  # type: ignore[arg-type]
    with pytest.raises(FunctError, match=r"export: args must be a tuple[\s\S]*fix: write \(x,\)"):
        export.export(xp.sin, X)
    with pytest.raises(FunctError, match=r"save: program must be an Exp[\s\S]*export\.export\(fun"):
        export.save(ft.jit(xp.sin), "there")  # type: ignore[arg-type]
