"""Run families of benchmarks, or parts of them, and print their tables."""

import os
import platform
import sys

from benchmarks import (
    bodies,
    calls,
    compiled,
    eager,
    few,
    imports,
    kernels,
    kinds,
    loops,
    namespace,
    small,
    transforms,
)

FAMILIES = {
    "imports": imports.run, "eager": eager.run, "compiled": compiled.run, "calls": calls.run,
    "kernels": kernels.run, "namespace": namespace.run, "transforms": transforms.run,
    "loops": loops.run, "bodies": bodies.run, "kinds": kinds.run, "small": small.run,
    "few": few.run,
}  # fmt: skip
PARTS = kernels.PARTS  # of what takes minutes


def main(names: list[str]) -> None:
    """Run the named families and parts (`kernels.draws`), or all families."""
    for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        if variable in os.environ:
            print(f"note: {variable} is set and changes the speed of NumPy; unset it")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}\n")
    for name in names or FAMILIES:
        given = {**FAMILIES, **PARTS}[name]()
        for line in [given, ""] if isinstance(given, str) else given:
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
