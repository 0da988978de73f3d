"""LoRA adapters: the base model of one, an adapter that is trained further, and a plain checkpoint of both.

A folder that PEFT has saved names its base model in adapter_config.json. Training continues such an adapter,
so that the base model's weights are never rounded, and the result is one adapter of the same base.
"""

from typing import Any

import torch
from peft import PeftConfig, PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from trl.trainer.utils import create_model_from_path

from cocos.generation.checkpoint_files import base_model, is_adapter, tokenizer_source


def adapter_config(name_or_path: str, chosen: PeftConfig | None) -> PeftConfig | None:
    """Return the configuration of the adapter that a run trains; None if it trains all weights.

    Args:
        chosen: Configuration of a new adapter, from --use_peft and the lora options.

    Raises:
        ValueError: The run starts from an adapter without --use_peft.

    """
    if not is_adapter(name_or_path):
        return chosen
    if chosen is None:
        raise ValueError(
            f"--model_name_or_path {name_or_path} is a LoRA adapter; add --use_peft true to train it on, "
            f"or merge it to train all weights: cocos export {name_or_path} FOLDER"
        )
    return PeftConfig.from_pretrained(name_or_path)


def load_trainable(name_or_path: str, init_kwargs: dict[str, Any], is_sharded: bool) -> PeftModel:
    """Load an adapter on its base model, to be trained further.

    Args:
        is_sharded: ZeRO-3 divides the weights. Adapter and base then have one data type, as DeepSpeed needs.

    """
    base = create_model_from_path(base_model(name_or_path), **init_kwargs)
    casts = not is_sharded
    return PeftModel.from_pretrained(base, name_or_path, is_trainable=True, autocast_adapter_dtype=casts)


def merged(name_or_path: str) -> PreTrainedModel:
    """Return a model in float32: an adapter's base model with the adapter added to its weights.

    In float32 the sum is exact to 1e-7 of a weight. In bfloat16 an update below 1/512 of a weight would be
    lost.
    """
    name, plain = base_model(name_or_path), {"dtype": torch.float32, "trust_remote_code": False}
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(name, **plain)
    if is_adapter(name_or_path):
        model = PeftModel.from_pretrained(model, name_or_path).merge_and_unload()
    return model


def export_model(name_or_path: str, folder: str, dtype: str = "float32") -> None:
    """Save a model as a plain checkpoint with its tokenizer; an adapter is merged into its base model.

    Args:
        dtype: Data type of the saved weights, by its name in torch.

    """
    model = merged(name_or_path)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_source(name_or_path), trust_remote_code=False)
    tokenizer.save_pretrained(folder)
