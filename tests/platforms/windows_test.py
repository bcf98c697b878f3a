#!/usr/bin/env python3
"""kinglet for Windows: tests of files, vectors and the runtime, the DLL, the command, in wine.

    windows_test.py BUILD

BUILD is the folder of the optimised build: libkinglet.so, bin/kinglet and bench/same_bits. Makes the package first. Exits
with 77 where mingw-w64 or wine is missing.
"""
import os
import pathlib
import re
import select
import shutil
import subprocess
import tempfile
import unittest

from platform_steps import DEMO, ROOT, build_folder, build_preset, check_same_bits, convert_demo, need, run, without_times

PACKAGE = ROOT / "build" / "windows" / "package"
COMPILER = "x86_64-w64-mingw32-gcc-posix"
# Of Windows itself.
SYSTEM = {"advapi32.dll", "api-ms-win-core-synch-l1-2-0.dll", "kernel32.dll", "msvcrt.dll", "psapi.dll", "shell32.dll"}
# Of these files' tests some fail in wine 8. It does not rename a file onto an open one, and a file that was renamed while
# it is open then has volume 0 instead of its own.
ELSEWHERE = r"^(format\.system|runtime\.typing\.user_(overlay|words_file))$"
OPEN_FILES_MOVE = {
    "format_tests.exe": ["System*", "System.AFileThatIsOpenIsKnownByItsNewName", "System.AFileThatIsReadCanBeReplaced"],
    "runtime_typing_tests.exe": ["User*", "UserOverlay.LearnedWordsAreFoundAndUnlearnedOnesDoNotReturn",
                                 "UserWordsFile.StaysLockedWhileItIsReplaced"],
}
LONGEST = 900  # seconds of one program in wine, as ctest has them
BUILD = pathlib.Path()


def in_wine(*words, **options):
    return run("wine", *words, env={**os.environ, "WINEDEBUG": "-all"}, timeout=LONGEST, **options)


class Windows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run(ROOT / "scripts" / "windows")
        # wine's server and services begin with the first program, keep its output open and end after the last one. Who
        # reads the first one's output to its end, as ctest does, waits for all others; and a program that started just as
        # the server ended hung. So this one is the first, and waits until the tests end.
        waiting = subprocess.Popen(["wine", "cmd.exe", "/c", "echo begun& set /p x="], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "WINEDEBUG": "-all"})
        cls.addClassCleanup(waiting.stdout.close)
        cls.addClassCleanup(waiting.wait)
        cls.addClassCleanup(waiting.stdin.close)
        if not select.select([waiting.stdout], [], [], LONGEST)[0]:
            waiting.kill()
            raise AssertionError(f"wine: expected cmd.exe to begin within {LONGEST} s, found it waiting")
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.model = cls.folder / "m.kgl"
        convert_demo(BUILD, cls.model)

    def test_files_vectors_runtime(self):
        build = build_preset("windows")
        run("ctest", "--preset", "windows", "--parallel", str(os.cpu_count()), "-E", ELSEWHERE, cwd=ROOT)
        for tests, (run_here, *omitted) in OPEN_FILES_MOVE.items():
            in_wine(build / "bin" / tests, f"--gtest_filter={run_here}-{':'.join(omitted)}")

    def test_dll_has_the_interface_and_needs_windows_alone(self):
        table = run("x86_64-w64-mingw32-objdump", "-p", PACKAGE / "bin" / "kinglet.dll")
        exported = set(re.findall(r"^\s+\[ *\d+\] (?:\+base\[ *\d+\] +[0-9a-f]+ )?(\w+)$", table, re.MULTILINE))
        native = run("nm", "-D", "--defined-only", BUILD / "libkinglet.so")
        self.assertEqual(exported, set(re.findall(r" T (\w+)", native)))
        for file in ("kinglet.dll", "kinglet.exe"):
            table = run("x86_64-w64-mingw32-objdump", "-p", PACKAGE / "bin" / file)
            needed = {name.lower() for name in re.findall(r"DLL Name: (\S+)", table)}
            self.assertLessEqual(needed, SYSTEM, file)

    def test_readme_program(self):
        program = re.search(r"```c\n(// next\.c\n.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
        (self.folder / "next.c").write_text(program)
        run(COMPILER, "-std=c11", self.folder / "next.c", "-o", self.folder / "next.exe", f"-I{PACKAGE / 'include'}",
            f"-L{PACKAGE / 'lib'}", "-lkinglet")
        shutil.copy(PACKAGE / "bin" / "kinglet.dll", self.folder)
        self.assertEqual(in_wine("next.exe", cwd=self.folder).split(), ["States"])

    def test_command_prints_the_same(self):
        named = self.folder / "d\u00e9j\u00e0.kgl"
        shutil.copy(self.model, named)
        text = self.folder / "\u53e4.txt"
        text.write_text((DEMO / "passage.txt").read_text()[:2000])
        for words in (["score", named, "--text", text, "--json"], ["inspect", named, "--json"],
                      ["generate", named, "--prompt", "the film", "--tokens", "30", "--seed", "7"],
                      ["predict", named, "--top", "3"]):
            given = text.read_bytes() if words[0] == "predict" else b""
            found = in_wine(PACKAGE / "bin" / "kinglet.exe", *words, text=False, input=given).decode()
            expected = run(BUILD / "bin" / "kinglet", *words, text=False, input=given).decode()
            self.assertEqual(without_times(found), without_times(expected), words)
        with text.open("rb") as stream:
            found = in_wine(PACKAGE / "bin" / "kinglet.exe", "score", named, "--text", "-", stdin=stream)
        self.assertIn("perplexity", found)

    def test_command_measures_and_refuses(self):
        command = PACKAGE / "bin" / "kinglet.exe"
        self.assertIn("us", in_wine(command, "bench", self.model, "--tokens", "20", "--threads", "2"))
        in_wine(command, "score", self.folder / "none.kgl", "--text", DEMO / "passage.txt", status=1)
        in_wine(command, "convert", DEMO, status=2)

    def test_same_bits(self):
        build_preset("windows")
        check_same_bits(self, BUILD, 5, "--windows", ROOT / "build" / "windows", "--only", "Windows")


if __name__ == "__main__":
    need(COMPILER, "wine")
    BUILD = build_folder()
    unittest.main()
