"""Imports of the host programs of integrations."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any


def host(module: str, package: str, tested: str, *names: str) -> Any:
    """Imports a module of a host, which must have these names.

    `tested` is the version that the integration was tested with. ImportError names the next step.
    """
    install = f"pip install '{package}=={tested}'"
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        version = _version(package)
        raise ImportError(
            f"kinglet_lm.integrations: {module}: expected {package} {tested}, found "
            + (f"none; {install}" if version is None
               else f"{package} {version}, which fails: {error}; {install}"),
            name=module) from error
    for name in names:
        if not hasattr(found, name):
            raise ImportError(
                f"kinglet_lm.integrations: {module}: expected {name}, which {package} {tested} "
                f"has, found {package} {_version(package) or 'of no version'} without; {install}",
                name=module)
    return found


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package.partition("[")[0])
    except importlib.metadata.PackageNotFoundError:
        return None


__all__ = ["host"]
