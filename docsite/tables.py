"""The generated parts of pages, by name."""

from docsite.blocks import Generator

GENERATORS: dict[str, Generator] = {}
