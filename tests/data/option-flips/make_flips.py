#!/usr/bin/env python3
"""Writes what the original frameworks compute in float64 for checkpoints of the folders next to
this one when one option of their configuration has another value: flips.txt, and a file of golden
values for each of its lines.

    python3 make_flips.py          writes into its own folder

Needs PyTorch and the frameworks: transformers (made with 4.30.2, GPT-2 with 5.24), ESPnet (202402) and SpeechBrain
(1.0), and the folder `pytorch` of kimiyoung/transformer-xl in PYTHONPATH. The LSTM of Zaremba et
al. is torch.nn.LSTM here, whose forget gate gets the bias that TensorFlow's cell adds.

flips.txt: folder, configuration, option, value as the file has it, golden values. A configuration
that the folder lacks is one of this option alone. Golden values: position, id, ln p of the token;
of BERT first the line of the text.
"""

import glob
import json
import os

import numpy
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.dirname(HERE)
# Some frameworks round attention scores to float32 on the way through a mask, and have masks of
# bytes.
torch.Tensor.float = lambda tensor: tensor
torch.Tensor.byte = lambda tensor: tensor.bool()
LINES = []


def ids_of(folder, name="tokens.txt"):
    return [int(word) for word in open(f"{DATA}/{folder}/{name}").read().split()]


def write(folder, file, option, value, rows):
    name = f"{len(LINES):02}-{os.path.basename(folder)}.tsv"
    with open(f"{HERE}/{name}", "w") as out:
        out.writelines("\t".join(map(str, row[:-1])) + f"\t{row[-1]:.12g}\n" for row in rows)
    LINES.append("\t".join([folder, file, option, value, name]) + "\n")


def rows_of(log_probabilities, ids):
    """log_probabilities: [tokens, words], the first of them of ids[0] if there is a start token."""
    first = len(ids) - len(log_probabilities)
    return [
        (t, ids[t], log_probabilities[t - first][ids[t]].item()) for t in range(first, len(ids))
    ]


def transfo_xl(folder, option, value):
    from transformers import TransfoXLConfig, TransfoXLLMHeadModel

    settings = json.load(open(f"{DATA}/{folder}/config.json"))
    settings[option] = value
    model = TransfoXLLMHeadModel(TransfoXLConfig(**settings))
    model.load_state_dict(torch.load(f"{DATA}/{folder}/pytorch_model.bin", weights_only=False))
    model.tie_weights()
    model, ids, rows, mems = model.double().eval(), ids_of(folder), [], None
    for word in ids[:-1]:
        out = model(torch.tensor([[word]]), mems=mems)
        mems = out.mems
        rows.append(out.prediction_scores.view(-1))
    write(folder, "config.json", option, json.dumps(value), rows_of(rows, ids))


def kimiyoung(folder, shape, option, value):
    torch.version.cuda = torch.version.cuda or "10.0"
    from mem_transformer import MemTransformerLM

    saved = torch.load(f"{DATA}/{folder}/model.pt", weights_only=False).state_dict()
    settings = dict(shape, **{option: value})
    model = MemTransformerLM(
        tgt_len=1, ext_len=0, dropout=0, dropatt=0, tie_projs=[False] * 4, **settings
    )
    model.load_state_dict(saved)
    model, ids, values, mems = model.double().eval(), ids_of(folder), [], ()
    for word, following in zip(ids, ids[1:]):
        loss, *mems = model(torch.tensor([[word]]), torch.tensor([[following]]), *mems)
        values.append(-loss.item())
    text = str(value).lower() if isinstance(value, bool) else str(value)
    write(
        folder,
        "eval.yaml",
        option,
        text,
        [(t + 1, ids[t + 1], value) for t, value in enumerate(values)],
    )


def safetensors(path):
    data = open(path, "rb").read()
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    types = {"F32": numpy.float32, "I64": numpy.int64}
    return {
        name: torch.from_numpy(
            numpy.frombuffer(body[slice(*e["data_offsets"])], types[e["dtype"]]).copy()
        ).view(e["shape"])
        for name, e in header.items()
        if name != "__metadata__"
    }


