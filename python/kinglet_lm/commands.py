"""The bundled command: convert, count, translate, and all other subcommands."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Callable, Iterable
from typing import Any, Union

from kinglet_lm.errors import CommandFailed, NotFound

Path = Union[str, "os.PathLike[str]"]
Progress = Callable[[str], None]


def command_path() -> str:
    """The command's path: KINGLET_COMMAND, or else this environment's, or else from PATH."""
    chosen = os.environ.get("KINGLET_COMMAND")
    if chosen:
        return chosen
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", os.name + "_user"),
        os.path.dirname(sys.executable),
        os.path.join(package, "bin"),
    ]
    found = shutil.which("kinglet", path=os.pathsep.join(folders)) or shutil.which("kinglet")
    if found is None:
        raise NotFound(
            f"kinglet: command: expected it in {', '.join(folders)} or the path, found none; "
            "install the package or name the file in KINGLET_COMMAND")
    return found


def run(
    *arguments: str | os.PathLike[str] | int | float,
    input: str | None = None,
    progress: Progress | None = None,
) -> str:
    """Runs the command and returns its standard output.

    `input` is the standard input; `progress` is called with each message of `--progress json`.
    Raises CommandFailed with the command's error message. Ctrl-C ends the command too.
    """
    words = [command_path(), *map(_word, arguments)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as given:
        if input is not None:
            given.write(input.encode("utf-8", "surrogateescape"))
            given.seek(0)
        process = subprocess.Popen(words, stdin=given if input is not None else subprocess.DEVNULL,
                                   stdout=out, stderr=subprocess.PIPE, text=True,
                                   encoding="utf-8", errors="surrogateescape")
        messages: list[str] = []
        try:
            assert process.stderr is not None
            for line in process.stderr:
                message = _progress(line)
                if message is None:
                    messages.append(line)
                elif progress is not None:
                    progress(message)
            status = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        if status == -signal.SIGINT and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        if status != 0:
            lines = "".join(messages).strip().split("\n")
            raise CommandFailed(lines[-1] or f"kinglet: ended with {status}",
                                status, "exit status")
        out.seek(0)
        return out.read().decode("utf-8", "surrogateescape")


def _progress(line: str) -> str | None:
    if not line.startswith('{"progress":'):
        return None
    try:
        return str(json.loads(line)["progress"])
    except ValueError:
        return None


def run_json(
    *arguments: str | os.PathLike[str] | int | float,
    input: str | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """`run` with `--json`: the objects that the command printed."""
    output = run(*arguments[:1], "--json", *arguments[1:], input=input, progress=progress)
    # splitlines would also split at U+2028 and others inside a JSON string.
    return [json.loads(line) for line in output.split("\n") if line]


def options_of(options: dict[str, Any]) -> list[str]:
    """keyword=value as `--keyword=value`; True is a flag, a list repeats the option."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        words += [f"{option}={_word(one)}" for one in values]
    return words


def _word(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, (os.PathLike, bytes)) else str(value)


def convert(
    checkpoint: Path, output: Path, *, progress: Progress | None = None, **options: Any
) -> dict[str, Any]:
    """Makes a model file of a checkpoint: `kinglet convert`, with its options as keywords.

    `convert("run/", "m.kgl", vocab="vocab.txt", bits=9, calibrate="text.txt")` returns the
    summary that `--json` prints; `progress` is called with each message.
    """
    words = ["convert", *options_of({"output": output, "progress": "json", **options})]
    return run_json(*words, "--", checkpoint, progress=progress)[0]


def count(model: Path, *, progress: Progress | None = None, **options: Any) -> dict[str, Any]:
    """Parameters and operations of a token: `kinglet count`, with its options as keywords.

    `progress` is called with each message: once a second while tokens are run.
    """
    words = ["count", *options_of({"progress": "json", **options})]
    return run_json(*words, "--", model, progress=progress)[0]


def translate(
    model: Path, sentences: Iterable[str], **options: Any
) -> list[dict[str, Any]]:
    """Translates sentences: `kinglet translate`, with its options (`beam=5`) as keywords."""
    text = "".join(sentence.replace("\n", " ") + "\n" for sentence in sentences)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        file.write(text)
        file.flush()
        words = ["translate", *options_of({"text": file.name, **options})]
        return run_json(*words, "--", model)
