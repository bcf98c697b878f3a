"""Checkpoints that `kinglet convert` takes, and from which training continues."""
import json
import pathlib

import torch

from .language_model import LanguageModel
from .plan import plan_of
from .quantise import Quantised
from .recipe import recipe_of

FORMAT = "kinglet-torch-1"


def recipe_path(checkpoint) -> pathlib.Path:
    """model.recipe.json next to model.pt, where `convert` looks for it."""
    return pathlib.Path(checkpoint).with_suffix(".recipe.json")


def export(model, path):
    """Writes config and weights of a `LanguageModel`, or of one that is `Quantised`, and next to them the recipe."""
    passes = model.passes() if isinstance(model, Quantised) else []
    model = model.model if isinstance(model, Quantised) else model
    saved, recipe = {"format": FORMAT, "config": model.config, "model": model.state_dict()}, recipe_of(model.config)
    if passes:
        saved["passes"] = recipe["passes"] = passes
    torch.save(saved, path)
    blocks = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in recipe.items())
    recipe_path(path).write_text("{\n" + blocks + "\n}\n", encoding="utf-8")


def load(path):
    """What `export` wrote, in eval mode."""
    # Before PyTorch 2 the safe reader refuses numbers with a fraction: load only files of your own there.
    is_safe = int(torch.__version__.split(".")[0]) >= 2
    checkpoint = torch.load(path, map_location="cpu", weights_only=is_safe)
    if checkpoint.get("format") != FORMAT:
        raise ValueError(f"{path}: expected format {FORMAT!r}, found {checkpoint.get('format')!r}")
    model = LanguageModel(checkpoint["config"])
    model.load_state_dict(checkpoint["model"])
    if "passes" in checkpoint:
        model = Quantised(model, plan_of(model, checkpoint["passes"]))
    return model.eval()
