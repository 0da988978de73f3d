"""All text that the model sees in the turn loop: prompts and feedback. `cocos.agents.words` has the agents'.

The wording is an interface: the released CoCoS checkpoints were trained on exactly these characters, and
golden tests compare them. The constants have the sentences; a `PromptProtocol` puts them together.
Does not know tokens or how programs are run.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from string import Formatter
from types import MappingProxyType
from typing import Any

from cocos.executor import ExecutionResult, Status, Verdict, comparison_text, end_text, read_stdout_test
from cocos.files.json_lines import DataError, listed
from cocos.literals import Feedback
from cocos.problems import Problem

BEGIN = "[BEGIN]"
DONE = "[DONE]"
CORRECT = "[CORRECT]"

AUXILIARY_INSTRUCTION = (
    "There might be an error in the code above because of lack of understanding of the question. "
    "Please correct the error, if any, and rewrite the solution. "
    "Only output the final correct Python program!"
)

REPAIR_INSTRUCTION = (
    "The program above may be wrong. Compare it with the task and the tests, find the error, if any, and "
    "repair it. If there is none, repeat the program as it is."
)
TESTS_REQUEST = "Your code should pass these tests"
SCRIPT_REQUEST = "Your program should read standard input, and print what these examples show"
FENCE_REQUEST = "Answer with the whole program in one ```python code block."

REPEATED = "The program above is the same as the one before it."

REPAIR_EXAMPLE = "Example {number}. A program with a bug:\n\n{buggy}\n\nThe repaired program:\n\n{fixed}"
FEEDBACK_CHARS = 300  # of a quoted test, and of a quoted error: a screen's line or two of a small context
TEMPLATE_PLACEHOLDERS = {  # of own wording
    "first_turn": ("text", "entry_point", "signature", "tests", "attempt"),
    "later_turn": ("feedback",),
}
# Index of a failed visible test -> what programs did instead; LOAD -> how programs ended before any test.
Failures = Mapping[int, Sequence[str]]
LOAD = -1
NO_FAILURES: Failures = MappingProxyType({})


@dataclass(frozen=True)
class PromptProtocol:
    """Wording of the messages of every turn. Its name is stored with every result."""

    name: str  # one of `PROTOCOLS`, or the name of the user's own wording
    # End of turn 1's message: the marker before the completion, or a request for a format.
    first_ending: str = f"{BEGIN}\n"
    later_ending: str = f"{CORRECT}\n"  # end of the messages of turns 2..T
    instruction: str = AUXILIARY_INSTRUCTION  # request of turns 2..T
    # Solved problems before turn 1 (few-shot): the first `num_examples`, all for None, without the one asked.
    examples: tuple[Problem, ...] = ()
    num_examples: int | None = None
    # Messages go through the model's chat template. Otherwise the transcript is one plain text.
    is_chat: bool = False
    # Number of visible tests that turn 1's message shows, the first ones; None: all.
    prompt_tests: int | None = None
    system: str = ""  # system message of a chat; "" for none
    tools: tuple[dict[str, Any], ...] = ()  # functions that the model may call in a chat, in OpenAI's format
    # Turn 1's message shows the program to repair in a code block, and the tests after a blank line.
    has_fences: bool = False
    # Turn 1's message shows the first line of the reference, unless it stands in the task (HumanEval).
    has_signature: bool = False

    def first_turn(self, problem: Problem, failed: Failures = NO_FAILURES, turn: int = 1) -> str:
        """Return the message of turn 1, which begins every turn if no transcript is carried.

        Args:
            failed: Tests that earlier programs failed, from `counterexamples`; they are shown, too.
            turn: Number of the turn, from 1.

        """
        sentences = [f"You are an expert Python programmer, and here is your task: {self._task(problem)}"]
        if self.has_signature and (line := problem.signature) and line not in problem.text:
            sentences.append(f"Your code should contain the line `{line}`.")
        if tests := self._shown_tests(problem, failed):
            asked = SCRIPT_REQUEST if problem.is_script else TESTS_REQUEST
            sentences.append(f"{asked}:\n\n{tests}")
        message = ("\n\n" if self.has_fences else " ").join(sentences)
        return f"{self.prefix(problem)}{message}\n\n{self.first_ending}"

    def _task(self, problem: Problem) -> str:
        """Return the task, with the program to repair in a code block if the protocol has some."""
        if not self.has_fences or not problem.buggy_code or problem.buggy_code not in problem.text:
            return problem.text
        before, program, after = problem.text.rpartition(problem.buggy_code)  # words before it may be equal
        return f"{before}{self.answer(program)}{after}"

    def prefix(self, problem: Problem) -> str:
        """Return the examples before turn 1's message of a problem, which is never its own example."""
        others = [example for example in self.examples if example.text != problem.text]
        alone = replace(self, examples=())
        shown = others[: self.num_examples]
        return "".join(f"{alone.first_turn(example)}{answer(example.code)}\n\n" for example in shown)

    def answer(self, code: str) -> str:
        """Return a program in the format that the protocol expects of a completion."""
        return f"```python\n{code.strip(chr(10))}\n```" if self.is_chat else answer(code)

    def with_system(self, text: str) -> "PromptProtocol":
        """Return the protocol whose system message begins with a text."""
        return replace(self, system="\n\n".join(filter(None, (text, self.system))))

    def later_turn(self, is_closed: bool = True, feedback: str = "") -> str:
        """Return the message of turns 2..T. In a plain transcript it follows the completion directly.

        Args:
            is_closed: The previous completion contains [DONE]. If not, a plain transcript gets the missing
                marker, so that all completions in it end in the same way.
            feedback: Text about the previous program, placed before the instruction; "" for none.

        """
        request = self._request(f"{feedback}\n\n" if feedback else "")
        if self.is_chat:
            return request
        close = "" if is_closed else f"\n{DONE}"
        return f"{close}\n\n{request}"

    def _shown_tests(self, problem: Problem, failed: Failures) -> str:
        first = range(len(problem.test_list))[: self.prompt_tests]
        return shown_tests(problem, {index: failed.get(index, ()) for index in sorted({*first, *failed})})

    def _request(self, feedback: str) -> str:
        return f"{feedback}{self.instruction}\n\n{self.later_ending}"


