"""Quantisation-aware training with the runtime's numbers: the forward pass has the weights that `kinglet convert` makes
and the activations that the runtime rounds to (docs/NUMERICS.md), in float32 as there; gradients pass through."""
import torch
from torch import nn

from .language_model import LanguageModel
from .parameters import functional_call, named_parameters
from .plan import Plan, parts_of
from .techniques.coded import CodedEmbedding
from .techniques.define import DefineEmbedding
from .techniques.full import straight_through


def levels(bits: int, like):
    """The largest integer, as a tensor: PyTorch divides a number by a tensor with two roundings, tensors with one."""
    return torch.tensor(2.0 ** (bits - 1) - 1, device=like.device)


def truncated(scale, bits: int):
    """Float32 without its low `bits` mantissa bits, so that its products with integers are exact."""
    return (scale.view(torch.int32) & (-1 << bits)).view(torch.float32)


def quantised_rows(matrix, bits: int):
    """Integers times a scale for each row: round(w / s) with s = max |row| / levels, times s truncated. A row of zeros
    stays zeros. Float32, as all below."""
    largest = matrix.abs().amax(-1, keepdim=True)
    inverse = levels(bits, matrix) / largest.where(largest > 0, torch.ones_like(largest))
    return torch.round(matrix * inverse) * truncated(torch.ones_like(inverse) / inverse, bits)


def quantised_vector(vector, bits: int):
    """Integers over one divisor, the inverse of that s, which keeps all its bits."""
    largest = vector.abs().max()
    if largest == 0:
        return vector
    divisor = levels(bits, vector) / largest
    return torch.round(vector * divisor) / divisor


class RoundedRows(nn.Module):
    """Rounds rows that a module computes: a DeFINE unit's, in float64 as the converter has them; VQ's sub-vectors."""

    def __init__(self, bits: int):
        super().__init__()
        self.bits, self.dtype = bits, torch.float32

    def forward(self, rows):
        rows = rows.to(self.dtype)
        return straight_through(quantised_rows(rows.detach().float(), self.bits).to(self.dtype), rows)


class RoundedActivation(nn.Module):
    """round(clamp(x, -range, range) / s) s with s = range / levels truncated. The range is the largest magnitude that
    training has seen."""

    def __init__(self, bits: int):
        super().__init__()
        self.bits = bits
        self.register_buffer("range", torch.zeros(()))

    def forward(self, x):
        if self.training:
            self.range.copy_(torch.maximum(self.range, x.detach().abs().max()))
        most = self.range.float()
        most = most.where(most > 1e-30, torch.full_like(most, 1e-6))
        scale = truncated(most / levels(self.bits, x), self.bits).to(x.dtype)
        clipped = x.clamp(-most.to(x.dtype), most.to(x.dtype))
        return straight_through(torch.round(clipped / scale) * scale, clipped)


class Quantised(nn.Module):
    """A language model that computes with the plan's bits; other tensors stay floats. It trains the model that it is
    given, whose parameters stay floats, and has no dropout."""

    def __init__(self, model: LanguageModel, plan: Plan):
        super().__init__()
        self.model, self.plan = model, plan
        model.dropout.p = 0.0
        self.parts: dict = {}
        self.made: dict = {}
        for name, part in parts_of(model):
            if name not in plan.bits:
                continue
            if not isinstance(part, str):
                self.parts.setdefault(part.attribute, []).append((part, plan.bits[name]))
                continue
            module = model.get_submodule(part)
            if isinstance(module, CodedEmbedding):
                raise ValueError(f"{part}: expected codes without a projection, found codes of which a model file "
                                 "has another form, whose rows are rounded")
            module.finish = self.made[part] = RoundedRows(plan.bits[name])
        self.ranges = nn.ModuleDict()
        if plan.activation_bits:
            if "decoder" in model.config and model.config["decoder"]["window"] > 257:
                raise ValueError("activations of windows above 257 tokens have bits of their own (docs/NUMERICS.md)")
            self.ranges.update({point.replace(".", "-"): RoundedActivation(plan.activation_bits)
                                for point in model.context.points})
            for point, most in plan.ranges.items():
                self.ranges[point.replace(".", "-")].range.fill_(most)

    def weights(self) -> dict:
        """The rounded parameters, by name."""
        parameters, found = named_parameters(self.model), {}
        for attribute, parts in self.parts.items():
            rounded = parameters[attribute].detach().float().clone()
            for part, bits in parts:
                values = part.of(rounded)
                values.copy_(quantised_vector(values, bits) if values.dim() == 1 else quantised_rows(values, bits))
            found[attribute] = straight_through(rounded.to(parameters[attribute].dtype), parameters[attribute])
        for prefix, rows in self.made.items():
            rows.dtype = next(self.model.context.parameters()).dtype
            if isinstance(self.model.get_submodule(prefix), DefineEmbedding):
                found |= {name: values.double() for name, values in parameters.items() if name.startswith(prefix + ".")}
        return found

    def activation(self, point: str, x):
        return self.ranges[point.replace(".", "-")](x)

    def forward(self, ids, state=None):
        return functional_call(self.model, self.weights(), (ids, state, self.activation if self.ranges else None),
                               tie_weights=False)

    def passes(self) -> list:
        """The passes with which convert makes the same numbers."""
        by_bits: dict = {}
        for name, bits in self.plan.bits.items():
            by_bits.setdefault(bits, []).append(name)
        passes = [{"pass": "quantise", "tensors": names, "bits": bits} for bits, names in by_bits.items()]
        if self.ranges:
            ranges = {point.replace("-", "."): one.range.item() for point, one in self.ranges.items()}
            passes.append({"pass": "calibrate", "bits": self.plan.activation_bits, "ranges": ranges})
        return passes
