"""The paper's experiments: its numbers, and what reproduces them."""
