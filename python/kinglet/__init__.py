"""kinglet: probabilities of the next word from compressed language models.

    import kinglet
    model = kinglet.Model("model.kgl")
    print(model.score("the film was a success"))

Log-probabilities are natural logarithms unless a name says log10.
"""

from __future__ import annotations

from kinglet import _native
from kinglet.archives import Coder
from kinglet.beam import Beam, BeamState
from kinglet.commands import command_path, convert, count, run, run_json, translate
from kinglet.embedding import Embedding
from kinglet.errors import (
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
from kinglet.generation import Generation
from kinglet.keyboard import Keyboard, TypedWord
from kinglet.model import Model
from kinglet.queries import LastWork
from kinglet.scoring import Hypothesis, Score
from kinglet.session import NO_PARENT, Session
from kinglet.state import State
from kinglet.vocabulary import Vocabulary

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
    "NotFinite",
    "NotFound",
    "OutOfMemory",
    "ReadFailed",
    "Score",
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
