"""The function that a kernel's caller calls: it deals a job out to the threads' tasks.

For kernels whose job is a `Record` with a field `tasks`.
"""

from __future__ import annotations

from collections.abc import Callable

from funct.device import PARALLEL
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.llvm import I64, PTR, Emitter, Module, Value, each

__all__ = ["Units", "deal_out", "deal_out_units"]

Units = tuple[Value, Callable[[Value], None]]  # how many, and what prints one


Behind = Callable[[Emitter, Record], None]  # what prints what is done after all of them


def deal_out(
    module: Module, name: str, work: str, fields: Fields, behind: Behind | None = None
) -> None:
    """Define `name(job)`, which runs `work(job, task)` for each of the job's tasks."""
    module.declare("@funct_parallel", PARALLEL)
    f = module.function(name, [("job", PTR)])
    (job,) = f.arguments
    record = Record(f, fields, job)
    f.line(f"call void @funct_parallel(ptr @{work}, {job!r}, {record.tasks!r})")
    if behind is not None:
        behind(f, record)
    f.ret()


def deal_out_units(
    module: Module,
    name: str,
    fields: Fields,
    units: Callable[[Emitter, Record], Units],
    behind: Behind | None = None,
) -> None:
    """Define `name(job)` for a job of units that do not wait for each other: each task does some
    that follow each other. What `units(f, job)` reads of the job is read once for each task.
    """
    f = module.function("units", [("job", PTR), ("task", I64)], local=True)
    job, task = Record(f, fields, f.arguments[0]), f.arguments[1]
    count, unit = units(f, job)
    tasks = job.tasks
    each(f, f.div(task * count, tasks), f.div((task + 1) * count, tasks), unit)
    f.ret()
    deal_out(module, name, "units", fields, behind)
