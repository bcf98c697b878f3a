"""The package binds every function and structure of the C headers.

    binding_test.py        (PYTHONPATH, KINGLET_LIBRARY: the package and library)
"""

import ctypes
import runpy

from kinglet_lm import _interface, _native
from support import ROOT


def main():
    tables = runpy.run_path(str(ROOT / "python" / "interface.py"))["tables"]()
    assert len(tables["FUNCTIONS"]) > 60
    for name, value in tables.items():
        assert getattr(_interface, name) == value, (
            f"{name}: run python/interface.py python/kinglet_lm/_interface.py")
    for name in _interface.FUNCTIONS:
        assert getattr(_native.lib, f"kinglet_{name}").argtypes is not None, name
    structures = {name.split(".")[0].title().replace("_", "") for name in _interface.FIELDS}
    bound = {kind.__name__ for kind in vars(_native).values()
             if isinstance(kind, type) and issubclass(kind, ctypes.Structure)}
    assert bound == structures, bound ^ structures
    print(f"{len(_interface.FUNCTIONS)} functions and {len(bound)} structures as in the headers")


main()
