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
import struct
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funct.device.threads import PARALLEL
from funct.kernels.cpu.vectors import (
    INT,
    TRUTH,
    Pointer,
    Type,
    Value,
    element,
    gathered,
    lanes,
    loaded,
    spread,
    stored,
)

__all__ = ["entry", "tasks_entry"]

Env = dict[str, Any]


def entry(fn: Callable[..., Any], given: Sequence[Any], data_offset: int) -> str:
    """The text of `i64 kernel(...)`: fn for arguments that are Types, Pointers or static.

    An array comes as the address of the object; its data pointer lies data_offset bytes behind.
    """
    printer = _Printer()
    env: Env = {}
    parameters = []
    for name, a in zip(inspect.signature(fn).parameters, given, strict=True):
        if isinstance(a, Pointer):
            parameters.append(f"ptr %{name}")
            slot = printer.emit(f"getelementptr i8, ptr %{name}, i64 {data_offset}")
            env[name] = Pointer(printer.emit(f"load ptr, ptr {slot}"), a.type)
        elif isinstance(a, Type):
            parameters.append(f"{a.text} %{name}")
            env[name] = Value(f"%{name}", a)
        else:
            env[name] = a
    if not printer.body(_parsed(fn).body, env, _globals(fn)):
        printer.line("ret i64 0")
    head = f"define i64 @kernel({', '.join(parameters)}) {{\nentry:\n"
    return "\n".join([*sorted(printer.declared), head + "\n".join(printer.lines), "}"]) + "\n"


def tasks_entry(fn: Callable[..., Any], given: Sequence[Any], data_offset: int) -> str:
    """The text of `i64 tasks(...)`, which runs `kernel` for each task on the pool's threads.

    Its last argument is how many tasks there are; the kernel's last one is the task's number.
    """
    kinds = ["ptr" if isinstance(a, Pointer) else a.text for a in given
             if isinstance(a, Pointer | Type)]  # fmt: skip
    record = f"[{len(kinds)} x i64]"
    took, kept, passed = [], [], []
    for k, kind in enumerate(kinds):
        slot = f"getelementptr {record}, ptr %all, i64 0, i64 {k}"
        kept += [f"  %s{k} = {slot}", f"  store {kind} %a{k}, ptr %s{k}"]
        took += [f"  %s{k} = {slot}", f"  %a{k} = load {kind}, ptr %s{k}"]
        passed.append(f"{kind} %a{k}")
    *most, _ = passed
    call = f"  %r = call i64 @kernel({', '.join([*most, 'i64 %task'])})"
    tasks = f"i64 %a{len(kinds) - 1}"
    return "\n".join([
        PARALLEL, entry(fn, given, data_offset),
        "define void @task(ptr %all, i64 %task) {", *took[:-2], call, "  ret void", "}",
        f"define i64 @tasks({', '.join(passed)}) {{", f"  %all = alloca {record}", *kept,
        f"  call void @funct_parallel(ptr @task, ptr %all, {tasks})", "  ret i64 0", "}", "",
    ])  # fmt: skip


@functools.cache
def _parsed(fn: Callable[..., Any]) -> ast.FunctionDef:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(fn))).body
    assert isinstance(node, ast.FunctionDef)
    return node


def _globals(fn: Callable[..., Any]) -> Env:
    return {**fn.__globals__, **inspect.getclosurevars(fn).nonlocals}


def _assigned(nodes: Sequence[ast.stmt]) -> list[str]:
    """The variables that statements assign, in order."""
    found = [
        n.id
        for node in nodes
        for n in ast.walk(node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    ]
    return list(dict.fromkeys(found))


_STATIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.Pow: operator.pow, ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda a, b: a in b,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.AST], dict[str, str]] = {
    ast.Add: {"f": "fadd", "i": "add", "u": "add"},
    ast.Sub: {"f": "fsub", "i": "sub", "u": "sub"},
    ast.Mult: {"f": "fmul", "i": "mul", "u": "mul"},
    ast.Div: {"f": "fdiv"}, ast.FloorDiv: {"u": "udiv"}, ast.Mod: {"u": "urem"},
    ast.LShift: {"i": "shl", "u": "shl"}, ast.RShift: {"i": "ashr", "u": "lshr"},
    ast.BitAnd: {"i": "and", "u": "and", "b": "and"}, ast.BitOr: {"i": "or", "u": "or", "b": "or"},
    ast.BitXor: {"i": "xor", "u": "xor", "b": "xor"},
}  # fmt: skip
_COMPARED = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip


