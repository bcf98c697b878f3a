#!/usr/bin/env python3
"""Draws docs/peers.svg and writes the sentence about it in README.md, from the figures that the benchmarks printed.

    bench/peers/draw.py             # after docs/figures.json or docs/TECHNIQUES.md has changed
    bench/peers/draw.py --check     # exits with 1 if the picture or README.md is stale

docs/figures.json: `bench/peers/compare.py --only demo,best --figures docs/figures.json` writes it (microseconds a token).
docs/TECHNIQUES.md: its first table is printed by `bench/techniques` (bytes and perplexity of the demo model).
"""
import argparse
import json
import os
import sys
import textwrap
from xml.sax.saxutils import escape

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
CASES = (("demo", "Demo model, WikiText-2, 33,278 words"), ("best", "Best MicroNet's shapes, 267,735 words"))
# A row's name, and the sentence's: the quickest form of each peer.
RUNTIMES = {"kinglet, 9 bits": "kinglet", "LiteRT, int8 weights": "LiteRT with int8 weights",
            "ONNX Runtime, int8 weights": "ONNX Runtime with int8 weights", "PyTorch, float32": "PyTorch in float32"}
BEGIN, END = "<!-- figures: bench/peers/draw.py writes these lines -->", "<!-- end of figures -->"
WIDTH, ROW, TOP = 860, 25, 92
COLUMNS = 120  # of README.md
STYLE = """
  .page { fill: #ffffff; stroke: #d0d7de } text { fill: #1f2328; font: 13px system-ui, sans-serif }
  .title { font-size: 16px; font-weight: 600 } .group { font-weight: 600 } .note { fill: #59636e; font-size: 12px }
  .right { text-anchor: end } .ours { fill: #0a7d4f } .other { fill: #8c96a0 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #3d444d } text { fill: #f0f6fc } .note { fill: #a0a9b4 }
    .ours { fill: #3fb97f } .other { fill: #6e7781 }
  }"""


def read(name: str) -> str:
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def times() -> dict:
    """case: [(runtime, microseconds)], kinglet first, and where and when they were measured."""
    figures = json.loads(read("docs/figures.json"))
    found = {}
    for case, _ in CASES:
        rows = {row["name"]: row["us"] for row in figures["cases"][case]["rows"]}
        found[case] = [(name, rows[name]) for name in RUNTIMES if name in rows]
    return {"cases": found, "machine": figures["machine"], "date": figures["date"]}


def sizes() -> list:
    """[(method, bytes of the file, perplexity)] of TECHNIQUES.md's first table."""
    lines = read("docs/TECHNIQUES.md").partition("\n## The demo model")[2].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|---"))
    rows = []
    for line in lines[start + 1:]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows.append((cells[0], int(cells[8].replace(",", "")), float(cells[10])))
    return rows


class Picture:
    def __init__(self):
        self.lines = []

    def text(self, x: float, y: float, words: str, style: str = ""):
        name = f' class="{style}"' if style else ""
        self.lines.append(f'<text x="{x:g}" y="{y:g}"{name}>{escape(words)}</text>')

    def bar(self, x: float, y: float, width: float, style: str):
        self.lines.append(f'<rect class="{style}" x="{x:g}" y="{y - 13:g}" width="{max(width, 1):.1f}" height="17" rx="2"/>')

    def whole(self, height: int, description: str) -> str:
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
            f"<title>{escape(description)}</title>", f"<style>{STYLE}\n</style>",
            f'<rect class="page" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>', *self.lines, "</svg>", ""])


def draw() -> str:
    measured, rows = times(), sizes()
    picture = Picture()
    picture.text(24, 34, "Microseconds per token", "title")
    picture.text(24, 54, "one thread; every word's probability; shorter is better", "note")
    y = TOP
    for case, title in CASES:
        picture.text(24, y, title, "group")
        longest = max(us for _, us in measured["cases"][case])
        for name, us in measured["cases"][case]:
            y += ROW
            style = "ours" if name.startswith("kinglet") else "other"
            picture.text(24, y, name)
            picture.bar(210, y, 140 * us / longest, style)
            picture.text(216 + 140 * us / longest, y, f"{us:,.0f}")
        y += ROW + 12
    picture.text(452, 34, "Bytes of the demo model, converted", "title")
    picture.text(452, 54, "vocabulary included, no neural cache", "note")
    picture.text(838, 54, "perplexity", "note right")
    longest = max(size for _, size, _ in rows)
    right = TOP
    for name, size, perplexity in rows:
        picture.text(452, right, name)
        picture.bar(632, right, 90 * size / longest, "ours")
        picture.text(638 + 90 * size / longest, right, f"{size / 1e6:.2f} MB")
        picture.text(838, right, f"{perplexity:.2f}", "right")
        right += ROW
    bottom = max(y, right) + 4
    picture.text(24, bottom, f"Times: {measured['machine']}, {measured['date']}.", "note")
    return picture.whole(bottom + 18, "kinglet next to LiteRT, ONNX Runtime and PyTorch; bytes and perplexity")


def sentence() -> list:
    """README.md's lines between BEGIN and END."""
    measured = times()
    lines = []
    for (case, _), what in zip(CASES, ("the bundled model", "a network of the best MicroNet's shapes")):
        ours, others = measured["cases"][case][0][1], measured["cases"][case][1:]
        other_texts = [f"{RUNTIMES[name]} {us:,.0f} ({us / ours:.1f} times)" for name, us in others]
        lines.append(f"On {what} a token takes kinglet {ours:,.0f} us, " + ", ".join(other_texts[:-1]) + f" and {other_texts[-1]}.")
    lines.append(f"Measured on {measured['machine']}, one thread, {measured['date']}.")
    return textwrap.wrap(" ".join(lines), COLUMNS, break_on_hyphens=False)


def with_sentence(readme: str) -> str:
    before, begin, rest = readme.partition(BEGIN + "\n")
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"draw: README.md: expected the lines {BEGIN} and {END}, found none")
    return before + begin + "\n".join(sentence()) + "\n" + end + after


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 where something is stale")
    options = parser.parse_args()
    wanted = {"docs/peers.svg": draw(), "README.md": with_sentence(read("README.md"))}
    stale = [name for name, text in wanted.items() if not os.path.exists(os.path.join(ROOT, name)) or read(name) != text]
    if options.check:
        for name in stale:
            print(f"draw: {name}: expected what docs/figures.json and docs/TECHNIQUES.md say, found other figures: run bench/peers/draw.py")
        sys.exit(1 if stale else 0)
    for name in stale:
        with open(os.path.join(ROOT, name), "w", encoding="utf-8") as file:
            file.write(wanted[name])
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
