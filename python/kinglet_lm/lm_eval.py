"""lm-evaluation-harness's command with kinglet's model and tasks added.

    python -m kinglet_lm.lm_eval --model_args path=m.kgl --tasks kinglet_wikitext \\
        --metadata '{"text": "wiki.test.tokens"}'

All options are the harness's. `--model kinglet` and `--include_path` of kinglet's tasks are added
where they are not given.
"""

from __future__ import annotations

import os
import sys


def arguments(given: list[str], tasks: str) -> list[str]:
    """The harness's arguments for those of this command."""
    if not given or given[0] in ("ls", "validate", "-h", "--help"):
        return given
    rest = given[1:] if given[0] == "run" else given
    names = {argument.split("=")[0] for argument in rest}
    added: list[str] = []
    if not names & {"--model", "-M"}:
        added += ["--model", "kinglet"]
    if "--include_path" not in names:
        added += ["--include_path", tasks]
    return ["run", *added, *rest]


def main() -> None:
    """Runs the harness's command."""
    from kinglet_lm.integrations import lm_eval
    from kinglet_lm.integrations._host import host

    # kinglet's tasks fetch nothing; tasks of the harness that do need 0 here.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    sys.argv[1:] = arguments(sys.argv[1:], lm_eval.TASKS)
    host("lm_eval.__main__", "lm-eval", "0.4.13", "cli_evaluate").cli_evaluate()


if __name__ == "__main__":
    main()
