"""Evaluation of a split test's condition on the values that the candidate's process sent.

This runs in the trusted process, which has no time or memory limit. `safe_expressions` admits to a condition
only what takes at most n log n time in the size of the evidence, and the codec refuses values that are larger
than their encoding, such as ranges. A test with such a value is undecided, and the driver decides it.
"""

import json
from types import CodeType

from cocos.executor.judging import plain_values
from cocos.executor.judging.assert_split import Split
from cocos.executor.judging.safe_expressions import SAFE_NAMES
from cocos.executor.verdicts import Status, Verdict, comparison_text

_TEXT_CHARS = 200  # of error types, messages and reprs in a verdict
_NAMES = {"__builtins__": {}, **SAFE_NAMES}  # a condition assigns nothing, so all of them can share it
_STATUS = {"AssertionError": Status.FAILED, "MemoryError": Status.MEMORY}


class Undecided(Exception):
    """The evidence does not say whether the test holds; the message is the reason."""


class _CandidateRaised(Exception):
    """An exception was raised in the candidate's process by an atom that the condition needs."""


class _Atoms(dict):
    """Values of the atoms by name, decoded when the condition reads them.

    An atom that raised or is malformed therefore matters only if the condition needs it. For example,
    `f(1) == 2 or f(None) == 3` passes if the first comparison is true and `f(None)` raises.
    """

    def __init__(self, outcomes: list) -> None:
        self.outcomes = outcomes

    def __missing__(self, name: str) -> object:
        if not name.startswith("_"):
            raise KeyError(name)  # a name such as `len`, which `eval` then looks up in the globals
        match self.outcomes[int(name[1:])]:
            case ["v", node]:
                try:
                    return self.setdefault(name, plain_values.decode(node))
                except plain_values.NotPlainValue as error:
                    raise Undecided(shown(str(error))) from None
            case ["n", str(reason)]:
                raise Undecided(shown(reason))
            case ["e", *description]:
                raise _CandidateRaised(*description)
        raise plain_values.CodecError("no well-formed value")


def compare(plan: Split, duration_s: float, outcomes: list) -> Verdict:
    """Return the verdict on a split test: evaluate its conditions on the values of its atoms.

    Raises:
        Undecided: A value that the condition needs is not plain, or costly to evaluate.

    """
    if len(outcomes) != len(plan.atoms):
        return error_verdict([], duration_s)
    atoms = _Atoms(outcomes)
    try:
        for failed in plan.checks:
            if not eval(failed.condition, _NAMES, atoms):
                break
        else:
            return Verdict(Status.PASSED, duration_s=duration_s)
    except _CandidateRaised as error:
        return error_verdict(list(error.args), duration_s)
    except Undecided:
        raise
    except KeyError:
        raise Undecided("a key is missing, which a defaultdict may have") from None
    # On an unexpected value the condition can raise any exception. It counts as an error of the candidate.
    except Exception as error:
        return error_verdict([type(error).__name__, str(error)], duration_s)
    if not failed.symbol:
        return error_verdict(["AssertionError", f"false: {failed.text}"], duration_s)
    left, right, *tolerance = (_text_of_side(side, atoms) for side in failed.sides)
    return failed_comparison(failed.symbol, left, right, "".join(tolerance), duration_s)


def value_verdict(duration_s: float, outcome: list) -> Verdict:
    """Return the verdict on an expression: passed, with its value, if it has a plain one."""
    match outcome:
        case [["v", node]]:
            try:
                plain_values.decode(node)
            except plain_values.CodecError as error:
                return error_verdict(["NotPlainValue", str(error)], duration_s)
            return Verdict(Status.PASSED, duration_s=duration_s, encoded=json.dumps(node))
        case [["n", str(reason)]]:
            return error_verdict(["NotPlainValue", reason], duration_s)
        case ["n", str(reason)]:
            return error_verdict(["OutputLimit", reason], duration_s)
        case [["e", *description]] | ["e", *description]:
            return error_verdict(description, duration_s)
    return error_verdict([], duration_s)


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "in": "contains", "not in": "not contains"}


def failed_comparison(symbol: str, left: str, right: str, tolerance: str, duration_s: float) -> Verdict:
    """Return the verdict for a false comparison.

    Args:
        symbol: Its operator, after "~" if the left side is the expected one; "within" for a tolerance.
        left: Text of the left side.
        right: Text of the right side.
        tolerance: Text of the tolerance, or "".
        duration_s: Wall time of the test.

    """
    relation = symbol.removeprefix("~")
    if relation != symbol:
        left, right, relation = right, left, _MIRRORED.get(relation, relation)
    if relation == "within":
        relation = f"within {shown(tolerance)} of"
    actual, expected = shown(left), shown(right)
    message = comparison_text(actual, relation, expected)
    return Verdict(
        *(Status.FAILED, "AssertionError", message, expected, actual, duration_s), relation=relation
    )


def error_verdict(description: list, duration_s: float) -> Verdict:
    """Return the verdict for [error type, message]; any other list gives the error type MalformedEvidence."""
    if len(description) != 2 or not all(isinstance(part, str) for part in description):
        description = ["MalformedEvidence", "the process sent no well-formed outcome"]
    error_type, message = map(shown, description)
    status = _STATUS.get(error_type, Status.ERROR)
    return Verdict(status, error_type, message, duration_s=duration_s)


def shown(text: str) -> str:
    """Return what a verdict shows of a program's text: cut off, and with escapes for lone surrogates.

    UTF-8 has no encoding for these, and tokenizers refuse them.
    """
    return text[:_TEXT_CHARS].encode(errors="backslashreplace").decode()[:_TEXT_CHARS]


def _text_of_side(side: CodeType, atoms: _Atoms) -> str:
    try:
        return shown(_text(eval(side, _NAMES, atoms)))
    except ValueError:  # an integer with more digits than Python converts to text
        return "<too long to show>"


def _text(value: object) -> str:
    """Return `repr(value)` with sets sorted, because their order depends on this process's hash seed."""
    text = repr(value)
    return _sorted_text(value) if "{" in text else text  # without a brace there is no set in it


def _sorted_text(value: object) -> str:
    if isinstance(value, (set, frozenset)) and value:
        elements = ", ".join(sorted(map(_sorted_text, value)))
        return f"{{{elements}}}" if isinstance(value, set) else f"frozenset({{{elements}}})"
    if type(value) is dict:
        items = (f"{_sorted_text(key)}: {_sorted_text(item)}" for key, item in value.items())
        return "{" + ", ".join(items) + "}"
    if type(value) is list:
        return "[" + ", ".join(map(_sorted_text, value)) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(map(_sorted_text, value)) + (",)" if len(value) == 1 else ")")
    return repr(value)