@dataclass(frozen=True)
class OwnWording(PromptProtocol):
    """The user's own messages (`--prompt_file`)."""

    first_template: str = ""  # message of turn 1, with `{text}` or `{entry_point}`, and `{tests}`
    later_template: str = ""  # message of turns 2..T, in which `{feedback}` is optional

    def first_turn(self, problem: Problem, failed: Failures = NO_FAILURES, turn: int = 1) -> str:
        if "{entry_point}" in self.first_template and not problem.entry_point:
            raise DataError(
                f"problem {problem.task_id!r} has no entry_point, which {self.name} shows; add the "
                "name of its function, or write {text}"
            )
        if "{signature}" in self.first_template and not problem.signature:
            raise DataError(
                f"problem {problem.task_id!r} has no signature, which {self.name} shows: it has no reference "
                "that defines what its tests call; add its code, or write {text} alone"
            )
        return self.first_template.format(
            text=problem.text,
            entry_point=problem.entry_point,
            signature=problem.signature,
            tests=self._shown_tests(problem, failed),
            attempt=turn,
        )

    def _request(self, feedback: str) -> str:
        before = "" if "{feedback}" in self.later_template else feedback
        return before + self.later_template.format(feedback=feedback)


_CHAT = PromptProtocol("chat", first_ending=FENCE_REQUEST, later_ending=FENCE_REQUEST, is_chat=True)
_REPAIR = replace(_CHAT, name="repair", instruction=REPAIR_INSTRUCTION)
_PROTOCOLS = (
    PromptProtocol("cocos"),
    PromptProtocol("cocos-fewshot", later_ending=f"{BEGIN}\n"),
    _CHAT,
    _REPAIR,
    replace(_REPAIR, name="fix", has_fences=True),
)
PROTOCOLS = {protocol.name: protocol for protocol in _PROTOCOLS}


