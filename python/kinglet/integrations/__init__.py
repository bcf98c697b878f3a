"""Integrations: kinglet models in programs that people already run.

Each module imports its host when it is imported itself, and says what to install where the host is
missing or has changed. docs/hosts has a page for each.
"""
