"""Stage 2: multi-turn RLOO with a reward from executed unit tests.

    python train.py --model_name_or_path BOOST_MODEL --train_data train.jsonl --dev_data dev.jsonl \\
        --output_dir OUT

Config -> problems -> CoCoSTrainer -> save. With --dev_data the checkpoint with the best greedy acc@T is what
is saved. --dry_run says what a run would do and need, and stops.
"""

from pathlib import Path

from trl import ModelConfig, get_peft_config, get_quantization_config

from cocos.config import CoCoSConfig, longest_wait_s, model_init_kwargs, open_executor, prompt_protocol
from cocos.config.command_line import parse, run
from cocos.files.durable import save_json
from cocos.files.run_record import run_record, sha256
from cocos.generation.tokenizer import load_tokenizer
from cocos.planning.dry_run import report
from cocos.problems import load_problems
from cocos.training.checkpoints import StopOnSigterm, resume_point
from cocos.training.trainer import CoCoSTrainer


def main() -> None:
    """The story of a CoCoS run."""
    args, model_args = parse((CoCoSConfig, ModelConfig), __doc__)
    checkpoint = resume_point(args.resume_from_checkpoint, args.output_dir)
    if args.dry_run:
        if args.process_index == 0:
            print(report(args, model_args))
        return
    problems = load_problems(args.train_data)
    dev_problems = load_problems(args.dev_data) if args.dev_data else []
    protocol = prompt_protocol(args)
    tokenizer = load_tokenizer(
        model_args.model_name_or_path, model_args.model_revision, args.trust_remote_code
    )
    args.model_init_kwargs = model_init_kwargs(args, model_args)
    with open_executor(args, longest_wait_s(args)) as executor:
        trainer = CoCoSTrainer(
            model=model_args.model_name_or_path,
            args=args,
            problems=problems,
            dev_problems=dev_problems,
            executor=executor,
            protocol=protocol,
            tokenizer=tokenizer,
            peft_config=get_peft_config(model_args),
            quantization_config=get_quantization_config(model_args),
            callbacks=[StopOnSigterm()],
        )
        if trainer.is_world_process_zero():
            data = {
                path: sha256(path) for path in (args.train_data, args.dev_data, args.few_shot_data) if path
            }
            facts = run_record(
                args, model_args, data_sha256=data, isolation=executor.isolation, feedback="none"
            )
            Path(args.output_dir).mkdir(parents=True, exist_ok=True)
            save_json(facts, Path(args.output_dir) / "run.json")
            print(
                f"executor isolation: {executor.isolation}\n"
                f"first prompt:\n{protocol.first_turn(problems[0])}",
                flush=True,
            )
        trainer.train(resume_from_checkpoint=checkpoint)
        trainer.save_model()
        trainer.end()


if __name__ == "__main__":
    run(main)
