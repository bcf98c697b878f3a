"""Configs of each technique, with numbers that suit a small model: what `train.py` offers by name."""
from .techniques.define import hgt_layers


def cutoffs_of(words: int) -> list:
    """Two: the most frequent eighth, the next three eighths, the rest."""
    return [words // 8, words // 2]


def full(width):
    return {"kind": "full", "width": width}


def adaptive(words, width):
    return {"kind": "adaptive", "width": width, "cutoffs": cutoffs_of(words),
            "band_widths": [width, width // 2, width // 4], "project_first": False}


def define(width):
    return {"kind": "define", "map": full(width // 2), "layers": hgt_layers(width // 2, 2 * width, 3, 4, width)}


def dpq(width, method="sx"):
    return {"kind": "dpq", "width": width, "positions": 16, "choices": 32, "method": method, "shared": True,
            "combine": "concatenate", "query_width": width, "batch_norm": "choices", "epsilon": 1e-3}


def coded(width, combine, code_width, projection):
    return {"kind": "coded", "width": width, "positions": 8, "choices": 16, "combine": combine, "shared": False,
            "code_width": code_width, "projection": projection, "bias": projection, "learned": True}


def binned(words, width):
    return {"kind": "binned", "cutoffs": [words // 8], "bins": [define(width), dpq(width)]}


def decoder(width):
    return {"layers": 2, "heads": 4, "key_size": width // 4, "value_size": width // 4, "inner": 3 * width, "window": 33,
            "start": "masked"}


# name: (words, width) -> config["input"]
INPUTS = {
    "full": lambda words, width: full(width),
    "low_rank": lambda words, width: {"kind": "low_rank", "width": width, "rank": width // 4},
    "adaptive": adaptive,
    "define": lambda words, width: define(width),
    "dpq": lambda words, width: dpq(width),
    "dpq_vq": lambda words, width: dpq(width, "vq"),
    "shu": lambda words, width: coded(width, "sum", width, False),
    "kd": lambda words, width: coded(width, "mean", width // 2, True),
    "slim": lambda words, width: {"kind": "slim", "width": width, "positions": 8, "pool": words, "mapping": "shuffled",
                                  "seed": 1},
    "hashed": lambda words, width: {"kind": "hashed", "width": width, "pool": words * width // 8, "seed": 1},
    "binned": binned,
}

# name: (words, width) -> config["output"]
OUTPUTS = {
    "full": lambda words, width: {"kind": "full", "bias": True},
    "low_rank": lambda words, width: {"kind": "low_rank", "rank": width // 4, "bias": True},
    "adaptive": lambda words, width: dict({k: v for k, v in adaptive(words, width).items() if k != "width"},
                                          bias=True, cluster_bias=True, cluster_order="forward"),
    "slim": lambda words, width: {"kind": "slim", "pools": [words // 4] * 4, "mapping": "shuffled", "seed": 2,
                                  "bias": True},
    "slim_hashed": lambda words, width: {"kind": "slim", "pools": [words // 4] * 4, "mapping": "hashed", "seed": 2,
                                         "bias": True},
    "class_factored": lambda words, width: {"kind": "class_factored", "class_sizes": class_sizes(words), "bias": True},
}


def class_sizes(words: int) -> list:
    """About sqrt(words) classes whose sizes grow as 1, 2, 3, ...: frequent words in small classes."""
    sizes: list = []
    while sum(sizes) + len(sizes) + 1 < words:
        sizes.append(len(sizes) + 1)
    return sizes + [words - sum(sizes)]
