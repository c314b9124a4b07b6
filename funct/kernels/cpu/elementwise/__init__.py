"""Functions of elements on large arrays: loops in vectors and threads, tables of bytes, casts."""
