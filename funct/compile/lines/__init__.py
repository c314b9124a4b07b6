"""Small bodies of loops as lines: each a vector in registers, or a place in memory."""
