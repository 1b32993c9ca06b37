"""A stream that goes on and on: whether lag and memory stay where they are (`make soak`)."""
