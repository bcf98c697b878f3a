"""ruff and mypy --strict, where they are installed, find nothing in the package and its tests."""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "python"
EXAMPLES = sorted(f"../{path.relative_to(ROOT)}" for path in ROOT.glob("examples/[ch]*s/*.py"))
CHECKS = {
    "ruff": ["check", "--no-cache", "--config", "pyproject.toml", "kinglet_lm",
             "../examples/python", "../examples/corpus", "../examples/hosts", "../tests/hosts",
             "../tests/python", "../bench/python_calls"],
    "mypy": ["--strict", "--cache-dir", "/dev/null", "--config-file", "pyproject.toml",
             "kinglet_lm", "../examples/python/curves.py", *EXAMPLES],
}


def main():
    missing = [name for name in CHECKS if shutil.which(name) is None]
    for name, arguments in CHECKS.items():
        if name not in missing:
            done = subprocess.run([name, *arguments], cwd=PYTHON, capture_output=True, text=True,
                                  check=False)
            if done.returncode != 0:
                sys.exit(f"{name}:\n{done.stdout}{done.stderr}")
            print(f"{name}: nothing")
    if missing:
        print(f"not run, not installed: {', '.join(missing)} (pip install ruff mypy)")
    return 77 if len(missing) == len(CHECKS) else 0


if __name__ == "__main__":
    sys.exit(main())
