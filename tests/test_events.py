"""FUNCT_LOG: stages of the compiler tell what they do, and cost nothing while nobody listens."""

import logging
import os
import re
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import funct as ft
import funct.array as xp
from funct import events

PROGRAM = "import funct as ft, funct.array as xp; f = ft.jit(lambda x: xp.sin(x) * 2.0); f(xp.ones(3)); ft.grad(lambda x: xp.sum(f(x)))(xp.ones(3))"  # fmt: skip # noqa: E501


LARGE = """
x = xp.ones((300, 300))
ft.jit(lambda x: (xp.sort(x @ (xp.sin(x) * 2.0)), xp.sin(x) - 1.0))(x)
"""


def run(stages: str) -> str:
    """What a program writes to standard error under FUNCT_LOG."""
    environment = {**os.environ, "FUNCT_LOG": stages, "FUNCT_CACHE_DIR": ""}
    program = [sys.executable, "-c", PROGRAM + LARGE]
    done = subprocess.run(program, check=True, capture_output=True, text=True, env=environment)
    return done.stderr


def test_the_variable_turns_stages_on() -> None:
    """Stages that are named are told, others are not; a wrong name is answered with the names."""
    graph = run("graph")
    assert "funct.graph: jit(<lambda>):" in graph
    assert "= sin(x0)" in graph
    assert "halves keep" in graph
    assert "funct.cache" not in graph
    cache = run("cache")
    assert "funct.cache: jit(<lambda>): compilation 1: first call" in cache
    assert "funct.graph" not in cache
    fusion, loops, code = run("fusion"), run("loops"), run("code")
    assert "funct.fusion: 90000: sin, multiply, subtract\n" in fusion
    assert "matmul: tiles or BLAS compute it, within the same program" in fusion
    assert "sort: " in fusion
    assert "1 rows, 90000 columns" in loops
    assert "product (300, 300) @ (300, 300)" in loops
    assert re.search(r"funct.code: kernel\d.*: \d+ bytes in \d+\.\d ms", code)
    everything = run("all")
    assert "funct.graph" in everything
    assert "funct.cache" in everything
    assert "no stage 'grap'; there is all, graph, loops, fusion, code, cache" in run("grap")
    assert run("") == ""


def test_programs_may_listen_by_logging(caplog: Any) -> None:
    """The stages are loggers of the standard library; texts are made only for listeners."""
    # other libraries' logging.config calls turn off whatever loggers they find
    logging.getLogger("funct.graph").disabled = False
    with caplog.at_level(logging.DEBUG, logger="funct.graph"):
        ft.jit(xp.cos)(xp.ones(2))
    assert any("= cos(x0)" in r.getMessage() for r in caplog.records)

    def unwanted() -> str:
        pytest.fail("nobody listens")

    events.tell("loops", unwanted)


def test_import_does_not_load_logging() -> None:
    """`import funct` does not pay for a variable that is seldom set."""
    code = "import sys; had = 'logging' in sys.modules; import funct; print(had or 'logging' not in sys.modules)"  # fmt: skip # noqa: E501
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "True"


def test_what_happens_while_another_thread_imports_logging_is_told_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A module in the middle of its import stands in `sys.modules` already, and has nothing yet."""
    monkeypatch.setitem(sys.modules, "logging", ModuleType("logging"))
    events.tell("code", lambda: pytest.fail("nobody listens"))
