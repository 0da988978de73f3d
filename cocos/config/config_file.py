"""Files of `--config`: YAML or JSON, or the run.json of a run that is to be started again."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

# A run is started again, not resumed, and these say how a run was resumed or inspected.
NOT_TAKEN = ("resume", "resume_from_checkpoint", "accept_changes", "dry_run")
# Options of TRL and transformers that `trl_configs.py` and transformers set from others.
DERIVED = (
    *("gradient_accumulation_steps", "steps_per_generation", "generation_batch_size", "model_init_kwargs"),
    *("use_cpu", "dataloader_pin_memory", "eval_strategy", "save_strategy", "load_best_model_at_end"),
    *("metric_for_best_model", "greater_is_better"),
)


class ConfigFile(dict[str, Any]):
    """Options by name; `is_record` is True for the record of a run, which has derived values, too."""

    is_record = False


def read_config(path: str) -> ConfigFile:
    """Return the options of a file.

    Raises:
        ValueError: The file cannot be read, is not a mapping, or has a key twice.

    """
    try:
        with open(path, encoding="utf-8-sig") as file:
            content = yaml.load(file, _Loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"--config: {' '.join(str(error).split())}; give a readable YAML file") from None
    if not isinstance(content, dict):
        raise ValueError(f"--config {path}: contains no options; write one per line, such as num_turns: 2")
    if "config" in content:
        raise ValueError(f"--config {path}: a file cannot name another; write the options of both into one")
    if not all(isinstance(key, str) for key in content):
        raise ValueError(f"--config {path}: every key is the name of an option, such as num_turns: 2")
    if Path(path).suffix == ".json" and isinstance(content.get("options"), dict) and "versions" in content:
        options = ConfigFile(
            {
                name: value
                for name, value in content["options"].items()
                # transformers hides the values of options whose name ends in _token
                if name not in NOT_TAKEN and value not in (None, [], {}, f"<{name.upper()}>")
            }
        )
        options.is_record = True
        return options
    return ConfigFile(content)


class _Loader(yaml.SafeLoader):
    """Loader that refuses a key that occurs twice; PyYAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                line = node.value[number][0].start_mark.line + 1
                raise yaml.YAMLError(f"line {line}: the key {key!r} occurs twice; remove one")
        return super().construct_mapping(node, deep)
