"""Tables of docs/real.md: Qwen2.5-Coder-0.5B-Instruct before and after training.

An evaluation's folder is qwen/seedS/SET/MODEL. Three turns are played by muCODE's protocol unless the model's
name says otherwise.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import floor, isnan

from real_rows import Evaluation, Rows, Update, outcomes, table_or_command

from cocos.intervals import bounded_mean, change, compare, wilson
from cocos.metrics import best_at_k, pass_at_k
from cocos.report.tables import format_estimate, format_p_value

TRACK = "qwen"
SETS = {
    "mbpp": "MBPP test",
    "mbppplus": "MBPP+",
    "humaneval": "HumanEval",
    "humanevalplus": "HumanEval+",
    "humanevalfix": "HumanEvalFix",
    "debugbench": "DebugBench, given its programs",
    "mbpp-r": "MBPP test, given wrong programs",
}
DEV_SETS = {"dev": "MBPP validation", "debugbench-dev": "60 of DebugBench's other programs"}
MODELS = {
    "untrained": "untrained, three examples",
    "boost": "Boost",
    "cocos": "CoCoS",
    "relabelled": "relabelled Boost",
    "rloo6-14": "CoCoS from relabelled Boost",
    "boost-own": "Boost again, other samples",
    "rloo9-5": "CoCoS again, from that Boost",
    "boost-planted": "Boost with planted bugs",
    "joined-cocos": "CoCoS from the mean of CoCoS and Boost with planted bugs",
    "joined-half": "mean of CoCoS again and Boost with planted bugs",
    "rloo11-5": "CoCoS from that mean",
    "single-turn": "single-turn RLOO",
    "single-own": "single-turn RLOO, from that Boost",
    "random-own": "random rewards, from that Boost",
    "random": "random rewards",
    "boost-no-feedback": "Boost, no feedback",
    "no-feedback": "CoCoS, no feedback",
    "boost-own-untold": "Boost again, no feedback",
    "untold-own": "CoCoS without feedback, from that Boost",
}
REPAIRS = {  # of the same greedy first programs
    "": "",
    "-t07": ", repairs sampled",
    "-verdict": ", told a verdict",
    "-nothing": ", told nothing",
}
BOOST_OF = {  # as it was evaluated; of the others it is "boost"
    "rloo6-14": "relabelled",
    "rloo9-5": "boost-own",
    "joined-half": "boost-own",
    "rloo11-5": "boost-own",
    "single-own": "boost-own",
    "random-own": "boost-own",
    "no-feedback": "boost-no-feedback",
    "untold-own": "boost-own-untold",
}
# Two turns that are told nothing: another protocol than the untrained model's, so no paired test with it.
UNTOLD = ("boost-no-feedback", "no-feedback", "boost-own-untold", "untold-own")
# Chosen on dev, each played once on a test set.
RECIPES = ("cocos", "rloo6-14", "rloo9-5", "joined-cocos", "joined-half", "rloo11-5")
PROTOCOLS = {  # of the untrained model, by the name after "untrained"
    "": "muCODE's, three examples",
    "-examples": "CoCoS' few-shot, no feedback",
    "-chat": "chat, no feedback",
    "-docstring": "chat: task and first test in a block",
    "-asserts": "CoCoS' own for HumanEval: asserts, no docstring",
}
Evaluations = Mapping[str, Evaluation]


def percent(share: float) -> str:
    """Return a share in percent with one digit; "" for nan."""
    return number(100 * share, 1)


def number(value: float, digits: int) -> str:
    """Return a number with so many digits after the point; "" for nan."""
    return "" if isnan(value) else f"{value:.{digits}f}"


def find(evaluations: Evaluations, seed: str, data: str, model: str) -> Evaluation | None:
    """Return the evaluation of a seed's model on a set, if it is there."""
    return evaluations.get(f"qwen/{seed}/{data}/{model}")


def of_track(evaluations: Evaluations) -> Iterator[tuple[str, str, str, Evaluation]]:
    """Yield the track's evaluations with the names of their seed, set and model."""
    for folder, evaluation in evaluations.items():
        track, *words = folder.split("/")
        if track == TRACK:
            seed, data, model = words
            yield seed, data, model, evaluation


def seeds(evaluations: Evaluations) -> list[str]:
    """Return the names of the folders of the track's seeds."""
    return sorted({seed for seed, *_ in of_track(evaluations)})


def repeated_wrong(evaluation: Evaluation, turn: int, kinds: str = "=") -> float:
    """Return which share of the programs of a turn >= 2 after a wrong one has an edit of these kinds."""
    before, edits = evaluation.right_T[turn - 2], evaluation.edits.split()[turn - 2]
    of_wrong = [edit for right, edit in zip(before, edits, strict=True) if right == "0" and edit != "-"]
    return sum(edit in kinds for edit in of_wrong) / len(of_wrong) if of_wrong else float("nan")


