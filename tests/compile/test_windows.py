"""Convolution and pooling in loops: eager's numbers, and no Python between the steps."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import funct as ft
import funct.array as xp
from funct import ops
from funct.compile import why_not_fused
from funct.compile.control import made
from funct.compile.loops.kernel import Kernel
from funct.compile.native import native
from funct.compile.stored import stored
from funct.kernels import table
from funct.kernels.cpu import jobs
from funct.kernels.cpu.convolution.few_products import products
from funct.kernels.windows.views import Sliding
from funct.nn import functional
from tests import laws
from tests.compile.test_stored import graph_of, never

pytestmark = pytest.mark.skipif(
    not table.available().issuperset({"llvm", "avx2", "fma"}), reason="no tiles for this processor"
)

RNG = np.random.default_rng(0)
# x, w, stride, padding, dilation, groups
IMAGES: dict[str, Any] = {
    "one pixel": ((1, 1, 1, 1), (1, 1, 1, 1), 1, 0, 1, 1),
    "few": ((1, 1, 8, 8), (1, 1, 3, 3), 1, 1, 1, 1),
    "padding alone": ((1, 1, 1), (1, 1, 1), 4, 2, 1, 1),
    "lines": ((1, 8, 32, 32), (8, 8, 3, 3), 1, 1, 1, 1),
    "one channel": ((2, 1, 40, 40), (1, 1, 5, 5), 1, 2, 1, 1),
    "depthwise": ((2, 8, 20, 24), (8, 1, 3, 3), 1, 1, 1, 8),
    "depthwise, apart": ((2, 8, 21, 25), (16, 1, 3, 3), 2, 1, 2, 8),
    "tiles": ((2, 32, 14, 14), (48, 32, 3, 3), 1, 1, 1, 1),
    "tiles, apart": ((3, 24, 15, 13), (32, 24, 3, 3), 2, 1, 2, 1),
    "groups": ((2, 64, 12, 12), (64, 32, 3, 3), 1, 1, 1, 2),
    "single taps": ((2, 32, 16, 16), (32, 32, 1, 1), 1, 0, 1, 1),
    "single taps, few pixels": ((2, 40, 3, 5), (24, 40, 1, 1), 1, 0, 1, 1),
    "single taps, one pixel": ((5, 70, 1, 1), (90, 70, 1, 1), 1, 0, 1, 1),
    "single taps, many weights": ((3, 300, 4, 4), (400, 300, 1, 1), 1, 0, 1, 1),
    "single taps in tiles": ((3, 64, 16, 16), (48, 64, 1, 1), 1, 0, 1, 1),
    "whole windows": ((5, 40, 4, 4), (30, 40, 4, 4), 1, 0, 1, 1),
    "patches": ((2, 16, 32, 32), (32, 16, 8, 8), 8, 0, 1, 1),
    "sequence": ((2, 16, 200), (32, 16, 7), 1, 3, 1, 1),
    "volume": ((1, 16, 6, 7, 8), (24, 16, 3, 3, 3), 1, 1, 1, 1),
    "some taps inside": ((2, 40, 2, 2), (20, 40, 5, 5), 1, 2, 1, 1),
    "cropped": ((1, 16, 20, 20), (32, 16, 3, 3), 1, -1, 1, 1),
}


def params(shape: Any, stride: int, padding: int, dilation: int, groups: int) -> Any:
    axes = len(shape) - 2
    return (stride,) * axes, ((padding, padding),) * axes, (dilation,) * axes, groups


def arrays(name: str, dtype: str) -> Any:
    x, w, *how = IMAGES[name]
    given = params(x, *how)
    raw = [RNG.normal(size=(3, *s)).astype(dtype) for s in (x, w)]
    size = Sliding(*given).size(x[2:], w[2:])
    g = RNG.normal(size=(3, x[0], w[0], *size)).astype(dtype)
    return [xp.asarray(a) for a in (*raw, g)], given


def looped(f: Any) -> Any:
    return lambda *xs: ft.scan(lambda c, x: (c + 1.0, f(*x)), 0.0, xs)[1]


def compiled(run: Any, *xs: Any) -> Any:
    """The first results of a loop over so many rows that it is machine code."""
    count = xs[0].shape[0]
    found = ft.jit(run)(*[xp.concat([x] * 200) for x in xs])
    return ft.tree.map(lambda y: y[:count], found)


def steps_python(f: Any, *args: Any) -> bool:
    return any("Python goes through" in line for line in why_not_fused(ft.make_graph(f)(*args)))


def is_the_same_code(name: str, which: str) -> bool:
    """Whether eager execution takes it too: by its products, or for so much work."""
    x, w, *how = IMAGES[name]
    slide = Sliding(*params(x, *how))
    if products(x, w, slide) is not None:
        return True
    if name.startswith("single taps"):
        return which == "w" and name.endswith("in tiles")
    work = 2 * x[0] * math.prod(slide.size(x[2:], w[2:])) * math.prod(w)
    return name not in ("patches", "whole windows") and work >= 1 << 16


@pytest.mark.pairwise
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("which", ["forward", "turned", "x", "w"])
def test_loops_have_eagers_numbers(name: str, dtype: str, which: str) -> None:
    """Its bits where it takes this code; of looks at other arrays too."""
    (x, w, g), given = arrays(name, dtype)
    maps = {
        "forward": (lambda x, w: ops.convolution(x, w, *given), (x, w)),
        "turned": (lambda x, w: ops.convolution(xp.flip(x, axis=-1), w, *given), (x, w)),
        "x": (lambda g, w: ops.convolution_input(g, w, *given, x.shape[3:]), (g, w)),
        "w": (lambda x, g: ops.convolution_weight(x, g, *given, w.shape[3:]), (x, g)),
    }
    eps = float(np.finfo(dtype).eps)
    f, args = maps[which]
    run = looped(f)
    assert not steps_python(run, *args)
    found = compiled(run, *args)
    expected = xp.stack([f(*[a[k] for a in args]) for k in range(3)])
    assert found.dtype == expected.dtype
    if is_the_same_code(name, which):
        np.testing.assert_array_equal(found, expected)
    else:  # the order of sums is another
        scale = float(xp.max(xp.abs(expected))) if expected.size else 1.0
        laws.close(found, expected, 0, 32 * eps * max(1.0, scale))


@pytest.mark.parametrize("name", ["depthwise, apart", "tiles", "some taps inside"])
def test_zeros_around_images_meet_no_infinity(name: str) -> None:
    """In any factor of any of the maps: what is not finite reaches no more pixels than eagerly."""
    given = params(IMAGES[name][0], *IMAGES[name][2:])

    def all_maps(x: Any, w: Any, g: Any) -> Any:
        sizes = (v.shape[2:] for v in (x, w))
        y, back = ops.convolution(x, w, *given), ops.convolution_input(g, w, *given, next(sizes))
        return y, back, ops.convolution_weight(x, g, *given, next(sizes))

    run = looped(all_maps)
    for which in range(3):
        xs = arrays(name, "float32")[0]
        xs[which] = xs[which].at[1, ..., 0].set(xp.inf)
        assert not steps_python(run, *xs)
        for k, found in enumerate(zip(*compiled(run, *xs), strict=True)):
            for one, expected in zip(found, all_maps(*[x[k] for x in xs]), strict=True):
                np.testing.assert_array_equal(np.isfinite(one), np.isfinite(expected))


def test_a_network_is_trained() -> None:
    """Steps of gradient descent as a loop, and a batch of such loops."""
    x = xp.asarray(RNG.normal(size=(5, 2, 3, 12, 12)))
    w = xp.asarray(RNG.normal(size=(4, 3, 3, 3)) * 0.1)

    def loss(w: Any, x: Any) -> Any:
        return xp.mean(xp.tanh(functional.conv2d(x, w, padding=1)) ** 2)

    def train(w: Any, x: Any) -> Any:
        return ft.scan(lambda w, x: (w - 0.1 * ft.grad(loss)(w, x), loss(w, x)), w, x)

    assert not steps_python(train, w, x)
    laws.close(ft.jit(train)(w, x), train(w, x), 1e-12, 1e-12)
    both = xp.stack([w, 2 * w])
    many = ft.vmap(train, in_axes=(0, None))
    assert not steps_python(many, both, x)
    expected = [train(one, x) for one in both]
    laws.close(
        ft.jit(many)(both, x), ft.tree.map(lambda *ys: xp.stack(ys), *expected), 1e-12, 1e-12
    )


def test_a_gradient_through_steps() -> None:
    """A heat equation, whose start and stencil are differentiated, in both modes."""
    x = xp.asarray(RNG.normal(size=(1, 1, 24, 24)))
    w = xp.asarray(RNG.normal(size=(1, 1, 3, 3)) * 0.2)

    def end(x: Any, w: Any) -> Any:
        step = lambda x, _: (x + functional.conv2d(x, w, padding=1), None)  # noqa: E731
        return xp.sum(ft.scan(step, x, None, length=6)[0] ** 2)

    slopes = ft.grad(end, argnums=(0, 1))
    assert not steps_python(slopes, x, w)
    laws.close(ft.jit(slopes)(x, w), slopes(x, w), 1e-11, 1e-11)
    moved = lambda x, w: ft.jvp(end, (x, w), (w[:, :, :1, :1] + x, w))  # noqa: E731
    assert not steps_python(moved, x, w)
    laws.close(ft.jit(moved)(x, w), moved(x, w), 1e-11, 1e-11)


def test_no_images_and_no_channels() -> None:
    """Nothing is convolved, as eagerly."""
    for x, w in (((3, 0, 2, 5, 5), (3, 4, 2, 3, 3)), ((3, 1, 0, 5, 5), (3, 4, 0, 3, 3))):
        run = looped(functional.conv2d)
        given = xp.zeros(x), xp.ones(w)
        np.testing.assert_array_equal(ft.jit(run)(*given), run(*given))


@pytest.mark.parametrize("stride", [1, 2])
def test_weights_are_laid_out_before_the_loop(stride: int) -> None:
    """Once for all classes of pixels, where each step has the same weights."""
    x, w = xp.ones((1, 32, 14, 14)), xp.ones((32, 32, 4, 4))

    def step(x: Any, _: Any) -> Any:
        y = functional.conv_transpose2d(x, w, stride=stride, padding=1)
        return y[..., :14, :14] * 0.5, None

    graph = ft.make_graph(lambda x: ft.scan(step, x, None, length=3)[0])(x)
    (form,) = [e.primitive.kind.form() for e in graph.nodes if e.name.startswith("scan")]
    loop = made(form)
    early = [
        is_early
        for c, is_early in zip(loop.body.calls, loop.body.early(form.constants), strict=True)
        if not isinstance(c.kernel, Kernel) and c.kernel[0] == "told"
    ]
    assert early == [True, False]
    run = lambda x: ft.scan(step, x, None, length=300)[0]  # noqa: E731
    np.testing.assert_array_equal(ft.jit(run)(x), run(x))


@pytest.mark.parametrize("name", ["few", "lines", "tiles", "tiles, apart"])
def test_they_are_kept_on_disk(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What points into this process is made again where they are loaded, if it is the same."""
    (x, w, g), given = arrays(name, "float32")
    size, kernel = x.shape[3:], w.shape[3:]

    def all_maps(x: Any, w: Any, g: Any) -> Any:
        y = ops.convolution(x, w, *given)
        return (
            y,
            ops.convolution_input(y, w, *given, size),
            ops.convolution_weight(x, g, *given, kernel),
        )

    graph = graph_of(looped(all_maps), x, w, g)
    found = stored(graph, lambda: native(graph))(x.data, w.data, g.data)
    jobs.job.cache_clear()
    again = graph_of(looped(all_maps), x, w, g)
    laws.same(stored(again, never)(x.data, w.data, g.data), found)
    monkeypatch.setattr("funct.compile.stored.job", lambda *recipe: None)
    third = graph_of(looped(all_maps), x, w, g)
    made: list[Any] = []

    def make() -> Any:
        made.append(native(third))
        return made[0]

    laws.same(stored(third, make)(x.data, w.data, g.data), found)
    assert len(made) == (name != "few")


