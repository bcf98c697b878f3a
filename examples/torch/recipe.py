#!/usr/bin/env python3
"""The recipe (docs/RECIPES.md) of a network of `language_model.py`: which blocks `kinglet convert` makes of which tensors.

`language_model.save` writes it next to the weights: model.recipe.json next to model.pt, where `convert` looks for it. As a
script it writes the recipes of checkpoints that were saved without one:

    recipe.py model.pt ...
"""
import json
import pathlib
import sys


def path_next_to(checkpoint) -> pathlib.Path:
    return pathlib.Path(checkpoint).with_suffix(".recipe.json")


def recipe_of(config: dict) -> dict:
    """The recipe of the config of a `LanguageModel` (README.md)."""
    source = "input.map." if config["input"]["kind"] == "define" else "input."
    softmax = Softmax(config["vocabulary"], config["tied"], source)
    recipe = {"embedding": {"scale": config["scale"], "bins": bins_of(config["input"], "input.", config["vocabulary"])},
              "recurrent": {"cell": "lstm", "torch": "lstm.{}", "layers": len(config["lstm"]["units"])},
              "softmax": softmax.recipe_of(config["output"])}
    if "cache" in config:
        recipe["cache"] = dict(config["cache"], start="first_pair")
    if softmax.unused:
        recipe["unused"] = softmax.unused
    return recipe


def write_next_to(checkpoint, config: dict):
    blocks = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in recipe_of(config).items())
    path_next_to(checkpoint).write_text("{\n" + blocks + "\n}\n", encoding="utf-8")


# --- embeddings: bins of a table and perhaps a projection ---


def bins_of(config: dict, prefix: str, words: int) -> list:
    """The bins of an embedding of `words` words whose tensors' names start with `prefix`."""
    kind = config["kind"]
    if kind == "full":
        return [{"table": prefix + "table"}]
    if kind == "low_rank":
        return [{"table": prefix + "table", "projection": matrix(prefix + "projection")}]
    if kind == "adaptive":
        return [band_of(config, prefix, b) for b in range(len(config["band_widths"]))]
    if kind == "binned":
        bounds = [0, *config["cutoffs"], words]
        return [one for b, inner in enumerate(config["bins"])
                for one in bins_of(inner, f"{prefix}bins.{b}.", bounds[b + 1] - bounds[b])]
    if kind == "define":
        layers = [define_layer_of(layer, f"{prefix}layers.{i}.") for i, layer in enumerate(config["layers"])]
        bands = [dict(band, scale=1) for band in bins_of(config["map"], prefix + "map.", words)]
        return [{"table": {"define": {"map": bands, "entry_layers": 0, "layers": layers}}}]
    if kind == "dpq":
        return [{"table": {"dpq": dpq_of(config, prefix)}}]
    if kind == "coded":
        return [coded_of(config, prefix)]
    if kind == "slim" and config["mapping"] == "hashed":
        return [{"table": hashed(prefix, words, config["positions"], config["seed"], "one")}]
    if kind == "slim":
        return [{"table": {"codes": {"codebook": prefix + "sub_vectors", "codes": prefix + "mapping", "pools": "one",
                                     "combine": "concatenate"}}}]
    if kind == "hashed":
        return [{"table": hashed(prefix, words, config["width"], config["seed"], "one")}]
    raise ValueError(f"no recipe for an embedding of kind {kind!r}")


def matrix(name: str) -> dict:
    """A matrix [outputs, inputs]; `transpose` is explicit even where the shape decides it."""
    return {"tensor": name, "transpose": False}


def hashed(prefix: str, words: int, positions: int, seed: int, pools) -> dict:
    return {"hashed": {"codebook": prefix + "sub_vectors", "words": words, "positions": positions, "seed": seed,
                       "pools": pools, "combine": "concatenate"}}


def band_of(config: dict, prefix: str, band: int) -> dict:
    made = {"table": f"{prefix}tables.{band}"}
    if band > 0 or config["project_first"]:
        made["projection"] = matrix(f"{prefix}projections.{band}")
    return made


def define_layer_of(config: dict, prefix: str) -> dict:
    layer = {"weight": prefix + "weight", "layout": "in_out", "groups": config["groups"],
             "weights": "shared" if config["shared"] else "per_group",
             "shuffle": "before_norm" if config["shuffle"] else "none", "activation": config["activation"],
             "order": {"input_first": "input_first", "output_first": "previous_first"}[config["order"]]}
    if config["bias"]:
        layer["bias"] = prefix + "bias"
    if config["norm"] == "layer":
        layer.update(norm="per_group", gain=prefix + "norm.weight", offset=prefix + "norm.bias",
                     epsilon=config["epsilon"])
    layer["residual"] = "after_activation" if config["skip"] == "residual" else "none"
    if config["skip"] != "residual":
        layer["skip"] = {"none": "none", "concat": "concatenate", "mix": "mix"}[config["skip"]]
    return layer