def named_protocol(
    name: str,
    few_shot: Iterable[Problem] = (),
    prompt_tests: int | None = None,
    has_signature: bool = False,
    num_examples: int | None = None,
) -> PromptProtocol:
    """Return the prompt protocol of that name.

    Args:
        name: `cocos` for models trained on the two-turn format, `cocos-fewshot` for base models, `chat`,
            `repair` and `fix` for models with a chat template. `chat` asks for a correction in the paper's
            words; `repair` says that the program may be wrong and asks to compare it with the tests; `fix`
            is `repair` with the program to repair in a code block (HumanEvalFix).
        few_shot: Solved problems before turn 1 of `cocos-fewshot`; for a chat, problems with a bug and its
            repair, which the system message shows.
        prompt_tests: Number of tests that turn 1 shows, also of the few-shot problems; None: all visible.
        has_signature: Whether turn 1 shows the first line of the reference, also of the few-shot problems.
        num_examples: Number of few-shot problems that are shown, the first ones; None: all.

    Raises:
        ValueError: The name is unknown, or few-shot problems are missing, lack a solution, or are given to a
            protocol that does not use them.

    """
    few_shot = tuple(few_shot)
    if name not in PROTOCOLS:
        raise ValueError(f"unknown prompt protocol {name!r}; choose one of {', '.join(PROTOCOLS)}")
    named = replace(PROTOCOLS[name], prompt_tests=prompt_tests, has_signature=has_signature)
    if named.is_chat and few_shot and all(p.code.strip() and p.buggy_code.strip() for p in few_shot):
        repairs = (
            REPAIR_EXAMPLE.format(number=number, buggy=named.answer(p.buggy_code), fixed=named.answer(p.code))
            for number, p in enumerate(few_shot[:num_examples], start=1)
        )
        return replace(named, system="\n\n".join(repairs))
    if name != "cocos-fewshot" and few_shot:
        raise ValueError(
            f"few-shot problems are given, but the protocol is {name!r}; use --protocol cocos-fewshot"
            + (", or give problems with code and buggy_code" if named.is_chat else "")
        )
    if name != "cocos-fewshot":
        return named
    unsolved = [p.task_id for p in few_shot if not p.code.strip()]
    if not few_shot or unsolved:
        raise ValueError(
            "protocol 'cocos-fewshot' needs solved problems; give --few_shot_data FILE with code"
            + f", which problem {listed(unsolved)} has not" * bool(unsolved)
        )
    return replace(named, examples=few_shot, num_examples=num_examples)


def own_protocol(name: str, first_turn: str, later_turn: str, is_chat: bool) -> PromptProtocol:
    """Return a protocol with the user's own wording, after checking its placeholders.

    Args:
        name: Name that is stored with every result.
        first_turn: Message of turn 1: `{text}` is the task, `{entry_point}` the name of its function (of sets
            that have it), `{signature}` the first line of its reference, `{tests}` its visible tests, one per
            line, `{attempt}` the number of the turn.
        later_turn: Message of turns 2..T: `{feedback}` is the feedback and a blank line, or "". Without this
            placeholder, feedback precedes the message. Other braces are doubled, as in `{{`.

    Raises:
        ValueError: A placeholder is unknown, or both `{text}` and `{entry_point}` are missing.

    """
    for key, template in (("first_turn", first_turn), ("later_turn", later_turn)):
        known = TEMPLATE_PLACEHOLDERS[key]
        try:
            parts = list(Formatter().parse(template))
        except ValueError as error:
            raise ValueError(f"{key}: {error}; write a brace of the text twice, as in {{{{") from None
        for _, field, specification, conversion in parts:
            if field is not None and (field not in known or specification or conversion):
                raise ValueError(
                    f"{key}: unknown placeholder {{{field}}}; the known ones are "
                    f"{', '.join(f'{{{name}}}' for name in known)}. Write other braces twice, as in {{{{"
                )
    if "{text}" not in first_turn and "{entry_point}" not in first_turn:
        raise ValueError("first_turn: {text} is missing, so the model would not see the task; add it")
    return OwnWording(name, is_chat=is_chat, first_template=first_turn, later_template=later_turn)


def answer(code: str) -> str:
    """Return the completion of a plain transcript: the code, then [DONE] on the next line."""
    return f"{code.strip(chr(10))}\n{DONE}"


def passes_visible_tests(problem: Problem, result: ExecutionResult) -> bool:
    """Return whether every visible test passes. Hidden tests do not count: feedback must not reveal them."""
    return not result.is_infra_failure and all(
        verdict.passed for verdict in _visible_verdicts(problem, result)
    )


def feedback_message(mode: Feedback, problem: Problem, result: ExecutionResult, max_failures: int = 1) -> str:
    """Return the text that reports the previous program's results on the visible tests, or "" for none.

    Args:
        mode: `verdict` says how many visible tests pass. `error` also quotes the first ones that fail, with
            the expected and the actual value, or the exception's last line.
        max_failures: Maximum number of quoted tests.

    Example:
        "The program above passes 1 of the 3 tests. This one fails:\\n\\nassert f(2) == 4\\n\\nExpected 4,
        got 5."

    """
    verdicts = _visible_verdicts(problem, result)
    if mode == "none" or not verdicts:
        return ""
    passed = sum(verdict.passed for verdict in verdicts)
    if passed == len(verdicts):
        return "The program above passes the tests."
    if mode == "error" and (load := result.load_error):
        return f"The program above {end_text(load, _reason(load))}"
    count = f"The program above passes {passed} of the {len(verdicts)} tests."
    if mode == "verdict":
        return count
    failures = [
        f"{_quoted(test)}\n\n{_reason(verdict)}"
        for test, verdict in zip(problem.test_list, verdicts, strict=True)
        if not verdict.passed and verdict.status is not Status.NOT_RUN
    ][:max_failures]
    words = "This one fails" if len(failures) == 1 else "These fail"
    return "\n\n".join([f"{count} {words}:", *failures])


