"""Every primitive's ONNX form computes what the primitive computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct.core import Absent, Primitive, Sample, catalogue
from funct.errors import ExportError
from funct.export import to_onnx

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.export.onnx_runs import assert_same, run_onnxruntime, single

pytestmark = pytest.mark.onnx

PRESENT = [p for p in catalogue() if not isinstance(p.onnx, Absent)]
# collectives have no samples: they make sense inside vmap alone
ABSENT = [
    p for p in catalogue() if isinstance(p.onnx, Absent) and p.samples(np.random.default_rng(0))
]


def _name(prim: Primitive) -> str:
    return prim.name


def _samples(prim: Primitive) -> list[Sample]:
    return list(prim.samples(np.random.default_rng(0)))


def _is_complex(sample: Sample) -> bool:
    return any(np.asarray(a).dtype.kind == "c" for a in sample.args) or any(
        isinstance(p, np.dtype) and p.kind == "c" for p in sample.params
    )


def _single_dtype(param: Any) -> Any:
    double = isinstance(param, np.dtype) and param == np.float64
    return np.dtype(np.float32) if double else param


def check(prim: Primitive, args: list[Any], params: tuple[Any, ...], rtol: float = 1e-5) -> None:
    """One call, exported and run by onnxruntime, equals the call.

    Weights and scales of quantized layers are constants of the file, as in every quantized program:
    without VNNI onnxruntime saturates sums of pairs, and can prevent that for known weights alone.
    """
    arrays = tuple(xp.asarray(a) for a in args)
    expected = prim.fn(*arrays, *params)
    fixed = arrays[1:] if prim.name.startswith(("quantized_", "weight_only_")) else ()
    free = arrays[: len(arrays) - len(fixed)]
    model = to_onnx(lambda *xs: prim.fn(*xs, *fixed, *params), free)
    names = [i.name for i in model.graph.input]
    got = run_onnxruntime(model, {n: np.asarray(a) for n, a in zip(names, free, strict=True)})
    assert_same(got, expected if isinstance(expected, tuple) else (expected,), rtol)


@pytest.mark.parametrize("prim", PRESENT, ids=_name)
def test_samples(prim: Primitive) -> None:
    """onnxruntime gives for every real sample what the primitive gives."""
    real = [s for s in _samples(prim) if not _is_complex(s)]
    assert real or prim.name in ("conj", "real")
    for s in real:
        check(prim, [single(a) for a in s.args], tuple([_single_dtype(p) for p in s.params]))


@pytest.mark.parametrize(
    "prim", [p for p in PRESENT if any(map(_is_complex, _samples(p)))], ids=_name
)
def test_complex_samples_are_refused(prim: Primitive) -> None:
    """ONNX operators take no complex numbers, and the error says so."""
    for s in _samples(prim):
        if _is_complex(s):
            arrays = tuple(xp.asarray(a) for a in s.args)
            with pytest.raises(ExportError, match=f"{prim.name}: ONNX operators take no complex"):
                to_onnx(lambda *xs, s=s: prim.fn(*xs, *s.params), arrays)


@pytest.mark.parametrize("prim", ABSENT, ids=_name)
def test_absent_form_is_refused(prim: Primitive) -> None:
    """A primitive without an ONNX form raises ExportError that names it and the reason."""
    s = _samples(prim)[0]
    arrays = tuple(xp.asarray(a) for a in s.args)
    assert isinstance(prim.onnx, Absent)
    with pytest.raises(ExportError) as caught:
        to_onnx(lambda *xs: prim.fn(*xs, *s.params), arrays)
    assert caught.value.what == f"to_onnx: {prim.name}: {prim.onnx.reason}"
    assert caught.value.site is not None
    assert caught.value.site.file == __file__
