"""Compares `kinglet tokenize` with the original libraries on fuzzed lines of UTF-8.

    compare_with_originals.py KINGLET TEXT [--lines 1000000] [--seed 1] [--only NAME] [--model FILE ...]

Needs sentencepiece==0.2.1, subword-nmt==0.3.8 and transformers==4.30.2 (pip install). Models of every
kind are trained on TEXT with the original programs; --model adds SentencePiece models. The lines are
shared out among them. SentencePiece: ids, pieces, byte ranges, the text of the ids, and of random
lists of ids. subword-nmt: tokens, with and without a vocabulary. WordPiece: ids and segments. Prints a
row for each model and each of the first differences; exits 1 if there is one.
"""

import argparse
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

import sentencepiece
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe
from transformers import BertTokenizer

BATCH = 20_000
SHOWN = 5
MARKS = ["[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"]
SPECIAL = MARKS + ["<s>", "</s>", "<unk>", "<pad>", "<0x41>", "<0xE2>", "</w>", "@@", "@@ ", "##",
                   "##a", " ||| ", "|||", "@-@", "<mask>", "\u2581", "\u2581\u2581", "\ufeff", "\ufffd",
                   "000", "0000", "...", "  ", "\t", "\n", "\r", "\0", "\x7f", "\xa0", "\u3000", "\u200b",
                   "\u200d", "\u0301", "\u0130", "\u03a3", "\u00df", "\ufb01", "\u2026", "\u00bd", "\u1e9e"]
BLOCKS = [(0x20, 0x7E), (0x00, 0xFF), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F),
          (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1FFF),
          (0x2000, 0x206F), (0x2070, 0x218F), (0x2460, 0x24FF), (0x3000, 0x30FF), (0x3200, 0x33FF),
          (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFB00, 0xFB4F), (0xFE20, 0xFFFF),
          (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF), (0x20000, 0x2A6DF), (0x2F800, 0x2FA1F),
          (0, 0xD7FF), (0xE000, 0x10FFFF)]


class Lines:
    """Random lines near the text, near the pieces of a model, and far from both."""

    def __init__(self, seed, text):
        self.random = random.Random(seed)
        self.text = text

    def character(self):
        return chr(self.random.randint(*self.random.choice(BLOCKS)))

    def part(self):
        place = self.random.randrange(len(self.text))
        return self.text[place:place + self.random.randrange(1, 80)]

    def changed(self):
        letters = list(self.part())
        for _ in range(self.random.randrange(1, 6)):
            place = self.random.randrange(len(letters) + 1)
            kind = self.random.randrange(5)
            if kind == 0:
                letters.insert(place, self.character())
            elif kind == 1:
                letters.insert(place, self.random.choice(SPECIAL))
            elif kind == 2 and letters:
                letters[place % len(letters)] = self.character()
            elif kind == 3 and letters:
                del letters[place % len(letters)]
            else:
                letters.insert(place, " " * self.random.randrange(1, 4))
        return "".join(letters)

    def line(self, pieces):
        kind = self.random.randrange(10)
        if kind < 2:
            return self.part()
        if kind < 5:
            return self.changed()
        if kind == 5:  # one block of Unicode
            first, last = self.random.choice(BLOCKS)
            return self.valid(self.random.randint(first, last)
                              for _ in range(self.random.randrange(0, 40)))
        if kind == 6:
            return "".join(self.random.choice(SPECIAL) if self.random.random() < 0.4 else
                           self.character() for _ in range(self.random.randrange(0, 12)))
        if kind == 7:
            return "".join(self.random.choice(pieces) for _ in range(self.random.randrange(0, 15)))
        if kind == 8:  # few different letters: many equal scores
            letters = [self.random.choice("0123456789aeinst .,-\u2581") for _ in range(3)]
            return "".join(self.random.choice(letters) for _ in range(self.random.randrange(0, 120)))
        return self.part().replace(" ", "") + self.part().upper()

    @staticmethod
    def valid(codes):
        return "".join(chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF)

    def lines(self, count, pieces):
        for _ in range(count):
            yield self.valid(map(ord, self.line(pieces)))


