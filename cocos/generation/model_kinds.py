"""Kinds of models, by their configurations: what can be done with one, or one line with the remedy.

Reads JSON files and the names of files; no code of a model is run, and no weights are loaded.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

REMEDY = "download or copy it again"
GGUF_REMEDY = (
    "convert it with `python scripts/import_gguf.py FILE.gguf FOLDER`, or serve it with Ollama and use "
    "--generator api"
)
PLAIN = "choose the plain model that it was made of"
SERVE = "serve it and use --generator api"
QLORA = "bitsandbytes"  # the quantisation on which adapters are trained here
# transformers' mappings from types to classes, and what these are. The first that fits a class, or else the
# type, names the kind.
OTHER_KINDS = {
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT": "a vision-language model",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM": "an encoder-decoder",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ": "a speech model",
    "MODEL_FOR_MASKED_LM": "an encoder",
    "MODEL_FOR_SEQUENCE_CLASSIFICATION": "a classifier or reward model",
    "MODEL_FOR_TOKEN_CLASSIFICATION": "a token classifier",
    "MODEL_FOR_QUESTION_ANSWERING": "a model that marks spans",
    "MODEL": "a model without a language-model head",
}
CONFIG_TYPES = {
    "model_type": str,
    "architectures": list,
    "auto_map": dict,
    "quantization_config": dict,
    "quantization": dict,
}
# Files of folders without weights for transformers, and what to do about them.
OTHER_FORMATS = {
    "*.gguf": GGUF_REMEDY,
    "zero_to_fp32.py": "it has DeepSpeed's shards, which `python zero_to_fp32.py . .` in it joins",
    "global_step*": "it has DeepSpeed's shards; give the folder of a saved model",
    "**/*.distcp": "it has FSDP's shards, which `accelerate merge-weights SHARDS FOLDER` joins",
    "consolidated*": "its weights are in the format of Meta or Mistral; choose the model for transformers",
    "*.npz": f"its weights are MLX's; {PLAIN}",
    "**/*.onnx": f"its weights are ONNX's; {PLAIN}",
    "*.nemo": f"its weights are NeMo's; {PLAIN}",
    "*.msgpack": f"its weights are Flax's; {PLAIN}",
    "*.h5": f"its weights are TensorFlow's; {PLAIN}",
    "*.ckpt": f"its weights are Lightning's; {PLAIN}",
    "model_index.json": "it has a pipeline of diffusers; choose a causal language model",
    "optimizer.*": "it has the state of a training without the model; give the folder of a saved model",
}


@dataclass(frozen=True)
class ModelKind:
    """A model that can be evaluated: what it is, and how it can be trained."""

    name: str  # folder or hub id
    architecture: str  # class of the model; of an adapter, its base
    quantization: str = ""  # method by which its weights, or its base's, are quantised; "" for none
    adapter: str = ""  # PEFT's name of an adapter's kind, such as LORA; "" for a whole model

    def training_fault(self, use_peft: bool) -> str:
        """Return why it cannot be trained, with the remedy; "" if it can."""
        if not self.quantization or (use_peft and self.quantization == QLORA):
            return ""
        fault = f"{self.name}: weights that are quantised by {self.quantization} cannot be trained"
        if self.quantization == QLORA:
            return f"{fault}; add --use_peft true for an adapter on them, or {PLAIN}"
        return f"{fault}, nor an adapter on them; {PLAIN} (--load_in_4bit true quantises it for QLoRA)"

    def __str__(self) -> str:
        """Return what it is and what can be done with it."""
        words = f"{self.adapter} adapter of {self.architecture}" if self.adapter else self.architecture
        words += f", quantised by {self.quantization}" if self.quantization else ""
        if self.training_fault(use_peft=True):
            return f"{self.name}: {words}; it can be evaluated, not trained: {PLAIN} for that"
        how = " with --use_peft true" if self.adapter or self.quantization else ""
        return f"{self.name}: {words}; it can be evaluated and trained{how}"


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object; raise ValueError, with the file, for anything else."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: not valid JSON ({error}); {REMEDY}") from None


def brief(error: object) -> str:
    """Return the words of a library's message on one line, at most 300 characters of them."""
    words = " ".join(str(error).split())
    return words if len(words) <= 300 else f"{words[:300]} ..."


def other_format(folder: Path) -> str:
    """Return what to do about the files of another format in a folder; "" if there are none."""
    return next((remedy for files, remedy in OTHER_FORMATS.items() if any(folder.glob(files))), "")


def model_kind(name: str, path: Path, trusts_code: bool = False, has_to_load: bool = False) -> ModelKind:
    """Return the kind of a whole model.

    Args:
        name: Folder or hub id.
        path: Its config.json.
        trusts_code: Whether Python files of its folder may be run.
        has_to_load: Whether transformers has to load it here, for which quantised weights need packages.

    Raises:
        ValueError: It is no causal language model, needs code of its own, or cannot be loaded.

    """
    config = _typed(path, CONFIG_TYPES)
    classes = [str(name) for name in config.get("architectures") or []]
    if not (trusts_code and "auto_map" in config):
        _check_architecture(path, config, classes)
    quantization = _quantization(path, config, has_to_load)
    return ModelKind(name, classes[0] if classes else str(config.get("model_type")), quantization)


