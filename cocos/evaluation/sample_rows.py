"""The schema of samples.jsonl, and the conversion of trajectories to rows and back.

Every reader and writer of rows goes through this module. It does not know where rows are stored.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, cast

from cocos.executor import ExecutionResult, Status, Verdict
from cocos.extraction import Source
from cocos.files.json_lines import DataError, Place
from cocos.generation import Completion
from cocos.generation.tool_calls import call_reason
from cocos.metrics import first_error
from cocos.problems import Problem
from cocos.rewards import turn_reward
from cocos.trajectories import Key, Step, Trajectory, Turn

SCHEMA_VERSION = 3


class ExtraVerdictKeys(TypedDict, total=False):
    """Keys of a verdict that only some have."""

    # Line at which the program ended before any test had a result, with its source; "" if it is not known.
    # All tests of the program then have the same verdict.
    ended_at: str


class VerdictRow(ExtraVerdictKeys):
    """Outcome of one test."""

    # `passed`, `failed` (the assertion is false), `error`, `timeout`, `memory`, or `not_run` (an earlier
    # test ended the process).
    status: str
    error_type: str | None  # class name of the exception; null if there was none
    message: str | None  # text of the exception, truncated; null if there was none
    expected: str | None  # `repr` of the value that a false comparison expects; null for every other outcome
    actual: str | None  # `repr` of the value that the program returned instead; null for every other outcome
    duration_s: float  # wall time of this test in seconds; 0 if it did not finish
    # Reason why the status depends on the process that ran the program, which could have forged it; null if
    # it does not.
    in_child_reason: str | None
    relation: str  # what does not hold between `actual` and `expected`: "==", "<", ...
    is_marked_by_program: bool  # the program has caused that reason, so a pass does not count as right


class ExtraTurnKeys(TypedDict, total=False):
    """Keys of a turn that only some runs have."""

    # What the turn's prompt adds to the transcript, feedback included. Carried turns and old rows lack it.
    request: str
    # Where the program was found in the completion, or why there is none (`cocos.extraction.Source`); a row
    # lacks it if the program is the whole answer, which it nearly always is for trained models.
    source: Source
    thought: str  # what a reasoning model wrote before its answer, with its tags
    # Tokens of the thought, of `num_completion_tokens`; an endpoint may not count them.
    num_thought_tokens: int
    has_replaced: bool  # U+FFFD replaces lone surrogates in the completion; only if it is true
    api_key: int  # number of the API key that served the request, from 1 (`--generator api`)
    node: str  # node of the agent's graph that made the turn (`--agent`)
    temperature: float  # sampling temperature of the completion (`--agent`)
    reason: str  # why the model calls run_code, in its own words (`--agent tools`)


class TurnRow(ExtraTurnKeys):
    """One turn."""

    feedback: str  # feedback in this turn's prompt; "" if there is none
    completion: str  # text of the completion, without its thought
    code: str  # the program extracted from the completion; "" if it contains none
    reward: float | None  # share of tests passed, in [0, 1]; null after an infrastructure failure
    # Every test passed, hidden ones too, and the program made no verdict one that it could have forged.
    is_right: bool
    is_given: bool  # the completion was supplied with `--answers`, not sampled
    # The trajectory had already ended (`--early_stop`); the turn repeats the last completion.
    is_carried: bool
    is_resampled: bool  # the first completion repeated the previous program, so a second one was sampled
    # Error type of the first test that did not pass: an exception's name, `Timeout` or `Memory`; null if
    # all passed and after an infrastructure failure.
    error_type: str | None
    verdicts: list[VerdictRow]  # one per entry of `tests`; empty after an infrastructure failure
    infra_error: str | None  # reason why the executor or the endpoint failed; null if neither did
    isolation: str  # isolation level under which the program ran
    num_prompt_tokens: int  # length of the prompt in tokens, with all earlier turns
    num_completion_tokens: int  # length of the completion in tokens
    is_truncated: bool  # the completion reached the length limit before its end
    generation_s: float  # time of the request, or of the batch divided by its number of prompts, in seconds
    execution_s: float  # wall time of the program and its tests, in seconds


class SampleRow(TypedDict):
    """One trajectory. It also has the conditions of the run (`cocos.assembly.rules.conditions`) as keys."""

    schema_version: int  # version of this schema: 3
    task_id: str  # identifier of the problem
    sample: int  # index among the independent trajectories of the problem, from 0
    text: str  # task description of the problem
    tests: list[str]  # source of every scored test, the visible ones first
    num_visible_tests: int  # number of tests that prompts and feedback may quote, the first ones of `tests`
    turns: list[TurnRow]  # turns 1, 2, ... in order


def trajectory_to_row(trajectory: Trajectory, **conditions: Any) -> SampleRow:
    """Return a trajectory as a row of JSON values.

    Args:
        conditions: Options that change what is measured, from `cocos.assembly.rules.conditions`. Only
            rows with equal ones can be compared.

    """
    row = {
        "schema_version": SCHEMA_VERSION,
        "task_id": trajectory.problem.task_id,
        "sample": trajectory.sample,
        **conditions,
        "text": trajectory.problem.text,
        "tests": list(trajectory.problem.scored_tests),
        "num_visible_tests": len(trajectory.problem.test_list),
        "turns": [_turn_to_row(turn) for turn in trajectory.turns],
    }
    return cast(SampleRow, row)


def trajectory_from_row(row: SampleRow, problem: Problem) -> Trajectory:
    """Return the trajectory of a row. It has no token ids, because a row contains none.

    `trajectory_to_row` converts it to the same row again.
    """
    return Trajectory(problem, row["sample"], tuple(turn_from_row(turn) for turn in row["turns"]))


def played_problem(row: SampleRow, problems: Mapping[str, Problem], folder: Path) -> Problem:
    """Return the problem of a row with the tests visible that were visible then.

    Raises:
        DataError: The row's problem is missing, or has another text or other tests.

    """
    problem = problems.get(row["task_id"])
    if problem is None or (problem.text, [*problem.scored_tests]) != (row["text"], row["tests"]):
        raise DataError(
            f"problem {row['task_id']!r} of {folder} is not in the file of problems, or has another text or "
            "other tests there; give the file with which the run was made"
        )
    tests, count = problem.scored_tests, row["num_visible_tests"]
    return replace(problem, test_list=tests[:count], hidden_test_list=tests[count:])


def problem_of_row(row: SampleRow) -> Problem:
    """Return the problem of a row as far as the row has it: text and tests."""
    tests, count = tuple(row["tests"]), row["num_visible_tests"]
    return Problem(row["task_id"], row["text"], tests[:count], hidden_test_list=tests[count:])


def conditions_of_row(row: SampleRow) -> dict[str, Any]:
    """Return the conditions of the run that the row records."""
    return {name: value for name, value in row.items() if name not in SampleRow.__annotations__}


def validate_row(value: object, place: Place) -> SampleRow:
    """Return a parsed line of samples.jsonl after checking its version and its keys.

    Raises:
        DataError: The value is not a row, or it has another schema version.

    """
    if isinstance(value, dict) and {"task_id", "turns"} <= value.keys():
        if "schema_version" not in value:
            raise DataError(
                f"{place}: the row was written by an earlier version (it has no schema_version); score it "
                f"again with --answers {place.path} and another --output_dir"
            )
        if value["schema_version"] != SCHEMA_VERSION:
            raise DataError(
                f"{place}: the row has schema_version {value['schema_version']!r}, expected "
                f"{SCHEMA_VERSION}; score it again with --answers {place.path} and another --output_dir"
            )
    if not _is_row(value):
        raise DataError(
            f"{place}: not a row of samples.jsonl; repair or remove the line, or evaluate again into another "
            "--output_dir"
        )
    return cast(SampleRow, value)


def row_key(row: SampleRow) -> Key:
    """Return the key of the row's trajectory: (task_id, sample)."""
    return row["task_id"], row["sample"]


