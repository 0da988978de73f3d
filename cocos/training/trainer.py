"""CoCoSTrainer: TRL's RLOOTrainer with multi-turn rollouts and a return per turn.

TRL provides the loss, the optimizer, ZeRO, FSDP, PEFT, checkpoints and loggers. CoCoSTrainer changes four
things: it plays trajectories of T turns for a batch of problems (`rollouts.py`); it makes every trained turn
one row (prompt ids, sampled ids, advantage) for TRL's loss, without passes that another pass replaces
(`row_logps.py`); it computes tokens that rows share once (`tree_logps.py`); and it evaluates by playing dev
problems greedily. Every override of TRL stands in this class, those of transformers in ResumableTrainer.

Axes: B trajectories on this process, G per problem, T turns, K trained turns, R = B * K rows, P and C prompt
and completion tokens.
"""

import logging
import math
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from accelerate.utils import gather_object
from datasets import Dataset
from torch import nn
from torch.utils.data import Sampler
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase, TrainerControl, set_seed
from trl import RLOOTrainer
from trl.models import unwrap_model_for_generation
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import pad, split_tensor_dict, use_adapter

from cocos.assembly.objective import make_objective
from cocos.config.trl_configs import CoCoSConfig
from cocos.executor import Executor
from cocos.generation import Generator
from cocos.generation.huggingface import HuggingFaceGenerator
from cocos.generation.trl_vllm import VLLMRollouts, check_server, sync_weights, with_room_for
from cocos.problems import Problem
from cocos.prompts import PromptProtocol
from cocos.rewards import Objective, Score, grouped_returns, row_advantages, trained_advantages, zero_spread
from cocos.training.callbacks import LastStep, RunCounters
from cocos.training.checkpoints import EpochSampler
from cocos.training.collapse import CollapseWarning
from cocos.training.console import example_text
from cocos.training.dynamic_sampling import Batch
from cocos.training.monitor import (
    DEAD,
    DEAD_REMEDY,
    RunWarnings,
    batch_metrics,
    hidden_gap,
    num_sampled_tokens,
    trajectory_metrics,
    verdicts_text,
)
from cocos.training.resumable_trainer import BatchRecord, ResumableTrainer
from cocos.training.rollouts import RolloutPlayer, unchanged_base, whole_weights
from cocos.training.row_logps import (
    KL_EVERY,
    MAX_WEIGHT,
    EngineGap,
    RowStatistics,
    divergence,
    engine_gap,
    row_statistics,
)
from cocos.training.tree_attention import attend_along_trees
from cocos.training.tree_logps import Rows, TreeLogps
from cocos.training.trl_patches import patch_trl
from cocos.training.update_timer import UpdateTimer
from cocos.trajectories import Trajectory, Turn

logger = logging.getLogger(__name__)

NUM_LOGGED_EXAMPLES = 4  # per entry of log.jsonl
USUAL_DEAD_SHARE = 0.25  # of the updates; with more, the end of a run says what to do
Prompt = tuple[int, ...]  # token ids


class ScoredRows(NamedTuple):
    """Rows of this rank with what the passes before the update found."""

    rows: dict[str, torch.Tensor]
    statistics: RowStatistics
    kl_B_K: list[list[float | None]]  # None for turns that were not sampled


class MicroBatch(NamedTuple):
    """Tensors that the pass of the loss reads of its rows, and those of TRL's loss, which it completes."""

    inputs: dict[str, torch.Tensor]
    mask: torch.Tensor  # of completion tokens. Shape (R, C).
    engine_logps: torch.Tensor | None  # of the sampled ids, if they are to be compared. Shape (R, C).
    token_weights: torch.Tensor | None  # of the gradient of every token. Shape (R, C).


