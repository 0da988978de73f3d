"""Several training runs, one after another, in the processes that one launcher starts.

    torchrun --nproc_per_node 2 tests/support/parallel_run.py RUNS.json      # [["train.py", "--config", ...], ...]

The runs are those of users, but for the sampling: the n-th completion of a prompt is drawn with a seed made of the prompt
and n. Samples thus do not depend on the rank that draws them, and different numbers of ranks can be compared. The
log-probabilities of half of the completions are misstated, so that there is a gap between sampler and policy to measure.
A run whose name begins with "stopped" gets SIGTERM in a micro-batch, one whose name begins with "halted" while it samples.
"""

import hashlib
import json
import math
import os
import signal
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from accelerate import DistributedType, PartialState
from accelerate.state import GradientState
from torch.distributed.fsdp import FSDPModule

from cocos.boost import trainer as boost_trainer
from cocos.commands import boost, train
from cocos.config.ranks import num_processors
from cocos.generation import Progress
from cocos.training import trainer
from tests.support import deepspeed_without_spinning  # noqa: F401


class SeededGenerator:
    """A generator that replaces the seeds by seeds made of the prompts."""

    def __init__(self, generator):
        self.batch_size, self.is_collective = generator.batch_size, generator.is_collective
        self.start, self.extend, self._generator = generator.start, generator.extend, generator
        self.is_stopped = None

    def generate(self, prompts, temperature, seeds=None):
        seen = Counter()
        seeds = []
        for prompt in map(tuple, prompts):
            seen[prompt] += 1
            seeds.append(int.from_bytes(hashlib.sha256(repr((prompt, seen[prompt])).encode()).digest()[:4]))
        self._generator.is_stopped = self.is_stopped
        completions = self._generator.generate(prompts, temperature, seeds)
        return [misstated(c) if seed % 2 else c for seed, c in zip(seeds, completions, strict=True)]


def misstated(completion):
    """Return a completion that states half of the probability of each token; nothing if it states none."""
    logps = completion.engine_logps and tuple(logp - math.log(2) for logp in completion.engine_logps)
    return replace(completion, engine_logps=logps)


class Recorded:
    """Mixin for trainers that writes how the model was divided among the ranks to the file `layout`."""

    def __init__(self, *args, **options):
        if os.environ.get("ACCELERATE_USE_FSDP"):
            # Accelerate applies FSDP on GPUs only, but PyTorch's FSDP also works without one.
            PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU
        super().__init__(*args, **options)

    def train(self, *args, **options):
        super().train(*args, **options)
        wrapped = self.model_wrapped
        layout = type(wrapped).__name__
        if layout == "DeepSpeedEngine":
            layout = f"ZeRO-{wrapped.zero_optimization_stage()}"
        elif isinstance(wrapped, FSDPModule):
            layout = "FSDP2"
        Path(self.args.output_dir, "layout").write_text(layout)


class SeededTrainer(Recorded, trainer.CoCoSTrainer):
    """CoCoSTrainer that samples by prompt, and writes the prompts of its micro-batches, one file per rank."""

    def _prepare_inputs(self, batch):
        inputs = super()._prepare_inputs(batch)
        masks = inputs["prompt_mask"].bool()
        prompts = [ids[mask].tolist() for ids, mask in zip(inputs["prompt_ids"], masks, strict=True)]
        with Path(self.args.output_dir, f"micro_batches-{self.accelerator.process_index}").open("a") as file:
            print(json.dumps(prompts), file=file)
        if self._is_signalled("stopped"):  # in the first micro-batch of update 3
            os.kill(os.getpid(), signal.SIGTERM)
        return inputs

    def _is_signalled(self, name):
        """Whether this is the last rank in update 3 of a run whose name begins with these letters."""
        is_last_rank = self.accelerator.process_index == self.accelerator.num_processes - 1
        is_named = Path(self.args.output_dir).name.startswith(name)
        return is_named and is_last_rank and self.state.global_step == 2

    @contextmanager
    def generator(self):
        with super().generator() as generator:
            if self._is_signalled("halted"):
                sampled = []

                class Signalled(Progress):
                    def add(self, num_tokens, num_ended):  # each of its trajectories has three of turn 1
                        sampled.append(num_tokens)
                        if len(sampled) == 3:
                            os.kill(os.getpid(), signal.SIGTERM)

                generator.progress = Signalled()
            yield SeededGenerator(generator)


class RecordedBoostTrainer(Recorded, boost_trainer.BoostTrainer):
    pass


if __name__ == "__main__":
    torch.distributed.destroy_process_group = lambda group: None  # the next run needs the process group
    print(f"{num_processors()} processors for this rank", flush=True)
    trainer.CoCoSTrainer, boost_trainer.BoostTrainer = SeededTrainer, RecordedBoostTrainer
    with open(sys.argv[-1]) as runs:
        for script, *words in json.load(runs):
            sys.argv = [script, *words]
            try:
                {"train.py": train, "boost/boost_train.py": boost}[script].main()
            except SystemExit as stop:
                assert stop.code == 128 + signal.SIGTERM
                GradientState._reset_state()  # it remembers for all trainers that an accumulation is under way
