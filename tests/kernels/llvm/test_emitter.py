"""What the emitter prints computes what NumPy computes, for every element and number of lanes."""

import ctypes

import numpy as np
import pytest
from msgspec.structs import replace

from funct.device import assemble
from funct.device.host import Host
from funct.device.machine_code import emit
from funct.kernels.llvm import I64, PTR, Module, typed

from .drawn import rng

LANES = (1, 2, 4, 8, 16)
FLOATS = ("f32", "f64")
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
NUMPY = {"f16": "f2", "f32": "f4", "f64": "f8"} | {k: k[0] + str(int(k[1:]) // 8) for k in INTEGERS}


def run(print_body, *arrays):
    """Assemble a function of pointers and call it on the arrays."""
    module = Module()
    f = module.function("f", [(f"a{k}", PTR) for k in range(len(arrays))])
    print_body(f, *f.arguments)
    f.ret()
    code = assemble(module.text())
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(code.address("f"))
    entry(*[a.ctypes.data for a in arrays])


def numbers(element, count):
    dtype = np.dtype(NUMPY[element])
    if dtype.kind == "f":
        return rng.standard_normal(count).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)


def elementwise(print_value, result, *arrays, elements, lanes):
    """Apply what is printed to whole vectors of the arrays."""

    def body(f, out, *ins):
        values = [f.load(typed(e, lanes), p) for e, p in zip(elements, ins, strict=True)]
        value = print_value(f, *values)
        f.store(f.convert(value, "u8") if value.type.element == "i1" else value, out)

    run(body, result, *arrays)
    return result


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("element", FLOATS)
def test_arithmetic_of_floats(element, lanes):
    x, y, z = (numbers(element, lanes) for _ in range(3))
    found = elementwise(
        lambda f, x, y, z: f.sqrt(f.abs((x + y) * z - x / y)) + f.fma(2, -z, 1.5),
        np.empty_like(x), x, y, z, elements=[element] * 3, lanes=lanes,
    )  # fmt: skip
    expected = np.sqrt(np.abs((x + y) * z - x / y)) + (1.5 - 2 * z)
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(x.dtype).eps)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("element", INTEGERS)
def test_arithmetic_of_integers(element, lanes):
    x, y = numbers(element, lanes), numbers(element, lanes)
    for a in (x, y):  # the quotient by 0 is undefined, and |least| is not there
        a[(a == 0) | (a == np.iinfo(a.dtype).min)] = 1
    with np.errstate(over="ignore"):
        expected = (x + y) * x - (x ^ y) + (x & 3) + (x | y) + (x >> 2) + (y << 1) + ~x
        expected += (np.sign(x) * np.sign(y) * (abs(x) // abs(y))).astype(x.dtype)
    found = elementwise(
        lambda f, x, y: (
            (x + y) * x - (x ^ y) + (x & 3) + (x | y) + (x >> 2) + (y << 1) + ~x + x / y
        ),
        np.empty_like(x), x, y, elements=[element] * 2, lanes=lanes,
    )  # fmt: skip
    np.testing.assert_array_equal(found, expected)


@pytest.mark.pairwise
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("element", FLOATS + INTEGERS)
@pytest.mark.parametrize("how", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons(how, element, lanes):
    x, y = numbers(element, lanes), numbers(element, lanes)
    y[::2] = x[::2]
    if element in FLOATS:
        x[-1] = np.nan
    compare = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
    expected = getattr(np, compare.get(how, {"eq": "equal", "ne": "not_equal"}.get(how)))(x, y)
    found = elementwise(
        lambda f, x, y: f.compare(how, x, y),
        np.empty(lanes, "u1"), x, y, elements=[element] * 2, lanes=lanes,
    )  # fmt: skip
    np.testing.assert_array_equal(found.astype(bool), expected)


@pytest.mark.pairwise
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("target", ["f16", *FLOATS, *INTEGERS])
@pytest.mark.parametrize("source", ["f16", *FLOATS, *INTEGERS])
def test_conversions(source, target, lanes):
    x = np.array([0, 1, 2, 3, 100, 77, 5, 127], NUMPY[source])[:lanes]
    if source[0] in "fi" and target[0] in "fi":
        x = -x
    found = elementwise(
        lambda f, x: f.convert(x, target),
        np.empty(lanes, NUMPY[target]), x, elements=[source], lanes=lanes,
    )  # fmt: skip
    np.testing.assert_array_equal(found, x.astype(NUMPY[target]))


def test_float64_rounds_once_to_float16():
    """1 + 2^-11 + 2^-40 is above the middle; as a float32 it would be the middle itself."""
    x = np.array([1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, np.nan, 1e9, -1e-9, 0.1, -0.0, 3.3])
    found = elementwise(
        lambda f, x: f.convert(x, "f16"), np.empty(8, "f2"), x, elements=["f64"], lanes=8
    )
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, x.astype("f2"))


def test_bfloat16_rounds_to_nearest_even_and_keeps_nan():
    import ml_dtypes

    x = rng.standard_normal(8).astype("f4") * 1e3
    x[:5] = np.nan, np.inf, 1 + 2**-8, 1 + 3 * 2**-8, 3.4e38
    narrow = elementwise(
        lambda f, x: f.convert(x, "bf16"), np.empty(8, "u2"), x, elements=["f32"], lanes=8
    )
    expected = x.astype(ml_dtypes.bfloat16)
    assert np.isnan(narrow.view(ml_dtypes.bfloat16)[0])
    np.testing.assert_array_equal(narrow[1:], expected.view("u2")[1:])
    wide = elementwise(
        lambda f, x: f.convert(x, "f32"), np.empty(8, "f4"), narrow, elements=["bf16"], lanes=8
    )
    np.testing.assert_array_equal(wide, expected.astype("f4"))


def test_max_takes_the_second_and_maximum_the_nan():
    x = np.array([1, np.nan, 1, np.nan], "f4")
    y = np.array([2, 2, np.nan, np.nan], "f4")
    for name, expected in [("max", [2, 2, np.nan, np.nan]), ("maximum", [2] + [np.nan] * 3)]:
        found = elementwise(
            lambda f, x, y, name=name: getattr(f, name)(x, y),
            np.empty(4, "f4"), x, y, elements=["f32"] * 2, lanes=4,
        )  # fmt: skip
        np.testing.assert_array_equal(found, np.array(expected, "f4"))


@pytest.mark.parametrize("lanes", LANES)
def test_a_reduction_combines_halves(lanes):
    x = numbers("f32", lanes)
    found = elementwise(
        lambda f, x: f.reduce(x, f.add), np.empty(1, "f4"), x, elements=["f32"], lanes=lanes
    )
    expected = x
    while len(expected) > 1:
        half = len(expected) // 2
        expected = expected[:half] + expected[half:]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("element", ["f32", "f64", "i8", "u16", "i64", "bf16"])
def test_masked_loads_and_stores_touch_nothing_else(element, lanes):
    width = {"bf16": "u2"}.get(element) or NUMPY[element]
    for count in range(lanes + 1):
        x = rng.integers(1, 100, lanes).astype(width)
        y = np.full(lanes, 7, width)

        def body(f, x, y, n, count=count):
            mask = f.first_lanes(lanes, f.load(I64, n))
            mask = f.extract(mask, 0) if lanes == 1 else mask
            f.store(f.load(typed(element, lanes), x, mask), y, mask)

        run(body, x, y, np.array([count]))
        np.testing.assert_array_equal(y, np.where(np.arange(lanes) < count, x, y * 0 + 7))


@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_loops_carry_values_and_may_be_empty(count):
    x = rng.standard_normal(100)
    total = np.full(2, -1.0)

    def body(f, x, n, out):
        zero = f.constant(typed("f64"), 0)

        def step(i, carried):
            v = f.load(typed("f64"), f.at(x, i, "f64"))
            return [carried[0] + v, f.max(carried[1], v)]

        sums = f.loop(0, f.load(I64, n), 1, step, [zero, zero], maybe_empty=True)
        f.store(sums[0], out)
        f.store(sums[1], f.at(out, 1, "f64"))

    run(body, x, np.array([count]), total)
    assert total[0] == sum(x[:count], 0.0)
    assert total[1] == max([0.0, *x[:count]])


def test_a_while_loop_and_branches():
    """Collatz: steps from 27 to 1."""
    found = np.zeros(1, "i8")

    def body(f, out):
        def step(carried):
            n, steps = carried
            odd = f.convert(n & 1, "i1")
            (n,) = f.branch(odd, lambda: [n * 3 + 1], lambda: [f.div(n, 2)])
            return [n, steps + 1]

        start = [f.constant(I64, 27), f.constant(I64, 0)]
        last = f.while_loop(start, lambda c: f.ne(c[0], 1), step)
        f.store(last[1], out)

    run(body, found)
    assert found[0] == 111


def test_tables_gathers_and_the_stack():
    found = np.zeros(8, "f4")

    def body(f, out):
        squares = f.module.table(typed("f32"), [k * k for k in range(8)])
        order = f.vector(typed("i64", 8), [3, 1, 2, 0, 7, 6, 5, 4])
        room = f.allocate(typed("f32"), 8)
        f.store(f.gather(typed("f32", 8), f.at(f.address(squares), order, "f32")), room)
        f.store(f.load(typed("f32", 8), room), out)

    run(body, found)
    np.testing.assert_array_equal(found, np.array([3, 1, 2, 0, 7, 6, 5, 4.0]) ** 2)


def test_functions_of_a_text_call_each_other():
    module = Module()
    main = module.function("main", [("x", I64)], I64)
    main.ret(main.call("twice", I64, main.arguments))
    twice = module.function("twice", [("x", I64)], I64, local=True)
    twice.ret(twice.arguments[0] * 2)
    code = assemble(module.text())
    run_main = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("main"))
    assert run_main(21) == 42


def test_equal_text_is_printed_once_in_a_scope():
    f = Module().function("f", [("x", typed("f32", 8))])
    (x,) = f.arguments
    first, second = x * x + 1, x * x + 1
    assert first is second
    f.loop(0, 8, 1, lambda i, c: [c[0] + i * i], [f.constant(I64, 0)])
    assert sum(" mul " in line for line in f.lines()) == 1


@pytest.mark.parametrize("cpu", ["znver4", "sapphirerapids", "znver3", "x86-64"])
def test_text_for_other_processors_becomes_an_object(cpu):
    target = Host(cpu, frozenset(), 64, 1)
    module = Module(target)
    f = module.function("f", [("x", PTR)])
    (x,) = f.arguments
    v = f.load(typed("f32", 16), x)
    f.store(f.fma(v, f.round(v), f.splat(f.reduce(v, f.maximum), 16)), x, streaming=True)
    f.ret()
    assert len(emit(module.text(), target)) > 500


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 7, 8, 9, 16])
@pytest.mark.parametrize("places", ["i32", "i64"])
@pytest.mark.parametrize("gathers", [True, False])
def test_elements_of_any_number_of_places(lanes, places, gathers):
    """On processors that gather, and one by one."""
    x, found = np.arange(50, dtype="f4") ** 2, np.zeros(lanes, "f4")
    chosen = [(7 * k + 3) % 50 for k in range(lanes)]

    def body(f, table, out):
        f.module.target = replace(f.module.target, vector_bytes=64 if gathers else 32)
        at = f.vector(typed(places, lanes), chosen)
        f.store(f.elements("f32", table, at), out)

    run(body, x, found)
    np.testing.assert_array_equal(found, x[chosen])
