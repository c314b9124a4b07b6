"""Random bits of counters, and draws that are made of them."""
