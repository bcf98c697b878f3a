#!/usr/bin/env python3
"""The pages of `kinglet report` for the bundled model, the best MicroNet (random weights), and two models side by side.

    report_page_test.py figures|browser KINGLET SYNTHESISE EXAMPLE [--pictures FOLDER]

figures: every number but measured times is that of score, predict, count, bench and inspect, and the page is well-formed HTML that refers
to nothing outside itself. browser: the pages in headless Chromium, at 360 and 1,280 pixels, light and dark: no message, no request, nothing
wider than the window, no overlapping words, enough contrast. EXAMPLE is examples/wikitext2. Exits with 77 where there is no Chromium.
--pictures: writes screenshots into FOLDER; excerpt.png is docs/report.png.
"""
import argparse
import base64
import calendar
import fcntl
import html.parser
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
TIMED = "60"  # steps of each mode
MEASURED = {"us", "us_p50", "us_per_token", "tokens_per_s", "roofline_us", "peak_rss_bytes", "ratio", "interrupted"}
LEAST_CONTRAST = 4.5  # of text, by WCAG 2 (AA)


class Failed(Exception):
    pass


def require(condition, what):
    if not condition:
        raise Failed(what)


# --- pages


class Page:
    """A report of models over a text (or ids), and the numbers that it printed."""

    def __init__(self, name, kinglet, models, inputs, folder):
        self.name, self.path = name, os.path.join(folder, name + ".html")
        self.kinglet, self.models, self.inputs = kinglet, models, inputs
        lines = self.run("report", *models, *inputs, "-o", self.path, "--tokens", TIMED)
        self.reports, self.difference = lines[:len(models)], lines[len(models):]
        with open(self.path, encoding="utf-8", newline="\n") as file:
            self.html = file.read()

    def run(self, *arguments):
        done = subprocess.run([self.kinglet, *arguments, "--json"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        require(done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}")
        return [json.loads(line) for line in done.stdout.split("\n") if line]


def make_pages(options, folder):
    def path(name):
        return os.path.join(folder, name)

    def convert(name, bits):
        subprocess.run([options.kinglet, "convert", options.example, "-o", path(name), "--vocab", os.path.join(options.example, "vocab.txt"),
                        "--tokenizer", "wikitext", "--bits", bits, "--calibrate", os.path.join(options.example, "calibration.txt")], check=True, stdout=subprocess.DEVNULL)
        return path(name)

    bundled, coarse = convert("bundled.kgl", "9"), convert("coarse.kgl", "4")
    subprocess.run([options.synthesise, "--preset", "best", "-o", path("best.kgl")], check=True, stdout=subprocess.DEVNULL)
    with open(path("few.txt"), "w", encoding="ascii") as few, open(os.path.join(options.example, "tokens.txt"), encoding="ascii") as all_ids:
        few.write(" ".join(all_ids.read().split()[:300]) + "\n")
    passage = os.path.join(options.example, "passage.txt")
    return [Page("bundled", options.kinglet, [bundled], ["--text", passage], folder),
            Page("best-micronet", options.kinglet, [path("best.kgl")], ["--ids", path("few.txt")], folder),
            Page("two", options.kinglet, [bundled, coarse], ["--text", passage], folder)]


# --- figures


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in MEASURED}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def same(found, expected, what):
    found, expected = without_times(found), without_times(expected)
    if found == expected:
        return
    if isinstance(found, dict) and isinstance(expected, dict) and found.keys() == expected.keys():
        for key, value in found.items():
            same(value, expected[key], f"{what}.{key}")
    raise Failed(f"{what}: the report has {str(found)[:300]}, the command {str(expected)[:300]}")


def check_figures(page, model, report, folder):
    what = f"{page.name}, {os.path.basename(model)}"
    same(report["inspect"], page.run("inspect", model)[0], f"{what}: inspect")
    scored = page.run("score", model, *page.inputs, "--rank")
    same(report["score"], scored[-1], f"{what}: score")
    for by in ("frequency", "gap"):
        same(report[by], [line for line in page.run("score", model, *page.inputs, "--by", by) if "by" in line], f"{what}: {by}")

    # The ids of the text: the first one is not scored.
    words, ids = scored[:-1], os.path.join(folder, "ids.txt")
    if page.inputs[0] == "--ids":
        ids = page.inputs[1]
    else:
        with open(page.inputs[1], encoding="utf-8") as file:
            tokenized = subprocess.run([page.kinglet, "tokenize", model], input=file.readline(), text=True, check=True, stdout=subprocess.PIPE)
        first = (json.loads(tokenized.stdout)["ids"] + [word["id"] for word in words if word["token"] == "<eos>"])[0]
        with open(ids, "w", encoding="ascii") as file:
            file.write(" ".join(str(id) for id in [first] + [word["id"] for word in words]) + "\n")
    counted = page.run("count", model, "--ids", ids)[0]
    require(report["count"].pop("paths").split(" of ")[0] == counted.pop("paths").split(" of ")[0], f"{what}: counted tokens")
    same(report["count"], counted, f"{what}: count")
    timed = ["--ids", ids] if report["bench_ids"] == "text" else []
    bench = page.run("bench", model, *timed, "--tokens", TIMED)
    require([mode["mode"] for mode in bench] == ["full", "score", "topk"], f"{what}: modes")
    same(report["bench"], bench, f"{what}: bench")

    # The passage, word by word.
    passage = report["passage"]
    require(len(passage) == min(400, len(words)), f"{what}: {len(passage)} words of {len(words)} in the passage")
    best = page.run("predict", model, "--ids", ids, "--top", "5")
    lambdas = [block["lambda"] for block in report["inspect"]["blocks"] if block["block"] == "neural_cache"]
    for shown, word in zip(passage, words):
        cache = {key: shown.pop(key) for key in ("network", "cache_part") if key in shown}
        same(shown.pop("top"), best[word["pos"] - 1]["top"], f"{what}: best words at {word['pos']}")
        same(shown, word, f"{what}: word at {word['pos']}")
        if lambdas and word["pos"] > 1:
            mixed = (1 - lambdas[0]) * math.exp(cache["network"]) + lambdas[0] * cache["cache_part"]
            require(math.isclose(math.log(mixed), word["logprob"], abs_tol=1e-4), f"{what}: the cache's part at {word['pos']}")
    require(bool(lambdas) == (report["cache"] is not None), f"{what}: cache")
    if lambdas:
        gaps = report["cache"]["gaps"]
        require([gap["tokens"] for gap in gaps] == [gap["tokens"] for gap in report["gap"]], f"{what}: gaps of the network alone")
        mean = sum(gap["nll_network"] * gap["tokens"] for gap in gaps) / len(words)
        require(math.isclose(mean, report["cache"]["nll_network"], rel_tol=1e-7), f"{what}: mean of the network alone")
    # The page shows the same values.
    for text in (f"<dd>{report['score']['ppl']:.2f}</dd>", f"<dd>{report['inspect']['file_size']:,}</dd>",
                 f"<dd>{report['count']['ops']['total']:,.0f}</dd>"):
        require(text in page.html, f"{what}: the page lacks {text}")


def check_times(page, report):
    """The page shows medians of the nodes' times; fractions are of their sum, so that none is below 0 or above 100 %."""
    full = report["bench"][0]
    nodes = {step["name"]: step["us_p50"] for step in full["steps"] if "us_p50" in step}
    require(list(nodes) == [step["name"] for step in full["steps"][:-1]], f"{page.name}: nodes with a median")
    nodes["other"] = max(0, full["us_per_token"]["p50"] - sum(nodes.values()))
    table = {}
    for part in page.html.split('aria-label="Time of each node of the plan"')[1:]:
        rows = re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td><td>([^<]*) %</td>', part.split("</table>")[0])
        if all(math.isclose(float(us), nodes.get(name, math.nan), rel_tol=1e-3, abs_tol=0.001) for name, us, _ in rows):
            table = {name: float(share) for name, _, share in rows}
    require(table.keys() == nodes.keys(), f"{page.name}: table of the nodes' times")
    require(all(0 <= share <= 100 for share in table.values()), f"{page.name}: fractions {table}")
    require(abs(sum(table.values()) - 100) < 0.05 * len(table) + 0.01, f"{page.name}: fractions add up to {sum(table.values())}")


def check_comparison(page):
    """Of two models: the difference of `kinglet diff`, a verdict first, and a column of changes. Of one: none of it."""
    section = page.html.partition("<main")[2].partition("</section>")[0]
    if len(page.models) == 1:
        require(not page.difference and "Comparison" not in page.html, f"{page.name}: a comparison of one model")
        return
    expected = page.run("diff", *page.models, *page.inputs)[0]["difference"]
    same([one["difference"] for one in page.difference], [expected], f"{page.name}: difference")
    verdict = re.search(r'<h2>Comparison</h2>\n<p class="verdict">([^<]*)</p>', section)
    require(verdict, f"{page.name}: the page does not begin with a verdict")
    sizes = [report["inspect"]["file_size"] for report in page.reports]
    perplexities = [report["score"]["ppl"] for report in page.reports]
    names = [os.path.basename(model) for model in page.models]
    small = sizes.index(min(sizes))
    low, high = expected["interval"] if small == 1 else [-end for end in reversed(expected["interval"])]
    wanted = (f"{names[small]} is smaller than {names[1 - small]} by {max(sizes) - min(sizes):,} bytes "
              f"({100 * min(sizes) / max(sizes) - 100:+.1f} %) and has perplexity {perplexities[small]:.2f} instead of "
              f"{perplexities[1 - small]:.2f} ({100 * perplexities[small] / perplexities[1 - small] - 100:+.1f} %), a difference "
              f"{'within' if low <= 0 <= high else 'beyond'} the noise of this text (95 % interval: {low:+.4f} to {high:+.4f} nats a token).")
    require(verdict.group(1) == wanted, f"{page.name}: verdict {verdict.group(1)!r}, expected {wanted!r}")
    rows = re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td><td>([^<]*)</td><td>([^<]*)</td>', section)
    found = {row[0]: row[1:] for row in rows}
    require(found["bytes of the file"] == (f"{sizes[0]:,}", f"{sizes[1]:,}", f"{100 * sizes[1] / sizes[0] - 100:+.1f} %"), f"{page.name}: {found}")
    require(found["perplexity"][:2] == tuple(f"{one:.2f}" for one in perplexities), f"{page.name}: {found}")
    require(sum(name.startswith("\u00b5s a token, p50") for name in found) == 3, f"{page.name}: {found}")


def check_origin(page):
    version = subprocess.run([page.kinglet, "--version"], text=True, check=True, stdout=subprocess.PIPE).stdout.split("\n")[0]
    found = re.search(r"Written on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC by ([^<]*?) on [^<]+, \d+ processors?\.</p></header>", page.html)
    require(found and found.group(3) == version, f"{page.name}: date, version and machine")
    written = calendar.timegm(time.strptime(found.group(1) + found.group(2), "%Y-%m-%d%H:%M"))
    require(-60 < time.time() - written < 3600, f"{page.name}: written at {found.group(0)}")


class WellFormed(html.parser.HTMLParser):
    """Every element is closed in order, no attribute and no id occurs twice, and nothing outside is referred to."""

    EMPTY = {"meta", "link", "br", "rect", "path", "circle"}

    def __init__(self):
        super().__init__(convert_charrefs=False)
        self.open, self.seen, self.faults = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.faults.append(f"{tag} has an attribute twice")
        for name, value in attrs:
            if name.startswith("on") or (name in ("src", "href", "srcset", "action") and value != "data:,"):
                self.faults.append(f"{tag} has {name}={value}")
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> out of order, line {self.getpos()[0]}")

    def handle_data(self, data):
        if self.open and self.open[-1] != "style" and re.search(r"[<>&]", data):
            self.faults.append(f"bare {data[:40]!r}")


def check_html(page):
    parser = WellFormed()
    parser.feed(page.html)
    parser.close()
    require(not parser.faults and not parser.open, f"{page.name}: {(parser.faults + parser.open)[:5]}")
    require({"svg", "table", "details", "title"} <= parser.seen and "script" not in parser.seen, f"{page.name}: elements")
    require(not re.search(r"url\(|@import|https?:", page.html), f"{page.name}: refers to another place")
    require(page.html.startswith("<!DOCTYPE html>\n<html lang="), f"{page.name}: beginning")


# --- browser


class Browser:
    """Chromium, controlled over its debugging pipe: messages of JSON, each followed by a zero byte."""

    def __init__(self, program, folder):
        def above(descriptor):  # 3 and 4 are what the browser reads and writes
            return fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)

        to_browser, from_browser = [above(end) for end in os.pipe()], [above(end) for end in os.pipe()]
        start = "import os,sys; os.dup2(int(sys.argv[1]),3); os.dup2(int(sys.argv[2]),4); os.execvp(sys.argv[3],sys.argv[3:])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", start, str(to_browser[0]), str(from_browser[1]), program, "--headless=new", "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
             f"--user-data-dir={folder}", "about:blank"], pass_fds=(to_browser[0], from_browser[1]), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.write, self.read = to_browser[1], from_browser[0]
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def receive(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.read, 1 << 20)
            require(piece, "the browser ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                require("error" not in answer, f"{method}: {answer.get('error')}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url):
        self.events = []
        self.ask("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())

    def run(self, script):
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        require("exceptionDetails" not in answer, f"script: {answer.get('exceptionDetails')}")
        return answer["result"].get("value")

    def close(self):
        self.process.terminate()
        self.process.wait()


# Faults in the layout of the page: a list of sentences.
LOOK = """(() => {
  const faults = [], width = window.innerWidth;
  const say = (what, element) => faults.push(what + ': ' + element.outerHTML.slice(0, 120));
  const wide = document.documentElement.scrollWidth;
  if (wide > WIDTH || width > WIDTH) faults.push('the page is ' + wide + ' pixels wide in a window of ' + width);
  for (const element of document.body.querySelectorAll('*')) {
    if (element.closest('.scroll') && !element.matches('.scroll')) continue;
    const box = element.getBoundingClientRect();
    if (box.width > 0 && (box.right > WIDTH + 1 || box.left < -1)) say('beyond the window', element);
  }
  for (const svg of document.querySelectorAll('svg[role=img]')) {
    if (!svg.getAttribute('aria-label')) say('no label', svg);
    if (!svg.closest('figure').parentElement.querySelector('details table')) say('no table', svg);
    const view = svg.viewBox.baseVal, texts = [...svg.querySelectorAll('text')].map(text => text.getBBox());
    texts.forEach((a, i) => {
      if (a.x < 0 || a.x + a.width > view.width || a.y + a.height > view.height) say('text beyond its picture', svg.querySelectorAll('text')[i]);
      for (const b of texts.slice(i + 1)) {
        if (a.x < b.x + b.width && b.x < a.x + a.width && a.y + 2 < b.y + b.height && b.y + 2 < a.y + a.height)
          say('texts on each other', svg.querySelectorAll('text')[i]);
      }
    });
  }
  const parse = colour => (colour.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const background = element => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    if (!walker.currentNode.data.trim() || style.display === 'none') continue;
    const ink = element.closest('svg') ? style.fill : style.color, paper = background(element);
    const key = ink + paper;
    if (seen.has(key)) continue;
    seen.add(key);
    const [a, b] = [light(parse(ink)), light(paper)], contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < CONTRAST) say('contrast ' + contrast.toFixed(2) + ' of ' + ink + ' on ' + paper, element);
  }
  return faults;
})()"""

# Shows the facts of a word and lists their faults.
TOUCH = """(() => {
  const word = document.querySelector('.w');
  word.focus();
  const box = word.querySelector('.h').getBoundingClientRect();
  const shown = box.width > 0 && box.left >= 0 && box.right <= WIDTH + 1 && box.bottom <= window.innerHeight + 1;
  const text = word.querySelector('.h').innerText;
  word.blur();
  return shown && /rank \\d/.test(text) && /Best five: ./.test(text) ? [] : ['the facts of a word: ' + JSON.stringify(box) + text];
})()"""


def check_in_browser(browser, page, width, scheme, pictures):
    what = f"{page.name}, {width} pixels, {scheme}"
    browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 600)
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    url = "file://" + page.path
    browser.open(url)
    faults = []
    for opened in (False, True):
        if opened:
            browser.run("for (const details of document.querySelectorAll('details')) details.open = true")
        script = LOOK.replace("WIDTH", str(width)).replace("CONTRAST", str(LEAST_CONTRAST))
        faults += browser.run(script)
        if pictures and not opened:
            size = browser.ask("Page.getLayoutMetrics")["cssContentSize"]
            shot = browser.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                               clip={"x": 0, "y": 0, "width": width, "height": min(size["height"], 8000), "scale": 1})
            with open(os.path.join(pictures, f"{page.name}-{width}-{scheme}.png"), "wb") as file:
                file.write(base64.b64decode(shot["data"]))
    faults += browser.run(TOUCH.replace("WIDTH", str(width)))
    for event in browser.events:
        method, params = event.get("method"), event.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            faults.append(f"message: {json.dumps(params)[:300]}")
        if method == "Network.requestWillBeSent" and params["request"]["url"] not in (url, "data:,"):
            faults.append(f"request: {params['request']['url']}")
    require(not faults, f"{what}: {len(faults)} faults: " + "\n  ".join([""] + faults[:10]))
    print(f"{what}: good")