def p_value(baseline: Evaluation | None, evaluation: Evaluation, num_tests: int = 1) -> str:
    """Return McNemar's p of the last turns, after Bonferroni for `num_tests`; "" for the baseline itself."""
    if baseline is None or baseline is evaluation:
        return ""
    last = [outcomes(e.right_T[-1]) for e in (baseline, evaluation)]
    return format_p_value(min(1.0, num_tests * compare(*last).p_value))


COSTS = ["tokens", "minutes"]  # mean of a trajectory; of the whole set


def costs(evaluation: Evaluation) -> list[str]:
    """Return the cells of COSTS; minutes that were not counted leave theirs empty."""
    return [f"{evaluation.tokens:.0f}", number(evaluation.minutes, 0)]


CHANGES = ["n", "acc@1", "acc@2", "acc@3", "delta", "i→c", "c→i", "wrong repeated", "or edited ≤ 5 %"]


def changes(evaluation: Evaluation) -> list[str]:
    """Return the cells of CHANGES; turns that were not played leave theirs empty."""
    n, right_T = len(evaluation.right_T[0]), evaluation.right_T
    cells = [format_estimate(wilson(right.count("1"), n)) for right in right_T] + [""] * (3 - len(right_T))
    if len(right_T) == 1:
        return [str(n), *cells, "", "", "", "", ""]
    pairs = list(zip(right_T[0], right_T[-1], strict=True))
    cells.append(format_estimate(change([[int(last) - int(first)] for first, last in pairs])))
    cells += [f"{100 * pairs.count(kind) / n:.1f}" for kind in (("0", "1"), ("1", "0"))]
    repeats = [percent(repeated_wrong(evaluation, 2, kinds)) for kinds in ("=", "=~")]
    return [str(n), *cells, *repeats]


def correction_table(evaluations: Evaluations) -> str:
    """Return a row per set and model: accuracies of the turns, changes, repeats and paired tests."""
    rows = []
    for data, seed in product(SETS, seeds(evaluations)):
        # The untrained model has no seed of its own.
        baseline = find(evaluations, seed, data, "untrained") or find(evaluations, "seed0", data, "untrained")
        num_recipes = {
            suffix: sum(find(evaluations, seed, data, recipe + suffix) is not None for recipe in RECIPES)
            for suffix in REPAIRS
        }
        for (model, name), (suffix, how) in product(MODELS.items(), REPAIRS.items()):
            if evaluation := find(evaluations, seed, data, model + suffix):
                boost = find(evaluations, seed, data, BOOST_OF.get(model, "boost") + suffix)
                is_boost = model in {"untrained", "boost", "boost-planted", *BOOST_OF.values()}
                num_tests = num_recipes[suffix] if model in RECIPES else 1
                tests = [
                    "" if model in UNTOLD else p_value(baseline, evaluation, num_tests),
                    "" if is_boost else p_value(boost, evaluation, num_tests),
                ]
                cells = [*changes(evaluation), *tests, *costs(evaluation)]
                rows.append([SETS[data], name + how, seed[4:], *cells])
    header = ["set", "model", "seed", *CHANGES, "p, untrained", "p, its Boost", *COSTS]
    return table_or_command(header, rows, TRACK)


def protocol_table(evaluations: Evaluations) -> str:
    """Return the untrained model under every protocol, a row per set and protocol."""
    rows = []
    for data, (suffix, name) in product(SETS, PROTOCOLS.items()):
        if evaluation := find(evaluations, "seed0", data, f"untrained{suffix}"):
            rows.append([SETS[data], name, *changes(evaluation), *costs(evaluation)])
    return table_or_command(["set", "protocol", *CHANGES, *COSTS], rows, TRACK)


def best_of(evaluation: Evaluation, k: float) -> list[float]:
    """Return best@k of the first turns of each problem; a broken k is interpolated."""
    whole = floor(k)
    if weight := k - whole:
        pairs = zip(best_of(evaluation, whole), best_of(evaluation, whole + 1), strict=True)
        return [(1 - weight) * fewer + weight * more for fewer, more in pairs]
    right, visible = evaluation.right_T[0], evaluation.visible.split()[0]
    return [best_at_k(evaluation.samples, int(v), int(c), whole) for v, c in zip(visible, right, strict=True)]


def mean_best(evaluation: Evaluation, k: float) -> float:
    """Return best@k of first turns, averaged over problems."""
    return sum(best := best_of(evaluation, k)) / len(best)


def mean_pass(evaluation: Evaluation, k: int) -> float:
    """Return pass@k of first turns, averaged over problems."""
    right = evaluation.right_T[0]
    return sum(pass_at_k(evaluation.samples, int(c), k) for c in right) / len(right)


