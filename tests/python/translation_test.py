"""Translation from Python: the numbers and sentences of a program that is not kinglet.

tests/data/opennmt/make_fixtures.py computed them in float64.
"""

import sys
import tempfile

import kinglet_lm
from support import DATA, refused

FOLDER = DATA / "opennmt" / "plain"
START = 2
SOURCE_WORDS = ["<unk>", "<blank>", *(f"s{id}" for id in range(2, 19))]


def lists(name):
    return [[int(id) for id in line.split()] for line in (FOLDER / name).read_text().splitlines()]


def greedy(session, source, end, most):
    """Steps the most probable word each time."""
    session.encode(source)
    words = [START]
    while len(words) <= most and words[-1] != end:
        session.step(words[-1])
        words.append(session.top_k(1)[0][0])
    return [word for word in words[1:] if word != end]


def main():
    pairs = [[[int(id) for id in side.split()] for side in line.split("|||")]
             for line in (FOLDER / "pairs.txt").read_text().splitlines()]
    golden = [line.split("\t") for line in (FOLDER / "golden.tsv").read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/m.kgl"
        kinglet_lm.convert(FOLDER, path)
        model = kinglet_lm.Model(path)
        end = model.vocabulary.end
        with model.session(lanes=2) as session:
            seen = 0
            for sentence, (source, target) in enumerate(pairs):
                wanted = [(int(id), float(p)) for at, _, id, p in golden if int(at) == sentence]
                session.encode(source, lane=1)
                for now, (id, value) in zip(target, wanted):
                    session.step(now, lane=1)
                    assert abs(session.log_probability(id, lane=1) - value) < 1e-4, (sentence, id)
                    seen += 1
            assert seen == len(golden) > 60
            for (source, _), words in zip(pairs, lists("greedy.txt")):
                assert greedy(session, source, end, len(words) or 9) == words
            refused(kinglet_lm.InvalidArgument, lambda: session.encode([]))
            refused(kinglet_lm.IdOutOfRange, lambda: session.encode([10**6]))
        assert model.vocabulary.source_size > max(max(source) for source, _ in pairs)
        sentences = [" ".join(SOURCE_WORDS[id] for id in source) for source, _ in pairs]
        assert [model.vocabulary.source_id(word) for word in sentences[1].split()] == pairs[1][0]
        for options, name in (({}, "greedy.txt"), ({"beam": 3}, "beam3.txt")):
            printed = kinglet_lm.translate(path, sentences, max_length=9, **options)
            found = [[word["id"] for word in one["target"]] for one in printed]
            assert found == lists(name), name
    print(f"{seen} log-probabilities and {2 * len(pairs)} translations as computed elsewhere")


if __name__ == "__main__":
    sys.exit(main())
