"""Ops that users register: every subset of rules, what is derived, what is refused."""

import itertools
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.special

import funct as ft
import funct.array as xp
from funct import export
from funct.errors import (
    ArgumentError,
    ExportError,
    LawError,
    ShapeError,
    SignatureError,
    UndefinedDerivativeError,
)
from tests import laws
from tests.transforms.test_grad import arr

number = itertools.count()
RNG = np.random.default_rng(0)
X, Y = arr(RNG.normal(size=(2, 3))), arr(RNG.normal(size=3))


def fresh() -> str:
    """A name that no op has yet."""
    return f"tests.engine::op{next(number)}"


def soft(x: Any, y: Any, *, power: int = 2) -> Any:
    """x ** power + 3 x y, written in NumPy."""
    return np.power(x, power) + 3.0 * x * y


def soft_rules() -> Any:
    """Rules for both operands."""
    return (
        lambda g, x, y, power: g * (power * x ** (power - 1) + 3.0 * y),
        lambda g, x: g * 3.0 * x,
    )


def soft_again(x: Any, y: Any, power: int = 2) -> Any:
    """The same from ops of the catalogue."""
    return x**power + 3.0 * x * y


def sine(x: Any) -> Any:
    """The sine."""
    return np.sin(x)


def logarithm(x: Any) -> Any:
    """The logarithm."""
    return np.log(x)


SAMPLES = [(np.asarray(X), np.asarray(X) + 1.0), (np.asarray(X), np.asarray(Y))]


def test_an_elementwise_op_with_rules_obeys_every_law() -> None:
    """Values, both modes, second order, vmap, jit, broadcasting, parameters with defaults."""
    op = ft.primitive(
        fresh(), soft, elementwise=True, rule=soft_rules(),
        samples=[*SAMPLES, ft.Sample((np.asarray(X), np.asarray(Y)), (3,))],
    )  # fmt: skip
    ft.check_primitive(op)
    ft.check_grads(lambda x, y: op(x, y, power=3), (X, Y))
    laws.close(op(X, Y), soft_again(X, Y))
    laws.close(op(X, 2.0, power=3), soft_again(X, 2.0, 3))
    assert op(xp.asarray(np.float32([1.0])), 2).dtype == np.float32
    for transform in (ft.hessian, lambda f: ft.jit(ft.hessian(f)), lambda f: ft.hessian(ft.jit(f))):
        got = transform(lambda x: xp.sum(op(x, Y)))(Y)
        laws.close(got, transform(lambda x: xp.sum(soft_again(x, Y)))(Y))


def test_a_ufunc_is_an_implementation() -> None:
    """Of NumPy's and SciPy's: its inputs are the operands, its options are none."""
    root = ft.primitive(fresh(), np.sqrt, elementwise=True, rule=lambda g, ans: 0.5 * g / ans)
    x = xp.asarray([1.0, 4.0])
    for way in (root, ft.jit(root), ft.vmap(root)):
        laws.same(way(x), np.asarray([1.0, 2.0]))
    laws.close(ft.grad(lambda v: xp.sum(root(v)))(x), np.asarray([0.5, 0.25]))
    total = ft.primitive(fresh(), np.logaddexp, elementwise=True)
    assert total.operands == ("x1", "x2")
    laws.same(total(x, x), np.logaddexp([1.0, 4.0], [1.0, 4.0]))
    assert [len(v) for v in ft.primitive(fresh(), np.modf, results=2)(x)] == [2, 2]
    gamma = ft.primitive(fresh(), scipy.special.gammaln, elementwise=True)
    laws.same(gamma(x), scipy.special.gammaln([1.0, 4.0]))
    assert root.def_kernel(np.sqrt) is np.sqrt


def outer(x: Any, y: Any) -> Any:
    """An op that is not elementwise: the outer product of vectors."""
    return np.multiply.outer(x, y)


def push(ts: Any, ans: Any, x: Any, y: Any) -> Any:
    """Its forward rule."""
    return xp.linalg.outer(ts[0], y) + xp.linalg.outer(x, ts[1])


