"""Compiled programs of the kinds that people write, next to JAX's, in float32: pairs of points,
Hessians, gradients per example, long scans, kernel matrices, lookups, stencils, small matrices.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import funct as ft
import funct.array as xp
from benchmarks.peers import optional
from benchmarks.timing import minima, table

RNG = np.random.default_rng(0)


def _normal(*shape: int, scale: float = 1.0) -> Any:
    return (RNG.normal(size=shape) * scale).astype("float32")


P2000, P1000 = _normal(2000, 3), _normal(1000, 3)
A, V = _normal(2000, 8), _normal(2000)
DATA, WEIGHTS = _normal(2000, 60), _normal(60)
LAYERS = [_normal(*s, scale=0.125) for s in ((64, 128), (128,), (128, 10), (10,))]
INPUTS, TARGETS = _normal(256, 64), _normal(256, 10)
RECURRENT, SERIES = _normal(64, 64, scale=0.0625), _normal(1000, 64)
GATES, SEQUENCE = _normal(192, 512, scale=0.1), _normal(100, 32, 64)
SIGNAL, ROWS, MILLION = _normal(100_000), _normal(4096, 1024), _normal(1_000_000)
IMAGES, FILTERS = _normal(16, 256, 64), _normal(3, 64, 64, scale=0.125)
CLOUDS, LOGITS, CLASSES = _normal(64, 100, 3), _normal(256, 32_000), RNG.integers(0, 32_000, 256)
P8, MEANS = _normal(1000, 8), _normal(16, 8)
LEFT, RIGHT, LONG8 = _normal(5000, 32), _normal(5000, 48), _normal(100_000, 8)
PLATE, LINKS = _normal(256, 256), _normal(500, 500, scale=0.002)
STACK, VECTORS = _normal(5000, 8, 8), _normal(5000, 8)
SMALL, POINTS, OTHERS = _normal(20_000, 3, 3), _normal(100_000, 3), _normal(100_000, 3)
SQUARES, HALVES = _normal(1000, 16, 16), _normal(300, 32, 32)
STEPS, SLOPES = _normal(5, 100_000), _normal(5, 100_000)
OF_FIVE = _normal(10_000, 5, 5)
LARGE = _normal(2000, 2000)
COLOURS, TURNED = _normal(512, 512, 3), _normal(100_000)
ENLARGED = _normal(16, 512, 128)
SPECTRUM = _normal(100_000) + 1j * _normal(100_000)
TABLE, WORDS = _normal(10_000, 64), RNG.integers(0, 10_000, (256, 32))
PICTURE, PLACES = _normal(256, 256), RNG.uniform(0, 254, (100_000, 2)).astype("float32")
COSTS, IMAGE, FLOW = _normal(300, 300), _normal(512, 512), _normal(2, 512, 512, scale=3)
ENDS, NODES = RNG.integers(0, 10_000, (2, 50_000)), _normal(10_000, 32)
ENTRIES = RNG.integers(0, 100_000, (2, 1_000_000)).astype("int32")
HEADS = _normal(3, 8, 512, 64)
JOINED = _normal(64, 32, scale=0.2)
MOVES, SCORES = _normal(20, 20), _normal(500, 20)
EDGES, WEIGHED = RNG.integers(0, 10_000, (2, 30_000)), _normal(30_000, 1)


def programs(ns: Any, transforms: Any, control: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Each row's function and arguments. ns: the namespace; control: where scan is."""

    def energy(p: Any) -> Any:
        d = p[:, None, :] - p[None, :, :]
        return ns.sum(1 / ns.sqrt(ns.sum(d * d, axis=-1) + 0.1))

    def cross_entropy(z: Any, classes: Any) -> Any:
        chosen = ns.take_along_axis(z, classes[:, None], axis=-1)
        return ns.mean(log_sum_exp(z) - chosen[:, 0])

    def kernel(a: Any, v: Any) -> Any:
        s = ns.sum(a * a, axis=1)
        return ns.exp(2 * (a @ a.T) - s[:, None] - s[None, :]) @ v

    def quotients(x: Any, y: Any) -> Any:
        return x * y + x / y - ns.conj(x) * 2

    def enlarged(x: Any, y: Any) -> Any:
        return ns.repeat(ns.repeat(x, 2, axis=1), 2, axis=2) * 0.5 + y

    def rotated(x: Any, a: Any) -> Any:
        other = ns.concat([-x[..., 32:], x[..., :32]], axis=-1)
        return x * ns.cos(a) + other * ns.sin(a)

    def by_spectrum(x: Any, h: Any) -> Any:
        return ns.real(ns.fft.ifft2(ns.fft.fft2(x) * h))

    def advected(x: Any) -> Any:
        to, fro = ns.roll(x, 1), ns.roll(x, -1)
        return x - 0.1 * (fro - to) + 0.01 * (fro - 2 * x + to)

    def variation(x: Any) -> Any:
        return ns.sum((x[1:] - x[:-1]) ** 2) + ns.sum((x[:, 1:] - x[:, :-1]) ** 2)

    def pooled(x: Any) -> Any:
        quarter = x[::2, ::2] + x[1::2, ::2] + x[::2, 1::2] + x[1::2, 1::2]
        return ns.sum(ns.abs(quarter))

    def covariances(x: Any) -> Any:
        x = x - ns.mean(x, axis=0)
        return x.T @ x / (x.shape[0] - 1)

    def logistic(w: Any, x: Any) -> Any:
        return ns.sum(ns.log1p(ns.exp(-(x @ w))))

    def rosenbrock(w: Any) -> Any:
        return ns.sum(100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2)

    def perceptron(layers: Any, x: Any, y: Any) -> Any:
        a, b, c, d = layers
        return ns.sum((ns.tanh(x @ a + b) @ c + d - y) ** 2)

    def recurrent(w: Any, xs: Any, h: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = ns.tanh(h @ w + x)
            return h, h

        return ns.sum(control.scan(step, h, xs)[1])

    def lstm(w: Any, xs: Any) -> Any:
        def logistic(x: Any) -> Any:
            return 1 / (1 + ns.exp(-x))

        def step(state: Any, x: Any) -> Any:
            h, c = state
            y = ns.concat([x, h], axis=-1) @ w
            i, f, g, o = (y[:, k : k + 128] for k in range(0, 512, 128))
            c = logistic(f) * c + logistic(i) * ns.tanh(g)
            h = logistic(o) * ns.tanh(c)
            return (h, c), h

        zero = xs[0, :, :1] * ns.zeros(128, dtype="float32")
        return ns.sum(control.scan(step, (zero, zero), xs)[1] ** 2)

    def sampled(picture: Any, places: Any) -> Any:
        corner = ns.floor(places)
        (x, y), (i, j) = (places - corner).T, corner.astype("int32").T
        above = picture[i, j] * (1 - y) + picture[i, j + 1] * y
        return above * (1 - x) + (picture[i + 1, j] * (1 - y) + picture[i + 1, j + 1] * y) * x

    def decoded(moves: Any, scores: Any) -> Any:
        def step(s: Any, x: Any) -> Any:
            table = s[:, None] + moves
            return ns.max(table, axis=0) + x, ns.argmax(table, axis=0)

        s, came = control.scan(step, scores[0], scores[1:])
        before = lambda k, row: (row[k], row[k])  # noqa: E731
        return control.scan(before, ns.argmax(s), came, reverse=True)[1]

    def oscillated(x: Any) -> Any:
        def slope(x: Any) -> Any:
            return ns.stack([x[1], 2 * (1 - x[0] ** 2) * x[1] - x[0]])

        def step(x: Any, _: Any) -> Any:
            a = slope(x)
            b = slope(x + 0.005 * a)
            c = slope(x + 0.005 * b)
            return x + 0.01 / 6 * (a + 2 * b + 2 * c + slope(x + 0.01 * c)), None

        return control.scan(step, x, None, length=500)[0]

    def tracked(seen: Any) -> Any:
        def moved(m: Any) -> Any:
            return ns.stack([m[0] + 0.1 * m[1], m[1] - 0.1 * ns.sin(m[0])])

        def step(state: Any, y: Any) -> Any:
            m, p = state
            by = transforms.jacfwd(moved)(m)
            m, p = moved(m), by @ p @ by.T + 0.01 * ns.eye(2, dtype="float32")
            gain = p[:, 0] / (p[0, 0] + 0.1)
            m = m + gain * (y - m[0])
            return (m, p - gain[:, None] * p[0]), m

        first = ns.zeros(2, dtype="float32"), ns.eye(2, dtype="float32")
        return control.scan(step, first, seen)[1]

    def filtered(xs: Any, c: Any) -> Any:
        return control.scan(lambda c, x: (c * 0.9 + ns.sin(x), c), c, xs)[1]

    def log_sum_exp(x: Any) -> Any:
        m = ns.max(x, axis=1, keepdims=True)
        return ns.log(ns.sum(ns.exp(x - m), axis=1)) + m[:, 0]

    def gelu(x: Any) -> Any:
        return ns.sum(0.5 * x * (1 + ns.tanh(0.79788 * (x + 0.044715 * x**3))))

    def convolved(w: Any, x: Any) -> Any:
        y = sum(x[:, i : i + 254] @ w[i] for i in range(3))
        return ns.sum(ns.maximum(y, 0) ** 2)

    def looked_up(table: Any, words: Any) -> Any:
        return ns.sum(ns.sum(ns.tanh(table[words]), axis=1) ** 2)

    def apart(x: Any, pairs: Any) -> Any:
        return ns.sqrt(ns.sum((x[pairs[0]] - x[pairs[1]]) ** 2, axis=-1))

    def embedded(x: Any, words: Any) -> Any:
        found = x[words]
        mean = ns.mean(found, axis=-1, keepdims=True)
        scale = ns.sqrt(ns.mean((found - mean) ** 2, axis=-1, keepdims=True) + 1e-5)
        return (found - mean) / scale

    def passed(nodes: Any, edges: Any, weights: Any) -> Any:
        return nodes.at[edges[1]].add(ns.tanh(nodes[edges[0]]) * weights)

    def transported(costs: Any) -> Any:
        def soft(x: Any, axis: int) -> Any:
            most = ns.max(x, axis=axis, keepdims=True)
            total = ns.log(ns.sum(ns.exp(x - most), axis=axis))
            return total + ns.squeeze(most, axis=axis)

        def step(held: Any, _: Any) -> Any:
            f, g = held
            f = -5.7 - soft(g[None, :] - costs, 1)
            return (f, -5.7 - soft(f[:, None] - costs, 0)), None

        return control.scan(step, (costs[0] * 0, costs[:, 0] * 0), None, length=20)[0]

    def warped(flow: Any, image: Any) -> Any:
        at = ns.arange(512, dtype="float32")
        y = ns.clip(at[:, None] + flow[0], 0, 510.5)
        x = ns.clip(at[None, :] + flow[1], 0, 510.5)
        above, left = ns.floor(y), ns.floor(x)
        i, j, v, u = above.astype("int32"), left.astype("int32"), y - above, x - left
        top = image[i, j] * (1 - u) + image[i, j + 1] * u
        below = image[i + 1, j] * (1 - u) + image[i + 1, j + 1] * u
        return ns.mean((top * (1 - v) + below * v - image) ** 2)

    def written(heads: Any) -> Any:
        q, k, v = heads
        scores = ns.where(ns.tril(ns.ones((512, 512), dtype=bool)), q @ k.mT / 8, -1e9)
        e = ns.exp(scores - ns.max(scores, axis=-1, keepdims=True))
        return ns.sum((e / ns.sum(e, axis=-1, keepdims=True) @ v) ** 2)

    def attended(nodes: Any, ends: Any) -> Any:
        source, target = ends
        weights = ns.exp(ns.sum(ns.tanh(nodes[source] - nodes[target]), axis=-1) * 0.1)
        total = ns.zeros(10_000, dtype="float32").at[target].add(weights)
        shares = (weights / total[target])[:, None]
        return ns.zeros((10_000, 32), dtype="float32").at[target].add(nodes[source] * shares)

    def reacted(u: Any) -> Any:
        def around(z: Any) -> Any:
            sides = [ns.roll(z, by, axis=axis) for by in (1, -1) for axis in (0, 1)]
            return sides[0] + sides[1] + sides[2] + sides[3] - 4 * z

        def step(held: Any, _: Any) -> Any:
            u, v = held
            r = u * v * v
            u = u + 0.16 * around(u) - r + 0.035 * (1 - u)
            return (u, v + 0.08 * around(v) + r - 0.1 * v), None

        return control.scan(step, (u * 0 + 1, ns.abs(u) * 0.1), None, length=50)[0]

    def multiplied(entries: Any, at: Any, v: Any) -> Any:
        return ns.zeros(100_000, dtype="float32").at[at[0]].add(entries * v[at[1]])

    def counted(x: Any) -> Any:
        places = ns.clip(ns.floor((x + 4) * 12.5).astype("int32"), 0, 99)
        return ns.zeros(100, dtype="float32").at[places].add(1.0)

    def learned(nodes: Any, edges: Any, weights: Any) -> Any:
        return ns.sum(passed(passed(nodes, edges, weights), edges, weights) ** 2)

    def layers(x: Any, ends: Any, w: Any) -> Any:
        for _ in range(2):
            came = (x * 0).at[ends[1]].add(x[ends[0]])
            x = ns.maximum(ns.concat([x, came], axis=1) @ w, 0)
        return ns.sum(x**2)

    def bags(table: Any, words: Any, w: Any) -> Any:
        return ns.sum(ns.tanh(ns.mean(table[words], axis=1) @ w) ** 2)

    def remembered(heads: Any) -> Any:
        def step(held: Any, given: Any) -> Any:
            (s, z), (q, k, v) = held, given
            k, q = (ns.where(x > 0, x + 1, ns.exp(x)) for x in (k, q))
            s, z = s + k[:, :, None] * v[:, None], z + k
            return (s, z), ns.einsum("hd,hde->he", q, s) / ns.sum(q * z, axis=1)[:, None]

        first = heads[0, :, 0] * 0
        rows = tuple(ns.moveaxis(heads, 2, 1))
        return control.scan(step, (first[:, :, None] * first[:, None], first), rows)[1]

    def moved(table: Any, words: Any) -> Any:
        rows = table[words]
        return table.at[words].add(0.1 * (ns.mean(rows, axis=1, keepdims=True) - rows))

    def ranked(x: Any) -> Any:
        return ns.cumulative_sum(ns.sort(x)) / ns.arange(1, 100_001)

    def near(p: Any) -> Any:
        return ns.sum(ns.exp(-ns.sum((p[:, None] - p[None]) ** 2, axis=-1)))

    def nearest_means(means: Any, p: Any) -> Any:
        found = ns.argmin(ns.sum((p[:, None] - means[None]) ** 2, axis=-1), axis=1)
        own = (found[:, None] == ns.arange(16)).astype(p.dtype)
        return own.T @ p / ns.maximum(ns.sum(own, axis=0), 1)[:, None]

    def heated(u: Any) -> Any:
        def step(u: Any, _: Any) -> Any:
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            return u.at[1:-1, 1:-1].add(0.1 * (around - 4 * u[1:-1, 1:-1])), None

        return control.scan(step, u, None, length=50)[0]

    def ranks(links: Any, v: Any) -> Any:
        return control.fori_loop(0, 100, lambda i, v: 0.85 * (links @ v) + 0.0003, v)

    def times_vectors(x: Any, v: Any) -> Any:
        return (x @ v[..., None])[..., 0]

    def determinants(x: Any) -> Any:
        return ns.sum(ns.linalg.det(x))

    def crossed(x: Any, y: Any) -> Any:
        after, behind = ns.asarray([1, 2, 0]), ns.asarray([2, 0, 1])
        first = ns.take(x, after, axis=-1) * ns.take(y, behind, axis=-1)
        return first - ns.take(x, behind, axis=-1) * ns.take(y, after, axis=-1)

    def turned(p: Any, angle: Any) -> Any:
        c, s = ns.cos(angle), ns.sin(angle)
        x, y, z = (p[:, k] for k in range(3))
        return ns.stack([c * x - s * y, s * x + c * y, z], axis=-1)

    def saturation(x: Any) -> Any:
        most, least = ns.max(x, axis=-1), ns.min(x, axis=-1)
        return ns.stack([x[..., 1] - x[..., 2], (most - least) / (most + 4), most], axis=-1)

    def direction(g: Any, s: Any, y: Any) -> Any:
        shares = []
        for k in range(5):
            shares.append((s[k] @ g) / (s[k] @ y[k]))
            g = g - shares[k] * y[k]
        for k in range(4, -1, -1):
            g = g + s[k] * (shares[k] - (y[k] @ g) / (s[k] @ y[k]))
        return g

    def likelihood(scale: Any, x: Any, y: Any) -> Any:
        near = ns.exp(-(((x[:, None] - x[None]) / scale) ** 2))
        covariance = near + 0.1 * ns.eye(x.shape[0], dtype="float32")
        explained = ns.linalg.solve(covariance, y[:, None])
        return ns.linalg.slogdet(covariance)[1] + ns.sum(y * explained[:, 0])

    def factored(x: Any) -> Any:
        covariance = x @ x.T / x.shape[0] + ns.eye(x.shape[0], dtype="float32")
        return ns.sum(ns.linalg.cholesky(covariance) ** 3)

    grad, hessian = transforms.grad, transforms.hessian
    a = ns.asarray
    return {
        "energy of 2000 points in pairs": (energy, (a(P2000),)),
        "its gradient, 1000 points": (grad(energy), (a(P1000),)),
        "energies of 64 clouds of 100 points": (transforms.vmap(energy), (a(CLOUDS),)),
        "kernel matrix times a vector, 2000": (kernel, (a(A), a(V))),
        "Hessian, logistic, 60 of 2000": (hessian(logistic), (a(WEIGHTS), a(DATA))),
        "Hessian, Rosenbrock, 200": (hessian(rosenbrock), (a(V[:200]),)),
        "gradients per example, 256": (
            transforms.vmap(grad(perceptron), in_axes=(None, 0, 0)),
            ([a(x) for x in LAYERS], a(INPUTS), a(TARGETS)),
        ),
        "gradient of 1000 recurrent steps": (grad(recurrent), (a(RECURRENT), a(SERIES), a(V[:64]))),
        "gradient of an LSTM, 100 steps, 32 x 128": (grad(lstm), (a(GATES), a(SEQUENCE))),
        "100,000 samples between pixels": (sampled, (a(PICTURE), a(PLACES))),
        "scan of 100,000 numbers": (filtered, (a(SIGNAL), a(V[0]))),
        "logsumexp of rows, 4096 x 1024": (log_sum_exp, (a(ROWS),)),
        "gradient of cross entropy, 256 x 32,000": (grad(cross_entropy), (a(LOGITS), a(CLASSES))),
        "gradient of gelu, 1M": (grad(gelu), (a(MILLION),)),
        "gradient of a 1-d convolution by hand": (grad(convolved), (a(FILTERS), a(IMAGES))),
        "gradient of looked up rows": (grad(looked_up), (a(TABLE), a(WORDS))),
        "looked up rows, moved": (moved, (a(TABLE), a(WORDS))),
        "distances of 30,000 pairs of rows": (apart, (a(TABLE), a(EDGES))),
        "rows of a table, normalised": (embedded, (a(TABLE), a(WORDS))),
        "messages along 30,000 edges": (passed, (a(TABLE), a(EDGES), a(WEIGHED))),
        "gradient of two layers of them": (
            grad(learned, 2), (a(TABLE), a(EDGES), a(WEIGHED)),
        ),
        "gradient of layers of a graph, 50,000 edges": (
            grad(layers, 2), (a(NODES), a(ENDS), a(JOINED)),
        ),
        "gradient of bags of 32 rows": (
            grad(bags, (0, 2)), (a(TABLE), a(WORDS), a(LAYERS[2][:64])),
        ),
        "linear attention in turn, 8 x 512 x 64": (remembered, (a(HEADS),)),
        "matrix of 1M entries times a vector": (multiplied, (a(MILLION), a(ENTRIES), a(SIGNAL))),
        "1M numbers counted in 100 bins": (counted, (a(MILLION),)),
        "Sinkhorn in logarithms, 300 x 300, 20 steps": (transported, (a(COSTS),)),
        "gradient of an image warped, 512 x 512": (grad(warped), (a(FLOW), a(IMAGE))),
        "causal attention written out, 8 x 512 x 64": (written, (a(HEADS),)),
        "gradient of it": (grad(written), (a(HEADS),)),
        "attention along 50,000 edges": (attended, (a(NODES), a(ENDS))),
        "reaction and diffusion, 256 x 256, 50 steps": (reacted, (a(PLATE),)),
        "sort and running sum, 100,000": (ranked, (a(SIGNAL),)),
        "gradient of 1000 points near in 8-d": (grad(near), (a(P8),)),
        "k-means step, 1000 points in 8-d": (nearest_means, (a(MEANS), a(P8))),
        "heat, 256 x 256, 50 steps": (heated, (a(PLATE),)),
        "ranks of 500 pages, 100 steps": (ranks, (a(LINKS), a(V[:500]))),
        "20,000 products of 3 x 3": (lambda x, y: x @ y, (a(SMALL), a(SMALL))),
        "1000 products of 16 x 16, transposed": (lambda x, y: x @ y.mT, (a(SQUARES), a(SQUARES))),
        "300 of 32 x 32, transposed": (lambda x, y: x @ y.mT, (a(HALVES), a(HALVES))),
        "Viterbi, 20 states, 500 steps": (decoded, (a(MOVES), a(SCORES))),
        "Jacobians of 32 oscillators, 500 steps": (
            transforms.vmap(transforms.jacfwd(oscillated)), (a(P1000[:32, :2]),)
        ),
        "40 extended Kalman filters, 200 steps": (transforms.vmap(tracked), (a(ROWS[:40, :200]),)),
        "L-BFGS direction, 100,000": (direction, (a(SIGNAL), a(STEPS), a(SLOPES))),
        "20,000 determinants of 3 x 3": (determinants, (a(SMALL),)),
        "their gradient": (grad(determinants), (a(SMALL),)),
        "that of 10,000 determinants of 5 x 5": (grad(determinants), (a(OF_FIVE),)),
        "cross products by take, 100,000": (crossed, (a(POINTS), a(OTHERS))),
        "100,000 points turned": (turned, (a(POINTS), a(TURNED))),
        "colours, 512 x 512": (saturation, (a(COLOURS),)),
        "complex64 quotients and products, 100,000": (quotients, (a(SPECTRUM), a(SPECTRUM[::-1]))),
        "a matrix 2000 x 2000 and itself turned": (lambda x: (x + x.T) * 0.5, (a(LARGE),)),
        "16 images 256 x 64, enlarged, and others": (enlarged, (a(IMAGES), a(ENLARGED))),
        "16 x 256 rows of 64, halves rotated": (rotated, (a(IMAGES), a(IMAGES[0]))),
        "advection and diffusion, 100,000": (advected, (a(SIGNAL),)),
        "filter by its spectrum, 256 x 256": (by_spectrum, (a(PLATE), a(PICTURE))),
        "gradient of total variation, 2000 x 2000": (grad(variation), (a(LARGE),)),
        "gradient of pooling by slices, 2000 x 2000": (grad(pooled), (a(LARGE),)),
        "covariances of 1024 columns, 4096 rows": (covariances, (a(ROWS),)),
        "outer products, 5000 x 32 x 48": (
            lambda x, y: ns.sum(x[:, :, None] * y[:, None, :], axis=0), (a(LEFT), a(RIGHT))
        ),
        "functions of norms, 100000 x 8": (
            lambda x: ns.tanh(ns.sin(ns.exp(-ns.sqrt(ns.sum(x * x, axis=1))))), (a(LONG8),)
        ),
        "integers to powers, 100,000": (lambda x, y: x**y, (a(ENTRIES[0, :100_000] % 10),) * 2),
        "gradient of a likelihood, 200 x 200": (
            grad(likelihood), (a(V[0] + 4), a(V[:200]), a(V[200:400]))
        ),
        "gradient of a Cholesky factor, 200 x 200": (grad(factored), (a(LARGE[:200, :200]),)),
        "5000 matrices 8 x 8 times vectors": (times_vectors, (a(STACK), a(VECTORS))),
    }


def _waiting(jax: Any, fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], object]:
    return lambda: jax.block_until_ready(fun(*args))


def run() -> str:
    """Measure everything; the table."""
    rows: dict[str, dict[str, Callable[[], object]]] = {}
    for label, (fun, args) in programs(xp, ft, ft).items():
        rows[label] = {"funct": partial(ft.jit(fun), *args)}
    jax = optional("jax")
    if jax is not None:
        for label, (fun, args) in programs(jax.numpy, jax, jax.lax).items():
            rows[label]["jax"] = _waiting(jax, jax.jit(fun), args)
    measured = {label: minima(c, rounds=10) for label, c in rows.items()}
    return table("programs of many kinds", measured)
