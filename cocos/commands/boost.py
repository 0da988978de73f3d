"""Stage 1: teach a base model the two-turn format with supervised fine-tuning.

    cocos boost --model_name_or_path MODEL --train_data rows.jsonl --eval_data dev.jsonl --output_dir OUT
    deepspeed --num_gpus N boost/boost_train.py --deepspeed configs/deepspeed/zero2.json ...

Rows come from `cocos boost-data` or from a file in its format. The loss covers the completions
only. With --eval_data, the checkpoint with the lowest evaluation loss is saved. --dry_run checks the inputs,
prints the plan of the run and its estimated memory, and exits.
"""

import sys
from pathlib import Path


def main() -> None:
    """Load rows and model, train with BoostTrainer, save the model in output_dir."""
    from cocos.config.ranks import is_main_process
    from cocos.config.training_options import BoostOptions
    from cocos.training.preflight import checked_options

    checked_options(BoostOptions, __doc__)
    # These imports take seconds; --help and errors in options do not wait for them.
    from datasets import Dataset

    from cocos.boost.dry_run import boost_dry_run
    from cocos.boost.trainer import BoostTrainer, first_prompt, load_boost_inputs
    from cocos.config.trl_configs import BoostConfig
    from cocos.files.run_record import checksums, run_record
    from cocos.prompts import named_protocol
    from cocos.training.changes import accepted_changes
    from cocos.training.model_card import ModelCard
    from cocos.training.resumable_trainer import run_training
    from cocos.training.start import check_start, full_options, starting_model

    args, checkpoint = full_options(BoostConfig, __doc__)
    inputs = load_boost_inputs(args)
    if args.dry_run:
        if is_main_process():
            print(boost_dry_run(args, inputs))
        return
    if inputs.warning and is_main_process():
        print(f"warning: {inputs.warning}", file=sys.stderr)
    record = run_record(args, data_sha256=checksums((args.train_data, args.eval_data)))
    if checkpoint and is_main_process():  # before the model is loaded
        accepted_changes(args, record, Path(checkpoint).parent)
    check_start(args)
    trainer = BoostTrainer(
        **starting_model(args),
        args=args,
        train_dataset=Dataset.from_list(inputs.rows),
        eval_dataset=Dataset.from_list(inputs.eval_rows) if args.eval_data else None,
        processing_class=inputs.tokenizer,
    )
    card = ModelCard(
        stage="Boost",
        record=record,
        num_rows={args.train_data: len(inputs.rows), args.eval_data: len(inputs.eval_rows)},
        first_message=first_prompt(inputs),
        later_message=named_protocol("cocos").later_turn(),
    )
    run_training(trainer, card, checkpoint)
