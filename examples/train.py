"""CoCoSTrainer on problems of your own.

    python examples/train.py MODEL problems.jsonl OUTPUT

Needs the extra `train`. `cocos train` does the same, with checks, a clock, resuming and a model card.
"""

import sys

from cocos.config.trl_configs import CoCoSConfig
from cocos.executor import Executor
from cocos.generation.tokenizer import load_tokenizer
from cocos.problems import load_problems
from cocos.prompts import named_protocol
from cocos.training.trainer import CoCoSTrainer
from cocos.trajectories import begin

if __name__ == "__main__":
    model, path, output = sys.argv[1:]
    args = CoCoSConfig(
        output_dir=output,
        credit="turn",
        num_generations=4,
        global_batch_size=16,
        per_device_train_batch_size=16,
        max_completion_length=40,
        beta=0.0,
        max_steps=2,
        save_strategy="no",
        report_to="none",
    )
    with Executor() as executor:
        trainer = CoCoSTrainer(
            model=model,
            args=args,
            prompts=begin(load_problems(path)),
            dev_problems=[],
            executor=executor,
            protocol=named_protocol("cocos"),
            tokenizer=load_tokenizer(model),
        )
        trainer.train()
        trainer.save_model()
