"""Stage 2: multi-turn RLOO with rewards from executed unit tests.

    python train.py --model_name_or_path MODEL --train_data train.jsonl --dev_data dev.jsonl --output_dir OUT

With --dev_data, the checkpoint with the best greedy accuracy in the last turn is saved. --dry_run checks the
inputs, prints the plan of the run and its estimated memory and time, and exits.
"""

from cocos.entry_point import run_command


def main() -> None:
    """Load problems and model, train with CoCoSTrainer, save the model in output_dir."""
    from pathlib import Path

    from cocos.assembly import data_sha256, load_training_data, open_executor
    from cocos.config.cocos_options import CoCoSOptions
    from cocos.config.command_line import check_options, parse_options
    from cocos.config.ranks import is_main_process
    from cocos.distributed import connect_deepspeed
    from cocos.files.run_record import check_output_folder
    from cocos.training.library_messages import silence_library_messages

    options = check_options(CoCoSOptions, __doc__)
    if is_main_process():
        check_output_folder(
            Path(options.output_dir),
            remedy="continue it with --resume_from_checkpoint last",
            is_resumed=options.resume_from_checkpoint is not None,
        )

    data = load_training_data(options)

    silence_library_messages()
    # These imports take seconds; --help and errors in options and data do not wait for them.
    from cocos.config.trl_configs import CoCoSConfig
    from cocos.files.run_record import run_record
    from cocos.generation.checkpoint_files import check_checkpoint
    from cocos.generation.tokenizer import load_tokenizer
    from cocos.planning.dry_run import dry_run
    from cocos.training.checkpoints import find_checkpoint
    from cocos.training.model_card import ModelCard
    from cocos.training.resumable_trainer import run_training
    from cocos.training.start import check_loggers, starting_model, warn_about_unused_lora_options
    from cocos.training.trainer import CoCoSTrainer

    args = parse_options(CoCoSConfig, __doc__)
    if is_main_process():
        check_loggers(args.report_to)
        warn_about_unused_lora_options(args)
    checkpoint = find_checkpoint(args.resume_from_checkpoint, args.output_dir)
    tokenizer = load_tokenizer(args.model_name_or_path, args.model_revision, args.trust_remote_code)
    if args.dry_run:
        if is_main_process():
            print(dry_run(args, data, tokenizer))
        return
    check_checkpoint(args.model_name_or_path, args.model_revision)
    connect_deepspeed(args.deepspeed, args.use_cpu)
    with open_executor(args, data.problems + data.dev_problems, args.max_executor_wait_s) as executor:
        trainer = CoCoSTrainer(
            **starting_model(args),
            args=args,
            prompts=data.prompts,
            dev_problems=data.dev_problems,
            executor=executor,
            protocol=data.protocol,
            tokenizer=tokenizer,
        )
        card = ModelCard(
            stage="CoCoS",
            record=run_record(
                args,
                data_sha256=data_sha256(args, args.train_data, args.dev_data),
                isolation=executor.isolation,
                packages=list(executor.packages),
                feedback=args.feedback,
            ),
            num_rows={args.train_data: len(data.problems), args.dev_data: len(data.dev_problems)},
            first_message=data.protocol.first_turn(data.problems[0]),
            later_message=data.protocol.later_turn(),
            is_chat=data.protocol.is_chat,
        )
        run_training(trainer, card, checkpoint)


if __name__ == "__main__":
    run_command(main)
