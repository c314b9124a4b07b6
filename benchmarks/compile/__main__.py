"""Time the compiled workloads for funct and its peers, side by side in one run.

    python -m benchmarks.compile                                  every workload
    python -m benchmarks.compile mlp_step gpt_step                some
    python -m benchmarks.compile gpt_checkpoint --of funct,jax    the step that keeps less
    python -m benchmarks.compile gpt_budget --of funct            and by the compiler's choice
    python -m benchmarks.compile --of funct,jax --rounds 3 --threads 1
    python -m benchmarks.compile --of funct --cache FOLDER        twice: cold and warm first calls

Each framework and workload runs in a process of its own, in turn, so drift of the machine falls on
all. Printed are the least milliseconds of a call, the seconds of the first one (trace and compile),
what that takes longer than one whose results lie in new memory too (funct keeps memory between
calls, which the system hands out slowly), the peak memory, and the ratios to the better peer.
Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import importlib.util
import json
import math
import os
import resource
import subprocess
import sys
import time
from typing import Any

WORKS = ("black_scholes", "softmax_layernorm", "mlp_step", "gpt_step", "cnn_step")
FRAMEWORKS = ("funct", "jax", "torch")
SECONDS = 6.0  # of calls, after the first: what settles meanwhile is not measured


def one(framework: str, work: str) -> dict[str, float]:
    """First call and least later call of one workload, in this process."""
    module = importlib.import_module(f"benchmarks.compile.work_{framework}")
    run = module.WORK[work]()
    start = time.perf_counter()
    run()
    first = time.perf_counter() - start
    run()
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    forget = getattr(module, "forget", None)
    anew: list[float] = []
    while forget and len(anew) < 5:
        forget()
        start = time.perf_counter()
        run()
        anew.append(time.perf_counter() - start)
    more = first - min(anew or times)
    return {"ms": min(times) * 1e3, "first": first, "more": more, "mb": peak}


def measure(framework: str, work: str, threads: int | None, cache: str) -> dict[str, float] | None:
    """The same in a process of its own; None where it fails."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    kept |= {"JAX_PLATFORMS": "cpu", "FUNCT_CACHE_DIR": cache}
    command = [sys.executable, "-m", "benchmarks.compile", "--one", framework, work]
    if threads is not None:
        kept["OMP_NUM_THREADS"] = str(threads)  # funct counts the cores that taskset leaves
        command = ["taskset", "-c", f"0-{threads - 1}", *command]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{framework} {work}: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
        return None
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def compare(
    works: list[str], frameworks: list[str], rounds: int, threads: int | None, cache: str
) -> str:
    """The table of all of them."""
    lines = [
        f"{'':20s}"
        + "".join(f"{f + ' ms':>12s}{'first s':>9s}{'more s':>8s}{'MB':>7s}" for f in frameworks)
    ]
    ratios: dict[str, list[float]] = {"ms": [], "first": []}
    for work in works:
        best: dict[str, dict[str, float]] = {}
        for _ in range(rounds):
            for framework in frameworks:
                found = measure(framework, work, threads, cache)
                if found is not None:
                    held = best.setdefault(framework, found)
                    best[framework] = {k: min(held[k], v) for k, v in found.items()}
        cells = ""
        for framework in frameworks:
            r = best.get(framework)
            cells += (
                f"{r['ms']:12.2f}{r['first']:9.3f}{r['more']:8.3f}{r['mb']:7.0f}" if r else " " * 36
            )
        for key, held_ratios in ratios.items():
            peers = [r[key] for f, r in best.items() if f != "funct"]
            if "funct" in best and peers:
                held_ratios.append(best["funct"][key] / min(peers))
                cells += f"   {key} x {held_ratios[-1]:.2f}"
        lines.append(f"{work:20s}{cells}")
        print(lines[-1], flush=True)
    for key, found_ratios in ratios.items():
        if found_ratios:
            mean = math.exp(sum(map(math.log, found_ratios)) / len(found_ratios))
            lines.append(f"geometric mean of the ratios to the better peer, {key}: {mean:.2f}")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Read the command line and run."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(one(*arguments[1:3])))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile")
    parser.add_argument("works", nargs="*", default=list(WORKS), help=", ".join(WORKS))
    parser.add_argument("--of", default=",".join(FRAMEWORKS), help="frameworks, with commas")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=None, help="processors to run on")
    parser.add_argument("--cache", default="", help="where funct keeps code; nowhere without")
    given: Any = parser.parse_args(arguments)
    here = importlib.util.find_spec("funct")
    for folder in (here and here.submodule_search_locations) or ():
        compileall.compile_dir(folder, quiet=1)  # as the peers were when they were installed
    there = [f for f in given.of.split(",") if importlib.util.find_spec(f) is not None]
    print("\n" + compare(given.works, there, given.rounds, given.threads, given.cache))


if __name__ == "__main__":
    main(sys.argv[1:])
