#!/usr/bin/env python3
"""Trains a small language model of the given techniques and saves it for `kinglet convert`.

    kinglet-train --input dpq --output slim -o model.pt
    kinglet-train --input adaptive --output adaptive --tied tables projections --decoder -o model.pt
    kinglet-train --from model.pt --plan plan.json --teacher shards.npz -o small.pt

Text is split at white space, each line ends with <eos>. Words that the training text has only once are <unk>. Next
to the checkpoint, MODEL.vocab.txt gets the vocabulary: the most frequent word first, one a line; MODEL.tokens.txt gets
the first ids of the validation text, for evaluate.py.
"""
import argparse
import collections
import math
import pathlib
import time

import torch
from torch import nn
from torch.nn import functional as F

from .checkpoint import export, load
from .distil import read_shards, soft_loss
from .language_model import LanguageModel
from .plan import GradualPruning, Plan, plan_of, read_plan
from .presets import INPUTS, OUTPUTS, decoder
from .quantise import Quantised
from .techniques.dpq import DpqEmbedding

WIKITEXT = pathlib.Path(__file__).resolve().parents[2] / "wikitext2"  # in a checkout


def tokens_of(path) -> list:
    with open(path, encoding="utf-8") as file:
        return [token for line in file for token in line.split() + ["<eos>"]]


def vocabulary_of(tokens: list) -> list:
    """Words that occur more than once, and <unk>; by frequency, equal ones by spelling."""
    counts = collections.Counter(tokens)
    unknown = counts.pop("<unk>", 0) + sum(count for count in counts.values() if count == 1)
    known = {word: count for word, count in counts.items() if count > 1}
    known["<unk>"] = unknown
    return sorted(known, key=lambda word: (-known[word], word))


def ids_of(tokens: list, vocabulary: list) -> torch.Tensor:
    numbers = {word: number for number, word in enumerate(vocabulary)}
    return torch.tensor([numbers.get(token, numbers["<unk>"]) for token in tokens])


def penalty_of(model: LanguageModel):
    return sum(module.penalty for module in model.modules() if isinstance(module, DpqEmbedding))


