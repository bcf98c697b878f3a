"""A kinglet model in lm-evaluation-harness, under the name "kinglet".

    from kinglet_lm.integrations.lm_eval import LanguageModel, TASKS
    tasks = TaskManager(include_path=TASKS, metadata={"text": "wiki.test.tokens"})
    simple_evaluate(model=LanguageModel("m.kgl"), tasks=["kinglet_wikitext"], task_manager=tasks)

`python -m kinglet_lm.lm_eval` is the harness's command with this model added. Every text begins in
a fresh state after the model's begin token; a newline is the end of a line, and scored as such.
"""

from __future__ import annotations

import math
import os
import pathlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from kinglet_lm._buffers import utf8
from kinglet_lm._numbers import integer
from kinglet_lm.errors import Unsupported
from kinglet_lm.integrations._host import host
from kinglet_lm.model import Model
from kinglet_lm.session import Session

LM: Any = host("lm_eval.api.model", "lm-eval", "0.4.13", "LM").LM
_register: Any = host("lm_eval.api.registry", "lm-eval", "0.4.13", "register_model").register_model

TASKS = str(pathlib.Path(__file__).parent / "lm_eval_tasks")
_LANES = 16
_MOST_TOKENS = 256  # of a generated text, the harness's default


class _Token(NamedTuple):
    id: int
    end: int  # where its bytes end in the text


@_register("kinglet")
class LanguageModel(LM):
    """loglikelihood, loglikelihood_rolling and generate_until of a model file.

    `lanes` texts are scored at once by `threads` threads; the bits do not depend on them. The
    harness's own `batch_size` is used as `lanes`; other arguments of its command are ignored.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Model,
        lanes: int | None = None,
        threads: int = 1,
        batch_size: int | str | None = None,
        max_batch_size: int | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__()
        self.model = path if isinstance(path, Model) else Model(path)
        self.threads = integer(_of_command(threads), "threads", 1)
        if lanes is None:
            given = str(batch_size or "").isdigit() and int(str(batch_size)) > 1
            lanes = int(str(batch_size)) if given else _LANES
        self.lanes = integer(_of_command(lanes), "lanes", 1)
        words = self.model.vocabulary
        if words.begin is None or not words.has_words:
            raise Unsupported(
                f"kinglet: {self.model.path or 'model'}: expected words, and a token that begins a "
                "text, found a model without; convert it with --vocab")
        self.begin: int = words.begin
        self._session: Session | None = None

    @property
    def tokenizer_name(self) -> str:
        """The model's digest, which identifies the harness's caches of requests."""
        return self.model.digest

    def _tokens(self, text: str) -> list[_Token]:
        """The tokens of a text, with the end of a line for each newline."""
        end = self.model.vocabulary.end
        found: list[_Token] = []
        at = 0
        lines = text.split("\n")
        for number, line in enumerate(lines):
            found += [_Token(id, at + stop)
                      for id, _, stop in self.model.tokenize_with_ranges(line)]
            at += len(utf8(line))
            if number + 1 < len(lines):
                at += 1
                if end is not None:
                    found.append(_Token(end, at))
        return found

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[Any]:
        """For each (context, continuation): ln p, and whether greedy decoding generates it."""
        answers: list[Any] = [None] * len(requests)
        texts = [request.args for request in requests]
        session = self._lane()
        known, state = None, None
        # Choices after one context are adjacent, so that the context is read once.
        for at in sorted(range(len(texts)), key=lambda at: texts[at][0]):
            context, continuation = texts[at]
            boundary = len(utf8(context))
            tokens = self._tokens(context + continuation)
            # A token with bytes of both belongs to the continuation.
            before = [token.id for token in tokens if token.end <= boundary]
            after = [token.id for token in tokens[len(before):]]
            if state is None or known != before:
                self._read(session, [self.begin, *before])
                known, state = before, session.save()
            else:
                session.restore(state)
            values, greedy = [], True
            for number, id in enumerate(after):
                values.append(session.log_probability(id))
                greedy = greedy and session.rank(id) == 1
                if number + 1 < len(after):
                    session.step(id)
            answers[at] = math.fsum(values), greedy
            self.cache_hook.add_partial("loglikelihood", texts[at], answers[at])
        return answers

    def loglikelihood_rolling(
        self, requests: list[Any], disable_tqdm: bool = False
    ) -> list[float]:
        """ln p of each text."""
        texts = [request.args for request in requests]
        lines = ([token.id for token in self._tokens(text)] for (text,) in texts)
        answers = []
        for args, score in zip(texts, self.model.score_lines(
                lines, lanes=min(self.lanes, max(1, len(texts))), threads=self.threads,
                eos=False)):
            answers.append(score.log_probability)
            self.cache_hook.add_partial("loglikelihood_rolling", args, answers[-1])
        return answers

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """The text that follows each context, before the first of `until`, or the text's end.

        Greedy unless `do_sample`, which takes temperature, top_k, top_p and seed.
        """
        answers = []
        for request in requests:
            context, how = request.args
            answers.append(self._generate(context, dict(how)))
            self.cache_hook.add_partial("generate_until", request.args, answers[-1])
        return answers

    def _generate(self, context: str, how: dict[str, Any]) -> str:
        until = how.get("until") or []
        stops = [until] if isinstance(until, str) else [str(stop) for stop in until]
        most = how.get("max_gen_toks")
        if most is None:
            most = how.get("max_new_tokens", _MOST_TOKENS)
        most = integer(most, "max_gen_toks")
        seed, top_k = integer(how.get("seed") or 0, "seed"), integer(how.get("top_k") or 0, "top_k")
        temperature = float(how.get("temperature") or 0.0)
        drawn = bool(how.get("do_sample")) and temperature > 0.0
        vocabulary = self.model.vocabulary
        read = [token.id for token in self._tokens(context)]
        session = self._lane()
        self._read(session, [self.begin, *read])
        before = self.model.detokenize(read)
        drawn_ids: list[int] = []
        text = ""
        for position in range(most):
            if drawn:
                id = session.draw(seed + position, temperature=temperature, top_k=top_k,
                                  top_p=float(how.get("top_p") or 1.0))
            else:
                id = session.top_k(1)[0][0]
            if id == vocabulary.end:
                break
            drawn_ids.append(id)
            text = self.model.detokenize([*read, *drawn_ids])[len(before):]
            found = [text.index(stop) for stop in stops if stop and stop in text]
            if found:
                return text[: min(found)]
            session.step(id)
        return text

    def _lane(self) -> Session:
        if self._session is None:
            self._session = self.model.session(threads=self.threads, empty_cache="normalised")
        return self._session

    @staticmethod
    def _read(session: Session, ids: Iterable[int]) -> None:
        session.reset()
        for id in ids:
            session.step(id)


def _of_command(value: Any) -> Any:
    """A number, which the harness's command may pass as text."""
    return int(value) if isinstance(value, str) and value.isdigit() else value


__all__ = ["TASKS", "LanguageModel"]
