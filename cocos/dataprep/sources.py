"""Which public sets there are: how a row is read, which split it belongs to, where the set comes from and
what one may do with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from cocos.dataprep.formats.conversion import (
    Converted,
    from_columns,
    from_humaneval,
    from_humanevalfix,
    from_kodcode,
    from_mbpp,
)
from cocos.files.json_lines import Place
from cocos.problems import DataError, Problem

SPLITS = ("train", "validation", "test", "prompt")


@dataclass(frozen=True)
class Source:
    """A set of problems, as its publishers have it.

    Attributes:
        name: As on the command line.
        convert: (row, place) -> problem.
        title: What the card calls it.
        licence: Of the data, or what is known of it.
        url: Where it comes from.
        hub: Repository and configuration on the hub, or None.
        split_of: (problem, place) -> the standard split; None where the set has none.

    """

    name: str
    convert: Callable[[dict, Place], Converted]
    title: str
    licence: str
    url: str
    hub: tuple[str, str | None] | None = None
    split_of: Callable[[Problem, Place], str] | None = None


def mbpp_split(problem: Problem, place: Place) -> str:
    """MBPP's splits are ranges of ids (arXiv 2108.07732, appendix)."""
    number = int(problem.task_id) if problem.task_id.isdecimal() else 0
    for split, ids in (
        ("prompt", range(1, 11)),
        ("test", range(11, 511)),
        ("validation", range(511, 601)),
        ("train", range(601, 975)),
    ):
        if number in ids:
            return split
    raise DataError(
        f"{place}: field 'task_id' is {problem.task_id!r}; MBPP's run from 1 to 974: use the source jsonl"
    )


def _test_only(problem: Problem, place: Place) -> str:
    return "test"


_MBPP_URL = "https://github.com/google-research/google-research/tree/master/mbpp"
PUBLIC = {
    source.name: source
    for source in (
        Source(
            "mbpp", from_mbpp, "MBPP", "CC BY 4.0", _MBPP_URL,
            ("google-research-datasets/mbpp", "full"), mbpp_split,
        ),
        Source(
            "mbpp-sanitized", from_mbpp, "MBPP sanitized", "CC BY 4.0", _MBPP_URL,
            ("google-research-datasets/mbpp", "sanitized"), mbpp_split,
        ),
        Source(
            "humaneval", from_humaneval, "HumanEval", "MIT", "https://github.com/openai/human-eval",
            ("openai/openai_humaneval", None), _test_only,
        ),
        Source(
            "humanevalfix", from_humanevalfix, "HumanEvalFix (HumanEvalPack, Python)", "MIT",
            "https://github.com/bigcode-project/octopack", ("bigcode/humanevalpack", "python"), _test_only,
        ),
        Source(
            "humanevalfix-docs", partial(from_humanevalfix, field="prompt"),
            "HumanEvalFix with docstrings (HumanEvalPack, Python)", "MIT",
            "https://github.com/bigcode-project/octopack", ("bigcode/humanevalpack", "python"), _test_only,
        ),
        Source(
            "kodcode", from_kodcode, "KodCode", "CC BY-NC 4.0", "https://github.com/KodCode-AI/kodcode",
            ("KodCode/KodCode-V1", None),
        ),
    )
}  # fmt: skip


def custom(name: str, columns: dict[str, str], form: str, licence: str) -> Source:
    """A set that we do not know by name: one's own file, or any on the hub."""
    convert = partial(from_columns, columns=columns, form=form)
    return Source(name, convert, name, licence, "", (name, None) if "/" in name else None)
