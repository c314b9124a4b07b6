"""A hundred ordinary Python functions, for what must hold of jit whatever the function is."""

import contextlib
import dataclasses
import enum
import functools
import itertools
import math
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, NamedTuple

import numpy as np

import funct as ft
import funct.array as xp

A = xp.asarray(np.linspace(-2.0, 3.0, 12).reshape(3, 4))
B = xp.asarray(np.linspace(0.5, 1.5, 12).reshape(3, 4))
V = xp.asarray([3.0, -1.0, 2.0, 0.0])
I = xp.asarray([2, 0, 1, 2])
Z = xp.asarray([1 + 2j, -3j, 0.5 + 0j])
BOOL = xp.asarray([True, False, True, True])
HALF = xp.asarray([1.5, -2.25, 1000.0, 0.1], dtype=xp.float16)
BRAIN = xp.asarray([1.5, -2.25, 1000.0, 0.1], dtype=xp.bfloat16)
EMPTY = xp.zeros((0, 3))
ONE = xp.asarray(1.5)
BYTE = xp.asarray([100, 200, 255, 0], dtype=xp.uint8)
SMALL = xp.asarray([100, -128, 127, 0], dtype=xp.int8)
KEY = ft.random.key(3)


class Colour(enum.Enum):
    """An argument that is no number."""

    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    """A tuple with names."""

    first: Any
    second: Any


Point = namedtuple("Point", "x y")


@ft.tree.register
@dataclasses.dataclass(frozen=True)
class Box:
    """A registered dataclass."""

    value: Any
    name: str = "box"


class Machine:
    """Methods, properties and a call."""

    def __init__(self, w: Any) -> None:
        self.w = w

    @property
    def double(self) -> Any:
        return self.w * 2.0

    def step(self, x: Any, *, bias: Any = 0.0) -> Any:
        return x * self.w + bias

    def __call__(self, x: Any) -> Any:
        return self.step(x) + self.double


def _match(x: Any) -> Any:
    match x.shape:
        case (_, 4):
            y = x + 1.0
        case (n,):
            y = x * n
        case _:
            y = x
    match int(xp.sum(x)):
        case 6 | 4:
            return y * 10.0
        case n if n > 0:
            return y * n
        case _:
            return -y


def _tries(x: Any) -> Any:
    try:
        y = xp.reshape(x, (5, 5))
    except Exception:
        y = x * 2.0
    else:
        y = y + 1.0
    finally:
        y = x - 1.0 if x.ndim == 9 else x * 3.0
    return y


def _raises_on_value(x: Any) -> Any:
    try:
        if xp.sum(x) > 0:
            raise ValueError("positive")
    except ValueError as error:
        return x * len(str(error))
    return x


def _generator(x: Any) -> Any:
    def rows() -> Any:
        for i in range(x.shape[0]):
            yield x[i] * i

    return sum(rows(), 0.0)


def _recursion(x: Any, n: int = 4) -> Any:
    return x if n == 0 else xp.sin(_recursion(x, n - 1)) + x


def _halving(x: Any) -> Any:
    return x if float(xp.max(xp.abs(x))) < 1.0 else _halving(x / 2.0)


def _while(x: Any) -> Any:
    n = 0
    while xp.sum(x * x) > 1.0:
        x, n = x * 0.5, n + 1
    return x, n


def _collatz(n: Any) -> Any:
    steps = 0
    while int(n) != 1 and steps < 20:
        n = n // 2 if int(n) % 2 == 0 else 3 * n + 1
        steps += 1
    return n, steps


def _default(x: Any, into: list[Any] = []) -> Any:  # noqa: B006 - what is looked at
    return x + len(into)


def _counted(x: Any) -> Any:
    n = 0

    def add(v: Any) -> Any:
        nonlocal n
        n += 1
        return v * n

    return add(x) + add(x)


def _walrus(x: Any) -> Any:
    return (y := x * 2.0) + y


def _lists(x: Any) -> Any:
    out = []
    for row in x:
        out.append(xp.sum(row))
    out.sort(key=float)
    return xp.stack(out)


def _dicts(x: Any) -> Any:
    d = {"a": x}
    d["b"] = d["a"] * 2.0
    d.update(c=d.pop("a") - 1.0)
    return {**d, "sum": sum(d.values())}


