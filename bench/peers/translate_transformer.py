#!/usr/bin/env python3
"""Translation by a Transformer of OpenNMT-py, one by one and in batches of 8, greedily and with a beam of 5, one thread:
CTranslate2 in float32 and int8, and `kinglet translate` in float32 and with weights and activations of 9 and of 8 bits.

    translate_transformer.py KINGLET [--checkpoint MODEL.pt --pairs PAIRS] [--sentences 16] [--rounds 3] [--folder DIR]

Without --checkpoint the network has base size (6 + 6 layers of 512, 8 heads, 2,048, 32,000 words) and random weights;
sources have 25 words and every translation 30. PAIRS has lines `source ids ||| target ids`. CTranslate2's converter and
kinglet's read the same file. The programs run alternately; the medians of the rounds are printed. Times are processor
time as in translate_brnn.py. Translations in float32 are compared. Needs PyTorch and ctranslate2 from PyPI.
"""
import argparse
import os
import statistics
import tempfile
import time

from processor_time import needed, run

torch, ctranslate2 = needed("torch", "ctranslate2")

from ctranslate2.converters import OpenNMTPyConverter  # noqa: E402
from translate_brnn import END, STEPS, stand_in, translate, vocabulary  # noqa: E402

WORDS, WIDTH, LAYERS, HEADS, INNER, SOURCE, BATCH = 32000, 512, 6, 8, 2048, 25, 8


def make(path: str):
    torch.manual_seed(1)
    state = {}

    def matrix(name, outputs, inputs):
        state[name + ".weight"], state[name + ".bias"] = 0.04 * torch.randn(outputs, inputs), torch.zeros(outputs)

    def norm(name):
        state[name + ".weight"], state[name + ".bias"] = torch.ones(WIDTH), torch.zeros(WIDTH)

    frequencies = torch.exp(torch.arange(0, WIDTH, 2) * -(torch.log(torch.tensor(10000.0)) / WIDTH))
    angles = torch.arange(256)[:, None] * frequencies
    positions = torch.stack([angles.sin(), angles.cos()], 2).reshape(256, 1, WIDTH)
    for side, layers, norms in (("encoder", "transformer", ("layer_norm",)),
                                ("decoder", "transformer_layers", ("layer_norm_1", "layer_norm_2"))):
        embeddings = f"{side}.embeddings.make_embedding."
        state[embeddings + "emb_luts.0.weight"] = 0.04 * torch.randn(WORDS, WIDTH)
        state[embeddings + "pe.pe"] = positions
        norm(side + ".layer_norm")
        for i in range(LAYERS):
            prefix = f"{side}.{layers}.{i}."
            for attention in ("self_attn", "context_attn")[:len(norms)]:
                for name in ("linear_keys", "linear_values", "linear_query", "final_linear"):
                    matrix(f"{prefix}{attention}.{name}", WIDTH, WIDTH)
            matrix(prefix + "feed_forward.w_1", INNER, WIDTH)
            matrix(prefix + "feed_forward.w_2", WIDTH, INNER)
            for name in ("feed_forward.layer_norm", *norms):
                norm(prefix + name)
    generator = {"0.weight": torch.randn(WORDS, WIDTH), "0.bias": torch.zeros(WORDS)}
    generator["0.bias"][END] = -1e4  # no sentence ends before the last step
    options = argparse.Namespace(
        encoder_type="transformer", decoder_type="transformer", enc_layers=LAYERS, dec_layers=LAYERS, heads=HEADS, transformer_ff=INNER,
        enc_rnn_size=WIDTH, dec_rnn_size=WIDTH, src_word_vec_size=WIDTH, tgt_word_vec_size=WIDTH, position_encoding=True,
        self_attn_type="scaled-dot", max_relative_positions=0, copy_attn=False, coverage_attn=False, model_type="text")
    torch.save({"model": state, "generator": generator, "opt": options, "vocab": {"src": fields(WORDS), "tgt": fields(WORDS)}},
               path)


def fields(count: int):
    """Made-up words as OpenNMT-py 1.0 keeps them."""
    made = stand_in("onmt.inputters.text_dataset", "TextMultiField")()
    made.fields = vocabulary(count)
    return made


def words_of(checkpoint: str) -> tuple:
    """The source words and the target words."""
    for module, name in (("torchtext.data.field", "Field"), ("torchtext.vocab", "Vocab"), ("torchtext.data.utils", "_split_tokenizer"),
                         ("onmt.inputters.text_dataset", "TextMultiField"), ("onmt.inputters.text_dataset", "_feature_tokenize")):
        stand_in(module, name)
    found = torch.load(checkpoint, weights_only=False)["vocab"]
    return tuple(found[side].fields[0][1].vocab.itos for side in ("src", "tgt"))


