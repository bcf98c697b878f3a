#!/usr/bin/env python3
"""Draws docs/peers.svg and writes the times in README.md's table, from the figures that the benchmarks printed.

    bench/peers/draw.py             # after docs/figures.json, docs/TECHNIQUES.md or docs/PERFORMANCE.md has changed
    bench/peers/draw.py --check     # exits with 1 if the picture or README.md is stale

docs/figures.json: `bench/peers/compare.py --only demo,best --figures docs/figures.json` writes it (microseconds a token).
docs/TECHNIQUES.md: its first table is printed by `bench/techniques` (bytes and perplexity of the demo model).
docs/PLANNING.md: its frontier of the bundled model is printed by `kinglet frontier`.
docs/PERFORMANCE.md: the quickest peer for each kind of model, in the tables whose rows KINDS names; their commands print them.
"""
import argparse
import json
import math
import os
import re
import sys
from xml.sax.saxutils import escape

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
CASES = (("demo", "Demo model, WikiText-2, 33,278 words"), ("best", "Best MicroNet's shapes, 267,735 words"))
# The rows that the picture shows: the quickest form of each peer. The first one is compared with the others.
RUNTIMES = ("kinglet, 9 bits", "kinglet, 5 bits", "LiteRT, int8 weights", "ONNX Runtime, int8 weights", "PyTorch, float32")
# The quickest peer for each kind of model: what the picture says, the peer, and where docs/PERFORMANCE.md has its time over
# kinglet's: the section, the beginning of the last row without ".." and that of the row; the ratio is in the fourth column.
NEXT_TO, OTHER = "## Next to llama.cpp, CTranslate2, ONNX Runtime and KenLM", "## Other networks"
KINDS = (
    ("LSTM, 2 x 1,500: a word, 9 bits", "PyTorch float32", OTHER, "LSTM, 2 x 1,500", "LSTM"),
    ("Transformer-XL: a word, 9 bits", "PyTorch float32", OTHER, "Transformer-XL", "Transformer"),
    ("GPT-2 small: a piece, 8 bits", "llama.cpp Q8_0", NEXT_TO, "GPT-2 small's shape", ".. 8 bits"),
    ("GPT-2 small: a piece, 4 bits", "llama.cpp Q4_0", NEXT_TO, "GPT-2 small's shape", ".. 4 bits"),
    ("GPT-2 small: a given text, 8 bits", "llama.cpp Q8_0", NEXT_TO, "a given text of 256 tokens", ".. 8 bits"),
    ("Translation, beam 5: one by one, 8 bits", "CTranslate2 int8", NEXT_TO, "translation, 6 x 512", ".. 8 bits, beam 5"),
    ("Translation, beam 5: batches of 8, 8 bits", "CTranslate2 int8", NEXT_TO, "8 sentences at once", ".. 8 bits, beam 5"),
    ("BERT-base: 128 pieces, 8 bits", "ONNX Runtime int8", NEXT_TO, "BERT-base", "BERT"),
    ("3-grams: a word of a text", "KenLM", NEXT_TO, "3-grams", "3-grams"),
)
BEGIN, END = "<!-- figures: bench/peers/draw.py writes the last two columns -->", "<!-- end of figures -->"
WIDTH, LEFT, RIGHT, ROW = 860, 24, 836, 22
LETTER = 7.2  # width of a letter of 13 pixels in a wide font
BARS, BARS_END = 214, 690  # a bar's left end, and the longest one's right end
STYLE = """
  .page { fill: #ffffff; stroke: #d0d7de } text { fill: #1f2328; font: 13px system-ui, sans-serif }
  .title { font-size: 16px; font-weight: 600 } .group { font-weight: 600 } .note { fill: #59636e; font-size: 12px }
  .label { stroke: #ffffff; stroke-width: 4px; paint-order: stroke; stroke-linejoin: round }
  .right { text-anchor: end } .middle { text-anchor: middle } .ours, .point, .quicker { fill: #0a7d4f } .other, .slower { fill: #8c96a0 }
  .grid { stroke: #d0d7de } .frontier { stroke: #0a7d4f; stroke-width: 2; fill:none } .beaten { fill:none; stroke: #59636e; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #3d444d } .label { stroke: #0d1117 } text { fill: #f0f6fc } .note { fill: #a0a9b4 } .grid { stroke: #3d444d }
    .ours, .point, .quicker { fill: #3fb97f } .other, .slower { fill: #6e7781 } .frontier { stroke: #3fb97f } .beaten { stroke: #a0a9b4 }
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


def table(page: str, heading: str) -> list:
    """The cells of the first table after a heading, without its own heading."""
    lines = read(page).partition(heading)[2].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|---"))
    rows = []
    for line in lines[start + 1:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def sizes() -> list:
    """[(method, bytes of the file, perplexity)] of TECHNIQUES.md's first table, and the best plans of PLANNING.md:
    those with a perplexity of the whole test text."""
    rows = [(cells[0], int(cells[8].replace(",", "")), float(cells[10]))
            for cells in table("docs/TECHNIQUES.md", "\n## The demo model")]
    rows += [("planned", int(cells[1].replace(",", "")), float(cells[2]))
             for cells in table("docs/PLANNING.md", "\n### The frontier of the bundled model") if cells[0] != "float32" and cells[3]]
    return rows


def kinds() -> list:
    """[(kind of model, peer, its time over kinglet's)]."""
    page, found = read("docs/PERFORMANCE.md"), []
    for kind, peer, section, beginning, row in KINDS:
        head, ratio = "", None
        for line in page.partition(section + "\n")[2].partition("\n## ")[0].splitlines():
            if not line.startswith("|"):
                continue
            name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            head = head if name.startswith("..") else name
            if head.startswith(beginning) and name.startswith(row):
                ratio = float(cells[2])
                break
        if ratio is None:
            sys.exit(f"draw: docs/PERFORMANCE.md: expected a row {row!r} of {beginning!r} below {section!r}, found none")
        found.append((kind, peer, ratio))
    return found


class Picture:
    def __init__(self):
        self.lines = []

    def text(self, x: float, y: float, words: str, style: str = ""):
        name = f' class="{style}"' if style else ""
        self.lines.append(f'<text x="{x:g}" y="{y:g}"{name}>{escape(words)}</text>')

    def line(self, points: list, style: str):
        where = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.lines.append(f'<path class="{style}" d="M{where}"/>')

    def bar(self, y: float, width: float, style: str):
        self.lines.append(f'<rect class="{style}" x="{BARS}" y="{y - 12:g}" width="{width:.1f}" height="15"/>')

    def point(self, x: float, y: float, style: str):
        self.lines.append(f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}"/>')

    def whole(self, height: int, description: str) -> str:
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
            f"<title>{escape(description)}</title>", f"<style>{STYLE}\n</style>",
            f'<rect class="page" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>', *self.lines, "</svg>", ""])


