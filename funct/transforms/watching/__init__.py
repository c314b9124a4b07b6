"""Levels that let every op pass: intercepting, hooks, saved values, anomalies, pictures."""
