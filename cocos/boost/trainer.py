"""Inputs and trainer of the Boost stage: the tokenizer, the tokenized rows, and TRL's SFTTrainer."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from transformers import PreTrainedTokenizerBase
from trl import SFTTrainer

from cocos.boost.rows import TokenizedRow, load_rows, load_tokenized
from cocos.config.trl_configs import BoostConfig
from cocos.generation.round_trip import Text, text_warning
from cocos.generation.tokenizer import encode, load_tokenizer
from cocos.prompts import BEGIN
from cocos.training.resumable_trainer import ResumableTrainer
from cocos.training.trl_patches import TRL_WIDTH, patch_trl


class BoostTrainer(ResumableTrainer, SFTTrainer):
    """TRL's SFTTrainer that can be stopped and resumed."""

    def __init__(self, **trainer_kwargs: Any) -> None:
        super().__init__(**trainer_kwargs)
        vocab_size = self.model.config.get_text_config().vocab_size
        if vocab_size > TRL_WIDTH:  # a smaller one is a single tile, which costs little
            patch_trl()


class BoostInputs(NamedTuple):
    """Tokenizer and rows of a run of boost_train.py."""

    tokenizer: PreTrainedTokenizerBase
    rows: list[TokenizedRow]
    eval_rows: list[TokenizedRow]
    warning: str  # about rows that the tokenizer changes; "" for none


def load_boost_inputs(args: BoostConfig) -> BoostInputs:
    """Load the inputs that the options name; without --eval_data, `eval_rows` is empty.

    Raises:
        ValueError: A data file or the model's files cannot be read, a row is longer than --max_length, or see
            `text_warning`.

    """
    tokenizer = load_tokenizer(args.model_name_or_path, args.model_revision, args.trust_remote_code)
    paths = args.train_data, args.eval_data
    rows, eval_rows = (
        load_tokenized(path, partial(encode, tokenizer), args.max_length) if path else [] for path in paths
    )
    texts = (
        Text(f"row {number} of {path}", text, _decoded(tokenizer, encode(tokenizer, text, is_start=False)))
        for path in filter(None, paths)
        for number, row in enumerate(load_rows(path), start=1)
        for text in [row.prompt + row.completion]
    )
    return BoostInputs(tokenizer, rows, eval_rows, text_warning(tokenizer, texts))


def _decoded(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))


def first_prompt(inputs: BoostInputs) -> str:
    """Return the text of the first prompt of turn 1, or of any turn if there is none of turn 1."""
    prompts = (
        inputs.tokenizer.decode(
            [i for i, label in zip(row["input_ids"], row["labels"], strict=True) if label == -100],
            skip_special_tokens=True,
            clean_up_tokenization_spaces=False,
        )
        for row in inputs.rows
    )
    first = next(prompts)
    return (
        first
        if first.rstrip().endswith(BEGIN)
        else next((prompt for prompt in prompts if prompt.rstrip().endswith(BEGIN)), first)
    )
