#!/usr/bin/env python3
"""Writes the checkpoints of this folder: small character language models with random weights that flair (0.15.1) built
and saved, and in float64 the log-probabilities of its own network, its perplexity of passage.txt, and the vectors of
the words of spans.txt that its FlairEmbeddings give.

    python3 make_variants.py          writes next to itself; needs torch and flair
"""
import os
import sys

import torch
from flair.data import Dictionary, Sentence
from flair.embeddings import FlairEmbeddings
from flair.models.language_model import LanguageModel

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from fixtures import ids_of, write_answers, write_lines  # noqa: E402

PASSAGE = ["Ein Bär, ein Bier.", "", "nie ein Nein ~ 日本", "Reben"]
SPANS = ["ein Bär , nie", "Nein", "", "日本 ~ Reben ein"]


def save(model, path):
    model.save(path)


def save_checkpoint(model, path):
    optimizer = torch.optim.SGD(model.parameters(), lr=20)
    model.save_checkpoint(path, optimizer, epoch=3, split=7, loss=1.25)


def save_as_older(model, path):
    """As flair before 0.9 saved it: fewer entries, and a dictionary that does not state whether it has <unk>."""
    model.save(path)
    state = torch.load(path, weights_only=False)
    for entry in ("recurrent_type", "has_decoder", "document_delimiter"):
        del state[entry]
    dictionary = state["dictionary"].__dict__
    for attribute in ("add_unk", "span_labels"):
        del dictionary[attribute]
    torch.save(state, path, _use_new_zipfile_serialization=False)


def save_object(model, path):
    torch.save(model, path)


# The settings of the network, whether it reads forward, and how it is saved.
VARIANTS = {
    "forward": ({"nlayers": 1, "hidden_size": 7}, True, save),
    "forward-checkpoint": ({"nlayers": 2, "hidden_size": 6, "nout": 5}, True, save_checkpoint),
    "forward-older": ({"nlayers": 1, "hidden_size": 6}, True, save_as_older),
    "backward": ({"nlayers": 2, "hidden_size": 6, "nout": 4}, False, save),
    "backward-gru": ({"nlayers": 2, "hidden_size": 5, "recurrent_type": "GRU"}, False, save),
    "backward-object": ({"nlayers": 1, "hidden_size": 5}, False, save_object),
}


def dictionary_of(text):
    dictionary = Dictionary()
    for character in sorted(set(text)):
        if character != "~":  # becomes <unk>
            dictionary.add_item(character)
    return dictionary


def main():
    passage = "".join(line + "\n" for line in PASSAGE)
    write_lines(HERE, {"passage.txt": PASSAGE, "spans.txt": SPANS})
    perplexities = []
    for seed, (name, (options, forward, write)) in enumerate(VARIANTS.items()):
        torch.manual_seed(seed)
        model = LanguageModel(dictionary_of(passage), forward, embedding_size=4, **options).eval()
        for parameter in model.parameters():
            parameter.data = torch.randn(parameter.shape) * 0.6
        folder = f"{HERE}/{name}"
        os.makedirs(folder, exist_ok=True)
        write(model, f"{folder}/model.pt")
        model.double()
        ids = ids_of(len(model.dictionary), 60)
        with torch.no_grad():
            logits = model(torch.tensor(ids).unsqueeze(1), model.init_hidden(1))[0][:, 0]
            perplexities.append(f"{name}\t{model.calculate_perplexity(passage):.15g}")
        write_answers(folder, ids, torch.log_softmax(logits, -1).tolist())
        rows = []
        for number, line in enumerate(SPANS, 1):
            if not line:
                continue
            sentence = Sentence(line.split(" "))
            FlairEmbeddings(model).embed(sentence)
            for token in sentence:
                vector = " ".join(f"{x:.15g}" for x in token.embedding.tolist())
                rows.append(f"{number}\t{token.text}\t{vector}")
        write_lines(folder, {"spans.tsv": rows})
    write_lines(HERE, {"perplexity.tsv": perplexities})


if __name__ == "__main__":
    main()
