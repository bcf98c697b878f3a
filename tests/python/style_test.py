"""ruff and mypy, where they are installed, find nothing in the packages and their tests."""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "python"
EXAMPLES = sorted(f"../{path.relative_to(ROOT)}" for path in ROOT.glob("examples/[ch]*s/*.py"))
RUFF = ["ruff", "check", "--no-cache", "--config", "pyproject.toml"]
MYPY = ["mypy", "--cache-dir", "/dev/null"]
CHECKS = [
    [*RUFF, "kinglet_lm", "../examples/python", "../examples/corpus", "../examples/hosts",
     "../tests/hosts", "../tests/python", "../bench/python_calls"],
    [*RUFF, "--line-length", "120", "../examples/torch", "../tests/examples/torch_modules_test.py",
     "../tests/examples/torch_training_test.py", "../examples/keyboard", "../tests/java",
     "../tests/examples/keyboard_training_test.py"],
    [*MYPY, "--strict", "--config-file", "pyproject.toml", "kinglet_lm",
     "../examples/python/curves.py", *EXAMPLES],
    [*MYPY, "--config-file", "", "--ignore-missing-imports", "--check-untyped-defs",
     "../examples/torch/kinglet_torch"],
]


def main():
    missing = [name for name in ("ruff", "mypy") if shutil.which(name) is None]
    for check in CHECKS:
        if check[0] not in missing:
            done = subprocess.run(check, cwd=PYTHON, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{' '.join(check)}:\n{done.stdout}{done.stderr}")
            print(f"{check[0]}: nothing")
    if missing:
        print(f"not run, not installed: {', '.join(missing)} (pip install ruff mypy)")
    return 77 if len(missing) == 2 else 0


if __name__ == "__main__":
    sys.exit(main())
