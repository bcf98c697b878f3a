#!/usr/bin/env python3
"""The npm package of scripts/wasm has the native library's bits, and an empty folder can install and use it.

    wasm_test.py BUILD

BUILD is the folder of the optimised build: libkinglet.so, bin/kinglet and bench/same_bits. Makes the package first. Exits
with 77 where emscripten or node is missing.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "wikitext2"
PACKAGE = ROOT / "build" / "wasm" / "npm"
MOST_GZIPPED = 600_000
TOKENS, BEST = 120, 4
BUILD = pathlib.Path()

OF_NODE = """
import { readFile } from "node:fs/promises";
import { loadKinglet } from "kinglet";
const [path, text, count, best] = process.argv.slice(2);
const model = (await loadKinglet()).openModel(await readFile(path)), session = model.createSession();
const { ids, ranges } = model.tokenize(await readFile(text, "utf8")), rows = [];
for (const id of ids.subarray(0, Number(count))) {
  session.step(id);
  const words = session.topK(Number(best)), { low, high } = session.interval(words[0].id);
  rows.push([words.map((word) => [word.text, word.logProbability]), Number(low), Number(high)]);
}
const typed = model.createTyping().find(session, [..."th"], 3);
let refusal = "";
try { session.step(model.vocabularySize); } catch (error) { refusal = error.status; }
console.log(JSON.stringify({
  ids: [...ids], end: ranges.at(-1), joined: model.detokenize(ids.subarray(0, 20)), rows,
  typed: typed.map((word) => [word.text, word.logProbability, word.cost]), digest: model.digest,
  prefix: session.prefixTopK("th", 2).map((word) => [word.text, word.logProbability]),
  state: Buffer.from(session.save().bytes()).toString("hex"), refusal,
}));
"""

OF_PYTHON = """
import json, sys
import kinglet_lm
path, text, count, best = sys.argv[1:]
model = kinglet_lm.Model(path)
session = model.session()
tokens = model.tokenize_with_ranges(open(text, encoding="utf-8").read())
ids, rows = [token[0] for token in tokens], []
def texts(words):
    return [[model.vocabulary[id], value] for id, value in words]
for id in ids[:int(count)]:
    session.step(id)
    words = session.top_k(int(best))
    rows.append([texts(words), *session.interval(words[0][0])])
typed = model.keyboard().find(session, "th", k=3)
print(json.dumps({
    "ids": ids, "end": tokens[-1][2], "joined": model.detokenize(ids[:20]), "rows": rows,
    "typed": [[word.text, word.log_probability, word.cost] for word in typed], "digest": model.digest,
    "prefix": texts(session.prefix_top_k("th", 2)), "state": bytes(session.save()).hex(),
    "refusal": "KINGLET_ID_OUT_OF_RANGE",
}))
"""


def run(*words, folder=None, environment=None):
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


class Wasm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run(ROOT / "scripts" / "wasm")
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.model = cls.folder / "9bit.kgl"
        run(BUILD / "bin" / "kinglet", "convert", DEMO, "--vocab", DEMO / "vocab.txt", "--tokenizer", "wikitext", "--bits", "9",
            "--calibrate", DEMO / "calibration.txt", "-o", cls.model)

    def test_is_small(self):
        size = len(gzip.compress((PACKAGE / "kinglet.wasm").read_bytes(), 9))
        self.assertLessEqual(size, MOST_GZIPPED)

    def test_types_have_every_function(self):
        types = (PACKAGE / "kinglet.d.ts").read_text()
        code = (PACKAGE / "kinglet.js").read_text()
        for part in ("Model", "State", "Session", "Typing"):
            body = re.search(rf"\nclass {part} .*?\n}}\n", code, re.DOTALL).group()
            declared = re.search(rf"\nexport interface {part} .*?\n}}\n", types, re.DOTALL).group()
            for name in set(re.findall(r"\n  (\w+)\(.*\) {", body)) - {"constructor", "best"}:
                self.assertRegex(declared, rf"\n  {name}\(", part)

    def test_an_empty_folder_installs_it_and_has_the_same_bits(self):
        folder = self.folder / "empty"
        folder.mkdir()
        if shutil.which("npm"):
            tarball = run("npm", "pack", "--silent", PACKAGE, folder=folder).split()[-1]
            run("npm", "install", "--offline", "--no-audit", "--no-fund", f"./{tarball}", folder=folder)
        else:
            shutil.copytree(PACKAGE, folder / "node_modules" / "kinglet")
        (folder / "use.mjs").write_text(OF_NODE)
        given = [self.model, DEMO / "passage.txt", TOKENS, BEST]
        found = json.loads(run("node", "use.mjs", *given, folder=folder))
        native = {"KINGLET_LIBRARY": str(BUILD / "libkinglet.so"), "PYTHONPATH": str(ROOT / "python")}
        expected = json.loads(run(sys.executable, "-c", OF_PYTHON, *given, environment=native))
        for name, value in expected.items():
            self.assertEqual(found[name], value, name)

    def test_readme_program_runs(self):
        program = re.search(r"```js\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL).group(1)
        folder = self.folder / "readme"
        shutil.copytree(PACKAGE, folder / "node_modules" / "kinglet")
        shutil.copy(self.model, folder / "model.kgl")
        (folder / "use.mjs").write_text(program)
        lines = run("node", "use.mjs", folder=folder).splitlines()
        self.assertEqual(len(lines), 3)

    def test_scores_of_other_families(self):
        done = run(ROOT / "bench" / "same_bits_check", BUILD, "--npm", PACKAGE, "--only", "WebAssembly", "--tokens", "200")
        rows = 6 if shutil.which("chromium") else 4
        self.assertRegex(done, rf"\n{rows} rows, 0 scores with another bit\n$")
        # Each with the families that the package has, one of them without words.
        self.assertEqual(len(re.findall(r"^\| [^|]*WebAssembly.*(\| 0 ){4}\|  \|  \|$", done, re.MULTILINE)), rows, done)
        print(f"\n{done}")


if __name__ == "__main__":
    for program in ("emcmake", "node"):
        if not shutil.which(program):
            print(f"not run: needs {program}")
            sys.exit(77)
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
