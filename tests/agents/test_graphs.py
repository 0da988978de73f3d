"""The agents: every edge of every graph with scripted answers and real execution, limits, and batches."""

import json
from dataclasses import replace

import pytest

from cocos.agents.graphs import GRAPHS, play_with_agent
from cocos.agents.words import agent_protocol
from cocos.config.eval_config import EvalConfig
from cocos.evaluation.trajectory_text import trajectory_text
from cocos.generation import Completion
from cocos.generation.scripted import ScriptedGenerator
from cocos.generation.tool_calls import format_tool_call
from cocos.problems import Problem
from cocos.prompts import named_protocol
from cocos.trajectories import Rules, begin
from tests.support.paths import ROOT

RIGHT = "def double(x):\n    return 2 * x"
BUGGY = "def double(x):\n    return x * x"
OTHER = "def double(x):\n    return x + x + 1"  # right for no test
TESTS = ("assert double(2) == 4", "assert double(0) == 0", "assert double(-1) == -2")
PROBLEM = Problem(
    "1", f"Fix the bugs in this function.\n\n{BUGGY}", TESTS, RIGHT, entry_point="double", buggy_code=BUGGY
)
FAILS = "The program above passes 0 of the 3 tests. This one fails:\n\nassert double(2) == 4\n\nExpected 4, got 5."

BUGGY_FAILS = "The program above passes 2 of the 3 tests. This one fails:\n\nassert double(-1) == -2\n\nExpected -2, got 1."
UNCHANGED = "It is the program to repair, without a change. Write a program that differs from it."


class Queue(ScriptedGenerator):
    """Gives its answers in order; an exception in their place is an endpoint's failure."""

    def __init__(self, *answers):
        super().__init__(lambda prompt: "")
        self.answers, self.prompts, self.temperatures = list(answers), [], []

    def generate(self, prompts, temperature, seeds=None):
        self.prompts += ["".join(map(chr, prompt)) for prompt in prompts]
        self.temperatures += [temperature] * len(prompts)
        answers = [self.answers.pop(0) for _ in prompts]
        return [
            Completion((), "", error=str(answer)) if isinstance(answer, Exception) else self.quote(answer)
            for answer in answers
        ]


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def run_code(code: str) -> str:
    return format_tool_call("run_code", json.dumps({"code": code, "reason": "a guess"}))


def submit(code: str) -> str:
    return format_tool_call("submit", json.dumps({"code": code}))


def play(agent, generator, executor, num_turns=5, problem=PROBLEM, rules=None, words="fix", **begun):
    rules = rules or Rules(temperatures=(0.0, 0.45, 0.65), seed=1)
    wording = agent_protocol(named_protocol(words), agent)
    trajectories = [replace(trajectory, **begun) for trajectory in begin([problem])]
    [trajectory] = play_with_agent(
        trajectories, generator, executor, wording, num_turns, rules, agent, max_repeats=3
    )
    assert len(trajectory.turns) == num_turns or trajectory.turns[-1].completion.error
    return trajectory


def path(trajectory) -> list[str]:
    """Return the nodes that made the turns; carried turns have none."""
    return [turn.step.node for turn in trajectory.turns if turn.step]


# -- reflect --


@pytest.mark.parametrize(
    ("answers", "nodes", "is_right"),
    [
        ([RIGHT], ["draft"], True),
        (["def double(x): return (", RIGHT], ["draft", "syntax"], True),
        (["def triple(x):\n    return 3 * x", RIGHT], ["draft", "syntax"], True),
        (["def double(x, y):\n    return 2 * x", RIGHT], ["draft", "syntax"], True),
        (["def double(", "def double(:", RIGHT], ["draft", "syntax", "syntax"], True),
        ([f"# my try\n{BUGGY}", RIGHT], ["draft", "repeat"], True),
        ([OTHER, f"{OTHER}  # again", RIGHT], ["draft", "reflect", "repeat"], True),
        ([OTHER, RIGHT], ["draft", "reflect"], True),
        ([OTHER, "def double(", RIGHT], ["draft", "reflect", "syntax"], True),
        ([BUGGY] * 3, ["draft", "repeat", "repeat"], False),
    ],
)
def test_reflect_follows_every_edge(answers, nodes, is_right, executor):
    generator = Queue(*map(fenced, answers))
    played = play("reflect", generator, executor)
    assert path(played) == nodes and generator.answers == []
    assert played.turns[-1].result.all_passed is is_right
    assert [turn.is_carried for turn in played.turns] == [False] * len(nodes) + [True] * (5 - len(nodes))


