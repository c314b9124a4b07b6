"""Solutions that are differentiated by what they solve, not by how: closure_convert,
custom_linear_solve, custom_root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funct import pytree
from funct.array.trees import flat_arrays
from funct.errors import UndefinedDerivativeError
from funct.graph import Graph
from funct.transforms.control import bodies
from funct.transforms.control.bodies import Flags, Flat
from funct.transforms.control.carry import fitting
from funct.transforms.control.closures import always, safely
from funct.transforms.control.staged import Staged
from funct.transforms.forward import jvp
from funct.transforms.given import expect_functions
from funct.transforms.reverse import transpose, zero_like
from funct.transforms.vjp import vjp

__all__ = ["closure_convert", "custom_linear_solve", "custom_root"]

Fun = Callable[..., Any]


def closure_convert(fun: Fun, *example_args: Any) -> tuple[Fun, list[Any]]:
    """fun with the traced values that it closes over as further arguments.

    Args: example_args: pytrees; the result takes arguments of the same shapes and dtypes.
    Returns: (converted, values), with `converted(*args, *values) == fun(*args)`. A function with
    derivative rules of its own then sees all that it depends on.
    Raises: TransformError: when fun decides on a value.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> def scaled(w):
        ...     converted, values = ft.closure_convert(lambda x: x * w, xp.asarray(1.0))
        ...     return converted(xp.asarray(3.0), *values)
        >>> float(ft.grad(scaled)(xp.asarray(2.0)))
        3.0

    Source: `jax.closure_convert`.
    """
    expect_functions("closure_convert", fun=fun)
    leaves, spec = flat_arrays(example_args)
    structure: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        outs, shape = flat_arrays(fun(*spec.unflatten(xs)))
        structure[:] = [shape]
        return outs

    graph, outer = bodies.trace("closure_convert", flat, bodies.avals_of(leaves), fun)
    n = len(example_args)

    def converted(*args: Any) -> Any:
        pytree.same_structure("closure_convert: arguments", example_args, tuple(args[:n]))
        return structure[0].unflatten(graph(*pytree.leaves(args[:n]), *args[n:]))

    return converted, list(outer)


def custom_linear_solve(
    matvec: Fun,
    b: Any,
    solve: Callable[[Fun, Any], Any],
    transpose_solve: Callable[[Fun, Any], Any] | None = None,
    symmetric: bool = False,
) -> Any:
    """x with `matvec(x) = b`, found by `solve(matvec, b)`, differentiated as a solution.

    Maths: A dx = db - dA x; Aᵀ b̄ = x̄. Derivatives call solve and transpose_solve again, in any
    mode and order; what happens inside them is never differentiated.
    Args: matvec: a linear function from b's type to itself; what it closes over has derivatives. b:
    a pytree. transpose_solve: `transpose_solve(vecmat, b)` solves the transposed system, for
    reverse mode. symmetric: A = Aᵀ, and solve serves both.
    Raises: UndefinedDerivativeError: in reverse mode without transpose_solve. TreeError,
    ShapeError, DTypeError: when a solution or a product is not of b's type.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> solve = lambda matvec, b: b / matvec(xp.ones(2))
        >>> def x(d, b):
        ...     return xp.sum(ft.custom_linear_solve(lambda v: d * v, b, solve, symmetric=True))
        >>> ft.grad(x)(xp.asarray([2.0, 4.0]), xp.ones(2)).tolist()
        [-0.25, -0.0625]

    Source: `jax.lax.custom_linear_solve`.
    """
    expect_functions("custom_linear_solve", matvec=matvec, solve=solve)
    leaves, spec = flat_arrays(b)
    avals = bodies.avals_of(leaves)
    tree = spec.unflatten(leaves)

    def product(*xs: Any) -> list[Any]:
        out = matvec(spec.unflatten(xs))
        return fitting("custom_linear_solve", "the result of matvec", tree, avals, out)

    def solution(solver: Any, operator: Any) -> Any:
        def run(*xs: Any) -> list[Any]:
            def apply(v: Any) -> Any:
                return spec.unflatten(operator(*pytree.leaves(v)))

            out = solver(apply, spec.unflatten(xs))
            return fitting("custom_linear_solve", "the solution", tree, avals, out)

        return run

    def transposed(*cts: Any) -> list[Any]:
        return transpose(product, avals, cts)

    matrix, held = bodies.trace("custom_linear_solve", product, avals, matvec, always)
    direct, used = bodies.trace(
        "custom_linear_solve", solution(solve, product), avals, solve, always
    )
    back: tuple[Graph, Flat] | None = None
    if symmetric:
        back = direct, used
    elif transpose_solve is not None:
        run = solution(transpose_solve, transposed)
        back = bodies.trace("custom_linear_solve", run, avals, transpose_solve, safely)
    solver = LinearSolve(matrix, direct, back[0] if back else None)
    return spec.unflatten(solver(*held, *used, *(back[1] if back else ()), *leaves))


class _Solution(Staged):
    """A solution. Operands: what each of its graphs closes over, then n values.

    counts: how many values each graph closes over.
    """

    def __init__(
        self, names: Sequence[str], graphs: Sequence[Graph | None], starts: Sequence[int], n: int
    ) -> None:
        self.n = n
        self.starts = tuple(starts)
        self.graphs = tuple(graphs)
        given = [(k, g, s) for k, g, s in zip(names, graphs, starts, strict=True) if g is not None]
        self.counts = tuple([0 if g is None else len(g.inputs) - s for g, s in zip(graphs, starts)])
        x = tuple([v.aval for v in given[0][1].inputs[:n]])
        closed = [v.aval for _, g, s in given for v in g.inputs[s:]]
        super().__init__([(k, g) for k, g, _ in given], (*closed, *x), x)

    def like(self, graphs: Sequence[Any]) -> _Solution:
        """The same with other graphs."""
        raise NotImplementedError

    def mapped(self, change: Callable[[Graph], Graph]) -> _Solution:
        """The same with changed graphs."""
        return self.like([g if g is None else change(g) for g in self.graphs])

    def parts(self, values: Sequence[Any]) -> list[Flat]:
        """Operands (or what belongs to them), graph by graph, then the n values."""
        out, at = [], 0
        for n in (*self.counts, self.n):
            out.append(tuple(values[at : at + n]))
            at += n
        return out

    def batch(self, size: Any, flags: Flags, vals: Flat) -> Flat:
        """One solution per lane."""
        whole = (True,) * self.n
        ours = (*flags[: -self.n], *whole)

        def make() -> _Solution:
            each = zip(self.graphs, self.parts(ours), self.starts, strict=False)
            return self.like(
                [
                    g if g is None else bodies.lifted(g, (*(True,) * s, *f), whole, size)
                    for g, f, s in each
                ]
            )

        given = bodies.repeated_where(ours, vals, self.ins, size)
        return self.once(("batch", ours, size), make)(*given)


class LinearSolve(_Solution):
    """x with matrix(x) = b. Operands: what matrix, solve and back close over, then b.

    matrix, solve, back: (*b, *what they close over) -> (*b).
    """

    name = "custom_linear_solve"

    def __init__(self, matrix: Graph, solve: Graph, back: Graph | None) -> None:
        self.matrix = matrix
        self.solve = solve
        self.back = back
        n = len(matrix.outputs)
        names = ("matvec", "solve", "transpose_solve")
        super().__init__(names, (matrix, solve, back), (n, n, n), n)

    def like(self, graphs: Sequence[Any]) -> LinearSolve:
        """Another system of the same kind."""
        return LinearSolve(*graphs)

    def run(self, *buffers: Any) -> Flat:
        """The solver."""
        _, used, _, b = self.parts(buffers)
        return self.compiled(self.solve)(*b, *used)

    def push(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """The same system for db - dA x."""
        held, used, back, _ = self.parts(primals)
        flags = self.parts(mine)
        x = self(*primals)
        full = bodies.tangents_of(mine, primals, tangents)
        rhs = self.parts(full)[3]
        if any(flags[0]):
            moved = jvp(
                _of(self.matrix, x, held, flags[0]),
                tuple(bodies.chosen(held, flags[0])),
                tuple(bodies.chosen(self.parts(full)[0], flags[0])),
            )[1]
            rhs = tuple([r - m for r, m in zip(rhs, moved, strict=True)])
        elif not any(flags[3]):
            return x, rhs
        return x, self(*held, *used, *back, *rhs)

    def forward(self, mine: Flags, *vals: Any) -> tuple[Flat, Flat]:
        """The solution, kept with all operands but b."""
        if self.back is None:
            raise UndefinedDerivativeError(
                "custom_linear_solve: reverse mode needs the transposed system solved",
                fix="pass transpose_solve, or symmetric=True",
            )
        x = self(*vals)
        return x, (*vals[: -self.n], *x)

    def backward(self, mine: Flags, residuals: Flat, cts: Flat) -> Flat:
        """The transposed system for the cotangent of x."""
        held, used, back, x = self.parts(residuals)
        flags = self.parts(mine)
        cts = bodies.filled(cts, x)
        b = self.once("transposed", self._transposed)(*held, *back, *used, *cts)
        given: list[Any] = [None] * len(held)
        if any(flags[0]):
            _, pull = vjp(_of(self.matrix, x, held, flags[0]), *bodies.chosen(held, flags[0]))
            found = iter(pull(tuple([-g for g in b])))
            given = [next(found) if f else None for f in flags[0]]
        return (*given, *[None] * (len(used) + len(back)), *b)

    def _transposed(self) -> LinearSolve:
        assert self.back is not None
        n, avals = self.n, [v.aval for v in self.matrix.inputs]

        def apply(*xs: Any) -> list[Any]:
            return transpose(lambda *v: self.matrix(*v, *xs[n:]), avals[:n], xs[:n])

        return LinearSolve(bodies.regraph(apply, avals), self.back, self.solve)


def _of(graph: Graph, x: Sequence[Any], held: Sequence[Any], mine: Flags) -> Fun:
    """The graph at x as a function of those further operands that are mine."""

    def run(*vs: Any) -> Flat:
        given = iter(vs)
        full = [next(given) if m else h for h, m in zip(held, mine, strict=True)]
        return graph(*x, *full)

    return run


def custom_root(
    f: Fun,
    initial_guess: Any,
    solve: Callable[[Fun, Any], Any],
    tangent_solve: Callable[[Fun, Any], Any],
) -> Any:
    """x with `f(x) = 0`, found by `solve(f, initial_guess)`, differentiated as a root.

    Maths: the implicit function theorem, ∂f/∂x dx = -∂f/∂θ dθ for what f closes over (θ).
    Args: f: from a pytree to one of the same type. tangent_solve: `tangent_solve(g, y)` gives x
    with g(x) = y for a linear g; it must be linear in y, `lambda g, y: y / g(1.0)` for a scalar, or
    a `custom_linear_solve`. The derivative in initial_guess is zero.
    Raises: TreeError, ShapeError, DTypeError: when a root or f's result is not of the guess's type.
    Example:
        >>> import funct as ft, funct.array as xp
        >>> def newton(f, x):
        ...     step = lambda x: x - f(x) / ft.grad(f)(x)
        ...     return ft.fori_loop(0, 8, lambda i, x: step(x), x)
        >>> def root(a):
        ...     f = lambda x: x * x - a
        ...     return ft.custom_root(f, xp.asarray(1.0), newton, lambda g, y: y / g(xp.ones(())))
        >>> round(float(ft.grad(root)(xp.asarray(4.0))), 9)
        0.25

    Source: `jax.lax.custom_root`.
    """
    expect_functions("custom_root", f=f, solve=solve, tangent_solve=tangent_solve)
    leaves, spec = flat_arrays(initial_guess)
    avals = bodies.avals_of(leaves)
    tree = spec.unflatten(leaves)

    def value(*xs: Any) -> list[Any]:
        out = f(spec.unflatten(xs))
        return fitting("custom_root", "the result of f", tree, avals, out)

    def root(*xs: Any) -> list[Any]:
        out = solve(f, spec.unflatten(xs))
        return fitting("custom_root", "the root", tree, avals, out)

    def tangent(*xs: Any) -> list[Any]:
        x, y = xs[: len(avals)], xs[len(avals) :]

        def g(v: Any) -> Any:
            return spec.unflatten(jvp(value, tuple(x), tuple(pytree.leaves(v)))[1])

        out = tangent_solve(g, spec.unflatten(y))
        return fitting("custom_root", "the result of tangent_solve", tree, avals, out)

    values, held = bodies.trace("custom_root", value, avals, f, always)
    roots, used = bodies.trace("custom_root", root, avals, solve, always)
    tangents, kept = bodies.trace("custom_root", tangent, [*avals, *avals], tangent_solve, safely)
    node = Root(values, roots, tangents)
    return spec.unflatten(node(*held, *used, *kept, *leaves))


class Root(_Solution):
    """x with value(x) = 0. Operands: what value, root and tangent close over, then the guess.

    value, root: (*x, *what they close over) -> (*x). tangent: (*x, *y, *…) -> (*x).
    """

    name = "custom_root"

    def __init__(self, value: Graph, root: Graph, tangent: Graph) -> None:
        self.value = value
        self.root = root
        self.tangent = tangent
        n = len(value.outputs)
        names = ("f", "solve", "tangent_solve")
        super().__init__(names, (value, root, tangent), (n, n, 2 * n), n)

    def like(self, graphs: Sequence[Any]) -> Root:
        """Another root of the same kind."""
        return Root(*graphs)

    def run(self, *buffers: Any) -> Flat:
        """The solver."""
        _, used, _, guess = self.parts(buffers)
        return self.compiled(self.root)(*guess, *used)

    def push(self, mine: Flags, primals: Flat, tangents: Flat) -> tuple[Flat, Flat]:
        """dx = -(∂f/∂x)⁻¹ ∂f/∂θ dθ."""
        held, _, kept, _ = self.parts(primals)
        flags = self.parts(mine)[0]
        x = self(*primals)
        if not any(flags):
            return x, tuple([zero_like(v) for v in x])
        given = bodies.chosen(self.parts(tangents)[0], flags)
        moved = jvp(
            _of(self.value, x, held, flags), tuple(bodies.chosen(held, flags)), tuple(given)
        )[1]
        return x, tuple([-d for d in self.tangent(*x, *moved, *kept)])

    def forward(self, mine: Flags, *vals: Any) -> tuple[Flat, Flat]:
        """The root, kept with what f and tangent_solve close over."""
        held, _, kept, _ = self.parts(vals)
        x = self(*vals)
        return x, (*held, *kept, *x)

    def backward(self, mine: Flags, residuals: Flat, cts: Flat) -> Flat:
        """θ̄ = -(∂f/∂θ)ᵀ (∂f/∂x)⁻ᵀ x̄."""
        a, s, t = self.counts
        held, kept, x = residuals[:a], residuals[a : a + t], residuals[a + t :]
        flags = self.parts(mine)[0]
        cts = bodies.filled(cts, x)
        out: list[Any] = [None] * (a + s + t + self.n)
        if any(flags):
            y = transpose(lambda *ys: self.tangent(*x, *ys, *kept), x, cts)
            _, pull = vjp(_of(self.value, x, held, flags), *bodies.chosen(held, flags))
            found = iter(pull(tuple([-g for g in y])))
            out[:a] = [next(found) if f else None for f in flags]
        return tuple(out)
