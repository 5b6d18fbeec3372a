"""Atomic files, locks, cores, provenance: what every room may use and that uses none of them."""