def pull(g: Any, ans: Any, x: Any, y: Any) -> Any:
    """Its reverse rule."""
    return g @ y, x @ g


def batch(args: Any, batched: Any) -> Any:
    """Its batching rule."""
    x, y = (a if b else xp.expand_dims(a, axis=0) for a, b in zip(args, batched, strict=True))
    return xp.expand_dims(x, axis=2) * xp.expand_dims(y, axis=1)


@pytest.mark.parametrize("given", [("push",), ("pull",), ("push", "pull")], ids="-".join)
@pytest.mark.parametrize("whole", [False, True])
def test_each_mode_is_derived_from_the_other(given: tuple[str, ...], whole: bool) -> None:
    """With either rule, both modes work to second order; with or without the other fields."""
    rules = {name: {"push": push, "pull": pull}[name] for name in given}
    more: dict[str, Any] = {}
    if whole:
        more["abstract"] = lambda x, y: ft.ShapeDtype((*x.shape, *y.shape), x.dtype)
        more["batch"] = batch
    op = ft.primitive(fresh(), outer, samples=[(np.ones(2), np.arange(3.0))], **rules, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ft.FallbackWarning)
        ft.check_primitive(op)
        ft.check_grads(op, (X[0], Y))
        h = ft.jit(ft.hessian(lambda v: xp.sum(xp.sin(op(v, v)))))
        laws.close(h(Y), ft.hessian(lambda v: xp.sum(xp.sin(xp.linalg.outer(v, v))))(Y))
    laws.close(ft.grad(lambda x: xp.sum(op(x, x)))(Y), 2.0 * xp.sum(Y) * xp.ones(3))


def test_the_pull_runs_once_for_all_operands() -> None:
    """One call of the rule gives the cotangents of all operands; none for what is constant."""
    calls: list[int] = []

    def counted(g: Any, ans: Any, x: Any, y: Any) -> Any:
        calls.append(1)
        return pull(g, ans, x, y)

    op = ft.primitive(fresh(), outer, pull=counted)
    ft.grad(lambda x, y: xp.sum(op(x, y)), (0, 1))(Y, Y)
    assert calls == [1]
    names = [n.name for n in ft.vjp(lambda x: op(x, Y), Y)[1].nodes()]
    assert op.name in names


def divmod_(x: Any, *, by: float) -> Any:
    """Two results, one of them an integer."""
    return np.floor(x / by).astype(np.int64), x % by


def test_several_results() -> None:
    """A tuple of results; an integer one has no cotangent and no tangent."""
    op = ft.primitive(
        fresh(), divmod_, results=2, pull=lambda g, ans, x, by: g[1],
        samples=[ft.Sample((np.asarray([0.3, 1.4, -2.6]),), (1.0,))],
    )  # fmt: skip
    with pytest.warns(ft.FallbackWarning):
        ft.check_primitive(op)
    q, r = ft.jit(lambda x: op(x, by=2.0))(arr([5.0, -1.0]))
    laws.same((q, r), (xp.asarray([2, -1]), arr([1.0, 1.0])))
    laws.close(ft.grad(lambda x: xp.sum(op(x, by=2.0)[1] ** 2))(arr([5.0])), arr([2.0]))
    laws.close(ft.jvp(lambda x: op(x, by=2.0)[1], (X,), (X,))[1], X)


def test_batching_falls_back_with_one_warning() -> None:
    """Without a rule vmap loops, says so once, and is right at any nesting."""
    op = ft.primitive(fresh(), outer, pull=pull)
    with pytest.warns(ft.FallbackWarning, match="is called once per lane") as caught:
        out = ft.vmap(op, in_axes=(0, None))(X, Y)
    assert len(caught) == 1
    laws.close(out, xp.stack([op(X[0], Y), op(X[1], Y)]))
    nested = ft.vmap(lambda x: ft.vmap(lambda y: op(x, y))(X))(X)
    laws.close(nested[1, 0], op(X[1], X[0]))
    laws.close(ft.vmap(ft.grad(lambda x: xp.sum(op(x, Y))))(X), xp.ones((2, 3)) * xp.sum(Y))
    laws.close(ft.jit(ft.vmap(op, in_axes=(0, None)))(X, Y), out)


