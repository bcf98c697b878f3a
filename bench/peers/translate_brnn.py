#!/usr/bin/env python3
"""Translation by a recurrent model of the shapes in DPQ's slides (IWSLT15 En-Vi: 2 x 512 units, vocabularies of
17,191 and 7,709 words; random weights, OpenNMT-py's brnn with general attention and input feeding), beam 5, 30 steps a
sentence, one thread: PyTorch, which steps the beam as one batch, and `kinglet translate` in float32 and in 9 bits.

    translate_brnn.py KINGLET [--sentences 100] [--rounds 3] [--folder DIR]

The programs run alternately; the medians of the rounds are printed. Times are processor time, which other work on the
machine disturbs less than the wall clock, and exclude reading the model. PyTorch's answers
and kinglet's in float32 are compared. Needs PyTorch (Debian: python3-torch).
"""
import argparse
import collections
import json
import os
import statistics
import sys
import tempfile
import time
import types

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
import torch
from processor_time import run, timed

SOURCE_WORDS, TARGET_WORDS, UNITS, LAYERS, BEAM, STEPS, START, END = 17191, 7709, 512, 2, 5, 30, 2, 3


def stand_in(module: str, name: str):
    """A class of another program by its name alone, so that pickles refer to it."""
    parts = module.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
    if hasattr(sys.modules[module], name):
        return getattr(sys.modules[module], name)
    made = type(name, (), {"__module__": module})
    setattr(sys.modules[module], name, made)
    return made


