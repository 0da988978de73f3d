"""Tables of docs/smollm2.md: SmolLM2-135M-Instruct on public sets and on the first laboratory's problems."""

from collections.abc import Iterable, Mapping, Sequence

from real_rows import Evaluation, Point, Rows, outcomes, table_or_command, time_table

from cocos.intervals import Estimate, change, compare, wilson
from cocos.report.tables import format_estimate, format_p_value

SETS = {"mbpp": "MBPP", "humaneval": "HumanEval", "humanevalfix": "HumanEvalFix"}
PROTOCOLS = ("chat", "repair", "cocos-fewshot")


def accuracy_cells(evaluation: Evaluation) -> list[str]:
    """Return n, acc@1, acc@2, delta, i→c and c→i with their 95 % intervals."""
    first, second = evaluation.right_T
    n = len(first)
    pairs = list(zip(first, second, strict=True))
    estimates: list[Estimate] = [wilson(first.count("1"), n), wilson(second.count("1"), n)]
    estimates.append(change([[int(after) - int(before)] for before, after in pairs]))
    estimates += [wilson(pairs.count(kind), n) for kind in (("0", "1"), ("1", "0"))]
    return [str(n), *map(format_estimate, estimates)]


def base_table(evaluations: Mapping[str, Evaluation]) -> str:
    """Return the untrained model's results: a row per set and protocol."""
    rows = []
    for data, title in SETS.items():
        for protocol in PROTOCOLS:
            if e := evaluations.get(f"base/{data}-{protocol}"):
                edits = [f"{100 * e.repeated:.1f}", f"{100 * e.truncated / (2 * len(e.right_T[0])):.1f}"]
                rows.append([title, protocol, *accuracy_cells(e), *edits, e.isolation])
    header = [
        "set",
        "protocol",
        "n",
        "acc@1",
        "acc@2",
        "delta",
        "i→c",
        "c→i",
        "repeated",
        "cut off",
        "isolation",
    ]
    return table_or_command(header, rows, "base")


def trained_table(
    evaluations: Mapping[str, Evaluation], models: Iterable[tuple[str, str]], track: str, suffix: str = ""
) -> str:
    """Return a row per model and seed, with the paired test of acc@2 against the seed's Boost model.

    Args:
        evaluations: All evaluations by folder.
        models: Name of a row, and the evaluation's folder with `{seed}` for the folder of the seed.
        track: The track's name.
        suffix: Beginning of the evaluation's name on the same problems, such as `mbpp-`.

    """
    seeds = sorted({name.split("/")[1] for name in evaluations if name.startswith(f"{track}/")})
    rows = []
    for model, folder in models:
        for seed in seeds:
            evaluation = evaluations.get(folder.format(seed=seed))
            boost = evaluations.get(f"{track}/{seed}/{suffix}boost")
            if evaluation:
                tests = ["", ""]
                if boost and boost is not evaluation:
                    paired = compare(outcomes(boost.right_T[1]), outcomes(evaluation.right_T[1]))
                    tests = [format_estimate(paired.difference), format_p_value(paired.p_value)]
                rows.append([model, seed.removeprefix("seed"), *accuracy_cells(evaluation), *tests])
    header = ["model", "seed", "n", "acc@1", "acc@2", "delta", "i→c", "c→i", "acc@2 - Boost's", "McNemar p"]
    return table_or_command(header, rows, track)


def curve_table(points: Sequence[Point], track: str) -> str:
    """Return dev accuracies by update and sampled tokens, a row per evaluation during training."""
    rows = []
    for point in (point for point in points if point.folder.startswith(f"{track}/")):
        _, seed, _, model = point.folder.split("/")
        second = "" if point.acc_2 != point.acc_2 else f"{100 * point.acc_2:.1f}"  # nan
        cells = [str(point.update), f"{point.tokens / 1000:.0f}", f"{100 * point.acc_1:.1f}", second]
        rows.append([model, seed.removeprefix("seed"), *cells])
    header = ["model", "seed", "updates", "sampled tokens, thousands", "dev acc@1", "dev acc@2"]
    return table_or_command(header, rows, track)


def tables(rows: Rows) -> dict[str, str]:
    """Return every table of the page by the name in its marker lines."""
    evaluations = {evaluation.folder: evaluation for evaluation in rows.evaluations}
    toy = [("base, three examples", "toy/{seed}/base"), ("Boost", "toy/{seed}/boost")]
    toy += [("CoCoS", "toy/{seed}/cocos"), ("CoCoS, 30 updates", "toy/{seed}/cocos-30")]
    toy += [("single-turn RLOO", "toy/{seed}/single-turn")]
    made = {"base": base_table(evaluations), "toy": trained_table(evaluations, toy, "toy")}
    for data in ("mbpp", "humaneval"):
        models = [("base, three examples", f"base/{data}-cocos-fewshot")]
        models += [
            (title, f"mbpp/{{seed}}/{data}-{name}")
            for title, name in (("Boost", "boost"), ("CoCoS", "cocos"))
        ]
        made[f"mbpp {data}"] = trained_table(evaluations, models, "mbpp", f"{data}-")
    for track in ("toy", "mbpp"):
        made[f"{track} curve"] = curve_table(rows.curves, track)
    for track in ("base", "toy", "mbpp"):
        made[f"{track} times"] = time_table(rows.times, track)
    return made
