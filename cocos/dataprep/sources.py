"""Public data sets: origin, converter, standard splits and licence of each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from cocos.dataprep.formats.conversion import (
    Converted,
    from_columns,
    from_humaneval,
    from_humanevalfix,
    from_kodcode,
    from_mbpp,
)
from cocos.dataprep.formats.evalplus import from_humanevalplus, from_mbppplus
from cocos.dataprep.formats.program_sets import (
    from_acecode,
    from_bigcodebench,
    from_codeio,
    from_debugbench,
    from_leetcode,
    from_livecodebench,
    from_opc_educational,
)
from cocos.dataprep.readers import SPLITS, RawRow, read_debugbench
from cocos.files.json_lines import Place
from cocos.problems import DataError, Problem

NOT_STATED = "not stated"  # a licence that nobody named


@dataclass(frozen=True)
class Source:
    """Set of problems before conversion."""

    name: str  # name on the command line
    convert: Callable[[dict, Place], Converted]  # (row, place) -> converted row
    title: str  # name in the data card
    licence: str  # licence of the data, as far as it is known
    url: str  # home page, or ""
    hub: tuple[str, str | None] | None = None  # repository and configuration on the hub, or None
    hub_split: str | None = None  # the only split on the hub to read; None for all
    splits: tuple[str, ...] = ()  # the standard splits; empty if there are none
    # (problem, place) -> its standard split, if there are several.
    split_of: Callable[[Problem, Place], str] | None = None
    raw_file: str = ""  # name of the raw file as it is published, or "" for the user's own sets
    # URLs of JSON lists that make up the raw file; empty if its rows come from the hub.
    raw_urls: tuple[str, ...] = ()
    read: Callable[[Path], Iterator[RawRow]] | None = None  # reader of a folder; None: its rows are in files
    is_large: bool = False  # `prepare_data.py public` leaves it out
    executes_references: bool = False  # the tests' expected values come from executing the references

    def standard_split(self, problem: Problem, place: Place) -> str | None:
        """Return the standard split of a problem; None if the set has no standard splits."""
        return self.split_of(problem, place) if self.split_of else "".join(self.splits) or None


def convert_row(source: Source, row: dict, place: Place) -> Converted:
    """Convert a row of a source; a row that states no licence has that of the source.

    Raises:
        DataError: The row cannot be used, or has not the form of the source's rows.

    """
    try:
        converted = source.convert(row, place)
        licence = converted.problem.licence or ("" if source.licence == NOT_STATED else source.licence)
        return converted._replace(problem=replace(converted.problem, licence=licence))
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{place}: {error}; repair the row, or --drop malformed") from None
    # The one boundary: a row of another set has any type in any column, and its programs have any syntax.
    except (TypeError, AttributeError, LookupError, SyntaxError, RecursionError, MemoryError) as error:
        raise DataError(
            f"{place}: has another form than rows of {source.title} ({type(error).__name__}: {error}); check "
            "that SOURCE names this data set, or --drop malformed"
        ) from None


def _mbpp_split(problem: Problem, place: Place) -> str:
    """Return the standard split of an MBPP problem, a range of ids (arXiv 2108.07732, appendix)."""
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
        f"{place}: field 'task_id' is {problem.task_id!r}; MBPP's ids are 1 to 974; use the source jsonl"
    )


_MBPP_URL = "https://github.com/google-research/google-research/tree/master/mbpp"
_HUMANEVALPACK_URL = "https://github.com/bigcode-project/octopack"
# KodCode has more than 400,000 rows on the hub. These 232 rows by its authors show every form of its tests.
_KODCODE_DEMO = tuple(
    f"https://raw.githubusercontent.com/KodCode-AI/kodcode/main/demo/KodCode_{part}.json"
    for part in ("prefill_200_1741214325", "algorithm_100_1741212598", "leetcode_100_1741214688")
)
PUBLIC_SOURCES = {
    source.name: source
    for source in (
        Source("mbpp", from_mbpp, "MBPP", "CC BY 4.0", _MBPP_URL,
               hub=("google-research-datasets/mbpp", "full"), split_of=_mbpp_split, splits=SPLITS,
               raw_file="mbpp.jsonl"),
        Source("mbpp-sanitized", from_mbpp, "MBPP sanitized", "CC BY 4.0", _MBPP_URL,
               hub=("google-research-datasets/mbpp", "sanitized"), split_of=_mbpp_split, splits=SPLITS,
               raw_file="sanitized-mbpp.json"),
        Source("humaneval", from_humaneval, "HumanEval", "MIT", "https://github.com/openai/human-eval",
               hub=("openai/openai_humaneval", None), splits=("test",), raw_file="HumanEval.jsonl.gz"),
        Source("humanevalfix", from_humanevalfix, "HumanEvalFix (HumanEvalPack, Python)", "MIT",
               _HUMANEVALPACK_URL, hub=("bigcode/humanevalpack", "python"), splits=("test",),
               raw_file="humanevalpack_python.jsonl"),
        Source("humanevalfix-docs", partial(from_humanevalfix, field="prompt"),
               "HumanEvalFix with docstrings (HumanEvalPack, Python)", "MIT", _HUMANEVALPACK_URL,
               hub=("bigcode/humanevalpack", "python"), splits=("test",),
               raw_file="humanevalpack_python.jsonl"),
        Source("kodcode", from_kodcode, "KodCode", "CC BY-NC 4.0", "https://github.com/KodCode-AI/kodcode",
               hub=("KodCode/KodCode-V1", None), raw_file="kodcode_demo_232.jsonl", raw_urls=_KODCODE_DEMO),
        Source("opc-educational", from_opc_educational, "OpenCoder educational_instruct", "MIT",
               "https://huggingface.co/datasets/OpenCoder-LLM/opc-sft-stage2", is_large=True,
               hub=("OpenCoder-LLM/opc-sft-stage2", "educational_instruct"),
               raw_file="educational_instruct.jsonl"),
        Source("leetcode", from_leetcode, "LeetCodeDataset", "Apache-2.0",
               "https://github.com/newfacade/LeetCodeDataset", is_large=True,
               hub=("newfacade/LeetCodeDataset", None), raw_file="LeetCodeDataset-train.jsonl"),
        Source("acecode", from_acecode, "AceCode-87K", "MIT",
               "https://huggingface.co/datasets/TIGER-Lab/AceCode-87K", is_large=True,
               hub=("TIGER-Lab/AceCode-87K", None), raw_file="acecode.jsonl"),
        # Joined from two sets: the bugs of DebugBench and the tests of LeetCodeDataset.
        Source("debugbench", from_debugbench, "DebugBench (Python) with tests of LeetCodeDataset",
               "Apache-2.0", "https://github.com/thunlp/DebugBench", is_large=True, splits=("test",),
               read=read_debugbench),
        Source("codeio", from_codeio, "CodeI/O (reasoning-gym)",
               "Apache-2.0, as reasoning-gym distributes it",
               "https://github.com/open-thought/reasoning-gym", is_large=True, raw_file="codeio.jsonl.gz",
               executes_references=True),
        # Its files are the releases; on the hub a script joins them, which `datasets` no longer runs.
        Source("livecodebench", from_livecodebench, "LiveCodeBench",
               "CC (as its card says; the problems' sites " "keep their rights)",
               "https://huggingface.co/datasets/livecodebench/code_generation_lite", is_large=True,
               splits=("test",), raw_file="test6.jsonl"),
        # Its splits on the hub are releases, with the same problems.
        Source("bigcodebench", from_bigcodebench, "BigCodeBench", "Apache-2.0",
               "https://github.com/bigcode-project/bigcodebench", is_large=True,
               hub=("bigcode/bigcodebench", None), hub_split="v0.1.4", splits=("test",),
               raw_file="BigCodeBench.jsonl"),
        # On the hub these sets have another format, which cannot be converted.
        Source("humanevalplus", from_humanevalplus, "HumanEval+ (EvalPlus)", "Apache-2.0",
               "https://github.com/evalplus/humanevalplus_release", splits=("test",),
               raw_file="HumanEvalPlus.jsonl.gz", executes_references=True),
        Source("mbppplus", from_mbppplus, "MBPP+ (EvalPlus)", "Apache-2.0",
               "https://github.com/evalplus/mbppplus_release", splits=("test",),
               raw_file="MbppPlus.jsonl.gz", executes_references=True),
    )
}  # fmt: skip


def custom_source(name: str, columns: dict[str, str], form: str, licence: str) -> Source:
    """Return a source for the user's own file, or for a data set on the hub that is not in `PUBLIC_SOURCES`.

    Args:
        name: "jsonl", "csv", "parquet", or "owner/name" on the hub.
        columns: MBPP field -> column, where they differ.
        form: Format of the tests, one of `TEST_FORMS`.

    """
    convert = partial(from_columns, columns=columns, form=form)
    return Source(name, convert, name, licence, "", (name, None) if "/" in name else None)