def choice_table(evaluations: Evaluations) -> str:
    """Return three turns beside samples that the visible test chooses, a row per set and model."""
    rows = []
    for data, seed in product(SETS, seeds(evaluations)):
        for model, name in MODELS.items():
            turns, sampled = (find(evaluations, seed, data, f"{model}{kind}") for kind in ("", "-sampled"))
            if turns and sampled:
                k = min(sampled.samples, max(1.0, turns.tokens / sampled.tokens))
                shares = [turns.right_T[-1].count("1") / len(turns.right_T[-1]), mean_best(sampled, k)]
                shares += [mean_best(sampled, 3), mean_pass(sampled, 1), mean_pass(sampled, sampled.samples)]
                tokens = [f"{e.tokens:.0f}" for e in (turns, sampled)]
                rows.append([SETS[data], name, seed[4:], *tokens, f"{k:.2f}", *map(percent, shares)])
    header = ["set", "model", "seed", "tokens of three turns", "of one sample", "k at equal tokens", "acc@3"]
    header += ["best@k", "best@3", "pass@1", "pass@n"]
    return table_or_command(header, rows, TRACK)


def sampled_turns_table(evaluations: Evaluations) -> str:
    """Return three sampled turns beside as many of their own first programs as cost the same tokens."""
    rows = []
    for seed, data, model, evaluation in of_track(evaluations):
        if evaluation.samples == 1 or len(evaluation.right_T) < 3:
            continue
        k = min(evaluation.samples, evaluation.tokens / evaluation.first_tokens)
        turns = [[int(right) / evaluation.samples for right in word] for word in evaluation.right_T]
        ahead = [[last - best] for last, best in zip(turns[-1], best_of(evaluation, k), strict=True)]
        first, last = (sum(shares) / len(shares) for shares in (turns[0], turns[-1]))
        shares = map(percent, (first, last, mean_best(evaluation, k), mean_best(evaluation, 3)))
        tokens = f"{evaluation.tokens:.0f}", f"{evaluation.first_tokens:.0f}", f"{k:.2f}"
        difference = format_estimate(bounded_mean(ahead, -1.0, 1.0))
        name = f"{'MBPP dev' if data == 'dev' else SETS[data]}, {len(ahead)} x {evaluation.samples}"
        rows.append([name, model.removesuffix("-turns"), seed[4:], *tokens, *shares, difference])
    header = ["set", "model", "seed", "tokens of three turns", "of one program", "k at equal tokens", "acc@1"]
    return table_or_command([*header, "acc@3", "best@k", "best@3", "acc@3 - best@k"], rows, TRACK)


def dev_table(evaluations: Evaluations) -> str:
    """Return every model on the sets that choose recipe and checkpoint."""
    rows = []
    for dev_set, name in DEV_SETS.items():
        for seed, data, model, evaluation in of_track(evaluations):
            if data != dev_set or evaluation.samples > 1:
                continue
            shares = [right.count("1") / len(right) for right in evaluation.right_T]
            kinds = ((2, "="), (2, "=~"), (3, "="))
            repeats = [repeated_wrong(evaluation, turn, edits) for turn, edits in kinds]
            cells = [*map(percent, [*shares, *repeats]), *costs(evaluation)]
            rows.append([name, model, seed[4:], *cells])
    header = ["set", "model", "seed", "acc@1", "acc@2", "acc@3"]
    header += ["wrong repeated, turn 2", "or edited ≤ 5 %", "turn 3", *COSTS]
    return table_or_command(header, rows, TRACK)


def update_table(updates: Sequence[Update], width: int = 5) -> str:
    """Return means over `width` updates of training: repaired programs, repeats, entropy, length."""
    rows = []
    by_folder: dict[str, list[Update]] = {}
    for update in updates:
        if update.folder.startswith("qwen/"):
            by_folder.setdefault(update.folder, []).append(update)
    for folder, of_model in by_folder.items():
        _, seed, _, model = folder.split("/")
        for start in range(0, len(of_model), width):
            part = of_model[start : start + width]
            means = [sum(values) / len(part) for values in zip(*(u[2:] for u in part), strict=True)]
            *shares, entropy, length, minutes = means
            span = f"{part[0].update} to {part[-1].update}"
            cells = [*map(percent, shares), f"{entropy:.2f}", f"{length:.0f}"]
            rows.append([model, seed[4:], span, *cells, number(minutes, 1)])
    header = [
        "run",
        "seed",
        "updates",
        "acc_t1",
        "last acc",
        "wrong repeated",
        "entropy",
        "tokens of the last turn",
        "minutes per update",
    ]
    return table_or_command(header, rows, TRACK)


def tables(rows: Rows) -> dict[str, str]:
    """Return every table of the page by the name in its marker lines."""
    evaluations = {evaluation.folder: evaluation for evaluation in rows.evaluations}
    return {
        "qwen correction": correction_table(evaluations),
        "qwen protocols": protocol_table(evaluations),
        "qwen choice": choice_table(evaluations),
        "qwen sampled": sampled_turns_table(evaluations),
        "qwen dev": dev_table(evaluations),
        "qwen updates": update_table(rows.updates),
    }
