"""Fourier transforms in machine code: many lines at a time (`lines.py`, `line_text.py`)."""
