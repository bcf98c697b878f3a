"""What Python's wheel contains where it takes a library that is built: the same bytes, and nothing compiled.

    built_wheel_test.py BUILD_DIR SOURCE_DIR CMAKE

CMake is run as the wheel's backend runs it (python/pyproject.toml).
"""

import pathlib
import subprocess
import sys
import tempfile

from install_test import expect, run


def main() -> None:
    build, source, cmake = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        configure = [cmake, "-G", "Ninja", "-S", source, "-B", work / "build", "-DSKBUILD=2",
                     "-DSKBUILD_SCRIPTS_DIR=scripts", "-DKINGLET_DEVELOPER_MODE=OFF", "-DKINGLET_CUDA=OFF"]
        run(*configure, f"-DKINGLET_BUILT={build}")
        run(cmake, "--build", work / "build", "--target", "kinglet", "kinglet_command")
        run(cmake, "--install", work / "build", "--component", "python", "--prefix", work / "wheel")
        for installed, built in (("kinglet_lm/libkinglet.so", "libkinglet.so"), ("scripts/kinglet", "bin/kinglet")):
            expect((work / "wheel" / installed).read_bytes() == (pathlib.Path(build) / built).read_bytes(),
                   f"{installed}: expected the bytes of {built}")
        objects = list((work / "build").rglob("*.o"))
        expect(not [name for name in objects if "CMakeScratch" not in str(name)], f"expected no objects, found {objects}")

        failed = subprocess.run([*map(str, configure), f"-DKINGLET_BUILT={work}"], capture_output=True, text=True, check=False)
        expect(failed.returncode != 0 and "found one of them missing" in " ".join(failed.stderr.split()),
               f"expected a refusal of a folder without a library, found {failed.stderr}")


if __name__ == "__main__":
    main()
