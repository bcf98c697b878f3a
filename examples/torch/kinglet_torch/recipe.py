"""The recipe (docs/RECIPES.md) of a network of `language_model.py`: which blocks `kinglet convert` makes of which
tensors, and what the model file calls them."""


def recipe_of(config: dict) -> dict:
    """The recipe of the config of a `LanguageModel` (README.md). Tied parameters have the embedding's names."""
    recipe = untied(config)
    source, unused = "input.map." if config["input"]["kind"] == "define" else "input.", []

    def renamed(part):
        if isinstance(part, str) and part.startswith("output.") and part.split(".")[1] in config["tied"]:
            unused.append(part)
            return source + part[len("output."):]
        if isinstance(part, dict):
            return {key: renamed(value) for key, value in part.items()}
        return [renamed(value) for value in part] if isinstance(part, list) else part

    recipe["softmax"] = renamed(recipe["softmax"])
    if unused:
        recipe["unused"] = unused
    return recipe


def untied(config: dict) -> dict:
    recipe = {"embedding": {"scale": config["scale"], "bins": bins_of(config["input"], "input.", config["vocabulary"])}}
    if "lstm" in config:
        recipe["recurrent"] = {"cell": "lstm", "torch": "lstm.{}", "layers": len(config["lstm"]["units"])}
    else:
        recipe["transformer"] = transformer(config["decoder"], width_of(config["input"]))
    recipe["softmax"] = softmax_of(config["output"], config["vocabulary"])
    if "cache" in config:
        recipe["cache"] = dict(config["cache"], start="first_pair")
    return recipe


def tensors_of(config: dict) -> list:
    """(name in the model file, reference) of all tensors that passes may change, as if nothing was tied. A reference
    has "tensor", or instead "made" with the prefix of a module whose tensor the converter computes."""
    recipe, found = untied(config), []

    def add(name, reference):
        if reference is not None:
            found.append((name, reference if isinstance(reference, dict) else {"tensor": reference}))

    def add_table(name, table):
        if isinstance(table, str) or "tensor" in table:
            add(name, table)
            return
        (form, parts), = table.items()
        if form == "define":
            add(name, {"made": parts["layers"][0]["weight"].removesuffix("layers.0.weight")})
        elif form == "kd" and "kernel" in parts or form == "dpq" and "values" not in parts:
            own = "codebook" if form == "kd" else "keys"
            add(name + ".codebook", {"made": parts[own].removesuffix(own)})
        else:
            add(name + ".codebook", parts["values" if form == "dpq" else "codebook"])

    bins = recipe["embedding"]["bins"]
    for b, part in enumerate(bins):
        prefix = "embedding." if len(bins) == 1 else f"embedding.{b}."
        add_table(prefix + "table", part["table"])
        add(prefix + "projection", part.get("projection"))
    for i in range(recipe.get("recurrent", {"layers": 0})["layers"]):
        for name, part in (("input", "ih"), ("recurrent", "hh")):
            for kind in ("weight", "bias"):
                add(f"recurrent.{i}.{name}_{kind}", f"lstm.{i}.{kind}_{part}_l0")
    layers: dict = recipe["transformer"]["layers"] if "transformer" in recipe else {"count": 0}
    for i in range(layers["count"]):
        for name, reference in layers["each"].items():
            if "norm" not in name:
                add(f"transformer.layers.{i}.{name}", reference.replace("{}", str(i)))
    softmax = recipe["softmax"]
    parts = [("softmax.", softmax), ("softmax.head.", softmax.get("head", {})),
             ("softmax.clusters.", softmax.get("clusters", {}))]
    for prefix, part in parts + [(f"softmax.tails.{i}.", tail) for i, tail in enumerate(softmax.get("tails", []))]:
        add(prefix + "projection", part.get("projection"))
        if "table" in part:
            add_table(prefix + "table", part["table"])
        add(prefix + "weight", part.get("weight"))
        add(prefix + "bias", part.get("bias"))
    return found


def transformer(config: dict, width: int) -> dict:
    names = {"attention_norm_gain": "ln1.weight", "attention_norm_bias": "ln1.bias", "qkv_weight": "qkv.weight",
             "qkv_bias": "qkv.bias", "positions": "pos_emb", "out_weight": "out.weight",
             "inner_norm_gain": "ln2.weight", "inner_norm_bias": "ln2.bias",
             "inner_weight": "fc.0.weight", "inner_bias": "fc.0.bias",
             "outer_weight": "fc.3.weight", "outer_bias": "fc.3.bias"}
    return {"layout": "out_in", "qkv_rows": "heads", "width": width,
            **{key: config[key] for key in ("heads", "key_size", "value_size", "window", "start")},
            "norm_order": "pre", "epsilon": 1e-5, "activation": "relu", "positions": {"kind": "slots"},
            "layers": {"count": config["layers"],
                       "each": {key: "decoder.layers.{}." + name for key, name in names.items()}}}


def width_of(config: dict) -> int:
    """The width of an embedding."""
    if config["kind"] == "binned":
        return width_of(config["bins"][0])
    return config["layers"][-1]["outputs"] if config["kind"] == "define" else config["width"]


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
    made: dict = {"table": f"{prefix}tables.{band}"}
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
    codes: dict = {"codebook": prefix + "codebook", "pools": "one" if config["shared"] else "each"}
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


def softmax_of(config: dict, words: int) -> dict:
    kind = config["kind"]
    softmax: dict
    if kind == "adaptive":
        return adaptive(config)
    if kind == "class_factored":
        return class_factored(config)
    if kind == "slim":
        softmax = {"table": slim_table(config, words)}
    elif kind in ("full", "low_rank"):
        softmax = {"table": "output.table"}
        if kind == "low_rank":
            softmax["projection"] = {"tensor": "output.projection", "transpose": True}
    else:
        raise ValueError(f"no recipe for a softmax of kind {kind!r}")
    if config["bias"]:
        softmax["bias"] = "output.bias"
    return softmax


def slim_table(config: dict, words: int) -> dict:
    pools = config["pools"]
    if config["mapping"] == "hashed":
        return hashed("output.", words, len(pools), config["seed"], pools)
    return {"codes": {"codebook": "output.sub_vectors", "codes": "output.mapping", "combine": "concatenate",
                      "pools": pools, "indices": "pool"}}


def adaptive(config: dict) -> dict:
    parts = []
    for b in range(len(config["band_widths"])):
        part: dict = {"table": f"output.tables.{b}"}
        if b > 0 or config["project_first"]:
            part["projection"] = {"tensor": f"output.projections.{b}", "transpose": True}
        if config["bias"]:
            part["bias"] = f"output.biases.{b}"
        parts.append(part)
    clusters = {"weight": "output.cluster_weight", "order": config["cluster_order"]}
    if "projection" in parts[0]:
        clusters["reads"] = "projected"
    if config["cluster_bias"]:
        clusters["bias"] = "output.cluster_bias"
    return {"head": parts[0], "clusters": clusters, "tails": parts[1:]}


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

