"""Writes vocabularies of three words as frameworks pickle them; needs torch and numpy, and stands in
for the frameworks' own classes.

    make_vocabularies.py FOLDER
"""

import pathlib
import pickle
import sys
import types

import numpy
import torch

WORDS = ["<eos>", "<UNK>", "caf\u00e9"]


def make_class(module, name, base=object):
    parts = module.split(".")
    for i in range(len(parts)):
        sys.modules.setdefault(".".join(parts[:i + 1]), types.ModuleType(parts[i]))
    made = type(name, (base,), {"__module__": module})
    setattr(sys.modules[module], name, made)
    return made


def instance(module, name, **attributes):
    made = make_class(module, name)()
    made.__dict__.update(attributes)
    return made


def main():
    folder = pathlib.Path(sys.argv[1])
    ids = {word: i for i, word in enumerate(WORDS)}

    def dump(name, value, protocol=4):
        (folder / name).write_bytes(pickle.dumps(value, protocol))

    # torchtext 0.9 and later: a module around an object of C++, whose state is a tuple.
    inner_class = make_class("torchtext._torchtext", "Vocab")
    inner_class.__getstate__ = lambda self: ("0.0.2", [1], WORDS, [])
    inner_class.__setstate__ = lambda self, state: None
    outer = make_class("torchtext.vocab.vocab", "Vocab", torch.nn.Module)()
    outer.vocab = inner_class()
    dump("torchtext_state.pkl", outer)
    dump("transformer_xl_lm1b.pkl", instance("vocabulary", "Vocab", idx2sym=WORDS, sym2idx=ids,
                                             special=[], unk_idx=1))
    encoded = [word.encode() for word in WORDS]
    dump("flair.pkl", {"idx2item": encoded, "item2idx": {w: i for i, w in enumerate(encoded)}}, 2)
    dump("numpy_objects.pkl", {"idx2sym": numpy.array(WORDS, dtype=object)})
    dump("numpy_strings.pkl", [numpy.str_(word) for word in WORDS], 2)
    dictionary = instance("data", "Dictionary", word2idx=ids, idx2word=WORDS)
    torch.save(instance("data2", "Corpus", dictionary=dictionary, train=torch.arange(3)),
               folder / "corpus.pt")


if __name__ == "__main__":
    main()