def dpq_of(config: dict, prefix: str) -> dict:
    dpq = {key: config[key] for key in ("method", "positions", "combine", "batch_norm")}
    dpq.update(query=prefix + "query", keys=prefix + "keys")
    if config["method"] == "sx":
        dpq["values"] = prefix + "values"
    if config["batch_norm"] != "none":
        dpq.update(epsilon=config["epsilon"], mean=prefix + "batch_norm.running_mean",
                   variance=prefix + "batch_norm.running_var")
    return dpq


def coded_of(config: dict, prefix: str) -> dict:
    codes = {"codebook": prefix + "codebook", "pools": "one" if config["shared"] else "each"}
    if config["learned"]:
        codes["logits"] = prefix + "code_logits"
    else:
        codes["codes"] = prefix + "codes"
    if config["combine"] == "mean" and config["projection"]:
        codes["kernel"] = matrix(prefix + "projection")
        if config["bias"]:
            codes["bias"] = prefix + "bias"
        return {"table": {"kd": codes}}
    if config["bias"]:
        raise ValueError("no recipe for coded vectors with a bias, unless they are a mean with a projection")
    codes["combine"] = config["combine"]
    if "codes" in codes and codes["pools"] == "each":
        codes["indices"] = "pool"
    made = {"table": {"codes": codes}}
    if config["projection"]:
        made["projection"] = matrix(prefix + "projection")
    return made


# --- softmaxes ---


class Softmax:
    """Tied parameters are read under the embedding's names, which start with `source`; `unused` collects their others."""

    def __init__(self, words: int, tied: list, source: str):
        self.words, self.tied, self.source, self.unused = words, tied, source, []

    def shared(self, name: str) -> str:
        if name.split(".")[0] not in self.tied:
            return "output." + name
        self.unused.append("output." + name)
        return self.source + name

    def projection(self, name: str) -> dict:
        return {"tensor": self.shared(name), "transpose": True}

    def recipe_of(self, config: dict) -> dict:
        kind = config["kind"]
        if kind == "adaptive":
            return self.adaptive(config)
        if kind == "class_factored":
            return self.class_factored(config)
        if kind == "slim":
            softmax = {"table": self.slim_table(config)}
        elif kind in ("full", "low_rank"):
            softmax = {"table": self.shared("table")}
            if kind == "low_rank":
                softmax["projection"] = self.projection("projection")
        else:
            raise ValueError(f"no recipe for a softmax of kind {kind!r}")
        if config["bias"]:
            softmax["bias"] = "output.bias"
        return softmax

    def slim_table(self, config: dict) -> dict:
        pools = config["pools"]
        if config["mapping"] == "hashed":
            return hashed("output.", self.words, len(pools), config["seed"], pools)
        return {"codes": {"codebook": "output.sub_vectors", "codes": "output.mapping", "combine": "concatenate",
                          "pools": pools, "indices": "pool"}}

    def adaptive(self, config: dict) -> dict:
        parts = []
        for b in range(len(config["band_widths"])):
            part = {"table": self.shared(f"tables.{b}")}
            if b > 0 or config["project_first"]:
                part["projection"] = self.projection(f"projections.{b}")
            if config["bias"]:
                part["bias"] = f"output.biases.{b}"
            parts.append(part)
        clusters = {"weight": "output.cluster_weight", "order": config["cluster_order"]}
        if "projection" in parts[0]:
            clusters["reads"] = "projected"
        if config["cluster_bias"]:
            clusters["bias"] = "output.cluster_bias"
        return {"head": parts[0], "clusters": clusters, "tails": parts[1:]}

    @staticmethod
    def class_factored(config: dict) -> dict:
        clusters = {"weight": "output.class_table", "order": "forward"}
        if config["bias"]:
            clusters["bias"] = "output.class_bias"
        tails, begin = [], 0
        for size in config["class_sizes"]:
            words = [begin, begin + size]
            tail = {"table": {"tensor": "output.table", "rows": words}}
            if config["bias"]:
                tail["bias"] = {"tensor": "output.bias", "columns": words}
            tails.append(tail)
            begin += size
        return {"clusters": clusters, "tails": tails}


def main():
    import torch
    for checkpoint in sys.argv[1:]:
        write_next_to(checkpoint, torch.load(checkpoint, map_location="cpu")["config"])


if __name__ == "__main__":
    main()
