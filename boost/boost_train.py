"""Stage 1: teach a base model the two-turn format with supervised fine-tuning.

    python boost/boost_train.py --model_name_or_path MODEL --train_data rows.jsonl --eval_data dev.jsonl \\
        --output_dir OUT

Rows come from scripts/make_boost_data.py or from a file in the README's format. The loss is on completions
only; the checkpoint with the lowest eval loss is what is saved.
"""

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs from a clone

from datasets import Dataset
from transformers import PreTrainedTokenizerBase
from trl import ModelConfig, SFTTrainer, get_peft_config, get_quantization_config

from boost.boost_dry_run import report
from boost.data import load_tokenized
from cocos.config import BoostConfig, model_init_kwargs
from cocos.config.command_line import parse, run
from cocos.files.durable import save_json
from cocos.files.run_record import run_record, sha256
from cocos.generation.tokenizer import encode, load_tokenizer
from cocos.training.checkpoints import ResumableTrainer, StopOnSigterm, resume_point
from cocos.training.progress import show_lines


class BoostTrainer(ResumableTrainer, SFTTrainer):
    """TRL's SFTTrainer that can be stopped and resumed."""


def main() -> None:
    """Rows -> labelled token ids -> trl.SFTTrainer -> best checkpoint in output_dir."""
    args, model_args = parse((BoostConfig, ModelConfig), __doc__)
    checkpoint = resume_point(args.resume_from_checkpoint, args.output_dir)
    if args.dry_run:
        if args.process_index == 0:
            print(report(args, model_args))
        return
    tokenizer = load_tokenizer(
        model_args.model_name_or_path, model_args.model_revision, args.trust_remote_code
    )
    train = _dataset(args.train_data, tokenizer, args.max_length)
    evaluation = _dataset(args.eval_data, tokenizer, args.max_length) if args.eval_data else None
    args.model_init_kwargs = model_init_kwargs(args, model_args)
    trainer = BoostTrainer(
        model=model_args.model_name_or_path,
        args=args,
        train_dataset=train,
        eval_dataset=evaluation,
        processing_class=tokenizer,
        peft_config=get_peft_config(model_args),
        quantization_config=get_quantization_config(model_args),
        callbacks=[StopOnSigterm()],
    )
    show_lines(trainer)
    if trainer.is_world_process_zero():
        Path(args.output_dir).mkdir(parents=True, exist_ok=True)
        data = {path: sha256(path) for path in (args.train_data, args.eval_data) if path}
        save_json(run_record(args, model_args, data_sha256=data), Path(args.output_dir) / "run.json")
    trainer.train(resume_from_checkpoint=checkpoint)
    trainer.save_model()
    trainer.end()


def _dataset(path: str, tokenizer: PreTrainedTokenizerBase, max_length: int | None) -> Dataset:
    return Dataset.from_list(load_tokenized(path, partial(encode, tokenizer), max_length))


if __name__ == "__main__":
    run(main)
