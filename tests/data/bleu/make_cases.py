#!/usr/bin/env python3
"""Writes cases.json: corpora, their tokens and their BLEU by sacrebleu.

    pip install sacrebleu==2.6.0
    make_cases.py
"""

import json
import pathlib
import random

import sacrebleu
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

HARD = [
    "Hello, world!", "It cost 1,000.50 dollars.", "1.5-2.5 and 3-4; a-b", "U.S. 's end.", "don't \"quote\" (this)",
    "&quot;a&quot; &amp;lt; b &lt;c&gt;", "<skipped>a <skipped>", "caf\u00e9, na\u00efve. \u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u3000wide\u00a0space\u2003x",
    "..", "a..b,,c", ". 5", "5 .", ".5,", "-", "10-", "a_b `c` {d} [e] ~f^ |g", "x=y+z*2/3%", "@user #tag $5 \\n", "\u00e9.\u00e9,\u00e9-1",
    "", "   ", "tab\there", "1.", ",1", "a.1 1.a", "3,4,5.6", "\u2014 dash \u2013 1\u20132",
]
# (translations, references)
CORPORA = [
    (["the cat sat on the mat"], ["the cat sat on the mat"]),
    (["the cat sat on a mat .", "there is a dog, here."], ["the cat sat on the mat .", "there was a dog here."]),
    (["short"], ["a much longer reference than that"]),
    (["a b c"], ["a b c"]),
    (["no match at all here"], ["something else entirely now"]),
    (["the the the the the the"], ["the cat is on the mat"]),
    (["", "one two three four five"], ["empty before", "one two three four six"]),
    ([""], ["nothing"]),
    (["one two x four five six"], ["one two three four five seven"]),
    (HARD, HARD),
    (HARD, HARD[1:] + HARD[:1]),
]


def random_corpus(seed):
    chance = random.Random(seed)
    words = ["a", "the", "is", "1,000", "3.5", "end.", "well,", "\u00e9t\u00e9", "x-y", "9-", "(no)", "it's"]
    references = [" ".join(chance.choices(words, k=chance.randint(1, 14))) for _ in range(20)]
    changed = [" ".join(word if chance.random() < 0.7 else chance.choice(words) for word in line.split()
                        if chance.random() < 0.95) for line in references]
    return changed, references


def main():
    cases = []
    for translations, references in [*CORPORA, *(random_corpus(seed) for seed in range(3))]:
        score = sacrebleu.corpus_bleu(translations, [references])
        cases.append({"translations": translations, "references": references, "bleu": score.score,
                      "precisions": score.precisions, "brevity_penalty": score.bp, "tokens": score.sys_len,
                      "reference_tokens": score.ref_len})
    tokenizer = Tokenizer13a()
    tokens = [[text, tokenizer(text).split()] for text in HARD]
    lines = [json.dumps({"tokens": tokens})] + [json.dumps(case) for case in cases]
    (pathlib.Path(__file__).parent / "cases.json").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
