"""What report.html shows above the list of trajectories: numbers, comparisons and charts, as HTML.

Whatever a model, a data set or a folder's name contributes is escaped.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from cocos.estimates import change, wilson
from cocos.report.charts import GRID, INK
from cocos.report.comparison import Pair
from cocos.report.finished_runs import Run, by_aids
from cocos.report.tables import left_out, p_value, shown, title

NUM_ERROR_ROWS = 12
Charts = Mapping[tuple[str, str], str]  # (chart, name of the run or what helped) -> SVG element


def sections(runs: Sequence[Run], pairs: Sequence[Pair], charts: Charts) -> Iterator[str]:
    """Everything above the list of trajectories."""
    yield f"<header><h1>{' <small>and</small> '.join(escape(run.name) for run in runs)}</h1>"
    yield "<nav aria-label='sections'><a href='#accuracy'>accuracy</a>"
    yield "<a href='#comparison'>comparison</a>" if pairs else ""
    yield "<a href='#run-0'>flow, errors, time</a><a href='#trajectories'>trajectories</a></nav>"
    yield "".join(f"<p class='dim'>{escape(_made_from(run))}</p>" for run in runs) + "</header>"
    yield "<div id='accuracy'>"
    for aids, group in by_aids(runs).items():
        yield from _accuracy(aids, group, charts, is_alone=len(runs) == 1)
    yield "</div>"
    if pairs:
        yield from _comparison(pairs)
    for number, run in enumerate(runs):
        yield from _run(number, run, charts, is_alone=len(runs) == 1)


def _made_from(run: Run) -> str:
    """Which model on which problems, in a line."""
    options = run.facts["options"]
    model, data = options["model_name_or_path"] or "given answers", options["test_data"]
    return f"{run.label}: {model} on {data}, {options['protocol']} prompts"


def _accuracy(aids: str, runs: Sequence[Run], charts: Charts, is_alone: bool) -> Iterator[str]:
    yield f"<section><h2>{escape(title(aids))}</h2>"
    if is_alone:
        yield from _tiles(runs[0])
    yield "<div class='beside'><div class='scroll'><table class='numbers'>"
    yield "<caption>share of all problems in %, with 95 % intervals</caption>"
    yield "<thead><tr><th scope='col'>turn</th><th scope='col'>right</th><th scope='col'>change</th>"
    yield "<th scope='col'>repaired<br>i→c</th><th scope='col'>spoilt<br>c→i</th></tr></thead>"
    for run in runs:
        metrics = run.metrics["metrics"]
        yield "<tbody>"
        if not is_alone:
            n = run.metrics["num_scored"]
            yield f"<tr><th class='name' colspan='5' scope='rowgroup'>{escape(run.name)} "
            yield f"<small>n = {n}</small></th></tr>"
        for turn in range(1, run.num_turns + 1):
            names = [f"acc_t{turn}"]
            if turn > 1:
                names += [f"{name}_t{turn - 1}_t{turn}" for name in ("delta", "i2c", "c2i")]
            cells = "".join(_cell(metrics[name], is_change=name.startswith("delta")) for name in names)
            yield f"<tr><th scope='row'>{turn}</th>{cells}{'<td></td>' * (4 - len(names))}</tr>"
        yield "</tbody>"
    yield "</table></div>"
    yield f"<figure>{_chart(charts['accuracy', aids])}</figure></div></section>"


def _tiles(run: Run) -> Iterator[str]:
    """The answer to what one opens the page for, in four numbers."""
    metrics, n, last = run.metrics["metrics"], run.metrics["num_scored"], run.num_turns
    tiles = [("right after turn 1", _share(metrics["acc_t1"]))]
    if last > 1:
        first, final = run.observed.first, run.observed.last
        changes = [
            [after - before for before, after in zip(first[task_id], final[task_id], strict=True)]
            for task_id in first
        ]
        repaired, spoilt = (sum(samples.count(step) for samples in changes) for step in (1, -1))
        tiles += [
            (f"right after turn {last}", _share(metrics[f"acc_t{last}"])),
            (f"change from turn 1 to {last}, points", _share(change(changes)._asdict(), is_change=True)),
            (
                f"repaired and spoilt, turn 1 to {last}",
                f"<b><span class='right'>{repaired}</span> <span class='dim'>/</span> "
                f"<span class='wrong'>{spoilt}</span></b> <small>of {n}</small>",
            ),
        ]
    yield "<dl class='tiles'>"
    yield from (f"<div><dt>{label}</dt><dd>{value}</dd></div>" for label, value in tiles)
    yield "</dl>"


def _comparison(pairs: Sequence[Pair]) -> Iterator[str]:
    yield "<section id='comparison'><h2>Comparison</h2>"
    yield "<p class='dim'>Paired by problem: the same problems, one run minus the other. Intervals from a "
    yield "bootstrap over problems; p-value of McNemar's exact test, which needs one sample per problem.</p>"
    yield from (f"<p class='note'>{escape(line)}</p>" for line in left_out(pairs))
    for pair in pairs:
        yield f"<h3>{escape(pair.other.name)} <small>against {escape(pair.baseline.name)}, "
        yield f"{pair.last.num_problems} problems</small></h3><div class='scroll'><table class='numbers'>"
        yield "<thead><tr><th scope='col'>turn</th><th scope='col'>right, %</th>"
        yield "<th scope='col'>difference, points</th><th scope='col'>p</th>"
        yield "<th scope='col'>gained</th><th scope='col'>lost</th></tr></thead><tbody>"
        for turn, found in (("1", pair.first), ("last", pair.last)):
            p = "several samples" if found.p_value is None else p_value(found.p_value)
            yield f"<tr><th scope='row'>{turn}</th>"
            yield f"<td>{100 * found.baseline:.1f} → {100 * found.other:.1f}</td>"
            yield _cell(found.difference._asdict(), is_change=True)
            yield f"<td class='p'>{escape(p)}</td><td class='right'>{len(found.gained)}</td>"
            yield f"<td class='wrong'>{len(found.lost)}</td></tr>"
        yield "</tbody></table></div>"
        for outcome, task_ids in (("gained", pair.last.gained), ("lost", pair.last.lost)):
            noun = "problem" if len(task_ids) == 1 else "problems"
            yield f"<details><summary>{len(task_ids)} {noun} {outcome} at the last turn</summary>"
            yield "<p class='ids'>"
            yield from (
                f"<button type='button' data-task='{escape(task_id)}'>{escape(task_id)}</button>"
                for task_id in task_ids
            )
            yield "</p></details>"
    yield "</section>"


def _run(number: int, run: Run, charts: Charts, is_alone: bool) -> Iterator[str]:
    heading = "From turn to turn" if is_alone else run.name
    yield f"<section id='run-{number}'><h2>{escape(heading)}</h2>"
    yield (
        "<p class='dim'>{num_problems} problems, {num_trajectories} trajectories; {num_truncated} answers "
        "cut off at the token limit; {num_infra_failures} programs that the executor itself could not "
        "decide, left out of every number.</p>"
    ).format(**run.metrics)
    names = ("flow", "errors", "pass_at_k", "tokens", "generation", "execution")
    yield "<div class='charts'>"
    yield from (
        f"<figure>{_chart(charts[name, run.name])}</figure>" for name in names if (name, run.name) in charts
    )
    yield "</div>"
    yield from _error_table(number, run)
    yield "<details><summary>how it was run</summary><div class='scroll'><table class='facts'><tbody>"
    facts = {key: value for key, value in run.facts.items() if key not in ("options", "versions")}
    for key, value in {**run.facts["options"], **facts, **run.facts["versions"]}.items():
        yield f"<tr><th scope='row'>{escape(key)}</th><td>{escape(str(value))}</td></tr>"
    yield "</tbody></table></div></details></section>"


def _error_table(number: int, run: Run) -> Iterator[str]:
    """How often each error type stood at each turn, and how often the next turn was right."""
    counts_T, turns = run.metrics["errors"], range(1, run.num_turns + 1)
    kinds = sorted({kind for counts in counts_T for kind in counts}, key=lambda k: -_total(counts_T, k))
    if not kinds:
        return
    yield "<div class='scroll'><table class='numbers errors'><caption>wrong programs by the error of their "
    yield "first failed test; ✓ says how many of them the next turn repaired</caption>"
    yield "<thead><tr><th scope='col'>error</th>"
    yield from (f"<th scope='col'>turn {turn}</th>" for turn in turns)
    yield "<th scope='col'>repaired, %</th></tr></thead><tbody>"
    for kind in kinds[:NUM_ERROR_ROWS]:
        label = f"data-run='{number}' data-error='{escape(kind)}'>{escape(shown(kind))}"
        yield f"<tr><th scope='row'><button type='button' {label}</button></th>"
        rates = [run.metrics["fix_rates"].get(pair, {}).get(kind) for pair in run.pairs]
        for counts, rate in zip(counts_T, [*rates, None], strict=True):
            fixed = f" <small>{rate['fixed']} ✓</small>" if rate else ""
            yield f"<td>{counts.get(kind, 0)}{fixed}</td>"
        found = [rate for rate in rates if rate]
        failed, fixed = (sum(rate[key] for rate in found) for key in ("failed", "fixed"))
        yield _cell(wilson(fixed, failed)._asdict()) if failed else "<td></td>"
        yield "</tr>"
    yield "</tbody></table></div>"
    if rest := kinds[NUM_ERROR_ROWS:]:
        count = sum(_total(counts_T, kind) for kind in rest)
        yield f"<p class='dim'>and {count} of {len(rest)} other types</p>"


def _total(counts_T: Sequence[Mapping[str, int]], kind: str) -> int:
    return sum(counts.get(kind, 0) for counts in counts_T)


def _cell(estimate: Mapping[str, float], is_change: bool = False) -> str:
    return f"<td>{_share(estimate, is_change)}</td>"


def _share(estimate: Mapping[str, float], is_change: bool = False) -> str:
    value, low, high = (100 * estimate[key] for key in ("value", "low", "high"))
    if not is_change:
        return f"<b>{value:.1f}</b> <small>[{low:.1f}, {high:.1f}]</small>"
    colour = "right" if low > 0 else "wrong" if high < 0 else "dim"
    return f"<b class='{colour}'>{value:+.1f}</b> <small>[{low:+.1f}, {high:+.1f}]</small>"


def _chart(svg: str) -> str:
    """The chart in the page's own colours, light or dark."""
    return svg.replace(INK, "var(--ink)").replace(GRID, "var(--line)")