def vocabulary(count: int) -> list:
    """Made-up words as a field of OpenNMT-py."""
    field, vocab = stand_in("torchtext.data.field", "Field")(), stand_in("torchtext.vocab", "Vocab")()
    field.vocab, vocab.itos = vocab, ["<unk>", "<blank>", "<s>", "</s>"] + [f"w{i}" for i in range(4, count)]
    return [("field", field)]


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        nn = torch.nn
        self.source = nn.Embedding(SOURCE_WORDS, UNITS)
        self.target = nn.Embedding(TARGET_WORDS, UNITS)
        self.encoder = nn.LSTM(UNITS, UNITS // 2, LAYERS, bidirectional=True)
        self.cells = nn.ModuleList([nn.LSTMCell(2 * UNITS if i == 0 else UNITS, UNITS) for i in range(LAYERS)])
        self.linear_in = nn.Linear(UNITS, UNITS, bias=False)
        self.linear_out = nn.Linear(2 * UNITS, UNITS, bias=False)
        self.generator = nn.Linear(UNITS, TARGET_WORDS)
        self.generator.weight.data *= 20  # so that the words of a beam differ
        self.generator.bias.data[END] = -1e4  # no sentence ends before the last step

    def checkpoint(self) -> dict:
        state = collections.OrderedDict()
        for side, table in (("encoder", self.source), ("decoder", self.target)):
            state[side + ".embeddings.make_embedding.emb_luts.0.weight"] = table.weight.data
        state.update(("encoder.rnn." + name, value) for name, value in self.encoder.state_dict().items())
        for i, cell in enumerate(self.cells):
            state.update((f"decoder.rnn.layers.{i}.{name}", value) for name, value in cell.state_dict().items())
        state["decoder.attn.linear_in.weight"] = self.linear_in.weight.data
        state["decoder.attn.linear_out.weight"] = self.linear_out.weight.data
        options = argparse.Namespace(
            encoder_type="brnn", decoder_type="rnn", rnn_type="LSTM", global_attention="general", input_feed=1,
            bridge=False, model_type="text", position_encoding=False, copy_attn=False, coverage_attn=False)
        generator = {"0.weight": self.generator.weight.data, "0.bias": self.generator.bias.data}
        return {"model": state, "generator": generator, "opt": options,
                "vocab": {"src": vocabulary(SOURCE_WORDS), "tgt": vocabulary(TARGET_WORDS)}}

    @torch.no_grad()
    def translate(self, source: list) -> tuple:
        """The best sequence of a beam search over STEPS words, and its log-probability."""
        memory, (hidden, cell) = self.encoder(self.source(torch.tensor(source))[:, None])
        memory = memory[:, 0]
        state = [(torch.cat([hidden[2 * i], hidden[2 * i + 1]], 1), torch.cat([cell[2 * i], cell[2 * i + 1]], 1))
                 for i in range(LAYERS)]
        fed, words = torch.zeros(1, UNITS), torch.tensor([START])
        totals, sequences = torch.zeros(1), torch.zeros(1, 0, dtype=torch.long)
        for _ in range(STEPS):
            x = torch.cat([self.target(words), fed], 1)
            made = []
            for layer, one in zip(self.cells, state):
                made.append(layer(x, one))
                x = made[-1][0]
            weights = (self.linear_in(x) @ memory.T).softmax(1)
            fed = torch.tanh(self.linear_out(torch.cat([weights @ memory, x], 1)))
            values = self.generator(fed).log_softmax(1) + totals[:, None]
            totals, best = values.reshape(-1).topk(BEAM)
            parents, words = torch.div(best, TARGET_WORDS, rounding_mode="floor"), best % TARGET_WORDS
            sequences = torch.cat([sequences[parents], words[:, None]], 1)
            fed = fed[parents]
            state = [(h[parents], c[parents]) for h, c in made]
        return sequences[0].tolist(), float(totals[0])


def translate(kinglet: str, model: str, ids: str, beam=BEAM, lanes=1) -> tuple:
    """The seconds that translating took beyond those of an empty line, and the translations."""
    def seconds_and_lines(file):
        return timed([kinglet, "translate", model, "--ids", file, "--beam", str(beam), "--n-best", "1", "--json",
                      "--max-length", str(STEPS), "--lanes", str(lanes)])

    nothing, _ = seconds_and_lines(os.path.join(os.path.dirname(ids), "empty.txt"))
    seconds, lines = seconds_and_lines(ids)
    return seconds - nothing, [json.loads(line) for line in lines.split("\n") if line]


def measure(kinglet: str, folder: str, sentences: int, rounds: int):
    torch.set_num_threads(1)
    network = Network()
    numbers = torch.Generator().manual_seed(2)

    def draw(words, least, most):
        size = int(torch.randint(least, most + 1, (1,), generator=numbers))
        return torch.randint(4, words, (size,), generator=numbers).tolist()

    sources = [draw(SOURCE_WORDS, 10, 30) for _ in range(sentences)]
    files = {name: os.path.join(folder, name) for name in ("model.pt", "ids.txt", "empty.txt", "pairs.txt")}
    torch.save(network.checkpoint(), files["model.pt"])
    line = " ".join
    with open(files["ids.txt"], "w") as file:
        file.writelines(line(map(str, source)) + "\n" for source in sources)
    with open(files["empty.txt"], "w") as file:
        file.write("\n")
    with open(files["pairs.txt"], "w") as file:
        file.writelines(f"{line(map(str, source))} ||| {START} {line(map(str, draw(TARGET_WORDS, 10, 30)))} {END}\n"
                        for source in sources[:20])
    models = {"kinglet, float32": [], "kinglet, 9 bits": ["--bits", "9", "--calibrate", files["pairs.txt"]]}
    for i, options in enumerate(models.values()):
        run([kinglet, "convert", files["model.pt"], "-o", f"{folder}/{i}.kgl", *options])
    times = {name: [] for name in ["PyTorch " + torch.__version__, *models]}
    for _ in range(rounds):
        start = time.process_time()
        expected = [network.translate(source) for source in sources]
        times["PyTorch " + torch.__version__].append(time.process_time() - start)
        for i, name in enumerate(models):
            seconds, found = translate(kinglet, f"{folder}/{i}.kgl", files["ids.txt"])
            times[name].append(seconds)
            if i == 0:
                largest = max(abs(one["logprob"] - value) for one, (_, value) in zip(found, expected))
                assert largest < 1e-2, largest
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    base = next(iter(medians.values()))
    print(f"brnn 2 x {UNITS}, {sentences} sentences, {STEPS} steps, beam {BEAM}, one thread, processor time, "
          f"medians of {rounds} rounds; largest difference of log-probabilities in float32 {largest:.2g}")
    for name, seconds in medians.items():
        print(f"{name:20} {1000 * seconds / sentences:8.1f} ms a sentence   {base / seconds:5.2f} x")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinglet")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        measure(arguments.kinglet, arguments.folder or made, arguments.sentences, arguments.rounds)


if __name__ == "__main__":
    main()
