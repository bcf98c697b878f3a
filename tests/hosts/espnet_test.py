"""ESPnet's own beam search with a kinglet model as a batch scorer.

    espnet_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)

Runs with any version of torch that ESPnet's module accepts: its package may lie unpacked on
PYTHONPATH. With KINGLET_CHECKPOINTS the checkpoint that ESPnet's own code trained is scored too.
"""

# ruff: noqa: E402  (a host is imported after the check that it is installed)

import array
import math
import pickle
import sys
import tempfile

from host_support import DATA, checkpoint, needs, refused, versions

needs("torch", "espnet.nets.batch_beam_search")

import torch
from espnet.nets.batch_beam_search import BatchBeamSearch
from espnet.nets.scorer_interface import BatchScorerInterface

import kinglet_lm
from kinglet_lm.integrations.espnet import LanguageModel


class Acoustic(BatchScorerInterface):
    """Step t prefers token t of the text, but most times another token more."""

    def __init__(self, ids, size):
        noise = torch.Generator().manual_seed(5)
        self.table = torch.randn(len(ids), size, generator=noise)
        for at, id in enumerate(ids):
            self.table[at, id] += 9.0
            self.table[at, int(torch.randint(2, size - 1, (), generator=noise))] += 9.5
            if at + 1 < len(ids):
                self.table[at, ids[-1]] = -8.0  # the end is improbable before the text has ended
        self.table = self.table.log_softmax(-1)

    def batch_init_state(self, x):
        return 0

    def batch_score(self, ys, states, xs):
        rows = torch.stack([self.table[min(state, len(self.table) - 1)] for state in states])
        return rows, [state + 1 for state in states]


def equal(lm, sentences):
    """batch_score's rows are log_probabilities of the same histories, to the bit."""
    model = lm.model
    begin = model.vocabulary.begin
    sessions = [model.session(empty_cache="normalised") for _ in sentences]
    order = list(range(len(sentences)))
    states = [None] * len(order)
    x = torch.zeros(len(order), 1)
    compared = 0
    for at in range(min(map(len, sentences))):
        rows, after = lm.batch_score(
            torch.tensor([[begin, *sentences[which][:at]] for which in order]),
            [states[which] for which in order], x)
        for which, row, state in zip(order, rows, after):
            sessions[which].step(sentences[which][at - 1] if at else begin)
            assert array.array("f", row.tolist()) == sessions[which].log_probabilities(), at
            states[which] = state
            compared += len(row)
        order = [*order[1:], order[0]]  # hypotheses change places in a search
    begin_only = torch.tensor([begin])
    one, state = lm.score(begin_only, None, x[0])
    two, _ = lm.score(torch.tensor([begin, 5]), state, x[0])
    session = model.session(empty_cache="normalised")
    for row, id in ((one, begin), (two, 5)):
        session.step(id)
        assert array.array("f", row.tolist()) == session.log_probabilities()
    return compared


def searched(lm, ids, weight):
    tokens = [str(at) for at in range(len(lm.model.vocabulary))]
    end = lm.model.vocabulary.end
    search = BatchBeamSearch(
        beam_size=8, vocab_size=len(tokens), sos=lm.begin, eos=end, token_list=tokens,
        weights={"decoder": 1.0, "lm": weight},
        scorers={"decoder": Acoustic([*ids, end], len(tokens)), "lm": lm if weight else None})
    best = search(x=torch.zeros(len(ids) + 3, 4))[0]
    found = best.yseq[1:-1].tolist()
    if weight:
        expected = lm.model.score_details(found).log_probability
        assert math.isclose(float(best.scores["lm"]), expected, rel_tol=1e-5), (found, expected)
    return sum(a != b for a, b in zip(found, ids)) + abs(len(found) - len(ids))


def refusals(lm):
    x = torch.zeros(1, 1)
    refused(kinglet_lm.InvalidArgument, lambda: lm.batch_score(torch.tensor([[1]]), [None], x),
            "sos", str(lm.begin))
    size = len(lm.model.vocabulary)
    refused(kinglet_lm.Mismatch, lambda: LanguageModel(lm.model, ["a"] * (size + 1)), "token_list",
            str(size + 1))
    if lm.model.vocabulary.has_words:
        names = list(lm.model.vocabulary)
        assert LanguageModel(lm.model, names).begin == lm.begin
        refused(kinglet_lm.Mismatch, lambda: LanguageModel(lm.model, [*names[:-1], "x"]), repr("x"))
    assert pickle.loads(pickle.dumps(lm)).begin == lm.begin
    refused(kinglet_lm.NotFound, lambda: LanguageModel("none.kgl"), "none.kgl")


def read(path):
    return [[int(id) for id in line.split()] for line in path.read_text().splitlines()
            if line.split()]


def main():
    facts = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("espnet-rnn-lstm", "espnet-transformer"):
            source = DATA / "speech-lm-variants" / name
            kinglet_lm.convert(source, f"{folder}/{name}.kgl")
            lm = LanguageModel(f"{folder}/{name}.kgl")
            sentences = [ids for ids in read(source / "sentences.txt") if len(ids) > 2]
            facts.append(f"{name}: {equal(lm, sentences)} values equal")
            refusals(lm)
        source = checkpoint("espnet-rnn-lm")
        if source is not None:
            kinglet_lm.convert(source, f"{folder}/real.kgl")
            lm = LanguageModel(f"{folder}/real.kgl")
            sentences = read(source / "sentences.txt")
            facts.append(f"espnet-rnn-lm: {equal(lm, sentences)} values equal")
            wrong = [sum(searched(lm, ids[:12], weight) for ids in sentences)
                     for weight in (0.0, 0.5)]
            assert wrong[1] < wrong[0], wrong
            count = sum(len(ids[:12]) for ids in sentences)
            facts.append(f"its search: {wrong[0]} of {count} tokens wrong without, {wrong[1]} with")
        else:
            searched(lm, sentences[0], 0.3)
            facts.append("espnet-rnn-lm: not run: KINGLET_CHECKPOINTS has none")
    print("; ".join([*facts, versions("espnet", "torch")]))


if __name__ == "__main__":
    sys.exit(main())
