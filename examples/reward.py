"""The executor as a reward function, for TRL's GRPOTrainer or any other trainer that takes a function.

    python examples/reward.py

A row of the data set has the columns `prompt` and `test_list`, which TRL hands to the function as lists.
The reward is the share of a program's tests that pass. Programs are untrusted: they run in the sandbox.

    trainer = GRPOTrainer("Qwen/Qwen2.5-Coder-0.5B-Instruct", reward_funcs=share_passed, train_dataset=rows)
"""

from functools import cache

from cocos.executor import Executor, Program
from cocos.extraction import extract_code


@cache
def executor() -> Executor:
    """Return the workers, which start at the first call and are kept."""
    return Executor(num_workers=2)


def share_passed(completions: list[str], test_list: list[list[str]], **columns: object) -> list[float | None]:
    """Return the share of passed tests of each completion; None, which TRL leaves out, after an outage."""
    programs = [
        Program(extract_code(text), tuple(tests)) for text, tests in zip(completions, test_list, strict=True)
    ]
    results = executor().run(programs)
    return [
        None if result.num_passed is None else result.num_passed / len(result.verdicts) for result in results
    ]


if __name__ == "__main__":
    tests = ["assert double(2) == 4", "assert double(0) == 0"]
    answers = ["def double(x):\n    return 2 * x", "def double(x):\n    return x", "I cannot help."]
    print(share_passed(answers, [tests] * len(answers)))
    executor().close()
