"""Convolution and its adjoints: tiles under loops of bands and squares of pixels, and lines."""
