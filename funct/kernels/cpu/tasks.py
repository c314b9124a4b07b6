"""The function that a kernel's caller calls: it deals a job out to the threads' tasks.

For kernels whose job is a `Record` with a field `tasks`.
"""

from __future__ import annotations

from funct.device import PARALLEL
from funct.kernels.cpu.record import Fields, Record
from funct.kernels.llvm import PTR, Module

__all__ = ["deal_out"]


def deal_out(module: Module, name: str, work: str, fields: Fields) -> None:
    """Define `name(job)`, which runs `work(job, task)` for each of the job's tasks."""
    module.declare("@funct_parallel", PARALLEL)
    f = module.function(name, [("job", PTR)])
    (job,) = f.arguments
    f.line(f"call void @funct_parallel(ptr @{work}, {job!r}, {Record(f, fields, job).tasks!r})")
    f.ret()