# pooling
# shape, window, stride, padding, dilation
POOLS: dict[str, Any] = {
    "one": ((1, 1), 1, 1, 0, 1),
    "side by side": ((2, 3, 8, 12), 2, 2, 0, 1),
    "overlapping": ((2, 8, 14, 15), 3, 1, 1, 1),
    "apart": ((2, 3, 20, 21), 3, 2, 1, 2),
    "padding alone": ((2, 5), 2, 2, 3, 3),
    "wide": ((3, 40), 7, 3, 3, 1),
    "cropped": ((2, 9, 9), 2, 1, -1, 1),
    "volume": ((2, 5, 6, 7), 2, 1, 1, 1),
    "all": ((2, 4, 8, 8), 8, 1, 0, 1),
}


def pool_of(name: str) -> tuple[tuple[int, ...], Any]:
    shape, window, stride, padding, dilation = POOLS[name]
    d = 1 if name in ("one", "padding alone", "wide") else 3 if name == "volume" else 2
    return shape, ((window,) * d, (stride,) * d, ((padding, padding),) * d, (dilation,) * d)


def signed(shape: Any, dtype: str) -> Any:
    """Few numbers, so that there are ties, and zeros of both signs."""
    x = RNG.integers(-3, 4, (4, *shape)).astype(dtype)
    if x.dtype.kind == "f":
        x[RNG.random(x.shape) < 0.2] = -0.0
        x[1] += RNG.normal(size=shape).astype(dtype)
        x[2].flat[-1], x[3].flat[0] = np.nan, -np.inf
    return xp.asarray(x)


