#!/usr/bin/env python3
"""Filters 20,000 documents of known kinds, and shows which kinds the best 30 percent are.

    bench/filter_trial.py KINGLET [--documents 20000] [--kills 20] [--arpa MODEL.arpa] [--lanes 16] [--with-cache]

KINGLET is the command; the model is the demo in 9 bits, calibrated, without its neural cache but for --with-cache: a cache rewards
text that repeats. Six of ten documents are runs of 20 to 40 words of the demo's texts; one of ten each
is letters at random, another language, boilerplate that repeats, and such a run with its words shuffled. `filter --scores-out` scores
them once; `--cut-from` then ranks them by each score, with and without a limit on unknown words. With --kills the scoring is killed
(SIGKILL) at that many random moments and continued, and the bytes are compared. With --arpa KenLM (PyPI's kenlm) ranks them by its
perplexity, too. Exits with 1 if any of the kept is letters at random, more than 2 percent are another language, or bytes differ.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

DEMO = pathlib.Path(__file__).resolve().parent.parent / "examples" / "wikitext2"
KINDS = ["text", "letters", "language", "boilerplate", "shuffled"]
# From the Universal Declaration of Human Rights, 1948, in German, French, Spanish and Finnish.
LANGUAGES = [
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren . Sie sind mit Vernunft und Gewissen begabt und sollen einander im "
    "Geist der Brüderlichkeit begegnen . Jeder hat das Recht auf Leben , Freiheit und Sicherheit der Person . Niemand darf in Sklaverei "
    "oder Leibeigenschaft gehalten werden ; Sklaverei und Sklavenhandel sind in allen ihren Formen verboten . Niemand darf der Folter "
    "oder grausamer , unmenschlicher oder erniedrigender Behandlung oder Strafe unterworfen werden .",
    "Tous les êtres humains naissent libres et égaux en dignité et en droits . Ils sont doués de raison et de conscience et doivent agir "
    "les uns envers les autres dans un esprit de fraternité . Tout individu a droit à la vie , à la liberté et à la sûreté de sa personne "
    ". Nul ne sera tenu en esclavage ni en servitude ; l' esclavage et la traite des esclaves sont interdits sous toutes leurs formes .",
    "Todos los seres humanos nacen libres e iguales en dignidad y derechos y , dotados como están de razón y conciencia , deben "
    "comportarse fraternalmente los unos con los otros . Todo individuo tiene derecho a la vida , a la libertad y a la seguridad de su "
    "persona . Nadie estará sometido a esclavitud ni a servidumbre ; la esclavitud y la trata de esclavos están prohibidas en todas sus "
    "formas .",
    "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan . Heille on annettu järki ja omatunto , ja heidän on "
    "toimittava toisiaan kohtaan veljeyden hengessä . Kullakin yksilöllä on oikeus elämään , vapauteen ja henkilökohtaiseen "
    "turvallisuuteen . Ketään ei saa pitää orjana tai orjuutettuna , kaikki orjuuden ja orjakaupan muodot on kiellettävä .",
]
BOILERPLATE = [
    "This site uses cookies . By continuing to browse this site you agree to our use of cookies .",
    "Sign up for our newsletter . Enter your email address below to subscribe .",
    "All rights reserved . No part of this site may be reproduced without written permission .",
    "Click here to read more . Share this on Facebook . Share this on Twitter .",
    "Free shipping on all orders over 50 dollars . Add to cart . Add to wish list .",
]


def demo_words():
    return [word for name in ("calibration.txt", "passage.txt") for word in (DEMO / name).read_text(encoding="utf-8").split()]


def convert_demo(kinglet, model, *options):
    """The demo, calibrated; the options are of `kinglet convert`."""
    subprocess.run([kinglet, "convert", str(DEMO), "--vocab", str(DEMO / "vocab.txt"), "--tokenizer", "wikitext",
                    "--calibrate", str(DEMO / "calibration.txt"), *options, "-o", str(model)], check=True, stdout=subprocess.DEVNULL)


def run_of(words, chance):
    length = chance.randint(20, 40)
    at = chance.randrange(len(words) - length)
    return words[at:at + length]


def documents(count, chance):
    words = demo_words()
    foreign = [text.split() for text in LANGUAGES]
    for number in range(count):
        kind = {6: "letters", 7: "language", 8: "boilerplate", 9: "shuffled"}.get(number % 10, "text")
        if kind == "letters":
            text = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(chance.randint(20, 40))]
        elif kind == "language":
            text = run_of(chance.choice(foreign), chance)
        elif kind == "boilerplate":
            text = (chance.choice(BOILERPLATE) + " ").split() * chance.randint(2, 3)
        else:
            text = run_of(words, chance)
        if kind == "shuffled":
            chance.shuffle(text)
        yield {"kind": kind, "text": " ".join(text)}


def counts(kinds):
    kinds = list(kinds)
    return {"kept": len(kinds), **{kind: round(100 * kinds.count(kind) / max(1, len(kinds)), 1) for kind in KINDS}}


def command(options, *arguments):
    return [options.kinglet, "filter", "m.kgl", "docs.jsonl", "--field", "text", *arguments]


def score(options, folder, out):
    found = subprocess.run(command(options, "--scores-out", out, "--lanes", str(options.lanes), "--json"), cwd=folder, check=True,
                           stderr=subprocess.PIPE, text=True)
    return json.loads(found.stderr.splitlines()[-1])


def chosen(options, folder, *arguments):
    done = subprocess.run(command(options, "--cut-from", "scores", "--percentile", "30", *arguments), cwd=folder, check=True,
                          capture_output=True, text=True)
    return counts(json.loads(line)["kind"] for line in done.stdout.splitlines())


def staged(options, folder):
    """KenLM's n-grams as a first stage: what is kept, the summary, and the seconds of all."""
    subprocess.run([options.kinglet, "ngram", options.arpa, "-o", str(folder / "m.kng")], check=True, stdout=subprocess.DEVNULL)
    begin = time.monotonic()
    done = subprocess.run(command(options, "--stage1", "m.kng", "--keep", "60", "--percentile", "30", "--lanes", str(options.lanes),
                                  "--json"), cwd=folder, check=True, capture_output=True, text=True)
    seconds = time.monotonic() - begin
    return counts(json.loads(line)["kind"] for line in done.stdout.splitlines()), json.loads(done.stderr.splitlines()[-1]), seconds