# Leaves a few sections of a page, and the beginning of its passage.
EXCERPT = """(() => {
  const kept = ['The model', 'Passage', 'Time by component', 'Bytes by owner'];
  for (const section of document.querySelectorAll('section, footer')) {
    const title = section.querySelector('h2');
    if (!title || !kept.includes(title.innerText)) section.remove();
  }
  for (const details of document.querySelectorAll('details')) details.remove();
  const passage = document.querySelector('.passage');
  passage.style.maxHeight = '14.7rem';  // seven lines
  passage.style.overflow = document.documentElement.style.overflow = 'hidden';
})()"""


def write_excerpt(browser, page, file):
    width, height = 1000, 1020
    browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.open("file://" + page.path)
    browser.run(EXCERPT)
    with open(file, "wb") as picture:
        picture.write(base64.b64decode(browser.ask("Page.captureScreenshot", format="png")["data"]))


def look_at_pages(options, program, pages, folder):
    browser = Browser(program, os.path.join(folder, "profile"))
    try:
        for page in pages:
            for width in (360, 1280):
                for scheme in ("light", "dark"):
                    check_in_browser(browser, page, width, scheme, options.pictures)
        if options.pictures:
            write_excerpt(browser, pages[0], os.path.join(options.pictures, "excerpt.png"))
    finally:
        browser.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("figures", "browser"))
    parser.add_argument("kinglet")
    parser.add_argument("synthesise")
    parser.add_argument("example")
    parser.add_argument("--pictures")
    options = parser.parse_args()
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if options.part == "browser" and program is None:
        print(f"skipped: none of {', '.join(BROWSERS)} is installed (Debian's package chromium)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        start = time.monotonic()
        pages = make_pages(options, folder)
        if options.part == "browser":
            look_at_pages(options, program, pages, folder)
        else:
            for page in pages:
                check_html(page)
                check_origin(page)
                check_comparison(page)
                for model, report in zip(page.models, page.reports, strict=True):
                    check_times(page, report)
                    check_figures(page, model, report, folder)
                print(f"{page.name}: {len(page.html):,} bytes, figures as the commands print them")
        print(f"{time.monotonic() - start:.1f} seconds")


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"report_page: {failed}")
