"""Milliseconds to import, each in a process of its own, in turn; from bytecode, as installed."""

import os
import subprocess
import sys
import time

from benchmarks.peers import optional
from benchmarks.timing import table

ROUNDS = 7


def seconds(statement: str) -> float:
    """Wall time of a fresh interpreter that runs one statement."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True, env=env)
    return time.perf_counter() - start


def run() -> str:
    """Import time over that of an empty interpreter."""
    names = {"funct": "funct", "numpy": "numpy"}
    names |= {n: n for n in ("torch", "autograd", "jax") if optional(n) is not None}
    best = dict.fromkeys(["", *names], float("inf"))
    for _ in range(ROUNDS):
        for name in best:
            best[name] = min(best[name], seconds(f"import {names[name]}" if name else "pass"))
    row = {name: (best[name] - best[""]) * 1e3 for name in names}
    return table("import", {"import": row}, "ms")