def test_what_is_missing_is_named() -> None:
    """No derivative rule: a typed error in both modes, never a zero; no lowering: another."""
    op = ft.primitive(fresh(), lambda x: np.asarray(np.ptp(x)))
    assert float(op(X)) == float(np.ptp(np.asarray(X)))
    for f in (lambda: ft.grad(op)(X), lambda: ft.jvp(op, (X,), (X,))):
        with pytest.raises(UndefinedDerivativeError, match="registered without a derivative rule"):
            f()
    with pytest.raises(ExportError, match="without an ONNX lowering"):
        export.to_onnx(op, (X,))


def test_rules_are_added_from_outside() -> None:
    """A kernel, a derivative and a lowering come later, by name; compiled code sees the kernel."""
    name = fresh()
    op = ft.primitive(name, sine, abstract=lambda x: x)
    compiled = ft.jit(op)
    laws.same(compiled(Y), xp.sin(Y))
    again = ft.find_primitive(name)
    assert again is op
    assert pickle.loads(pickle.dumps(op)) is op
    again.def_pull(lambda g, ans, x: g * xp.cos(x))
    again.def_batch(lambda args, batched: op(*args))
    again.def_onnx("Sin")
    laws.close(ft.hessian(lambda x: xp.sum(op(x)))(Y), ft.hessian(lambda x: xp.sum(xp.sin(x)))(Y))
    laws.close(ft.vmap(op)(X), xp.sin(X))

    @again.def_kernel
    def kernel(x: Any) -> Any:
        return np.cos(x)

    laws.same(compiled(Y), xp.cos(Y))
    with pytest.raises(ArgumentError, match="there is no backend 'tpu'; the backends are: numpy"):
        again.def_kernel(np.sin, backend="tpu")
    with pytest.raises(SignatureError, match="a kernel must have the op's signature"):
        again.def_kernel(lambda y: y)
    with pytest.raises(ArgumentError, match="no op 'no::such' is registered"):
        ft.find_primitive("no::such")


