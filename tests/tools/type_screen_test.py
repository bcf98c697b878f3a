"""`kinglet type`: a screen that is looked at, and a person's words on the command line.

    type_screen_test.py COMMAND DEMO

COMMAND is the built kinglet, DEMO the folder of the bundled checkpoint.
"""

import fcntl
import json
import os
import pathlib
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

PATIENCE = 120  # seconds; builds with sanitizers are slow
COMMAND, DEMO = sys.argv[1:3]
FOLDER = tempfile.TemporaryDirectory(prefix="kinglet-type-")
MODEL = str(pathlib.Path(FOLDER.name, "m.kgl"))
TAB, ENTER, BACKSPACE, END, ALT = "\t", "\n", "\x7f", "\x04", "\x1b"


def run(*arguments, status=0):
    done = subprocess.run([COMMAND, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    assert done.returncode == status, done
    return done.stdout if status == 0 else done.stderr


class Screen:
    """The part of a VT100 that the keyboard uses. What is beyond the window's edge fails."""

    def __init__(self, columns):
        self.columns, self.rows, self.row, self.column, self.rest = columns, [""], 0, 0, ""

    def show(self, text):
        self.rest += text
        while self.rest:
            found = re.match(r"\x1b\[(\d*)([A-Z])|\r|\n|[^\x1b\r\n]", self.rest)
            if found is None:
                return  # a sequence that is not complete
            self.rest = self.rest[found.end():]
            if found[0] == "\r":
                self.column = 0
            elif found[0] == "\n":
                self.row += 1
                self.rows += [""] * (self.row + 1 - len(self.rows))
            elif found[2] == "K":
                self.rows[self.row] = self.rows[self.row][: self.column]
            elif found[2] == "A":
                self.row = max(0, self.row - int(found[1] or 1))
            elif found[2]:
                raise AssertionError(f"unknown sequence {found[0]!r}")
            else:
                line = self.rows[self.row].ljust(self.column)
                self.rows[self.row] = line[: self.column] + found[0] + line[self.column + 1:]
                self.column += 1

    def line(self):
        return self.rows[self.row]

    def words(self):
        below = self.rows[self.row + 1] if self.row + 1 < len(self.rows) else ""
        return re.split(r"Tab | +Alt-\d ", below)[1:]


class Keyboard:
    """The command on a terminal of its own; its standard output is a pipe."""

    def __init__(self, *options, columns=100):
        self.ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.theirs, self.modes = theirs, termios.tcgetattr(theirs)

        def lead():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [COMMAND, "type", MODEL, *options], stdin=theirs, stderr=theirs,
            stdout=subprocess.PIPE, preexec_fn=lead, env={**os.environ, "TERM": "vt100"})
        self.screen = Screen(columns)
        self.see(lambda screen: screen.words())

    def type(self, keys):
        os.write(self.ours, keys.encode())

    def see(self, wanted, text=""):
        """Reads until the screen is as wanted."""
        end = time.monotonic() + PATIENCE
        while not wanted(self.screen):
            if not select.select([self.ours], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{text}: the screen stayed {self.screen.rows}")
            self.screen.show(os.read(self.ours, 65536).decode())

    def see_line(self, line, word=None):
        self.see(lambda screen: screen.line() == line and screen.words()[:1] != [] and
                 (word is None or word in screen.words()), f"expected {line!r}, {word!r}")

    def finish(self, status=0):
        """What the command wrote, after its end; the terminal is as it was."""
        written = self.process.stdout.read().decode()
        assert self.process.wait(PATIENCE) == status, self.process.returncode
        assert termios.tcgetattr(self.theirs) == self.modes, "the terminal was not restored"
        self.process.stdout.close()
        os.close(self.ours)
        os.close(self.theirs)
        return written


class Type(unittest.TestCase):
    def test_words_are_shown_and_tab_takes_one(self):
        keyboard = Keyboard()
        self.assertEqual(len(keyboard.screen.words()), 3)
        keyboard.type("the presi")
        keyboard.see_line("the presi", "president")
        first = keyboard.screen.words()[0]
        self.assertEqual(first.lower(), "president")
        keyboard.type(TAB)
        keyboard.see_line(f"the {first} ")
        keyboard.type("o")
        keyboard.see_line(f"the {first} o", "of")
        second = keyboard.screen.words()[1]
        keyboard.type(ALT + "2")
        keyboard.see_line(f"the {first} {second} ")
        keyboard.type(BACKSPACE)  # the letters come back
        keyboard.see_line(f"the {first} o", "of")
        keyboard.type("x" + BACKSPACE + "f.")
        keyboard.see_line(f"the {first} of.")
        keyboard.type(BACKSPACE * 4)
        keyboard.see_line("the presi", "president")  # the letters before Tab
        keyboard.type("dent" + ENTER)
        keyboard.see_line("")
        keyboard.type("\x1b[A\x01caf\u00e9 " + END)
        self.assertEqual(keyboard.finish(), "the president\ncaf\u00e9\n")

    def test_keys_that_come_at_once(self):
        keyboard = Keyboard()
        keyboard.type("the presi" + TAB + "of the unit" + TAB + ENTER + "the presi" + BACKSPACE + TAB)
        keyboard.type(END)
        self.assertEqual(keyboard.finish().lower(), "the president of the united\nthe president\n")

    def test_a_narrow_window_shows_the_end_of_the_line(self):
        keyboard = Keyboard(columns=12)
        keyboard.type("the war of the worlds")
        keyboard.see_line(" the worlds")
        for row in keyboard.screen.rows[-2:]:
            self.assertLessEqual(len(row), 11)
        keyboard.type(ENTER + END)
        self.assertEqual(keyboard.finish(), "the war of the worlds\n")

    def test_signals_restore_the_terminal(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            keyboard = Keyboard()
            keyboard.type("the wo")
            keyboard.see_line("the wo")
            if number == signal.SIGINT:
                keyboard.type("\x03")
            else:
                keyboard.process.send_signal(number)
            self.assertEqual(keyboard.finish(-number), "")

    def test_words_are_learned_listed_and_unlearned(self):
        words = str(pathlib.Path(FOLDER.name, "words"))
        user = ["--user", words]
        keyboard = Keyboard(*user)
        keyboard.type("the zyxwvly of the Kinglets" + ENTER + "a zyx")
        keyboard.see_line("a zyx", "zyxwvly")
        keyboard.type(TAB + END)
        self.assertEqual(keyboard.finish(), "the zyxwvly of the Kinglets\na zyxwvly\n")
        listed = dict(line.split("\t") for line in run("type", MODEL, *user, "--list").splitlines())
        self.assertEqual(listed, {"Kinglets": "1", "a": "1", "of": "1", "the": "2", "zyxwvly": "2"})
        whole = pathlib.Path(words).read_bytes()
        damaged = pathlib.Path(FOLDER.name, "damaged-words")
        damaged.write_bytes(whole[:-1])
        self.assertNotEqual(run("type", MODEL, "--user", str(damaged), "--list"), "")
        self.assertEqual(damaged.read_bytes(), whole[:-1])  # listed, not repaired
        run("type", MODEL, *user, "--unlearn", "ZYXWVLY")
        self.assertIn("--list", run("type", MODEL, *user, "--unlearn", "zyxwvly", status=1))
        self.assertNotIn(b"zyx", pathlib.Path(words).read_bytes())
        keyboard = Keyboard(*user)
        keyboard.type("zyx")
        keyboard.see_line("zyx")
        self.assertNotIn("zyxwvly", keyboard.screen.words())
        keyboard.type(BACKSPACE * 3 + END)
        keyboard.finish()
        lines = run("type", MODEL, *user, "--list", "--json").splitlines()
        self.assertEqual([json.loads(line)["word"] for line in lines],
                         ["Kinglets", "a", "of", "the"])
        run("type", MODEL, *user, "--forget")
        self.assertEqual(run("type", MODEL, *user, "--list"), "")

    def test_a_simulated_person_learns_and_changes_no_file(self):
        text = pathlib.Path(FOLDER.name, "text.txt")
        text.write_text("the zyxwvly of the world\nthe zyxwvly war\na zyxwvly\n")
        words = pathlib.Path(FOLDER.name, "no-words")
        lines = [json.loads(line) for line in run(
            "type", MODEL, "--simulate", text, "--user", words, "--noise", "0.2", "--omit", "0",
            "--add", "0", "--swap", "0", "--json").splitlines()]
        self.assertEqual([line["system"] for line in lines], ["network", "user's words"])
        self.assertFalse(words.exists())
        words.write_bytes(b"kinglet words 1\ndamage")
        with words.open("rb") as opened:  # as a keyboard does
            fcntl.flock(opened, fcntl.LOCK_EX)
            for use in ("--simulate", "--tune"):
                run("type", MODEL, use, text, "--user", words)
        self.assertEqual(words.read_bytes(), b"kinglet words 1\ndamage")
        for line in lines:
            self.assertEqual([part["words"] for part in line["unlisted"]], [1, 1, 1])
        self.assertLess(lines[0]["unlisted"][2]["keystroke_savings"], 0.1)
        self.assertGreater(lines[1]["unlisted"][2]["keystroke_savings"], 0.3)
        tuned = json.loads(run("type", MODEL, "--tune", text, "--json"))
        self.assertEqual(tuned["words"], 10)
        self.assertLessEqual(tuned["nll"], tuned["nll_before"])
        self.assertGreater(tuned["user_weight"], 0)

    def test_wrong_uses_are_refused(self):
        self.assertIn("--simulate", run("type", MODEL, status=1))
        self.assertIn("--user", run("type", MODEL, "--list", status=2))
        self.assertIn("sum below 1", run("type", MODEL, "--user-weight", "1", status=2))
        self.assertIn("no such file", run("type", MODEL, "--user", "missing", "--list", status=1))


if __name__ == "__main__":
    run("convert", DEMO, "-o", MODEL, "--vocab", f"{DEMO}/vocab.txt", "--bits", "9", "--tokenizer",
        "wikitext")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
