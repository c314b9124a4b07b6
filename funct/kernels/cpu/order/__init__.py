"""Sorting, searching and counting: what is done with the order of elements."""