def test_a_lowering_is_exported(tmp_path: Any) -> None:
    """An op with a lowering goes into an ONNX file that computes the same."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    op = ft.primitive(fresh(), sine, elementwise=True, onnx="Sin")
    path = tmp_path / "op.onnx"
    export.to_onnx(lambda x: op(x) * 2.0, (Y,), str(path))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {session.get_inputs()[0].name: np.asarray(Y)})
    np.testing.assert_allclose(got, 2.0 * np.sin(np.asarray(Y)))


def test_calls_are_checked_against_the_signature() -> None:
    """Operands, parameters, their names and kinds; the text shows the signature."""
    op = ft.primitive(fresh(), soft, elementwise=True)
    with pytest.raises(SignatureError, match=r"missing a required argument: 'y'; it is .*\(x, y"):
        op(X)
    with pytest.raises(SignatureError, match="unexpected keyword argument 'q'"):
        op(X, Y, q=1)
    with pytest.raises(SignatureError, match="parameter power must hash, got list"):
        op(X, Y, power=[2])
    assert repr(op).endswith("(x, y, *, power)")


def test_registration_is_checked() -> None:
    """Names, signatures of implementations and rules, combinations that contradict each other."""
    p = ft.primitive
    name = fresh()
    p(name, lambda x: x)
    cases: list[tuple[Any, Any, str]] = [
        (lambda: p("op", lambda x: x), ArgumentError, "a name is namespaced"),
        (lambda: p(name, lambda x: x), ArgumentError, "is registered already"),
        (lambda: p(fresh(), lambda *xs: xs), SignatureError, "have no place"),
        (lambda: p(fresh(), lambda x, k=1: x), SignatureError, "operand k has a default"),
        (lambda: p(fresh(), 3), SignatureError, "must be a function whose signature Python knows"),
        (lambda: p(3, lambda x: x), ArgumentError, "a name is namespaced"),
        (lambda: p(fresh(), lambda *, k: k), SignatureError, "at least one operand"),
        (lambda: p(fresh(), lambda x: x, rule=lambda g: g), ArgumentError, "for elementwise ops"),
        (lambda: p(fresh(), lambda x: x, elementwise=True, rule=lambda g, z: g), SignatureError,
         r"a rule names \['z'\]"),
        (lambda: p(fresh(), soft, elementwise=True, rule=lambda g: g), SignatureError,
         "expected 2 rules"),
        (lambda: p(fresh(), lambda x: x, pull=lambda g: g), SignatureError,
         "pull is called with 3 positional"),
        (lambda: p(fresh(), soft, batch=lambda args: args), SignatureError, "batch is called with"),
        (lambda: p(fresh(), lambda x: x, elementwise=True, rule=lambda g: g, push=push),
         ArgumentError, "has a rule, which serves both modes"),
        (lambda: p(fresh(), lambda x: x, elementwise=True, results=2), ArgumentError, "2 results"),
    ]  # fmt: skip
    for register, error, text in cases:
        with pytest.raises(error, match=text):
            register()


def test_rules_that_are_wrong_at_run_time() -> None:
    """A cotangent of another shape or number, another number of results, is named."""
    short = ft.primitive(fresh(), outer, pull=lambda g, ans, x, y: (g @ y,))
    with pytest.raises(TypeError, match="the reverse rule must give 2 cotangents, got 1"):
        ft.grad(lambda x: xp.sum(short(x, Y)))(Y)
    turned = ft.primitive(fresh(), outer, pull=lambda g, ans, x, y: (x @ g, g @ y))
    with pytest.raises(ShapeError, match="cotangent 0 must have its operand's shape"):
        ft.grad(lambda x: xp.sum(turned(x, Y)))(X[0, :2])
    one = ft.primitive(fresh(), lambda x: (x,), results=2)
    with pytest.raises(SignatureError, match="must give 2 results, got 1"):
        one(X)
    off = ft.primitive(fresh(), outer, pull=lambda g, ans, x, y: (g @ y * 1.01, x @ g),
                       batch=batch, samples=[(np.ones(2), np.ones(3))])  # fmt: skip
    with pytest.raises(LawError, match="breaks the law of derivatives"):
        ft.check_primitive(off)
    with pytest.raises(ArgumentError, match="has no samples"):
        ft.check_primitive(turned)


def test_the_users_own_errors_come_through() -> None:
    """What the implementation raises is what the caller sees, eager, compiled and batched."""

    def picky(x: Any) -> Any:
        if x.size and x.flat[0] == 13.0:
            raise KeyError("thirteen")
        return x

    op = ft.primitive(fresh(), picky, abstract=lambda x: x, batch=lambda a, b: op(*a))
    for call in (op, ft.jit(op), ft.vmap(op)):
        with pytest.raises(KeyError, match="thirteen"):
            call(arr([13.0, 1.0]))
        laws.same(call(Y), Y)


def test_sizes_may_vary_under_jit() -> None:
    """An op with an abstract rule is compiled once for all sizes."""
    op = ft.primitive(fresh(), sine, abstract=lambda x: x)
    f = ft.jit(lambda x: op(x) * 2.0)
    for n in range(2, 9):
        laws.close(f(xp.ones(n)), 2.0 * xp.sin(xp.ones(n)))
    assert f.cache_info().misses <= 2


def test_watches_and_files_know_the_op() -> None:
    """Interception, anomalies and saved programs name a registered op."""
    op = ft.primitive(fresh(), logarithm, elementwise=True, rule=lambda g, x: g / x)
    seen: list[str] = []

    def rule(prim: Any, operands: Any, params: Any) -> Any:
        seen.append(prim.name)
        return NotImplemented

    ft.intercept(op, rule)(xp.ones(2))
    assert seen == [op.name]
    with pytest.raises(ft.errors.AnomalyError) as caught:
        ft.detect_anomaly(ft.grad(op))(arr(0.0))
    assert caught.value.op == op.name
    program = export.export(lambda x: op(x) + 1.0, (xp.ones(2),))
    laws.close(program(xp.ones(2)), xp.ones(2))
    assert op.name in str(program)
