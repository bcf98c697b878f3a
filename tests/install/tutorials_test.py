"""README.md, docs/C.md and docs/CPP.md, as printed, against an installed kinglet.

    tutorials_test.py BUILD_DIR SOURCE_DIR LIBDIR CMAKE COMMAND C_COMPILER CXX_COMPILER

Each page is one program: its blocks in order. The page's lines compile and run it in a folder that has what
`scripts/demo` makes; so does its CMake project. What the program prints is the page's blocks of text.
"""

import os
import pathlib
import re
import sys
import tempfile

from install_test import STRICT_C, STRICT_CXX, expect, run


def blocks(page: str, language: str) -> str:
    return "".join(re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))


def check_page(source: pathlib.Path, name: str, language: str, libdir: str, cmake: str, strict: list[str]) -> None:
    file = {"c": "tour.c", "cpp": "tour.cc"}[language]
    page = (source / "docs" / name).read_text()
    expected = blocks(page, "text")
    pathlib.Path(file).write_text(blocks(page, language))
    found = run("sh", "-e", "-c", blocks(page, "sh").replace("/lib", "/" + libdir))
    expect(found == expected, f"{name}: expected\n{expected}\nfound\n{found}")
    run(*strict, "-fsyntax-only", "-I", source / "include", file)

    pathlib.Path("CMakeLists.txt").write_text(blocks(page, "cmake"))
    build = f"cmake-{language}"
    run(cmake, "-G", "Ninja", "-S", ".", "-B", build, f"-DCMAKE_PREFIX_PATH={os.getcwd()}/build/demo/prefix")
    run(cmake, "--build", build)
    found = run(f"{build}/tour")
    expect(found == expected, f"{name}, built by CMake: expected\n{expected}\nfound\n{found}")
    print(f"{name}: {found.count(chr(10))} lines as printed")


def check_readme(source: pathlib.Path, libdir: str) -> None:
    page = (source / "README.md").read_text()
    excerpt = blocks(page, "text")
    commands, compile_lines = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    demo, commands = commands.split("\n", 1)
    expect(demo == "./scripts/demo" and (source / demo).exists(), f"README.md: expected ./scripts/demo first, found {demo}")
    os.symlink(source / "examples", "examples")
    found = run("sh", "-e", "-c", commands, LC_ALL="C.UTF-8")
    expect("\nperplexity    50.69" in found, f"README.md: score: expected perplexity 50.69, found\n{found[-2000:]}")
    expect(os.path.getsize("r.html") > 100000, "README.md: expected a page r.html")
    three = run("sh", "-e", "-c", "PATH=$PWD/build/demo/prefix/bin:$PATH kinglet predict m.kgl --top 3 < examples/wikitext2/passage.txt",
                LC_ALL="C.UTF-8")
    expect(excerpt in re.sub(" +$", "", three, flags=re.MULTILINE), f"README.md: predict: expected\n{excerpt}")
    pathlib.Path("next.c").write_text(blocks(page, "c"))
    pathlib.Path("next.cc").write_text(blocks(page, "cpp"))
    found = run("sh", "-e", "-c", compile_lines.replace("/lib", "/" + libdir))
    expect(found == "States\nStates\n", f"README.md: expected States from C and C++, found {found}")
    print("README.md: commands, excerpt and programs as printed")


def main() -> None:
    build, source, libdir, cmake, command, c_compiler, cxx_compiler = sys.argv[1:]
    root = pathlib.Path(source)
    demo = root / "examples" / "wikitext2"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for component in ("runtime", "development", "command"):
            run(cmake, "--install", build, "--prefix", "build/demo/prefix", "--component", component)
        run(command, "convert", demo, "--vocab", demo / "vocab.txt", "--tokenizer", "wikitext", "--bits", "9",
            "--calibrate", demo / "calibration.txt", "-o", "build/demo/9bit.kgl")
        check_page(root, "C.md", "c", libdir, cmake, [c_compiler, *STRICT_C])
        check_page(root, "CPP.md", "cpp", libdir, cmake, [cxx_compiler, *STRICT_CXX])
        check_readme(root, libdir)
        os.chdir(root)


if __name__ == "__main__":
    main()
