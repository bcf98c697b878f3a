"""Input from a person who types, or from a program that waits for each answer: lines, unfinished lines, Ctrl-C, Ctrl-D.

    typing_test.py COMMAND DATA

COMMAND is the built kinglet, DATA the folder tests/data.
"""

import fcntl
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

PATIENCE = 120  # seconds; builds with sanitizers are slow
COMMAND, DATA = sys.argv[1:3]
FOLDER = tempfile.TemporaryDirectory(prefix="kinglet-typing-")
MODEL = str(pathlib.Path(FOLDER.name, "m.kgl"))
LINES = ["the war and the\n", "\n", "dog is a dog\n"]


def convert():
    data = pathlib.Path(DATA, "micronet-small-fp32")
    subprocess.run([COMMAND, "convert", data, "-o", MODEL, "--vocab", data / "vocab.txt"],
                   check=True, stdout=subprocess.DEVNULL)


def answers(text, *options):
    """The objects that `predict` prints for a text that is complete from the start."""
    run = subprocess.run([COMMAND, "predict", MODEL, "--json", *options], input=text.encode(),
                         stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


class Reader:
    """Reads lines from a descriptor, and fails if a line does not arrive."""

    def __init__(self, descriptor):
        self.descriptor, self.text = descriptor, b""

    def more(self):
        if not select.select([self.descriptor], [], [], PATIENCE)[0]:
            raise AssertionError(f"no answer came; so far: {self.text!r}")
        try:
            piece = os.read(self.descriptor, 65536)
        except OSError:  # Linux's error for a terminal whose other side is closed
            piece = b""
        if not piece:
            raise AssertionError(f"the answers ended; so far: {self.text!r}")
        self.text += piece

    def line(self):
        while b"\n" not in self.text:
            self.more()
        line, self.text = self.text.split(b"\n", 1)
        return line.decode()

    def until(self, part):
        while part not in self.text:
            self.more()
        before, self.text = self.text.split(part, 1)
        return before


def run_on_terminal(*arguments):
    """The command as the leader of a terminal of its own, and the terminal's other side."""
    ours, theirs = os.openpty()

    def lead():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen([COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs,
                               preexec_fn=lead, env={**os.environ, "NO_COLOR": "1"})
    os.close(theirs)
    return process, ours


class Typing(unittest.TestCase):
    def test_each_line_is_answered_before_the_next_is_sent(self):
        expected = answers("".join(LINES))
        with subprocess.Popen([COMMAND, "predict", MODEL, "--json"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            reader, found = Reader(process.stdout.fileno()), []
            for line in LINES:
                process.stdin.write(line.encode())
                process.stdin.flush()
                found += [json.loads(reader.line()) for _ in range(len(line.split()) + 1)]
            self.assertEqual(found, expected)
            process.stdin.close()
            self.assertEqual(process.wait(PATIENCE), 0)

    def test_a_pipe_that_people_read_is_answered_too(self):
        with subprocess.Popen([COMMAND, "predict", MODEL], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            reader = Reader(process.stdout.fileno())
            for line in LINES:
                process.stdin.write(line.encode())
                process.stdin.flush()
                for word in line.split() + ["<eos>"]:
                    self.assertIn(f" {word} ", reader.line())
            process.stdin.close()
            self.assertIn(" ? ", reader.line())
            self.assertIn(" tokens, perplexity ", reader.line())
            self.assertEqual(process.wait(PATIENCE), 0)

    def test_a_line_in_pieces_is_one_line(self):
        with subprocess.Popen([COMMAND, "predict", MODEL, "--json"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            for piece in ["th", "e w", "ar", " and the\n", "\n", "dog is a ", "dog\n"]:
                process.stdin.write(piece.encode())
                process.stdin.flush()
                time.sleep(0.02)
            process.stdin.close()
            found = [json.loads(line) for line in process.stdout]
            self.assertEqual(found, answers("".join(LINES)))
            self.assertEqual(process.wait(PATIENCE), 0)

    def test_nobody_typed_an_end_after_an_unfinished_line(self):
        ended, unfinished = answers("the war\nthe dog\n"), answers("the war\nthe dog")
        self.assertEqual(len(ended), 6)
        self.assertEqual(unfinished, ended[:5])
        self.assertEqual(answers("the war\nthe dog "), ended[:5])
        self.assertEqual(answers(""), [])

    def test_a_terminal_shows_what_comes_next_after_each_line(self):
        process, terminal = run_on_terminal("predict", MODEL, "--top", "2")
        reader = Reader(terminal)
        reader.until(b"Ctrl-D")
        reader.line()
        for line in LINES:
            os.write(terminal, line.encode())
            for word in line.split() + ["<eos>", "?"]:
                reader.until(f" {word} ".encode())
        os.write(terminal, b"the dog\x04")  # Ctrl-D inside a line asks without ending it
        reader.until(b" dog ")
        self.assertNotIn(b"<eos> ", reader.until(b" ? ").split(b"%")[0])
        os.write(terminal, b" is\n")
        reader.until(b" is ")
        reader.until(b" <eos> ")
        reader.until(b" ? ")
        reader.line()
        os.write(terminal, b"\x04")
        self.assertIn("15 tokens, perplexity ", reader.line())
        self.assertEqual(process.wait(PATIENCE), 0)
        os.close(terminal)

    def test_ctrl_c_ends_a_program_that_waits(self):
        process, terminal = run_on_terminal("predict", MODEL, "--json")
        reader = Reader(terminal)
        reader.until(b"Ctrl-D")
        reader.line()
        os.write(terminal, b"the\n")
        self.assertEqual(reader.line().strip(), "the")  # the terminal's echo
        self.assertEqual([json.loads(reader.line())["pos"] for _ in range(2)], [1, 2])
        os.write(terminal, b"\x03")
        self.assertEqual(process.wait(PATIENCE), -signal.SIGINT)
        with self.assertRaises(AssertionError):
            reader.until(b"kinglet:")
        os.close(terminal)

    def test_after_ctrl_c_what_was_answered_is_there_and_a_shell_sees_130(self):
        for _ in range(5):  # the signal arrives while the command waits for input, or just before
            script = '"$@"; status=$?; echo "$status"'
            with subprocess.Popen(["sh", "-c", f"trap : INT; {script}", "sh", COMMAND, "predict",
                                   MODEL, "--json"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  start_new_session=True) as process:
                reader = Reader(process.stdout.fileno())
                process.stdin.write(b"the\n")
                process.stdin.flush()
                self.assertEqual([json.loads(reader.line())["pos"] for _ in range(2)], [1, 2])
                os.killpg(process.pid, signal.SIGINT)
                self.assertEqual(reader.line(), str(128 + signal.SIGINT))
                self.assertEqual(process.wait(PATIENCE), 0)
                self.assertEqual(process.stderr.read(), b"")

    def test_ctrl_c_stops_a_long_text(self):
        ids = pathlib.Path(FOLDER.name, "long.txt")
        ids.write_text("1 2 3 4 5 6 7 8 " * 200_000)
        with subprocess.Popen([COMMAND, "predict", MODEL, "--json", "--ids", ids],
                              stdout=subprocess.PIPE) as process:
            reader = Reader(process.stdout.fileno())
            self.assertEqual(json.loads(reader.line())["pos"], 1)
            process.send_signal(signal.SIGINT)
            rest = reader.text + process.stdout.read()
            self.assertEqual(process.wait(PATIENCE), -signal.SIGINT)
            for line in rest.splitlines()[:-1]:  # complete answers
                json.loads(line)

    def test_generated_text_is_written_as_it_is_drawn_until_ctrl_c(self):
        arguments = [COMMAND, "generate", MODEL, "--prompt", "the war", "--seed", "9"]
        with subprocess.Popen([*arguments, "--tokens", "100000000"],
                              stdout=subprocess.PIPE) as process:
            reader = Reader(process.stdout.fileno())
            while len(reader.text) < 2000:
                reader.more()
            process.send_signal(signal.SIGINT)
            text = reader.text + process.stdout.read()
            self.assertEqual(process.wait(PATIENCE), -signal.SIGINT)
        self.assertTrue(text.endswith(b"\n"))
        expected = subprocess.run([*arguments, "--tokens", str(len(text))],
                                  stdout=subprocess.PIPE, check=True).stdout
        self.assertTrue(expected.startswith(text[:-1]))


if __name__ == "__main__":
    convert()
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
