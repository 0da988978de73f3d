"""The turn loop, with scripted answers and real execution."""

from dataclasses import replace
from itertools import pairwise

import pytest

from cocos.carry import Counterexamples, Nothing, Transcript
from cocos.evaluation.sample_rows import trajectory_from_row, trajectory_to_row
from cocos.executor import ExecutionResult, Executor, ExecutorError, Program
from cocos.generation import Completion
from cocos.generation.scripted import ScriptedGenerator
from cocos.metrics import correction_metrics, edit_metrics, scored
from cocos.problems import DataError, Problem
from cocos.prompts import answer, named_protocol, own_protocol
from cocos.rollout import InfraFailures, rollout
from cocos.trajectories import Rules, Trajectory, Turn, as_program, begin

COCOS = named_protocol("cocos")
RIGHT = "def double(x):\n    return 2 * x"
WRONG = "def double(x):\n    return x * x"  # double(2) == 4 and double(0) == 0 hold: 2 of 3
INSTRUCTION = (
    "\n\nThere might be an error in the code above because of lack of understanding of the question. "
    "Please correct the error, if any, and rewrite the solution. "
    "Only output the final correct Python program!\n\n[CORRECT]\n"
)
EOS = 0


class CountingExecutor(Executor):
    """The executor, and what it was asked to run."""

    def __init__(self):
        self.submitted: list[Program] = []
        super().__init__(num_workers=1)
        self.submitted.clear()  # the self-test's programs

    def submit(self, program):
        self.submitted.append(program)
        return super().submit(program)


class EosGenerator(ScriptedGenerator):
    """Ends every answer with an end-of-sequence id, as a model does that never learnt [DONE]."""

    def generate(self, prompts, temperature, seeds=None):
        return [
            replace(c, token_ids=(*c.token_ids, EOS), is_eos=True, is_truncated=False)
            for c in super().generate(prompts, temperature)
        ]


def turn_number(prompt: str) -> int:
    return 1 + prompt.count("[CORRECT]\n")


def in_turn(*answers: str):
    """A script that gives its n-th answer at turn n."""
    return lambda prompt: answers[turn_number(prompt) - 1]


def decode(ids) -> str:
    return "".join(map(chr, ids))


def values(trajectories) -> dict[str, float]:
    return {name: estimate.value for name, estimate in correction_metrics(scored(trajectories)).items()}


def test_a_transcript_is_the_prompt_the_sampled_ids_and_the_instruction_to_the_token(problem, executor):
    generator = ScriptedGenerator(in_turn(answer(WRONG), answer(RIGHT)))
    [trajectory] = rollout(begin([problem]), generator, executor, COCOS, num_turns=2)
    first, second = trajectory.turns
    assert decode(first.prompt_ids) == (
        "You are an expert Python programmer, and here is your task: Write a function to double a number. "
        "Your code should pass these tests:\n\n"
        "assert double(2) == 4\nassert double(0) == 0\nassert double(-1) == -2\n\n[BEGIN]\n"
    )
    assert decode(second.prompt_ids) == f"{decode(first.prompt_ids)}{WRONG}\n[DONE]{INSTRUCTION}"
    instruction_ids = tuple(map(ord, INSTRUCTION))
    assert second.prompt_ids == first.prompt_ids + first.completion.token_ids + instruction_ids
    assert decode(second.completion.token_ids) == f"{RIGHT}\n[DONE]"
    assert (first.code, second.code) == (WRONG, RIGHT)


def test_an_answer_that_was_cut_off_is_closed_with_done(problem, executor):
    generator = ScriptedGenerator(
        in_turn(RIGHT + "\n# and so on", answer(RIGHT)), max_completion_length=len(RIGHT)
    )
    [trajectory] = rollout(begin([problem]), generator, executor, COCOS, num_turns=2)
    first, second = trajectory.turns
    assert first.completion.is_truncated and first.result.all_passed
    assert decode(second.prompt_ids) == f"{decode(first.prompt_ids)}{RIGHT}\n[DONE]{INSTRUCTION}"


