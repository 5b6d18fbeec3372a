"""Helpers of several test files: slow references, small networks, tiny runs."""
