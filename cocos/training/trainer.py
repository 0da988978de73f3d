"""CoCoSTrainer: TRL's RLOOTrainer with multi-turn rollouts and a return per turn.

The parent keeps the loss, the optimizer, ZeRO, FSDP, PEFT, checkpoints and loggers. What changes: a batch of
problems becomes trajectories of T turns; every trained turn becomes one row (transcript before it, sampled
ids, advantage) of the batch that the parent's loss takes; and evaluation plays greedy trajectories on dev
problems, as test.py does.

Axes: B trajectories on this process, G per problem, T turns, K trained turns, R = B * K rows, P and C prompt
and completion tokens.
"""

import copy
import logging
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from accelerate.utils import gather_object
from datasets import Dataset
from torch.utils.data import Sampler
from transformers import PreTrainedTokenizerBase, TrainerCallback, TrainerControl
from transformers.trainer_callback import ExportableState
from trl import RLOOTrainer
from trl.models import unwrap_model_for_generation
from trl.models.utils import disable_gradient_checkpointing
from trl.trainer.utils import pad, use_adapter

from cocos.config import CoCoSConfig
from cocos.distributed import equal_share, whole_weights
from cocos.executor import Executor
from cocos.generation import Generator
from cocos.generation.huggingface import HuggingFaceGenerator
from cocos.generation.trl_engines import ContinuousBatches, VLLMRollouts
from cocos.metrics import correction_metrics
from cocos.problems import Problem
from cocos.prompts import PromptProtocol
from cocos.rewards import (
    Score,
    advantages,
    kl_penalties,
    trained_turns,
    turn_returns,
    turn_reward,
    zero_spread,
)
from cocos.rollout import rollout
from cocos.training.checkpoints import EpochSampler, LastStepCounts, ResumableTrainer
from cocos.training.monitor import Clock, Warnings, batch_metrics, hidden_gap, verdicts_in_words
from cocos.training.progress import show_lines
from cocos.trajectories import Trajectory, begin, check_infra_failures

logger = logging.getLogger(__name__)


