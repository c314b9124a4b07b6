"""A program as JSON and arrays, and back: its graph, the trees of its arguments, its names."""

from __future__ import annotations

from typing import Any

from funct.errors import FileFormatError
from funct.graph import eliminate_dead, inline_calls
from funct.graph.json_form import Tensors, decode_graph, encode_graph, fields_of, guarded
from funct.graph.program import ExportedProgram
from funct.serialize.tree_form import decode_tree, encode_tree

__all__ = ["decode_program", "encode_program"]


def encode_program(program: ExportedProgram) -> tuple[dict[str, Any], Tensors]:
    """JSON and constants of a program; ExportError for what has no form in a file."""
    graph = eliminate_dead(inline_calls(program.graph))
    value, tensors = encode_graph(graph)
    paths = {
        f"c{k}": program.constant_names[v.name]
        for k, (v, _) in enumerate(graph.constants)
        if v.name in program.constant_names
    }
    value |= {
        "in_tree": encode_tree(program.in_spec),
        "out_tree": encode_tree(program.out_spec),
        "input_names": list(program.input_names),
        "output_names": list(program.output_names),
        "constant_names": paths,
    }
    return value, tensors


def decode_program(value: Any, tensors: Tensors) -> ExportedProgram:
    """The program; FileFormatError for anything that `encode_program` would not have written."""
    return guarded(lambda: _program(value, tensors))


def _program(value: Any, tensors: Tensors) -> ExportedProgram:
    f = fields_of(
        value, symbols=list, inputs=list, constants=list, nodes=list, outputs=list,
        in_tree=dict, out_tree=object, input_names=list, output_names=list,
        constant_names=dict,
    )  # fmt: skip
    parts = ("symbols", "inputs", "constants", "nodes", "outputs")
    graph = decode_graph({k: f[k] for k in parts}, tensors)
    in_spec, out_spec = decode_tree(f["in_tree"]), decode_tree(f["out_tree"])
    inputs, outputs = tuple(f["input_names"]), tuple(f["output_names"])
    given = (*inputs, *outputs, *f["constant_names"].values())
    if not all(isinstance(n, str) for n in given):
        raise FileFormatError("graph.json: names must be texts")
    counts = [(in_spec, inputs, graph.inputs), (out_spec, outputs, graph.outputs)]
    if not all(spec.num_leaves == len(names) == len(vs) for spec, names, vs in counts):
        raise FileFormatError("graph.json: trees, names and values differ in number")
    if not f["constant_names"].keys() <= {v.name for v, _ in graph.constants}:
        raise FileFormatError("graph.json: a constant that is absent has a name")
    names = dict(f["constant_names"])
    return ExportedProgram(graph, in_spec, out_spec, inputs, outputs, names)
