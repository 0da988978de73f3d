"""Options of what happens between the turns, the same in training and in evaluation, and of repair agents.

Tests are of three classes: the prompt shows the first `--prompt_tests` visible tests (`PromptOptions`),
feedback and early stop use all visible tests, and hidden tests are scored only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from cocos.config.option import option
from cocos.config.shared_options import require_not_negative, require_positive
from cocos.problems import Problem
from cocos.prompts import Feedback
from cocos.trajectories import OnRepeat, Rules

CONDITIONS = ("feedback", "feedback_failures", "early_stop", "on_repeat", "visible_tests", "answers")


@dataclass
class TurnOptions:
    """Options of what happens between the turns."""

    group: ClassVar[str] = "between the turns"

    visible_tests: int | None = option(
        default=None,
        help="Hide all but the first N tests of a problem: hidden tests are scored, but neither shown nor "
        "told of. By default those that the file hides.",
    )
    feedback: Feedback = option(
        default="none",
        help="What the next prompt tells of the program. `verdict`: how many visible tests pass. `error`: "
        "also the first that fail, with expected and actual value. Reports separate these runs, as the "
        "tests are an oracle.",
    )
    feedback_failures: int = option(default=1, help="Failing tests that --feedback error quotes, 1 to 3.")
    feedback_chars: int = option(
        default=300,
        help="Longest quotation of a test, and of its error, in characters.",
    )
    early_stop: bool = option(
        default=False,
        help="End a trajectory when its program passes the visible tests (an oracle); it counts for the "
        "remaining turns.",
    )
    on_repeat: OnRepeat = option(
        default="keep",
        help="If a program equals the previous one: `keep` it, `resample` the turn once (not in training), "
        "or `tell` so in the next prompt.",
    )
    answers: list[str] = option(
        default_factory=list,
        help="Sources of given answers for the first turns: `references`, `buggy` (of the problems, a turn "
        "each), or a samples.jsonl or other file of answers. In training, each row of the file is a "
        "prompt.",
    )

    def __post_init__(self) -> None:
        if not 1 <= self.feedback_failures <= 3:
            raise ValueError(f"--feedback_failures is {self.feedback_failures}; give 1, 2 or 3")
        if self.feedback_failures > 1 and not self.tells_errors:
            raise ValueError("--feedback_failures needs --feedback error")
        if self.feedback_chars < 20:
            raise ValueError(f"--feedback_chars is {self.feedback_chars}; give 20 or more")
        require_not_negative(self, "visible_tests")
        if self.visible_tests == 0 and (self.feedback != "none" or self.early_stop):
            raise ValueError(
                "--feedback and --early_stop need visible tests, but --visible_tests is 0; give 1 or more, "
                "and --prompt_tests 0 to keep them out of the prompt"
            )

    @property
    def tells_errors(self) -> bool:
        """Return True if prompts quote failing tests."""
        return self.feedback == "error"

    def rules(self, temperatures: Sequence[float], seed: int | None = None) -> Rules:
        """Return the rules between the turns of a trajectory; see `Rules` for the arguments."""
        return Rules(
            feedback=self.feedback,
            feedback_failures=self.feedback_failures,
            feedback_chars=self.feedback_chars,
            early_stop=self.early_stop,
            on_repeat=self.on_repeat,
            temperatures=tuple(temperatures),
            seed=seed,
        )

    def hide_tests(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return the problems with at most `--visible_tests` visible tests; the others become hidden."""
        n = self.visible_tests
        if n is None:
            return list(problems)
        return [
            replace(p, test_list=p.test_list[:n], hidden_test_list=p.test_list[n:] + p.hidden_test_list)
            for p in problems
        ]


Agent = Literal["none", "reflect", "react", "tools"]
# Attempt i of reflect is sampled at 0.25 + 0.2 i, at most 0.9: what failed is not written again.
AGENT_TEMPERATURES: dict[Agent, list[float]] = {
    "none": [0.0],
    "reflect": [0.0, 0.45, 0.65, 0.85, 0.9],
    "react": [0.0],
    "tools": [0.7, 0.5, 0.3],
}


@dataclass
class AgentOptions:
    """Options of repair agents."""

    group: ClassVar[str] = "agents"

    agent: Agent = option(
        default="none",
        help="What plays a trajectory: the turn loop, or a repair agent that sees test results "
        "(docs/agents.md) in at most --num_turns programs.",
    )
    max_repeats: int = option(default=3, help="Repeated programs, failures or calls that end an agent.")
    system_prompt: str | None = option(
        default=None, help="File with the system message of a chat. By default that of the agent, if any."
    )

    def __post_init__(self) -> None:
        require_positive(self, "max_repeats")
        if self.system_prompt is not None and not Path(self.system_prompt).is_file():
            raise ValueError(f"--system_prompt {self.system_prompt}: no such file")

    @property
    def system_text(self) -> str | None:
        """Text of the file `--system_prompt`; None if it is not given."""
        if self.system_prompt is None:
            return None
        try:
            return Path(self.system_prompt).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"--system_prompt {self.system_prompt}: not readable ({error})") from None
