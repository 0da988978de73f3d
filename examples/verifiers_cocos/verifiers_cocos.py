"""An environment of verifiers 0.4: T turns at each problem, with a verdict per test and a reward per turn.

    vf-eval verifiers-cocos --env.taskset.data hub:mbpp/test --env.num-turns 3 --model NAME \
        --client.base-url http://127.0.0.1:8000/v1 --no-push

docs/python.md explains the options, the rewards and the metrics. verifiers owns the model, its tokens and the
log; the turns, the programs in messages and the executor are those of `cocos eval`.
"""

from dataclasses import replace
from typing import Literal

import verifiers.v1 as vf
from openai import AsyncOpenAI
from verifiers.v1.dialects.chat import message_to_wire

from cocos.carry import CarryKind, named_carry
from cocos.config.turn_options import CarryOptions
from cocos.dataprep.named_sets import load_problem_set
from cocos.executor import Executor, Limits
from cocos.generation.interface import TextTranscripts
from cocos.literals import Feedback, IsolationLevel
from cocos.metrics import correction_metrics
from cocos.problems import Problem, with_visible_tests
from cocos.prompts import named_protocol
from cocos.rewards import accumulated_weights, turn_reward
from cocos.rollout import Play, RolloutContext
from cocos.trajectories import Rules, Trajectory

__all__ = ["ChatHarness", "ProblemTaskset", "TurnsEnv"]


class ProblemData(vf.TaskData):
    """A problem as it is sent to a worker and recorded in a trace."""

    problem: Problem


class ProblemTask(vf.Task[ProblemData]):
    """A problem. `TurnsEnv` plays and scores it."""


class ProblemConfig(vf.TasksetConfig):
    """Options of the problems, under `--env.taskset`."""

    data: str = "hub:mbpp/test"
    """File of MBPP-format problems, or a public set by its name."""
    visible_tests: int | None = None
    """Hide all but the first N tests; hidden ones are scored, never shown."""


class ProblemTaskset(vf.Taskset[ProblemTask, ProblemConfig]):
    """The problems of a file or a public set."""

    def load(self) -> list[ProblemTask]:
        problems = with_visible_tests(load_problem_set(self.config.data), self.config.visible_tests)
        return [
            ProblemTask(ProblemData(id=problem.task_id, description=problem.text, problem=problem))
            for problem in problems
        ]


class ChatHarness(vf.Harness[vf.HarnessConfig]):
    """Sends the conversation of a turn to the model, from this process."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        system, conversation = self.resolve_prompt(data)
        messages = [*([vf.SystemMessage(content=system)] if system else []), *conversation]
        async with AsyncOpenAI(base_url=endpoint, api_key=secret) as client:
            await client.chat.completions.create(
                model=ctx.model, messages=[message_to_wire(message) for message in messages]
            )
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    async def resume(
        self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, messages, tool_interception_url=None
    ):
        # The default adds the transcript, which not every turn carries; `TurnsEnv` sends all that one has.
        data = data.model_copy(update={"prompt": messages})
        return await self.launch(ctx, trace, runtime, endpoint, secret, mcp_urls, data)


class TurnsConfig(vf.EnvConfig):
    """Options of the turns, under `--env`."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    num_turns: int = 2
    protocol: Literal["chat", "repair", "fix"] = "repair"
    """Wording of the messages."""
    prompt_tests: int | None = None
    """Number of visible tests that the prompt shows; None: all."""
    carry: CarryKind = "transcript"
    """What the next prompt has of earlier turns."""
    feedback: Feedback = "none"
    """Feedback on the last program in the next prompt."""
    early_stop: bool = False
    """End a trajectory when its program passes the visible tests."""
    keeps_truncated: bool = False
    """Count what is whole in a truncated answer, as `cocos eval` does; training does not."""
    reward: Literal["fraction", "binary", "mixed"] = "fraction"
    """Reward of a turn."""
    gamma: float = 0.5
    """Discount between turns, in the sum of gamma^(T-t) * (r_t - r_(t-1))."""
    program_timeout_s: float = 10.0
    """Time limit of a program with all its tests, in seconds."""
    min_isolation: IsolationLevel = "seccomp"
    """Weakest isolation level to accept."""


class TurnsEnv(vf.Env[TurnsConfig]):
    """Plays T turns at each problem with the options of `TurnsConfig`."""

    executor: Executor | None = None

    async def start(self) -> None:
        config = self.config
        CarryOptions(config.carry, config.feedback)  # refuses what does not go together
        limits = Limits.with_timeout(config.program_timeout_s)
        self.executor = Executor(limits=limits, min_isolation=config.min_isolation)

    async def stop(self) -> None:
        if self.executor:
            self.executor.close()

    async def run(self, task: ProblemTask, agents: vf.Agents) -> None:
        config = self.config
        protocol = named_protocol(config.protocol, prompt_tests=config.prompt_tests)
        rules = Rules(
            carry=named_carry(config.carry),
            feedback=config.feedback,
            early_stop=config.early_stop,
            keeps_truncated=config.keeps_truncated,
        )
        generator = TextTranscripts()  # of texts alone: verifiers samples, and has the tokens
        play = Play(Trajectory(task.data.problem), RolloutContext(generator, self.executor, protocol, rules))
        async with agents.agent.interaction(task) as interaction:
            trace, conversation = interaction.trace, []
            while len(play.turns) < config.num_turns and not play.has_ended():
                feedback = play.feedback()
                message = vf.UserMessage(content=play.request(feedback))
                conversation = [message] if play.is_fresh else [*conversation, message]
                segment = await interaction.turn(conversation)
                if segment.terminated:
                    raise vf.EnvError(f"turn {len(play.turns) + 1} has no answer: {trace.stop_condition}")
                answer = segment.messages[-1]
                conversation.append(answer)
                completion = replace(
                    generator.quote(answer.content or ""),
                    is_truncated=trace.calls[-1].finish_reason == "length",
                )
                play.add((), completion, feedback)
                await play.executed()
            self.score(trace, play.finish(config.num_turns))

    def score(self, trace: vf.Trace, trajectory: Trajectory) -> None:
        """Record rewards, metrics and verdicts of a trajectory; raise if a program was not executed.

        The weighted sum of the rewards r_1..r_T is CoCoS' accumulated reward.
        """
        results = [turn.result for turn in trajectory.turns]
        if failure := next((result.infra_error for result in results if result.is_infra_failure), None):
            raise vf.EnvError(f"a program was not executed, so there is no reward: {failure}")
        weights = accumulated_weights(len(results), self.config.gamma)
        for turn, (result, weight) in enumerate(zip(results, weights, strict=True), start=1):
            trace.record_reward(f"turn_{turn}", turn_reward(result, self.config.reward), weight)
        estimates = correction_metrics([trajectory])
        trace.record_metrics({name: estimate.value for name, estimate in estimates.items()})
        trace.info["verdicts"] = [[verdict.status for verdict in result.verdicts] for result in results]
