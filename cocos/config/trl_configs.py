"""Options of both training stages as TRL's trainers read them: ours, TRL's and those of transformers.

Imports torch, which takes seconds; `cocos_options.py` and `training_options.py` have our options alone.
"""

import logging
import os
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any

import torch
from trl import ModelConfig, RLOOConfig, SFTConfig

from cocos.config.cocos_options import CoCoSOptions
from cocos.config.option import default_values, option
from cocos.config.ranks import is_main_process, num_ranks
from cocos.config.schedule import new_schedule
from cocos.config.training_options import BoostOptions

logger = logging.getLogger(__name__)

UNTRUNCATED = {"top_p": 1.0, "top_k": 0, "min_p": None, "repetition_penalty": 1.0}
# Of 4 updates at the default learning rate, the toy model's weights keep 6 % in bfloat16, 100 % in float32.
HALF_WEIGHTS = (
    "stores the trained weights without a float32 copy: an update below 1/256 of a weight is lost, so that "
    "hardly anything is learnt; leave --dtype out (--bf16 true still computes in bfloat16), train an adapter "
    "(--use_peft true), or start with deepspeed"
)
WITHOUT_VLLM = (
    "use_vllm: vLLM is not installed, so transformers samples, which takes several times as long on a GPU; "
    "install it with pip install -c constraints.txt -e '.[vllm]', or give --use_vllm false"
)
# TRL options for rewards, advantages and generation, which CoCoSTrainer replaces.
WITHOUT_EFFECT = {
    "normalize_advantages": False,
    "reward_clip_range": None,
    "reward_weights": None,
    "mask_truncated_completions": False,
    "cache_implementation": None,
    "transformers_continuous_batching_config": None,
}
CONTINUOUS_BATCHING = (
    "cannot stop at [DONE], so completions run on to --max_completion_length; "
    "leave it out, or give --use_vllm true"
)
# Options that training cannot have, and why.
REFUSED = {
    "use_transformers_continuous_batching": CONTINUOUS_BATCHING,
    "use_transformers_paged": CONTINUOUS_BATCHING,
    "torch_compile": "gives a model without the cache that sampling needs; leave it out",
    "vllm_enable_sleep_mode": "drops the engine's weights and cache after every turn, although the next "
    "turn needs them; leave it out and lower --vllm_gpu_memory_utilization",
    "sync_ref_model": "changes the reference model, but checkpoints do not contain it, so a resumed run "
    "would differ from an uninterrupted one; leave it out",
}
# Options of transformers and TRL that results depend on, besides those that are declared with a role.
INHERITED = (
    *("lr_scheduler_kwargs", "warmup_steps", "optim", "optim_args", "optim_target_modules", "max_grad_norm"),
    *("weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon", "label_smoothing_factor", "fp16"),
    *("gradient_accumulation_steps", "data_seed", "shuffle_dataset", "neftune_noise_alpha", "use_vllm"),
    *("num_iterations", "steps_per_generation", "epsilon", "epsilon_high"),  # of train.py
    *("packing", "padding_free", "completion_only_loss", "loss_type", "truncation_mode"),  # of boost_train.py
    *(field.name for field in fields(ModelConfig)),
)


@dataclass
class BoostConfig(BoostOptions, ModelConfig, SFTConfig):
    """Options of boost/boost_train.py with those of TRL's SFTConfig and ModelConfig."""

    def __post_init__(self) -> None:
        BoostOptions.__post_init__(self)
        if self.eval_data:
            _keep_best_checkpoint(self, "eval_loss", greater_is_better=False)
        _derive_values(self)
        ModelConfig.__post_init__(self)
        SFTConfig.__post_init__(self)
        _set_model_init_kwargs(self)
        _check_schedule(self)


