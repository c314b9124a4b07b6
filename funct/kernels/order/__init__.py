"""Sorting, searching, sets and counting: plain, or in machine code (`cpu/order`)."""
