"""What a program holds and when: its order, its places, and what is made again instead of kept."""
