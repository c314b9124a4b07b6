"""Layers on codes, and numbers times weights of few bits."""