@dataclass
class CoCoSConfig(CoCoSOptions, ModelConfig, RLOOConfig):
    """Options of train.py with those of TRL's RLOOConfig and ModelConfig."""

    disable_dropout: bool = option(
        "update",
        True,
        "Turn off dropout, also LoRA's: it adds noise to the ratio of new to old probabilities.",
    )
    num_generations_eval: int | None = option("run", 1, "Greedy trajectories per dev problem; leave it at 1.")

    def __post_init__(self) -> None:
        CoCoSOptions.__post_init__(self)
        self._check_inherited_options()
        _fall_back_without_vllm(self)
        if self.turn_betas is not None:
            self.beta = max(self.turn_betas)  # RLOOTrainer loads a reference model only if beta is not 0
        if self.dev_data:
            _keep_best_checkpoint(self, f"eval_acc_t{self.num_turns}", greater_is_better=True)
        _derive_values(self)
        self._check_groups()
        ModelConfig.__post_init__(self)
        RLOOConfig.__post_init__(self)
        _set_model_init_kwargs(self)
        _check_schedule(self)

    @property
    def max_executor_wait_s(self) -> float | None:
        """Longest time in seconds that a program may wait for a worker; None with a single rank.

        This is half of the communication timeout of the ranks. A slow executor thus ends the run with its
        own error message before the communication times out.
        """
        return self.ddp_timeout / 2 if num_ranks() > 1 else None

    def _check_groups(self) -> None:
        """Check that batches consist of whole groups, before TRL does with names that nobody typed."""
        per_step = self.per_device_train_batch_size * num_ranks()
        per_update = per_step * self.gradient_accumulation_steps
        batch = self.generation_batch_size or per_step * (self.steps_per_generation or 0) or per_update
        if batch % per_update:
            name = "generation_batch_size" if self.generation_batch_size else "steps_per_generation"
            raise ValueError(
                f"--{name} {getattr(self, name)} gives batches of {batch} trajectories, no multiple of the "
                f"{per_update} of an update, so batches would be sampled in the middle of one; leave it out"
            )
        if batch % self.num_generations:
            raise ValueError(
                f"--global_batch_size: {batch} trajectories are not divisible by --num_generations "
                f"{self.num_generations}; change one of them"
            )
        if self.credit == "last" and batch // num_ranks() % self.num_generations:
            raise ValueError(
                f"--credit last needs whole groups on a device: {batch // num_ranks()} trajectories "
                f"(--global_batch_size by processes) are not divisible by --num_generations "
                f"{self.num_generations}; change one of them"
            )

    def _check_inherited_options(self) -> None:
        for name, neutral in UNTRUNCATED.items():
            if getattr(self, name) != neutral:
                raise ValueError(
                    f"--{name} is {getattr(self, name)}, but training must sample from the whole "
                    "distribution, because the loss uses its log-probabilities; leave it at "
                    f"{neutral} and use --temperature"
                )
        for name, neutral in WITHOUT_EFFECT.items():
            if getattr(self, name) != neutral:
                raise ValueError(
                    f"--{name} has no effect, because CoCoSTrainer replaces TRL's rewards, advantages and "
                    "generation; leave it out"
                )
        for name, reason in REFUSED.items():
            if getattr(self, name):
                raise ValueError(f"--{name} {reason}")


def _fall_back_without_vllm(args: CoCoSConfig) -> None:
    """Sample with transformers if vLLM is not installed, and say what that costs."""
    if args.use_vllm and find_spec("vllm") is None:
        args.use_vllm = False
        if is_main_process():
            logger.warning(WITHOUT_VLLM)


def _derive_values(args: BoostConfig | CoCoSConfig) -> None:
    """Set device, precision, accumulation and number of updates, without connecting to other processes."""
    if args.enable_jit_checkpoint:
        raise ValueError(
            "--enable_jit_checkpoint is not needed, because on SIGTERM and Ctrl-C a run always saves its "
            "last whole update; leave it out"
        )
    if args.dtype in ("bfloat16", "float16") and not args.use_peft and not args.deepspeed:
        raise ValueError(f"--dtype {args.dtype} {HALF_WEIGHTS}")
    # Without an explicit use_cpu, accelerate does not connect the ranks of a machine without GPUs.
    args.use_cpu = args.use_cpu or not torch.accelerator.is_available()
    args.dataloader_pin_memory = args.dataloader_pin_memory and not args.use_cpu
    if args.bf16 is None:
        # Emulated bfloat16 (T4, V100) is many times slower than float32.
        has_gpu = not args.use_cpu and torch.cuda.is_available()
        has_bf16 = has_gpu and torch.cuda.is_bf16_supported(including_emulation=False)
        args.bf16 = has_bf16 and not args.fp16
    if args.global_batch_size is not None:
        batch_size = args.per_device_train_batch_size * num_ranks()
        args.gradient_accumulation_steps = args.global_batch_size // batch_size
    if args.hub_token:
        # transformers saves the options beside every checkpoint (training_args.bin), and uploads them.
        os.environ["HF_TOKEN"], args.hub_token = args.hub_token, None
    if args.num_train_epochs > 0:
        args.max_steps = -1  # otherwise transformers prefers max_steps


def _keep_best_checkpoint(args: BoostConfig | CoCoSConfig, metric: str, greater_is_better: bool) -> None:
    """Evaluate during training, and load the checkpoint with the best value of `metric` at its end."""
    defaults = default_values(type(args))
    if args.eval_steps == defaults["eval_steps"] and args.save_steps != defaults["save_steps"]:
        args.eval_steps = args.save_steps  # an evaluation at every save, which nobody has to type
    steps = args.eval_steps or args.logging_steps
    is_whole = steps >= 1 and args.save_steps >= 1
    if (steps < 1) != (args.save_steps < 1) or (is_whole and args.save_steps % steps):
        raise ValueError(
            f"--save_steps {args.save_steps} is no multiple of --eval_steps {steps}: the best checkpoint "
            "needs an evaluation at every save; give both in updates, or both as shares below 1"
        )
    args.eval_strategy = args.save_strategy = "steps"
    args.load_best_model_at_end = True
    args.metric_for_best_model = metric
    args.greater_is_better = greater_is_better


def _set_model_init_kwargs(args: BoostConfig | CoCoSConfig) -> None:
    """Add the options of the model to the arguments of `from_pretrained`; explicit arguments win."""
    chosen: dict[str, Any] = {
        "revision": args.model_revision,
        "attn_implementation": args.attn_implementation,
        "dtype": args.dtype,
    }
    args.model_init_kwargs = chosen | (args.model_init_kwargs or {})


def _check_schedule(args: BoostConfig | CoCoSConfig) -> None:
    """Create the schedule; with --num_train_epochs, whose updates are not known yet, the trainer does."""
    if args.max_steps > 0:
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=args.learning_rate)
        new_schedule(args, optimizer, args.max_steps)
