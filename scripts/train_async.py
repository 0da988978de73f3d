"""Train while vLLM servers sample, with TRL's AsyncGRPOTrainer: for many machines. Experimental.

    VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --weight-transfer-config '{"backend": "nccl"}' \\
        --logprobs-mode processed_logprobs --port 8000                                           # machine 1
    accelerate launch --config_file configs/accelerate/fsdp2.yaml --num_processes 8 scripts/train_async.py \\
        --server http://machine1:8000 --config configs/cocos_qwen2.5-1.5b.yaml ...               # machine 2

Options are those of train.py, as far as the async trainer has them. cocos/training/async_worker.py says what
is different, docs/scaling.md when it is worth it.
"""

import argparse
import sys

from accelerate import PartialState
from datasets import Dataset
from transformers import AutoModelForCausalLM, GenerationConfig
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer

from cocos.assembly import load_training_data, open_executor
from cocos.config.command_line import parse_options
from cocos.config.trl_configs import CoCoSConfig
from cocos.entry_point import run_command
from cocos.generation.tokenizer import eos_token_ids, load_tokenizer
from cocos.training.async_worker import (
    RolloutWorker,
    TokenServer,
    answers_required,
    reference_logps,
    use_torch_attention,
)

# Options of CoCoSConfig that mean the same in AsyncGRPOConfig.
SHARED = (
    *(
        "output_dir",
        "learning_rate",
        "lr_scheduler_type",
        "warmup_steps",
        "max_steps",
        "max_grad_norm",
        "seed",
    ),
    *(
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "gradient_checkpointing",
        "bf16",
        "use_cpu",
    ),
    *("logging_steps", "save_steps", "save_strategy", "report_to", "disable_tqdm", "num_generations"),
    *("temperature", "max_completion_length", "epsilon"),
)


def async_config(args: CoCoSConfig, server: str, max_staleness: int, token_budget: int) -> AsyncGRPOConfig:
    """Return the async trainer's options: those that it shares with ours, and its own."""
    shared = {name: getattr(args, name) for name in SHARED}
    own = {
        "vllm_server_base_url": server,
        "max_staleness": max_staleness,
        "token_budget": token_budget,
        # TRL counts rows, ours are trajectories.
        "gradient_accumulation_steps": args.gradient_accumulation_steps * args.num_turns,
    }
    return AsyncGRPOConfig(**shared | own)


def main() -> None:
    """Connect worker, server and trainer; train, and save the model."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--server", required=True, help="address of the vLLM server, without /v1")
    parser.add_argument("--max_staleness", type=int, default=3, help="updates after which a row is dropped")
    parser.add_argument(
        "--token_budget", type=int, default=0, help="tokens of a micro-batch; 0: its rows count"
    )
    parser.add_argument("--groups_in_flight", type=int, default=16, help="groups that are played together")
    own, others = parser.parse_known_args()
    args = parse_options(CoCoSConfig, __doc__, [*others, "--use_vllm", "False"])
    data = load_training_data(args)
    tokenizer = load_tokenizer(args.model_name_or_path, args.model_revision, args.trust_remote_code)
    reference = None
    if args.beta and PartialState().is_main_process:
        model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path, dtype="bfloat16")
        reference = reference_logps(model.eval().to(PartialState().device), args.temperature)
    eos_ids = eos_token_ids(GenerationConfig.from_pretrained(args.model_name_or_path), tokenizer)
    sampler = TokenServer(own.server, args.model_name_or_path, tokenizer, eos_ids, args.max_completion_length)
    with (
        open_executor(args, data.problems, args.max_executor_wait_s) as executor,
        answers_required(own.server),
    ):
        worker = RolloutWorker(
            args,
            data.prompts,
            executor,
            data.protocol,
            sampler,
            reference,
            own.groups_in_flight,
            seed=args.seed,
        )
        trainer = AsyncGRPOTrainer(
            model=args.model_name_or_path,
            args=async_config(args, own.server, own.max_staleness, own.token_budget),
            train_dataset=Dataset.from_dict({"prompt": [problem.text for problem in data.problems]}),
            processing_class=tokenizer,
            rollout_worker=worker,
        )
        use_torch_attention()
        trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
        trainer.save_model()


if __name__ == "__main__":
    sys.exit(run_command(main))