class CoCoSTrainer(ResumableTrainer, RLOOTrainer):
    """Multi-turn RLOO with a reward from executed tests (CoCoS, arXiv 2505.23060).

    Args:
        model: Checkpoint directory, hub id, or a loaded causal language model.
        args: Options of the run.
        prompts: Trajectories without turns to train on (`given_prompts`). Reference solutions are not used.
        dev_problems: Problems that `evaluate` plays greedily; may be empty if `args` requests no evaluation.
        executor: Runs the programs. The caller closes it.
        protocol: Prompt protocol of training and evaluation.
        tokenizer: A tokenizer with a pad token that pads on the left.
        max_transcript: Tokens of the longest transcript; None: not known. By default vLLM's context.
        **trainer_kwargs: Passed on to TRL (peft_config, quantization_config, callbacks, optimizers).

    Raises:
        ValueError: There are no prompts.

    """

    args: CoCoSConfig
    control: TrainerControl
    _tag_names = ["trl", "rloo", "cocos"]
    _name = "CoCoS"
    _buffered_inputs: list[dict[str, torch.Tensor]] | None
    _last_loaded_step: int

    def __init__(
        self,
        model: Any,
        args: CoCoSConfig,
        prompts: Sequence[Trajectory],
        executor: Executor,
        protocol: PromptProtocol,
        tokenizer: PreTrainedTokenizerBase,
        dev_problems: Sequence[Problem] = (),
        max_transcript: int | None = None,
        **trainer_kwargs: Any,
    ):
        self.prompts, self.dev_problems = _of_whole_batches(prompts, args), list(dev_problems)
        self.protocol = protocol
        self.objective = make_objective(args)
        self.num_sampled_tokens = 0  # since step 0, of all ranks
        self.run_warnings = RunWarnings()
        self.timer = UpdateTimer(executor, self.record)
        self.entropies: dict[str, tuple[float, float]] = {}  # since the last log: their sum, number of tokens
        args = with_room_for(max_transcript, args)
        super().__init__(
            model=model,
            reward_funcs=[],
            args=args,
            train_dataset=_index(self.prompts),
            eval_dataset=_index(self.dev_problems) if self.dev_problems else None,
            processing_class=tokenizer,
            **trainer_kwargs,
        )
        patch_trl()
        self._prepare_vllm()
        self.player = self._new_player(executor)
        config, num_checked = self.model.config.get_text_config(), 2 * len(self.objective.trained_turns)
        self.tree_logps = TreeLogps(config, self.accelerator, self.timer.clocks, num_checked)
        self.accelerator.backward = self.timer.clocks.part("backward")(self.accelerator.backward)
        for policy in filter(None, (self.model, self.ref_model)):
            attend_along_trees(self.accelerator.unwrap_model(policy))
        self.num_completions_to_print = 0  # of TRL, which would print them a second time
        for callback in (LastStep(), self.timer, RunCounters(self, executor), CollapseWarning(self)):
            self.add_callback(callback)
        _warn_about(args, self.objective)

    def _prepare_vllm(self) -> None:
        """Check vLLM's server, or undo what an engine in this process has done to its random state."""
        if self.use_vllm and self.vllm_mode == "server" and self.accelerator.is_main_process:
            check_server(self.vllm_generation)
        if self.use_vllm and self.vllm_mode == "colocate":
            # vLLM has reset the process's random state with a seed that TRL makes of the rank alone.
            set_seed(self.args.seed + self.accelerator.process_index // self.args.vllm_tensor_parallel_size)

    def _new_player(self, executor: Executor) -> RolloutPlayer:
        return RolloutPlayer(
            self.args,
            self.prompts,
            executor,
            self.protocol,
            open_generator=lambda: self.generator(),
            seed=self.args.seed,
            rank=self.accelerator.process_index,
            num_ranks=self.accelerator.num_processes,
            is_stopped=lambda: self.stop_on_signal is not None and self.stop_on_signal.has_signal,
            clocks=self.timer.clocks,
        )

    # -- overridden methods of TRL --

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        """Return the next micro-batch, of equally many rows on every rank, as TRL's metrics require.

        TRL shuffles the rows. Here they keep the order of the sampler, in which siblings are neighbours, so
        that a micro-batch of a multiple of `num_generations` trajectories consists of whole groups.
        """
        if not self.model.training:
            return super()._prepare_inputs(generation_batch)
        steps = self.args.steps_per_generation
        if self._step % (steps * self.num_iterations) == 0 or self._buffered_inputs is None:
            rows = self._generate_and_score_completions(generation_batch)
            self._buffered_inputs = split_tensor_dict(rows, steps)
        return self._buffered_inputs[self._step % steps]

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Play one trajectory per input and return its trained turns as rows for TRL's loss."""
        with self.timer.clocks.part("rollout"):
            indices = [example["index"] for example in inputs]
            batch, played_here, scored = self.player.sample_batch(indices, meanwhile=self._score_rows)
        first = self.accelerator.process_index * len(inputs)
        local = slice(first, first + len(inputs))
        scored = scored or self._score_rows(batch.trajectories[local])
        rows, (old_logps, _, gap), local_kl_B_K = scored
        # Every rank computes the advantages of all ranks.
        rewards_B_T = [rewards_T for group in batch.groups for rewards_T in group.rewards_G_T]
        scores = [Score(*pair) for pair in zip(rewards_B_T, gather_object(local_kl_B_K), strict=True)]
        states_P_G_K = self.states(batch.trajectories)
        advantages_B_K = self.advantages(scores, states_P_G_K)
        self._check_gradient(scores, states_P_G_K)
        self._log_batch(batch, scores, advantages_B_K)
        times = self.timer.metrics(played_here) | {"time/hidden_s": self.player.hidden_s}
        times["tokens_per_s"] = sum(gather_object([times["tokens_per_s"]]))  # of all ranks
        self.record(batch.metrics() | times)
        weights_R = row_advantages(advantages_B_K[local])
        rows["advantages"] = torch.tensor(weights_R, device=self.accelerator.device)
        if gap is not None:
            del rows["engine_logps"]  # measured
            if self.use_vllm:
                rows["token_weights"] = gap.weights_R_C
        return rows if old_logps is None else rows | {"old_logps": old_logps}

    def _score_rows(self, trajectories: Sequence[Trajectory]) -> ScoredRows:
        """Make the passes of a batch that need no rewards. The programs' results are not used."""
        with self.timer.clocks.part("logprobs"):
            rows = self.rows(trajectories)
            statistics = self.row_statistics(rows)
            kl_R = statistics.kl_R_C.sum(1)
            kl_B_K = self._kl_of_sampled_turns(trajectories, kl_R)  # waits for the GPU
        return ScoredRows(rows, statistics, kl_B_K)

    def _compute_loss(self, model: nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return TRL's loss; without `old_logps`, the loss's own log-probabilities take their place.

        TRL reads `old_logps` after it has called `_get_per_token_logps_and_entropies`, which fills them in.
        """
        inputs = dict(inputs)
        optional = inputs.get("engine_logps"), inputs.get("token_weights")
        self._micro_batch = MicroBatch(inputs, inputs["completion_mask"], *optional)
        with self.timer.clocks.part("forward"):
            return super()._compute_loss(model, inputs)

    def _get_per_token_logps_and_entropies(
        self,
        model: nn.Module,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **multimodal: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Return log p and, if requested, the entropy of every completion token, over trees if possible."""
        rows = Rows(input_ids, attention_mask, logits_to_keep)
        plain = partial(super()._get_per_token_logps_and_entropies, model)
        result: tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]
        if (
            self.args.share_prefixes
            and not compute_aux_loss
            and self.tree_logps.check(model, rows, lambda some: plain(*some)[0])
        ):
            result = (*self.tree_logps(model, rows, batch_size, compute_entropy), None)
            if torch.is_grad_enabled():
                self.record({"packing_ratio": self.tree_logps.packing_ratio})
        else:
            result = plain(*rows, batch_size, compute_entropy, compute_aux_loss, **multimodal)
        if torch.is_grad_enabled():
            result = (self._finish_loss_pass(*result[:2]), *result[1:])
        return result

    def _get_train_sampler(self, dataset: Dataset | None = None) -> Sampler:
        """Return TRL's sampler in an order that depends only on seed and epoch, so resumed runs repeat it."""
        return EpochSampler(super()._get_train_sampler(dataset), lambda: int(self.state.epoch or 0))

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: list[str] | None = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Play the dev problems greedily, one trajectory each; log acc_t, delta, i2c, c2i under `eval_`."""
        self.model.eval()
        trajectories = self.player.play_greedily(self.dev_problems)
        measured = trajectory_metrics(trajectories).items()
        metrics = {f"{metric_key_prefix}_{name}": value for name, value in measured}
        if (gap := hidden_gap(trajectories)) is not None:
            metrics[f"{metric_key_prefix}_hidden_gap"] = gap
            self.run_warnings.check_gap(gap)
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log metrics, and print the examples below those of an update."""
        if self.model.training:  # not an evaluation
            for name, (total, count) in self.entropies.items():
                # TRL's mean of the micro-batches' means depends on how the rows are divided among them.
                self._metrics["train"][name] = [total / count]
            self.entropies.clear()
        super().log(logs, start_time)
        if "loss" in logs and self.is_world_process_zero():
            for example in self.last_batch.shown:
                tqdm.write(example)  # not print(), which would break the progress bar

    def remarks(self) -> list[str]:
        """Say why the run has ended early, that it is a control, and how many updates learnt nothing."""
        remarks = super().remarks()
        if self.args.reward == "random":
            remarks.append("a control: every program earned 0 or 1 by chance (--reward random)")
        if (placebo := self.args.placebo) != "none":
            remarks.append(f"a control: prompts had a placebo for failed tests (--placebo {placebo})")
        num_updates = self.state.global_step
        num_dead = min(num_updates, self.run_warnings.total_dead * self.updates_per_generation)
        if not num_dead:
            return remarks
        effect = ""
        if num_dead == num_updates:
            effect = (
                f": only the KL divergence (--beta {self.beta:g}) changed the model"
                if self.beta
                else ": the model is the one that the run started from"
            )
        remedy = f"; {DEAD_REMEDY}" * (num_dead > USUAL_DEAD_SHARE * num_updates)
        counted = f"{num_dead} of {num_updates} updates learnt nothing from rewards, because {DEAD}"
        return [*remarks, f"{counted}{effect}{remedy}"]

    def _finish_loss_pass(self, logps_R_C: torch.Tensor, entropies_R_C: torch.Tensor | None) -> torch.Tensor:
        """Log what the pass of the loss found, fill in `old_logps`, and weight each token's gradient."""
        batch = self._micro_batch
        self._record_entropies(entropies_R_C, batch.mask)
        fixed_R_C = logps_R_C.detach()
        if batch.engine_logps is not None:
            self._log_gap(engine_gap(fixed_R_C, batch.engine_logps, batch.mask), batch.mask)
        batch.inputs.setdefault("old_logps", (fixed_R_C * batch.mask).sum(1))
        if batch.token_weights is None:
            return logps_R_C
        # The value stays, and with it the ratio of the loss.
        return fixed_R_C + batch.token_weights * (logps_R_C - fixed_R_C)

    # -- the policy --

    @contextmanager
    def generator(self) -> Iterator[Generator]:
        """Yield a generator that samples from the current policy.

        The policy is unwrapped from DDP, ZeRO or FSDP, or its weights are copied to vLLM.
        """
        if self.use_vllm:
            # TRL's own counter: vLLM needs new weights once per update, not once per generation.
            if self.state.global_step != self._last_loaded_step:
                with unchanged_base(self.accelerator.unwrap_model(self.model)):
                    sync_weights(self.vllm_generation)
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
            yield HuggingFaceGenerator(model, self._tokenizer, length, self.args.rollout_batch_size)

    @property
    def updates_per_generation(self) -> int:
        """Return the number of updates that a batch is used for; with one, every ratio is 1."""
        passes = self.args.steps_per_generation * self.num_iterations
        return int(passes // self.args.gradient_accumulation_steps)

    @property
    def measures_kl(self) -> bool:
        """Return True if the coming update has a KL penalty, or its KL to the start is to be logged."""
        has_start = hasattr(self.accelerator.unwrap_model(self.model), "peft_config")  # without the adapter
        return bool(self.beta) or (has_start and self.state.global_step % KL_EVERY == 0)

    def row_statistics(self, rows: dict[str, torch.Tensor]) -> RowStatistics:
        """Make the passes of a batch before its update; log the KL and the gap to the engine if measured."""
        measures_kl = self.measures_kl
        with (
            torch.no_grad(),
            disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs),
        ):
            found = row_statistics(
                rows,
                policy=lambda: self.row_logps(self.model, rows),
                reference=(lambda: self._reference_logps(rows)) if measures_kl else None,
                needs_old_logps=self.updates_per_generation > 1,
                needs_gap=self.use_vllm,
            )
        if measures_kl:
            self._log_kl(found.kl_R_C, rows["completion_mask"])
        if found.gap is not None:
            self._log_gap(found.gap, rows["completion_mask"])
        return found

    def row_logps(self, model: nn.Module, rows: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return log p of every completion token at the sampling temperature. Shape (R, C)."""
        logps, _, _ = self._get_per_token_logps_and_entropies(
            model,
            torch.cat([rows["prompt_ids"], rows["completion_ids"]], dim=1),
            torch.cat([rows["prompt_mask"], rows["completion_mask"]], dim=1),
            logits_to_keep=rows["completion_ids"].size(1),
            batch_size=self.args.rollout_batch_size,
        )
        return logps.float()

    def _reference_logps(self, rows: dict[str, torch.Tensor]) -> torch.Tensor:
        if self.ref_model is not None:
            return self.row_logps(self.ref_model, rows)
        # LoRA: the reference is the same model without the trained adapter.
        unwrapped = self.accelerator.unwrap_model(self.model)
        with use_adapter(unwrapped, adapter_name="ref" if "ref" in unwrapped.peft_config else None):
            return self.row_logps(self.model, rows)

    # -- steps of a batch --

    def row_turns(self, trajectory: Trajectory) -> list[Turn]:
        """Return the turns of a trajectory that have a row. Length K."""
        return [trajectory.turns[turn - 1] for turn in self.objective.trained_turns]

    def rows(self, trajectories: Sequence[Trajectory]) -> dict[str, torch.Tensor]:
        """Return one row per trained turn, trajectory by trajectory: prompt ids, then sampled ids.

        The row of a turn that was not sampled has one pad token as its prompt, and another one as its
        completion, which is masked: so no batch is without a column of completions. `engine_logps` are the
        engine's log-probabilities of the sampled ids, NaN where it stated none.
        """
        turns = [turn for trajectory in trajectories for turn in self.row_turns(trajectory)]
        pad_id = self._tokenizer.pad_token_id
        prompts = [torch.tensor(turn.prompt_ids if turn.is_sampled else [pad_id]) for turn in turns]
        sampled = [turn.completion.token_ids if turn.is_sampled else [pad_id] for turn in turns]
        completions = [torch.tensor(ids, dtype=torch.long) for ids in sampled]  # () would be of float32
        masks = [torch.full_like(ids, turn.is_sampled) for turn, ids in zip(turns, completions, strict=True)]

        def padded(values: list[torch.Tensor], side: str, value: float) -> torch.Tensor:
            return pad(values, value, side, self.pad_to_multiple_of).to(self.accelerator.device)

        pairs = zip(turns, completions, strict=True)
        stated = [turn.completion.engine_logps or (math.nan,) * len(ids) for turn, ids in pairs]
        engine_logps = [torch.tensor(values, dtype=torch.float32) for values in stated]
        # Masks come from lengths, not from pad ids: if pad and eos are one id, a sampled eos must be trained.
        return {
            "prompt_ids": padded(prompts, "left", pad_id),  # (R, P)
            "prompt_mask": padded([torch.ones_like(ids) for ids in prompts], "left", 0),  # (R, P)
            "completion_ids": padded(completions, "right", pad_id),  # (R, C)
            "completion_mask": padded(masks, "right", 0),  # (R, C)
            "engine_logps": padded(engine_logps, "right", math.nan),  # (R, C)
        }

    def _kl_of_sampled_turns(
        self, trajectories: Sequence[Trajectory], kl_R: torch.Tensor
    ) -> list[list[float | None]]:
        """Return the KL of every trained turn, None for those that were not sampled. Shape (B, K)."""
        kl_B_K = kl_R.view(len(trajectories), -1).tolist()
        turns_B_K = map(self.row_turns, trajectories)
        pairs_B = (zip(turns_K, kl_K, strict=True) for turns_K, kl_K in zip(turns_B_K, kl_B_K, strict=True))
        return [[kl if turn.is_sampled else None for turn, kl in pairs] for pairs in pairs_B]

    def states(self, trajectories: Sequence[Trajectory]) -> list[list[list[Prompt | None]]] | None:
        """Return the exact prompt of every trained turn, None for those not sampled. Shape (P, G, K).

        None: siblings are compared whatever their states are, see `Carry.states`.
        """
        turns_B_K = map(self.row_turns, trajectories)
        states_B_K = [[turn.prompt_ids if turn.is_sampled else None for turn in turns] for turns in turns_B_K]
        size = self.args.num_generations
        states = [states_B_K[start : start + size] for start in range(0, len(states_B_K), size)]
        return self.player.rules.carry.states(states)

    def advantages(
        self, scores: Sequence[Score], states_P_G_K: Sequence[Sequence[Sequence[Prompt | None]]] | None = None
    ) -> list[list[float]]:
        """Return the advantages of all ranks' trajectories, shape (B, K), and log the share of equal groups.

        Args:
            scores: Scores of all ranks' trajectories. Siblings are consecutive.
            states_P_G_K: See `leave_one_out`.

        """
        returns_P_G_K = grouped_returns(scores, self.objective)
        turns = self.objective.trained_turns
        shares = zip(turns, zero_spread(returns_P_G_K), strict=True)
        self.record({f"frac_reward_zero_std_t{t}": share for t, share in shares})
        for k, turn in enumerate(turns):
            known = [g for group in returns_P_G_K for returns_K in group if (g := returns_K[k]) is not None]
            if known:
                self.record({f"return_t{turn}_std": statistics.pstdev(known)})
        return trained_advantages(returns_P_G_K, scores, states_P_G_K)

    def _check_gradient(
        self, scores: Sequence[Score], states_P_G_K: Sequence[Sequence[Sequence[Prompt | None]]] | None
    ) -> None:
        """Log whether the rewards of a batch give no gradient, whatever the KL penalties give."""
        no_kl = ([None if kl is None else 0.0 for kl in score.kl_K] for score in scores)
        paid = [Score(score.rewards_T, kl_K) for score, kl_K in zip(scores, no_kl, strict=True)]
        advantages_B_K = trained_advantages(grouped_returns(paid, self.objective), paid, states_P_G_K)
        is_dead = all(abs(advantage) < 1e-9 for advantage_K in advantages_B_K for advantage in advantage_K)
        self.record({"frac_batches_dead": float(is_dead)})
        self.run_warnings.check_gradient(is_dead)

    # -- logging --

    def record(self, metrics: dict[str, float]) -> None:
        """Add values to the metrics whose mean TRL logs over the logging interval."""
        for name, value in metrics.items():
            self._metrics["train"][name].append(value)

    def count_tokens(self, trajectories: Sequence[Trajectory]) -> None:
        """Update the totals of the run: tokens of all transcripts, sampled tokens, and trajectories."""
        carry = self.player.rules.carry
        played = [carry.covering([turn for turn in t.turns if not turn.is_carried]) for t in trajectories]
        self.state.num_input_tokens_seen += sum(
            len(turn.prompt_ids) + len(turn.completion.token_ids) for turns in played for turn in turns
        )
        sampled = num_sampled_tokens(trajectories, self.args.credit)
        self.num_sampled_tokens += sampled
        self.record({"sampled_tokens": sampled})
        self._metrics["train"]["sampled_tokens_total"] = [self.num_sampled_tokens]
        generations = self.state.global_step // self.updates_per_generation + 1
        self._metrics["train"]["num_tokens"] = [self.state.num_input_tokens_seen]
        self._metrics["train"]["episodes"] = [generations * self.args.generation_batch_size]

    def _log_kl(self, kl_R_C: torch.Tensor, mask: torch.Tensor) -> None:
        """Log the KL of all ranks' rows: k1 summed over the completions of a turn, and k3 of a token."""
        turns = self.objective.trained_turns
        of_rows = torch.stack([kl_R_C.sum(1).double(), mask.any(1).double()])  # (2, R)
        of_tokens = torch.stack([divergence(kl_R_C).sum(), mask.sum().double()])
        sums = torch.column_stack([of_rows.unflatten(1, (-1, len(turns))).sum(1), of_tokens])  # (2, K + 1)
        totals, counts = self.accelerator.reduce(sums, reduction="sum").tolist()
        names = [*(f"kl_t{turn}" for turn in turns), "kl_per_token"]
        values = {name: t / n for name, t, n in zip(names, totals, counts, strict=True) if n}
        self.record(values)
        if not self.beta:
            self.run_warnings.check_kl(values.get("kl_per_token", 0.0))

    def _log_gap(self, gap: EngineGap, mask: torch.Tensor) -> None:
        """Log the gap of all ranks' rows. Only tokens of a foreign engine have weights, which are limited."""
        num_limited = ((gap.weights_R_C >= MAX_WEIGHT) & mask.bool()).sum()
        counts = torch.stack([gap.kl_R_C.sum(), num_limited.double(), mask.sum().double()])
        kl, limited, tokens = self.accelerator.reduce(counts, reduction="sum").tolist()
        self.record({"engine/kl": kl / max(tokens, 1)})
        if self.use_vllm:
            self.record({"engine/limited": limited / max(tokens, 1)})

    def _record_entropies(self, entropies: torch.Tensor | None, mask: torch.Tensor) -> None:
        """Add the entropies of a micro-batch of all ranks to their sums, of each trained turn and of all."""
        turns = self.objective.trained_turns
        if entropies is None or len(mask) % len(turns):
            return
        by_turn = torch.stack([entropies.detach().double() * mask, mask.double()])  # (2, R, C)
        sums = by_turn.unflatten(1, (-1, len(turns))).sum((1, 3))  # (2, K)
        totals, counts = self.accelerator.reduce(sums, reduction="sum").tolist()
        names = ["entropy", *(f"entropy_t{turn}" for turn in turns)]
        for name, total, count in zip(names, (sum(totals), *totals), (sum(counts), *counts), strict=True):
            if count:
                earlier, so_far = self.entropies.get(name, (0.0, 0.0))
                self.entropies[name] = (earlier + total, so_far + count)

    def _log_batch(
        self, batch: Batch, scores: Sequence[Score], advantages_B_K: Sequence[Sequence[float]]
    ) -> None:
        """Log the metrics of one batch of all ranks; keep its examples, and the rows of TRL's table.

        Rewards, accuracies and tokens are those of all played trajectories: the trained ones are a selection
        in which right and wrong programs are mixed. KL and rows are those of the trained trajectories.
        """
        groups = [*batch.groups, *batch.dropped]
        played = [trajectory for group in groups for trajectory in group.trajectories]
        self.record(batch_metrics(played, [rewards_T for group in groups for rewards_T in group.rewards_G_T]))
        if not self.args.reward_in_child:
            self.run_warnings.check_in_child(played)
        self.count_tokens(played)
        rows = list(zip(batch.trajectories, scores, advantages_B_K, strict=True))
        of_different_problems = rows[:: self.args.num_generations]
        shown = []
        if self.args.log_completions:
            self._fill_table(rows)
            num_shown = self.args.num_completions_to_print
            shown = rows if num_shown is None else of_different_problems[:num_shown]
        self.last_batch = BatchRecord(
            examples=[example_text(*row) for row in of_different_problems[:NUM_LOGGED_EXAMPLES]],
            shown=[example_text(*row) for row in shown],
        )

    def _fill_table(self, rows: Sequence[tuple[Trajectory, Score, Sequence[float]]]) -> None:
        """Fill the table that TRL writes to wandb with a row per trajectory of the batch."""
        rewards, extra = self._logs["rewards"], self._logs["extra"]
        for trajectory, score, advantage_K in rows:
            played = [turn for turn in trajectory.turns if not turn.is_carried]
            texts = [text for turn in played for text in (turn.feedback, turn.completion.text) if text]
            self._logs["prompt"].append(self.protocol.first_turn(trajectory.problem))
            self._logs["completion"].append("\n".join(texts))
            for t, (turn, reward) in enumerate(zip(trajectory.turns, score.rewards_T, strict=True), start=1):
                rewards[f"reward_t{t}"].append(reward)
                extra[f"verdicts_t{t}"].append(verdicts_text(turn.result))
            for t, advantage in zip(self.objective.trained_turns, advantage_K, strict=True):
                extra[f"advantage_t{t}"].append(advantage)
            self._logs["advantages"].append(advantage_K[-1])  # TRL's column, of the last trained turn


def _of_whole_batches(prompts: Sequence[Trajectory], args: CoCoSConfig) -> list[Trajectory]:
    """Return prompts for a batch or more: TRL's sampler drops a batch that is not full."""
    problems_per_batch = args.generation_batch_size // args.num_generations
    if not prompts:
        raise ValueError("there are no problems to train on; give one or more as prompts")
    if len(prompts) < problems_per_batch:
        logger.warning(
            f"{len(prompts)} problems are fewer than the {problems_per_batch} of a batch, so each "
            "occurs in it several times; lower --global_batch_size for shorter updates"
        )
    return list(prompts) * math.ceil(problems_per_batch / len(prompts))


def _index(entries: Sequence[object]) -> Dataset:
    """Return a data set of indices. TRL makes batches of its rows."""
    return Dataset.from_dict({"index": range(len(entries))})


def _warn_about(args: CoCoSConfig, objective: Objective) -> None:
    """Warn about options whose effect may surprise."""
    if args.reward == "random":
        logger.warning("reward 'random': every program earns 0 or 1 by chance; a control, not a training")
    if args.credit == "last":
        logger.warning("credit 'last': gamma has no effect, because siblings share the earlier turns")
    if args.credit == "trajectory" and args.gamma < 1 and args.num_turns > 1:
        logger.warning(
            f"credit 'trajectory' maximises {objective.accumulated_text}: earlier turns earn less "
            "for a better program; choose --credit turn to pay every turn for its own"
        )
