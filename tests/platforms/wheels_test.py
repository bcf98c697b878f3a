#!/usr/bin/env python3
"""The wheels of scripts/wheels: what is in each, what it needs, and the bits of its scores where this machine can run it.

    wheels_test.py BUILD

BUILD is the folder of the optimised build. Exits with 77 where scripts/wheels has made no wheel. Prints each wheel's size,
and how it was run: a program in C that is linked with the wheel's library, and the wheel's command.
"""
import os
import pathlib
import platform
import re
import shutil
import sys
import tempfile
import unittest
import zipfile

from platform_steps import DEMO, ROOT, build_folder, convert_demo, run, without_times

WHEELS = sorted((ROOT / "build" / "cross" / "wheels").glob("*.whl"))
PROGRAM = pathlib.Path(__file__).with_name("wheel_scores.c")
QEMU = ["qemu-aarch64", "-L"]
MUSL = ROOT / "build" / "cross" / "musl-aarch64" / "musl"  # Debian's, by scripts/wheels
# By the end of a wheel's name: the target, what runs its programs, and a file that this takes.
RUNS = {
    "manylinux_2_17_x86_64": ("linux-x86_64", [], "/lib64/ld-linux-x86-64.so.2"),
    "manylinux_2_17_aarch64": ("linux-aarch64", [*QEMU, "/usr/aarch64-linux-gnu"],
                               "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"),
    "musllinux_1_2_x86_64": ("musl-x86_64", [], "/lib/ld-musl-x86_64.so.1"),
    "musllinux_1_2_aarch64": ("musl-aarch64", [*QEMU, MUSL], MUSL / "lib" / "ld-musl-aarch64.so.1"),
    "win_amd64": ("windows-x86_64", ["wine"], "/usr/bin/wine"),
    "macosx_11_0_x86_64": ("macos-x86_64", None, ""),
    "macosx_11_0_arm64": ("macos-arm64", None, ""),
}
LIBRARIES = {"windows": "kinglet.dll", "macos": "libkinglet.dylib"}
# What a library may need: the C library, and its loader.
NEEDED = {"linux": r"lib(c|m|dl|rt|pthread)\.so\.\d|ld-linux-\S+", "musl": r"libc\.so|libc\.musl-\S+"}
BUILD = pathlib.Path()


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.model = cls.folder / "m.kgl"
        convert_demo(BUILD, cls.model)
        run("cc", PROGRAM, "-o", cls.folder / "here", f"-I{ROOT / 'include'}", f"-L{BUILD}", "-lkinglet", f"-Wl,-rpath,{BUILD}")
        cls.scores = run(cls.folder / "here", cls.model)
        cls.asked = ["score", cls.model, "--text", DEMO / "passage.txt", "--json"]
        cls.answer = without_times(run(BUILD / "bin" / "kinglet", *cls.asked))

    def check_needs(self, system, files):
        """Everything but the system's C library is in the files; returns what they need."""
        if system == "macos":
            listing = "".join(run("llvm-objdump-14", "--macho", "--dylibs-used", file) for file in files)
            needed = set(re.findall(r"^\t(\S+) ", listing, re.MULTILINE))
            self.assertLessEqual(needed, {"@rpath/libkinglet.0.dylib", "/usr/lib/libSystem.B.dylib"})
        elif system == "windows":
            listing = "".join(run("x86_64-w64-mingw32-objdump", "-p", file) for file in files)
            needed = {name.lower() for name in re.findall(r"DLL Name: (\S+)", listing)}
            self.assertLessEqual(needed, {"advapi32.dll", "api-ms-win-core-synch-l1-2-0.dll", "kernel32.dll", "msvcrt.dll", "psapi.dll",
                                          "shell32.dll"})
        else:
            listing = "".join(run("readelf", "-dW", file) for file in files)
            needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", listing))
            for name in needed:
                self.assertRegex(name, f"^({NEEDED[system]})$")
        return needed

    def check_wheel(self, wheel):
        tag = wheel.stem.split("-", 4)[-1]
        target, runs, takes = RUNS[tag]
        system = target.split("-")[0]
        folder = self.folder / target
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
            about = next(name for name in archive.namelist() if name.endswith("/WHEEL"))
            self.assertIn(f"Tag: py3-none-{tag}\n", archive.read(about).decode())
        library = folder / "kinglet_lm" / LIBRARIES.get(system, "libkinglet.so")
        command = next(folder.glob("*.data/scripts/kinglet*"))
        needed = self.check_needs(system, [library, command])
        line = f"{target}: {wheel.stat().st_size:,} bytes; needs {', '.join(sorted(needed))}"
        if runs is None or not os.path.exists(takes) or runs and not shutil.which(runs[0]):
            return f"{line}; not run here"
        program = folder / "kinglet_lm" / "scores.exe"
        compiler = ["x86_64-w64-mingw32-gcc-posix"] if system == "windows" else [ROOT / "build" / "cross" / target / "bin" / "cc"]
        if system == "linux" and target.endswith(platform.machine()):
            compiler = ["cc"]
        run(*compiler, "-std=c11", "-O2", PROGRAM, "-o", program, f"-I{ROOT / 'include'}", library)
        if system in NEEDED:  # by its soname
            shutil.copy(library, library.with_name("libkinglet.so.0"))
        for file in (program, command):
            file.chmod(0o755)
        # An emulator's loader finds no library of another version than its own.
        folders = [str(library.parent), *(["/usr/aarch64-linux-gnu/lib"] if target == "linux-aarch64" else [])]
        environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(folders), "WINEDEBUG": "-all"}
        self.assertEqual(run(*runs, program, self.model, env=environment).split(), self.scores.split())
        found = run(*runs, command, *self.asked, env=environment)
        self.assertEqual(without_times(found).split(), self.answer.split())
        return f"{line}; {len(self.scores.splitlines())} scores of the same bits, the same report of the command"


def test_of(wheel):
    return lambda self: print(self.check_wheel(wheel))


if __name__ == "__main__":
    if not WHEELS:
        print("not run: needs wheels; scripts/wheels makes them")
        sys.exit(77)
    BUILD = build_folder()
    for WHEEL in WHEELS:
        setattr(Wheels, "test_" + WHEEL.stem.split("-", 4)[-1], test_of(WHEEL))
    unittest.main()
