"""Kernels whose places are data: sorting, scans, gathers, counts, sparse rows, windows, bits."""
