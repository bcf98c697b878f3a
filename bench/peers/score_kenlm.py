#!/usr/bin/env python3
"""Sentences scored by an n-gram model in KenLM and in `kinglet ngram`, and by a network, one thread.

    score_kenlm.py KINGLET MODEL.arpa SENTENCES.txt [--network M.kgl] [--rounds 5]

examples/rescoring/README.md has the commands that make MODEL.arpa and the sentences. KenLM reads the ARPA file into its hash
table and is called from Python once a sentence; kinglet's file is made with 32-bit floats and with --bits 8. Programs run
alternately; the medians of the rounds are printed, as processor time without reading the model (kinglet: the time of all
sentences minus that of one). The sums of both in float32 are compared. Needs kenlm from PyPI.
"""
import argparse
import json
import math
import os
import statistics
import tempfile
import time

from processor_time import needed, run, timed

kenlm, = needed("kenlm")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("kinglet", "arpa", "sentences"):
        parser.add_argument(name)
    parser.add_argument("--network")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with open(options.sentences) as file:
        sentences = file.read().splitlines()
    tokens = sum(len(sentence.split()) + 1 for sentence in sentences)
    peer = kenlm.Model(options.arpa)
    with tempfile.TemporaryDirectory() as folder:
        one = os.path.join(folder, "one.txt")
        with open(one, "w") as file:
            file.write(sentences[0] + "\n")
        calls = {}
        for name, bits in (("kinglet ngram", []), ("kinglet ngram, 8 bits", ["--bits", "8"])):
            model = os.path.join(folder, f"{len(calls)}.kng")
            run([options.kinglet, "ngram", options.arpa, "-o", model, *bits])
            calls[name] = ["ngram", model, "--json"]
        if options.network:
            calls["kinglet, network"] = ["score", options.network, "--lines", "--json"]
        times = {name: [] for name in ("KenLM", *calls)}
        totals = {}
        for _ in range(options.rounds):
            start = time.process_time()
            totals["KenLM"] = math.log(10) * sum(peer.score(sentence) for sentence in sentences)
            times["KenLM"].append(time.process_time() - start)
            for name, words in calls.items():
                seconds = [timed([options.kinglet, *words, "--text", path]) for path in (options.sentences, one)]
                times[name].append(seconds[0][0] - seconds[1][0])
                last = json.loads(seconds[0][1].splitlines()[-1])
                totals[name] = -last["nll"] * last["scored"]
    print(f"{len(sentences)} sentences, {tokens} tokens with their ends\n\n| | us a token | perplexity |\n|---|--:|--:|")
    for name, found in times.items():
        print(f"| {name} | {1e6 * statistics.median(found) / tokens:.2f} | {math.exp(-totals[name] / tokens):.2f} |")


if __name__ == "__main__":
    main()
