"""Links the static library of an installed build, by CMake and by pkg-config, with a C compiler.

    static_library_test.py BUILD_DIR SOURCE_DIR LIBDIR CMAKE PKG_CONFIG C_COMPILER COMMAND

The programs find all that they need in the package: no library of this project is loaded when they
run, and their figures are those of COMMAND, another build's.
"""

import json
import pathlib
import re
import sys
import tempfile

from install_test import STRICT_C, expect, run


def main():
    build, source, libdir, cmake, pkg_config, compiler, command = sys.argv[1:]
    demo = pathlib.Path(source) / "examples" / "wikitext2"
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        prefix = work / "prefix"
        run(cmake, "--install", build, "--prefix", prefix)
        lib = prefix / libdir
        found = sorted(path.name for path in lib.glob("libkinglet*"))
        expect(found == ["libkinglet.a"], f"expected libkinglet.a, found {found}")

        model, text = work / "model.kgl", work / "text.txt"
        run(command, "convert", demo, "--vocab", demo / "vocab.txt", "--bits", "9", "-o", model)
        text.write_bytes((demo / "passage.txt").read_bytes()[:400])
        nll = json.loads(run(command, "score", model, "--text", text, "--json").splitlines()[-1])["nll"]

        examples = work / "examples"
        examples.mkdir()
        for name in ("stream.c", "beam.c", "keyboard.c", "CMakeLists.txt"):
            (examples / name).write_bytes((demo.parent / name).read_bytes())
        run(cmake, "-G", "Ninja", "-S", examples, "-B", work / "build",
            f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={prefix}")
        run(cmake, "--build", work / "build")
        package = run(pkg_config, "--cflags", "--libs", "kinglet",
                      PKG_CONFIG_PATH=str(lib / "pkgconfig")).split()
        run(compiler, *STRICT_C, examples / "stream.c", "-o", work / "stream", *package, "-lm")

        for program in (work / "build" / "stream", work / "stream"):
            expect("libkinglet" not in run("ldd", program), f"{program} loads libkinglet")
            mean = re.search(r"mean negative log-likelihood ([0-9.]+)", run(program, model, text))
            expect(mean and abs(float(mean[1]) - nll) < 1e-4, f"{program}: {mean and mean[1]}, {nll}")
        print(f"mean negative log-likelihood {nll}: both programs and the command agree")


if __name__ == "__main__":
    main()
