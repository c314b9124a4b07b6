"""The micro-kernel of dense arithmetic (`tile.py`), what it multiplies, and how it is fed."""
