"""Report of boost_train.py --dry_run: first rows, number of updates, estimated memory, warnings.

python boost/boost_train.py --config configs/boost.yaml --model_name_or_path MODEL ... --dry_run
"""

import math
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from cocos.boost.trainer import BoostInputs, TokenizedRow
from cocos.config.trl_configs import BoostConfig
from cocos.planning.dry_run import passes_warning, warnings_text
from cocos.planning.memory import estimate, memory_text, model_text, run_model
from cocos.prompts import BEGIN, CORRECT

MOST_PASSES = 20  # over the rows


def boost_dry_run(args: BoostConfig, inputs: BoostInputs) -> str:
    """Check a Boost run without loading weights, and return the report.

    Raises:
        ValueError: The model or the adapter cannot be created.

    """
    tokenizer, rows, eval_rows, changed = inputs
    model, layout = run_model(args)
    lengths = sorted(len(row["input_ids"]) for row in rows + eval_rows)
    median, longest = lengths[len(lengths) // 2], lengths[-1]
    batch = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
    updates = args.max_steps if args.max_steps > 0 else math.ceil(args.num_train_epochs * len(rows) / batch)
    passes = updates * batch / len(rows)
    warnings = [changed, passes_warning(passes, MOST_PASSES)]
    if longest > (context := model.config.max_position_embeddings):
        warnings.append(f"a row has {longest} tokens, beyond the model's context of {context}")
    tokens = args.per_device_train_batch_size * longest
    memory = estimate(model, layout, longest, tokens, tokens)
    return "\n\n".join(
        [
            model_text(args.model_name_or_path, model, layout),
            f"data: {len(rows)} rows, {len(eval_rows)} for evaluation; {median} tokens (median), {longest} "
            "(longest)",
            *_first_rows_text(rows, tokenizer),
            f"training: {updates} updates of {batch} rows; {passes:.1f} passes over them",
            memory_text(memory, layout, longest),
            warnings_text(warnings),
        ]
    )


def _first_rows_text(rows: Sequence[TokenizedRow], tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Return the first row of turn 1 and the first of a later turn, each split into prompt and completion."""
    texts = []
    for kind, marker in (("turn 1", BEGIN), ("a later turn", CORRECT)):
        for row in rows:
            start = next(i for i, label in enumerate(row["labels"]) if label != -100)
            prompt, trained = (
                tokenizer.decode(ids, clean_up_tokenization_spaces=False)
                for ids in (row["input_ids"][:start], row["input_ids"][start:])
            )
            if prompt.rstrip().endswith(marker):
                texts.append(f"--- row of {kind}: not trained ---\n{prompt}\n--- trained ---\n{trained}\n---")
                break
    return texts