def has_infra_failure(row: SampleRow) -> bool:
    """Return whether the executor or the endpoint failed in one of the turns. Such a row has no score."""
    return any(turn["infra_error"] is not None for turn in row["turns"])


def _is_row(value: object) -> bool:
    if not isinstance(value, dict) or not SampleRow.__required_keys__ <= value.keys():
        return False
    if not isinstance(value["task_id"], str) or not isinstance(value["sample"], int):
        return False
    turns = value["turns"]
    return isinstance(turns, list) and all(
        isinstance(turn, dict) and TurnRow.__required_keys__ <= turn.keys() for turn in turns
    )


def _turn_to_row(turn: Turn) -> TurnRow:
    completion, result = turn.completion, turn.result
    num_prompt_tokens, num_completion_tokens = completion.num_prompt_tokens, completion.num_completion_tokens
    # An endpoint returns token counts; of the other generators the ids are counted.
    if num_prompt_tokens is None:
        num_prompt_tokens = len(turn.prompt_ids)
    if num_completion_tokens is None:
        num_completion_tokens = len(completion.token_ids)
    row: TurnRow = {
        "feedback": turn.feedback,
        "completion": completion.text,
        "code": turn.code,
        "reward": turn_reward(result, reward_in_child=True),
        "is_right": result.is_right,
        "is_given": turn.is_given,
        "is_carried": turn.is_carried,
        "is_resampled": turn.is_resampled,
        "error_type": first_error(result),
        "verdicts": [_verdict_to_row(verdict) for verdict in result.verdicts],
        "infra_error": result.infra_error,
        "isolation": result.isolation,
        "num_prompt_tokens": num_prompt_tokens,
        "num_completion_tokens": num_completion_tokens,
        "is_truncated": completion.is_truncated,
        "generation_s": round(completion.duration_s, 4),
        "execution_s": round(result.duration_s, 4),
    }
    only_some_runs = {
        "request": turn.request,
        "source": turn.source if turn.source != "answer" else None,
        "thought": completion.thought,
        "num_thought_tokens": completion.num_thought_tokens,
        "has_replaced": completion.has_replaced,
        "api_key": completion.key,
    }
    row |= {key: value for key, value in only_some_runs.items() if value}  # type: ignore[typeddict-item]
    if turn.step is not None:
        row["node"], row["temperature"] = turn.step.node, turn.step.temperature
        if reason := call_reason(completion.text):
            row["reason"] = reason
    return row


