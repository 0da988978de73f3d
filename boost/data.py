"""Boost rows: made from first attempts, kept as JSON of prompt and completion, turned into token ids and
labels.

A row is one turn to imitate after the transcript before it. The file format is the released README's: a JSON
list (or JSON lines) of `{"prompt": "...[BEGIN]", "completion": "...\\n[DONE]"}`. Does not know models or
trainers.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cocos.files.json_lines import read_rows
from cocos.problems import DataError, Problem
from cocos.prompts import AUXILIARY_INSTRUCTION, BEGIN, CORRECT, DONE, PromptProtocol, answer


@dataclass(frozen=True)
class BoostRow:
    """A transcript up to an open answer, and the answer through [DONE]."""

    prompt: str
    completion: str


def boost_rows(problem: Problem, attempt: str, correction: str, protocol: PromptProtocol) -> list[BoostRow]:
    """The two rows of one problem, first : second turn = 1 : 1 (CoCoS, arXiv 2505.23060).

    Args:
        attempt: The model's own first program: the first row keeps its distribution while it teaches the
            format.
        correction: A program that passes the tests: a reference, or a verified attempt. It equals `attempt`
            where that was right, so that the second turn also learns to keep.

    """
    first = protocol.first_turn(problem)
    second = first + answer(attempt) + protocol.later_turn()
    return [BoostRow(first, answer(attempt)), BoostRow(second, answer(correction))]


def save_rows(rows: Iterable[BoostRow], path: str | Path) -> None:
    """Write rows as JSON lines, or under a name in `.json` as the released README has them: a list whose
    prompts end with the bare marker. The file appears whole or not at all.
    """
    path = Path(path)
    if path.suffix == ".json":
        listed = [asdict(row) | {"prompt": row.prompt.removesuffix("\n")} for row in rows]
        text = json.dumps(listed, ensure_ascii=False, indent=1)
    else:
        text = "\n".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows)
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def load_rows(path: str | Path) -> list[BoostRow]:
    """Read rows from a JSON list or JSON lines; a marker that ends a prompt is followed by a newline, as the
    model sees it.

    Raises:
        DataError: The file or a row is malformed; the message names file and line.

    """
    rows = []
    for place, row in read_rows(Path(path)):
        if not isinstance(row, dict) or not all(
            isinstance(row.get(f), str) for f in ("prompt", "completion")
        ):
            raise DataError(f"{place}: expected an object with the strings 'prompt' and 'completion'")
        if not row["completion"].strip():
            raise DataError(f"{place}: field 'completion' is empty; there is nothing to learn from this row")
        prompt = row["prompt"].lstrip()
        if prompt.endswith((BEGIN, CORRECT)):
            prompt += "\n"
        rows.append(BoostRow(prompt, row["completion"]))
    if not rows:
        raise DataError(f"{path}: no rows in it; make some with scripts/make_boost_data.py")
    return rows


def tokenize(
    row: BoostRow, encode: Callable[[str, bool], Sequence[int]], max_length: int | None = None
) -> dict[str, list[int]]:
    """Token ids and labels of a row; labels are -100 on the prompt, by its length, never by searching for
    markers' ids.

    The prompt is encoded piece by piece, cut where the turn loop cuts its transcripts, so that training sees
    the very ids that generation will.

    Args:
        encode: (text, whether it opens the transcript) -> ids, as `cocos.generation.tokenizer.encode`.
        max_length: Longest row in tokens.

    Raises:
        DataError: The row is too long, or nothing in it is trained.

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
) -> list[dict[str, list[int]]]:
    """Every row of a file as token ids and labels; an error names the file and the row."""
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
    """A transcript cut around its answers; a few-shot prefix stays with the first prompt."""
    *answered, last = _ANSWER_END.split(prompt)
    for part in answered:
        start = max((marker.end() for marker in _ANSWER_START.finditer(part)), default=0)
        yield from (part[:start], part[start:])
    yield last
