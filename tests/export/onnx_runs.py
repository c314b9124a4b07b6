"""Running ONNX models: onnxruntime, and onnx's reference evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def run_onnxruntime(model: Any, inputs: Mapping[str, Any]) -> list[Any]:
    """Return the outputs that onnxruntime gives."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    # without VNNI its u8s8 kernels would saturate sums of pairs at 16 bits
    options.add_session_config_entry("session.x64quantprecision", "1")
    # x stays float32 before weights of a few bits
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(inputs)))


def run_reference(model: Any, inputs: Mapping[str, Any]) -> list[Any]:
    """Return the outputs that onnx's own evaluator gives."""
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(model).run(None, dict(inputs)))


def single(x: Any) -> Any:
    """Return x in float32 where it is float64."""
    return np.asarray(x, np.float32) if np.asarray(x).dtype == np.float64 else np.asarray(x)


def assert_same(
    got: Sequence[Any], expected: Sequence[Any], rtol: float = 1e-5, atol: float | None = None
) -> None:
    """Check shapes, dtypes and values: exact for whole numbers, to rtol (and atol, the same unless
    given: sums of large terms may cancel) for floating ones.
    """
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        b = np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol if atol is None else atol)
        else:
            np.testing.assert_array_equal(a, b)
