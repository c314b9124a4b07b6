"""LLVM text from a Python function: the subset in which kernels are written.

A value is a scalar or a vector of one of NumPy's dtypes, a pointer to elements, or static: known
while printing, such as a number, a dtype or a tuple. Static conditions choose a branch, loops over
a static tuple are unrolled, calls of Python functions are inlined. Variables that a loop or a
branch assigns become phis; one that is used after it must exist before it. Numbers adopt the dtype
of what they meet, two dtypes never mix, `//` and `%` are for unsigned integers. Additions and
multiplications are never contracted, so bits are those of NumPy.
"""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct.device.threads import PARALLEL
from funct.kernels.cpu.calling import Calling
from funct.kernels.cpu.vectors import (
    INT,
    TRUTH,
    Pointer,
    Shared,
    Type,
    Value,
    ascend,
    asked,
    backwards,
    bits,
    chosen,
    detached,
    fused,
    gathered,
    in_step,
    lanes,
    loaded,
    many,
    packed,
    picked,
    room,
    spread,
    stepped,
    stored,
    summed,
    written,
)
from funct.kernels.llvm import Module

__all__ = ["entry", "function", "printed_into"]

Env = dict[str, Any]


def entry(fn: Callable[..., Any], given: Sequence[Any], tasks: bool) -> str:
    """The text of `i64 entry(ptr frame)`, and of `i64 written()`: a bit for each array it writes.

    given: a Type, a Pointer or what is static for each parameter. The frame has one word for each:
    a number, or an array's address. With tasks, the last word says how many tasks there are, which
    run on the pool's threads, and the function's last argument is the number of one.
    """
    printer, written, names = _printed(fn, given, tasks)
    head = "task(ptr %frame, i64 %task)" if tasks else "entry(ptr %frame)"
    lines = [f"define i64 @{head} {{", "entry:", *printer.rooms, *printer.lines, "}"]
    text = [*sorted(printer.declared), *lines]
    if tasks:
        text += [
            PARALLEL, "define i64 @entry(ptr %frame) {",
            f"  %slot = getelementptr i64, ptr %frame, i64 {len(names) - 1}",
            "  %tasks = load i64, ptr %slot",
            "  call void @funct_parallel(ptr @task, ptr %frame, i64 %tasks)", "  ret i64 0", "}",
        ]  # fmt: skip
    mask = sum([1 << k for k, name in enumerate(names) if name in written])
    return "\n".join([*text, f"define i64 @written() {{ ret i64 {mask} }}", ""])


def printed_into(
    module: Module, name: str, fn: Callable[..., Any], given: Sequence[Any], *, tasks: bool = False
) -> None:
    """Add to a module `i64 name(ptr frame)`, the function without tasks that `entry` prints; with
    tasks, `i64 name(ptr frame, i64 task)`, one of them.
    """
    printer, *_ = _printed(fn, given, tasks)
    task = ", i64 %task" if tasks else ""
    head = [f"define i64 @{name}(ptr %frame{task}) {{", "entry:", *printer.rooms]
    module.include(name, sorted(printer.declared), [*head, *printer.lines])


def function(name: str, fn: Callable[..., Any], given: Sequence[Type | Pointer]) -> str:
    """The text of `i64 name(...)`, whose arguments are those of the function: its own."""
    printer, parameters = _Printer(), inspect.signature(fn).parameters
    env: Env = {}
    for p, a in zip(parameters, given, strict=True):
        own = f"%{p}.given"
        env[p] = Pointer(own, a.type) if isinstance(a, Pointer) else Value(own, a)
    if not printer.body(_parsed(fn).body, env, _globals(fn)):
        printer.line("ret i64 0")
    kinds = ["ptr" if isinstance(a, Pointer) else a.text for a in given]
    head = ", ".join([f"{kind} %{p}.given" for kind, p in zip(kinds, parameters, strict=True)])
    lines = [f"define i64 @{name}({head}) {{", "entry:", *printer.rooms, *printer.lines, "}", ""]
    return "\n".join([*sorted(printer.declared), *lines])


def _printed(
    fn: Callable[..., Any], given: Sequence[Any], tasks: bool
) -> tuple[_Printer, frozenset[str], list[str]]:
    """The function's lines, the arrays that it writes into, and its parameters."""
    printer = _Printer()
    env: Env = {}
    names = list(inspect.signature(fn).parameters)
    for k, (name, a) in enumerate(zip(names, given, strict=True)):
        if not isinstance(a, Pointer | Type):
            env[name] = a
            continue
        slot = printer.emit(f"getelementptr i64, ptr %frame, i64 {k}")
        if isinstance(a, Pointer):
            env[name] = Pointer(printer.emit(f"load ptr, ptr {slot}"), a.type)
        else:
            env[name] = Value(printer.emit(f"load {a.text}, ptr {slot}"), a)
    if tasks:
        env[names[-1]] = Value("%task", INT)
    if not printer.body(_parsed(fn).body, env, _globals(fn)):
        printer.line("ret i64 0")
    written = frozenset(
        [n for n, v in env.items() if isinstance(v, Pointer) and v.text in printer.written]
    )
    return printer, written, names


