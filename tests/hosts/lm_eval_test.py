"""lm-evaluation-harness with a kinglet model: perplexities of `kinglet score --lines` to the last
printed digit, choices and generated text by the model's own sums.

    lm_eval_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)

KINGLET_WIKITEXT2 names a folder of wiki.test.tokens to be compared too.
"""

# ruff: noqa: E402  (a host is imported after the check that it is installed)

import json
import logging
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from host_support import PASSAGE, demo, needs, refused, versions

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
needs("lm_eval")

from lm_eval.api.instance import Instance
from lm_eval.evaluator import simple_evaluate
from lm_eval.tasks import TaskManager

import kinglet_lm
from kinglet_lm.integrations.lm_eval import TASKS, LanguageModel

CHOICES = """task: last_word
dataset_path: json
dataset_kwargs: {data_files: {test: FOLDER/choices.jsonl}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{context}}"
doc_to_choice: choices
doc_to_target: answer
metric_list: [{metric: acc}]
"""
CONTINUED = """task: continued
dataset_path: json
dataset_kwargs: {data_files: {test: FOLDER/choices.jsonl}}
output_type: generate_until
test_split: test
doc_to_text: "{{context}}"
doc_to_target: "{{choices[answer]}}"
generation_kwargs: {until: ["\\n", " ,", " ."], max_gen_toks: 3, do_sample: false}
metric_list: [{metric: exact_match}]
"""


def requests(kind, *arguments):
    return [Instance(request_type=kind, doc={}, arguments=args, idx=at)
            for at, args in enumerate(arguments)]


def perplexities(path, text, folder):
    """The harness's word perplexity is the command's ppl_per_word, digit by digit."""
    lines = [line.strip() for line in text.read_text().splitlines() if line.strip()]
    stripped = pathlib.Path(folder) / "lines.txt"
    stripped.write_text("".join(line + "\n" for line in lines))
    found = []
    for task, ends in (("kinglet_wikitext", ["--no-eos"]), ("kinglet_wikitext_ends", [])):
        printed = kinglet_lm.run_json("score", path, "--lines", *ends, "--lanes", 64, "--text",
                                   stripped)[-1]["ppl_per_word"]
        got = simple_evaluate(
            model=LanguageModel(path, lanes=64), tasks=[task], bootstrap_iters=0,
            task_manager=TaskManager(include_path=TASKS, include_defaults=False,
                                     metadata={"text": str(text)}), log_samples=False)
        ours = got["results"][task]["word_perplexity,none"]
        assert f"{ours:.9g}" == f"{printed:.9g}", (task, ours, printed)
        found.append(f"{ours:.9g}")
    return len(lines), found


def commanded(path, folder):
    """`python -m kinglet_lm.lm_eval`, with the model's path and a task alone."""
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "kinglet_lm.lm_eval", *arguments, "--metadata",
             json.dumps({"text": str(PASSAGE)}), "--output_path", f"{folder}/out"],
            capture_output=True, text=True, env={**os.environ, "HF_HOME": f"{folder}/cache"},
            cwd=folder, check=False)

    done = run("--model_args", f"path={path}", "--tasks", "kinglet_wikitext")
    assert done.returncode == 0 and "word_perplexity" in done.stdout, done.stderr[-2000:]
    missing = run("--model_args", "path=none.kgl", "--tasks", "kinglet_wikitext")
    assert missing.returncode != 0 and "none.kgl" in missing.stderr
    (results,) = pathlib.Path(folder).glob("out/**/results_*.json")
    return json.loads(results.read_text())["results"]["kinglet_wikitext"]["word_perplexity,none"]


