"""CoCoSTrainer: TRL's RLOOTrainer with multi-turn rollouts and a return per turn.

TRL provides the loss, the optimizer, ZeRO, FSDP, PEFT, checkpoints and loggers. CoCoSTrainer changes three
things: it plays trajectories of T turns for a batch of problems; it makes every trained turn one row (prompt
ids, sampled ids, advantage) for TRL's loss; and it evaluates by playing dev problems greedily.

Axes: B trajectories on this process, G per problem, T turns, K trained turns, R = B * K rows, P and C prompt
and completion tokens.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from accelerate.utils import gather_object
from datasets import Dataset
from torch.utils.data import Sampler
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase, TrainerControl
from trl import RLOOTrainer
from trl.models import unwrap_model_for_generation
from trl.trainer.utils import pad

from cocos.config.trl_configs import CoCoSConfig
from cocos.distributed import equal_share
from cocos.executor import Executor
from cocos.generation import Generator
from cocos.generation.huggingface import HuggingFaceGenerator
from cocos.generation.trl_engines import ContinuousBatches, VLLMRollouts
from cocos.metrics import correction_metrics
from cocos.problems import Problem
from cocos.prompts import PromptProtocol
from cocos.rewards import (
    Score,
    grouped_returns,
    row_advantages,
    trained_advantages,
    turn_reward,
    zero_spread,
)
from cocos.rollout import rollout
from cocos.training.artifacts.checkpoints import EpochSampler
from cocos.training.callbacks import LastStep, RunCounters, UpdateTime
from cocos.training.console.progress import example_text
from cocos.training.forward_passes import ForwardPasses
from cocos.training.monitor import (
    PhaseTimer,
    RunWarnings,
    batch_metrics,
    completions_table,
    hidden_gap,
    peak_memory_mb,
)
from cocos.training.resumable_trainer import ResumableTrainer
from cocos.training.sharded_weights import whole_weights
from cocos.training.shared_prefixes import SharedPrefixes
from cocos.trajectories import Trajectory, Turn, begin, check_infra_failures

logger = logging.getLogger(__name__)


class CoCoSTrainer(ForwardPasses, SharedPrefixes, ResumableTrainer, RLOOTrainer):
    """Multi-turn RLOO with a reward from executed tests (CoCoS, arXiv 2505.23060).

    Args:
        model: Checkpoint directory, hub id, or a loaded causal language model.
        args: Options of the run.
        prompts: Trajectories without turns to train on (`given_prompts`). Reference solutions are not used.
        dev_problems: Problems that `evaluate` plays greedily; may be empty if `args` requests no evaluation.
        executor: Runs the programs. The caller closes it.
        protocol: Prompt protocol of training and evaluation.
        tokenizer: A tokenizer with a pad token that pads on the left.
        **trainer_kwargs: Passed on to TRL (peft_config, quantization_config, callbacks, optimizers).

    Raises:
        ValueError: There are fewer problems than one batch needs.

    """

    args: CoCoSConfig
    control: TrainerControl
    _last_loaded_step: int
    _tag_names = ["trl", "rloo", "cocos"]
    _name = "CoCoS"

    def __init__(
        self,
        model: Any,
        args: CoCoSConfig,
        prompts: Sequence[Trajectory],
        executor: Executor,
        protocol: PromptProtocol,
        tokenizer: PreTrainedTokenizerBase,
        dev_problems: Sequence[Problem] = (),
        **trainer_kwargs: Any,
    ):
        problems_per_batch = args.generation_batch_size // args.num_generations
        if len(prompts) < problems_per_batch:
            raise ValueError(
                f"--train_data has {len(prompts)} problems, fewer than the {problems_per_batch} in a batch, "
                f"so there would be no update; lower --global_batch_size or raise --num_generations"
            )
        self.prompts = list(prompts)
        self.dev_problems = list(dev_problems)
        self.executor = executor
        self.protocol = protocol
        self.objective = args.objective
        self.rules = args.rules(temperatures=[args.temperature])
        self.run_warnings = RunWarnings(args.dead_batches)
        self.timer = PhaseTimer(executor)
        super().__init__(
            model=model,
            reward_funcs=[],
            args=args,
            train_dataset=_index(self.prompts),
            eval_dataset=_index(self.dev_problems) if self.dev_problems else None,
            processing_class=tokenizer,
            **trainer_kwargs,
        )
        self.shown_examples: list[str] = []  # of the last batch, as text
        self.num_shown = args.num_completions_to_print
        self.num_completions_to_print = -1  # TRL prints none; its table has nine columns
        self.add_callback(LastStep())
        self.add_callback(UpdateTime(self.timer, self.record))
        self.add_callback(RunCounters(self, self.run_warnings, executor))
        if args.credit == "last":
            logger.warning(
                "credit 'last': gamma has no effect, because siblings share the earlier turns, which cancel "
                "in the baseline"
            )

    # -- overridden methods of TRL --

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Play one trajectory per input and return its trained turns as rows for TRL's loss."""
        with self.timer.phase("rollout"):
            trajectories = self.sample_trajectories([self.prompts[example["index"]] for example in inputs])
        rows = self.rows(trajectories)
        with self.timer.phase("logprobs"):
            old_logps, kl_R = self.old_logps_and_kl(rows)
        kl_B_K = [
            [
                kl if turn.is_sampled else None
                for turn, kl in zip(self.row_turns(trajectory), kl_K, strict=True)
            ]
            for trajectory, kl_K in zip(trajectories, kl_R.view(len(trajectories), -1).tolist(), strict=True)
        ]
        # Every rank computes the rewards and advantages of all ranks, so one exchange is enough.
        gathered = gather_object(list(zip(trajectories, kl_B_K, strict=True)))
        all_trajectories = [trajectory for trajectory, _ in gathered]
        scores = [Score(self.rewards(trajectory), kl_K) for trajectory, kl_K in gathered]
        advantages_B_K = self.advantages(scores)
        self._log_batch(all_trajectories, scores, advantages_B_K)
        self.record(self.timer.metrics(trajectories))
        first = self.accelerator.process_index * len(inputs)
        local_B_K = advantages_B_K[first : first + len(inputs)]
        rows["advantages"] = torch.tensor(row_advantages(local_B_K), device=kl_R.device)  # (R,)
        return rows if old_logps is None else rows | {"old_logps": old_logps}

    def _get_train_sampler(self, dataset: Dataset | None = None) -> Sampler:
        """Return TRL's sampler in an order that depends only on seed and epoch, so resumed runs repeat it."""
        return EpochSampler(super()._get_train_sampler(dataset), lambda: int(self.state.epoch or 0))

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: list[str] | None = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Play the dev problems greedily, one trajectory each; log acc_t, delta, i2c, c2i under `eval_`."""
        self.model.eval()
        # Equally many problems per rank, because with sharded weights every forward pass needs all ranks.
        rank, num_ranks = self.accelerator.process_index, self.accelerator.num_processes
        share = begin(equal_share(self.dev_problems, rank, num_ranks))
        rules = replace(self.rules, temperatures=(0.0,))
        with self.generator() as generator:
            played = rollout(share, generator, self.executor, self.protocol, self.args.num_turns, rules)
        trajectories = gather_object(played)[: len(self.dev_problems)]
        check_infra_failures(trajectories, self.args.max_infra_share)
        metrics = {
            f"{metric_key_prefix}_{name}": estimate.value
            for name, estimate in correction_metrics(trajectories).items()
        }
        if (gap := hidden_gap(trajectories)) is not None:
            metrics[f"{metric_key_prefix}_hidden_gap"] = gap
            self.run_warnings.check_gap(gap)
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    # -- steps of a batch --

    def sample_trajectories(self, prompts: Sequence[Trajectory]) -> list[Trajectory]:
        """Sample one trajectory of T turns per entry. With credit `last`, siblings share turns 1..T-1."""
        num_turns, group_size = self.args.num_turns, self.args.num_generations
        rules = self.rules
        trajectories = [replace(prompt, sample=i % group_size) for i, prompt in enumerate(prompts)]
        with self.generator() as generator:
            if self.args.credit == "last" and num_turns > 1:
                shared = rollout(
                    trajectories[::group_size], generator, self.executor, self.protocol, num_turns - 1, rules
                )
                trajectories = [
                    replace(t, turns=shared[i // group_size].turns) for i, t in enumerate(trajectories)
                ]
            trajectories = rollout(trajectories, generator, self.executor, self.protocol, num_turns, rules)
        check_infra_failures(trajectories, self.args.max_infra_share)
        self._check_truncated(trajectories)
        return trajectories

    @contextmanager
    def generator(self) -> Iterator[Generator]:
        """Yield a generator that samples from the current policy.

        The policy is unwrapped from DDP, ZeRO or FSDP, or its weights are copied to vLLM.
        """
        if self.use_vllm:
            # TRL's own counter: vLLM needs new weights once per update, not once per generation.
            if self.state.global_step != self._last_loaded_step:
                self.vllm_generation.sync_weights()
                self._last_loaded_step = self.state.global_step
            yield VLLMRollouts(self.vllm_generation, self._tokenizer, self.eos_token_ids)
            return
        with (
            unwrap_model_for_generation(
                self.model_wrapped,
                self.accelerator,
                gather_deepspeed3_params=self.args.ds3_gather_for_generation,
                gradient_checkpointing_kwargs=self.args.gradient_checkpointing_kwargs,
            ) as model,
            torch.no_grad(),
            self._dist.summon_full_params(self.model_wrapped, recurse=False),
            whole_weights(self.model_wrapped, self.accelerator),
        ):
            length = self.args.max_completion_length
            if self.use_transformers_continuous_batching:
                yield ContinuousBatches(model, self._tokenizer, self.continuous_batching_config, length)
            else:
                yield HuggingFaceGenerator(model, self._tokenizer, length, self.args.rollout_batch_size)

    def row_turns(self, trajectory: Trajectory) -> list[Turn]:
        """Return the turns of a trajectory that have a row. Length K."""
        return [trajectory.turns[turn - 1] for turn in self.objective.trained_turns]

    def rows(self, trajectories: Sequence[Trajectory]) -> dict[str, torch.Tensor]:
        """Return one row per trained turn, trajectory by trajectory: prompt ids, then sampled ids.

        The row of a turn that was not sampled has one pad token as its prompt, and another one as its
        completion, which is masked: so no batch is without a column of completions.
        """
        turns = [turn for trajectory in trajectories for turn in self.row_turns(trajectory)]
        pad_id = self._tokenizer.pad_token_id
        prompts = [torch.tensor(turn.prompt_ids if turn.is_sampled else [pad_id]) for turn in turns]
        completions = [
            torch.tensor(turn.completion.token_ids if turn.is_sampled else [pad_id]) for turn in turns
        ]
        masks = [torch.full_like(ids, turn.is_sampled) for turn, ids in zip(turns, completions, strict=True)]

        def padded(ids: list[torch.Tensor], side: str, value: int) -> torch.Tensor:
            return pad(ids, value, side, self.pad_to_multiple_of).to(self.accelerator.device)

        # Masks come from lengths, not from pad ids: if pad and eos are one id, a sampled eos must be trained.
        return {
            "prompt_ids": padded(prompts, "left", pad_id),  # (R, P)
            "prompt_mask": padded([torch.ones_like(ids) for ids in prompts], "left", 0),  # (R, P)
            "completion_ids": padded(completions, "right", pad_id),  # (R, C)
            "completion_mask": padded(masks, "right", 0),  # (R, C)
        }

    def rewards(self, trajectory: Trajectory) -> list[float | None]:
        """Return r_1..r_T of a trajectory; None where the executor failed."""
        args = self.args
        num_unpaid = len(trajectory.problem.test_list) if args.reward_tests == "hidden" else 0
        return [
            turn_reward(turn.result, args.reward, args.reward_in_child, num_unpaid)
            for turn in trajectory.turns
        ]

    def advantages(self, scores: Sequence[Score]) -> list[list[float]]:
        """Return the advantages of all ranks' trajectories, shape (B, K), and log the share of equal groups.

        Args:
            scores: Scores of all ranks' trajectories. Siblings are consecutive.

        """
        returns_P_G_K = grouped_returns(scores, self.objective)
        zero_spread_K = zero_spread(returns_P_G_K)
        turns = self.objective.trained_turns
        self.record(
            {f"frac_reward_zero_std_t{t}": share for t, share in zip(turns, zero_spread_K, strict=True)}
        )
        self.run_warnings.check_spread(zero_spread_K)
        return trained_advantages(returns_P_G_K, scores)

    # -- logging --

    def record(self, metrics: dict[str, float]) -> None:
        """Add values to the metrics whose mean TRL logs over the logging interval."""
        for name, value in metrics.items():
            self._metrics["train"][name].append(value)

    def count_tokens(self, trajectories: Sequence[Trajectory]) -> None:
        """Update the totals of the run: tokens of all transcripts, and number of trajectories."""
        # The prompt of the last turn that was played contains all earlier turns.
        last = [[turn for turn in t.turns if not turn.is_carried][-1] for t in trajectories]
        self.state.num_input_tokens_seen += sum(len(t.prompt_ids) + len(t.completion.token_ids) for t in last)
        updates_per_generation = (
            self.args.steps_per_generation * self.num_iterations // self.args.gradient_accumulation_steps
        )
        generations = self.state.global_step // updates_per_generation + 1
        self._metrics["train"]["num_tokens"] = [self.state.num_input_tokens_seen]
        self._metrics["train"]["episodes"] = [generations * self.args.generation_batch_size]

    def _log_batch(
        self,
        trajectories: Sequence[Trajectory],
        scores: Sequence[Score],
        advantages_B_K: Sequence[Sequence[float]],
    ) -> None:
        """Log the metrics and the completions table of one batch of all ranks."""
        turns = self.objective.trained_turns
        self.record(batch_metrics(trajectories, scores, turns) | {"peak_memory_mb": peak_memory_mb()})
        if not self.args.reward_in_child:
            self.run_warnings.check_in_child(trajectories)
        self.count_tokens(trajectories)
        if not self.log_completions:
            return
        self._logs["prompt"].extend(self.protocol.first_turn(t.problem) for t in trajectories)
        self._logs["advantages"].extend(advantage_K[-1] for advantage_K in advantages_B_K)
        table = completions_table(trajectories, scores, advantages_B_K, turns)
        self._logs["completion"].extend(table.completions)
        for kind, columns in (("rewards", table.rewards), ("extra", table.extra)):
            for name, values in columns.items():
                self._logs[kind][name].extend(values)
        # Of different problems, unless all trajectories are requested.
        step = self.args.num_generations if self.num_shown else 1
        rows = list(zip(trajectories, scores, advantages_B_K, strict=True))[::step][: self.num_shown]
        self.shown_examples = [example_text(*row) for row in rows]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log metrics, and print the examples below those of an update."""
        super().log(logs, start_time)
        if "loss" in logs and self.is_world_process_zero():
            for example in self.shown_examples:
                tqdm.write(example)  # not print(), which would break the progress bar

    def _check_truncated(self, trajectories: Sequence[Trajectory]) -> None:
        truncated = [
            turn.completion.is_truncated for t in trajectories for turn in t.turns if turn.is_sampled
        ]
        if sum(truncated) > self.args.max_truncated_share * len(truncated):
            raise ValueError(
                f"{sum(truncated)} of {len(truncated)} completions were truncated at "
                f"{self.args.max_completion_length} tokens, more than --max_truncated_share "
                f"{self.args.max_truncated_share}; raise --max_completion_length, or train a Boost model "
                f"first, so that completions end with [DONE]"
            )


def _index(entries: Sequence[object]) -> Dataset:
    """Return a data set of indices. TRL makes batches of its rows."""
    return Dataset.from_dict({"index": range(len(entries))})