class CoCoSTrainer(ResumableTrainer, RLOOTrainer):
    """Multi-turn RLOO with a reward from executed tests (CoCoS, arXiv 2505.23060).

    Args:
        model: Checkpoint directory, hub id, or a loaded causal language model.
        args: See CoCoSConfig.
        problems: What is trained on; references are not used.
        dev_problems: What `evaluate` plays, greedily; none where args evaluate nothing.
        executor: Decides about programs; stays the caller's to close.
        protocol: Prompt protocol of training and evaluation.
        tokenizer: With a pad token, padding on the left.
        **trainer_kwargs: Handed to the parent (peft_config, quantization_config, callbacks, optimizers).

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
        problems: Sequence[Problem],
        executor: Executor,
        protocol: PromptProtocol,
        tokenizer: PreTrainedTokenizerBase,
        dev_problems: Sequence[Problem] = (),
        **trainer_kwargs: Any,
    ):
        together = args.generation_batch_size // args.num_generations
        if len(problems) < together:
            raise ValueError(
                f"--train_data has {len(problems)} problems, fewer than the {together} that are sampled "
                f"together, so there would be no update; lower --global_batch_size or raise --num_generations"
            )
        self.problems = list(problems)
        self.dev_problems = list(dev_problems)
        self.executor = executor
        self.protocol = protocol
        self._warnings = Warnings(args.dead_batches)
        self._clock = Clock(executor)
        super().__init__(
            model=model,
            reward_funcs=[],
            args=args,
            train_dataset=_index(self.problems),
            eval_dataset=_index(self.dev_problems) if self.dev_problems else None,
            processing_class=tokenizer,
            **trainer_kwargs,
        )
        self.add_callback(LastStepCounts())
        self.add_callback(_UpdateTime(self))
        self.add_callback(_Counters(self))
        show_lines(self)
        if args.credit == "last":
            logger.warning(
                "credit 'last': gamma has no effect, the shared earlier turns cancel in the baseline"
            )

    # -- the parent's hooks --

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Play one trajectory per input and return its trained turns as rows for the parent's loss."""
        with self._clock.phase("rollout"):
            trajectories = self._train_rollout([self.problems[example["index"]] for example in inputs])
        rows = self._rows(trajectories)
        with self._clock.phase("logprobs"):
            old_logps, kl_R = self._old_logps_and_kl(rows)
        turns = trained_turns(self.args.credit, self.args.num_turns)
        kl_B_K = kl_R.view(len(trajectories), len(turns)).tolist()
        played = gather_object(list(zip(trajectories, kl_B_K, strict=True)))
        everyones = [trajectory for trajectory, _ in played]
        scores = [Score(self._rewards(trajectory), kl_K) for trajectory, kl_K in played]
        advantages_B_K = self._advantages(scores)
        self._note(batch_metrics(everyones, scores, turns) | self._clock.read(trajectories))
        self._note({"peak_memory_mb": _peak_memory_mb()})
        self._count(everyones)
        self._fill_table(everyones, scores, advantages_B_K)
        first = self.accelerator.process_index * len(inputs)
        local = advantages_B_K[first : first + len(inputs)]
        # The parent averages over rows; the objective sums over a trajectory's turns.
        rows["advantages"] = len(turns) * torch.tensor(local, device=old_logps.device).flatten()  # (R,)
        rows["old_logps"] = old_logps
        return rows

    def _get_train_sampler(self, dataset: Dataset | None = None) -> Sampler:
        """The parent's, but each epoch's order follows from its number: a resumed run meets the same one."""
        return EpochSampler(super()._get_train_sampler(dataset), lambda: int(self.state.epoch or 0))

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: list[str] | None = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Play the dev problems greedily, one trajectory each; log acc_t, delta, i2c, c2i under `eval_`."""
        self.model.eval()
        share = begin(
            equal_share(self.dev_problems, self.accelerator.process_index, self.accelerator.num_processes)
        )
        with self._generator(temperature=0.0) as generator:
            mine = rollout(share, generator, self.executor, self.protocol, self.args.num_turns)
        trajectories = gather_object(mine)[: len(self.dev_problems)]
        check_infra_failures(trajectories, self.args.max_infra_share)
        metrics = {
            f"{metric_key_prefix}_{name}": e.value for name, e in correction_metrics(trajectories).items()
        }
        if (gap := hidden_gap(trajectories)) is not None:
            metrics[f"{metric_key_prefix}_hidden_gap"] = gap
            self._warnings.note_gap(gap)
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    # -- steps --

    def _train_rollout(self, problems: list[Problem]) -> list[Trajectory]:
        """T sampled turns per entry; with credit `last`, neighbours of a group share turns 1..T-1."""
        num_turns, group = self.args.num_turns, self.args.num_generations
        trajectories = [Trajectory(problem, sample % group) for sample, problem in enumerate(problems)]
        with self._generator(self.args.temperature) as generator:
            if self.args.credit == "last" and num_turns > 1:
                shared = rollout(
                    trajectories[::group], generator, self.executor, self.protocol, num_turns - 1
                )
                trajectories = [
                    replace(t, turns=shared[i // group].turns) for i, t in enumerate(trajectories)
                ]
            trajectories = rollout(trajectories, generator, self.executor, self.protocol, num_turns)
        check_infra_failures(trajectories, self.args.max_infra_share)
        self._check_truncated(trajectories)
        return trajectories

    @contextmanager
    def _generator(self, temperature: float) -> Iterator[Generator]:
        """The policy as it stands, unwrapped from DDP, ZeRO or FSDP or copied to vLLM, as a Generator."""
        if self.use_vllm:
            if self.state.global_step != self._last_loaded_step:
                self.vllm_generation.sync_weights()
                self._last_loaded_step = self.state.global_step
            yield VLLMRollouts(self.vllm_generation, self._tokenizer, self.eos_token_ids, temperature)
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
                config = self.continuous_batching_config
                yield ContinuousBatches(model, self._tokenizer, config, length, temperature)
            else:
                batch = self.args.rollout_batch_size
                yield HuggingFaceGenerator(model, self._tokenizer, length, temperature, batch)

    def _rows(self, trajectories: Sequence[Trajectory]) -> dict[str, torch.Tensor]:
        """One row per trained turn, trajectory by trajectory: the sampled ids after exactly the transcript
        they followed.
        """
        turns = trained_turns(self.args.credit, self.args.num_turns)
        trained = [trajectory.turns[turn - 1] for trajectory in trajectories for turn in turns]
        prompts = [torch.tensor(turn.prompt_ids) for turn in trained]
        completions = [torch.tensor(turn.completion.token_ids) for turn in trained]

        def padded(ids: list[torch.Tensor], side: str, value: int) -> torch.Tensor:
            return pad(ids, value, side, self.pad_to_multiple_of).to(self.accelerator.device)

        # Masks come from lengths: a pad id may be an end-of-sequence id that was sampled and is trained.
        fill = self._tokenizer.pad_token_id
        return {
            "prompt_ids": padded(prompts, "left", fill),  # (R, P)
            "prompt_mask": padded([torch.ones_like(ids) for ids in prompts], "left", 0),  # (R, P)
            "completion_ids": padded(completions, "right", fill),  # (R, C)
            "completion_mask": padded([torch.ones_like(ids) for ids in completions], "right", 0),  # (R, C)
        }

    def _old_logps_and_kl(self, rows: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Log-probability of each row under the policy, and its k1 KL to the reference, both summed in
        float32. Shape (R,).
        """
        mask = rows["completion_mask"]
        with (
            torch.no_grad(),
            disable_gradient_checkpointing(self.model, self.args.gradient_checkpointing_kwargs),
        ):
            policy = self._row_logps(self.model, rows)
            if self.beta == 0.0:
                return (policy * mask).sum(1), torch.zeros(len(mask), device=mask.device)
            if self.ref_model is not None:
                reference = self._row_logps(self.ref_model, rows)
            else:
                unwrapped = self.accelerator.unwrap_model(self.model)
                with use_adapter(unwrapped, adapter_name="ref" if "ref" in unwrapped.peft_config else None):
                    reference = self._row_logps(self.model, rows)
        return (policy * mask).sum(1), ((policy - reference) * mask).sum(1)

    def _row_logps(self, model: Any, rows: dict[str, torch.Tensor]) -> torch.Tensor:
        """log p of every completion token at the sampling temperature, without keeping the logits. Shape (R,
        C).
        """
        logps, _, _ = self._get_per_token_logps_and_entropies(
            model,
            torch.cat([rows["prompt_ids"], rows["completion_ids"]], dim=1),
            torch.cat([rows["prompt_mask"], rows["completion_mask"]], dim=1),
            logits_to_keep=rows["completion_ids"].size(1),
            batch_size=self.args.rollout_batch_size,
        )
        return logps.float()

    def _rewards(self, trajectory: Trajectory) -> list[float | None]:
        return [turn_reward(turn.result, self.args.reward) for turn in trajectory.turns]

    def _advantages(self, scores: Sequence[Score]) -> list[list[float]]:
        """Leave-one-out advantages of all processes' trajectories, which come group by group. Shape (B over
        all, K).
        """
        args = self.args
        turns = trained_turns(args.credit, args.num_turns)
        betas_K = [args.turn_betas[turn - 1] if args.turn_betas else self.beta for turn in turns]
        returns_B_K = [
            turn_returns(
                s.rewards_T,
                args.credit,
                args.gamma,
                args.improvement_bonus,
                args.turn_weights,
                kl_penalties(s.kl_K, betas_K),
            )
            for s in scores
        ]
        groups = [
            returns_B_K[i : i + args.num_generations]
            for i in range(0, len(returns_B_K), args.num_generations)
        ]
        equal_K = zero_spread(groups)
        self._note({f"frac_reward_zero_std_t{turn}": equal_K[k] for k, turn in enumerate(turns)})
        self._warnings.note_spread(equal_K)
        return [advantage_K for group in advantages(groups) for advantage_K in group]

    # -- watching --

    def _check_truncated(self, trajectories: Sequence[Trajectory]) -> None:
        cut = [turn.completion.is_truncated for trajectory in trajectories for turn in trajectory.turns]
        if sum(cut) > self.args.max_truncated_share * len(cut):
            raise ValueError(
                f"{sum(cut)} of {len(cut)} completions were cut off at {self.args.max_completion_length} "
                f"tokens, more than --max_truncated_share {self.args.max_truncated_share}: raise "
                f"--max_completion_length, or train a Boost model first, so that answers end with [DONE]"
            )

    def _count(self, trajectories: Sequence[Trajectory]) -> None:
        """Tokens that passed through the model as transcripts and answers, and trajectories played, since
        step 0.
        """
        last = [trajectory.turns[-1] for trajectory in trajectories]
        self.state.num_input_tokens_seen += sum(len(t.prompt_ids) + len(t.completion.token_ids) for t in last)
        updates_per_generation = (
            self.args.steps_per_generation * self.num_iterations // self.args.gradient_accumulation_steps
        )
        generations = self.state.global_step // updates_per_generation + 1
        self._metrics["train"]["num_tokens"] = [self.state.num_input_tokens_seen]
        self._metrics["train"]["episodes"] = [generations * self.args.generation_batch_size]

    def _fill_table(
        self,
        trajectories: Sequence[Trajectory],
        scores: Sequence[Score],
        advantages_B_K: Sequence[Sequence[float]],
    ) -> None:
        """One row per trajectory in the parent's completions table: every turn's answer, raw reward,
        advantage and verdicts.
        """
        if not self.log_completions:
            return
        turns = trained_turns(self.args.credit, self.args.num_turns)
        for trajectory, score, advantage_K in zip(trajectories, scores, advantages_B_K, strict=True):
            self._logs["prompt"].append(self.protocol.first_turn(trajectory.problem))
            self._logs["completion"].append("\n".join(turn.completion.text for turn in trajectory.turns))
            self._logs["advantages"].append(advantage_K[-1])
            for t, reward in enumerate(score.rewards_T, start=1):
                self._logs["rewards"][f"reward_t{t}"].append(float("nan") if reward is None else reward)
            for number, advantage in zip(turns, advantage_K, strict=True):
                self._logs["extra"][f"advantage_t{number}"].append(advantage)
            for t, turn in enumerate(trajectory.turns, start=1):
                self._logs["extra"][f"verdicts_t{t}"].append(verdicts_in_words(turn.result))

    def _note(self, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            self._metrics["train"][name].append(value)


class _UpdateTime(TrainerCallback):
    """Logs what an update took beside rollout and log-probabilities: forward, backward, optimizer."""

    def __init__(self, trainer: CoCoSTrainer):
        self.trainer = trainer

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.trainer._clock.begin_update()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.trainer._note({"time/update_s": self.trainer._clock.end_update()})


class _Counters(TrainerCallback, ExportableState):
    """What transformers does not count of a run, kept in trainer_state.json and taken up when it is resumed:
    the micro-steps, the warnings' memory, and what the main process's executor did.
    """

    def __init__(self, trainer: CoCoSTrainer):
        self.trainer = trainer

    def state(self) -> dict[str, dict]:
        memory = {name: value for name, value in vars(self.trainer._warnings).items() if name[0] == "_"}
        counts = {"warnings": memory, "executor": vars(self.trainer.executor.stats)}
        return {"args": {}, "attributes": copy.deepcopy(counts)}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        counts = state.stateful_callbacks[type(self).__name__]["attributes"]
        vars(self.trainer._warnings).update(counts["warnings"])
        if state.is_world_process_zero:
            vars(self.trainer.executor.stats).update(counts["executor"])
        # The parent generates at every n-th micro-step, and would count from the one it is resumed at.
        self.trainer._step = state.global_step * args.gradient_accumulation_steps


def _index(problems: Sequence[Problem]) -> Dataset:
    """The parent batches dataset rows; ours only name problems."""
    return Dataset.from_dict({"index": range(len(problems))})


def _peak_memory_mb() -> float:
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