def _with(x: Any) -> Any:
    with contextlib.suppress(KeyError), contextlib.nullcontext(x) as y:
        return y * 2.0
    return x


def _format(x: Any) -> Any:
    return x * len(f"{float(x[0]):.3f}") + len(f"{x.shape}")


def _kinds(x: Any) -> Any:
    return xp.astype(x, xp.float32) + 1, xp.astype(x, xp.int64) // 3, xp.astype(x, bool)


def _clean(rows: Any) -> Any:
    return [r for r in rows if xp.all(r > -1.0)]


def _strings(x: Any, how: str) -> Any:
    return {"sin": xp.sin, "cos": xp.cos}[how](x)


def _keywords(x: Any, *rest: Any, scale: Any = 2.0, **others: Any) -> Any:
    return x * scale + sum(rest, 0.0), {k: v * 2 for k, v in others.items()}


def _nested(x: Any) -> Any:
    inner = ft.jit(lambda v: xp.sin(v) * v)
    return ft.jit(ft.grad(lambda v: xp.sum(ft.vmap(inner)(v))))(x)


def _newton(x: Any) -> Any:
    y = xp.ones_like(x)
    for _ in range(30):
        new = 0.5 * (y + x / y)
        if xp.max(xp.abs(new - y)) < 1e-12:
            return new
        y = new
    return y


def _label_smoothing(logits: Any) -> Any:
    logp = logits - xp.special.logsumexp(logits, axis=-1, keepdims=True)
    hot = xp.one_hot(I[:3], 4, dtype=logits.dtype) * 0.9 + 0.1 / 4
    return -xp.mean(xp.sum(hot * logp, axis=-1))


def _attention(x: Any) -> Any:
    s = x @ x.T / math.sqrt(x.shape[-1])
    s = xp.where(xp.tril(xp.ones_like(s)) > 0, s, -xp.inf)
    return xp.special.softmax(s, axis=-1) @ x


def _swap(x: Any, y: Any) -> Any:
    return y, x


