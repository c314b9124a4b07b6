"""Elements at places that are data: gathered, combined, packed, repeated."""
