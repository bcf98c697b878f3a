"""Texts from untrusted files never control a terminal, whichever subcommand prints it; JSON stays JSON.

    terminal_test.py COMMAND DATA

COMMAND is the built kinglet, DATA the folder tests/data.
"""

import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

COMMAND, DATA = sys.argv[1:3]
# An escape, its form of one character, a title, a bell; marks of direction; other ends of lines.
HOSTILE = ["a\x1b[31mb", "a\u009b31mb", "\x1b]0;t\x07", "a\x7fb", "a\u0085b", "a\u202eb", "\u2066a\u2069",
           "\u200fa\u200e\u061c", "\u202aa\u202c", "a\u2028b\u2029"]
OBEYED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
NPY = (b"\x93NUMPY\x01\0v\0" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }".ljust(117) + b"\n" + bytes(16))
CHECKPOINT = pathlib.Path(DATA, "micronet-small-fp32")
END = b"\0the end"  # text that no command prints


def shown(*arguments, text=None):
    """Both outputs of the command as a terminal receives them, and its exit status."""
    us, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    given = tempfile.TemporaryFile()
    given.write((text or "").encode())
    given.seek(0)
    process = subprocess.Popen([COMMAND, *map(str, arguments)], stdin=given, stdout=terminal, stderr=terminal,
                               env=environment)

    def end():
        process.wait()
        os.write(terminal, END)

    # A terminal that all sides have closed may report its end before its last bytes: this side stays open.
    waiter = threading.Thread(target=end)
    waiter.start()
    answer = b""
    while not answer.endswith(END):
        answer += os.read(us, 65536)
    waiter.join()
    os.close(terminal)
    os.close(us)
    given.close()
    return answer.removesuffix(END).decode("utf-8"), process.returncode


class Terminal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix="kinglet-terminal-")
        cls.folder = pathlib.Path(cls.place.name)
        words = (CHECKPOINT / "vocab.txt").read_text().splitlines()
        words[2] = "<eos>"
        words[3:3 + len(HOSTILE)] = HOSTILE
        cls.vocabulary = cls.folder / "words.json"
        cls.vocabulary.write_text(json.dumps(words))
        cls.model = cls.folder / "m.kgl"
        subprocess.run([COMMAND, "convert", CHECKPOINT, "-o", cls.model, "--vocab", cls.vocabulary, "--tokenizer",
                        "spaces"], check=True, stdout=subprocess.DEVNULL)
        cls.text = " ".join(HOSTILE[:8] + words[20:24])
        cls.lines = cls.folder / "text.txt"
        cls.lines.write_text((cls.text + "\n") * 3)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def check(self, *arguments, text=None, status=0):
        answer, found = shown(*arguments, text=text)
        self.assertEqual(found, status, answer)
        self.assertEqual(OBEYED.findall(answer), [], f"{arguments}: {answer!r}")
        if "--json" in arguments and status == 0:
            for line in answer.replace("\r\n", "\n").split("\n"):
                if line.startswith("{"):
                    json.loads(line)
        return answer

    def test_subcommands(self):
        lists = self.folder / "lists.txt"
        lists.write_text("".join(f"u{utterance}{HOSTILE[utterance]}\t-1.5\tw {hypothesis}\n"
                                 for utterance in range(4) for hypothesis in HOSTILE))
        documents = self.folder / "documents.jsonl"
        documents.write_text("".join(json.dumps({"text": self.text, "note": word}, ensure_ascii=False) + "\n"
                                     for word in HOSTILE))
        ids = self.folder / "ids.txt"
        ids.write_text(" ".join(map(str, range(3, 23))) + "\n")
        every = [
            ("inspect", self.model), ("verify", self.model), ("diff", self.model, self.model),
            ("count", self.model, "--ids", ids), ("score", self.model, "--text", self.lines, "--tokens"),
            ("score", self.model, "--ids", ids, "--tokens"),
            ("rescore", self.model, lists), ("table", self.model, "--text", self.lines, "--tokens", 5),
        ]
        seen = ""
        for arguments in every:
            for more in ([], ["--json"]):
                with self.subTest(arguments=arguments[0], more=more):
                    seen += self.check(*arguments, *more)
        seen += self.check("filter", self.model, "--annotate", documents)
        for more in ([], ["--json"]):
            seen += self.check("predict", self.model, "--top", 12, *more, text=self.text + "\n")
            seen += self.check("generate", self.model, "--tokens", 200, "--seed", 1, "--temperature", 50, *more)
        tensors = self.folder / "tensors.npz"
        with zipfile.ZipFile(tensors, "w") as archive:
            for number, word in enumerate(HOSTILE):
                archive.writestr(f"{number}{word}.weight.npy", NPY)
        for more in ([], ["--json"], ["--recipe-skeleton"]):
            seen += self.check("inspect", tensors, *more)
        seen += self.check("tokenize", self.model, text=self.text + "\n")
        self.assertIn("\\x1B[31m", seen)
        self.assertIn("\\xE2\\x80\\xAE", seen)
        self.assertIn("\\u202e", seen)
        self.assertIn("\\u009b", seen)

    def test_messages(self):
        for word in HOSTILE:
            name = self.folder / (word.replace("/", "_") + ".kgl")
            for arguments in (("inspect", name), ("score", name, "--text", self.lines), ("count", name), ("verify", name),
                              ("convert", name, "-o", self.folder / "no.kgl"), ("rescore", self.model, name)):
                self.check(*arguments, status=1)
            self.check("inspect", self.model, f"--{word}", status=2)
            self.check(word, status=2)
            self.check("score", self.model, "--backend", word, "--text", self.lines, status=2)

    def test_pipes_get_the_bytes(self):
        lists = self.folder / "pipe.txt"
        lists.write_text(f"u\t-1.5\tw {HOSTILE[5]}\n")
        done = subprocess.run([COMMAND, "rescore", self.model, lists], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True)
        self.assertIn(HOSTILE[5].encode(), done.stdout)
        done = subprocess.run([COMMAND, "tokenize", self.model], input=(self.text + "\n").encode(),
                              stdout=subprocess.PIPE, check=True)
        self.assertEqual(json.loads(done.stdout)["pieces"][:4], HOSTILE[:4])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
