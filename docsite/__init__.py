"""The documentation site: assembled from the repository's Markdown, built strictly, fetching nothing.

``python -m docsite build`` makes it, ``python -m docsite write`` fills the generated parts of the pages.
Nothing of this is part of the package that users install.
"""