def test_an_end_of_sequence_id_gives_way_to_the_done_it_stands_for(problem, executor):
    [trajectory] = rollout(
        begin([problem]), EosGenerator(in_turn(RIGHT, RIGHT)), executor, COCOS, num_turns=2
    )
    first, second = trajectory.turns
    assert first.completion.token_ids[-1] == EOS and EOS not in second.prompt_ids
    assert decode(second.prompt_ids) == f"{decode(first.prompt_ids)}{RIGHT}\n[DONE]{INSTRUCTION}"


def test_an_end_of_sequence_id_after_done_leaves_the_one_done(problem, executor):
    generator = EosGenerator(in_turn(answer(RIGHT), answer(RIGHT)))
    [trajectory] = rollout(begin([problem]), generator, executor, COCOS, num_turns=2)
    first, second = trajectory.turns
    assert decode(second.prompt_ids) == f"{decode(first.prompt_ids)}{RIGHT}\n[DONE]{INSTRUCTION}"


def test_a_token_that_reaches_beyond_done_does_not_earn_a_second_done(problem, executor):
    class Overlong(ScriptedGenerator):
        def generate(self, prompts, temperature, seeds=None):  # as with a token "])" that completes [DONE]
            return [
                Completion((*c.token_ids, ord(")")), c.text + ")", c.is_truncated)
                for c in super().generate(prompts, temperature)
            ]

    generator = Overlong(in_turn(answer(RIGHT), answer(RIGHT)))
    [trajectory] = rollout(begin([problem]), generator, executor, COCOS, num_turns=2)
    first, second = trajectory.turns
    assert decode(second.prompt_ids) == f"{decode(first.prompt_ids)}{RIGHT}\n[DONE]){INSTRUCTION}"
    assert first.code == RIGHT


@pytest.mark.parametrize("num_turns", [3, 4])
def test_every_further_turn_extends_the_transcript_before_it(problem, executor, num_turns):
    answers = [answer(f"def double(x):\n    return {n} * x") for n in range(num_turns)]
    [trajectory] = rollout(begin([problem]), ScriptedGenerator(in_turn(*answers)), executor, COCOS, num_turns)
    expected = COCOS.first_turn(problem)
    for turn, text in zip(trajectory.turns, answers, strict=True):
        assert decode(turn.prompt_ids) == expected
        expected += text + INSTRUCTION
    # return n * x is right for n = 2 alone: turn 3
    assert [turn.result.all_passed for turn in trajectory.turns] == [n == 2 for n in range(num_turns)]


def test_continuing_a_trajectory_equals_playing_it_at_once(problem, executor):
    generator = ScriptedGenerator(in_turn(answer(WRONG), RIGHT, answer(RIGHT)))
    [at_once] = rollout(begin([problem]), generator, executor, COCOS, num_turns=3)
    played = begin([problem])
    for num_turns in (1, 2, 3):
        kept = played[0].turns
        played = rollout(played, generator, executor, COCOS, num_turns)
        assert played[0].turns[: len(kept)] == kept and len(played[0].turns) == num_turns
    assert [t.prompt_ids for t in played[0].turns] == [t.prompt_ids for t in at_once.turns]
    assert [t.completion for t in played[0].turns] == [t.completion for t in at_once.turns]


def test_the_few_shot_protocol_opens_later_turns_with_begin(problem, executor):
    other = replace(problem, task_id="0", text="Write another.")
    few_shot = named_protocol("cocos-fewshot", [other])
    [trajectory] = rollout(
        begin([problem]), ScriptedGenerator(lambda _: answer(RIGHT)), executor, few_shot, 2
    )
    first, second = trajectory.turns
    assert decode(first.prompt_ids) == (
        f"{COCOS.first_turn(other)}{answer(problem.code)}\n\n{COCOS.first_turn(problem)}"
    )
    instruction = INSTRUCTION.replace("[CORRECT]", "[BEGIN]")
    assert decode(second.prompt_ids) == f"{decode(first.prompt_ids)}{answer(RIGHT)}{instruction}"


