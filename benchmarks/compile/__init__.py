"""Compiled workloads, for funct and its peers."""
