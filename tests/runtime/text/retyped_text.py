"""Types a text of WikiText as a person would, and compares what `--tokenizer wikitext` makes of it with the original.

    retyped_text.py KINGLET wiki.valid.tokens

Puts marks, joined words and endings back to their words, tokenizes the lines again, and prints the fraction of
words that are the same and the differences, the most frequent first.
"""

import collections
import difflib
import json
import re
import subprocess
import sys

SHOWN = 12
BEFORE_WORDS = set("([$£“#")  # these belong to the next word
AFTER_WORDS = set(")],.;:?!%”")
ENDING = re.compile(r"'(s|t|re|ve|ll|d|m)$")


def typed(words):
    text, quoted, glued = "", False, True
    for word in words:
        opens = word in BEFORE_WORDS or (word == '"' and not quoted)
        closes = word in AFTER_WORDS or (word == '"' and quoted) or ENDING.match(word)
        quoted ^= word == '"'
        text += word if glued or closes else " " + word
        glued = opens
    return text


def main():
    kinglet, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        lines = [line.replace("<unk>", "Unknown").split() for line in file]
    lines = [words for words in lines if words and words[0] != "="]
    pages = [typed(re.sub(r" @([-,.])@ ", r"\1", " ".join(words)).split()) for words in lines]
    tokenized = subprocess.run([kinglet, "tokenize", "wikitext"], input="\n".join(pages) + "\n", encoding="utf-8",
                               stdout=subprocess.PIPE, check=True).stdout
    same = total = 0
    different = collections.Counter()
    for words, answer in zip(lines, tokenized.splitlines()):
        pieces = json.loads(answer)["pieces"]
        total += len(words)
        matcher = difflib.SequenceMatcher(None, words, pieces, autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind == "equal":
                same += b - a
            else:
                different[" ".join(words[a:b]), " ".join(pieces[c:d])] += 1
    print(f"{len(lines)} lines, {total} words, {100 * same / total:.2f} % as they were")
    for (was, now), count in different.most_common(SHOWN):
        print(f"{count:6}  {was}  ->  {now}")


if __name__ == "__main__":
    main()