class _Printer:
    """One function's text as it grows."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.block = "entry"
        self.count = 0
        # of the loops around: where break goes, and who went there
        self.exits: list[tuple[str, list[tuple[str, Env]]]] = []

    # text ----------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def emit(self, text: str) -> str:
        self.count += 1
        self.line(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def fresh(self, label: str) -> str:
        self.count += 1
        return f"{label}{self.count}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    # values --------------------------------------------------------------------------------------

    def typed(self, v: Any, kind: Type | None = None) -> Value:
        """v as a Value: a number takes the type given, a scalar is spread over its lanes."""
        if isinstance(v, Value):
            return self._spread(v, kind.lanes) if kind and kind.lanes and not v.type.lanes else v
        if isinstance(v, np.generic):
            kind = kind or element(v.dtype)
            v = v.item()
        if kind is None:
            kind = TRUTH if isinstance(v, bool) else Type("f", 64) if isinstance(v, float) else INT
        if not isinstance(v, bool | int | float):
            raise TypeError(f"a kernel cannot hold {v!r} in a register")
        if kind.kind == "f":
            rounded = float(kind.dtype.type(v))
            text = f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
        elif kind.kind == "b":
            text = str(bool(v)).lower()
        else:
            text = str(int(kind.dtype.type(v)))
        if kind.lanes:
            text = "<" + ", ".join([f"{kind.scalar} {text}"] * kind.lanes) + ">"
        return Value(text, kind)

    def _spread(self, v: Value, lanes: int) -> Value:
        kind = v.type._replace(lanes=lanes)
        one = self.emit(f"insertelement {kind.text} poison, {v.type.text} {v.text}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return Value(
            self.emit(f"shufflevector {kind.text} {one}, {kind.text} poison, {zeros}"), kind
        )

    def _both(self, a: Any, b: Any) -> tuple[Value, Value]:
        known = [v.type for v in (a, b) if isinstance(v, Value)]
        kind = max(known, key=lambda t: t.lanes)
        a, b = self.typed(a, kind), self.typed(b, kind)
        if a.type != b.type:
            raise TypeError(f"a kernel mixes {a.type} and {b.type}")
        return a, b

    def _cast(self, v: Any, to: np.dtype[Any]) -> Value:
        if not isinstance(v, Value):
            return self.typed(v, element(to))
        old, new = v.type, element(to)._replace(lanes=v.type.lanes)
        if old == new:
            return v
        if old.kind == "f":
            if new.kind == "f":
                how = "fpext" if new.bits > old.bits else "fptrunc"
            else:
                how = "fptosi" if new.kind == "i" else "fptoui"
        elif new.kind == "f":
            how = "sitofp" if old.kind == "i" else "uitofp"
        elif new.bits == old.bits:
            return Value(v.text, new)
        elif new.bits < old.bits:
            how = "trunc"
        else:
            how = "sext" if old.kind == "i" else "zext"
        return Value(self.emit(f"{how} {old.text} {v.text} to {new.text}"), new)

    def _binary(self, op: ast.AST, a: Any, b: Any) -> Any:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return _STATIC[type(op)](a, b)
        a, b = self._both(a, b)
        name = _ARITHMETIC[type(op)][a.type.kind]
        return Value(self.emit(f"{name} {a.type.text} {a.text}, {b.text}"), a.type)

    def _compare(self, op: ast.AST, a: Any, b: Any) -> Any:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return _STATIC[type(op)](a, b)
        a, b = self._both(a, b)
        name = _COMPARED[type(op)]  # type: ignore[index]
        if a.type.kind == "f":
            text = f"fcmp {'une' if name == 'ne' else 'o' + name}"
        else:
            signed = "" if name in ("eq", "ne") else {"i": "s", "u": "u", "b": "u"}[a.type.kind]
            text = f"icmp {signed}{name}"
        made = self.emit(f"{text} {a.type.text} {a.text}, {b.text}")
        return Value(made, TRUTH._replace(lanes=a.type.lanes))

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
        where = self._address(owner, at)
        return Value(self.emit(f"load {owner.type.text}, ptr {where}"), owner.type)

    def _on_Slice(self, node: ast.Slice, env: Env, outer: Env) -> Any:
        parts = (node.lower, node.upper, node.step)
        return slice(*[p and self.value(p, env, outer) for p in parts])

    def _address(self, owner: Pointer, at: Any) -> str:
        at = self.typed(at)
        return self.emit(f"getelementptr {owner.type.text}, ptr {owner.text}, {INT.text} {at.text}")

    def _on_BinOp(self, node: ast.BinOp, env: Env, outer: Env) -> Any:
        left = self.value(node.left, env, outer)
        return self._binary(node.op, left, self.value(node.right, env, outer))

    def _on_UnaryOp(self, node: ast.UnaryOp, env: Env, outer: Env) -> Any:
        v = self.value(node.operand, env, outer)
        if not isinstance(v, Value):
            fold: Any = {ast.USub: operator.neg, ast.Not: operator.not_, ast.Invert: operator.inv}
            return fold[type(node.op)](v)
        if isinstance(node.op, ast.USub):
            if v.type.kind == "f":
                return Value(self.emit(f"fneg {v.type.text} {v.text}"), v.type)
            return self._binary(ast.Sub(), 0, v)
        ones = {"b": True, "i": -1, "u": (1 << v.type.bits) - 1}[v.type.kind]
        return self._binary(ast.BitXor(), v, ones)

    def _on_Compare(self, node: ast.Compare, env: Env, outer: Env) -> Any:
        (op,), (right,) = node.ops, node.comparators
        return self._compare(op, self.value(node.left, env, outer), self.value(right, env, outer))

    def _on_IfExp(self, node: ast.IfExp, env: Env, outer: Env) -> Any:
        test = self.value(node.test, env, outer)
        if not isinstance(test, Value):
            return self.value(node.body if test else node.orelse, env, outer)
        a, b = (self.value(n, env, outer) for n in (node.body, node.orelse))
        return self._where(test, a, b)

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
                return self._method(owner, node.func.attr, *args)
        called = self.value(node.func, env, outer)
        if isinstance(called, type) and issubclass(called, np.generic):
            return self._cast(args[0], np.dtype(called))
        known: dict[Any, Callable[..., Any]] = {
            np.where: self._where, np.sqrt: self._root, loaded: self._loaded,
            stored: self._stored, gathered: self._gathered, lanes: self._lanes,
            spread: lambda v, n: self._spread(self.typed(v), n), min: self._smaller,
            max: lambda a, b: self._where(self._compare(ast.Gt(), b, a), b, a),
        }  # fmt: skip
        if called in known:
            return known[called](*args)
        if not any(isinstance(a, Value | Pointer) for a in args):
            return called(*args)
        inner = dict(zip(inspect.signature(called).parameters, args, strict=True))
        return self._inlined(_parsed(called).body, inner, _globals(called))

    def _inlined(self, nodes: Sequence[ast.stmt], env: Env, outer: Env) -> Any:
        """What a function gives; it returns at its end, or where static conditions say."""
        for node in nodes:
            if isinstance(node, ast.Return):
                return self.value(node.value, env, outer) if node.value else None
            if isinstance(node, ast.If) and any(isinstance(n, ast.Return) for n in ast.walk(node)):
                test = self.value(node.test, env, outer)
                assert not isinstance(test, Value), "an early return needs a static condition"
                branch = node.body if test else node.orelse
                if any(isinstance(n, ast.Return) for b in branch for n in ast.walk(b)):
                    return self._inlined(branch, env, outer)
                self.body(branch, env, outer)
            elif not _is_text(node):
                self._statement(node, env, outer)
        return None

    # what NumPy's functions and methods are ------------------------------------------------------

    def _method(self, v: Value, name: str, *args: Any) -> Value:
        if name == "astype":
            return self._cast(v, np.dtype(args[0]))
        if name == "view":
            kind = element(np.dtype(args[0]))._replace(lanes=v.type.lanes)
            if kind.text == v.type.text:
                return Value(v.text, kind)
            return Value(self.emit(f"bitcast {v.type.text} {v.text} to {kind.text}"), kind)
        how = {"any": "or", "all": "and"}[name]
        reduced = f"@llvm.vector.reduce.{how}.v{v.type.lanes}i1"
        self.declared.add(f"declare i1 {reduced}({v.type.text})")
        return Value(self.emit(f"call i1 {reduced}({v.type.text} {v.text})"), TRUTH)

    def _where(self, test: Any, a: Any, b: Any) -> Any:
        if not isinstance(test, Value):
            return a if test else b
        if not isinstance(a, Value) and not isinstance(b, Value):
            a = self.typed(a)
        a, b = self._both(a, b)
        if test.type.lanes and not a.type.lanes:
            a, b = self._spread(a, test.type.lanes), self._spread(b, test.type.lanes)
        chosen = f"{a.type.text} {a.text}, {b.type.text} {b.text}"
        return Value(self.emit(f"select {test.type.text} {test.text}, {chosen}"), a.type)

    def _smaller(self, a: Any, b: Any) -> Any:
        return self._where(self._compare(ast.Lt(), b, a), b, a)

    def _root(self, v: Value) -> Value:
        suffix = (f"v{v.type.lanes}" if v.type.lanes else "") + f"f{v.type.bits}"
        self.declared.add(f"declare {v.type.text} @llvm.sqrt.{suffix}({v.type.text})")
        return Value(self.emit(f"call {v.type.text} @llvm.sqrt.{suffix}({v.type.text} {v.text})"),
                     v.type)  # fmt: skip

    def _loaded(self, x: Pointer, at: Any, count: int) -> Value:
        kind = x.type._replace(lanes=count)
        align = x.type.bits // 8
        return Value(
            self.emit(f"load {kind.text}, ptr {self._address(x, at)}, align {align}"), kind
        )

    def _stored(self, x: Pointer, at: Any, v: Any) -> None:
        v = self.typed(v)
        assert v.type._replace(lanes=0) == x.type, (v.type, x.type)
        where = self._address(x, at)
        self.line(f"store {v.type.text} {v.text}, ptr {where}, align {x.type.bits // 8}")

    def _gathered(self, x: Pointer, at: Value) -> Value:
        kind = x.type._replace(lanes=at.type.lanes)
        n = at.type.lanes
        where = self.emit(f"getelementptr {x.type.text}, ptr {x.text}, {at.type.text} {at.text}")
        name = f"@llvm.masked.gather.v{n}{'f' if x.type.kind == 'f' else 'i'}{x.type.bits}.v{n}p0"
        whole = f"<{n} x i1>"
        self.declared.add(f"declare {kind.text} {name}(<{n} x ptr>, i32, {whole}, {kind.text})")
        every = "<" + ", ".join(["i1 true"] * n) + ">"
        operands = f"<{n} x ptr> {where}, i32 {x.type.bits // 8}, {whole} {every}"
        return Value(self.emit(f"call {kind.text} {name}({operands}, {kind.text} poison)"), kind)

    def _lanes(self, count: int, dtype: Any) -> Value:
        kind = element(np.dtype(dtype))._replace(lanes=count)
        parts = ", ".join([f"{kind.scalar} {k}" for k in range(count)])
        return Value(f"<{parts}>", kind)

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
                    target, self._binary(op, old, self.value(value, env, outer)), env, outer
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
            self._stored(owner, at, self.typed(v, owner.type))

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
            return self.typed(self._compare(order, e[counter], stop))

        def again(e: Env) -> None:
            e[counter] = self._binary(ast.Add(), e[counter], step)

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


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