def _verdict_to_row(verdict: Verdict) -> VerdictRow:
    row = {name: getattr(verdict, name) for name in VerdictRow.__annotations__}
    if verdict.ended_at is None:
        del row["ended_at"]
    return cast(VerdictRow, row)


def turn_from_row(row: TurnRow) -> Turn:
    """Return the turn of a row, without token ids."""
    verdicts = [Verdict(**verdict | {"status": Status(verdict["status"])}) for verdict in row["verdicts"]]  # type: ignore[arg-type]
    return Turn(
        prompt_ids=(),
        completion=Completion(
            token_ids=(),
            text=row["completion"],
            is_truncated=row["is_truncated"],
            duration_s=row["generation_s"],
            num_prompt_tokens=row["num_prompt_tokens"],
            num_completion_tokens=row["num_completion_tokens"],
            thought=row.get("thought", ""),
            num_thought_tokens=row.get("num_thought_tokens"),
            has_replaced=row.get("has_replaced", False),
            key=row.get("api_key"),
        ),
        code=row["code"],
        source=row.get("source"),
        result=ExecutionResult(
            verdicts=tuple(verdicts),
            infra_error=row["infra_error"],
            isolation=row["isolation"],
            duration_s=row["execution_s"],
        ),
        feedback=row["feedback"],
        request=row.get("request", ""),
        is_given=row["is_given"],
        is_resampled=row["is_resampled"],
        is_carried=row["is_carried"],
        step=Step(row["node"], row["temperature"]) if "node" in row else None,
    )
