"""What a Boost run would do, without its weights: the first row of each kind, steps, memory.

python boost/boost_train.py --config configs/boost_qwen2.5-1.5b.yaml --dry_run
"""

import math
from collections.abc import Sequence

from transformers import AutoConfig, PreTrainedTokenizerBase
from trl import ModelConfig, get_peft_config

from boost.data import load_tokenized
from cocos.config import BoostConfig
from cocos.generation.tokenizer import encode, load_tokenizer
from cocos.planning.dry_run import memory_text, model_text, warnings_text
from cocos.planning.memory import Load
from cocos.planning.run_sizes import model_shape, run_setting
from cocos.planning.schedule import A10, A100, training_seconds
from cocos.prompts import BEGIN, CORRECT

Row = dict[str, list[int]]


def report(args: BoostConfig, model_args: ModelConfig) -> str:
    """All that can be known of a Boost run before its weights are loaded.

    Raises:
        ValueError: What would stop the run before its first step: rows, model, tokenizer or adapter.

    """
    name, revision = model_args.model_name_or_path, model_args.model_revision
    tokenizer = load_tokenizer(name, revision, args.trust_remote_code)
    config = AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=args.trust_remote_code)
    shape = model_shape(config, get_peft_config(model_args), args.trust_remote_code)
    setting = run_setting(args, model_args, config, has_reference=False)

    def rows_of(path: str) -> list[Row]:
        return load_tokenized(path, lambda text, start: encode(tokenizer, text, start), args.max_length)

    rows = rows_of(args.train_data)
    dev_rows = rows_of(args.eval_data) if args.eval_data else []
    lengths = sorted(len(row["input_ids"]) for row in rows + dev_rows)
    batch = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
    updates = args.max_steps if args.max_steps > 0 else math.ceil(args.num_train_epochs * len(rows) / batch)
    load = Load(
        rollout_rows=0,
        scoring_rows=0,
        update_rows=args.per_device_train_batch_size,
        prompt=0,
        answer=lengths[-1],
    )
    tokens = sum(len(row["input_ids"]) for row in rows) / len(rows) * batch / args.world_size
    times = ", ".join(
        f"{args.world_size} x {card.name}: {training_seconds(shape, setting, card, tokens):.1f}"
        for card in (A10, A100)
    )
    warnings = [f"a row has {lengths[-1]} tokens, beyond the model's context of {shape.context}"]
    return "\n\n".join(
        [
            model_text(name, shape, setting),
            f"data: {len(rows)} rows, {len(dev_rows)} for dev; {lengths[len(lengths) // 2]} tokens (median), "
            f"{lengths[-1]} (longest)",
            *_first_rows(rows, tokenizer),
            f"steps: {updates} updates of {batch} rows; {updates * batch / len(rows):.1f} passes over them",
            memory_text(shape, setting, load),
            f"seconds per update, estimated for cards from their data sheets: {times}",
            warnings_text(warnings if lengths[-1] > shape.context else []),
        ]
    )


def _first_rows(rows: Sequence[Row], tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """The first row of turn 1 and of a later turn, what is trained apart from what is not."""
    shown = []
    for kind, marker in (("turn 1", BEGIN), ("a later turn", CORRECT)):
        for row in rows:
            first = next(i for i, label in enumerate(row["labels"]) if label != -100)
            prompt, trained = (
                tokenizer.decode(ids, clean_up_tokenization_spaces=False)
                for ids in (row["input_ids"][:first], row["input_ids"][first:])
            )
            if prompt.rstrip().endswith(marker):
                shown.append(f"--- row of {kind}: not trained ---\n{prompt}\n--- trained ---\n{trained}\n---")
                break
    return shown
