"""What a program calls besides fused loops, and the machine code that walks from call to call."""
