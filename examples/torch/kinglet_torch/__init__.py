"""Compressed language models in PyTorch: what kinglet runs, trained with its numbers (README.md)."""
from .checkpoint import export, load
from .distil import read_shards, soft_loss
from .language_model import LanguageModel
from .plan import GradualPruning, Plan, plan_of, read_plan
from .quantise import Quantised

__all__ = ["GradualPruning", "LanguageModel", "Plan", "Quantised", "export", "load", "plan_of", "read_plan",
           "read_shards", "soft_loss"]