def has_eagers_bits(f: Any, xs: Any) -> None:
    run = looped(f)
    assert not steps_python(run, xs)
    found, expected = compiled(run, xs), xp.stack([f(x) for x in xs])
    assert found.dtype == expected.dtype
    laws.same(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("name", POOLS)
def test_maxima(name: str, dtype: str) -> None:
    """Themselves, where they are, and their derivatives."""
    shape, given = pool_of(name)
    xs = signed(shape, dtype)
    has_eagers_bits(lambda x: ops.max_pool(x, *given), xs)
    has_eagers_bits(lambda x: ops.max_pool_index(x, *given), xs)
    if dtype.startswith("float"):
        weighed = lambda x: xp.sum(ops.max_pool(x, *given) ** 2)  # noqa: E731
        run, some = looped(ft.grad(weighed)), xs[:2]
        assert not steps_python(run, some)
        laws.close(compiled(run, some), run(some), 1e-6, 1e-6)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["one", "side by side", "overlapping", "wide", "volume", "all"])
def test_means(name: str, dtype: str, include: bool) -> None:
    """Themselves, and their derivatives, which are added up in another order."""
    shape, (window, stride, padding, _) = pool_of(name)
    given = window, stride, padding, (0,) * len(window), include
    xs = signed(shape, dtype)
    with np.errstate(all="ignore"):
        has_eagers_bits(lambda x: ops.avg_pool(x, *given), xs)
    weighed = lambda x: xp.sum(ops.avg_pool(x, *given) ** 2)  # noqa: E731
    run, some = looped(ft.grad(weighed)), xs[:2]
    assert not steps_python(run, some)
    eps = 16 * float(np.finfo(dtype).eps)
    laws.close(compiled(run, some), run(some), eps, eps)


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
def test_windows_and_back(stride: int, dilation: int) -> None:
    """Of windows that overlap, and that leave elements out."""
    xs = signed((2, 9, 8), "float64")
    given = (3, 2), (stride, stride + 1), (dilation, dilation)
    has_eagers_bits(lambda x: ops.windows(x, *given), xs)
    has_eagers_bits(
        lambda x: ops.fold_windows(ops.windows(x, *given) * 1.5, (9, 8), *given[1:]), xs
    )


def test_a_network_with_pools_is_trained() -> None:
    """Batches of its steps too."""
    x = xp.asarray(RNG.normal(size=(4, 2, 1, 12, 12)))
    w = xp.asarray(RNG.normal(size=(4, 1, 3, 3)) * 0.3)

    def loss(w: Any, x: Any) -> Any:
        y = functional.max_pool2d(functional.relu(functional.conv2d(x, w, padding=1)), 2)
        return xp.mean(functional.avg_pool2d(y, 3, stride=1, padding=1) ** 2)

    def train(w: Any, x: Any) -> Any:
        return ft.scan(lambda w, x: (w - 0.1 * ft.grad(loss)(w, x), None), w, x)[0]

    assert not steps_python(train, w, x)
    laws.close(ft.jit(train)(w, x), train(w, x), 1e-12, 1e-12)
    both, many = xp.stack([w, 2 * w]), ft.vmap(train, in_axes=(0, None))
    assert not steps_python(many, both, x)
    laws.close(ft.jit(many)(both, x), xp.stack([train(one, x) for one in both]), 1e-12, 1e-12)
