#!/usr/bin/env python3
"""A GPT-2 in llama.cpp: each token's logits one after the other, or those of a given text by one call.

    stream_llama_cpp.py random FOLDER                     # GPT-2 small's shape with 256 positions and random weights
    stream_llama_cpp.py write FOLDER M.gguf [--weights float32|Q8_0|Q4_0] [--pure]
    stream_llama_cpp.py run M.gguf --ids ids.txt --mode full|text [--blocks 32]

FOLDER has the form of Hugging Face's GPT2LMHeadModel. `write` quantises as llama-quantize does, which gives some tensors
more bits than the type's name says; --pure gives all of them the type. `run` prints JSON: microseconds a token and the mean
loss of the blocks, each as many tokens as there are positions, in a fresh state; the text begins after <|endoftext|>.
llama.cpp's answers are logits: `us_per_token` includes NumPy's log-softmax of each token's, `us_logits` is the time without.
"""
import argparse
import ctypes
import json
import pathlib
import statistics
import time

import gguf
import llama_cpp
import numpy
from safetensors.numpy import load_file, save_file

TYPES = {"Q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0, "Q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0}
# Hugging Face's names in a layer, and gguf's; the first four are stored as [inputs, outputs]
MATRICES = {"attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
NORMS = {"ln_1": "attn_norm", "ln_2": "ffn_norm"}


def random_gpt2(folder: pathlib.Path):
    words, width, layers, positions = 50257, 768, 12, 256
    numbers = numpy.random.default_rng(1)

    def draw(*shape):
        return (0.02 * numbers.standard_normal(shape)).astype(numpy.float32)

    tensors = {"transformer.wte.weight": draw(words, width), "transformer.wpe.weight": draw(positions, width)}
    for i in range(layers):
        for name, (inputs, outputs) in zip(MATRICES, ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))):
            tensors[f"transformer.h.{i}.{name}.weight"] = draw(inputs, outputs)
            tensors[f"transformer.h.{i}.{name}.bias"] = draw(outputs)
    for name in [f"h.{i}.{norm}" for i in range(layers) for norm in NORMS] + ["ln_f"]:
        tensors[f"transformer.{name}.weight"] = numpy.ones(width, numpy.float32)
        tensors[f"transformer.{name}.bias"] = numpy.zeros(width, numpy.float32)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": words, "n_positions": positions, "n_embd": width,
        "n_layer": layers, "n_head": 12, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
        "bos_token_id": words - 1, "eos_token_id": words - 1}))
    for name, count in (("ids.txt", 4 * positions), ("calibration.txt", 2 * positions)):
        (folder / name).write_text(" ".join(map(str, numbers.integers(words - 1, size=count))) + "\n")


def write_float32(folder: pathlib.Path, path: str):
    config = json.loads((folder / "config.json").read_text())
    tensors = {name.removeprefix("transformer."): value for name, value in load_file(folder / "model.safetensors").items()}
    words = config["vocab_size"]
    pieces = [f"w{i}" for i in range(words)]
    if (folder / "vocab.json").exists():
        for piece, i in json.loads((folder / "vocab.json").read_text()).items():
            pieces[i] = piece
    out = gguf.GGUFWriter(path, "gpt2")
    out.add_context_length(config["n_positions"])
    out.add_embedding_length(config["n_embd"])
    out.add_block_count(config["n_layer"])
    out.add_feed_forward_length(4 * config["n_embd"])
    out.add_head_count(config["n_head"])
    out.add_layer_norm_eps(config["layer_norm_epsilon"])
    out.add_file_type(llama_cpp.LLAMA_FTYPE_ALL_F32)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(pieces)
    out.add_token_types([gguf.TokenType.NORMAL] * words)
    out.add_token_merges(["w 0"])
    out.add_bos_token_id(config["bos_token_id"])
    out.add_eos_token_id(config["eos_token_id"])
    out.add_tensor("token_embd.weight", tensors["wte.weight"])
    out.add_tensor("output.weight", tensors.get("lm_head.weight", tensors["wte.weight"]))
    out.add_tensor("position_embd.weight", tensors["wpe.weight"])
    names = [(f"h.{i}.{theirs}", f"blk.{i}.{ours}") for i in range(config["n_layer"]) for theirs, ours in (MATRICES | NORMS).items()]
    for theirs, ours in [*names, ("ln_f", "output_norm")]:
        weight = tensors[theirs + ".weight"]
        out.add_tensor(ours + ".weight", numpy.ascontiguousarray(weight.T if weight.ndim == 2 else weight))
        out.add_tensor(ours + ".bias", tensors[theirs + ".bias"])
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def write(folder: pathlib.Path, path: str, weights: str, pure: bool):
    whole = path if weights == "float32" else path + ".float32"
    write_float32(folder, whole)
    if whole != path:
        parameters = llama_cpp.llama_model_quantize_default_params()
        parameters.ftype, parameters.nthread, parameters.pure = TYPES[weights], 1, pure
        if llama_cpp.llama_model_quantize(whole.encode(), path.encode(), ctypes.byref(parameters)) != 0:
            raise SystemExit(f"stream_llama_cpp: {path}: expected a file of {weights}, found none")
        pathlib.Path(whole).unlink()


