"""The library of the preset `small`, where it is built, against the ordinary one.

    small_library_test.py SMALL ORDINARY SOURCE_DIR COMMAND C_COMPILER STRIP

Its size is what docs/INSTALL.md states; it scores bundled models bit for bit alike; it refuses what it
leaves out, with the next step; and a program that opens the demo model needs little memory.
"""

import os
import pathlib
import re
import sys
import tempfile

from install_test import STRICT_C, expect, run

LARGEST = 1_400_000  # bytes of the stripped library
MOST_MEMORY = 5_000_000  # bytes that the program's own memory grows by
LEFT_OUT = "built with KINGLET_SMALL: use a library built without it"


def check_size(small: pathlib.Path, strip: str, source: pathlib.Path, work: pathlib.Path) -> None:
    stripped = work / "stripped.so"
    run(strip, "-o", stripped, small)
    size = stripped.stat().st_size
    print(f"stripped: {size} bytes")
    expect(size <= LARGEST, f"expected at most {LARGEST} bytes, found {size}")
    page = (source / "docs" / "INSTALL.md").read_text()
    stated = re.search(r"\| x86-64 \| ([\d,]+) \|", page)
    expect(stated is not None, "docs/INSTALL.md: expected a row x86-64 with a size, found none")
    documented = int(stated.group(1).replace(",", ""))
    expect(abs(size - documented) <= documented // 50,
           f"docs/INSTALL.md: expected {size} bytes within 2 %, found {documented}")


def main() -> int:
    small, ordinary, source, command, compiler, strip = sys.argv[1:]
    if not pathlib.Path(small).exists():
        print(f"{small} is not built: cmake --preset small && cmake --build --preset small")
        return 77
    os.sync()  # pages of a library that is not on the disk yet would count as the program's
    root = pathlib.Path(source)
    demo = root / "examples" / "wikitext2"
    data = root / "tests" / "data"
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        check_size(pathlib.Path(small), strip, root, work)

        programs = {}
        for name, library in (("small", small), ("ordinary", ordinary)):
            programs[name] = work / name
            run(compiler, *STRICT_C, root / "tests" / "install" / "small_library.c", "-I", root / "include",
                library, f"-Wl,-rpath,{pathlib.Path(library).parent}", "-o", programs[name])

        def answer(library: str, *arguments: object, target: str = "") -> list[str]:
            return run(programs[library], *arguments, KINGLET_CPU=target).splitlines()

        text = demo / "passage.txt"
        models = []
        for name, options in (("9-bit", ("--bits", "9", "--calibrate", demo / "calibration.txt")),
                              ("4-bit", ("--bits", "4")), ("float", ())):
            models.append(work / f"{name}.kgl")
            run(command, "convert", demo, "--vocab", demo / "vocab.txt", "--tokenizer", "wikitext", *options,
                "-o", models[-1])
        targets = ["scalar"]
        if "avx2" in run("cat", "/proc/cpuinfo"):
            targets.append("avx2")
        for model in models:
            for target in targets:
                found, expected = (answer(name, model, text, target=target) for name in ("small", "ordinary"))
                expect(len(found) > 100 and found[:-1] == expected[:-1],
                       f"{model.name}, {target}: expected the ordinary library's log-probabilities")
        grown = 1024 * int(re.search(r"grown (-?\d+) kB", answer("small", models[0], text)[-1]).group(1))
        print(f"private memory: {grown} bytes more than before the model was opened")
        expect(grown <= MOST_MEMORY, f"expected at most {MOST_MEMORY} bytes, found {grown}")

        for found, fixture in (("transformer_encoder", "opennmt/plain"), ("masked_model", "bert/classifier-1"),
                               ("recurrent_encoder", "opennmt-recurrent/rnn-lstm-dot")):
            model = work / f"{found}.kgl"
            run(command, "convert", data / fixture, "-o", model)
            message = run("sh", "-c", '"$@" || true', "sh", programs["small"], model, text)
            expect(f"KINGLET_UNSUPPORTED: {model}: block " in message and found + "; " + LEFT_OUT in message,
                   f"{fixture}: expected a refusal, found {message}")
        for backend in ("ref64", "onednn", "archives"):
            message = run("sh", "-c", '"$@" || true', "sh", programs["small"], models[0], text, backend)
            expect("KINGLET_UNSUPPORTED" in message and LEFT_OUT in message, f"{backend}: found {message}")
        answers = run(programs["small"], models[0], text, "omitted").splitlines()
        headers = "".join((root / "include" / "kinglet" / name).read_text() for name in ("typing.h", "beam.h"))
        named = re.findall(r"KINGLET_API kinglet_status\s+(\w+)\(", headers) + ["kinglet_session_score_tree"]
        named = sorted(name for name in named if not name.endswith("_init"))
        expect(sorted(line.split(": ")[1].split()[-1] for line in answers) == named,
               f"expected an answer that names itself of each of {named}, found {answers}")
        expect(all(line.startswith("KINGLET_UNSUPPORTED") and LEFT_OUT in line for line in answers),
               f"omitted: {answers}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