PROGRAMS: dict[str, tuple[Any, tuple[tuple[Any, ...], ...]]] = {
    # what is returned
    "input": (lambda x: x, ((A,), (V,))),
    "input twice": (lambda x: (x, x, {"x": x}), ((A,),)),
    "computed twice": (lambda x: (lambda y: (y, y))(xp.exp(x)), ((A,),)),
    "swap": (_swap, ((A, B), (V, I))),
    "constant": (lambda x: 3, ((A,),)),
    "constants": (lambda x: (None, "text", 2.5, True, Colour.RED, V), ((A,),)),
    "view": (lambda x: x[1:, ::2], ((A,),)),
    "views": (lambda x: (x.T, x[::-1], xp.reshape(x, (-1,)), x[..., None]), ((A,),)),
    "transposed": (lambda x: xp.permute_dims(x, (1, 0)), ((A,),)),
    "broadcast": (lambda x: xp.broadcast_to(x, (2, 3, 4)), ((A,),)),
    "no arguments": (lambda: xp.arange(5) * 2, ((),)),
    "no arrays": (lambda a, b: a + b, ((1, 2), (1.5, 2), ("a", "b"))),
    "nothing": (lambda x: None, ((A,),)),
    "shape": (lambda x: x.shape, ((A,), (V,))),
    "dtype": (lambda x: (x.dtype == xp.float64, x.ndim, x.size), ((A,), (I,))),
    "empty tree": (lambda x: ((), [], {}, None), ((A,),)),
    "function of closure": (lambda x: x + V, ((A,),)),
    # decisions
    "if": (lambda x: x * 2.0 if xp.sum(x) > 0 else -x, ((A,), (-A,), (A,))),
    "while": (_while, ((A,), (A * 4.0,), (A,))),
    "collatz": (_collatz, ((xp.asarray(7),), (xp.asarray(6),), (xp.asarray(1),))),
    "for": (lambda x: sum((r * i for i, r in enumerate(x)), 0.0), ((A,), (B,))),
    "for over a value": (lambda n: sum((V * k for k in range(int(n))), V), ((I[0],), (I[1],))),
    "int": (lambda x: x * int(x[0]), ((V,), (V * 2.0,))),
    "float": (lambda x: x * float(x[1]) + math.sin(float(x[0])), ((V,), (V * 2.0,))),
    "bool": (lambda x: [v for v in (1, 2) if bool(x[v])], ((BOOL,), (~BOOL,))),
    "complex": (lambda z: z * complex(z[0]), ((Z,), (Z * 2,))),
    "index": (lambda i: [10, 20, 30][i[0]], ((I,), (I[1:],))),
    "item": (lambda x: x - x[2].item(), ((V,), (V * 3.0,))),
    "tolist": (lambda x: sorted(x.tolist()), ((V,), (I,))),
    "mask": (lambda x: x[x > 0.0] * 2.0, ((A,), (-A,), (V,))),
    "mask set": (lambda x: x.at[x > 0.0].set(9.0), ((A,), (-A,))),
    "nonzero": (xp.nonzero, ((V,), (A,), (V * 0.0,))),
    "unique": (xp.unique_values, ((I,), (V,))),
    "unique all": (xp.unique_all, ((I,), (V,))),
    "unique counts": (lambda x: xp.unique_counts(x).counts * 2, ((I,), (I + I,))),
    "argwhere": (lambda x: xp.stack(xp.nonzero(x > 0), axis=-1), ((A,), (-A,))),
    "match": (_match, ((A,), (V,), (-V,))),
    "try": (_tries, ((A,), (V,))),
    "raise and catch": (_raises_on_value, ((V,), (-V,))),
    "min of python": (lambda x: max(x[0], x[1]) * min(x[2], 1.0), ((V,), (-V,))),
    "any all": (lambda x: any(x > 0) and not all(x > 0), ((V,), (-V,), (V * V + 1.0,))),
    "chained": (lambda x: x if -5.0 < xp.sum(x) < 5.0 else x * 0.0, ((V,), (V * 10.0,))),
    "in": (lambda x: x * 2.0 if 3.0 in x.tolist() else x, ((V,), (-V,))),
    "newton": (_newton, ((B,), (B * 100.0,))),
    "halving": (_halving, ((A,), (A * 10.0,))),
    "clean rows": (_clean, ((A,), (B,))),
    "sorted by value": (_lists, ((A,), (-A,))),
    "nan decides": (lambda x: 1 if x[0] == x[0] else 2, ((V,), (V * xp.nan,))),
    "round": (lambda x: round(float(x[0]), 1) + xp.round(x), ((V / 7.0,), (V / 3.0,))),
    "format": (_format, ((V,), (V * 100.0,))),
    # Python
    "generator": (_generator, ((A,), (B,))),
    "recursion": (_recursion, ((A,), (A, 2))),
    "default list": (_default, ((A,),)),
    "nonlocal": (_counted, ((A,),)),
    "walrus": (_walrus, ((A,),)),
    "dicts": (_dicts, ((A,),)),
    "with": (_with, ((A,),)),
    "string": (_strings, ((A, "sin"), (A, "cos"), (A, "sin"))),
    "enum": (
        lambda x, c: x * c.value if c is Colour.BLUE else -x,
        ((A, Colour.RED), (A, Colour.BLUE)),
    ),
    "none": (lambda x, y: x if y is None else x + y, ((A, None), (A, B), (A, None))),
    "scalars": (lambda x, s: x * s, ((A, 2), (A, 2.5), (A, True), (I, 2), (I, 3), (HALF, 2.5))),
    "scalar decides": (lambda x, n: x * n if n > 2 else x, ((A, 2), (A, 3), (A, 2.5))),
    "keywords": (_keywords, ((A,), (A, 1.0, B))),
    "tree": (
        lambda t: {"s": t["a"][0] + t["b"].first, "t": t},
        (({"a": [A, 1], "b": Pair(B, "x")},),),
    ),
    "namedtuple": (lambda p: p._replace(x=p.x * p.y), ((Point(A, B),), (Point(V, 2.0),))),
    "dataclass": (
        lambda b: dataclasses.replace(b, value=b.value * 2.0),
        ((Box(A),), (Box(V, "x"),)),
    ),
    "ordered": (
        lambda d: OrderedDict((k, v * 2.0) for k, v in d.items()),
        ((OrderedDict(b=A, a=B),),),
    ),
    "defaultdict": (lambda d: d["a"] + 1.0, ((defaultdict(list, a=A),),)),
    "deque": (lambda d: d[0] + d[-1], ((deque([A, B]),),)),
    "big tree": (lambda t: [v * 2.0 for v in t], (([V] * 40,), ([V] * 41,))),
    "partial": (functools.partial(_keywords, scale=3.0), ((A,), (A, 2.0))),
    "method": (Machine(2.0).step, ((A,),)),
    "callable": (Machine(V), ((A,), (V,))),
    "reduce": (lambda x: functools.reduce(xp.maximum, list(x)), ((A,),)),
    "itertools": (lambda x: list(itertools.accumulate(x, lambda a, b: a + b)), ((A,),)),
    "zip star": (lambda x: [a * b for a, b in zip(*[x, x * 2.0], strict=True)], ((A,),)),
    "unpack": (lambda x: (lambda a, *b: (a, b))(*x), ((A,),)),
    "set of ints": (lambda x: sorted({int(v) for v in x}), ((I,), (V,))),
    "lambda default": (lambda x, f=xp.sin: f(x), ((A,), (A, xp.cos))),
    "a jitted argument": (lambda x, f: f(x), ((A, ft.jit(xp.sin)), (A, xp.tanh))),
    # numbers and dtypes
    "kinds": (_kinds, ((A,), (I,), (HALF,), (BOOL,))),
    "overflow": (lambda x: (x + 100, x * x, -x, x << 1), ((BYTE,), (SMALL,), (I,))),
    "integer power": (lambda x: (x**2, x**3, xp.abs(x)), ((SMALL,), (I,))),
    "integer division": (lambda x: (x // 3, x % 3, -x // 3, -x % 3), ((I,), (SMALL,), (V,))),
    "shifts": (lambda x: (x << 3, x >> 1, ~x, x & 3, x | 8, x ^ 5), ((I,), (SMALL,), (BYTE,))),
    "booleans": (
        lambda x: (x & ~x, x | x, x ^ True, xp.sum(x), xp.mean(xp.astype(x, float))),
        ((BOOL,),),
    ),
    "promotion": (lambda x: (x + I, x * 2, x - 0.5), ((V,), (HALF,), (xp.astype(V, xp.float32),))),
    "of two": (
        lambda x, y: x + y,
        ((I, V), (HALF, V), (HALF, xp.astype(V, xp.float32)), (Z, ONE), (SMALL, BYTE)),
    ),
    "complex numbers": (
        lambda z: (z * z.conj(), xp.abs(z), xp.real(z), xp.exp(z), 1 / (z + 2)),
        ((Z,),),
    ),
    "halves": (lambda x: (x * x, xp.exp(x / 1000), xp.sum(x), x @ x, x > 1), ((HALF,), (BRAIN,))),
    "half mean": (lambda x: (xp.mean(x), xp.var(x), xp.cumulative_sum(x)), ((HALF,), (BRAIN,))),
    "special": (
        lambda x: (1 / x, xp.sqrt(x), xp.log(x), xp.sign(x)),
        ((V,), (xp.asarray([xp.inf, -xp.inf, xp.nan, -0.0]),)),
    ),
    "signed zero": (
        lambda x: (x * 0.0, xp.copysign(1.0 + 0 * x, -x), xp.atan2(x * 0, x)),
        ((V,), (-V,)),
    ),
    "empty": (
        lambda x: (x * 2.0, xp.sum(x), xp.sum(x, axis=0), xp.sort(x, axis=0), x.T @ x),
        ((EMPTY,),),
    ),
    "0-d": (
        lambda x: (x * 2, xp.sin(x), xp.reshape(x, (1, 1)), xp.sum(x), x[()]),
        ((ONE,), (I[0],)),
    ),
    "max of empty": (xp.max, ((A,), (EMPTY,), (A,))),
    "out of bounds": (lambda x, i: x[i], ((V, I), (V, I + 3), (V, I), (V, I - 5), (V, I - 3))),
    "put out of bounds": (lambda x, i: x.at[i].add(1.0), ((V, I), (V, I + 3), (V, I))),
    "division by zero": (lambda i: 6 // i, ((I + 1,), (I,), (I + 1,))),
    "wrong shapes": (lambda x, y: x + y, ((A, B), (A, V[:3]), (A, V))),
    # arrays
    "indices": (
        lambda x, i: (x[i], x[0, i], x[..., i], x[i[:3], i[:3]]),
        ((A, I), (xp.ones((3, 3)), I)),
    ),
    "updates": (lambda x: x.at[1].multiply(2.0).at[:, -1].set(0.0).at[0, I].add(V), ((A,),)),
    "reductions": (
        lambda x: (xp.prod(x), xp.std(x, axis=1), xp.argmax(x), xp.any(x > 2), xp.min(x, axis=0)),
        ((A,), (-A,)),
    ),
    "sorting": (
        lambda x: (xp.sort(x), xp.argsort(x, descending=True), xp.top_k(x, 2)),
        ((A,), (V,)),
    ),
    "joins": (
        lambda x: (
            xp.concat([x, x[:1]]),
            xp.stack([x, x], axis=-1),
            xp.unstack(x),
            xp.roll(x, 1, axis=0),
        ),
        ((A,),),
    ),
    "pads": (
        lambda x: (xp.pad(x, ((1, 2), (0, 1))), xp.tile(x, (2, 1)), xp.repeat(x, 2, axis=1)),
        ((A,),),
    ),
    "einsum": (
        lambda x: (
            xp.einsum("ij,kj->ik", x, x),
            xp.tensordot(x, x, axes=2),
            xp.linalg.outer(x[0], x[1]),
        ),
        ((A,),),
    ),
    "linalg": (
        lambda x: (
            xp.linalg.solve(x @ x.T + xp.eye(3), x),
            xp.linalg.norm(x),
            xp.linalg.svdvals(x),
        ),
        ((B,),),
    ),
    "fft": (lambda x: (xp.fft.fft(x), xp.fft.irfft(xp.fft.rfft(x)), xp.fft.fftshift(x)), ((A,),)),
    "random": (
        lambda k: (
            ft.random.normal(k, shape=(3,)),
            *ft.random.split(k),
            ft.random.randint(k, 0, 9, shape=(4,)),
        ),
        ((KEY,),),
    ),
    "smoothing": (ft.value_and_grad(_label_smoothing), ((A,), (B,))),
    "attention's gradient": (ft.grad(lambda x: xp.sum(_attention(x) ** 2)), ((A,), (V[None],))),
    "nested": (_nested, ((A,), (V,))),
    "jit in vmap in grad": (
        ft.grad(lambda x: xp.sum(ft.vmap(ft.jit(lambda r: r * xp.sum(xp.sin(r))))(x))),
        ((A,), (B,)),
    ),
    "hessian": (ft.hessian(lambda x: xp.sum(xp.sin(x) * x)), ((V,),)),
    "branch in grad": (
        ft.grad(lambda x: xp.sum(x * x) if xp.sum(x) > 0 else xp.sum(x)),
        ((V,), (-V,)),
    ),
    "lanes": (ft.vmap(lambda r: r * 2.0 if xp.sum(r) > 2 else -r), ((A,), (B,))),
    "control": (
        lambda x: (
            ft.cond(x[0] > 0, xp.sin, xp.cos, x),
            ft.switch(I[0], [xp.sin, xp.cos, xp.tanh], x),
        ),
        ((V,), (-V,)),
    ),
    "loops": (
        lambda x: (
            ft.fori_loop(0, 4, lambda i, c: c + i, x),
            ft.scan(lambda c, v: (c + v, c * v), ONE, x),
            ft.while_loop(lambda c: xp.sum(c) < 50, lambda c: c + 2.0, x),
        ),
        ((V,),),
    ),
    "loop to a value": (
        lambda n, x: ft.fori_loop(0, n, lambda i, c: c * 2.0, x),
        ((I[0], V), (I[1], V), (xp.asarray(5), V)),
    ),
    "callback": (
        lambda x: ft.pure_callback(np.sort, ft.ShapeDtype(x.shape, x.dtype), x) * 2,
        ((V,),),
    ),
}