def test_the_model_is_shown_no_execution_result(problem, executor):
    def play(code):
        [trajectory] = rollout(
            begin([problem]), ScriptedGenerator(lambda _: answer(code)), executor, COCOS, 2
        )
        return decode(trajectory.turns[1].prompt_ids).replace(code, "CODE")

    assert play(WRONG) == play(RIGHT) == play("def double(x):\n    return 1 / 0")


def test_prompts_and_results_stand_with_their_own_problem_and_sample(executor):
    problems = [Problem(str(n), f"Return {n}.", (f"assert f() == {n}",)) for n in range(3)]
    calls = iter(range(100))

    def script(prompt: str) -> str:  # sample 0 of each problem is right, sample 1 is wrong
        wanted = prompt.split("Return ")[1].split(".")[0]
        return answer(f"def f():\n    return {wanted if next(calls) % 2 == 0 else -1}")

    rules = Rules(temperatures=(1.0,))
    trajectories = rollout(
        begin(problems, num_samples=2), ScriptedGenerator(script), executor, COCOS, 1, rules
    )
    assert [(t.problem.task_id, t.sample, t.turns[0].result.all_passed) for t in trajectories] == [
        (str(n), sample, sample == 0) for n in range(3) for sample in range(2)
    ]
    assert all(decode(t.turns[0].prompt_ids) == COCOS.first_turn(t.problem) for t in trajectories)


def test_identical_programs_are_executed_once(problem):
    with CountingExecutor() as executor:
        generator = ScriptedGenerator(in_turn(answer(WRONG), answer(RIGHT), answer(WRONG)))
        trajectories = rollout(begin([problem], num_samples=4), generator, executor, COCOS, num_turns=3)
        # 4 siblings x 3 turns are 12 answers, but 2 programs
        assert executor.submitted == [as_program(problem, WRONG), as_program(problem, RIGHT)]
    assert all([turn.result.num_passed for turn in t.turns] == [2, 3, 2] for t in trajectories)


def test_the_same_code_for_another_problem_is_another_program(problem):
    other = replace(problem, task_id="2", test_list=("assert double(3) == 6",))
    with CountingExecutor() as executor:
        rollout(
            begin([problem, other]), ScriptedGenerator(lambda _: answer(RIGHT)), executor, COCOS, num_turns=1
        )
        assert len(executor.submitted) == 2


def test_an_empty_answer_is_executed_and_fails(problem, executor):
    [trajectory] = rollout(
        begin([problem]), ScriptedGenerator(lambda _: "[DONE]"), executor, COCOS, num_turns=1
    )
    turn = trajectory.turns[0]
    assert (
        turn.code == "" and turn.result.num_passed == 0 and turn.result.verdicts[0].error_type == "NameError"
    )


def test_setup_code_and_imports_reach_the_executor(executor):
    problem = Problem(
        "1",
        "Write f.",
        ("assert f(node) == math.floor(7.5)",),
        test_setup_code="node = Node(7)",
        test_imports=("import math",),
    )
    code = "class Node:\n    def __init__(self, n):\n        self.n = n\n\ndef f(node):\n    return node.n"
    [trajectory] = rollout(
        begin([problem]), ScriptedGenerator(lambda _: answer(code)), executor, COCOS, num_turns=1
    )
    assert trajectory.turns[0].result.all_passed


def test_no_trajectories_make_no_turns(executor):
    # More processes than dev problems: a rank may have none.
    assert rollout([], ScriptedGenerator(lambda _: answer(RIGHT)), executor, COCOS, num_turns=2) == []


def played(problem: Problem, num_failed: int, num_programs: int) -> list[Trajectory]:
    failed = ExecutionResult((), infra_error="the worker died")
    passed = replace(failed, verdicts=("passed",), infra_error=None)
    results = [failed] * num_failed + [passed] * (num_programs - num_failed)
    return [Trajectory(problem, turns=(Turn((1,), Completion((2,), ""), "", result),)) for result in results]


def test_more_executor_failures_than_allowed_stop_the_run(problem):
    with pytest.raises(ExecutorError) as caught:
        InfraFailures(0.1).add(played(problem, 2, 10))
    assert str(caught.value) == (
        "2 of 10 completions met a failure of the executor or the endpoint, more than --max_infra_share 0.1; "
        "the first: the worker died"
    )


