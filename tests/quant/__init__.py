"""Quantization: observers, folding, and equality with onnxruntime."""
