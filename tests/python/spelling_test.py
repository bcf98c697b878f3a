"""Models that keep a character CNN read words that their dictionary lacks: command and Python.

    spelling_test.py     (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)

The expected values are those of fairseq's equations (tests/data/fairseq-variants/make_variants.py).
"""

import json
import os
import subprocess
import tempfile

import kinglet_lm
from support import DATA, refused

VARIANTS = DATA / "fairseq-variants"


def command(*arguments, text=None):
    done = subprocess.run([os.environ["KINGLET_COMMAND"], *map(str, arguments)], input=text,
                          capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def scored(lines):
    return [(line["id"], line["logprob"]) for line in lines if "pos" in line]


def against_the_equations(name, folder):
    source = VARIANTS / name
    path = os.path.join(folder, name + ".kgl")
    kinglet_lm.convert(source / "model.pt", path, vocab=source / "dict.txt", keep_characters=4)
    golden = [line.split() for line in (source / "golden_spelt.tsv").read_text().splitlines()]
    expected = [(int(id), float(value)) for _, id, value in golden]
    text = source / "spelt.txt"

    exact = scored(command("score", path, "--text", text, "--tokens", "--json", "--backend",
                           "ref64"))
    assert [id for id, _ in exact] == [id for id, _ in expected]
    for (_, found), (_, value) in zip(exact, expected):
        assert abs(found - value) < 1e-6, (found, value)

    # Every way to score the text has the same bits.
    numbers = scored(command("score", path, "--text", text, "--tokens", "--json"))
    assert max(abs(a - b) for (_, a), (_, b) in zip(numbers, exact)) < 1e-4
    lines = ("score", path, "--text", text, "--lines", "--tokens", "--json")
    assert scored(command(*lines)) == scored(command(*lines, "--lanes", 3)) == numbers
    assert scored(command("score", path, "--text", text, "--replicas", 2, "--tokens",
                          "--json")) == numbers
    answers = command("predict", path, "--top", 1, "--json", text=text.read_text())
    assert len(answers) == len(expected)

    model = kinglet_lm.Model(path)
    assert model.spells
    words = text.read_text().rstrip("\n")
    whole = model.score_stream(text.read_text())
    assert list(zip(whole.ids, [float(f"{p:.9g}") for p in whole.log_probabilities])) == numbers
    assert whole.oov == [id for id, _ in expected].count(model.vocabulary.unknown)
    line = model.score_details(words)
    assert line == whole == next(model.score_lines([words, "w3 zzz"]))
    assert model.rescore([words, "w3 zzz"])[0].log_probability in (
        whole.log_probability, model.score("w3 zzz"))

    ids, spelled = model.tokenize(words), model.spelled(words)
    assert len(ids) == len(spelled) and ids != spelled
    new = model.spell("Kinglet")
    assert new >= len(model.vocabulary) and spelled.count(new) == words.split().count("Kinglet")
    assert model.spell("w12") == model.vocabulary.id("w12")
    with model.session() as session:
        session.step(model.vocabulary.id("w12"))
        session.step(new)
        after = session.log_probability(model.vocabulary.unknown)
        session.reset()
        session.step_many([model.vocabulary.id("w12"), new])
        assert session.log_probability(model.vocabulary.unknown) == after
        refused(kinglet_lm.IdOutOfRange, lambda: session.step(2**31), "a word that was spelt")
        refused(kinglet_lm.IdOutOfRange, lambda: session.log_probability(new))
    refused(kinglet_lm.InvalidArgument, lambda: model.spell(""), "at least one byte")

    # As a table, the model cannot.
    table = os.path.join(folder, "table.kgl")
    kinglet_lm.convert(source / "model.pt", table, vocab=source / "dict.txt")
    model = kinglet_lm.Model(table)
    assert not model.spells and model.spelled(words) == model.tokenize(words)
    refused(kinglet_lm.Unsupported, lambda: model.spell("Kinglet"), "--keep-characters")


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("args-characters-adaptive", "cfg-characters-plain"):
            against_the_equations(name, folder)
    print("words beyond the dictionary are right")


main()
