"""docs/PYTHON.md shows the output of Python; the reference is that of the docstrings; the
example prints its curves; the import is quick (processor's time: the machine may be busy).

    documentation_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

import doctest
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import kinglet_lm
from support import ROOT


def tour(folder):
    """The blocks of the page, in a folder that has the examples."""
    page = ROOT / "docs" / "PYTHON.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    os.symlink(ROOT / "examples", f"{folder}/examples")
    os.symlink(ROOT / "tests" / "python" / "tiny.arpa", f"{folder}/tiny.arpa")
    before = os.getcwd()
    os.chdir(folder)
    try:
        test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "PYTHON.md", str(page), 0)
        failed, tried = doctest.DocTestRunner().run(test)
    finally:
        os.chdir(before)
    assert tried > 20 and failed == 0, f"{failed} of {tried} examples"
    return tried


def reference():
    path = ROOT / "python" / "reference.py"
    spec = importlib.util.spec_from_file_location("reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "PYTHON_REFERENCE.md").read_text()
    # Each version of Python spells annotations differently.
    spelt = [re.sub(r"[\"']|kinglet_lm\.\w+\.(?=[A-Z])", "", text)
             for text in (page, module.page())]
    if sys.version_info[:2] == (3, 11):
        assert spelt[0] == spelt[1], "run python/reference.py docs/PYTHON_REFERENCE.md"
    for name in kinglet_lm.__all__:
        assert f"kinglet_lm.{name}" in page, name
        value = getattr(kinglet_lm, name)
        assert not callable(value) or value.__doc__, name


def curves(folder):
    """The example prints its curves; draws them if matplotlib is installed."""
    words = [sys.executable, "-B", ROOT / "examples" / "python" / "curves.py",
             f"{folder}/demo.kgl", ROOT / "examples" / "wikitext2" / "typed.txt"]
    picture = pathlib.Path(folder) / "curves.png"
    if importlib.util.find_spec("matplotlib") is not None:
        words.append(picture)
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "microseconds a step" in out and "to 100" in out, out
    if picture in words:
        drawn = picture.read_bytes()
        assert drawn.startswith(b"\x89PNG") and len(drawn) > 10_000, len(drawn)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tried = tour(folder)
        curves(folder)
    reference()
    seconds = min(
        float(subprocess.run(
            [sys.executable, "-c", "import time; t = time.process_time(); import kinglet_lm; "
             "print(time.process_time() - t)"], capture_output=True, check=True).stdout)
        for _ in range(5))
    assert seconds < 0.1, f"import: expected under 0.1 s, found {seconds:.3f}"
    print(f"{tried} examples of the page; import {seconds * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
