"""Random bits from keys and counters, and the numbers made of them."""
