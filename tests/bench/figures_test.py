#!/usr/bin/env python3
"""The picture and the table in README.md say what docs/figures.json and docs/TECHNIQUES.md say; so does the table of
docs/PERFORMANCE.md.

    figures_test.py ROOT
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = os.path.abspath(sys.argv[1])


def draw(root, *arguments):
    return subprocess.run([sys.executable, "-B", os.path.join(root, "bench", "peers", "draw.py"), *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


class Figures(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = os.path.join(self.folder.name, "copy")
        for name in ("README.md", "docs/figures.json", "docs/TECHNIQUES.md", "docs/PERFORMANCE.md", "docs/PLANNING.md", "docs/peers.svg",
                     "bench/peers/draw.py"):
            os.makedirs(os.path.dirname(os.path.join(self.root, name)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, name), os.path.join(self.root, name))

    def text(self, name):
        with open(os.path.join(self.root, name), encoding="utf-8") as file:
            return file.read()

    def replace(self, name, old, new):
        text = self.text(name)
        self.assertIn(old, text)
        with open(os.path.join(self.root, name), "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))

    def test_nothing_is_stale(self):
        found = draw(ROOT, "--check")
        self.assertEqual((found.returncode, found.stdout, found.stderr), (0, "", ""))

    def test_the_table_of_times_is_that_of_the_figures(self):
        with open(os.path.join(ROOT, "docs", "figures.json"), encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        times = {name: {row["name"]: row["us"] for row in case["rows"]} for name, case in cases.items()}
        expected = {}
        for name in times["demo"]:
            expected[name] = []
            for case in ("demo", "best"):
                us, ours = times[case].get(name), times[case]["kinglet, 9 bits"]
                expected[name] += ["", ""] if us is None else [f"{us:.1f}", f"{us / ours:.2f}"]
        with open(os.path.join(ROOT, "docs", "PERFORMANCE.md"), encoding="utf-8") as file:
            rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in file if line.startswith("|")]
        self.assertEqual({row[0]: (row[1:] + ["", ""])[:4] for row in rows if row[0] in expected}, expected)

    def test_a_new_time_makes_picture_and_readme_stale_until_they_are_written(self):
        figures = json.loads(self.text("docs/figures.json"))
        figures["cases"]["demo"]["rows"][0]["us"] = 12345.0
        with open(os.path.join(self.root, "docs", "figures.json"), "w") as file:
            json.dump(figures, file)
        found = draw(self.root, "--check")
        self.assertEqual(found.returncode, 1)
        self.assertEqual([line.split(":")[1].strip() for line in found.stdout.splitlines()], ["docs/peers.svg", "README.md"])
        self.assertNotIn("12,345", self.text("README.md"))
        self.assertEqual(draw(self.root).returncode, 0)
        self.assertIn("12,345", self.text("README.md"))
        self.assertIn("12,345", self.text("docs/peers.svg"))
        self.assertEqual(draw(self.root, "--check").returncode, 0)

    def test_a_number_changed_by_hand_is_found(self):
        for name, old, new in (("docs/peers.svg", " MB<", " GB<"), ("README.md", "| 253 |", "| 252 |"),
                               ("docs/TECHNIQUES.md", "| 10-bit scalar", "| 11-bit scalar"),
                               ("docs/PERFORMANCE.md", "Xeon | 57.4 ms | 3.55 |", "Xeon | 57.4 ms | 4.55 |")):
            with self.subTest(name):
                self.setUp()
                self.replace(name, old, new)
                self.assertEqual(draw(self.root, "--check").returncode, 1)

    def test_a_readme_without_the_place_for_it_is_refused(self):
        self.replace("README.md", "<!-- end of figures -->", "")
        found = draw(self.root)
        self.assertEqual(found.returncode, 1)
        self.assertIn("draw: README.md: expected the lines", found.stderr)

    def test_a_row_of_no_program_is_refused(self):
        self.replace("README.md", "| LiteRT, int8", "| LiteRT, int7")
        self.assertIn("found 'LiteRT, int7 weights'", draw(self.root).stderr)

    def test_the_picture_is_small_and_needs_nothing_from_elsewhere(self):
        text = self.text("docs/peers.svg")
        xml.etree.ElementTree.fromstring(text)
        self.assertLess(len(text), 10000)
        self.assertEqual(text.count("http"), 1)  # the name of SVG itself
        self.assertIn("prefers-color-scheme: dark", text)

    def test_no_text_touches_a_bar_a_point_or_another_text(self):
        boxes = [box for line in self.parts() for box in line]
        self.assertGreater(len(boxes), 50)
        for i, (name, left, top, right, bottom) in enumerate(boxes):
            for other, left2, top2, right2, bottom2 in boxes[:i]:
                if name.startswith("text") or other.startswith("text"):
                    self.assertFalse(left < right2 and left2 < right and top < bottom2 and top2 < bottom, f"{name} touches {other}")
            self.assertTrue(0 < left and right < 860, name)

    def parts(self):
        """Boxes of the picture's texts, bars, points and pieces of the frontier: (name, left, top, right, bottom)."""
        texts, bars, others = [], [], []
        for element in xml.etree.ElementTree.fromstring(self.text("docs/peers.svg")):
            tag, style = element.tag.rpartition("}")[2], element.get("class", "")
            x, y = (float(element.get(key, "0").lstrip(".") or 0) for key in ("x", "y"))
            if tag == "text":
                width = len(element.text) * (8.5 if style == "title" else 6.4 if "note" in style else 7)
                x -= width if "right" in style else width / 2 if "middle" in style else 0
                texts.append((f"text {element.text}", x, y - 11, x + width, y + 3))
            elif tag == "rect" and style != "page":
                bars.append((style, x, y, x + float(element.get("width")), y + float(element.get("height"))))
            elif tag == "circle":
                x, y, r = (float(element.get(key)) for key in ("cx", "cy", "r"))
                others.append((style, x - r, y - r, x + r, y + r))
            elif style == "frontier":
                points = [tuple(map(float, point.split())) for point in element.get("d")[1:].split("L")]
                others += [(style, min(a, c), min(b, d), max(a, c), max(b, d)) for (a, b), (c, d) in zip(points, points[1:])]
        return texts, bars, others

    def test_all_bars_have_one_scale_and_the_page_says_which_way_is_better(self):
        cases = json.loads(self.text("docs/figures.json"))["cases"]
        _, bars, _ = self.parts()
        shown = ("kinglet, 9 bits", "kinglet, 5 bits", "LiteRT, int8 weights", "ONNX Runtime, int8 weights", "PyTorch, float32")
        wanted = [{row["name"]: row["us"] for row in cases[case]["rows"]}[name] for case in ("demo", "best") for name in shown]
        bars = [bar for bar in bars if bar[0] in ("ours", "other")]
        scale = (bars[-1][3] - bars[-1][1]) / wanted[-1]
        for (_, left, _, right, _), us in zip(bars, wanted, strict=True):
            self.assertAlmostEqual(right - left, us * scale, delta=0.1)
        self.assertEqual(self.text("docs/peers.svg").count("is better"), 2)

    def test_a_peer_that_is_quicker_has_its_bar_to_the_left(self):
        """The rows of docs/PERFORMANCE.md, found by their other cells."""
        ratios = [float(re.search(row, self.text("docs/PERFORMANCE.md")).group(1)) for row in (
            r"\(`compare.py --only lstm`\) \| EPYC \| [\d.]+ ms \| ([\d.]+) \|", r"--only transformer-xl`\) \| Xeon \| [\d.]+ ms \| ([\d.]+) \|",
            r"8 bits, Q8_0 \|.* ([\d.]+) \|\n", r"4 bits, Q4_0 \|.* ([\d.]+) \|\n", r"(?s)a given text of .*?8 bits, Q8_0 \|[^\n]* ([\d.]+) \|\n",
            r"8 bits, beam 5 \|.* ([\d.]+) \|\n", r"(?s)8 sentences at once.*?8 bits, beam 5 \|[^\n]* ([\d.]+) \|\n",
            r"BERT-base, 128 tokens: 8 bits.* ([\d.]+) \|\n",
            r"3-grams, .* ([\d.]+) \|\n")]
        bars = [bar for bar in self.parts()[1] if bar[0] in ("quicker", "slower")]
        equal = min(left for style, left, *_ in bars if style == "quicker")
        octaves = [(right - equal if style == "quicker" else left - equal) / 54 for style, left, _, right, _ in bars]
        for found, ratio in zip(octaves, ratios, strict=True):
            self.assertAlmostEqual(2 ** found, ratio, delta=0.01 * ratio)

    def test_the_frontier_is_what_no_smaller_file_beats(self):
        rows = re.findall(r"^\| .* \| `convert wikitext2 .*` \| .* \| ([\d,]+) \| [\d.]+ \| ([\d.]+) \|$", self.text("docs/TECHNIQUES.md"), re.M)
        planned = re.findall(r"^\| [a-z+]+ \| ([\d,]+) \| ([\d.]+) \| [\d.]+ \|$", self.text("docs/PLANNING.md"), re.M)
        self.assertEqual(len(planned), 3)
        files = [(int(size.replace(",", "")), float(perplexity)) for size, perplexity in rows + planned]
        best = [one for one in files if not any(other[0] < one[0] and other[1] <= one[1] for other in files)]
        points = [style for style, *_ in self.parts()[2]]
        self.assertEqual((points.count("point"), points.count("beaten")), (len(best), len(files) - len(best)))
        self.assertLess(len(best), len(files))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