def likelihoods(lm):
    """Sums after contexts, with the bits of the text read at once; greedy words are greedy."""
    model = lm.model
    text, rest = "the film was a", " great success"
    whole = model.score_details(text + rest, eos=False).log_probabilities
    session = model.session(empty_cache="normalised")
    for id in [lm.begin, *model.tokenize(text)]:
        session.step(id)
    best = model.vocabulary[session.top_k(1)[0][0]]
    (sum_, greedy), (_, best_greedy), (none, _), (all_, _), (line, _) = lm.loglikelihood(requests(
        "loglikelihood", (text, rest), (text, " " + best), (text, ""), ("", text + rest),
        ("the film\n", "was")))
    assert sum_ == math.fsum(whole[4:]) and not greedy and best_greedy
    assert none == 0.0 and all_ == math.fsum(whole)
    end = model.vocabulary.end
    ids = [lm.begin, *model.tokenize("the film"), end, *model.tokenize("was")]
    assert line == model.score_details(ids, bos=False, eos=False).log_probabilities[-1]
    with_end, without = lm.loglikelihood_rolling(requests(
        "loglikelihood_rolling", (text + "\n",), (text,)))
    assert with_end == model.score(text) < without == model.score(text, eos=False)


def generated(lm):
    model = lm.model
    text = "the film was"
    more, stopped, none, drawn, again = lm.generate_until(requests(
        "generate_until", (text, {"until": ["\n"], "max_gen_toks": 5}),
        (text, {"until": " a", "max_gen_toks": 50}), (text, {"until": [], "max_gen_toks": 0}),
        *[(text, {"until": [], "max_gen_toks": 8, "do_sample": True, "temperature": 1.0,
                  "seed": 3})] * 2))
    expected = []
    session = model.session(empty_cache="normalised")
    for id in [lm.begin, *model.tokenize(text)]:
        session.step(id)
    for _ in range(5):
        expected.append(session.top_k(1)[0][0])
        session.step(expected[-1])
    assert more == " " + " ".join(model.vocabulary[id] for id in expected), more
    assert none == "" and " a" not in stopped and drawn == again != more
    refused(kinglet_lm.InvalidArgument, lambda: lm.generate_until(requests(
        "generate_until", (text, {"max_gen_toks": "x"}))), "max_gen_toks")


def tasks(lm, folder):
    """Choices and continuations, by the harness's own reckoning."""
    chance = random.Random(1)
    lines = [line.split() for line in PASSAGE.read_text().splitlines() if len(line.split()) > 20]
    rows = []
    for words in lines:
        last = next(at for at in range(8, len(words)) if words[at].isalpha() and len(words[at]) > 3)
        others = chance.sample([w for w in words if w.isalpha() and w != words[last]], 3)
        rows.append({"context": " ".join(words[:last]), "choices": [*others, words[last]],
                     "answer": 3})
    (pathlib.Path(folder) / "choices.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    for name, text in (("choices", CHOICES), ("continued", CONTINUED)):
        (pathlib.Path(folder) / f"{name}.yaml").write_text(text.replace("FOLDER", folder))
    got = simple_evaluate(
        model=lm, tasks=["last_word", "continued"], bootstrap_iters=0, log_samples=False,
        task_manager=TaskManager(include_path=folder, include_defaults=False))["results"]
    right = 0
    for row in rows:
        values = [lm.model.score(f"{row['context']} {choice}", eos=False)
                  for choice in row["choices"]]
        right += values.index(max(values)) == row["answer"]
    assert math.isclose(got["last_word"]["acc,none"], right / len(rows)), (got, right)
    assert right > len(rows) / 4 and 0 <= got["continued"]["exact_match,none"] <= 1
    return f"{right} of {len(rows)} last words right"


def main():
    logging.disable(logging.WARNING)
    report = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HF_HOME"] = f"{folder}/cache"
        path = str(demo(folder))
        count, found = perplexities(path, PASSAGE, folder)
        report.append(f"{count} lines: word perplexity {found[0]}, with ends {found[1]}")
        assert f"{commanded(path, folder):.9g}" == found[0]
        lm = LanguageModel(path)
        likelihoods(lm)
        generated(lm)
        report.append(tasks(lm, folder))
        refused(kinglet_lm.NotFound, lambda: LanguageModel(f"{folder}/none.kgl"), "none.kgl")
        whole = os.environ.get("KINGLET_WIKITEXT2")
        if whole:
            count, found = perplexities(path, pathlib.Path(whole) / "wiki.test.tokens", folder)
            report.append(f"wiki.test.tokens, {count} lines: {found[0]}, with ends {found[1]}")
    print("; ".join([*report, versions("lm_eval", "datasets")]))


if __name__ == "__main__":
    main()
