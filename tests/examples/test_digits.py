"""The main job, end to end on real data: what the demo prints is true."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import funct.array as xp
from funct import export, nn, serialize
from tests import laws

pytest.importorskip("sklearn", reason="the data is scikit-learn's")
pytest.importorskip("matplotlib", reason="the demo draws")
pytest.importorskip("tqdm", reason="the demo shows its progress")
ort = pytest.importorskip("onnxruntime", reason="the demo runs its files in onnxruntime")

pytestmark = pytest.mark.onnx


def demo() -> ModuleType:
    """examples/digits.py as a module."""
    path = Path(__file__).parents[2] / "examples" / "digits.py"
    spec = importlib.util.spec_from_file_location("digits", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["digits"] = module
    spec.loader.exec_module(module)
    return module


digits = demo()


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The road walked with a short training: folder, model, programs, test data."""
    folder = tmp_path_factory.mktemp("digits")
    x, y, x_test, y_test = digits.load_data()
    model, losses = digits.train(x, y, seed=0, epochs=3, progress=False)
    program, small = digits.export_all(model, x, folder)
    return folder, model, program, small, (x_test, y_test), losses


def test_short_training_learns(walked: Any) -> None:
    """Three epochs are enough for nine digits in ten, and the loss falls."""
    _, model, _, _, (x, y), losses = walked
    assert digits.accuracy(model(xp.asarray(x)), y) > 0.9
    assert np.mean(losses[-10:]) < 0.3 * np.mean(losses[:10])


def test_float32_file_agrees_with_eager(walked: Any) -> None:
    """digits.onnx in onnxruntime is within 1e-5 of eager, for any batch size."""
    folder, model, _, _, (x, _), _ = walked
    for n in (1, 2, 31, len(x)):
        theirs = digits.in_onnxruntime(folder / "digits.onnx", x[:n])
        np.testing.assert_allclose(theirs, np.asarray(model(xp.asarray(x[:n]))), atol=1e-5)
        assert theirs.shape == (n, 10)


def test_int8_file_equals_the_quantized_program(walked: Any) -> None:
    """digits_int8.onnx in onnxruntime equals the quantized program on every element."""
    folder, _, _, small, (x, y), _ = walked
    theirs = digits.in_onnxruntime(folder / "digits_int8.onnx", x)
    ours = np.asarray(small(xp.asarray(x)))
    np.testing.assert_array_equal(theirs, ours)
    assert abs(digits.accuracy(ours, y) - digits.accuracy(walked[1](xp.asarray(x)), y)) < 0.01


def test_files_say_what_they_take_and_give(walked: Any) -> None:
    """Input x float32 (N, 1, 8, 8), output logits (N, 10), opset 21, IR 10; int8 is smaller."""
    import onnx

    folder = walked[0]
    for name in ("digits.onnx", "digits_int8.onnx"):
        model = onnx.load(folder / name)
        onnx.checker.check_model(model, full_check=True)
        assert (model.ir_version, model.opset_import[0].version) == (10, 21)
        (x,), (out,) = model.graph.input, model.graph.output
        assert (x.name, out.name) == ("x", "logits")
        assert x.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        shape = [d.dim_param or d.dim_value for d in x.type.tensor_type.shape.dim]
        assert shape == ["N", 1, 8, 8]
        assert [d.dim_param or d.dim_value for d in out.type.tensor_type.shape.dim] == ["N", 10]
    assert (folder / "digits_int8.onnx").stat().st_size < 0.6 * (
        folder / "digits.onnx"
    ).stat().st_size


def test_saved_program_and_weights_are_the_model(walked: Any) -> None:
    """digits.funct and weights.safetensors give the model back, bit for bit."""
    folder, model, program, _, (x, _), _ = walked
    loaded = export.load(folder / "digits.funct")
    laws.same(loaded(xp.asarray(x)), program(xp.asarray(x)))
    weights = serialize.load(folder / "weights.safetensors")
    laws.same(weights, nn.state_dict(model))
    assert sorted(weights)[:2] == ["0.bias", "0.weight"]


def test_pictures_are_drawn(walked: Any, tmp_path: Path) -> None:
    """The learning curve and the misclassified digits are PNG files."""
    _, model, _, _, (x, y), losses = walked
    predicted = np.asarray(model(xp.asarray(x))).argmax(1)
    digits.draw(losses, x, y, predicted, tmp_path)
    for name in ("learning_curve.png", "misclassified.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_weights_in_a_torch_model_give_the_same_logits(walked: Any) -> None:
    """A torch model built with the same layers loads the file and agrees within 1e-5."""
    torch = pytest.importorskip("torch", reason="torch is the oracle")
    from safetensors.torch import load_file

    folder, model, _, _, (x, _), _ = walked
    twin = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Dropout(0.25), torch.nn.Linear(512, 10),
    )  # fmt: skip
    twin.load_state_dict(load_file(folder / "weights.safetensors"))
    twin.eval()
    with torch.no_grad():
        theirs = twin(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(np.asarray(model(xp.asarray(x))), theirs, atol=1e-5)


def test_demo_prints_its_table(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    """The command walks the whole road and prints one table."""
    out = ["digits.py", "--epochs", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", out)
    digits.main()
    text = capsys.readouterr().out
    assert "int8, onnxruntime" in text
    assert "0, bit for bit" in text
    names = {
        "digits.onnx", "digits_int8.onnx", "digits.funct", "weights.safetensors",
        "learning_curve.png", "misclassified.png",
    }  # fmt: skip
    assert names <= {p.name for p in tmp_path.iterdir()}


@pytest.mark.slow
def test_accuracy_over_five_seeds(tmp_path: Path) -> None:
    """float32 reaches 0.978 in the mean of 5 seeds; int8 is within half a percentage point."""
    x, y, x_test, y_test = digits.load_data()
    scores, scores_int8 = [], []
    for seed in range(5):
        model, _ = digits.train(x, y, seed=seed, epochs=20, progress=False)
        _, small = digits.export_all(model, x, tmp_path / str(seed))
        scores.append(digits.accuracy(model(xp.asarray(x_test)), y_test))
        scores_int8.append(digits.accuracy(small(xp.asarray(x_test)), y_test))
    assert np.mean(scores) >= 0.978
    assert all(abs(a - b) <= 0.005 for a, b in zip(scores, scores_int8, strict=True))
