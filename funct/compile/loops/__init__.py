"""The Loop IR: what a kernel computes at each element, its walks along rows, its text for LLVM."""