def test_as_many_executor_failures_as_allowed_do_not(problem):
    InfraFailures(0.1).add(played(problem, 1, 10))
    InfraFailures(0.0).add(played(problem, 0, 10))
    InfraFailures(0.0).add([])
    with pytest.raises(ExecutorError):
        InfraFailures(0.0).add(played(problem, 1, 10))


# -- what happens between turns --


def codes(trajectory) -> list[str]:
    return [turn.code for turn in trajectory.turns]


class Recorder(ScriptedGenerator):
    """A scripted generator, and with which temperature and seeds it was asked."""

    def __init__(self, script):
        super().__init__(script)
        self.calls: list[tuple[float, list[int] | None]] = []

    def generate(self, prompts, temperature, seeds=None):
        self.calls.append((temperature, seeds))
        return super().generate(prompts, temperature, seeds)


def test_feedback_stands_before_the_instruction_and_in_the_turn_that_heard_it(problem, executor):
    generator = ScriptedGenerator(in_turn(answer(WRONG), answer(RIGHT), answer(RIGHT)))
    [trajectory] = rollout(begin([problem]), generator, executor, COCOS, 3, Rules(feedback="error"))
    first, second, third = trajectory.turns
    assert first.feedback == ""
    assert second.feedback == (
        "The program above passes 2 of the 3 tests. This one fails:\n\nassert double(-1) == -2\n\nExpected -2, got 1."
    )
    assert decode(second.prompt_ids) == (
        f"{decode(first.prompt_ids)}{WRONG}\n[DONE]\n\n{second.feedback}{INSTRUCTION}"
    )
    assert third.feedback == "The program above passes the tests." and third.feedback in decode(
        third.prompt_ids
    )


@pytest.mark.parametrize("name", ["cocos", "chat"])
def test_a_turn_knows_what_its_prompt_adds_to_the_transcript(problem, executor, name):
    rules = Rules(feedback="error")
    generator = ScriptedGenerator(lambda _: answer(WRONG))
    protocol = named_protocol(name)
    [played] = rollout(begin([problem]), generator, executor, protocol, 3, rules)
    assert played.turns[0].request == protocol.first_turn(problem).strip("\n")
    for before, turn in pairwise(played.turns):
        transcript = [*before.prompt_ids, *before.completion.kept_ids]
        added = turn.prompt_ids[len(transcript) :]
        assert list(turn.prompt_ids[: len(transcript)]) == transcript
        assert turn.request == "".join(map(chr, added)).strip("\n") and turn.feedback in turn.request


def test_a_stopped_trajectory_carries_its_answer_forward_and_asks_no_more(problem, executor):
    other = replace(problem, task_id="2", text="Write a function to double a number once more.")
    asked = []

    def script(prompt):
        asked.append(prompt)
        is_other = "once more" in prompt
        return answer(WRONG if is_other and turn_number(prompt) < 3 else RIGHT)

    rules = Rules(early_stop=True)
    stopped, late = rollout(begin([problem, other]), ScriptedGenerator(script), executor, COCOS, 3, rules)
    assert len(asked) == 1 + 3
    assert [turn.is_carried for turn in stopped.turns] == [False, True, True]
    assert codes(stopped) == [RIGHT] * 3 and not any(turn.is_carried for turn in late.turns)
    assert [turn.completion.token_ids for turn in stopped.turns[1:]] == [(), ()]
    # acc@1 1/2, acc@2 1/2 (the first is carried), acc@3 2/2
    found = values([stopped, late])
    assert [found[f"acc_t{t}"] for t in (1, 2, 3)] == [0.5, 0.5, 1.0]


def test_only_shown_tests_stop_a_trajectory(problem, executor):
    hiding = replace(problem, test_list=problem.test_list[:2], hidden_test_list=problem.test_list[2:])
    generator = ScriptedGenerator(in_turn(answer(WRONG), answer(RIGHT)))
    [trajectory] = rollout(begin([hiding]), generator, executor, COCOS, 2, Rules(early_stop=True))
    assert trajectory.turns[1].is_carried and not trajectory.turns[1].result.all_passed


