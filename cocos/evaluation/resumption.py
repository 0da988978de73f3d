"""The record of a run, its comparison with the options of a resumption, and the isolation level of both."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cocos.assembly.data import data_sha256
from cocos.assembly.programs import open_executor
from cocos.assembly.rules import conditions
from cocos.config.eval_config import EvalConfig
from cocos.config.option import option_names
from cocos.config.ranks import is_main_process
from cocos.evaluation.sample_files import sample_paths
from cocos.executor import Executor, ExecutorError
from cocos.executor.sandboxes.levels import choose
from cocos.extraction import EXTRACTION_VERSION
from cocos.files.json_lines import DataError
from cocos.files.run_record import checksums, run_record
from cocos.trajectories import Trajectory

# Results do not depend on these options, so a resumed run may change them.
OPTIONS_WITHOUT_EFFECT_ON_RESULTS = option_names(EvalConfig, "run")


def open_run_executor(args: EvalConfig, trajectories: Iterable[Trajectory]) -> Executor:
    """Start the executor of a run; the caller closes it.

    A resumed run keeps its isolation level even if `--sandbox auto` would choose another one now: all its
    rows are made under the same conditions.

    Raises:
        ExecutorError: The level is not offered any more, or no level works.

    """
    problems = dict.fromkeys(trajectory.problem for trajectory in trajectories)
    folder = Path(args.output_dir)
    if not args.resume or args.sandbox != "auto" or not sample_paths(folder):
        return open_executor(args, problems)
    level = _read_record(folder)["isolation"]
    try:
        executor = open_executor(args, problems, sandbox=level)
    except (ExecutorError, ValueError) as error:
        raise ExecutorError(
            f"the run in {folder} has isolation level {level}: {error}; to continue it at another level, "
            "give --sandbox LEVEL --accept_changes"
        ) from None
    if is_main_process() and (current := choose("auto", args.min_isolation).name) != level:
        print(f"isolation level {level}, as in {folder}/run.json; --sandbox auto would now choose {current}")
    return executor


def files_sha256(args: EvalConfig) -> dict[str, str]:
    """Return the checksums of the files that the options name, those of the weights included."""
    weights = Path(args.model_name_or_path).glob("*.safetensors") if args.model_name_or_path else ()
    return data_sha256(args, args.test_data) | checksums(sorted(map(str, weights)))


def evaluation_record(args: EvalConfig, executor: Executor, checksums: Mapping[str, str]) -> dict[str, Any]:
    """Return the contents of run.json: everything on which the results depend."""
    return run_record(
        args,
        data_sha256=checksums,
        isolation=executor.isolation,
        packages=list(executor.packages),
        extraction_version=EXTRACTION_VERSION,
        changes=[],
        **conditions(args),
    )


def configuration_changes(args: EvalConfig, record: dict[str, Any]) -> list[str]:
    """Return the changes of earlier resumptions, followed by those between the existing run and `record`.

    Raises:
        ValueError: `--resume` is not given, run.json cannot be read, or there are changes and
            `--accept_changes` is not given.

    """
    folder = Path(args.output_dir)
    if not args.resume:
        raise ValueError(f"{folder} contains a run; resume it with --resume or choose another --output_dir")
    old_record = _read_record(folder)
    earlier_changes, old = old_record["changes"], _flatten(old_record)
    new = _flatten(json.loads(json.dumps(record, default=str)))  # with JSON's types, as `old`
    changes = [
        f"{name} was {old.get(name)!r}, is {new.get(name)!r}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name) and name not in OPTIONS_WITHOUT_EFFECT_ON_RESULTS
    ]
    if changes and not args.accept_changes:
        raise ValueError(
            f"{folder} was made with another configuration: {'; '.join(changes)}; restore it, "
            "choose another --output_dir, or mix both with --accept_changes"
        )
    return [*earlier_changes, *changes]


def _read_record(folder: Path) -> dict[str, Any]:
    """Return the contents of run.json; raise DataError if it is not the record of a run."""
    try:
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        record["changes"], record["isolation"], _flatten(record)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{folder}/run.json is not a readable record of the run ({error!r}); score the rows again: "
            f"cocos eval --answers {folder}/samples.jsonl with another --output_dir"
        ) from None
    return record


def _flatten(record: dict[str, Any]) -> dict[str, Any]:
    """Return all entries of a record in one dictionary, without its `changes`."""
    nested = ("options", "versions", "data_sha256")
    parts = [record[name] for name in nested] + [{k: v for k, v in record.items() if k not in nested}]
    return {name: value for part in parts for name, value in part.items() if name != "changes"}
