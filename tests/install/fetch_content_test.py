"""A project that takes kinglet by FetchContent: the README's programs run, and nothing but the library is configured.

    fetch_content_test.py SOURCE_DIR CMAKE COMMAND LAUNCHER [OPTION...]

COMMAND is another build's, LAUNCHER the compiler's, or empty; the OPTIONs are of CMake.
"""

import pathlib
import re
import sys
import tempfile

from install_test import expect, run

PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(next LANGUAGES C CXX)
enable_testing()
include(FetchContent)
FetchContent_Declare(kinglet SOURCE_DIR "{source}")
FetchContent_MakeAvailable(kinglet)
add_executable(next-c next.c)
add_executable(next-cc next.cc)
target_link_libraries(next-c PRIVATE kinglet::kinglet)
target_link_libraries(next-cc PRIVATE kinglet::kinglet)
get_property(targets DIRECTORY "{source}" PROPERTY BUILDSYSTEM_TARGETS)
get_property(tools DIRECTORY "{source}" PROPERTY SUBDIRECTORIES)
get_property(cached CACHE BUILD_SHARED_LIBS PROPERTY TYPE)
message(STATUS "configured: ${{targets}} ${{tools}} shared=${{cached}}")
"""


def main():
    source, cmake, command, launcher, *options = sys.argv[1:]
    demo = pathlib.Path(source) / "examples" / "wikitext2"
    programs = re.findall(r"```c(?:pp)?\n// (next\.cc?)\n(.*?)```", (pathlib.Path(source) / "README.md").read_text(), re.DOTALL)
    expect(len(programs) == 2, f"README.md: expected next.c and next.cc, found {len(programs)} programs")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "CMakeLists.txt").write_text(PROJECT.format(source=source))
        for name, text in programs:
            (work / name).write_text(text)
        if launcher:
            options += [f"-DCMAKE_{language}_COMPILER_LAUNCHER={launcher}" for language in ("C", "CXX")]
        report = run(cmake, "-G", "Ninja", "-S", work, "-B", work / "build", *options)
        found = re.search("configured: (.*)", report)[1]
        folders = {pathlib.Path(name).name for name in re.split("[; ]", found) if "/" in name}
        expect(folders == {"format", "kernels", "runtime"}, f"expected the library's folders, found {found}")
        expect("Total Tests: 0" in run("ctest", "-N", "--test-dir", work / "build"), "expected no tests of kinglet's")
        expect(found.endswith("shared="), f"expected the project's own BUILD_SHARED_LIBS, found {found}")
        run(cmake, "--build", work / "build")
        run(command, "convert", demo, "--vocab", demo / "vocab.txt", "--bits", "9", "-o", work / "m.kgl")
        for name, _ in programs:
            word = run("sh", "-c", f"cd {work} && build/{name.replace('.', '-')}").strip()
            expect(word == "States", f"{name}: expected States, found {word}")
        print("next.c and next.cc print States")


if __name__ == "__main__":
    main()
