"""CoCoSTrainer: TRL's RLOOTrainer with multi-turn rollouts and a return per turn.

TRL provides the loss, the optimizer, ZeRO, FSDP, PEFT, checkpoints and loggers. CoCoSTrainer changes three
things: it plays trajectories of T turns for a batch of problems; it makes every trained turn one row (prompt
ids, sampled ids, advantage) for TRL's loss; and it evaluates by playing dev problems greedily.

Axes: B trajectories on this process, G per problem, T turns, K trained turns, R = B * K rows, P and C prompt
and completion tokens.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from accelerate.utils import gather_object
from datasets import Dataset
from torch.utils.data import Sampler
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase, TrainerControl
from trl import RLOOTrainer
from trl.trainer.utils import pad

from cocos.config.trl_configs import CoCoSConfig
from cocos.distributed import equal_share
from cocos.executor import Executor
from cocos.generation.trl_engines import check_server
from cocos.metrics import correction_metrics
from cocos.problems import Problem
from cocos.prompts import PromptProtocol
from cocos.rewards import (
    Score,
    grouped_returns,
    row_advantages,
    trained_advantages,
    zero_spread,
)
from cocos.rollout import rollout
from cocos.training.callbacks import LastStep, RunCounters, UpdateTime
from cocos.training.checkpoints import EpochSampler
from cocos.training.console import example_text
from cocos.training.dynamic_sampling import Group, ProblemDraw
from cocos.training.monitor import (
    PhaseTimer,
    RunWarnings,
    batch_metrics,
    completions_table,
    hidden_gap,
    num_sampled_tokens,
    peak_memory_mb,
)
from cocos.training.resumable_trainer import ResumableTrainer
from cocos.training.rollouts import Rollouts
from cocos.training.row_logps import ForwardPasses
from cocos.training.tree_logps import SharedPrefixes
from cocos.trajectories import Trajectory, Turn, begin, check_infra_failures

logger = logging.getLogger(__name__)

NUM_LOGGED_EXAMPLES = 4  # per entry of log.jsonl


class CoCoSTrainer(Rollouts, ForwardPasses, SharedPrefixes, ResumableTrainer, RLOOTrainer):
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
        self.draw = ProblemDraw(len(self.prompts), args.seed)
        self.num_sampled_tokens = 0  # since step 0, of all ranks
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
        if self.use_vllm and self.vllm_mode == "server" and self.accelerator.is_main_process:
            check_server(self.vllm_generation)
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
            batch, played_here = self.sample_batch([example["index"] for example in inputs])
        first = self.accelerator.process_index * len(inputs)
        local = slice(first, first + len(inputs))
        trajectories = batch.trajectories[local]
        rows = self.rows(trajectories)
        with self.timer.phase("logprobs"):
            old_logps, kl_R, is_outlier_R = self.row_statistics(rows)
        local_kl_B_K = [
            [
                kl if turn.is_sampled else None
                for turn, kl in zip(self.row_turns(trajectory), kl_K, strict=True)
            ]
            for trajectory, kl_K in zip(trajectories, kl_R.view(len(trajectories), -1).tolist(), strict=True)
        ]
        # Every rank computes the advantages of all ranks.
        kl_B_K = gather_object(local_kl_B_K)
        rewards_B_T = [rewards_T for group in batch.groups for rewards_T in group.rewards_G_T]
        scores = [Score(rewards_T, kl_K) for rewards_T, kl_K in zip(rewards_B_T, kl_B_K, strict=True)]
        advantages_B_K = self.advantages(scores)
        self._log_batch(batch.trajectories, scores, advantages_B_K, batch.dropped)
        self.record(batch.metrics() | self.timer.metrics(played_here))
        local_B_K = advantages_B_K[local]
        advantages_R = torch.tensor(row_advantages(local_B_K), device=kl_R.device)
        rows["advantages"] = advantages_R.masked_fill(is_outlier_R, 0.0)
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

    def row_turns(self, trajectory: Trajectory) -> list[Turn]:
        """Return the turns of a trajectory that have a row. Length K."""
        return [trajectory.turns[turn - 1] for turn in self.objective.trained_turns]

    def rows(self, trajectories: Sequence[Trajectory]) -> dict[str, torch.Tensor]:
        """Return one row per trained turn, trajectory by trajectory: prompt ids, then sampled ids.

        The row of a turn that was not sampled has one pad token as its prompt, and another one as its
        completion, which is masked: so no batch is without a column of completions. With vLLM, `engine_logps`
        are its log-probabilities of the sampled ids, NaN where it stated none.
        """
        turns = [turn for trajectory in trajectories for turn in self.row_turns(trajectory)]
        pad_id = self._tokenizer.pad_token_id
        prompts = [torch.tensor(turn.prompt_ids if turn.is_sampled else [pad_id]) for turn in turns]
        completions = [
            torch.tensor(turn.completion.token_ids if turn.is_sampled else [pad_id]) for turn in turns
        ]
        masks = [torch.full_like(ids, turn.is_sampled) for turn, ids in zip(turns, completions, strict=True)]

        def padded(values: list[torch.Tensor], side: str, value: float) -> torch.Tensor:
            return pad(values, value, side, self.pad_to_multiple_of).to(self.accelerator.device)

        # Masks come from lengths, not from pad ids: if pad and eos are one id, a sampled eos must be trained.
        rows = {
            "prompt_ids": padded(prompts, "left", pad_id),  # (R, P)
            "prompt_mask": padded([torch.ones_like(ids) for ids in prompts], "left", 0),  # (R, P)
            "completion_ids": padded(completions, "right", pad_id),  # (R, C)
            "completion_mask": padded(masks, "right", 0),  # (R, C)
        }
        if self.use_vllm:
            stated = [
                turn.completion.engine_logps or (math.nan,) * len(ids)
                for turn, ids in zip(turns, completions, strict=True)
            ]
            logps = [torch.tensor(values, dtype=torch.float32) for values in stated]
            rows["engine_logps"] = padded(logps, "right", math.nan)  # (R, C)
        return rows

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
        """Update the totals of the run: tokens of all transcripts, sampled tokens, and trajectories."""
        # The prompt of the last turn that was played contains all earlier turns.
        last = [[turn for turn in t.turns if not turn.is_carried][-1] for t in trajectories]
        self.state.num_input_tokens_seen += sum(len(t.prompt_ids) + len(t.completion.token_ids) for t in last)
        sampled = num_sampled_tokens(trajectories, self.args.credit)
        self.num_sampled_tokens += sampled
        self.record({"sampled_tokens": sampled})
        self._metrics["train"]["sampled_tokens_total"] = [self.num_sampled_tokens]
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
        dropped: Sequence[Group] = (),
    ) -> None:
        """Log the metrics and the completions table of one batch of all ranks.

        Rewards, accuracies and tokens are those of all played trajectories: the trained ones are a selection
        in which right and wrong programs are mixed. KL and table are those of the trained trajectories.
        """
        turns = self.objective.trained_turns
        played = [*trajectories, *(trajectory for group in dropped for trajectory in group.trajectories)]
        played_scores = [
            *scores,
            *(Score(rewards_T, []) for group in dropped for rewards_T in group.rewards_G_T),
        ]
        self.record(batch_metrics(played, played_scores, turns) | {"peak_memory_mb": peak_memory_mb()})
        if not self.args.reward_in_child:
            self.run_warnings.check_in_child(played)
        self.count_tokens(played)
        rows = list(zip(trajectories, scores, advantages_B_K, strict=True))
        of_different_problems = rows[:: self.args.num_generations]
        self.last_examples = [example_text(*row) for row in of_different_problems[:NUM_LOGGED_EXAMPLES]]
        if not self.log_completions:
            return
        self._logs["prompt"].extend(self.protocol.first_turn(t.problem) for t in trajectories)
        self._logs["advantages"].extend(advantage_K[-1] for advantage_K in advantages_B_K)
        table = completions_table(trajectories, scores, advantages_B_K, turns)
        self._logs["completion"].extend(table.completions)
        for kind, columns in (("rewards", table.rewards), ("extra", table.extra)):
            for name, values in columns.items():
                self._logs[kind][name].extend(values)
        shown = rows if self.num_shown is None else of_different_problems[: self.num_shown]
        self.shown_examples = [example_text(*row) for row in shown]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log metrics, and print the examples below those of an update."""
        super().log(logs, start_time)
        if "loss" in logs and self.is_world_process_zero():
            for example in self.shown_examples:
                tqdm.write(example)  # not print(), which would break the progress bar


def _index(entries: Sequence[object]) -> Dataset:
    """Return a data set of indices. TRL makes batches of its rows."""
    return Dataset.from_dict({"index": range(len(entries))})
