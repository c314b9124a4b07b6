"""to_onnx: an `ExportedProgram` as an ONNX model. Reads best after `onnx_writer.py`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import funct
from funct.core import Absent, ShapeDtype
from funct.errors import ExportError
from funct.export.onnx_dtypes import operand_dtypes
from funct.export.onnx_model import ModelHeader, build_model, check_opset, load_onnx, write_model
from funct.export.onnx_steps import Step, steps
from funct.export.onnx_writer import Writer
from funct.export.program import export
from funct.graph import Graph, Guard, Var, eliminate_dead, inline_calls
from funct.graph.program import ExportedProgram
from funct.serialize import graph_hash
from funct.serialize.whole_file import file_name
from funct.source import Site

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["to_onnx"]

Problem = tuple[str, Site | None]


def to_onnx(
    fun_or_program: Callable[..., Any] | ExportedProgram,
    args: tuple[Any, ...] | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    opset: int = 21,
    dynamic_shapes: Any = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> ModelProto:
    """Write a function or a program as an ONNX model, checked by onnx's own checker.

    Args: fun_or_program: an ExportedProgram, or a function with example arguments args. path: where
    to write the model as well; it appears whole or not at all. opset: ONNX operator set; 21 (IR 10)
    is read by every current runtime. dynamic_shapes: as for `export`; the names become symbolic
    dimensions. input_names, output_names: one per leaf, instead of the program's.
    Returns: an onnx.ModelProto.
    Raises: ExportError: when something has no ONNX form; it names all such operations and the
    user's lines, and nothing is written. MissingExtraError: without the package onnx.
    Notes: a runtime checks neither indices nor integer divisors, nor what the function decided on
    sizes: `if x.shape[0] > 3` keeps the example's branch, where the program raises GuardError for
    the other. The sign of a zero may differ. onnxruntime has no float64 kernels for Conv,
    AveragePool, Erf, Tan and a few more: export float32. It lets NaN win or lose in ReduceMax,
    ReduceMin, MaxPool and TopK as it likes, where NumPy keeps it.
    Example:
        >>> import funct.array as xp
        >>> from funct import export
        >>> x = xp.ones((2, 3), dtype=xp.float32)
        >>> model = export.to_onnx(lambda x: xp.exp(x) * 2.0, (x,))
        >>> [node.op_type for node in model.graph.node]
        ['Exp', 'Mul']
    """
    path = path if path is None else file_name("to_onnx", path)
    program = _program(fun_or_program, args, dynamic_shapes)
    graph = eliminate_dead(inline_calls(program.graph), guards=True)
    todo = steps(eliminate_dead(graph, guards=False))
    _refuse(_guard_problems(graph) + [p for s in todo for p in _step_problems(s)])
    onnx = load_onnx()
    check_opset(onnx, opset)
    inputs = _names("input", input_names, program.input_names)
    outputs = _names("output", output_names, program.output_names)
    writer = _write(graph, todo, inputs, outputs, program.constant_names)
    header = ModelHeader("funct", opset, funct.__version__, _metadata(graph))
    model = build_model(
        onnx, writer, list(zip(inputs, [v.aval for v in graph.inputs], strict=True)),
        list(zip(outputs, [v.aval for v in graph.outputs], strict=True)), header,
    )  # fmt: skip
    if path is not None:
        write_model(model, path)
    return model


def _metadata(graph: Graph) -> dict[str, str]:
    found = {"funct.version": funct.__version__}
    with contextlib.suppress(ExportError):  # parameters that no file of ours holds have no hash
        found["funct.graph"] = graph_hash(graph)
    return found


def _program(given: Any, args: tuple[Any, ...] | None, dynamic_shapes: Any) -> ExportedProgram:
    if not isinstance(given, ExportedProgram):
        if args is None:
            raise ExportError(
                "to_onnx: a function needs example arguments", fix="to_onnx(fun, (x,))"
            )
        return export(given, args, dynamic_shapes=dynamic_shapes)
    if args is not None or dynamic_shapes is not None:
        raise ExportError(
            "to_onnx: a program is already captured; it takes no args, no dynamic_shapes"
        )
    return given


def _names(kind: str, given: Sequence[Any] | None, own: tuple[str, ...]) -> tuple[str, ...]:
    names = own if given is None else tuple(given)
    if len(names) != len(own):
        raise ExportError(f"to_onnx: {len(own)} {kind}_names are needed, got {len(names)}: {names}")
    if len(set(names)) != len(names) or not all(isinstance(n, str) and n for n in names):
        raise ExportError(f"to_onnx: {kind}_names must be different non-empty texts, got {names}")
    return names


# what has no form -------------------------------------------------------------------------------


def _guard_problems(graph: Graph) -> list[Problem]:
    return [
        (
            f"the function branches on {e.kind}() of a value; ONNX would keep one branch for all",
            e.site,
        )
        for e in graph.nodes
        if isinstance(e, Guard) and e.kind != "size"
    ]


def _step_problems(step: Step) -> list[Problem]:
    if isinstance(step.lower, Absent):
        return [(f"{step.name}: {step.lower.reason}", step.site)]
    values = [a for a in (*step.operands, *step.results) if isinstance(a, Var)]
    if any(v.dtype.kind == "c" for v in values):
        return [(f"{step.name}: ONNX operators take no complex numbers", step.site)]
    return []


def _refuse(problems: list[Problem]) -> None:
    if not problems:
        return
    if len(problems) == 1:
        raise ExportError(f"to_onnx: {problems[0][0]}", site=problems[0][1])
    lines = [f"    {what}" + (f"  ({site})" if site else "") for what, site in problems]
    text = "\n".join(dict.fromkeys(lines))
    raise ExportError(
        f"to_onnx: {len(problems)} operations have no ONNX form:\n{text}", site=problems[0][1]
    )


# writing ----------------------------------------------------------------------------------------


def _write(
    graph: Graph,
    todo: list[Step],
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    constant_names: Any,
) -> Writer:
    symbols = {s.name: (inputs[s.input], s.axis) for s in graph.symbols}
    writer = Writer(symbols)
    names: dict[Var, str] = {}
    for v, name in zip(graph.inputs, inputs, strict=True):
        if name in outputs:
            raise ExportError(
                f"to_onnx: {name!r} names an input and an output", fix="give output_names"
            )
        names[v] = writer.declare(writer.unique(name), v.aval)
    for name in outputs:
        writer.unique(name)
    for v, x in graph.constants:
        names[v] = writer.initializer(constant_names.get(v.name, v.name), np.asarray(x.data))
    problems: list[Problem] = []
    for k, step in enumerate(todo):
        try:
            made = _lower(writer, step, names, k)
        except ExportError as error:
            problems.append((error.what, step.site))
            made = tuple([writer.unique("absent") for _ in step.results])
        for v, name in zip(step.results, made, strict=True):
            names[v] = writer.declare(name, v.aval) if name not in writer.infos else name
    _refuse(problems)
    _name_outputs(writer, [names[v] for v in graph.outputs], outputs)
    return writer


def _lower(writer: Writer, step: Step, names: dict[Var, str], k: int) -> tuple[str, ...]:
    folded = _folded(writer, step, names)
    if folded is not None:
        return (folded,)
    where = f"{os.path.basename(step.site.file)}:{step.site.line}" if step.site else ""
    writer.enter(f"{step.name}_{k}", where, tuple([v.aval for v in step.results]))
    operands = _operands(writer, step, names)
    if isinstance(step.lower, str):
        made: Any = writer.op(step.lower, *operands)
    else:
        assert not isinstance(step.lower, Absent)
        made = step.lower(writer, *operands, *step.params)
    made = made if isinstance(made, tuple) else (made,)
    if len(step.results) == 1:
        made = (writer.cast(made[0], step.results[0].dtype),)
    return tuple(made)


def _operands(writer: Writer, step: Step, names: dict[Var, str]) -> list[str]:
    prim = step.primitive
    if prim.spread is None or prim.params:
        return [_name(writer, a, names, None) for a in step.operands]
    wanted = operand_dtypes(prim, step.operands, step.results[0].dtype)
    return [_name(writer, a, names, d) for a, d in zip(step.operands, wanted, strict=True)]


def _name(writer: Writer, a: Any, names: dict[Var, str], dtype: np.dtype[Any] | None) -> str:
    """The operand's name, in dtype where one is asked for."""
    if not isinstance(a, Var):
        return writer.constant(a, dtype)
    name = names[a]
    if dtype is None or writer.dtype_of(name) == dtype:
        return name
    return writer.declare(writer.cast(name, dtype), ShapeDtype(a.shape, dtype))


_FOLDED = {"reshape", "permute_dims"}


def _folded(writer: Writer, step: Step, names: dict[Var, str]) -> str | None:
    """A constant in another shape is another constant: a transposed weight, a wider bias."""
    if step.name not in _FOLDED:
        return None
    name = names[step.operands[0]]
    raw = writer.initializers.get(name)
    if raw is None:
        return None
    return writer.initializer(f"{name}.{step.name}", step.primitive.raw(raw, *step.params))


def _name_outputs(writer: Writer, made: list[str], outputs: tuple[str, ...]) -> None:
    """Let nodes write to the output's name; what is no node's result is copied to it."""
    computed = {n for node in writer.nodes for n in node.outputs}
    renamed: dict[str, str] = {}
    writer.enter("", "", ())
    for name, output in zip(made, outputs, strict=True):
        own = name in computed and name not in renamed
        renamed[name if own else writer.op("Identity", name)] = output
    writer.rename(renamed)
