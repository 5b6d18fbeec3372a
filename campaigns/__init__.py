"""Campaigns: thousands of hostile inputs and kills against the real commands, each in its own process.

``python -m campaigns all`` (or ``make campaign``) runs them. A case is a pure function of its seed; every
violation is printed with the command that brings it back.
"""
