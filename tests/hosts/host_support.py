"""Common code of the tests of hosts. A test without its host is skipped, with a reason."""

import importlib
import importlib.metadata
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "examples" / "hosts")]
_python = importlib.util.spec_from_file_location("python_support",
                                                 ROOT / "tests" / "python" / "support.py")
_module = importlib.util.module_from_spec(_python)
_python.loader.exec_module(_module)
DATA, DEMO, demo, refused = _module.DATA, _module.DEMO, _module.demo, _module.refused

SKIPPED = 77  # ctest's exit status for a skipped test
PASSAGE = DEMO / "passage.txt"


def needs(*modules):
    """Ends the test where one of its host's modules is not installed."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            print(f"not run: {error} (scripts/test --hosts makes an environment for each host)")
            sys.exit(SKIPPED)


def versions(*packages):
    """The names and versions of the tested packages, for the log."""
    report = [f"Python {sys.version.split()[0]}"]
    for package in packages:
        try:
            report.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            report.append(f"{package} {getattr(sys.modules.get(package), '__version__', '?')}")
    return ", ".join(report)


def checkpoint(name):
    """A folder of the real checkpoints in KINGLET_CHECKPOINTS, or None."""
    place = os.environ.get("KINGLET_CHECKPOINTS")
    folder = pathlib.Path(place or ".") / name
    return folder if place and folder.exists() else None