def log_softmax(logits: numpy.ndarray) -> numpy.ndarray:
    shifted = logits - logits.max()
    return shifted - numpy.log(numpy.exp(shifted).sum())


class Text:
    """Blocks of a text in a model."""

    def __init__(self, path: str, ids: str):
        self.context = llama_cpp.Llama(path, n_ctx=256, n_batch=256, n_threads=1, n_threads_batch=1, logits_all=True, verbose=False)
        with open(ids) as file:
            self.ids = [int(word) for word in file.read().split()]
        self.positions = self.context.n_ctx()
        self.batch = llama_cpp.llama_batch_init(self.positions, 0, 1)
        self.words = self.context.n_vocab()

    def block(self, i: int) -> tuple:
        """The inputs and the tokens that follow them, as `kinglet score --block` reads blocks."""
        inputs = [self.context.token_bos(), *self.ids]
        part = slice(i * self.positions, (i + 1) * self.positions)
        return inputs[part], self.ids[part]

    def clear(self):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context.ctx), True)

    def logits(self, tokens: list, position: int) -> numpy.ndarray:
        """All logits after each of the tokens, as llama.cpp holds them."""
        self.batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            self.batch.token[i], self.batch.pos[i], self.batch.n_seq_id[i], self.batch.logits[i] = token, position + i, 1, True
            self.batch.seq_id[i][0] = 0
        if llama_cpp.llama_decode(self.context.ctx, self.batch) != 0:
            raise SystemExit("stream_llama_cpp: expected logits, found an error of llama_decode")
        return numpy.ctypeslib.as_array(llama_cpp.llama_get_logits(self.context.ctx), (len(tokens), self.words))


def run(path: str, ids: str, mode: str, blocks: int) -> dict:
    text = Text(path, ids)
    bare, whole, losses = [], [], []
    for i in range(blocks):
        inputs, targets = text.block(i)
        for step in [inputs] if mode == "text" else [[token] for token in inputs]:
            at = 0 if mode == "text" else len(losses) % text.positions
            if at == 0:
                text.clear()
            start = time.perf_counter()
            logits = text.logits(step, at)
            bare.append((time.perf_counter() - start) / len(step))
            losses += [-float(log_softmax(row)[target]) for row, target in zip(logits, targets[at:])]
            whole.append((time.perf_counter() - start) / len(step))
    return {"peer": f"llama.cpp of llama-cpp-python {llama_cpp.__version__}", "us_per_token": {"p50": 1e6 * statistics.median(whole)},
            "us_logits": 1e6 * statistics.median(bare), "nll": statistics.mean(losses), "scored": len(losses),
            "bytes": pathlib.Path(path).stat().st_size}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("random").add_argument("folder", type=pathlib.Path)
    writing = commands.add_parser("write")
    writing.add_argument("folder", type=pathlib.Path)
    writing.add_argument("model")
    writing.add_argument("--weights", choices=("float32", *TYPES), default="float32")
    writing.add_argument("--pure", action="store_true")
    running = commands.add_parser("run")
    running.add_argument("model")
    running.add_argument("--ids", required=True)
    running.add_argument("--mode", choices=("full", "text"), required=True)
    running.add_argument("--blocks", type=int, default=1)
    options = parser.parse_args()
    if options.command == "random":
        random_gpt2(options.folder)
    elif options.command == "write":
        write(options.folder, options.model, options.weights, options.pure)
    else:
        print(json.dumps(run(options.model, options.ids, options.mode, options.blocks)))


if __name__ == "__main__":
    main()
