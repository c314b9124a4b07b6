"""`to_onnx`: whole functions, symbolic sizes, names, fused layers, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import export, ops, tree
from funct.errors import ExportError, MissingExtraError

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx

from tests.export.onnx_runs import assert_same, run_onnxruntime, run_reference

pytestmark = pytest.mark.onnx


def array(*shape: int, seed: int = 0) -> Any:
    """A float32 array."""
    return xp.asarray(np.random.default_rng(seed).normal(size=shape).astype("f"))


@tree.register
@attrs.frozen(eq=False)
class Net:
    """Convolution, pooling and a linear layer, written with ops."""

    kernel: Any
    shift: Any
    weight: Any
    bias: Any

    def __call__(self, x: Any) -> Any:
        """Logits of images (N, 3, 6, 6)."""
        y = ops.convolution(x, self.kernel, (1, 1), ((1, 1), (1, 1)), (1, 1), 1)
        y = ops.relu(y + xp.reshape(self.shift, (1, 4, 1, 1)))
        y = ops.max_pool(y, (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1))
        return xp.reshape(y, (y.shape[0], 36)) @ self.weight.T + self.bias


NET = Net(array(4, 3, 3, 3), array(4, seed=1), array(5, 36, seed=2), array(5, seed=3))


def softmax(x: Any) -> Any:
    """Softmax over the last axis."""
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def logsumexp(x: Any) -> Any:
    """log(sum(exp(x))) over the last axis."""
    top = xp.max(x, axis=-1, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - top), axis=-1)) + top[..., 0]


def layer_norm(x: Any) -> Any:
    """Zero mean, unit variance over the last axis."""
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    return centred / xp.sqrt(xp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


def gelu(x: Any) -> Any:
    """x times the normal distribution function."""
    return x * 0.5 * (1.0 + ops.erf(x * 0.7071067811865476))


def loss(net: Net, x: Any, y: Any) -> Any:
    """Cross entropy of one-hot labels."""
    logits = net(x)
    return -xp.mean(xp.sum(y * (logits - logsumexp(logits)[:, None]), axis=-1))


@pytest.mark.parametrize("fun", [softmax, logsumexp, layer_norm, gelu], ids=lambda f: f.__name__)
def test_composite(fun: Any) -> None:
    """Functions made of many primitives give the same in onnxruntime and in the reference."""
    x = array(4, 7)
    model = export.to_onnx(fun, (x,))
    for run in (run_onnxruntime, run_reference):
        assert_same(run(model, {"x": np.asarray(x)}), [fun(x)])


def test_network_looks_as_expected() -> None:
    """Bias additions join Conv and Gemm, and parameters keep their names."""
    model = export.to_onnx(NET, (array(2, 3, 6, 6),), dynamic_shapes=({0: "N"},))
    kinds = [n.op_type for n in model.graph.node]
    assert kinds == ["Conv", "Relu", "MaxPool", "Reshape", "Gemm"]
    assert list(model.graph.node[0].input) == ["x", "kernel", "shift"]
    assert list(model.graph.node[4].input)[1:] == ["weight", "bias"]
    names = {i.name for i in model.graph.initializer}
    assert {"kernel", "shift", "weight", "bias"} <= names
    assert (model.ir_version, model.opset_import[0].version) == (10, 21)
    assert model.producer_name == "funct"
    metadata = {p.key: p.value for p in model.metadata_props}
    assert metadata["funct.version"] == ft.__version__
    assert len(metadata["funct.graph"]) == 64


@pytest.mark.parametrize("batch", [1, 3, 17])
def test_symbolic_batch(batch: int) -> None:
    """One file serves every batch size."""
    model = export.to_onnx(NET, (array(2, 3, 6, 6),), dynamic_shapes=({0: "N"},))
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    assert model.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "N"
    x = array(batch, 3, 6, 6, seed=batch)
    assert_same(run_onnxruntime(model, {"x": np.asarray(x)}), [NET(x)])


def test_gradient_of_a_network() -> None:
    """A training step's gradient is an ordinary ONNX file, for every batch size."""
    grad = ft.grad(loss)
    x, y = array(2, 3, 6, 6), array(2, 5, seed=5)
    shapes = (None, {0: "N"}, {0: "N"})
    model = export.to_onnx(grad, (NET, x, y), dynamic_shapes=shapes)
    for batch in (2, 5):
        x, y = array(batch, 3, 6, 6, seed=9), array(batch, 5, seed=5)
        leaves = [np.asarray(v) for v in tree.leaves((NET, x, y))]
        inputs = dict(zip([i.name for i in model.graph.input], leaves, strict=True))
        assert_same(run_onnxruntime(model, inputs), tree.leaves(grad(NET, x, y)), rtol=1e-4)


