"""Stage 1: teach a base model the two-turn format with supervised fine-tuning.

    python boost/boost_train.py --model_name_or_path MODEL --train_data rows.jsonl --eval_data dev.jsonl \\
        --output_dir OUT

Rows come from scripts/make_boost_data.py or from a file in its format. The loss covers the completions
only. With --eval_data, the checkpoint with the lowest evaluation loss is saved. --dry_run checks the inputs,
prints the plan of the run and its estimated memory and time, and exits.
"""

from cocos.entry_point import run_command


def main() -> None:
    """Load rows and model, train with BoostTrainer, save the model in output_dir."""
    from pathlib import Path

    from cocos.config.command_line import check_options, parse_options
    from cocos.config.ranks import is_main_process
    from cocos.config.training_options import BoostOptions
    from cocos.distributed import connect_deepspeed
    from cocos.files.run_record import check_output_folder
    from cocos.training.library_messages import silence_library_messages

    options = check_options(BoostOptions, __doc__)
    if is_main_process():
        check_output_folder(
            Path(options.output_dir),
            remedy="continue it with --resume_from_checkpoint last",
            is_resumed=options.resume_from_checkpoint is not None,
        )

    silence_library_messages()
    # These imports take seconds; --help and errors in options do not wait for them.
    from datasets import Dataset

    from boost.boost_dry_run import boost_dry_run
    from boost.boost_trainer import BoostTrainer, first_prompt, load_boost_inputs
    from cocos.config.trl_configs import BoostConfig
    from cocos.files.run_record import checksums, run_record
    from cocos.generation.checkpoint_files import check_checkpoint
    from cocos.prompts import protocol
    from cocos.training.checkpoints import find_checkpoint
    from cocos.training.model_card import ModelCard
    from cocos.training.resumable_trainer import run_training
    from cocos.training.start import check_loggers, starting_model, warn_about_unused_lora_options

    args = parse_options(BoostConfig, __doc__)
    if is_main_process():
        check_loggers(args.report_to)
        warn_about_unused_lora_options(args)
    checkpoint = find_checkpoint(args.resume_from_checkpoint, args.output_dir)
    inputs = load_boost_inputs(args)
    if args.dry_run:
        if is_main_process():
            print(boost_dry_run(args, inputs))
        return
    check_checkpoint(args.model_name_or_path, args.model_revision)
    connect_deepspeed(args.deepspeed, args.use_cpu)
    trainer = BoostTrainer(
        **starting_model(args),
        args=args,
        train_dataset=Dataset.from_list(inputs.rows),
        eval_dataset=Dataset.from_list(inputs.eval_rows) if args.eval_data else None,
        processing_class=inputs.tokenizer,
    )
    card = ModelCard(
        stage="Boost",
        record=run_record(args, data_sha256=checksums((args.train_data, args.eval_data))),
        num_rows={args.train_data: len(inputs.rows), args.eval_data: len(inputs.eval_rows)},
        first_message=first_prompt(inputs),
        later_message=protocol("cocos").later_turn(),
    )
    run_training(trainer, card, checkpoint)


if __name__ == "__main__":
    run_command(main)
