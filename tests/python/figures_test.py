"""Python's numbers are the command's, in bits, on the bundled models.

    figures_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

import json
import math
import struct
import sys
import tempfile

import kinglet_lm
from support import DATA, DEMO, demo

# Checkpoints with one command's options: a cache and pruned weights, float32, LSTM, Transformer.
CHECKPOINTS = {
    "micronet-small-9bit-pruned": {},
    "micronet-small-fp32": {},
    "recurrent-variants/examples-gru-tied": {},
    "transformer-xl-variants/kimi-plain-softmax": {},
    "fairseq-variants/cfg-plain-shared": {},
    "speech-lm-variants/icefall-transformer": {},
}


def bits(value):
    return struct.pack(">d", value).hex()


def same(expected, score, model):
    """The command's token objects against a score's tokens."""
    assert len(expected) == len(score.ids) > 0, (len(expected), len(score.ids))
    width = 64 if model.backend == "ref64" else 32
    for printed, id, value in zip(expected, score.ids, score.log_probabilities):
        ours = bits(value) if width == 64 else struct.pack(">f", value).hex()
        assert printed["id"] == id, (printed, id)
        assert int(printed["hex"], 16) in (int(ours, 16), int(bits(value), 16)), (printed, ours)


def compare(path, ids, backend):
    model = kinglet_lm.Model(path, backend=backend)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(" ".join(map(str, ids)))
        file.flush()
        printed = kinglet_lm.run_json("score", path, "--ids", file.name, "--hex", "--backend",
                                      backend)
        same(printed[:-1], model.score_stream(ids), model)
        if model.vocabulary.has_words and model.vocabulary.begin is not None:
            printed = kinglet_lm.run_json("score", path, "--ids", file.name, "--lines", "--tokens",
                                       "--hex", "--backend", backend)
            same(printed[:-2], model.score_details(ids), model)
    with model.session() as session:  # step by step, for the same numbers
        stream = ids if model.start_token is None else [model.start_token, *ids]
        values = []
        for at in range(1, len(stream)):
            session.step(stream[at - 1])
            values.append(session.log_probability(stream[at]))
            top = session.top_k(3)
            assert session.rank(top[0][0]) == 1
            assert top[0][1] == max(session.log_probabilities(id for id, _ in top))
        assert tuple(values) == model.score_stream(ids).log_probabilities


def lines(path):
    """Lines of text, in any number of lanes, and the whole text as a stream."""
    model = kinglet_lm.Model(path)
    text = (DEMO / "typed.txt").read_text() + "\n\nÄ \u2003 end\n"
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        printed = kinglet_lm.run_json("score", path, "--text", file.name, "--lines")
        for lanes in (1, 5):
            scores = list(model.score_lines(text.splitlines(), lanes=lanes))
            assert len(scores) == len(printed) - 1
            for one, score in zip(printed, scores):
                assert one["tokens"] == len(score.ids) and one["oov"] == score.oov
                assert f"{score.log_probability:.9g}" == f"{one['logprob']:.9g}", (one, score)
        assert model.score_batch(text.splitlines()) == [s.log_probability for s in scores]
        assert [model.score(line) for line in text.splitlines()] == model.score_batch(
            text.splitlines(), threads=2)
        whole = kinglet_lm.run_json("score", path, "--text", file.name)[-1]
        assert f"{model.perplexity(text):.9g}" == f"{whole['ppl']:.9g}", whole
        assert abs(model.score_log10("the film") * math.log(10) - model.score("the film")) < 1e-12


def texts(path):
    """Texts of other systems, and without a last line's end: read as the command reads a file."""
    model = kinglet_lm.Model(path)
    words = [model.vocabulary[id] for id in range(3, 9)]
    plain = " ".join(words[:3]) + " zzqx\n\n" + " ".join(words[3:]) + "\n"
    marked = "\ufeff" + "\r\n\ufeff".join(plain.splitlines()) + "\r\n"
    for text in (plain, plain[:-1], marked, marked[:-2]):
        with tempfile.NamedTemporaryFile("w", suffix=".txt", newline="") as file:
            file.write(text)
            file.flush()
            whole = kinglet_lm.run_json("score", path, "--text", file.name)[-1]
            lines = kinglet_lm.run_json("score", path, "--text", file.name, "--lines")[:-1]
            with open(file.name, newline="\n") as again:
                scores = list(model.score_lines(again))
        assert f"{model.perplexity(text):.9g}" == f"{whole['ppl']:.9g}", (path, text, whole)
        assert model.perplexity(text) == model.perplexity(plain)
        assert [f"{score.log_probability:.9g}" for score in scores] == [
            f"{line['logprob']:.9g}" for line in lines], text
        printed = kinglet_lm.run("tokenize", path, input=text)
        shown = [json.loads(line) for line in printed.split("\n") if line]
        assert [model.tokenize(line) for line in text.splitlines()] == [s["ids"] for s in shown]
    data = marked.encode()
    for id, begin, end in model.tokenize_with_ranges(marked):
        assert model.vocabulary.get(data[begin:end].decode()) in (id, None), (id, begin, end)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, options) in enumerate(CHECKPOINTS.items()):
            checkpoint = DATA / name
            path = f"{folder}/{number}.kgl"
            vocab = checkpoint / "vocab.txt"
            messages = []
            summary = kinglet_lm.convert(checkpoint, path, vocab=vocab if vocab.exists() else None,
                                      progress=messages.append, **options)
            assert messages and summary["digest"] == kinglet_lm.Model(path).digest
            size = len(kinglet_lm.Model(path).vocabulary)
            ids = [at * 7 % size for at in range(1, 40)]
            for backend in ("cpu", "ref64"):
                compare(path, ids, backend)
            if kinglet_lm.Model(path).vocabulary.unknown is not None:
                texts(path)
        path = demo(folder)
        compare(path, kinglet_lm.Model(path).tokenize("the film was a success"), "cpu")
        lines(path)
        texts(path)
        messages = []
        counted = kinglet_lm.count(path, rules="executed", ids=DEMO / "tokens.txt",
                                progress=messages.append)
        assert counted["ops"]["total"] > 0 and messages[0].startswith("opening"), messages
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("7 " * 30_000)  # about two seconds
            file.flush()
            kinglet_lm.count(path, mode="score", ids=file.name, progress=messages.append)
        assert any("of 29,999 tokens" in text for text in messages), messages
    print(f"{len(CHECKPOINTS) + 1} models: the command's bits")


if __name__ == "__main__":
    sys.exit(main())
