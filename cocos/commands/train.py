"""Stage 2: multi-turn RLOO with rewards from executed unit tests.

    cocos train --model_name_or_path MODEL --train_data train.jsonl --dev_data dev.jsonl --output_dir OUT
    deepspeed --num_gpus N train.py --deepspeed configs/deepspeed/zero2.json ...

With --dev_data, the checkpoint with the best greedy accuracy in the last turn is saved. --dry_run checks the
inputs, prints the first prompts, the number of updates and the estimated memory, and exits.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cocos.assembly.data import TrainingData
    from cocos.config.trl_configs import CoCoSConfig
    from cocos.executor import Executor
    from cocos.training.model_card import ModelCard


def main() -> None:
    """Load problems and model, train with CoCoSTrainer, save the model in output_dir."""
    from cocos.assembly.data import load_training_data
    from cocos.assembly.objective import own_reward
    from cocos.config.cocos_options import CoCoSOptions
    from cocos.training.preflight import checked_options

    options = checked_options(CoCoSOptions, __doc__)
    own_reward(options)  # a mistake in it is found here
    data = load_training_data(options)

    # These imports take seconds; --help and errors in options and data do not wait for them.
    from cocos.config.trl_configs import CoCoSConfig
    from cocos.training.start import full_options

    train(data, *full_options(CoCoSConfig, __doc__))


def train(data: "TrainingData", args: "CoCoSConfig", checkpoint: str | None) -> None:
    """Train on the data, or print the report of --dry_run."""
    from cocos.assembly.data import data_sha256
    from cocos.assembly.programs import open_executor
    from cocos.config.ranks import is_main_process
    from cocos.files.run_record import run_record
    from cocos.generation.tokenizer import load_tokenizer
    from cocos.planning.dry_run import dry_run, run_updates
    from cocos.planning.lengths import check_prompts, longest_transcript
    from cocos.training.changes import accepted_changes
    from cocos.training.resumable_trainer import run_training
    from cocos.training.start import check_start, starting_model
    from cocos.training.trainer import CoCoSTrainer

    model = args.model_name_or_path, args.model_revision, args.trust_remote_code
    tokenizer = load_tokenizer(*model, args.template_variables, args.chat_template)
    problems = data.problems + data.dev_problems
    changed = check_prompts(problems, data.protocol, tokenizer, *model)
    if args.dry_run:
        if is_main_process():
            print(dry_run(args, data, tokenizer, changed))
        return
    hashes = data_sha256(args, args.train_data, args.dev_data)
    if checkpoint and is_main_process():  # before the model is loaded
        accepted_changes(args, run_record(args, data_sha256=hashes), Path(checkpoint).parent)
    notes = [changed, run_updates(args, len(data.prompts)).warning] if is_main_process() else []
    for note in filter(None, notes):
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
        run_training(trainer, model_card(args, data, executor, hashes), checkpoint)


def model_card(
    args: "CoCoSConfig", data: "TrainingData", executor: "Executor", hashes: dict[str, str]
) -> "ModelCard":
    """Return what the model's card says of the run."""
    from cocos.extraction import EXTRACTION_VERSION
    from cocos.files.run_record import run_record
    from cocos.training.model_card import ModelCard

    record = run_record(
        args,
        data_sha256=hashes,
        isolation=executor.isolation,
        packages=list(executor.packages),
        feedback=args.feedback,
        extraction_version=EXTRACTION_VERSION,
    )
    return ModelCard(
        stage="CoCoS",
        record=record,
        num_rows={args.train_data: len(data.problems), args.dev_data: len(data.dev_problems)},
        first_message=data.protocol.first_turn(data.problems[0]),
        later_message=data.protocol.later_turn(),
        is_chat=data.protocol.is_chat,
        system_message=data.protocol.system,
    )
