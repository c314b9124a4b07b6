"""From nodes of a graph to kernels: which share their loops, and what is worth machine code."""
