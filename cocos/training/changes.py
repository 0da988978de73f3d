"""Options and data that differ between a run and its continuation, and the options of a loaded optimizer."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from cocos.config.option import ROLES, default_values, option_names
from cocos.config.schedule import set_rates
from cocos.config.trl_configs import INHERITED, BoostConfig, CoCoSConfig

# Options that a continued run cannot change: the optimizer's state and the adapter's weights depend on them.
FIXED = (
    *("optim", "optim_args", "optim_target_modules", "use_peft", "lora_r", "lora_target_modules"),
    *("lora_target_parameters", "lora_modules_to_save", "use_dora"),
)
ADAPTIVE = ("reduce_lr_on_plateau", "greedy")  # schedules whose rate follows from evaluations
FIXED_IF_ADAPTIVE = ("lr_scheduler_type", "lr_scheduler_kwargs", "learning_rate")
# Entries of the optimizer's groups that options decide: --learning_rate, --weight_decay, --adam_beta1, ...
GROUP_OPTIONS = ("initial_lr", "weight_decay", "betas", "eps")
# Roles of the options, and data, that an evaluation during training depends on.
EVALUATED_ROLES = ("wording", "prompt", "rule", "given", "length")
EVALUATED_DATA = ("dev_data", "eval_data")


class Change(NamedTuple):
    """Option, or SHA-256 of a file, that differs between a run and its continuation."""

    name: str
    was: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.name} was {self.was!r}, is {self.now!r}"


def changes_since(
    folder: Path, record: Mapping[str, Any], names: Iterable[str], defaults: Mapping[str, Any]
) -> list[Change]:
    """Return what differs between the run in a folder and its continuation.

    Args:
        folder: Output folder of the run, with its run.json.
        record: Record of the continuation.
        names: Options that are compared; the checksums of the data are, too.
        defaults: Values of options that an older version did not have.

    Raises:
        ValueError: run.json cannot be read.

    """
    try:
        old = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        before = {name: old["options"].get(name, defaults.get(name)) for name in names} | old["data_sha256"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{folder}/run.json is not a readable record of the run ({error!r}); remove the file to continue "
            "without a comparison of the options"
        ) from None
    new = json.loads(json.dumps(record, default=str))  # with JSON's types
    after = {name: new["options"].get(name) for name in names} | new["data_sha256"]
    was, now = _num_processes(old["options"]), _num_processes(new["options"])
    changes = [Change("the number of processes", was, now)] if was and now and was != now else []
    for name in DERIVED_FROM_PROCESSES if changes else ():  # nobody has typed these
        before.pop(name, None)
        after.pop(name, None)
    return changes + [
        Change(name, before.get(name), after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


DERIVED_FROM_PROCESSES = ("gradient_accumulation_steps", "steps_per_generation")


def _num_processes(options: Mapping[str, Any]) -> int | None:
    """Return the number of processes of a run, from its sizes of batches; None if they are not recorded."""
    names = ("global_batch_size", "per_device_train_batch_size", "gradient_accumulation_steps")
    whole, per_device, steps = (options.get(name) for name in names)
    return whole // (per_device * steps) if whole and per_device and steps else None


def accepted_changes(
    args: BoostConfig | CoCoSConfig, record: Mapping[str, Any], folder: Path
) -> list[Change]:
    """Return what a run changes that continues one of a folder; a folder without run.json says nothing.

    Raises:
        ValueError: Something has changed that cannot change, or that --accept_changes does not allow.

    """
    declared = option_names(type(args), *(role for role in ROLES if role not in ("run", "executor")))
    names = [*declared, *INHERITED]
    known = (folder / "run.json").exists()
    changes = changes_since(folder, record, names, default_values(type(args))) if known else []
    kinds = [change.was for change in changes if change.name == "lr_scheduler_type"]
    kinds.append(args.lr_scheduler_type)
    fixed = FIXED + (FIXED_IF_ADAPTIVE if any(kind in ADAPTIVE for kind in kinds) else ())
    refused = [change.name for change in changes if change.name in fixed]
    remedy = "restore them, or continue nevertheless with --accept_changes true"
    if refused:
        remedy = (
            f"a resumed run cannot change {', '.join(refused)}: restore that, or start another run from the "
            "trained model"
        )
    if refused or (changes and not args.accept_changes):
        raise ValueError(
            f"{folder} was made with other data or options: {'; '.join(map(str, changes))}; {remedy}"
        )
    return changes


def all_changes(changes: Sequence[Change], checkpoint: Path) -> list[str]:
    """Return the changes at a checkpoint as text, after those of earlier continuations of its run."""
    path = checkpoint.parent / "run.json"
    earlier = json.loads(path.read_text(encoding="utf-8")).get("changes", []) if path.exists() else []
    place = checkpoint.name.replace("checkpoint-", "update ")
    return [*earlier, *(f"{change} after {place}" for change in changes)]


def change_evaluation(args: BoostConfig | CoCoSConfig, changes: Sequence[Change]) -> bool:
    """Return whether evaluations before and after the changes differ in more than the weights."""
    data = [getattr(args, name, None) for name in EVALUATED_DATA]
    names = {*option_names(type(args), *EVALUATED_ROLES), *EVALUATED_DATA, *data}
    return any(change.name in names for change in changes)


def group_options(optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return what the options have decided for each group of an optimizer that has loaded no state yet."""
    return [{n: group[n] for n in GROUP_OPTIONS if n in group} for group in optimizer.param_groups]


def apply_options(optimizer: Optimizer, schedule: LRScheduler, options: list[dict[str, Any]]) -> None:
    """Give an optimizer and a schedule that have loaded their states the options of the run that continues.

    The moments and the number of the update stay. A schedule that follows from evaluations keeps its rate.

    Args:
        optimizer: Optimizer with the groups of the checkpoint.
        schedule: Schedule at the update of the checkpoint.
        options: See `group_options`.

    """
    for group, chosen in zip(optimizer.param_groups, options, strict=True):
        group.update(chosen)
    if isinstance(schedule, LambdaLR):
        schedule.base_lrs = [chosen["initial_lr"] for chosen in options]
        set_rates(schedule)