def test_a_collective_generator_is_called_in_every_turn_also_if_all_trajectories_have_ended(
    problem, executor
):
    calls = []

    class Collective(ScriptedGenerator):
        is_collective = True

        def generate(self, prompts, temperature, seeds=None):
            calls.append((len(prompts), temperature))
            return super().generate(prompts, temperature)

    rules = Rules(early_stop=True, temperatures=(1.0, 0.5))
    rollout(begin([problem], 2), Collective(in_turn(answer(RIGHT))), executor, COCOS, 3, rules)
    assert calls == [(2, 1.0), (0, 0.5), (0, 0.5)]


def test_a_repeated_program_is_sampled_once_more_with_another_seed(problem, executor):
    answers = iter([WRONG, WRONG, RIGHT, RIGHT, RIGHT])  # turn 1, turn 2, again, turn 3, again
    generator = Recorder(lambda _: answer(next(answers)))
    rules = Rules(on_repeat="resample", seed=7)
    [trajectory] = rollout(begin([problem]), generator, executor, COCOS, 3, rules)
    assert codes(trajectory) == [WRONG, RIGHT, RIGHT]
    assert [turn.is_resampled for turn in trajectory.turns] == [False, True, True]
    assert len({seeds[0] for _, seeds in generator.calls}) == 5
    assert trajectory.turns[1].prompt_ids == (
        trajectory.turns[0].prompt_ids
        + trajectory.turns[0].completion.token_ids
        + tuple(map(ord, INSTRUCTION))
    )


def test_a_repeated_program_is_told_of_before_the_next_turn(problem, executor):
    script = in_turn(answer(WRONG), answer(WRONG), answer(RIGHT), answer(RIGHT))
    feedback = [
        [
            turn.feedback
            for turn in rollout(begin([problem]), ScriptedGenerator(script), executor, COCOS, 4, rules)[
                0
            ].turns
        ]
        for rules in (Rules(on_repeat="tell"), Rules())
    ]
    assert feedback == [["", "", "The program above is the same as the one before it.", ""], [""] * 4]


def test_each_turn_has_its_temperature_and_the_last_holds_from_there_on(problem, executor):
    generator = Recorder(lambda _: answer(RIGHT))
    rollout(begin([problem]), generator, executor, COCOS, 3, Rules(temperatures=(0.8, 0.2)))
    assert [temperature for temperature, _ in generator.calls] == [0.8, 0.2, 0.2]
    generator = Recorder(lambda _: answer(RIGHT))
    rollout(begin([problem]), generator, executor, COCOS, 2)
    assert generator.calls == [(0.0, None)] * 2  # greedy by default, from the process's random state


def test_greedily_a_problems_samples_are_asked_once_and_sampled_turns_each(problem, executor):
    calls = []

    class Counted(ScriptedGenerator):
        def generate(self, prompts, temperature, seeds=None):
            calls.append((len(prompts), len(seeds), temperature))
            return super().generate(prompts, temperature)

    answers = iter([WRONG, RIGHT, RIGHT, WRONG, RIGHT, WRONG, WRONG, RIGHT])  # greedy ones, then six samples
    other = replace(problem, task_id="2")
    rules = Rules(carry=Nothing(), temperatures=(0.0, 0.8), seed=1)
    generator = Counted(lambda _: answer(next(answers)))
    played = rollout(begin([problem, other], 3), generator, executor, COCOS, 2, rules)
    assert calls == [(2, 2, 0.0), (6, 6, 0.8)]
    assert [codes(t)[0] for t in played] == [WRONG] * 3 + [RIGHT] * 3
    assert [codes(t)[1] for t in played] == [RIGHT, WRONG, RIGHT, WRONG, WRONG, RIGHT]