def test_reflect_is_told_of_the_form_the_repetition_and_the_failure_each_at_its_node(executor):
    form = "def double(x, y):\n    return x"
    generator = Queue(fenced(form), fenced(BUGGY), fenced(OTHER), f"Line 2 adds 1.\n{fenced(RIGHT)}")
    played = play("reflect", generator, executor)
    feedback = [turn.feedback for turn in played.turns]
    assert feedback[1] == "The program above cannot be tested: it defines double(x, y) instead of double(x)."
    assert feedback[2] == f"{BUGGY_FAILS}\n\n{UNCHANGED}"
    request = "Say first, in one or two sentences, what the program does wrong, and in which line."
    assert feedback[3] == f"{FAILS}\n\n{request}"
    assert generator.prompts[3].startswith(
        generator.prompts[2] + fenced(OTHER) + f"\n\n{feedback[3]}\n\nRepair"
    )
    assert played.turns[3].code == RIGHT and played.turns[3].completion.text.startswith("Line 2 adds 1.")


def test_the_program_to_repair_is_tested_once_before_the_model_and_then_it_is_a_repetition(executor):
    played = play("reflect", Queue(*map(fenced, [BUGGY, f"# again\n{BUGGY}", RIGHT])), executor)
    assert path(played) == ["draft", "repeat", "repeat"] and played.turns[2].result.all_passed
    assert played.turns[1].feedback == f"{BUGGY_FAILS}\n\n{UNCHANGED}"
    assert played.turns[2].feedback.startswith("The program above is one that was tried before and fails.")


def test_prose_is_no_program_and_reflect_says_so(executor):
    played = play("reflect", Queue("Sorry, I cannot help with that.", fenced(RIGHT)), executor)
    assert path(played) == ["draft", "syntax"] and played.turns[0].code == ""
    assert played.turns[1].feedback == ("The program above cannot be tested: the answer contains no program.")


def test_each_attempt_has_its_temperature_and_its_seed(executor):
    class Seeds(Queue):
        seeds = []

        def generate(self, prompts, temperature, seeds=None):
            self.seeds += seeds
            return super().generate(prompts, temperature, seeds)

    generator = Seeds(fenced(OTHER), fenced(OTHER + "0"), fenced(BUGGY), fenced(RIGHT))
    played = play("reflect", generator, executor)
    assert path(played) == ["draft", "reflect", "reflect", "repeat"]
    assert generator.temperatures == [0.0, 0.45, 0.65, 0.65]
    assert [turn.step.temperature for turn in played.turns[:4]] == generator.temperatures
    assert len(set(generator.seeds)) == 4


@pytest.mark.parametrize("answers", [["def double("], [BUGGY], [OTHER]])
def test_the_last_turn_ends_reflect_at_every_node(answers, executor):
    generator = Queue(*map(fenced, answers))
    assert path(play("reflect", generator, executor, num_turns=1)) == ["draft"]
    assert generator.answers == []


@pytest.mark.parametrize("num_answers", [0, 1])
def test_a_failing_endpoint_ends_reflect_as_an_infrastructure_failure(num_answers, executor):
    answers = [fenced(OTHER)][:num_answers]
    played = play("reflect", Queue(*answers, ConnectionError("no server")), executor)
    assert played.turns[-1].result.infra_error == "no server" and not played.turns[-1].is_carried
    assert path(played) == ["draft", "reflect"][: 1 + num_answers]


def test_given_answers_take_the_place_of_the_first_programs(executor):
    given = (fenced(OTHER), fenced(RIGHT))
    played = play("reflect", Queue(), executor, given=given)
    assert path(played) == ["draft", "reflect"] and played.turns[1].result.all_passed
    assert all(turn.is_given for turn in played.turns[:2])


def test_reflect_works_without_an_entry_point_a_buggy_program_and_a_chat(executor):
    bare = Problem("1", "Write a function to double a number.", TESTS)
    generator = Queue(f"{OTHER}\n[DONE]", f"{RIGHT}\n[DONE]")
    played = play("reflect", generator, executor, problem=bare, words="cocos")
    assert path(played) == ["draft", "reflect"] and played.turns[1].result.all_passed
    assert played.turns[1].feedback == FAILS and generator.prompts[1].endswith("[CORRECT]\n")


# -- react --