def draw_times(picture: Picture, y: float) -> float:
    """The bars of all cases in one scale; returns where they end."""
    measured = times()
    picture.text(LEFT, y, "Microseconds per token: lower is better", "title")
    picture.text(LEFT, y + 20, "One thread; every word's probability. All bars have one scale; (n x): compared with kinglet, 9 bits.", "note")
    y += 36
    most = max(us for rows in measured["cases"].values() for _, us in rows)
    for case, title in CASES:
        y += ROW
        picture.text(LEFT, y, title, "group")
        ours = measured["cases"][case][0][1]
        for name, us in measured["cases"][case]:
            y += ROW
            end = BARS + (BARS_END - BARS) * us / most
            ratio = "" if us == ours else f" ({us / ours:.1f} x)" if us > ours else f" ({us / ours:.2f} x)"
            picture.text(LEFT, y, name)
            picture.bar(y, end - BARS, "ours" if name.startswith("kinglet") else "other")
            picture.text(end + 8, y, f"{us:,.0f}{ratio}")
        y += 8
    y += ROW
    picture.text(LEFT, y, f"{measured['machine']}, {measured['date']}; bench/peers/compare.py", "note")
    return y


# --- the quickest peer for each kind of model

PEERS, EQUAL, OCTAVE = 316, 540, 54  # where peers' names begin, the line of equal time, and a factor of two


