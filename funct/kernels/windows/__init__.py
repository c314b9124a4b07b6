"""Sliding windows: convolution and pooling, plain or by products of matrices."""
