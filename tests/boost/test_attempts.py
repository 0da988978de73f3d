"""Attempts: rejection sampling of corrections, and the verdict on hidden tests."""

from dataclasses import replace

from cocos.boost.attempts import Attempt, reference_attempts, sample_attempts
from cocos.boost.rows import make_rows
from cocos.boost.turn_pairs import make_pairs
from cocos.carry import Counterexamples
from cocos.generation.scripted import ScriptedGenerator
from cocos.prompts import answer, named_protocol
from cocos.trajectories import Rules

RIGHT, WRONG = "def double(x):\n    return 2 * x", "def double(x):\n    return x * x"
COCOS = named_protocol("cocos")


def sample(problems, script, executor, **numbers):
    return sample_attempts(
        problems, ScriptedGenerator(script), executor, COCOS, temperature=1.0, max_infra_share=0.0, **numbers
    )


def test_second_turns_and_rows_quote_the_feedback_on_the_attempt(problem, executor):
    feedback = (
        "The program above passes 2 of the 3 tests. This one fails:\n\n"
        "assert double(-1) == -2\n\nExpected -2, got 1."
    )

    def script(prompt: str) -> str:
        return answer(RIGHT if feedback in prompt else WRONG)

    [made] = sample(
        [problem], script, executor, num_samples=1, num_corrections=1, rules=Rules(feedback="error")
    )
    assert made == Attempt("1", WRONG, False, (RIGHT,), feedback, passes_visible=False)
    [pair] = make_pairs([problem], [made], set(), "own")
    _, second = make_rows(problem, pair.attempt.code, pair.correction, COCOS, pair.attempt.feedback)
    assert f"[DONE]\n\n{feedback}\n\nThere might be an error" in second.prompt


def test_without_a_transcript_the_second_turn_has_the_failed_test_and_no_program(problem, executor):
    failing = "assert double(-1) == -2  # not 1"

    def script(prompt: str) -> str:
        return answer(RIGHT if failing in prompt else WRONG)

    rules, bare = Rules(carry=Counterexamples(), feedback="error"), named_protocol("cocos", prompt_tests=0)
    [made] = sample_attempts(
        [problem], ScriptedGenerator(script), executor, bare, num_samples=1, num_corrections=1, temperature=1.0,
        max_infra_share=0.0, rules=rules,
    )  # fmt: skip
    assert made == Attempt("1", WRONG, False, (RIGHT,), failed=((2, ("not 1",)),))
    first, second = make_rows(problem, made.code, RIGHT, bare, failed=dict(made.failed), carry=rules.carry)
    assert "assert" not in first.prompt and first.completion == answer(WRONG)
    task = first.prompt.removesuffix("\n\n[BEGIN]\n")
    assert second.prompt == f"{task} Your code should pass these tests:\n\n{failing}\n\n[BEGIN]\n"
    assert WRONG not in second.prompt and second.completion == answer(RIGHT)


def test_wrong_attempts_get_second_turns_and_those_that_pass_are_corrections(problem, executor):
    easy = replace(problem, task_id="easy", text="Easy: double a number.")

    def script(prompt: str) -> str:
        return answer(RIGHT if "Easy" in prompt or "There might be an error" in prompt else WRONG)

    made = sample([problem, easy], script, executor, num_samples=2, num_corrections=3)
    assert (
        made
        == [Attempt("1", WRONG, False, (RIGHT,))] * 2
        + [Attempt("easy", RIGHT, True, passes_visible=True)] * 2
    )


def test_references_that_pass_are_right_attempts_with_the_feedback_of_a_right_program(problem, executor):
    failing = replace(problem, task_id="failing", code=WRONG)
    without = replace(problem, task_id="without", code="")
    made = reference_attempts([failing, problem, without], executor, COCOS, Rules(feedback="verdict"))
    feedback = "The program above passes the tests."
    assert made == [Attempt("1", problem.code, True, feedback=feedback, passes_visible=True)]
    [pair] = make_pairs([problem], made, set(), "reference")
    assert pair.is_kept and pair.attempt == made[0]


def test_an_attempt_that_fails_a_hidden_test_is_wrong(problem, executor):
    hiding = replace(problem, test_list=problem.test_list[:1], hidden_test_list=problem.test_list[1:])
    [made] = sample([hiding], lambda _: answer(WRONG), executor, num_samples=1, num_corrections=0)
    assert made.is_right is False  # 2 * 2 == 2 ** 2, so the visible test alone would pass


def test_a_program_that_could_have_forged_its_verdicts_is_neither_right_nor_wrong_nor_a_correction(
    problem, executor
):
    awaited = "import asyncio\nassert asyncio.run(slow_double(2)) == 4"
    marked = replace(problem, test_list=(awaited,))
    right = "async def slow_double(x):\n    return 2 * x"

    def script(prompt: str) -> str:
        return answer(right if "There might be an error" in prompt else WRONG)

    assert sample([marked], script, executor, num_samples=1, num_corrections=1) == [
        Attempt("1", WRONG, False)
    ]
    [made] = sample([marked], lambda _: answer(right), executor, num_samples=1, num_corrections=1)
    assert made == Attempt("1", right, None, passes_visible=True)
