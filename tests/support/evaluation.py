"""Evaluations for tests, in the process of the caller."""

import json
from pathlib import Path

from cocos.assembly.data import plan_trajectories
from cocos.assembly.prompts import prompt_protocol
from cocos.config.eval_config import EvalConfig
from cocos.evaluation.generator import open_generator
from cocos.evaluation.resumption import open_run_executor
from cocos.evaluation.run import evaluate, merge_and_summarize, start_or_resume
from cocos.generation.scripted import ScriptedGenerator
from cocos.problems import Problem
from cocos.prompts import answer


class Drawing(ScriptedGenerator):
    """Answers "Write a function that adds N." with a right, a wrong or a broken program, chosen by the seed."""

    def __init__(self):
        super().__init__(lambda prompt: "")

    def generate(self, prompts, temperature, seeds=None):
        texts = []
        for prompt, seed in zip(prompts, seeds, strict=True):
            n = "".join(map(chr, prompt)).split("adds ")[1].split(".")[0]
            programs = [f"x + {n}", f"x - {n}", "x +", f"x + {n} if x else 0"]
            texts.append(answer(f"def add(x):\n    return {programs[seed % 4]}"))
        return [self.quote(text) for text in texts]


def adding(count: int) -> list[Problem]:
    """Return problems for `Drawing`."""
    return [
        Problem(
            str(n), f"Write a function that adds {n}.", (f"assert add(1) == {n + 1}", f"assert add(0) == {n}")
        )
        for n in range(1, count + 1)
    ]


def evaluated(answering=None, /, **options) -> dict:
    """Do what test.py does, without the report, and return the metrics."""
    args = EvalConfig(**{"executor_workers": 1, **options})
    protocol = prompt_protocol(args)
    trajectories = plan_trajectories(args, protocol)
    with (
        open_run_executor(args, trajectories) as executor,
        start_or_resume(args, trajectories, executor) as run,
    ):
        evaluate(run, answering or open_generator(args), protocol)
        return merge_and_summarize(run).metrics


def rows(folder: Path) -> list[dict]:
    """Return the rows of a run without the timings."""
    found = [json.loads(line) for line in (Path(folder) / "samples.jsonl").read_text().split("\n")[:-1]]
    for row in found:
        for turn in row["turns"]:
            del turn["generation_s"], turn["execution_s"]
            for verdict in turn["verdicts"]:
                del verdict["duration_s"]
    return found
