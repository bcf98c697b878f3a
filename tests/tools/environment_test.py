"""A library that changes the float environment before main changes no byte of the command's output.

    environment_test.py ROOT KINGLET LIBRARY
"""

import os
import pathlib
import subprocess
import sys
import tempfile


def outcomes(root: str, kinglet: str, environment: dict[str, str]) -> list[bytes]:
    data = f"{root}/tests/data/kinglet-torch/full"
    tokens = f"{data}/tokens.txt"
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model.kgl"

        def run(*arguments: str) -> bytes:
            return subprocess.run([kinglet, *arguments], cwd=folder, env=environment, check=True,
                                  capture_output=True).stdout

        run("convert", f"{data}/model.pt", "-o", model, "--bits", "5")
        return [pathlib.Path(model).read_bytes(),
                run("score", model, "--ids", tokens, "--json", "--hex"),
                run("generate", model, "--tokens", "30", "--threads", "2", "--ids", tokens)]


def main() -> int:
    root, kinglet, library = sys.argv[1:]
    usual = outcomes(root, kinglet, dict(os.environ))
    odd = outcomes(root, kinglet, dict(os.environ, LD_PRELOAD=library))
    for what, a, b in zip(("the model", "the scores", "the text"), usual, odd):
        if a != b:
            print(f"{what}: expected the same bytes, found {b!r} in place of {a!r}")
    return 0 if usual == odd else 1


if __name__ == "__main__":
    sys.exit(main())