def train(model: LanguageModel, ids: torch.Tensor, plan: Plan, options, teacher=None):
    """Truncated backpropagation through time: the state goes from one window to the next, gradients do not. From a
    quarter to three quarters of the steps the plan's tensors are pruned; in the last quarter the model computes with
    its bits. Gives the model back, `Quantised` if the plan has bits."""
    length = len(ids) // options.batch
    stream = ids[:length * options.batch].view(options.batch, -1).t()
    places = torch.arange(length * options.batch).view(options.batch, -1).t()
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, options.learning_rate, total_steps=options.steps)
    pruning = GradualPruning(model, plan.fractions, options.steps // 4, options.steps * 3 // 4, 5)
    run = model.train()
    state, at, started = None, 0, time.time()
    for step in range(1, options.steps + 1):
        if at + 1 >= len(stream):
            state, at = None, 0
        window, targets = stream[at:at + options.bptt + 1], places[at + 1:at + options.bptt + 1]
        at += options.bptt
        if step == options.steps * 3 // 4 + 1 and plan.bits:
            run, state = Quantised(model, plan).train(), None
        log_p, _, state = run(window[:-1], state)
        state = [tuple(part.detach() for part in layer) for layer in state]
        loss = F.nll_loss(log_p.flatten(0, 1), window[1:].flatten())
        optimised = loss + penalty_of(model)
        if teacher:
            optimised = optimised + options.teacher_weight * (soft_loss(log_p, *teacher.at(targets)) - loss)
        optimiser.zero_grad()
        optimised.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        pruning.step(step)
        if step % 100 == 0 or step == options.steps:
            print(f"step {step}: training perplexity {math.exp(loss.item()):.1f}, {time.time() - started:.0f} s")
    return run.eval()


@torch.no_grad()
def perplexity(model, ids: torch.Tensor) -> float:
    """The perplexity of ids[1], ids[2], .., without the cache."""
    model.eval()
    total, state = 0.0, None
    for window, targets in zip(ids[:-1].split(256), ids[1:].split(256)):
        log_p, _, state = model(window[:, None], state)
        total += F.nll_loss(log_p[:, 0], targets, reduction="sum").item()
    return math.exp(total / (len(ids) - 1))


def config_of(words: int, options) -> dict:
    config = {"vocabulary": words, "scale": 1.0, "tied": options.tied,
              "input": INPUTS[options.input](words, options.width),
              "output": OUTPUTS[options.output](words, options.width)}
    if options.decoder:
        config["decoder"] = decoder(options.width)
    else:
        config["lstm"] = {"units": [options.units] * (options.layers - 1) + [options.width]}
    if options.cache:
        config["cache"] = {"capacity": options.cache, "theta": options.cache_theta, "lambda": options.cache_lambda}
    return config


def plan_from(model: LanguageModel, options) -> Plan:
    if options.plan:
        return read_plan(model, options.plan)
    layers = "recurrent" if "lstm" in model.config else "transformer"
    passes = [{"pass": "prune", "tensors": [layers + ".*weight"], "fraction": options.prune}]
    passes += [{"pass": "quantise", "bits": options.bits}] if options.bits else []
    passes += [{"pass": "calibrate", "bits": options.activation_bits}] if options.activation_bits else []
    return plan_of(model, passes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", choices=INPUTS, default="full")
    parser.add_argument("--output", choices=OUTPUTS, default="full")
    parser.add_argument("--tied", nargs="*", default=[], help="parameters that input and output share")
    parser.add_argument("--decoder", action="store_true", help="MicroNet's decoder instead of LSTM layers")
    parser.add_argument("--from", dest="start", metavar="CHECKPOINT", help="train this one, with its vocabulary, on")
    parser.add_argument("--plan", help="a recipe whose passes prune and quantise, such as `kinglet plan` writes")
    parser.add_argument("--prune", type=float, default=0.0, help="or the share of layers' matrices that becomes zero,")
    parser.add_argument("--bits", type=int, default=0, help="the bits of all weights,")
    parser.add_argument("--activation-bits", type=int, default=0, help="and those of activations; 0: floats")
    parser.add_argument("--teacher", nargs="*", default=[], help="soft labels of the text's tokens: distil.py")
    parser.add_argument("--teacher-weight", type=float, default=0.5, help="of their loss, from 0 to 1")
    parser.add_argument("--text", default=WIKITEXT / "calibration.txt", help="to train on")
    parser.add_argument("--validation", default=WIKITEXT / "passage.txt")
    parser.add_argument("-o", "--checkpoint", default="model.pt")
    parser.add_argument("--width", type=int, default=64, help="of the embedding and of the last LSTM layer")
    parser.add_argument("--units", type=int, default=128, help="of the other LSTM layers")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--bptt", type=int, default=35)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--weight-decay", type=float, default=0.05)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--cache", type=int, default=0, help="pairs of the neural cache; 0 means no cache")
    parser.add_argument("--cache-theta", type=float, default=0.3)
    parser.add_argument("--cache-lambda", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="more gain little: the matrices are small")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    tokens = tokens_of(options.text)
    if options.start:
        start = pathlib.Path(options.start)
        model, vocabulary = load(start), start.with_suffix(".vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
        model = model.model if isinstance(model, Quantised) else model
        model.dropout.p = options.dropout
    else:
        vocabulary = vocabulary_of(tokens)
        model = LanguageModel(config_of(len(vocabulary), options), options.dropout)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(tokens)} tokens, {len(vocabulary)} words, {parameters} parameters")
    ids = ids_of(tokens, vocabulary)
    teacher = read_shards(options.teacher, len(ids)) if options.teacher else None
    model = train(model, ids, plan_from(model, options), options, teacher)
    validation = ids_of(tokens_of(options.validation), vocabulary)
    print(f"validation perplexity {perplexity(model, validation):.2f}")
    path = pathlib.Path(options.checkpoint)
    export(model, path)
    path.with_suffix(".vocab.txt").write_text("".join(word + "\n" for word in vocabulary), encoding="utf-8")
    path.with_suffix(".tokens.txt").write_text(" ".join(map(str, validation[:500].tolist())) + "\n")


if __name__ == "__main__":
    main()