def bert(folder, option, value):
    from transformers import BertConfig, BertForMaskedLM

    settings = json.load(open(f"{DATA}/{folder}/config.json"))
    settings[option] = value
    model = BertForMaskedLM(BertConfig(**settings))
    result = model.load_state_dict(safetensors(f"{DATA}/{folder}/model.safetensors"), strict=False)
    assert not result.unexpected_keys, result
    model.tie_weights()
    model, rows = model.double().eval(), []
    texts = zip(open(f"{DATA}/{folder}/tokens.txt"), open(f"{DATA}/{folder}/segments.txt"))
    for line, (words, segments) in enumerate(texts):
        ids, parts = ([int(word) for word in text.split()] for text in (words, segments))
        for t, word in enumerate(ids):
            if word in (2, 3):  # [CLS], [SEP]
                continue
            masked = ids[:t] + [4] + ids[t + 1 :]
            logits = model(torch.tensor([masked]), token_type_ids=torch.tensor([parts])).logits
            rows.append((line, t, word, torch.log_softmax(logits[0, t], 0)[word].item()))
    write(folder, "config.json", option, json.dumps(value), rows)


def gpt2(folder, option, value):
    from transformers import GPT2Config, GPT2LMHeadModel

    settings = json.load(open(f"{DATA}/{folder}/config.json"))
    start = settings["eos_token_id"]
    settings[option] = value
    model = GPT2LMHeadModel(GPT2Config(**settings))
    model.load_state_dict(safetensors(f"{DATA}/{folder}/model.safetensors"), strict=False)
    model.tie_weights()
    ids = ids_of(folder)
    logits = model.double().eval()(torch.tensor([[start] + ids[:-1]])).logits[0]
    rows = rows_of(torch.log_softmax(logits, 1), ids)
    write(folder, "config.json", option, json.dumps(value), rows)


def whole_text(model, start, ids):
    out = model(torch.tensor([[start] + ids[:-1]]))
    return torch.log_softmax(out[0] if not isinstance(out, tuple) else out[0][0], -1)


def espnet(folder, kind, options, option, value):
    from espnet2.lm.seq_rnn_lm import SequentialRNNLM
    from espnet2.lm.transformer_lm import TransformerLM

    model = {"transformer": TransformerLM, "rnn": SequentialRNNLM}[kind](
        13, **dict(options, **{option: value})
    )
    saved = torch.load(glob.glob(f"{DATA}/{folder}/*.pth")[0], weights_only=False)
    model.load_state_dict({name[len("lm.") :]: tensor for name, tensor in saved.items()})
    model, ids = model.double().eval(), ids_of(folder)
    rows = whole_text(lambda text: model(text, None), 12, ids)
    write(folder, "config.yaml", f"lm_conf.{option}", str(value), rows_of(rows, ids))


def speechbrain(folder, kind, start, options, option, value, text):
    from speechbrain.lobes.models.RNNLM import RNNLM
    from speechbrain.lobes.models.transformer.TransformerLM import TransformerLM

    model = {"transformer": TransformerLM, "rnn": RNNLM}[kind](
        13, **dict(options, **{option: value})
    )
    found = [
        path
        for name in ("lm.ckpt", "model.ckpt")
        for path in glob.glob(f"{DATA}/{folder}/**/{name}", recursive=True)
    ]
    model.load_state_dict(torch.load(found[0], weights_only=False))
    model, ids = model.double().eval(), ids_of(folder)
    model.requires_grad_(False)
    write(folder, "hyperparams.yaml", option, text, rows_of(whole_text(model, start, ids), ids))


def examples(folder, option, value, mode):
    saved = torch.load(f"{DATA}/{folder}/model.pt", weights_only=False)
    rnn = torch.nn.RNN(8, 10, 1, nonlinearity=mode).double()
    rnn.load_state_dict(
        {name[len("rnn.") :]: tensor for name, tensor in saved.items() if name.startswith("rnn.")}
    )
    ids = ids_of(folder)
    out = rnn(saved["encoder.weight"].double()[ids[:-1]])[0]
    logits = out @ saved["decoder.weight"].double().t() + saved["decoder.bias"].double()
    write(folder, "config.yaml", option, value, rows_of(torch.log_softmax(logits, -1), ids))