def run(kinglet, options, inputs):
    command = [kinglet, "tokenize", *options]
    done = subprocess.run(command, input=b"".join(line + b"\n" for line in inputs),
                          stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def byte_places(text):
    places = [0]
    for character in text:
        places.append(places[-1] + len(character.encode()))
    return places


class SentencePieces:
    def __init__(self, path):
        self.options = [path]
        self.model = sentencepiece.SentencePieceProcessor(model_file=path)
        count = self.model.get_piece_size()
        self.pieces = [self.model.id_to_piece(i).replace("\u2581", " ") for i in range(count)]

    def differences(self, kinglet, lines, chance):
        ours = run(kinglet, self.options + ["--jsonl"], [json.dumps(line).encode() for line in lines])
        theirs = self.model.encode(lines, out_type="immutable_proto")
        asked = []
        for line, mine, proto in zip(lines, ours, theirs):
            wanted = {"ids": [], "pieces": [], "ranges": []}
            places = byte_places(line)
            for piece in proto.pieces:
                wanted["ids"].append(piece.id)
                wanted["pieces"].append(piece.piece)
                wanted["ranges"].append([places[piece.begin], places[piece.end]])
            asked.append(wanted["ids"])
            if mine != wanted:
                yield line, mine, wanted
        count = self.model.get_piece_size()
        asked += [[chance.randrange(count) for _ in range(chance.randrange(0, 20))]
                  for _ in range(len(lines) // 10)]
        texts = run(kinglet, self.options + ["--decode"],
                    [json.dumps({"ids": ids}).encode() for ids in asked])
        for ids, mine, wanted in zip(asked, texts, self.model.decode(asked)):
            if mine != {"text": wanted}:
                yield ids, mine, wanted


class Codes:
    def __init__(self, path, vocabulary=None):
        self.options, known = [path], None
        if vocabulary:
            self.options += ["--subword-vocabulary", vocabulary, "--threshold", "20"]
            with open(vocabulary, encoding="utf-8") as file:
                known = {line.split()[0] for line in file if int(line.split()[1]) >= 20}
        with open(path, encoding="utf-8") as codes:
            self.bpe = BPE(codes, vocab=known)
        self.pieces = ["".join(pair).replace("</w>", " ") for pair in self.bpe.bpe_codes]

    def differences(self, kinglet, lines, _):
        ours = run(kinglet, self.options + ["--jsonl"], [json.dumps(line).encode() for line in lines])
        for line, mine in zip(lines, ours):
            wanted = {"pieces": self.bpe.segment_tokens(line.strip("\r\n ").split(" "))}
            if mine != wanted:
                yield line, mine, wanted
        self.bpe.cache.clear()


class WordPieces:
    def __init__(self, folder):
        self.options = [os.path.join(folder, "vocab.txt")]
        self.tokenizer = BertTokenizer.from_pretrained(folder)
        self.pieces = [piece.replace("##", "") for piece in self.tokenizer.vocab]

    def differences(self, kinglet, lines, _):
        ours = run(kinglet, self.options + ["--jsonl"], [json.dumps(line).encode() for line in lines])
        for line, mine in zip(lines, ours):
            wanted = self.tokenizer(*line.split(" ||| ", 1))
            if (mine["ids"], mine["segments"]) != (wanted["input_ids"], wanted["token_type_ids"]):
                yield line, mine, dict(wanted)


def with_unused(model):
    """The bytes of a model with every fifth longer piece of type 5, UNUSED: those are taken apart."""
    def varint(place):
        value = shift = 0
        while True:
            byte = model[place]
            value |= (byte & 0x7F) << shift
            place, shift = place + 1, shift + 7
            if byte < 0x80:
                return value, place

    out, place, count = b"", 0, 0
    while place < len(model):
        begin = place
        size, place = varint(place + 1)  # every member of a ModelProto has a length
        body = model[place:place + size]
        place += size
        longer = model[begin] == 0x0A and body[1] > 4
        count += longer
        if longer and count % 5 == 0:
            body += b"\x18\x05"  # the last value of a member counts
            assert len(body) < 0x80
            out += b"\x0A" + bytes([len(body)]) + body
        else:
            out += model[begin:place]
    return out


def train(folder, lines):
    """Every kind of model, by name; `lines` are sentences."""
    models = {}
    common = {"hard_vocab_limit": False, "minloglevel": 2, "num_threads": 1}
    kinds = {
        "unigram nmt_nfkc": dict(vocab_size=1000),
        "unigram nfkc_cf, byte fallback": dict(vocab_size=900, normalization_rule_name="nmt_nfkc_cf",
                                               byte_fallback=True),
        "unigram identity, spaces kept": dict(vocab_size=700, normalization_rule_name="identity",
                                              add_dummy_prefix=False,
                                              remove_extra_whitespaces=False),
        "unigram, space after, user's": dict(vocab_size=800, treat_whitespace_as_suffix=True,
                                              user_defined_symbols=["<mask>", "000", "\u00e9"]),
        "BPE nmt_nfkc": dict(vocab_size=1200, model_type="bpe"),
        "BPE identity, byte fallback": dict(vocab_size=1000, model_type="bpe", byte_fallback=True,
                                            normalization_rule_name="identity",
                                            remove_extra_whitespaces=False),
        "BPE nfkc_cf, user's": dict(vocab_size=900, model_type="bpe", split_digits=True,
                                    normalization_rule_name="nfkc_cf", unk_surface="<?>",
                                    user_defined_symbols=["<mask>", "...", "@-@"]),
        "characters": dict(vocab_size=200, model_type="char"),
        "words": dict(vocab_size=2000, model_type="word"),
    }
    for name, options in kinds.items():
        path = os.path.join(folder, name.replace(" ", "-"))
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_prefix=path,
                                                 **{**common, **options})
        models["SentencePiece " + name] = SentencePieces(path + ".model")

    for kind in ("unigram", "BPE"):
        path = os.path.join(folder, kind + "-unused.model")
        with open(os.path.join(folder, kind + "-nmt_nfkc.model"), "rb") as file:
            model = with_unused(file.read())
        with open(path, "wb") as file:
            file.write(model)
        models[f"SentencePiece {kind}, unused pieces"] = SentencePieces(path)

    codes = os.path.join(folder, "codes")
    with open(codes, "w", encoding="utf-8") as file:
        learn_bpe(io.StringIO("\n".join(lines)), file, 1500)
    models["subword-nmt"] = Codes(codes)
    counts = {}
    for line in lines:
        for token in models["subword-nmt"].bpe.segment_tokens(line.split()):
            counts[token] = counts.get(token, 0) + 1
    with open(codes + ".vocabulary", "w", encoding="utf-8") as file:
        file.writelines(f"{token} {count}\n" for token, count in counts.items())
    models["subword-nmt, vocabulary"] = Codes(codes, codes + ".vocabulary")

    characters = [chr(code) for first, last in BLOCKS[:-2] for code in range(first, last + 1, 3)]
    for name, plain in (("lower-cased", True), ("cased", False)):
        words = MARKS + [f"[unused{i}]" for i in range(3)]
        for token in counts:
            plainer = token.replace("@@", "").replace("#", "").lower() if plain else token.rstrip("@")
            words += [plainer, "##" + plainer]
        for character in characters:
            if not character.isspace() and unicodedata.category(character) not in ("Cc", "Cs"):
                words += [character, "##" + character]
        place = os.path.join(folder, name)
        os.mkdir(place)
        with open(os.path.join(place, "vocab.txt"), "w", encoding="utf-8") as file:
            file.writelines(word + "\n" for word in dict.fromkeys(words) if word and word != "##")
        with open(os.path.join(place, "tokenizer_config.json"), "w", encoding="utf-8") as file:
            json.dump({"do_lower_case": plain}, file)
        models["WordPiece, " + name] = WordPieces(place)
    return models


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kinglet")
    parser.add_argument("text")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", nargs="*", default=[])
    parser.add_argument("--only", default="", help="models whose names contain this")
    options = parser.parse_args()
    with open(options.text, encoding="utf-8") as file:
        text = file.read().replace(" @-@ ", "-").replace(" ,", ",").replace(" .", ".")
    differ = total = 0
    with tempfile.TemporaryDirectory() as folder:
        models = train(folder, [line.strip() for line in text.splitlines() if line.strip()])
        models.update((os.path.basename(path), SentencePieces(path)) for path in options.model)
        for place, (name, model) in enumerate(models.items()):
            if options.only not in name:
                continue
            share = options.lines * (place + 1) // len(models) - options.lines * place // len(models)
            fuzz = Lines(options.seed * 1000 + place, text)
            found, left = 0, share
            while left > 0:
                lines = list(fuzz.lines(min(left, BATCH), model.pieces))
                left -= len(lines)
                for line, mine, wanted in model.differences(options.kinglet, lines, fuzz.random):
                    found += 1
                    if found <= SHOWN:
                        print(f"  {line!r}\n    kinglet  {mine}\n    original {wanted}")
            print(f"{name}: {share} lines, {found} differences", flush=True)
            differ, total = differ + found, total + share
    print(f"in all: {total} lines, {differ} differences")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