def adapter_type(path: Path) -> str:
    """Return PEFT's name of the kind of an adapter, from its adapter_config.json.

    Raises:
        ValueError: PEFT does not know the kind, or the adapter cannot be part of a causal language model.

    """
    from peft import PEFT_TYPE_TO_CONFIG_MAPPING, PromptLearningConfig  # takes seconds

    config = _typed(path, {"peft_type": str, "task_type": str})
    kind, task = config.get("peft_type"), config.get("task_type") or "CAUSAL_LM"
    known = {str(name.value): config_type for name, config_type in PEFT_TYPE_TO_CONFIG_MAPPING.items()}
    if kind not in known:
        raise ValueError(
            f"{path}: peft_type {kind!r} is unknown to peft {version('peft')}; update peft, or choose "
            "another adapter"
        )
    if issubclass(known[kind], PromptLearningConfig) or kind in ("ADAPTION_PROMPT", "SHADOW"):
        raise ValueError(f"{path}: adapters of the kind {kind} are not supported; choose a LoRA adapter")
    if task != "CAUSAL_LM":
        raise ValueError(f"{path}: task_type is {task}, not CAUSAL_LM; choose an adapter of a language model")
    return str(kind)


def _typed(path: Path, types: Mapping[str, type]) -> dict[str, Any]:
    """Return a configuration; raise ValueError if a key that is read has a value of another type."""
    config = read_json(path)
    for key, expected in types.items():
        if not isinstance(config.get(key), expected | None):
            raise ValueError(
                f"{path}: {key} is {brief(repr(config[key]))}, not a {expected.__name__}; correct it"
            )
    return config


def _check_architecture(path: Path, config: Mapping[str, Any], classes: list[str]) -> None:
    """Raise ValueError if the configuration is not that of a causal language model of transformers."""
    from transformers.models.auto import modeling_auto as names  # takes a second

    kind, causal = config.get("model_type"), names.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if kind in causal and {*classes} & {*causal.values()}:
        return
    if own_code := config.get("auto_map"):
        modules = {str(name).rpartition("--")[2].partition(".")[0] for name in own_code.values()}
        files = [f"{module}.py" for module in sorted(modules)]
        raise ValueError(
            f"{path}: a model with code of its own ({', '.join(files)}), which is not run here; {SERVE}, or "
            "choose a model whose code is part of transformers"
        )
    if kind not in names.CONFIG_MAPPING_NAMES:
        raise ValueError(
            f"{path}: model_type {kind!r} is unknown to transformers {version('transformers')}; update "
            "transformers, or choose another model"
        )
    others = dict(OTHER_KINDS)
    if kind in causal:
        del others["MODEL_FOR_IMAGE_TEXT_TO_TEXT"]  # transformers loads its language model alone
        if config.get("tie_word_embeddings") is not False:
            del others["MODEL"]  # the embeddings are its head
    types = {mapping: getattr(names, f"{mapping}_MAPPING_NAMES") for mapping in others}
    fits = [mapping for mapping, known in types.items() if {*classes} & {*known.values()}]
    if kind not in causal:
        fits += [mapping for mapping, known in types.items() if kind in known]
        fits.append("")
    if fits:
        words = others.get(fits[0], "no causal language model")
        raise ValueError(
            f"{path}: {', '.join(classes) or kind} is {words}; choose a causal language model"
            + (f", or {SERVE}" if "IMAGE" in fits[0] else "")
        )


def _quantization(path: Path, config: Mapping[str, Any], has_to_load: bool) -> str:
    """Return the method by which the weights are quantised; "" for none."""
    found = config.get("quantization_config") or config.get("quantization")
    if not found:
        return ""
    is_qlora = found.get("load_in_4bit") or found.get("load_in_8bit")
    method = QLORA if is_qlora else str(found.get("quant_method", "MLX"))  # MLX names no method
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING, AutoHfQuantizer

    if method != QLORA and method not in AUTO_QUANTIZATION_CONFIG_MAPPING:
        raise ValueError(
            f"{path}: quantised by {method}, which transformers {version('transformers')} cannot load; "
            f"{PLAIN}"
        )
    if has_to_load:
        try:
            AutoHfQuantizer.from_config(dict(found), pre_quantized=True).validate_environment(device_map=None)
        # A missing package or GPU, or a damaged configuration; each method raises other errors.
        except Exception as error:
            raise ValueError(
                f"{path}: quantised by {method}, which cannot be loaded here ({brief(error)}); {PLAIN}, or "
                f"{SERVE}"
            ) from None
    return method