def killed(options, folder, seconds, chance):
    for _ in range(options.kills):
        process = subprocess.Popen(command(options, "--scores-out", "again", "--lanes", str(options.lanes)), cwd=folder,
                                   stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, 2 * seconds / options.kills))
        process.kill()
        process.wait()
    score(options, folder, "again")
    name = "docs.jsonl.scores.jsonl"
    return (folder / "again" / name).read_bytes() == (folder / "scores" / name).read_bytes()


def kenlm_ranks(options, rows):
    import kenlm

    model = kenlm.Model(options.arpa)
    begin = time.monotonic()
    scores = [model.perplexity(row["text"]) for row in rows]
    seconds = time.monotonic() - begin
    tokens = sum(len(row["text"].split()) + 1 for row in rows)
    unknown = [sum(word not in model for word in row["text"].split()) / (len(row["text"].split()) + 1) for row in rows]

    def best(indices):
        return counts(rows[i]["kind"] for i in sorted(indices, key=scores.__getitem__)[:len(indices) * 3 // 10])

    few_unknown = [i for i in range(len(rows)) if unknown[i] <= 0.2]
    return best(few_unknown), best(range(len(rows))), len(rows) / seconds, tokens / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinglet", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--documents", type=int, default=20000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--arpa")
    parser.add_argument("--with-cache", action="store_true")
    options = parser.parse_args()
    chance = random.Random(1)
    rows = list(documents(options.documents, chance))
    passed = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        convert_demo(options.kinglet, folder / "m.kgl", "--bits", "9", *([] if options.with_cache else ["--cache", "0"]))
        begin = time.monotonic()
        summary = score(options, folder, "scores")
        seconds = time.monotonic() - begin
        print(f"{len(rows)} documents scored in {seconds:.1f} s: {summary['documents_per_s']:.0f} documents and "
              f"{summary['tokens_per_s']:.0f} tokens a second")
        print("percent of the kept 30 %, by kind")
        print(f"{'':34}" + "".join(f"{column:>12}" for column in ["kept", *KINDS]))

        def row(label, found):
            print(f"{label:34}" + "".join(f"{found[column]:12}" for column in ["kept", *KINDS]))

        for rank in ("bits_per_byte", "ppl_per_word", "ppl"):
            for limit in ([], ["--max-oov", "1"]):
                found = chosen(options, folder, "--rank-by", rank, *limit)
                row(" ".join(["filter", rank, *limit]), found)
                if rank == "bits_per_byte":
                    passed = passed and found["letters"] == 0 and found["language"] <= 2
        if options.arpa:
            limited, found, per_document, per_token = kenlm_ranks(options, rows)
            row("KenLM, 20 % unknown words", limited)
            row("KenLM", found)
            staged_found, staged_summary, staged_seconds = staged(options, folder)
            row("filter --stage1 --keep 60", staged_found)
            print(f"--stage1: {len(rows) / staged_seconds:.0f} documents a second, {len(rows) / staged_summary['stage1_s']:.0f} in the "
                  "first stage")
            print(f"KenLM: {per_document:.0f} documents and {per_token:.0f} tokens a second")
        if options.kills:
            same = killed(options, folder, seconds, chance)
            passed = passed and same
            print(f"killed {options.kills} times and continued: {'the same bytes' if same else 'other bytes'}")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
