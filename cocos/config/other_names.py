"""Names that other trainers and evaluators give to options, and what they are called here."""

from collections.abc import Collection

# The first of several that the command has.
OTHER_NAMES = {
    "learning_rate": ("lr", "actor_lr", "peak_lr"),
    "max_steps": ("steps", "num_steps", "iters", "max_iters", "num_iters", "max_train_steps", "total_steps"),
    "num_train_epochs": ("epochs", "num_epochs", "n_epochs", "total_epochs", "max_epochs"),
    "global_batch_size batch_size": ("batch_size", "train_batch_size", "bs", "rollout_batch_size"),
    "model_name_or_path": ("model", "base_model", "model_name", "model_path", "pretrained", "checkpoint"),
    "train_data test_data": ("data", "dataset", "dataset_name", "dataset_path", "data_path", "input",
                             "train_file", "train_files", "prompt_data"),
    "test_data": ("tasks", "task", "test_file", "benchmark", "eval_data", "dev_data", "problems"),
    "dev_data eval_data": ("val_data", "validation_data", "eval_data", "dev_data", "eval_file", "val_file",
                           "dev", "val", "eval"),
    "output_dir output": ("output", "out", "out_dir", "output_path", "save_dir", "save_path", "output_dir"),
    "resume_from_checkpoint": ("resume", "resume_from", "continue", "load_checkpoint"),
    "max_completion_length max_length": ("max_new_tokens", "max_tokens", "max_seq_length", "max_gen_toks"),
    "num_generations num_samples": ("n", "k", "group_size", "rollout_n", "n_samples", "num_samples",
                                    "num_return_sequences", "n_samples_per_prompt", "num_generations"),
    "num_turns": ("turns", "max_turns", "n_turns", "rounds", "num_rounds", "max_attempts", "attempts"),
    "temperature": ("temp", "t"),
    "beta": ("kl_coef", "kl_coeff", "kl_beta", "init_kl_coef", "kl_loss_coef", "kl"),
    "use_peft": ("lora", "use_lora", "peft", "qlora"),
    "lora_r": ("lora_rank", "rank", "r"),
    "report_to": ("wandb", "logger", "use_wandb", "log_with", "tensorboard"),
    "generator use_vllm": ("engine", "backend", "vllm", "api"),
    "base_url": ("url", "api_base", "endpoint", "host", "server"),
    "api_key_env": ("api_key", "key", "openai_api_key"),
    "executor_workers": ("workers", "num_workers", "n_workers", "num_proc"),
    "program_timeout_s": ("timeout", "time_limit", "timeout_s"),
    "limit": ("num_problems", "max_samples", "max_examples", "num_examples", "n_problems"),
    "dtype": ("precision", "torch_dtype", "bf16", "fp16"),
}  # fmt: skip


def name_here(name: str, known: Collection[str]) -> str | None:
    """Return the option of a command that another program calls `name`; "" if the command has none for it.

    None: no program calls an option so. Example: `lr` -> `learning_rate`, if that is known.
    """
    meant = [options.split() for options, others in OTHER_NAMES.items() if name in others]
    return next((option for options in meant for option in options if option in known), "" if meant else None)
