"""The tape of reverse mode: its nodes, how ops come onto it, and how it is walked."""
