"""Stage 2: multi-turn RLOO with rewards from executed unit tests.

    cocos train --model_name_or_path MODEL --train_data train.jsonl --dev_data dev.jsonl --output_dir OUT
    deepspeed --num_gpus N train.py --deepspeed configs/deepspeed/zero2.json ...

With --dev_data, the checkpoint with the best greedy accuracy in the last turn is saved. --dry_run checks the
inputs, prints the first prompts, the number of updates and the estimated memory, and exits.
"""

import sys
from pathlib import Path


def main() -> None:
    """Load problems and model, train with CoCoSTrainer, save the model in output_dir."""
    from cocos.assembly.data import data_sha256, load_training_data
    from cocos.assembly.objective import own_reward
    from cocos.assembly.programs import open_executor
    from cocos.config.cocos_options import CoCoSOptions
    from cocos.config.ranks import is_main_process
    from cocos.training.preflight import checked_options

    options = checked_options(CoCoSOptions, __doc__)
    own_reward(options)  # a mistake in it is found here
    data = load_training_data(options)

    # These imports take seconds; --help and errors in options and data do not wait for them.
    from cocos.config.trl_configs import CoCoSConfig
    from cocos.extraction import EXTRACTION_VERSION
    from cocos.files.run_record import run_record
    from cocos.generation.tokenizer import load_tokenizer
    from cocos.planning.dry_run import dry_run, run_updates
    from cocos.planning.lengths import check_prompts, longest_transcript
    from cocos.training.changes import accepted_changes
    from cocos.training.model_card import ModelCard
    from cocos.training.resumable_trainer import run_training
    from cocos.training.start import check_start, full_options, starting_model
    from cocos.training.trainer import CoCoSTrainer

    args, checkpoint = full_options(CoCoSConfig, __doc__)
    tokenizer = load_tokenizer(
        args.model_name_or_path,
        args.model_revision,
        args.trust_remote_code,
        args.template_variables,
        args.chat_template,
    )
    problems = data.problems + data.dev_problems
    model = args.model_name_or_path, args.model_revision, args.trust_remote_code
    changed = check_prompts(problems, data.protocol, tokenizer, *model)
    if args.dry_run:
        if is_main_process():
            print(dry_run(args, data, tokenizer, changed))
        return
    hashes = data_sha256(args, args.train_data, args.dev_data)
    if checkpoint and is_main_process():  # before the model is loaded
        accepted_changes(args, run_record(args, data_sha256=hashes), Path(checkpoint).parent)
    if is_main_process():
        for note in filter(None, (changed, run_updates(args, len(data.prompts)).warning)):
            print(f"note: {note}", file=sys.stderr)
    check_start(args)
    with open_executor(args, problems, args.max_executor_wait_s) as executor:
        trainer = CoCoSTrainer(
            **starting_model(args),
            args=args,
            prompts=data.prompts,
            dev_problems=data.dev_problems,
            executor=executor,
            protocol=data.protocol,
            tokenizer=tokenizer,
            max_transcript=longest_transcript(args, data, tokenizer) if args.use_vllm else None,
        )
        card = ModelCard(
            stage="CoCoS",
            record=run_record(
                args,
                data_sha256=hashes,
                isolation=executor.isolation,
                packages=list(executor.packages),
                feedback=args.feedback,
                extraction_version=EXTRACTION_VERSION,
            ),
            num_rows={args.train_data: len(data.problems), args.dev_data: len(data.dev_problems)},
            first_message=data.protocol.first_turn(data.problems[0]),
            later_message=data.protocol.later_turn(),
            is_chat=data.protocol.is_chat,
            system_message=data.protocol.system,
        )
        run_training(trainer, card, checkpoint)