def draw_kinds(picture: Picture, y: float) -> float:
    """A bar for each kind of model, in one logarithmic scale; returns where they end."""
    picture.text(LEFT, y, "The quickest peer for each kind of model: its time divided by kinglet's", "title")
    picture.text(LEFT, y + 20, "One thread. Bars to the right: kinglet is quicker; to the left: the peer is. Each doubling is as wide.", "note")
    y += 28
    top = y
    for kind, peer, ratio in kinds():
        y += ROW
        end = EQUAL + OCTAVE * math.log2(ratio)
        picture.text(LEFT, y, kind)
        picture.text(PEERS, y, peer)
        style = "quicker" if ratio >= 1 else "slower"
        picture.lines.append(f'<rect class="{style}" x="{min(end, EQUAL):.1f}" y="{y - 12:g}" width="{abs(end - EQUAL):.1f}" height="15"/>')
        picture.text(max(end, EQUAL) + 8, y, f"{ratio:g} x")
    picture.line([(EQUAL, top), (EQUAL, y + 8)], "grid")
    y += ROW + 8
    picture.text(LEFT, y, "Machines and commands: docs/PERFORMANCE.md", "note")
    return y


# --- the plot of bytes against perplexity

PLOT_LEFT, PLOT_HEIGHT, RADIUS = 66, 300, 4.5


def short(method: str) -> str:
    """The label of a row's method: "9 bits", "float32"."""
    return re.sub(r"^(\d+)-bit( scalar quantisation|, by feedback)$", r"\1 bits", method).removeprefix("adaptive, tied, ")


def frontier(rows: list) -> list:
    """The rows that no other row beats in bytes and perplexity, the smallest first."""
    best, found = float("inf"), []
    for row in sorted(rows, key=lambda row: row[1:]):
        if row[2] < best:
            found.append(row)
            best = row[2]
    return found


def overlap(a: tuple, b: tuple) -> bool:
    """Whether two boxes (left, top, right, bottom) touch."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def place(label: str, x: float, y: float, lowest: float, taken: list) -> tuple:
    """Where a label of the point (x, y) touches nothing and is above `lowest`: the text's left end and its base line."""
    width = LETTER * len(label)
    next_to, above = RADIUS + 5, RADIUS + 5
    for left, base in ((x - next_to - width, y + 4), (x + next_to, y + 4), (x - width / 2, y - above), (x - width / 2, y + above + 10),
                       (x + next_to, y - above), (x + next_to, y + above + 10), (x - width / 2, y - above - 16), (x + next_to, y - above - 16),
                       (x - width / 2, y + above + 26)):
        box = (left - 3, base - 12, left + width + 3, base + 4)
        if box[0] > PLOT_LEFT and box[2] < RIGHT and box[3] < lowest and not any(overlap(box, other) for other in taken):
            taken.append(box)
            return left, base
    sys.exit(f"draw: no place for the label {label!r}")


