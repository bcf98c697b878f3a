"""A kinglet model as a scorer of ESPnet's beam searches.

    from kinglet_lm.integrations.espnet import LanguageModel
    search = BatchBeamSearch(.., scorers={"decoder": .., "lm": LanguageModel("lm.kgl", tokens)})

The model's vocabulary must be the recogniser's token list, as it is after `kinglet convert` of
ESPnet's own checkpoints; with `token_list` the two are compared. All hypotheses are computed at
once. The search applies the weight.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from kinglet_lm.beam import Beam, BeamState
from kinglet_lm.errors import InvalidArgument, Mismatch, Unsupported
from kinglet_lm.integrations._host import host
from kinglet_lm.model import Model

BatchScorerInterface: Any = host(
    "espnet.nets.scorer_interface", "espnet", "202511", "BatchScorerInterface"
).BatchScorerInterface
_torch: Any = host("torch", "torch", "1.13", "empty", "Tensor")


class LanguageModel(BatchScorerInterface):
    """Log-probabilities of every token after each hypothesis.

    `model` is a path or a Model, `token_list` the recogniser's tokens in their order.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | Model,
        token_list: Sequence[str] | None = None,
        threads: int = 1,
    ) -> None:
        self.model = model if isinstance(model, Model) else Model(model)
        self.threads = threads
        begin = self.model.vocabulary.begin
        if begin is None:
            raise Unsupported(f"kinglet: {self.model.path}: expected a token that begins a text, "
                              "found none; convert a language model of sentences")
        self.begin: int = begin
        if token_list is not None:
            self._compare(token_list)
        self._beam: Beam | None = None
        self._empty: BeamState | None = None  # the hypothesis without tokens

    def _compare(self, tokens: Sequence[str]) -> None:
        vocabulary = self.model.vocabulary
        if len(tokens) != len(vocabulary):
            raise Mismatch(f"kinglet: token_list: expected {len(vocabulary)} tokens, found "
                           f"{len(tokens)}; the model must be trained on the recogniser's tokens")
        if vocabulary.has_words:
            for id, token in enumerate(tokens):
                if vocabulary[id] != token:
                    raise Mismatch(
                        f"kinglet: token_list: token {id}: expected {vocabulary[id]!r}, found "
                        f"{token!r}; the model must be trained on the recogniser's tokens")

    def init_state(self, x: Any) -> None:
        """The state before the first token, which is None."""
        return None

    def batch_init_state(self, x: Any) -> None:
        """The states before the first token, which are None."""
        return None

    def select_state(self, state: Any, i: int, new_id: int | None = None) -> Any:
        """The state of hypothesis i; `state` itself if it is a single one."""
        return state[i] if isinstance(state, list) else state

    def score(self, y: Any, state: BeamState | None, x: Any) -> tuple[Any, BeamState]:
        """Like batch_score, for one hypothesis."""
        scores, states = self.batch_score(y[None], [state], x[None])
        return scores[0], states[0]

    def batch_score(
        self, ys: Any, states: Sequence[BeamState | None], xs: Any
    ) -> tuple[Any, list[BeamState]]:
        """ln p of every token after each row of ys [n, length]: [n, tokens], and states.

        states[i] is the state before token ys[i, -1], or None before the first token.
        """
        if self._beam is None or self._empty is None:
            self._beam = self.model.beam(threads=self.threads, empty_cache="normalised")
            self._empty = self._beam.begin()
        last = ys[:, -1].tolist()
        before = []
        for at, state in enumerate(states):
            if state is None and (ys.shape[1] != 1 or last[at] != self.begin):
                raise InvalidArgument(
                    f"kinglet: sos: expected hypotheses to begin with {self.begin}, found "
                    f"{ys[at].tolist()} without a state; set sos to the model's begin token")
            before.append(self._empty if state is None else state)
        after = self._beam.step(before, last)
        rows = _torch.empty((len(ys), self._beam.vocabulary_size), dtype=_torch.float32)
        self._beam.log_probabilities(after, out=rows.numpy())  # the same memory
        return rows.to(device=xs.device, dtype=xs.dtype), after

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_beam": None, "_empty": None}


__all__ = ["LanguageModel"]
