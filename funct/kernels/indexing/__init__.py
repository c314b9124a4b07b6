"""Elements at places: taken, changed, repeated; plain, or in machine code (`cpu/indexing`)."""
