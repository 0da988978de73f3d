"""Boost rows: made from two programs, saved and loaded as JSON, and converted to token ids and labels.

A row is a transcript and the answer to learn after it. A file is a JSON list, as in the README of the
released code, or JSON lines of `{"prompt": "...[BEGIN]", "completion": "...\\n[DONE]"}`. Does not know
models or trainers.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cocos.carry import TRANSCRIPT, Carry, Shown
from cocos.dataprep.row_hints import missing_fields
from cocos.files.bundled import command_line
from cocos.files.durable import write_atomically
from cocos.files.json_lines import DataError, read_rows
from cocos.problems import Problem
from cocos.prompts import (
    AUXILIARY_INSTRUCTION,
    BEGIN,
    CORRECT,
    DONE,
    NO_FAILURES,
    Failures,
    PromptProtocol,
    answer,
)

TokenizedRow = dict[str, list[int]]  # input_ids and labels, equally long
_TO_MAKE_ROWS = ("--model_name_or_path", "MODEL", "--output", "rows.jsonl", "--train_data")


@dataclass(frozen=True)
class BoostRow:
    """A transcript up to the start of an answer, and the answer through [DONE]."""

    prompt: str
    completion: str


def make_rows(
    problem: Problem,
    attempt: str,
    correction: str,
    protocol: PromptProtocol,
    feedback: str = "",
    failed: Failures = NO_FAILURES,
    carry: Carry = TRANSCRIPT,
) -> list[BoostRow]:
    """Return the rows of a problem, one per turn: a ratio of 1 : 1 (CoCoS, arXiv 2505.23060).

    Args:
        attempt: The model's own first program. It teaches the format and keeps the model close to its
            own distribution.
        correction: A program that passes the tests; equal to `attempt` if that is right.
        feedback: Feedback on the attempt, in a transcript.
        failed: Tests that the prompt of turn 2 adds to turn 1's, without a transcript.
        carry: What the prompt of turn 2 has of turn 1.

    """
    first = protocol.first_turn(problem)
    second = carry.message(protocol, Shown(problem, failed), 2, feedback, is_closed=True)
    if not carry.starts_anew:
        second = first + answer(attempt) + second
    return [BoostRow(first, answer(attempt)), BoostRow(second, answer(correction))]


def save_rows(rows: Iterable[BoostRow], path: str | Path) -> None:
    """Write rows as JSON lines, or as a JSON list if the path ends in `.json`.

    As in the released README, the prompts of the list end with the marker, without the newline after it.
    """
    if Path(path).suffix == ".json":
        listed = [asdict(row) | {"prompt": row.prompt.removesuffix("\n")} for row in rows]
        text = json.dumps(listed, ensure_ascii=False, indent=1)
    else:
        text = "\n".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text + "\n")


def load_rows(path: str | Path) -> list[BoostRow]:
    """Read rows from a JSON list or JSON lines.

    A prompt that ends with a marker gets a newline after it, as in the turn loop.

    Raises:
        DataError: The file or a row is malformed; the message names file and line.

    """
    rows = []
    for place, row in read_rows(Path(path)):
        if not isinstance(row, dict) or not all(
            isinstance(row.get(name), str) for name in ("prompt", "completion")
        ):
            is_problem = isinstance(row, dict) and not missing_fields(row)
            command = command_line("boost-data", *_TO_MAKE_ROWS, path)
            mistake = f"; this is a problem, from which rows are made: {command}" * is_problem
            raise DataError(
                f"{place}: expected an object with the strings 'prompt' and 'completion'{mistake}"
            )
        if not row["completion"].strip():
            raise DataError(f"{place}: field 'completion' is empty; remove the row")
        prompt = row["prompt"].lstrip()
        if prompt.endswith((BEGIN, CORRECT)):
            prompt += "\n"
        rows.append(BoostRow(prompt, row["completion"]))
    if not rows:
        raise DataError(f"{path}: the file has no rows; make some with cocos boost-data")
    return rows


def tokenize(
    row: BoostRow, encode: Callable[[str, bool], Sequence[int]], max_length: int | None = None
) -> TokenizedRow:
    """Return a row's token ids and labels; labels are -100 on the prompt.

    The prompt is encoded in the same pieces as in the turn loop, so that training sees the same ids as
    generation. Labels follow from the prompt's length, because a program may contain a marker.

    Args:
        encode: Maps (text, is_start) to token ids, as `cocos.generation.tokenizer.encode` does.
        max_length: Longest row in tokens; None: no limit.

    Raises:
        DataError: The row is too long, or its completion has no tokens.

    """
    prompt_ids: list[int] = []
    for piece in filter(None, _pieces(row.prompt)):
        prompt_ids += encode(piece, not prompt_ids)
    completion_ids = list(encode(row.completion, False))
    length = len(prompt_ids) + len(completion_ids)
    if not completion_ids:
        raise DataError(f"a Boost row has no trained token; its completion is {row.completion!r}")
    if max_length is not None and length > max_length:
        raise DataError(
            f"a Boost row has {length} tokens, more than --max_length {max_length}; raise it or drop the row"
        )
    return {"input_ids": [*prompt_ids, *completion_ids], "labels": [-100] * len(prompt_ids) + completion_ids}


def load_tokenized(
    path: str | Path, encode: Callable[[str, bool], Sequence[int]], max_length: int | None = None
) -> list[TokenizedRow]:
    """Load a file's rows as token ids and labels; arguments as in `tokenize`.

    Raises:
        DataError: The file or a row cannot be used; the message names the file and the row.

    """
    tokenized = []
    for number, row in enumerate(load_rows(path), start=1):
        try:
            tokenized.append(tokenize(row, encode, max_length))
        except DataError as error:
            raise DataError(f"{path}: row {number}: {error}") from None
    return tokenized


_ANSWER_END = re.compile(rf"(?<={re.escape(DONE)})(?=\n\n{re.escape(AUXILIARY_INSTRUCTION)})")
_ANSWER_START = re.compile(rf"(?:{re.escape(BEGIN)}|{re.escape(CORRECT)})\n")


def _pieces(prompt: str) -> Iterator[str]:
    """Split a transcript before and after each answer; a few-shot prefix stays with the first prompt."""
    *answered, last = _ANSWER_END.split(prompt)
    for part in answered:
        # The last marker starts the answer. Earlier ones belong to few-shot examples.
        start = max((marker.end() for marker in _ANSWER_START.finditer(part)), default=0)
        yield from (part[:start], part[start:])
    yield last