def test_a_seed_belongs_to_problem_sample_and_turn_however_they_are_batched(problem, executor):
    other = replace(problem, task_id="2")

    def seeds(trajectories, seed=7):
        generator = Recorder(lambda _: answer(RIGHT))
        rollout(trajectories, generator, executor, COCOS, 2, Rules(seed=seed, temperatures=(1.0,)))
        return [one for _, of_turn in generator.calls for one in of_turn]

    together = seeds(begin([problem, other], num_samples=2))  # turn 1: 4, turn 2: 4
    assert len(set(together)) == 8 and all(0 <= one < 2**31 for one in together)
    assert seeds(begin([other], num_samples=2)) == together[2:4] + together[6:8]
    assert not set(seeds(begin([problem, other], num_samples=2), seed=8)) & set(together)


def test_given_answers_stand_as_first_turns_and_the_generator_takes_the_others(problem, executor):
    generator = Recorder(in_turn("", answer(RIGHT), answer(RIGHT)))
    [given] = begin([problem])
    [trajectory] = rollout([replace(given, given=(answer(WRONG),))], generator, executor, COCOS, 3)
    assert codes(trajectory) == [WRONG, RIGHT, RIGHT] and len(generator.calls) == 2
    assert [turn.is_given for turn in trajectory.turns] == [True, False, False]
    sampled = rollout(
        begin([problem]),
        ScriptedGenerator(in_turn(answer(WRONG), answer(RIGHT), answer(RIGHT))),
        executor,
        COCOS,
        3,
    )
    assert [turn.prompt_ids for turn in trajectory.turns] == [turn.prompt_ids for turn in sampled[0].turns]


def test_an_answer_that_could_not_be_had_ends_its_trajectory_without_a_score(problem, executor):
    class Failing(ScriptedGenerator):
        def generate(self, prompts, temperature, seeds=None):
            return [
                Completion((), "", error="503 five times") if "once more" in decode(prompt) else completion
                for prompt, completion in zip(prompts, super().generate(prompts, temperature), strict=True)
            ]

    other = replace(problem, task_id="2", text="Write a function to double a number once more.")
    failed, whole = rollout(begin([other, problem]), Failing(lambda _: answer(RIGHT)), executor, COCOS, 3)
    assert [turn.result.infra_error for turn in failed.turns] == ["503 five times"]
    assert failed.turns[0].result.num_passed is None and len(whole.turns) == 3
    assert values([failed, whole])["acc_t1"] == 1.0  # of the one that has a score
    with pytest.raises(ExecutorError, match="503 five times"):
        InfraFailures(0.2).add([failed, whole])


def test_a_batch_plays_all_its_turns_before_the_next_begins_and_its_programs_run_on(problem, executor):
    asked = []

    class Narrow(ScriptedGenerator):
        batch_size = 2

        def generate(self, prompts, temperature, seeds=None):
            asked.append([decode(prompt).count("[DONE]") for prompt in prompts])
            return super().generate(prompts, temperature)

    generator, rules = Narrow(in_turn(answer(WRONG), answer(RIGHT))), Rules(temperatures=(1.0,))
    played = rollout(begin([problem] * 5), generator, executor, COCOS, 2, rules)
    assert asked == [[0, 0], [1, 1], [0, 0], [1, 1], [0], [1]]
    assert [[turn.result.all_passed for turn in t.turns] for t in played] == [[False, True]] * 5


TESTS = ("assert double(0) == 0", "assert double(3) == 6", "assert double(5) == 10")
HEAD = "You are an expert Python programmer, and here is your task: Write a function to double a number."
SHOWN = " Your code should pass these tests:\n\n"


def prompts_of(trajectory) -> list[str]:
    return [decode(turn.prompt_ids) for turn in trajectory.turns if not turn.is_carried]