def draw_sizes(picture: Picture, y: float) -> float:
    rows = sizes()
    picture.text(LEFT, y, "Bytes and perplexity of the demo model: lower and further left is better", "title")
    picture.text(LEFT, y + 20, "Without a neural cache, vocabulary included. Line and full points: no smaller file has as low a perplexity.",
                 "note")
    top = y + 40
    bottom = top + PLOT_HEIGHT
    most_bytes = math.ceil(max(size for _, size, _ in rows) / 1e6) * 1e6
    low = math.floor(min(perplexity for *_, perplexity in rows) / 5) * 5
    high = math.ceil(max(perplexity for *_, perplexity in rows) / 5) * 5

    def across(size):
        return PLOT_LEFT + (RIGHT - PLOT_LEFT) * size / most_bytes

    def down(perplexity):
        return bottom - PLOT_HEIGHT * (perplexity - low) / (high - low)

    for perplexity in range(low, high + 1, 5):
        picture.line([(PLOT_LEFT, down(perplexity)), (RIGHT, down(perplexity))], "grid")
        picture.text(PLOT_LEFT - 8, down(perplexity) + 4, str(perplexity), "note right")
    for megabytes in range(round(most_bytes / 1e6) + 1):
        end = megabytes * 1e6 == most_bytes
        picture.text(across(megabytes * 1e6), bottom + 18, f"{megabytes} MB" if megabytes else "0", "note right" if end else "note middle")
    best = frontier(rows)
    # A step: of the bytes between two points, the smaller one's perplexity can be had.
    steps = [(across(best[0][1]), top)]
    for _, size, perplexity in best:
        steps += [(across(size), steps[-1][1]), (across(size), down(perplexity))]
    steps.append((RIGHT, steps[-1][1]))
    picture.line(steps, "frontier")
    taken = [(min(a, c) - 2, min(b, d) - 2, max(a, c) + 2, max(b, d) + 2) for (a, b), (c, d) in zip(steps, steps[1:])]
    where = [(across(size), down(perplexity)) for _, size, perplexity in rows]
    taken += [(a - RADIUS, b - RADIUS, a + RADIUS, b + RADIUS) for a, b in where]
    for (x, height), row in sorted(zip(where, rows)):
        picture.point(x, height, "point" if row in best else "beaten")
        picture.text(*place(short(row[0]), x, height, bottom + 4, taken), short(row[0]), "label")
    return bottom + 18


def draw() -> str:
    picture = Picture()
    bottom = draw_sizes(picture, draw_kinds(picture, draw_times(picture, 34) + 46) + 46)
    fed_back = ", ".join(sorted(short(method).removesuffix(" bits") for method, *_ in sizes() if method.endswith("by feedback")))
    picture.text(LEFT, bottom + 26, f"Perplexity of examples/wikitext2/passage.txt. {fed_back} bits: rounded by feedback. docs/TECHNIQUES.md, "
                 "docs/PLANNING.md", "note")
    return picture.whole(bottom + 44, "kinglet next to LiteRT, ONNX Runtime, PyTorch, llama.cpp, CTranslate2 and KenLM; bytes and perplexity")


def with_times(readme: str) -> str:
    """README.md with the times of the table between BEGIN and END."""
    before, begin, rest = readme.partition(BEGIN + "\n")
    table, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"draw: README.md: expected the lines {BEGIN} and {END}, found none")
    cases = json.loads(read("docs/figures.json"))["cases"]
    lines = []
    for line in table.splitlines():
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not name.startswith(("---", "one thread")):
            found = [[row["us"] for row in cases[case]["rows"] if row["name"] == name] for case, _ in CASES]
            if not any(found):
                sys.exit(f"draw: README.md: expected rows that docs/figures.json has, found {name!r}")
            cells[-len(CASES):] = [f"{us[0]:,.0f}" if us else "" for us in found]
            line = "| " + " | ".join([name, *cells]).replace("|  |", "| |").replace("|  |", "| |").strip() + " |"
        lines.append(line)
    return before + begin + "\n".join(lines) + "\n" + end + after


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 where something is stale")
    options = parser.parse_args()
    wanted = {"docs/peers.svg": draw(), "README.md": with_times(read("README.md"))}
    stale = [name for name, text in wanted.items() if not os.path.exists(os.path.join(ROOT, name)) or read(name) != text]
    if options.check:
        for name in stale:
            print(f"draw: {name}: expected what docs/figures.json, docs/TECHNIQUES.md and docs/PERFORMANCE.md say, found other figures: run bench/peers/draw.py")
        sys.exit(1 if stale else 0)
    for name in stale:
        with open(os.path.join(ROOT, name), "w", encoding="utf-8") as file:
            file.write(wanted[name])
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