class Peer:
    def __init__(self, folder: str, kind: str, forced: bool):
        self.translator = ctranslate2.Translator(folder, compute_type=kind, intra_threads=1, inter_threads=1)
        self.lengths = {"min_decoding_length": STEPS if forced else 1, "max_decoding_length": STEPS}

    def translate(self, sources: list, beam: int, batch: int) -> tuple:
        start, found = time.process_time(), []
        for i in range(0, len(sources), batch):
            found += self.translator.translate_batch(sources[i:i + batch], beam_size=beam, **self.lengths)
        return time.process_time() - start, [one.hypotheses[0] for one in found]


def measure(options: argparse.Namespace, folder: str):
    checkpoint, forced = options.checkpoint, not options.checkpoint
    files = {name: os.path.join(folder, name) for name in ("model.pt", "ids.txt", "empty.txt", "pairs.txt", "peer")}
    if forced:
        checkpoint = files["model.pt"]
        if not os.path.exists(checkpoint):
            make(checkpoint)
        numbers = torch.Generator().manual_seed(2)
        drawn = torch.randint(4, WORDS, (options.sentences, 2, SOURCE), generator=numbers).tolist()
        pairs = [f"{' '.join(map(str, source))} ||| 2 {' '.join(map(str, target))} {END}" for source, target in drawn]
    else:
        with open(options.pairs) as file:
            pairs = file.read().splitlines()[:options.sentences]
    for name, lines in (("pairs.txt", pairs), ("ids.txt", [pair.partition(" |||")[0] for pair in pairs]), ("empty.txt", [""])):
        with open(files[name], "w") as file:
            file.writelines(line + "\n" for line in lines)
    source_words, target_words = words_of(checkpoint)
    with open(files["ids.txt"]) as file:
        sources = [[source_words[int(i)] for i in line.split()] for line in file]
    if not os.path.isdir(files["peer"]):
        OpenNMTPyConverter(checkpoint, unsafe_deserialization=True).convert(files["peer"])
    peers = {f"CTranslate2, {kind}": Peer(files["peer"], kind, forced) for kind in ("float32", "int8")}
    ours = {"kinglet, float32": []} | {f"kinglet, {bits} bits": ["--bits", str(bits), "--activation-bits", str(bits),
                                                                "--calibrate", files["pairs.txt"]] for bits in (9, 8)}
    models = {name: f"{folder}/{i}.kgl" for i, name in enumerate(ours)}
    for name, model in models.items():
        if not os.path.exists(model):
            run([options.kinglet, "convert", checkpoint, "-o", model, *ours[name]])
    cells = [(beam, batch) for beam in (1, 5) for batch in (1, BATCH)]
    times = {name: {cell: [] for cell in cells} for name in [*peers, *ours]}
    same = 0
    for number in range(options.rounds):
        for cell in cells:
            beam, batch = cell
            for name, peer in peers.items():
                seconds, expected = peer.translate(sources, beam, batch)
                times[name][cell].append(seconds)
                reference = expected if name.endswith("float32") else reference
            for name, model in models.items():
                seconds, found = translate(options.kinglet, model, files["ids.txt"], beam, batch)
                times[name][cell].append(seconds)
                if number == 0 and name.endswith("float32"):
                    words = [[target_words[i] for i in one["ids"] if i != END] for one in found]
                    same += sum(ours == theirs for ours, theirs in zip(words, reference, strict=True))
    print(f"CTranslate2 {ctranslate2.__version__}, {len(sources)} sentences, one thread, processor time, medians of {options.rounds} "
          f"rounds, ms a sentence; {same} of {len(cells) * len(sources)} translations in float32 agree\n")
    print("| | " + " | ".join(f"{'greedy' if beam == 1 else f'beam {beam}'}, {'one by one' if batch == 1 else f'{batch} at once'}"
                              for beam, batch in cells) + " |\n|---|" + "--:|" * len(cells))
    for name, found in times.items():
        print(f"| {name} | " + " | ".join(f"{1000 * statistics.median(found[cell]) / len(sources):.1f}" for cell in cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinglet")
    parser.add_argument("--checkpoint")
    parser.add_argument("--pairs")
    parser.add_argument("--sentences", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as made:
        if options.folder:
            os.makedirs(options.folder, exist_ok=True)
        measure(options, options.folder or made)


if __name__ == "__main__":
    main()
