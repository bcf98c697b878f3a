"""Integrations: kinglet models in programs that people already run.

Each module imports its host when it is imported itself. If the host is missing or has changed, the
error names the package to install. docs/hosts has a page for each.
"""