def test_react_proposes_until_a_program_passes(executor):
    generator = Queue(*map(fenced, [OTHER, BUGGY, RIGHT]))
    played = play("react", generator, executor)
    assert path(played) == ["propose"] * 3 and generator.answers == []
    assert [turn.result.num_passed for turn in played.turns] == [0, 2, 3, 3, 3]
    assert played.turns[1].feedback == FAILS
    assert generator.prompts[1].startswith(generator.prompts[0] + fenced(OTHER) + f"\n\n{FAILS}\n\nRepair")


def test_react_gives_up_at_the_third_equal_failure(executor):
    programs = [OTHER, BUGGY, f"{OTHER}  # 2", f"{OTHER}  # 3", RIGHT]
    generator = Queue(*map(fenced, programs))
    assert path(play("react", generator, executor)) == ["propose"] * 4
    assert generator.answers == [fenced(RIGHT)]


def test_react_with_one_turn_is_one_answer_without_feedback(executor):
    generator = Queue(fenced(BUGGY), fenced(RIGHT))
    played = play("react", generator, executor, num_turns=1)
    assert [turn.feedback for turn in played.turns] == [""] and len(generator.prompts) == 1


def test_react_quotes_as_many_failures_as_the_rules_say(executor):
    rules = Rules(feedback_failures=3, seed=1)
    played = play("react", Queue(fenced(OTHER), fenced(RIGHT)), executor, rules=rules)
    assert all(test in played.turns[1].feedback for test in TESTS)


# -- tools --


def test_tools_runs_refuses_warns_and_submits(executor):
    generator = Queue(
        "I would double it.",
        run_code(BUGGY),
        run_code(BUGGY),
        format_tool_call("search", "{}"),
        format_tool_call("run_code", '{"code": 3}'),
        format_tool_call("run_code", '{"code": "def'),
        run_code(RIGHT),
        submit(RIGHT),
    )
    played = play("tools", generator, executor, num_turns=10)
    assert path(played) == ["refuse", "run_code", "run_code", *["refuse"] * 3, "run_code", "submit"]
    assert generator.answers == []
    feedback = [turn.feedback for turn in played.turns]
    assert feedback[1].startswith("This answer is refused: it calls no tool.")
    assert (
        feedback[2].startswith("The program above passes 2 of the 3 tests.") and "Warning" not in feedback[2]
    )
    assert (
        feedback[3].startswith(feedback[2]) and "\n\nWarning: this call repeats an earlier one" in feedback[3]
    )
    assert feedback[4].startswith("This answer is refused: there is no tool 'search'.")
    assert feedback[5].startswith("This answer is refused: the argument code is missing, or not a string.")
    assert feedback[6].startswith("This answer is refused: it is not valid JSON")
    assert feedback[7] == "The program above passes the tests.\n\nCall submit with this program."
    requests = [turn.request for turn in played.turns[:8]]
    assert requests[0].startswith("You repair Python programs.") and requests[1:] == feedback[1:8]
    lines = trajectory_text(played).splitlines()
    assert lines[lines.index("  Reason:") + 1] == "    a guess"
    # A refused answer keeps the last program.
    assert [turn.code for turn in played.turns[:7]] == ["", *[BUGGY] * 5, RIGHT]


def test_tools_submits_a_program_that_it_has_not_run(executor):
    played = play("tools", Queue(submit(BUGGY)), executor)
    assert path(played) == ["submit"] and played.turns[-1].result.num_passed == 2


@pytest.mark.parametrize("answer", ["I cannot.", format_tool_call("median", "{}"), run_code(BUGGY)])
def test_tools_gives_up_after_three_repeated_calls_and_after_three_refused_for_one_reason(answer, executor):
    generator = Queue(*[answer] * 9)
    assert len(path(play("tools", generator, executor, num_turns=9))) == 4


def test_tools_goes_on_after_refusals_for_different_reasons(executor):
    bad = ["No.", format_tool_call("a", "{}"), format_tool_call("b", "{}"), format_tool_call("c", "{}")]
    played = play("tools", Queue(*bad, submit(RIGHT)), executor)
    assert path(played) == [*["refuse"] * 4, "submit"] and played.turns[-1].result.all_passed


@pytest.mark.parametrize("answer", ["No.", run_code(BUGGY)])
def test_the_last_turn_ends_tools(answer, executor):
    generator = Queue(answer, submit(RIGHT))
    assert len(path(play("tools", generator, executor, num_turns=1))) == 1
    assert len(generator.prompts) == 1


@pytest.mark.parametrize("num_answers", [0, 1])
def test_a_failing_endpoint_ends_tools(num_answers, executor):
    answers = [run_code(BUGGY)][:num_answers]
    played = play("tools", Queue(*answers, ConnectionError("no server")), executor)
    assert played.turns[-1].result.infra_error == "no server" and len(played.turns) == num_answers + 1


