"""Build the wheel and the sdist, and check them as a user would meet them: ``make release-check``."""
