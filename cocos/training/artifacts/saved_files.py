"""Files of a saved model or checkpoint: generation config, permissions, and the error of a full disk."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from cocos.generation.tokenizer import eos_token_ids

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
# torch and safetensors report a full disk without its error number.
DISK_FULL_WORDS = (
    *("No space left", "Disk quota exceeded"),
    *("PytorchStreamWriter failed", "inline_container.cc"),  # torch's writer of archives
)


def save_generation_config(
    folder: str | Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    stop_strings: list[str] | None,
) -> None:
    """Write a generation config with which `model.generate` decodes greedily and stops after an answer.

    The base model's sampling parameters are left out: the model was trained on unchanged probabilities.

    Args:
        folder: Folder of the saved model.
        model: The model; its end-of-sequence ids are kept.
        tokenizer: Its tokenizer.
        stop_strings: Texts that end an answer; None: only the end-of-sequence ids. `generate` needs
            `tokenizer=` if there are any.

    """
    eos_ids = sorted(eos_token_ids(model.generation_config, tokenizer))
    config = GenerationConfig(
        do_sample=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=eos_ids[0] if len(eos_ids) == 1 else eos_ids or None,
        pad_token_id=tokenizer.pad_token_id,
        stop_strings=stop_strings,
    )
    config.save_pretrained(folder)


def follow_umask(folder: str | Path) -> None:
    """Give weight files the permissions of other new files; safetensors writes them with mode 600."""
    mask = os.umask(0)
    os.umask(mask)
    for path in Path(folder).glob("*.safetensors"):
        path.chmod(0o666 & ~mask)


@contextmanager
def full_disk_named(folder: str | Path) -> Iterator[None]:
    """Raise OSError with the folder and a remedy if the disk is full inside the context.

    Args:
        folder: Folder that the context writes to.

    """
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        if not (getattr(error, "errno", None) in DISK_FULL or any(w in str(error) for w in DISK_FULL_WORDS)):
            raise
        raise OSError(
            f"{folder}: the disk is full, so this was not saved; free some space, then continue with "
            f"--resume_from_checkpoint last"
        ) from error
