"""Model card (README.md) of a saved model: what it is, data, measurements, and how to prompt it.

The words are in templates/model_card.md.jinja; every number comes from run.json and the trainer's log.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from transformers import TrainerState

from cocos.config.cocos_options import CoCoSOptions
from cocos.config.option import option_names
from cocos.config.training_options import BoostOptions
from cocos.files.durable import write_atomically
from cocos.generation.adapters import base_model
from cocos.prompts import DONE
from cocos.training.checkpoints import evaluation_at

# The options that the card lists, as far as the stage has them; the last three are those of transformers.
LISTED_ROLES = ("objective", "wording", "prompt", "rule", "given", "length", "sampling", "update")
OWN_OPTIONS = [*option_names(CoCoSOptions, *LISTED_ROLES), *option_names(BoostOptions, *LISTED_ROLES)]
LISTED_OPTIONS = (*dict.fromkeys(OWN_OPTIONS), "weight_decay", "gradient_accumulation_steps", "fp16")
LORA_OPTIONS = ("lora_r", "lora_alpha", "lora_dropout", "lora_target_modules")


@dataclass(frozen=True)
class ModelCard:
    """Facts of a run that its model card states, besides the trainer's log.

    Attributes:
        stage: `Boost` or `CoCoS`.
        record: The run's record, as in run.json.
        num_rows: Number of rows or problems by data file.
        first_message: Example of the message of turn 1.
        later_message: Message of turns 2..T.
        is_chat: The messages go through the chat template.
        system_message: System message of the chat; "" for none.

    """

    stage: Literal["Boost", "CoCoS"]
    record: Mapping[str, Any]
    num_rows: Mapping[str | None, int]
    first_message: str
    later_message: str
    is_chat: bool = False
    system_message: str = ""

    @property
    def options(self) -> Mapping[str, Any]:
        """Options of the run."""
        return self.record["options"]

    @property
    def stop_strings(self) -> list[str] | None:
        """Texts that end an answer; None: only the end-of-sequence ids."""
        return None if self.is_chat else [DONE]

    def save(self, folder: str | Path, state: TrainerState, step: int, warning: str = "") -> None:
        """Write the card of the weights of a step as README.md of their folder; see `text`."""
        write_atomically(Path(folder) / "README.md", self.text(str(folder), state, step, warning))

    def text(self, folder: str, state: TrainerState, step: int, warning: str = "") -> str:
        """Return the card in Markdown.

        Args:
            folder: Folder of the saved model.
            state: State of the trainer.
            step: Number of the update after which the weights were saved.
            warning: Fault of the run; "" for none.

        """
        names = LISTED_OPTIONS + (LORA_OPTIONS if self.options["use_peft"] else ())
        start = self.options["model_name_or_path"]
        base, origin = base_model(start), _origin(start)
        return _template().render(
            card=self,
            name=Path(folder).resolve().name,
            start=_public_name(start),
            base=_public_name(base),
            origin=origin if not Path(origin).exists() else None,
            licence=_licence(origin),
            public_name=_public_name,
            is_lora=self.options["use_peft"],
            step=step,
            warning=warning,
            max_steps=state.max_steps,
            metrics=evaluation_at(state, step),
            num_turns=self.options.get("num_turns", 2),
            max_new_tokens=self.options.get("max_completion_length", 512),
            # Not with paths of this machine.
            changes=[text for text in self.record.get("changes", []) if "/" not in text],
            settings={n: self.options[n] for n in names if self.options.get(n) not in (None, False, [])},
        )


def _origin(name_or_path: str) -> str:
    """Return the model from which all training began: that of Boost, if a run starts from its model."""
    name = base_model(name_or_path)
    record = Path(name) / "run.json"
    seen = {name}
    while record.is_file():
        options = json.loads(record.read_text(encoding="utf-8")).get("options", {})
        name = base_model(str(options.get("model_name_or_path", name)))
        if name in seen:  # the folder of a run that was moved to where it began
            break
        seen.add(name)
        record = Path(name) / "run.json"
    return name


def _public_name(name_or_path: str) -> str:
    """Return a path of this machine without the folders that concern nobody else; other names as they are."""
    path = Path(name_or_path)
    return "/".join(path.parts[-2:]) if path.is_absolute() else name_or_path


def _licence(name_or_path: str) -> str | None:
    """Return the licence in the card of a model, in its folder or the hub's cache; None if there is none."""
    card = Path(name_or_path) / "README.md"
    if not card.is_file() and not Path(name_or_path).exists():
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(name_or_path, "README.md")
        card = Path(cached) if isinstance(cached, str) else card
    if not card.is_file():
        return None
    found = re.match(r"---\n(?:.*\n)*?licen[sc]e: *([\w.-]+) *\n", card.read_text(encoding="utf-8"))
    return found[1] if found else None


@cache
def _template() -> Any:
    environment = Environment(
        loader=PackageLoader("cocos.training"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # the card is Markdown
    )
    environment.filters["python_text"] = _python_text
    return environment.get_template("model_card.md.jinja")


def _python_text(text: str) -> str:
    """Return the expression of a text in Python, one literal per line."""
    lines = [f"    {json.dumps(line, ensure_ascii=False)}" for line in text.splitlines(keepends=True)]
    return "\n".join(["(", *lines, ")"])