def zaremba(folder, bias):
    arrays = {
        name: torch.from_numpy(value).double()
        for name, value in numpy.load(f"{DATA}/{folder}/model.npz").items()
        if value.ndim
    }
    kernels = sorted(name for name in arrays if name.endswith("/kernel"))
    ids = ids_of(folder)
    x = arrays["Model/embedding"][ids[:-1]]
    for name in kernels:
        kernel, units = arrays[name], arrays[name].shape[1] // 4
        gates = [0, 2, 1, 3]  # TensorFlow: input, candidate, forget, output; PyTorch: i, f, g, o
        rows = torch.cat([kernel.t()[g * units : (g + 1) * units] for g in gates])
        start = torch.cat(
            [arrays[name[: -len("kernel")] + "bias"][g * units : (g + 1) * units] for g in gates]
        )
        start[units : 2 * units] += bias
        lstm = torch.nn.LSTM(x.shape[1], units).double()
        lstm.load_state_dict(
            {
                "weight_ih_l0": rows[:, : x.shape[1]],
                "weight_hh_l0": rows[:, x.shape[1] :],
                "bias_ih_l0": start,
                "bias_hh_l0": torch.zeros(4 * units),
            }
        )
        x = lstm(x)[0].detach()
    logits = x @ arrays["Model/softmax_w"] + arrays["Model/softmax_b"]
    write(
        folder, "config.yaml", "forget_bias", str(bias), rows_of(torch.log_softmax(logits, -1), ids)
    )


def main():
    torch.set_grad_enabled(False)
    for option, value in [
        ("mem_len", 9),
        ("clamp_len", 3),
        ("clamp_len", -1),
        ("same_length", False),
        ("pre_lnorm", True),
        ("layer_norm_epsilon", 0.3),
    ]:
        transfo_xl("transformer-xl-variants/hf-published", option, value)
    shape = dict(
        n_token=37,
        n_layer=2,
        n_head=2,
        d_model=8,
        d_head=4,
        d_inner=12,
        cutoffs=[10],
        mem_len=20,
        clamp_len=9,
        same_length=True,
    )
    for option, value in [
        ("mem_len", 8),
        ("clamp_len", 2),
        ("same_length", False),
        ("pre_lnorm", True),
    ]:
        kimiyoung("transformer-xl-variants/kimi-evaluated-longer", shape, option, value)
    for option, value in [
        ("hidden_act", "relu"),
        ("hidden_act", "silu"),
        ("layer_norm_eps", 0.2),
        ("num_attention_heads", 2),
    ]:
        bert("bert/mlm-tied", option, value)
    transformer = dict(embed_unit=6, att_unit=8, unit=10, layer=2, head=2)
    espnet("speech-lm-variants/espnet-transformer", "transformer", transformer, "head", 4)
    espnet(
        "speech-lm-variants/espnet-transformer", "transformer", transformer, "pos_enc", "sinusoidal"
    )
    espnet("speech-lm-variants/espnet-rnn-tanh", "rnn", dict(unit=6), "rnn_type", "rnn_relu")
    nn = torch.nn
    transformer = dict(
        d_model=8, nhead=2, num_encoder_layers=2, d_ffn=10, activation=nn.GELU, max_length=60
    )
    for option, value, text in [
        ("nhead", 4, "4"),
        ("normalize_before", True, "True"),
        ("activation", nn.ReLU, "!name:torch.nn.ReLU"),
        ("activation", nn.Tanh, "!name:torch.nn.modules.activation.Tanh"),
    ]:
        speechbrain(
            "speech-lm-variants/speechbrain-transformer-post",
            "transformer",
            1,
            transformer,
            option,
            value,
            text,
        )
    from speechbrain.nnet.RNN import GRU

    recurrent = dict(embedding_dim=6, rnn_class=GRU, rnn_neurons=8, dnn_blocks=2, dnn_neurons=10)
    speechbrain(
        "speech-lm-variants/speechbrain-rnn-gru-references",
        "rnn",
        0,
        recurrent,
        "activation",
        nn.LeakyReLU,
        "!name:torch.nn.LeakyReLU",
    )
    examples("recurrent-variants/examples-tanh-state-dict", "rnn_type", "RNN_RELU", "relu")
    zaremba("recurrent-variants/zaremba-tutorial-2-forget", 0.25)
    for option, value in [
        ("activation_function", "relu"),
        ("activation_function", "silu"),
        ("layer_norm_epsilon", 0.2),
        ("n_head", 2),
    ]:
        gpt2("gpt2/tied", option, value)
    with open(HERE + "/flips.txt", "w") as out:
        out.writelines(LINES)


if __name__ == "__main__":
    main()
