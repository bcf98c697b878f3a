"""Which entries training makes zero, and to how many bits it rounds: the passes of a recipe (docs/RECIPES.md), such as
`kinglet plan` writes, applied to the parameters of a `LanguageModel`."""
import json
import math
import pathlib
import re
from typing import NamedTuple

import torch

from .language_model import LanguageModel
from .parameters import named_parameters
from .recipe import tensors_of


class Part(NamedTuple):
    """A tensor of the model file: a parameter's rows (all, or some), perhaps transposed."""
    attribute: str
    rows: slice
    transpose: bool

    def of(self, values):
        return values[self.rows].t() if self.transpose else values[self.rows]


def parts_of(model: LanguageModel) -> list:
    """[(name in the model file, Part)]. Tensors that are tied, or stored once, have one name. Instead of a Part there
    is the name of the module whose tensor the converter computes."""
    parameters = named_parameters(model)
    names: dict = {}
    found = []
    for name, reference in tensors_of(model.config):
        if "made" in reference:
            found.append((name, reference["made"].rstrip(".")))
            continue
        part = Part(reference["tensor"], slice(*reference.get("rows", reference.get("columns", [None]))),
                    reference.get("transpose", False))
        key = id(parameters[part.attribute]), str(part.rows), part.transpose
        found.append((names.setdefault(key, name), part))
    return found


class Plan(NamedTuple):
    fractions: dict  # of zeros, by tensor
    bits: dict  # by tensor
    activation_bits: int = 0  # 0: floats
    ranges: dict = {}  # of activations, by point


def matching(names: list, patterns: list) -> list:
    rules = [re.compile(".*".join(map(re.escape, pattern.split("*")))) for pattern in patterns]
    found = [name for name in names if any(rule.fullmatch(name) for rule in rules)]
    if not found:
        raise ValueError(f"plan: {' '.join(patterns)}: expected a tensor's name, such as {names[0]}, "
                         "found none that fits")
    return found


def plan_of(model: LanguageModel, passes: list, folder=".") -> Plan:
    """What the passes do to the model. How they find scales and ranges is training's own: the largest entry of a row,
    and the largest activation."""
    names = list(dict.fromkeys(name for name, _ in parts_of(model)))
    matrices = [name for name in names if not name.endswith("bias")]
    plan = Plan({}, {})
    for one in passes:
        kind = one["pass"]
        if kind == "prune":
            fractions = one.get("fractions", {})
            if isinstance(fractions, str):
                fractions = json.loads((pathlib.Path(folder) / fractions).read_text(encoding="utf-8"))
            if not fractions:
                fractions = dict.fromkeys(one.get("tensors", matrices), one["fraction"])
            for pattern in sorted(fractions):
                for name in matching(names, [pattern]):
                    plan.fractions.setdefault(name, fractions[pattern])
        elif kind == "quantise" and one.get("scale", "row") == "row":
            for name in matching(names, one.get("tensors", names)):
                plan.bits.setdefault(name, one["bits"])
        elif kind == "calibrate":
            plan = plan._replace(activation_bits=one["bits"], ranges=one.get("ranges", {}))
        else:
            raise ValueError(f"plan: pass {json.dumps(one)}: expected prune, quantise (a scale for each row) or "
                             "calibrate, which training can follow; give the other passes to kinglet convert")
    return plan


def read_plan(model: LanguageModel, path) -> Plan:
    path = pathlib.Path(path)
    return plan_of(model, json.loads(path.read_text(encoding="utf-8")).get("passes", []), path.parent)


def smallest(values, fraction: float):
    """True at the floor(fraction * size) smallest magnitudes, which convert's prune pass makes zero; of equal ones, at
    the first."""
    chosen = torch.zeros(values.numel(), dtype=torch.bool, device=values.device)
    order = values.detach().abs().flatten().argsort(stable=True)
    chosen[order[:math.floor(fraction * values.numel())]] = True
    return chosen.view(values.shape)


class GradualPruning:
    """Zhu & Gupta 2017, "To prune, or not to prune": from step `begin` to step `end` the sparsity of each tensor grows
    to its fraction f as f (1 - (1 - t)^3), t from 0 to 1, every `every` steps; then it stays. What is zero stays zero.
    """

    def __init__(self, model: LanguageModel, fractions: dict, begin: int = 0, end: int = 0, every: int = 1):
        self.begin, self.end, self.every = begin, end, every
        self.parameters = named_parameters(model)
        self.parts = []
        seen: dict = {}
        for name, part in parts_of(model):
            if name not in fractions:
                continue
            if isinstance(part, str):
                raise ValueError(f"plan: {name}: the converter computes it from {part}; it cannot be pruned here")
            key = id(self.parameters[part.attribute]), str(part.rows)
            if seen.setdefault(key, fractions[name]) != fractions[name]:
                raise ValueError(f"plan: {name}: expected the fraction {seen[key]} of the tensor that it is tied with, "
                                 f"found {fractions[name]}")
            self.parts.append((part, fractions[name]))
        self.masks = [None] * len(self.parts)

    def share(self, step: int) -> float:
        """Of its fraction, the part that a tensor has at this step; 1 exactly from the last step on."""
        return 1 - (1 - min((step - self.begin) / max(self.end - self.begin, 1), 1)) ** 3 if step < self.end else 1

    @torch.no_grad()
    def step(self, step: int):
        """To be called after each step of the optimiser, with its number."""
        if step < self.begin:
            return
        renew = step == self.end or step < self.end and (step - self.begin) % self.every == 0
        for i, (part, fraction) in enumerate(self.parts):
            values = part.of(self.parameters[part.attribute].data)
            if renew:
                self.masks[i] = smallest(values, fraction * self.share(step))
            values.masked_fill_(self.masks[i], 0)