def counterexamples(
    mode: Feedback,
    problem: Problem,
    results: Iterable[ExecutionResult],
    num_shown: int | None,
    max_new: int = 1,
) -> dict[int, list[str]]:
    """Return the visible tests that programs failed, by index, with what the programs did instead.

    Of a test that did not run nothing is said. How a program ended before any test stands under LOAD.

    Args:
        mode: `error` says what each program returned or raised, each outcome once; `none` says nothing.
        results: Results of the programs of turns 1, 2, ...
        num_shown: Number of tests that the prompt shows anyway, the first ones; None: all.
        max_new: Maximum number of tests that one program adds to those that the prompt shows.

    Example:
        The second of two tests fails, f(2) is 5 -> {1: ["not 5"]}.

    """
    found: dict[int, list[str]] = {}
    shown = set(range(len(problem.test_list))[:num_shown])
    for result in results:
        failures = {i: v for i, v in enumerate(_visible_verdicts(problem, result)) if not v.passed}
        shown.update([index for index in failures if index not in shown][:max_new])
        said = {index: _outcome(failures[index]) for index in sorted(shown & failures.keys())}
        if (load := result.load_error) and mode == "error":
            said = {LOAD: _cut(end_text(load, _reason(load))), **dict.fromkeys(said, "")}
        for index, outcome in said.items():
            outcomes = found.setdefault(index, [])
            if mode == "error" and outcome and outcome not in outcomes:
                outcomes.append(outcome)
    return dict(sorted(found.items()))


def _outcome(verdict: Verdict) -> str:
    """Return what a program did instead of passing a test, on one line; "" if the test did not run."""
    if verdict.status is Status.NOT_RUN:
        return ""
    if verdict.status is Status.FAILED:
        return "fails" if verdict.actual is None else f"not {_cut(verdict.actual, FEEDBACK_CHARS // 2)}"
    return "takes too long" if verdict.status is Status.TIMEOUT else _reason(verdict)


def shown_tests(problem: Problem, outcomes: Failures) -> str:
    """Return visible tests, one per line, with comments on what programs did instead of passing them.

    A test of standard input is two blocks, its input and its output.

    Example: {0: ["not 5"]} -> `assert f(2) == 4  # not 5`.
    """
    lines = []
    for index, said in outcomes.items():
        comment = "; ".join(" ".join(outcome.split()) for outcome in said)
        if index == LOAD:
            lines.append(f"# A program for them {comment}.")
            continue
        test = problem.test_list[index]
        if spoken := read_stdout_test(test):
            test = f"Input:\n{spoken.input.rstrip()}\n\nOutput:\n{spoken.output.rstrip()}"
        lines.append(test + (f"{chr(10) if chr(10) in test else '  '}# {comment}" if comment else ""))
    return ("\n\n" if problem.is_script else "\n").join(lines)


def _quoted(test: str) -> str:
    """Return what feedback shows of a test; the verdict has the output that it expects."""
    spoken = read_stdout_test(test)
    return f"Input:\n{_cut(spoken.input.rstrip())}" if spoken else _cut(test)


def _visible_verdicts(problem: Problem, result: ExecutionResult) -> tuple[Verdict, ...]:
    return result.verdicts[: len(problem.test_list)]


def _reason(verdict: Verdict) -> str:
    if verdict.status is Status.FAILED and verdict.expected is not None and verdict.actual is not None:
        # The two values share the limit.
        expected, actual = (_cut(side, FEEDBACK_CHARS // 2) for side in (verdict.expected, verdict.actual))
        text = comparison_text(actual, verdict.relation, expected)
        return f"{text[0].upper()}{text[1:]}." if text.startswith("expected") else f"{text}."
    if verdict.status is Status.TIMEOUT:
        return "It takes too long."
    lines = (verdict.message or "").strip().splitlines()
    kind = verdict.error_type or verdict.status.name.capitalize()
    return _cut(f"{kind}: {lines[-1]}" if lines else kind)


def _cut(text: str, max_chars: int = FEEDBACK_CHARS) -> str:
    return text if len(text) <= max_chars else f"{text[: max(0, max_chars - 4)]} ..."
