"""Sentences about what speaks against trusting a report's numbers, which stand below the first of them."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cocos.config.agent_options import AGENT_TEMPERATURES
from cocos.config.eval_config import EvalConfig
from cocos.config.option import default_values, option_names
from cocos.extraction import NO_PROGRAM
from cocos.files.bundled import command_line
from cocos.report.comparisons import RunComparison
from cocos.report.finished_runs import FinishedRun
from cocos.report.token_curves import Curve, choice_note
from cocos.trajectories import Rules

MIN_SHARE = 0.01  # of the completions: fewer that are cut off or empty move no accuracy by more
FEW_REPAIRED = 0.05  # of the wrong programs: asking again repairs twice as many (docs/results)
MIN_WRONG = 30  # of fewer wrong programs, none may be repaired by chance where one in ten is: 0.9^30 = 4 %
LENGTH = "--max_completion_length"
# What changes a model's answers or verdicts. The size of a batch changes last digits only, a seed its draws.
MEASURING = set(
    option_names(EvalConfig, "wording", "prompt", "rule", "given", "length", "sampling", "executor")
) - {"batch_size", "seed"}
# The figure with which a sentence about a run begins, and counts in brackets later in it.
FIGURE, COUNTS = re.compile(r"\d[\d.]*(?: of \d+| %)? "), re.compile(r" \([^()]*: \d+\)")


def caveats(
    runs: Sequence[FinishedRun], comparisons: Sequence[RunComparison], curves: Sequence[Curve]
) -> list[str]:
    """Return a sentence for each reason not to trust the numbers; [] if there is none."""
    of_runs = [(run.name, text.removeprefix(f"{run.name}: ")) for run in runs for text in _of_run(run)]
    return [
        *_joined(of_runs),
        *_of_choices(curves),
        *(sentence for comparison in comparisons for sentence in _of_comparison(comparison)),
    ]


def _joined(sentences: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield one sentence for all runs, given by name, whose sentences differ in their figures only."""
    runs_of: dict[str, dict[str, tuple[str, str]]] = {}
    for name, sentence in sentences:
        figure = match[0] if (match := FIGURE.match(sentence)) else ""
        counts = "".join(COUNTS.findall(sentence))
        text = COUNTS.sub("", sentence.removeprefix(figure))
        runs_of.setdefault(text, {})[name] = (sentence, figure.rstrip() + counts)
    for text, said in runs_of.items():
        whole = {sentence for sentence, _ in said.values()}
        if len(whole) == 1:
            yield f"{', '.join(said)}: {whole.pop()}"
        else:
            yield f"{', '.join(f'{name}: {figure}' for name, (_, figure) in said.items())} {text}"


def _of_completions(run: FinishedRun) -> Iterator[str]:
    """Yield a sentence for each fault that a notable share of the model's completions has."""
    statistics, limit = run.statistics, run.record["options"].get("max_completion_length")
    at_limit = f" at {limit} tokens" if limit else ""
    counts = ((reason, statistics.sources[reason]) for reason in NO_PROGRAM)
    listed = ", ".join(f"{reason}: {count}" for reason, count in counts if count)
    reasons = f" ({listed})" if listed else ""
    thought = (
        f"because the thought reached the length limit; raise {LENGTH}, or give "
        "--chat_template_kwargs '{\"enable_thinking\": false}'."
    )
    faults = (
        (
            statistics.num_truncated,
            f"were cut off{at_limit}, so programs may lack their end; raise {LENGTH}.",
        ),
        (statistics.num_only_thoughts, f"are thoughts without an answer, {thought}"),
        (statistics.num_empty, f"contain no program{reasons}; read some, and check --protocol and {LENGTH}."),
    )
    for count, fault in faults:
        if count and count >= MIN_SHARE * statistics.num_sampled:
            yield f"{run.name}: {count} of {statistics.num_sampled} completions {fault}"


