"""Statistics of a run's rows that charts, comparisons and cautions need."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean as mean
from typing import NamedTuple

from cocos.carry import Carry, PromptSize
from cocos.evaluation.sample_rows import SampleRow, TurnRow, has_infra_failure
from cocos.extraction import Source
from cocos.intervals import Estimate, share
from cocos.metrics import best_at_k, pass_at_k


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


def played_programs(row: SampleRow, carry: Carry) -> list[PlayedProgram]:
    """Return the programs of a trajectory with the tokens that each adds."""
    prompts = [
        PromptSize(turn.get("request", ""), turn["num_prompt_tokens"], turn["num_completion_tokens"])
        if not turn["is_carried"]
        else PromptSize("", 0)
        for turn in row["turns"]
    ]
    programs: list[PlayedProgram] = []
    for turn, new, (_, prompt, completion) in zip(
        row["turns"], carry.new_tokens(prompts), prompts, strict=True
    ):
        visible = turn["verdicts"][: row["num_visible_tests"]]
        tokens = Tokens(completion, completion + new, completion + prompt)
        is_chosen = all(verdict["status"] == "passed" for verdict in visible)
        programs.append(PlayedProgram(turn["is_right"], is_chosen, tokens))
    return programs


class Point(NamedTuple):
    """Accuracy and tokens of a number of programs per problem, where the visible tests choose."""

    programs: int  # turns, or samples
    right_P: tuple[float, ...]  # share of right choices of each problem
    tokens: Tokens

    @property
    def accuracy(self) -> float:
        """Mean over problems."""
        return mean(self.right_P)


def point_of_turns(programs_P_K: Sequence[Sequence[Sequence[PlayedProgram]]], turns: int) -> Point:
    """Return the point of the first turns: per trajectory, up to the first that passes the visible tests."""
    cut_P_K = [
        [row[: next((t for t, p in enumerate(row[:turns], 1) if p.is_chosen), turns)] for row in rows]
        for rows in programs_P_K
    ]
    right_P = tuple(mean(row[-1].is_right for row in rows) for rows in cut_P_K)
    sums = ((_mean_tokens(rows, len(rows))) for rows in cut_P_K)
    return Point(turns, right_P, Tokens(*map(mean, zip(*sums, strict=True))))


def point_of_samples(programs_P_K: Sequence[Sequence[Sequence[PlayedProgram]]], k: int) -> Point:
    """Return the expected point of k samples of turn 1, drawn until one passes the visible tests."""
    right_P, tokens_P = [], []
    for rows in programs_P_K:
        firsts = [row[0] for row in rows]
        n, chosen, right = len(firsts), sum(p.is_chosen for p in firsts), sum(p.is_right for p in firsts)
        right_P.append(best_at_k(n, chosen, right, k))
        # A further one is drawn if none of those before passes.
        draws = 1 + sum(1 - pass_at_k(n, chosen, j) for j in range(1, k))
        sampled, _, requested = _mean_tokens([firsts], n)
        prompt = requested - sampled  # once, if it is cached
        tokens_P.append(Tokens(draws * sampled, draws * sampled + prompt, draws * requested))
    return Point(k, tuple(right_P), Tokens(*map(mean, zip(*tokens_P, strict=True))))


def _mean_tokens(rows: Sequence[Sequence[PlayedProgram]], count: float) -> Tokens:
    columns = zip(*(program.tokens for row in rows for program in row), strict=True)
    return Tokens(*(sum(column) / count for column in columns))


class SampleStatistics:
    """Statistics of rows. A suffix _T marks a list with one entry per turn.

    Attributes:
        sources: Answers by how their program was found.
        num_sampled: Completions of the model; given ones are not.
        num_truncated: Those that reached the limit of tokens.
        num_empty: Those without a program.
        num_only_thoughts: Those that reached the limit of tokens in a thought.
        num_thought_tokens: Tokens of thoughts.
        costs_K: By task_id, tokens generated, and seconds of generation and execution, over all its samples.
        right_K_T: By task_id, whether the program of each turn of each scored sample is right.
        problem_hashes: By task_id, the hash of the problem's text and tests. Runs with other hashes were made
            from other data.
        has_resampled: A turn was sampled again because it repeated the previous one. The rows do not contain
            the first completion, so the generated tokens are more than theirs.

    """

    def __init__(self, rows: Sequence[SampleRow]) -> None:
        played = [(row["task_id"], t) for row in rows for t in row["turns"] if not t["is_carried"]]
        self.sources: Counter[Source] = Counter(turn.get("source", "answer") for _, turn in played)
        sampled = [turn for _, turn in played if not turn["is_given"] and turn["infra_error"] is None]
        self.num_sampled = len(sampled)
        self.num_truncated = sum(turn["is_truncated"] for turn in sampled)
        self.num_empty = sum(not turn["code"].strip() for turn in sampled)
        self.num_only_thoughts = sum(map(_is_only_thought, sampled))
        self.num_thought_tokens = sum(turn.get("num_thought_tokens", 0) for turn in sampled)
        self.costs_K: dict[str, tuple[int, float]] = {}
        for task_id, turn in played:
            tokens, seconds = self.costs_K.get(task_id, (0, 0.0))
            seconds += turn["generation_s"] + turn["execution_s"]
            self.costs_K[task_id] = (tokens + turn["num_completion_tokens"], seconds)
        # The comparison excludes trajectories with an infrastructure failure, as the accuracy does.
        self._scored = [row for row in rows if not has_infra_failure(row)]
        self.right_K_T: dict[str, list[list[bool]]] = {}
        for row in self._scored:
            self.right_K_T.setdefault(row["task_id"], []).append([turn["is_right"] for turn in row["turns"]])
        self.problem_hashes = {row["task_id"]: hash((row["text"], *row["tests"])) for row in self._scored}
        self.has_resampled = any(turn["is_resampled"] for row in self._scored for turn in row["turns"])

    def repaired(self, error_type: str) -> Estimate | None:
        """Return the share of the programs with an error that the next turn repaired; None if there are none.

        Samples and turns of one problem are correlated, so problems are the clusters of the interval.
        """
        outcomes_K: dict[str, list[bool]] = {}
        for row in self._scored:
            for turn, following in pairwise(row["turns"]):
                if turn["error_type"] == error_type:
                    outcomes_K.setdefault(row["task_id"], []).append(following["is_right"])
        return share(list(outcomes_K.values())) if outcomes_K else None

    def outcomes(self, turn: int) -> dict[str, list[bool]]:
        """Return by task_id whether each scored sample is right at a turn, counted from 0; -1 is the last."""
        return {
            task_id: [right_T[turn] for right_T in right_K_T] for task_id, right_K_T in self.right_K_T.items()
        }


def _is_only_thought(turn: TurnRow) -> bool:
    has_thought = bool(turn.get("num_thought_tokens") or turn.get("thought"))
    return turn["is_truncated"] and has_thought and not turn["completion"].strip()
