"""Inputs of a Boost run that are loaded before its model: the tokenizer and the tokenized rows."""

from functools import partial
from typing import NamedTuple

from transformers import PreTrainedTokenizerBase

from boost.boost_rows import TokenizedRow, load_tokenized
from cocos.config.trl_configs import BoostConfig
from cocos.generation.tokenizer import encode, load_tokenizer


class BoostInputs(NamedTuple):
    """Tokenizer and rows of a run of boost_train.py."""

    tokenizer: PreTrainedTokenizerBase
    rows: list[TokenizedRow]
    eval_rows: list[TokenizedRow]


def load_boost_inputs(args: BoostConfig) -> BoostInputs:
    """Load the inputs that the options name; without --eval_data, `eval_rows` is empty.

    Raises:
        ValueError: A data file or the tokenizer cannot be loaded, or a row is longer than --max_length.

    """
    tokenizer = load_tokenizer(args.model_name_or_path, args.model_revision, args.trust_remote_code)
    rows, eval_rows = (
        load_tokenized(path, partial(encode, tokenizer), args.max_length) if path else []
        for path in (args.train_data, args.eval_data)
    )
    return BoostInputs(tokenizer, rows, eval_rows)