@functools.cache
def _parsed(fn: Callable[..., Any]) -> ast.FunctionDef:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(fn))).body
    assert isinstance(node, ast.FunctionDef)
    return node


def _globals(fn: Callable[..., Any]) -> Env:
    return {**fn.__globals__, **inspect.getclosurevars(fn).nonlocals}


def _assigned(nodes: Sequence[ast.stmt]) -> list[str]:
    """The variables that statements assign, in order."""
    return list(dict.fromkeys([name for node in nodes for name in _stored(node)]))


@functools.cache
def _stored(node: ast.stmt) -> list[str]:
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return [n.id for n in names if isinstance(n.ctx, ast.Store)]


@functools.cache
def _returns(node: ast.stmt) -> bool:
    return any(isinstance(n, ast.Return) for n in ast.walk(node))


class _Printer(Calling):
    """Walks a function."""

    def __init__(self) -> None:
        super().__init__()
        # of the loops around: where break goes, and who went there
        self.exits: list[tuple[str, list[tuple[str, Env]]]] = []

    # expressions ---------------------------------------------------------------------------------

    def value(self, node: ast.expr, env: Env, outer: Env) -> Any:
        """What an expression is."""
        return getattr(self, "_on_" + type(node).__name__)(node, env, outer)

    def _on_Constant(self, node: ast.Constant, env: Env, outer: Env) -> Any:
        return node.value

    def _on_Name(self, node: ast.Name, env: Env, outer: Env) -> Any:
        if node.id in env:
            return env[node.id]
        return outer[node.id] if node.id in outer else outer["__builtins__"][node.id]

    def _on_Tuple(self, node: ast.Tuple, env: Env, outer: Env) -> Any:
        return tuple([self.value(n, env, outer) for n in node.elts])

    def _on_Attribute(self, node: ast.Attribute, env: Env, outer: Env) -> Any:
        owner = self.value(node.value, env, outer)
        if isinstance(owner, Value | Pointer):
            assert node.attr == "dtype", node.attr
            return owner.type.dtype
        return getattr(owner, node.attr)

    def _on_Subscript(self, node: ast.Subscript, env: Env, outer: Env) -> Any:
        owner, at = self.value(node.value, env, outer), self.value(node.slice, env, outer)
        if not isinstance(owner, Pointer):
            return owner[at]
        where = self.address(owner, at)
        return Value(self.emit(f"load {owner.type.text}, ptr {where}"), owner.type)

    def _on_Slice(self, node: ast.Slice, env: Env, outer: Env) -> Any:
        parts = (node.lower, node.upper, node.step)
        return slice(*[p and self.value(p, env, outer) for p in parts])

    def _on_BinOp(self, node: ast.BinOp, env: Env, outer: Env) -> Any:
        left = self.value(node.left, env, outer)
        return self.binary(node.op, left, self.value(node.right, env, outer))

    def _on_UnaryOp(self, node: ast.UnaryOp, env: Env, outer: Env) -> Any:
        v = self.value(node.operand, env, outer)
        if not isinstance(v, Value):
            fold: Any = {ast.USub: operator.neg, ast.Not: operator.not_, ast.Invert: operator.inv}
            return fold[type(node.op)](v)
        if isinstance(node.op, ast.USub):
            if v.type.kind == "f":
                return Value(self.emit(f"fneg {v.type.text} {v.text}"), v.type)
            return self.binary(ast.Sub(), 0, v)
        ones = {"b": True, "i": -1, "u": (1 << v.type.bits) - 1}[v.type.kind]
        return self.binary(ast.BitXor(), v, ones)

    def _on_Compare(self, node: ast.Compare, env: Env, outer: Env) -> Any:
        (op,), (right,) = node.ops, node.comparators
        return self.compare(op, self.value(node.left, env, outer), self.value(right, env, outer))

    def _on_IfExp(self, node: ast.IfExp, env: Env, outer: Env) -> Any:
        test = self.value(node.test, env, outer)
        if not isinstance(test, Value):
            return self.value(node.body if test else node.orelse, env, outer)
        a, b = (self.value(n, env, outer) for n in (node.body, node.orelse))
        return self.where(test, a, b)

    def _on_BoolOp(self, node: ast.BoolOp, env: Env, outer: Env) -> Any:
        stops = isinstance(node.op, ast.Or)  # the value at which no more is asked
        v = self.value(node.values[0], env, outer)
        for part in node.values[1:]:
            if not isinstance(v, Value):
                v = v if bool(v) is stops else self.value(part, env, outer)
                continue
            here, more, after = self.block, self.fresh("ask"), self.fresh("known")
            first, second = (after, more) if stops else (more, after)
            self.line(f"br i1 {v.text}, label %{first}, label %{second}")
            self.start(more)
            w = self.typed(self.value(part, env, outer))
            there = self.block
            self.line(f"br label %{after}")
            self.start(after)
            decided = f"[ {str(stops).lower()}, %{here} ]"
            v = Value(self.emit(f"phi i1 {decided}, [ {w.text}, %{there} ]"), TRUTH)
        return v

    def _on_Call(self, node: ast.Call, env: Env, outer: Env) -> Any:
        args = [self.value(a, env, outer) for a in node.args]
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value, env, outer)
            if isinstance(owner, Value):
                return self.method(owner, node.func.attr, *args)
        called = self.value(node.func, env, outer)
        if isinstance(called, type) and issubclass(called, np.generic):
            return self.cast(args[0], np.dtype(called))
        known: dict[Any, Callable[..., Any]] = {
            np.where: self.where, np.sqrt: self.root, np.log1p: self.log1p, loaded: self.loaded,
            summed: self.summed, stored: self.stored, written: self.applied, asked: self.asked,
            gathered: self.gathered, lanes: self.lanes, packed: self.packed, many: self.many,
            bits: self.bits, chosen: self.chosen, in_step: self.in_step, stepped: self.stepped,
            ascend: self.ascend, min: self.smaller, detached: self.detached,
            backwards: self.backwards, picked: self.shuffled, room: self.room,
            fused: self.fused, np.floor: self.floor, np.rint: self.rint,
            spread: lambda v, n: self.spread(self.typed(v), n),
            max: lambda a, b: self.where(self.compare(ast.Gt(), b, a), b, a),
        }  # fmt: skip
        if called.__class__ is Shared:
            return self.called(called, *args)
        if called in known:
            return known[called](*args)
        if not any(map(_is_held, args)):
            return called(*args)
        inner = dict(zip(inspect.signature(called).parameters, args, strict=True))
        return self._inlined(_parsed(called).body, inner, _globals(called))

    def _inlined(self, nodes: Sequence[ast.stmt], env: Env, outer: Env) -> Any:
        """What a function gives; it returns at its end, or where static conditions say."""
        for node in nodes:
            if isinstance(node, ast.Return):
                return self.value(node.value, env, outer) if node.value else None
            if isinstance(node, ast.If) and _returns(node):
                test = self.value(node.test, env, outer)
                assert not isinstance(test, Value), "an early return needs a static condition"
                branch = node.body if test else node.orelse
                if any(map(_returns, branch)):
                    return self._inlined(branch, env, outer)
                self.body(branch, env, outer)
            elif not _is_text(node):
                assert not _returns(node), "what is inlined cannot return out of a loop"
                self._statement(node, env, outer)
        return None

    # statements ----------------------------------------------------------------------------------

    def body(self, nodes: Sequence[ast.stmt], env: Env, outer: Env) -> bool:
        """Print statements; whether control left them for good."""
        return any(not _is_text(node) and self._statement(node, env, outer) for node in nodes)

    def _statement(self, node: ast.stmt, env: Env, outer: Env) -> bool:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self.value(value, env, outer), env, outer)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self.value(value, env, outer), env, outer)
            case ast.AugAssign(target=target, op=op, value=value):
                old = self.value(target, env, outer)
                self._assign(
                    target, self.binary(op, old, self.value(value, env, outer)), env, outer
                )
            case ast.Expr(value=value):
                self.value(value, env, outer)
            case ast.If():
                return self._if(node, env, outer)
            case ast.While():
                self._loop(
                    lambda e: self.value(node.test, e, outer), node.body, lambda e: None, env, outer
                )
            case ast.For():
                self._for(node, env, outer)
            case ast.Break():
                after, left = self.exits[-1]
                left.append((self.block, dict(env)))
                self.line(f"br label %{after}")
                return True
            case ast.Return(value=value):
                v = self.typed(self.value(value, env, outer) if value else 0, INT)
                self.line(f"ret i64 {v.text}")
                return True
            case _:
                raise TypeError(f"a kernel has no {type(node).__name__}")
        return False

    def _assign(self, target: ast.expr, v: Any, env: Env, outer: Env) -> None:
        if isinstance(target, ast.Name):
            env[target.id] = v
        elif isinstance(target, ast.Tuple):
            for part, w in zip(target.elts, v, strict=True):
                self._assign(part, w, env, outer)
        else:
            assert isinstance(target, ast.Subscript)
            owner, at = (self.value(n, env, outer) for n in (target.value, target.slice))
            self.stored(owner, at, self.typed(v, owner.type))

    def _if(self, node: ast.If, env: Env, outer: Env) -> bool:
        test = self.value(node.test, env, outer)
        if not isinstance(test, Value):
            return self.body(node.body if test else node.orelse, env, outer)
        yes, no, after = self.fresh("then"), self.fresh("else"), self.fresh("after")
        self.line(f"br i1 {test.text}, label %{yes}, label %{no}")
        ends = []
        for label, nodes in ((yes, node.body), (no, node.orelse)):
            self.start(label)
            inner = dict(env)
            if not self.body(nodes, inner, outer):
                ends.append((self.block, inner))
                self.line(f"br label %{after}")
        if not ends:
            return True
        self._join(after, ends, env)
        return False

    def _join(self, label: str, ends: Sequence[tuple[str, Env]], env: Env) -> None:
        """Start the block where several come together: what differs between them is a phi."""
        self.start(label)
        for name in env:
            found = [inner[name] for _, inner in ends]
            if all(v is found[0] for v in found):
                env[name] = found[0]
                continue
            kind = next((v.type for v in found if isinstance(v, Value)), None)
            found = [self.typed(v, kind) for v in found]
            pairs = [f"[ {v.text}, %{block} ]" for v, (block, _) in zip(found, ends)]
            text = found[0].type.text
            env[name] = Value(self.emit(f"phi {text} {', '.join(pairs)}"), found[0].type)

    def _for(self, node: ast.For, env: Env, outer: Env) -> None:
        called = node.iter
        if not (isinstance(called, ast.Call) and isinstance(called.func, ast.Name)
                and called.func.id == "range"):  # fmt: skip
            for v in self.value(called, env, outer):  # static: unrolled
                self._assign(node.target, v, env, outer)
                self.body(node.body, env, outer)
            return
        bounds = [self.value(a, env, outer) for a in called.args]
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        assert isinstance(node.target, ast.Name)
        name = node.target.id
        counter = self.fresh(".")  # its own: the body may assign the name
        inner = {**env, counter: self.typed(start)}
        order = ast.Lt() if step > 0 else ast.Gt()

        def test(e: Env) -> Value:
            e[name] = e[counter]
            return self.typed(self.compare(order, e[counter], stop))

        def again(e: Env) -> None:
            e[counter] = self.binary(ast.Add(), e[counter], step)

        self._loop(test, node.body, again, inner, outer, counter)
        env.update({k: inner[k] for k in env if k != name})

    def _loop(
        self, test: Callable[[Env], Any], nodes: Sequence[ast.stmt],
        again: Callable[[Env], None], env: Env, outer: Env, *also: str,
    ) -> None:  # fmt: skip
        changing = [n for n in dict.fromkeys([*also, *_assigned(nodes)]) if n in env]
        head, inside, after = self.fresh("head"), self.fresh("body"), self.fresh("after")
        before = {n: self.typed(env[n]) for n in changing}
        came = self.block
        self.line(f"br label %{head}")
        self.start(head)
        slots = {}
        for n, v in before.items():
            self.count += 1
            slots[n] = len(self.lines)
            self.lines.append("")
            env[n] = Value(f"%v{self.count}", v.type)
        asked = self.typed(test(env))
        self.line(f"br i1 {asked.text}, label %{inside}, label %{after}")
        left = [(self.block, dict(env))]
        self.start(inside)
        inner = dict(env)
        self.exits.append((after, left))
        ended = self.body(nodes, inner, outer)
        self.exits.pop()
        if not ended:
            again(inner)
        for n, v in before.items():
            pairs = f"[ {v.text}, %{came} ]"
            if not ended:
                new = self.typed(inner[n], v.type)
                assert new.type == v.type, (n, new.type, v.type)
                pairs += f", [ {new.text}, %{self.block} ]"
            self.lines[slots[n]] = f"  {env[n].text} = phi {v.type.text} {pairs}"
        if not ended:
            self.line(f"br label %{head}")
        self._join(after, left, env)


def _is_held(v: Any) -> bool:
    """Whether it is no static value, or a tuple with one that is none."""
    return any(map(_is_held, v)) if v.__class__ is tuple else isinstance(v, Value | Pointer)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
