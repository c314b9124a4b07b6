"""Reductions and scans along axes: plain, or in machine code (`cpu/reductions`)."""