def test_symbolic_arithmetic() -> None:
    """Sizes that are computed from sizes are computed in the file."""

    def halves(x: Any, y: Any) -> Any:
        n, m = x.shape[0], y.shape[0]
        pairs = xp.reshape(xp.broadcast_to(x[:, None], (n, m)) * y, (n * m,))
        return pairs, xp.concat([x, y, x]), xp.reshape(x, (n // 2, 2)), xp.mean(x)

    args = (array(6), array(4, seed=1))
    model = export.to_onnx(halves, args, dynamic_shapes=({0: "N"}, {0: "M"}))
    shapes = [[d.dim_param for d in o.type.tensor_type.shape.dim] for o in model.graph.output]
    assert shapes[:2] == [["M*N"], ["2*N + M"]]
    for n, m in ((6, 4), (2, 1), (8, 3)):
        x, y = array(n, seed=n), array(m, seed=m)
        got = run_onnxruntime(model, {"x": np.asarray(x), "y": np.asarray(y)})
        assert_same(got, halves(x, y))


def test_symbolic_slices() -> None:
    """Windows over a symbolic axis, and their gradients, keep it symbolic."""

    def moving(x: Any) -> Any:
        return xp.mean((x[1:] - x[:-1]) ** 2)

    fun = ft.grad(moving)
    model = export.to_onnx(fun, (array(6),), dynamic_shapes=({0: "T"},))
    for n in (2, 9):
        x = array(n, seed=n)
        assert_same(run_onnxruntime(model, {"arg0": np.asarray(x)}), [fun(x)])


@pytest.mark.parametrize("part", [
    lambda x: x[: x.shape[0] // 2], lambda x: x[:10], lambda x: x[-3:], lambda x: x[1:-1],
    lambda x: x[1::2], lambda x: x[::-3], lambda x: xp.roll(x, 1) * x,
])  # fmt: skip
def test_parts_that_depend_on_the_length(part: Any) -> None:
    """One file for every length, of the parts and of their gradients, also where parts are empty
    or the whole.
    """
    for fun in (lambda x: part(x) * 2.0, ft.grad(lambda x: xp.sum(part(x) ** 2))):
        model = export.to_onnx(fun, (array(6),), dynamic_shapes=({0: "T"},))
        name = model.graph.input[0].name
        for n in (1, 2, 3, 9, 10, 11, 14):
            x = array(n, seed=n)
            assert_same(run_onnxruntime(model, {name: np.asarray(x)}), [fun(x)])


def test_names() -> None:
    """Inputs and outputs have the program's names, or the ones given."""
    fun = lambda a, b: {"sum": a + b, "same": a}  # noqa: E731
    x = array(3)
    model = export.to_onnx(fun, (x, x))
    assert [i.name for i in model.graph.input] == ["a", "b"]
    assert [o.name for o in model.graph.output] == ["output.same", "output.sum"]
    model = export.to_onnx(fun, (x, x), input_names=["p", "q"], output_names=["r", "s"])
    assert [i.name for i in model.graph.input] == ["p", "q"]
    got = run_onnxruntime(model, {"p": np.asarray(x), "q": np.asarray(x)})
    assert_same(got, [x, x + x])
    with pytest.raises(ExportError, match="2 input_names are needed, got 1"):
        export.to_onnx(fun, (x, x), input_names=["p"])
    with pytest.raises(ExportError, match="different non-empty"):
        export.to_onnx(fun, (x, x), output_names=["p", "p"])
    with pytest.raises(ExportError, match="names an input and an output"):
        export.to_onnx(fun, (x, x), output_names=["a", "s"])


def test_names_that_collide() -> None:
    """A user's name never clashes with one that the exporter makes."""
    x = array(3)
    fun = lambda exp_0, constant_2_0: (xp.exp(exp_0) * 2.0, constant_2_0, exp_0 * 2.0)  # noqa: E731
    model = export.to_onnx(fun, (x, x), input_names=["exp_0", "constant_2.0"])
    got = run_onnxruntime(model, {"exp_0": np.asarray(x), "constant_2.0": np.asarray(x)})
    assert_same(got, fun(x, x))


def test_outputs_that_are_no_results() -> None:
    """An input, a constant, and one result twice may all be outputs."""
    c = array(2, seed=4)
    fun = lambda x: (x, c, x + 1.0, x + 1.0)  # noqa: E731
    x = array(2)
    got = run_onnxruntime(export.to_onnx(fun, (x,)), {"x": np.asarray(x)})
    assert_same(got, fun(x))


@pytest.mark.parametrize("opset", [18, 19, 20, 21, 22, 23, 24])
def test_opsets(opset: int) -> None:
    """Other operator sets give the same numbers."""
    x = array(2, 3, 6, 6)
    model = export.to_onnx(NET, (x,), opset=opset)
    assert model.opset_import[0].version == opset
    assert_same(run_onnxruntime(model, {"x": np.asarray(x)}), [NET(x)])


@pytest.mark.parametrize("opset", [17, 99, 21.0, "21"])
def test_unknown_opset(opset: Any) -> None:
    """An operator set that the lowerings or the installed onnx do not know is refused."""
    with pytest.raises(ExportError, match="opset must be an int from 18 to"):
        export.to_onnx(lambda x: x, (array(2),), opset=opset)


def test_all_that_has_no_form_is_named(tmp_path: Path) -> None:
    """One error names every unsupported operation with its line; nothing is written."""

    def fun(x: Any) -> Any:
        y = ops.cumulative_prod(x, 0)
        return ops.nextafter(y, x)

    path = tmp_path / "model.onnx"
    with pytest.raises(ExportError) as caught:
        export.to_onnx(fun, (array(3),), path)
    text = str(caught.value)
    assert "2 operations have no ONNX form" in text
    assert "cumulative_prod: ONNX has CumProd from opset 26 on only" in text
    assert "y = ops.cumulative_prod(x, 0)" in text
    assert "return ops.nextafter(y, x)" in text
    assert list(tmp_path.iterdir()) == []


def test_branch_on_a_value() -> None:
    """A Python branch on a value is refused with the line that took it."""

    def fun(x: Any) -> Any:
        if xp.sum(x) > 0:
            return x
        return -x

    with pytest.raises(ExportError, match=r"branches on bool\(\) of a value") as caught:
        export.to_onnx(fun, (array(3),))
    assert caught.value.site is not None
    assert caught.value.site.text == "if xp.sum(x) > 0:"


def test_written_whole(tmp_path: Path) -> None:
    """The file is the model; a folder that does not exist leaves nothing behind."""
    path = tmp_path / "model.onnx"
    path.write_bytes(b"old")
    model = export.to_onnx(lambda x: x + 1.0, (array(2),), path)
    assert onnx.load(str(path)) == model
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]
    with pytest.raises(FileNotFoundError):
        export.to_onnx(lambda x: x + 1.0, (array(2),), tmp_path / "absent" / "model.onnx")
    with pytest.raises(IsADirectoryError):
        export.to_onnx(lambda x: x + 1.0, (array(2),), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


def test_deterministic(tmp_path: Path) -> None:
    """Exporting twice gives the same bytes."""
    for name in ("a", "b"):
        export.to_onnx(NET, (array(2, 3, 6, 6),), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_calls_with_rules_are_inlined() -> None:
    """A function with its own derivative is exported by its body."""

    @ft.custom_vjp
    def double(x: Any) -> Any:
        return x * 2.0

    double.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct * 2.0,))
    x = array(3)
    model = export.to_onnx(lambda x: double(x) + 1.0, (x,))
    assert [n.op_type for n in model.graph.node] == ["Mul", "Add"]
    assert_same(run_onnxruntime(model, {"x": np.asarray(x)}), [x * 2.0 + 1.0])


def test_vmapped_and_jitted() -> None:
    """vmap and jit of a function export like any function."""
    fun = ft.vmap(ft.jit(lambda w, x: softmax(w @ x)), in_axes=(None, 0))
    w, x = array(4, 3), array(5, 3, 2, seed=1)
    model = export.to_onnx(fun, (w, x), input_names=["w", "x"])
    assert_same(run_onnxruntime(model, {"w": np.asarray(w), "x": np.asarray(x)}), [fun(w, x)])


def test_arguments() -> None:
    """A function needs example arguments, a program takes none."""
    with pytest.raises(ExportError, match="needs example arguments"):
        export.to_onnx(lambda x: x)
    program = export.export(lambda x: x, (array(2),))
    with pytest.raises(ExportError, match="already captured"):
        export.to_onnx(program, (array(2),))


def test_without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package onnx the error names the extra that installs it."""
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"funct\[onnx\]"):
        export.to_onnx(lambda x: x, (array(2),))
