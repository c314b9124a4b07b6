"""Convolution and integer products: one micro-kernel (`tile.py`) under loops of bands and lines."""