def _of_run(run: FinishedRun) -> Iterator[str]:
    yield from _of_completions(run)
    rules = Rules(temperatures=tuple(_temperatures(run)))
    for before, after in run.turn_pairs:
        same = f"same_prompt_t{before}_t{after}"
        if rules.temperature(after) == 0 and run.has_estimate(same):
            share = 100 * run.estimate(same).value
            yield (
                f"{run.name}: {share:.0f} % of the turns {after} ask greedily what turn {before} asked, so "
                "they add nothing; give --temperature a second value, for later turns."
            )
    if (repaired := _repaired_share(run)) is not None and repaired < FEW_REPAIRED:
        yield (
            f"{run.name}: {100 * repaired:.1f} % of the wrong programs are repaired. A model repeats the "
            f"program that it is shown; where programs are short, {carry_flags(run, 'counterexamples')} and "
            f"{carry_flags(run, 'nothing')} repair more (docs/evaluation.md)."
        )
    if failures := run.metrics["num_infra_failures"]:
        yield f"{run.name}: {failures} turns met a failure of executor or endpoint and are not scored."


def carry_flags(run: FinishedRun, carry: str) -> str:
    """Return the flags that give a run another --carry, and take back its options that this would refuse."""
    defaults, options = default_values(EvalConfig), run.record["options"]
    names = ("agent", "feedback", "feedback_failures", "on_repeat", "placebo")
    refused = [name for name in names if options.get(name, defaults[name]) != defaults[name]]
    return " ".join([f"--carry {carry}", *(f"--{name} {defaults[name]}" for name in refused)])


def resampling_advice(run: FinishedRun) -> str:
    """Return how to play the run with which a run over several turns is compared."""
    again = f"{carry_flags(run, 'nothing')} --temperature 0 0.8 --output_dir".split()
    folder = f"{run.folder}_again"
    config = ("--config", run.folder / "run.json") if (run.folder / "run.json").exists() else ("...",)
    return (
        "There is no resampling run to compare with. Evaluate the model again: "
        f"{command_line('eval', *config, *again, folder)}; then compare both: "
        f"{command_line('report', run.folder, folder)}"
    )


def _temperatures(run: FinishedRun) -> list[float]:
    """Return the temperatures of turns 1, 2, ...; those of agents are not the default of other runs."""
    options = run.record["options"]
    return options.get("temperature") or AGENT_TEMPERATURES[options.get("agent", "none")][: run.num_turns]


def _of_choices(curves: Sequence[Curve]) -> Iterator[str]:
    """Yield a sentence if the tests that choose among a run's programs are those that score it."""
    chosen = [c.run for c in curves if c.is_sampled or c.resampling or choice_note(c)]
    names = dict.fromkeys(
        run.name for run in chosen if all(row["num_visible_tests"] == len(row["tests"]) for row in run.rows)
    )
    if names:
        yield (
            f"{', '.join(names)}: every test is visible, so accuracies against tokens, where the visible "
            "tests choose, are those of an oracle; hide some tests with --visible_tests."
        )


def _repaired_share(run: FinishedRun) -> float | None:
    """Return the share of wrong first programs that the last turn has repaired.

    None: there is no transcript, or there are too few wrong programs.
    """
    pair = run.first_and_last
    if pair is None or run.carry.starts_anew or run.metrics["answers"] or run.metrics["agent"] != "none":
        return None
    if sum(not right for rights in run.statistics.outcomes(0).values() for right in rights) < MIN_WRONG:
        return None
    return run.estimate(f"i2c_{pair}").value / (1 - run.estimate(f"acc_t{pair.before}").value)


def _of_comparison(comparison: RunComparison) -> Iterator[str]:
    """Yield a sentence if two runs were not measured in the same way."""
    first, second = (_conditions(run) for run in (comparison.baseline, comparison.other))
    names = [name for name in first if name in second and first[name] != second[name]]
    if names:
        details = ", ".join(f"--{name} {_text(first[name])} and {_text(second[name])}" for name in names)
        yield (
            f"{comparison.baseline.name} and {comparison.other.name} were measured with different options: "
            f"{details}. Their difference may come from these."
        )


def _conditions(run: FinishedRun) -> dict[str, Any]:
    """Return the options of a run that decide what is measured, with the temperatures that were used."""
    names = MEASURING - {"answers"} if run.is_given else MEASURING
    options = {name: value for name, value in run.record["options"].items() if name in names}
    return options | ({"temperature": _temperatures(run)} if "temperature" in options else {})


def _text(value: object) -> str:
    if value in (None, []):
        return "none"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