def test_counterexamples_are_the_failed_tests_in_the_order_of_the_file_and_no_program(problem, executor):
    problem = replace(problem, test_list=TESTS, hidden_test_list=("assert double(7) == 14",))
    attempts = iter(["def double(x):\n    return 5", "def double(x):\n    return 6", RIGHT])
    generator = ScriptedGenerator(lambda prompt: answer(next(attempts)))
    rules = Rules(carry=Counterexamples(), early_stop=True)
    protocol = named_protocol("cocos", prompt_tests=0)
    [played] = rollout(begin([problem]), generator, executor, protocol, num_turns=4, rules=rules)
    assert (
        prompts_of(played)
        == [
            f"{HEAD}\n\n[BEGIN]\n",
            f"{HEAD}{SHOWN}{TESTS[0]}\n\n[BEGIN]\n",
            f"{HEAD}{SHOWN}{TESTS[0]}\n{TESTS[2]}\n\n[BEGIN]\n",  # the second program fails the first and the third
        ]
    )
    assert [turn.feedback for turn in played.turns] == ["", TESTS[0], f"{TESTS[0]}\n{TESTS[2]}", ""]
    assert played.turns[3].is_carried and played.turns[3].result.is_right
    few_shot = named_protocol("cocos-fewshot", [replace(problem, task_id="0", text="Write another.")])
    generator = ScriptedGenerator(lambda prompt: answer(WRONG))
    [played] = rollout(begin([problem]), generator, executor, few_shot, 2, Rules(carry=Nothing()))
    first, second = prompts_of(played)
    assert first == second == few_shot.first_turn(problem)
    assert first == f"{few_shot.prefix(problem)}{played.turns[1].request}\n"
    assert played.turns[0].request == first.strip("\n")


def test_with_feedback_a_counterexample_has_what_each_program_did(problem, executor):
    problem = replace(problem, test_list=TESTS)
    attempts = iter(["def double(x):\n    return 6", "def double(x):\n    return 7 if x else 1 / x", RIGHT])
    generator = ScriptedGenerator(lambda prompt: answer(next(attempts)))
    rules = Rules(carry=Counterexamples(), feedback="error", feedback_failures=3, early_stop=True)
    [played] = rollout(begin([problem]), generator, executor, COCOS, num_turns=3, rules=rules)
    first, second, third = prompts_of(played)
    assert first == f"{HEAD}{SHOWN}" + "\n".join(TESTS) + "\n\n[BEGIN]\n"
    assert second == f"{HEAD}{SHOWN}{TESTS[0]}  # not 6\n{TESTS[1]}\n{TESTS[2]}  # not 6\n\n[BEGIN]\n"
    assert third == (
        f"{HEAD}{SHOWN}{TESTS[0]}  # not 6; ZeroDivisionError: division by zero\n{TESTS[1]}  # not 7\n"
        f"{TESTS[2]}  # not 6; not 7\n\n[BEGIN]\n"
    )


def test_nothing_carried_every_prompt_is_the_first_and_every_sample_has_its_own_seed(problem, executor):
    generator = Recorder(lambda prompt: answer(WRONG))
    rules = Rules(carry=Nothing(), early_stop=True, temperatures=(0.0, 0.8), seed=1)
    [played] = rollout(begin([problem]), generator, executor, COCOS, num_turns=3, rules=rules)
    assert len(prompts_of(played)) == 3 and len(set(prompts_of(played))) == 1
    assert [temperature for temperature, _ in generator.calls] == [0.0, 0.8, 0.8]
    assert len({seed for _, [seed] in generator.calls}) == 3
    assert [turn.feedback for turn in played.turns] == ["", "", ""]
    rows = [trajectory_from_row(trajectory_to_row(played), problem)]
    for trajectories in ([played], rows):
        metrics = edit_metrics(trajectories)
        assert [metrics[f"same_prompt_{pair}"].value for pair in ("t1_t2", "t2_t3")] == [1.0, 1.0]
    again = replace(rules, carry=Transcript())
    [played] = rollout(begin([problem]), generator, executor, COCOS, num_turns=3, rules=again)
    assert not any(name.startswith("same_prompt") for name in edit_metrics([played]))


def test_own_wording_names_the_attempt_and_the_signature(problem, executor):
    own = own_protocol("mine", "{signature} {attempt} {text}\n", "Again.", is_chat=False)
    generator = ScriptedGenerator(lambda prompt: answer(WRONG))
    [played] = rollout(begin([problem]), generator, executor, own, 2, Rules(carry=Nothing()))
    assert prompts_of(played) == [f"def double(x): {n} {problem.text}\n" for n in (1, 2)]
    with pytest.raises(DataError, match="has no signature, which mine shows: it has no reference"):
        own.first_turn(replace(problem, code=""))
