"""Statistics of a run's rows that charts, comparisons and cautions need."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from cocos.evaluation.sample_rows import SampleRow, has_infra_failure
from cocos.extraction import Source
from cocos.intervals import Estimate, share
from cocos.trajectories import is_same_prompt


class Tokens(NamedTuple):
    """Tokens under three costs, of a program or as a mean over problems."""

    sampled: float  # completions
    cached: float  # completions, and what no prompt of the problem before had: a cache of prefixes
    requested: float  # completions, and the whole prompt of every request


class PlayedProgram(NamedTuple):
    """Program of a turn."""

    is_right: bool
    is_chosen: bool  # it passes the visible tests
    tokens: Tokens  # that it adds


def played_programs(row: SampleRow, carry: str) -> list[PlayedProgram]:
    """Return the programs of a trajectory with the tokens that each adds."""
    programs: list[PlayedProgram] = []
    asked: list[tuple[str, int]] = []
    transcript = 0
    for turn in row["turns"]:
        visible = turn["verdicts"][: row["num_visible_tests"]]
        prompt, completion = turn["num_prompt_tokens"], turn["num_completion_tokens"]
        if turn["is_carried"]:
            prompt = completion = 0
        new = prompt
        if carry == "transcript":  # a prompt begins with the one before and its completion
            new = max(0, prompt - transcript)
            transcript = prompt + completion
        else:
            request = turn.get("request", "")
            if any(is_same_prompt(request, prompt, *before) for before in asked):
                new = 0
            asked.append((request, prompt))
        tokens = Tokens(completion, completion + new, completion + prompt)
        is_chosen = all(verdict["status"] == "passed" for verdict in visible)
        programs.append(PlayedProgram(turn["is_right"], is_chosen, tokens))
    return programs


@dataclass
class SampleStatistics:
    """Statistics of rows. A suffix _T marks a list with one entry per turn."""

    # By task_id, whether the program of each turn of each scored sample is right.
    right_K_T: dict[str, list[list[bool]]] = field(default_factory=dict)
    # A turn was sampled again because it repeated the previous one. The rows do not contain the first
    # completion, so the generated tokens are more than theirs.
    has_resampled: bool = False
    # By task_id, tokens generated, and seconds of generation and execution, over all its samples.
    costs_K: dict[str, tuple[int, float]] = field(default_factory=dict)
    num_sampled: int = 0  # completions of the model; given ones are not
    num_truncated: int = 0  # those that reached the limit of tokens
    num_empty: int = 0  # those without a program
    num_only_thoughts: int = 0  # those that reached the limit of tokens in a thought
    num_thought_tokens: int = 0  # tokens of thoughts
    sources: Counter[Source] = field(default_factory=Counter)  # answers by how their program was found
    # By turn (from 1) and error type, then by task_id: whether the next turn is right, per wrong program.
    repaired_K: dict[tuple[int, str], dict[str, list[bool]]] = field(default_factory=dict)
    # By task_id, the hash of the problem's text and tests. Runs with other hashes were made from other data.
    problem_hashes: dict[str, int] = field(default_factory=dict)

    def add(self, row: SampleRow) -> None:
        """Add one row."""
        task_id, turns = row["task_id"], row["turns"]
        for turn in turns:
            if turn["is_carried"]:
                continue
            self.sources[turn.get("source", "answer")] += 1
            tokens, seconds = self.costs_K.get(task_id, (0, 0.0))
            seconds += turn["generation_s"] + turn["execution_s"]
            self.costs_K[task_id] = (tokens + turn["num_completion_tokens"], seconds)
            if not turn["is_given"] and turn["infra_error"] is None:
                self.num_sampled += 1
                self.num_truncated += turn["is_truncated"]
                self.num_empty += not turn["code"].strip()
                thought_tokens = turn.get("num_thought_tokens", 0)
                self.num_thought_tokens += thought_tokens
                has_thought = bool(thought_tokens or turn.get("thought"))
                self.num_only_thoughts += (
                    turn["is_truncated"] and has_thought and not turn["completion"].strip()
                )
        # The comparison excludes trajectories with an infrastructure failure, as the accuracy does.
        if not has_infra_failure(row):
            self.problem_hashes[task_id] = hash((row["text"], *row["tests"]))
            self.right_K_T.setdefault(task_id, []).append([turn["is_right"] for turn in turns])
            self.has_resampled |= any(turn["is_resampled"] for turn in turns)
            for t, (turn, following) in enumerate(pairwise(turns), start=1):
                if error_type := turn["error_type"]:
                    by_problem = self.repaired_K.setdefault((t, error_type), {})
                    by_problem.setdefault(task_id, []).append(following["is_right"])

    def repaired(self, error_type: str, turn: int | None = None) -> Estimate | None:
        """Return the share of the programs with an error that the next turn repaired; None if there are none.

        Samples and turns of one problem are correlated, so problems are the clusters of the interval.

        Args:
            turn: Turn of the programs, from 1; None: every turn.

        """
        outcomes_K: dict[str, list[bool]] = {}
        for (t, name), by_problem in self.repaired_K.items():
            if name == error_type and turn in (t, None):
                for task_id, outcomes in by_problem.items():
                    outcomes_K.setdefault(task_id, []).extend(outcomes)
        return share(list(outcomes_K.values())) if outcomes_K else None

    def outcomes(self, turn: int) -> dict[str, list[bool]]:
        """Return by task_id whether each scored sample is right at a turn, counted from 0; -1 is the last."""
        return {
            task_id: [right_T[turn] for right_T in right_K_T] for task_id, right_K_T in self.right_K_T.items()
        }