def test_tools_tells_of_visible_tests_only(executor):
    hidden = replace(PROBLEM, test_list=TESTS[:2], hidden_test_list=TESTS[2:])
    generator = Queue(run_code(BUGGY), submit(BUGGY))
    played = play("tools", generator, executor, problem=hidden)
    assert played.turns[1].feedback.startswith("The program above passes the tests.")
    assert played.turns[-1].result.num_passed == 2 and len(played.turns[-1].result.verdicts) == 3
    assert all(TESTS[2] not in prompt for prompt in generator.prompts)


# -- all --


@pytest.mark.parametrize("agent", GRAPHS)
def test_a_hostile_program_changes_nothing_outside_its_sandbox(agent, executor, tmp_path):
    target = tmp_path / "kept.txt"
    target.write_text("kept")
    attack = (
        f"import os\ntry:\n    os.remove({str(target)!r})\n    DONE = 1\nexcept OSError:\n    DONE = 0\n"
        f"{BUGGY}\ndouble.x = DONE"
    )
    answer = run_code(attack) if agent == "tools" else fenced(attack)
    played = play(agent, Queue(answer), executor, num_turns=1)
    assert target.read_text() == "kept"
    assert played.turns[0].code == attack


class Answering(ScriptedGenerator):
    """Answers problem n at once, after one repair, or never, as n modulo 3 says; counts its batches."""

    def __init__(self, batch_size=None):
        super().__init__(lambda prompt: "")
        self.batch_size, self.sizes = batch_size, []

    def generate(self, prompts, temperature, seeds=None):
        self.sizes.append(len(prompts))
        return [self.quote(self.reply("".join(map(chr, prompt)))) for prompt in prompts]

    def reply(self, prompt):
        n = int(prompt.split("adds ")[1].split(".")[0])
        attempt = 1 + prompt.count("def add")
        is_right = n % 3 == 0 or (n % 3 == 1 and "fails" in prompt)
        return fenced(f"def add(x):\n    return x + {n if is_right else n + attempt}")


def test_rows_do_not_depend_on_the_size_of_the_batches(executor):
    problems = [
        Problem(str(n), f"Write a function that adds {n}.", (f"assert add(1) == {n + 1}",), entry_point="add")
        for n in range(12)
    ]
    wording, rules = agent_protocol(named_protocol("chat"), "reflect"), Rules(seed=3)
    played = {}
    for size in (1, 5, None):
        generator = Answering(size)
        played[size] = play_with_agent(begin(problems), generator, executor, wording, 3, rules, "reflect", 3)
        assert max(generator.sizes) == (size or 12)
        # A draft for all, a second program for the eight that fail, and a third for four of them.
        assert generator.sizes == [12, 8, 4] or size is not None
    codes = {size: [[turn.code for turn in t.turns] for t in found] for size, found in played.items()}
    assert codes[1] == codes[5] == codes[None]
    assert [t.turns[-1].result.all_passed for t in played[1]] == [n % 3 != 2 for n in range(12)]


def test_an_error_of_the_generator_ends_the_batch_and_reaches_the_caller(executor):
    class Broken(ScriptedGenerator):
        def generate(self, prompts, temperature, seeds=None):
            raise ValueError("the endpoint does not know the model")

    with pytest.raises(ValueError, match="does not know the model"):
        play("react", Broken(lambda prompt: ""), executor)


@pytest.mark.parametrize("agent", GRAPHS)
def test_the_figure_of_each_graph_in_the_document_is_that_of_the_code(agent):
    page = (ROOT / "docs/agents.md").read_text()
    [section] = [part for part in page.split("\n## ") if part.startswith(f"{agent}\n")]
    figure = section.split("```mermaid\n")[1].split("```")[0]
    assert figure == GRAPHS[agent].compile().get_graph().draw_mermaid()


def test_the_agents_stay_small():
    sizes = {path.name: len(path.read_text().splitlines()) for path in (ROOT / "cocos/agents").glob("*.py")}
    assert sum(sizes.values()) - sizes["words.py"] <= 350


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"agent": "react", "feedback": "error"}, "--agent react has its own feedback"),
        ({"agent": "reflect", "visible_tests": 0}, "--agent reflect needs visible tests"),
    ],
)
def test_what_an_agent_has_itself_is_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        EvalConfig(model_name_or_path="m", test_data="t", output_dir="o", **options)
