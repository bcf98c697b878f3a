"""kinglet_lm: probabilities of the next word from compressed language models.

    import kinglet_lm
    model = kinglet_lm.Model("model.kgl")
    print(model.score("the film was a success"))

Log-probabilities are natural logarithms unless a name says log10.
"""

from __future__ import annotations

from kinglet_lm import _native
from kinglet_lm.archives import Coder
from kinglet_lm.beam import Beam, BeamState
from kinglet_lm.commands import command_path, convert, count, run, run_json, translate
from kinglet_lm.embedding import Embedding
from kinglet_lm.errors import (
    Busy,
    Cancelled,
    CommandFailed,
    DamagedFile,
    Error,
    IdOutOfRange,
    InvalidArgument,
    Mismatch,
    NotFinite,
    NotFound,
    OutOfMemory,
    ReadFailed,
    TooManySteps,
    UnknownWord,
    Unsupported,
    WrongOrder,
)
from kinglet_lm.generation import Generation
from kinglet_lm.keyboard import Keyboard, TypedWord
from kinglet_lm.model import Model
from kinglet_lm.ngrams import Ngrams, Scorer
from kinglet_lm.queries import LastWork
from kinglet_lm.scoring import Hypothesis, Score
from kinglet_lm.session import NO_PARENT, Session
from kinglet_lm.state import State
from kinglet_lm.vocabulary import Vocabulary

__version__: str = _native.lib.kinglet_version_string().decode()

__all__ = [
    "NO_PARENT",
    "Beam",
    "BeamState",
    "Busy",
    "Cancelled",
    "Coder",
    "CommandFailed",
    "DamagedFile",
    "Embedding",
    "Error",
    "Generation",
    "Hypothesis",
    "IdOutOfRange",
    "InvalidArgument",
    "Keyboard",
    "LastWork",
    "Mismatch",
    "Model",
    "Ngrams",
    "NotFinite",
    "NotFound",
    "OutOfMemory",
    "ReadFailed",
    "Score",
    "Scorer",
    "Session",
    "State",
    "TooManySteps",
    "TypedWord",
    "UnknownWord",
    "Unsupported",
    "Vocabulary",
    "WrongOrder",
    "command_path",
    "convert",
    "count",
    "run",
    "run_json",
    "translate",
]
