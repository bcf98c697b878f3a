#!/usr/bin/env python3
"""Writes this folder with the original programs: small SentencePiece models and byte-pair codes of WikiText-2's text, awkward
inputs, and what the originals make of them. Needs sentencepiece==0.2.1 and subword-nmt==0.3.8.

    python3 make_segmentations.py          writes next to itself

M.jsonl has a line for each line of input.jsonl: ids, pieces, the text of the ids and, where it differs, of the pieces. M_spans.jsonl has the pieces' bytes in the input, M_decode.jsonl lists of ids that
no encoder makes. compare_with_originals.py (tests/runtime/text) does so for any number of lines and 17 models.
"""
import io
import json
import os
import random

import sentencepiece
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = os.path.join(HERE, "..", "..", "..", "examples", "wikitext2", "calibration.txt")
RULES = [("\uff21", "A"), ("e\u0301", "\u00e9"), ("\u3000", " "), ("\t", " "), ("\u200b", ""), ("\ufb01", "fi"), ("\u00bd", "1/2")]
MODELS = {
    "unigram": {"model_type": "unigram", "normalization_rule_name": "identity"},
    "unigram_rules": {"model_type": "unigram", "byte_fallback": True, "vocab_size": 400},
    "bpe": {"model_type": "bpe", "normalization_rule_name": "identity", "user_defined_symbols": ["<mask>", "film"]},
    "bpe_suffix": {"model_type": "bpe", "treat_whitespace_as_suffix": True, "add_dummy_prefix": False},
    "characters": {"model_type": "char", "remove_extra_whitespaces": False},
    "words": {"model_type": "word", "normalization_rule_name": "identity"},
}
AWKWARD = ["", " ", "a", " a", "a ", "  a  b  ", "\t", "\u3000a\u3000", "\u2581", "\u2581a", "a\u2581b", "<unk>", "<mask>film", "fi\ufb01fi",
           "e\u0301te\u0301", "\uff21\uff21", "a\u200bb", "\u00bd\u00bd", "000000", "....", "aaaaaaaaaa", "\u4e2d\u6587", "\U0001f600 \U0001f600",
           "\0a", "\x7f", "\ufeffa", "\ufffd", "a\rb", "filmfilm", "The film the film", "</s>", "@-@", "1,000.5", "can't", "\u0e20\u0e32"]


def train(name, options):
    made = io.BytesIO()
    if "normalization_rule_name" not in options:
        rules = os.path.join(HERE, "rules.tsv")
        with open(rules, "w", encoding="utf-8") as file:
            for left, right in RULES:
                file.write("\t".join(" ".join(f"{ord(c):X}" for c in text) for text in (left, right)) + "\n")
        options = {**options, "normalization_rule_tsv": rules}
    with open(TEXT, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip()]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=made, minloglevel=2,
                                             **{"vocab_size": 160, "character_coverage": 0.999, **options})
    with open(os.path.join(HERE, name + ".model"), "wb") as file:
        file.write(made.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())


def write(name, lines):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n")


def golden(model, text):
    made = model.encode(text, out_type="immutable_proto")
    ids, pieces = [piece.id for piece in made.pieces], [piece.piece for piece in made.pieces]
    line = {"ids": ids, "pieces": pieces, "text": model.decode(ids)}
    if model.decode(pieces) != line["text"]:
        line["text_from_pieces"] = model.decode(pieces)
    # The library counts characters here.
    return line, [[len(text[:at].encode()) for at in (piece.begin, piece.end)] for piece in made.pieces]


def main():
    draw = random.Random(7)
    with open(TEXT, encoding="utf-8") as file:
        text = file.read().replace("\n", " ")
    inputs = list(AWKWARD)
    while len(inputs) < 64:
        at = draw.randrange(len(text) - 25)
        words = text[at:at + draw.randrange(5, 25)]
        inputs.append(words if draw.random() < 0.5 else draw.choice(AWKWARD).join(draw.sample(words.split() or ["a"], 1) * 2) + words[:9])
    write("input.jsonl", inputs)
    for name, options in MODELS.items():
        model = train(name, options)
        lines = [golden(model, line) for line in inputs]
        write(name + ".jsonl", [line for line, _ in lines])
        lists = [[draw.randrange(model.get_piece_size()) for _ in range(draw.randrange(1, 9))] for _ in range(20)]
        write(name + "_decode.jsonl", [{"ids": ids, "text": model.decode(ids)} for ids in lists])
        with open(os.path.join(HERE, name + "_spans.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(spans, separators=(",", ":")) + "\n" for _, spans in lines)
    os.remove(os.path.join(HERE, "rules.tsv"))
    codes = io.StringIO()
    learn_bpe(io.StringIO(text), codes, 150)
    with open(os.path.join(HERE, "codes.bpe"), "w", encoding="utf-8") as file:
        file.write(codes.getvalue())
    counts = {}
    for token in BPE(io.StringIO(codes.getvalue())).segment(text).split():
        counts[token] = counts.get(token, 0) + 1
    with open(os.path.join(HERE, "codes.bpe.vocab"), "w", encoding="utf-8") as file:
        file.writelines(f"{token} {count}\n" for token, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    plain = BPE(io.StringIO(codes.getvalue()))
    known = BPE(io.StringIO(codes.getvalue()), vocab={token for token, count in counts.items() if count >= 50})

    def tokens(bpe, line):
        return [token for token in bpe.process_line(line).strip("\r\n ").split(" ") if token]

    write("codes.jsonl", [{"tokens": tokens(plain, line), "tokens_vocab": tokens(known, line)} for line in inputs])


if __name__ == "__main__":
    main()
