"""The real model's page: its tables follow from finished runs, and from the committed numbers."""

import json
from math import isnan

import pytest
import qwen_tables
import real_tables
import smollm2_tables
from real_rows import KINDS, Evaluation, Point, Rows, StepTime, collect, update_csv
from result_files import fill, load_csv

from tests.support.report import FAILED, INFRA_FAILURE, PASSED, evaluated, numbered


def play(folder, *turns: str):
    """Write an evaluation whose turns 1 and 2 are right as the two strings say."""
    results = {"1": PASSED, "0": FAILED, "-": INFRA_FAILURE}
    evaluated(
        folder,
        numbered(*([results[turn] for turn in row] for row in zip(*turns, strict=True))),
        isolation="docker",
    )


@pytest.fixture
def outputs(tmp_path):
    """One track of four problems, in which CoCoS solves three problems more than Boost and loses none."""
    seed = tmp_path / "toy/seed0"
    play(seed / "boost", "1000", "1000")
    play(seed / "cocos", "1010", "1111")
    play(seed / "train-boost", "1111", "1111")
    (seed / "times.csv").write_text("evaluate boost,50\nevaluate cocos,30\nevaluate boost,70\n")
    log = [
        {"step": 1, "time": 1.0, "metrics": {"sampled_tokens_total": 400.0, "loss": 0.5}},
        {"step": 2, "time": 2.0, "metrics": {"sampled_tokens_total": 1000.0}},
        {"step": 2, "time": 3.0, "metrics": {"eval_acc_t1": 0.25, "eval_acc_t2": 0.5}},
    ]
    (seed / "models/cocos").mkdir(parents=True)
    (seed / "models/cocos/log.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in log))
    return tmp_path


def cells(table: str, row: int) -> list[str]:
    return [cell.strip() for cell in table.splitlines()[2 + row].strip("|").split("|")]


def test_finished_runs_become_rows(outputs):
    rows = collect(outputs)
    # The sampled run on training problems is no result. No second program repeats the first.
    assert rows.evaluations == [
        Evaluation(
            "toy/seed0/boost", "docker", 1, "1000 1000", "1000 1000", "xxxx", 0.0, 0, 6.0, 3.0, 2 / 60
        ),
        Evaluation(
            "toy/seed0/cocos", "docker", 1, "1010 1111", "1010 1111", "xxxx", 0.0, 0, 6.0, 3.0, 2 / 60
        ),
    ]
    assert rows.curves == [Point("toy/seed0/models/cocos", 2, 1000, 0.25, 0.5)]
    assert rows.times == [
        StepTime("toy/seed0", "evaluate boost", 120),
        StepTime("toy/seed0", "evaluate cocos", 30),
    ]


def test_the_tables_by_hand(outputs):
    made = smollm2_tables.tables(collect(outputs))
    boost, cocos = cells(made["toy"], 0), cells(made["toy"], 1)
    # acc@1 1/4, acc@2 1/4, delta 0, i->c 0, c->i 0; Boost is not compared with itself.
    assert [cell.split(" ")[0] for cell in boost] == [
        "Boost",
        "0",
        "4",
        "25.0",
        "25.0",
        "0.0",
        "0.0",
        "0.0",
        "",
        "",
    ]
    # acc@1 2/4, acc@2 4/4, i->c 2/4, c->i 0. Three problems are gained, none lost: p = 2 * 1 / 2^3.
    numbers = [cell.split(" ")[0] for cell in cocos]
    assert numbers == ["CoCoS", "0", "4", "50.0", "100.0", "50.0", "50.0", "0.0", "75.0", "0.25"]
    assert cells(made["toy curve"], 0) == ["cocos", "0", "2", "1", "25.0", "50.0"]
    assert cells(made["toy times"], 0) == ["toy/seed0", "evaluate boost", "2"]
    assert made["base"] == "*Not run yet: `TRACK=base make real`.*"


def test_the_tables_of_three_turns_by_hand():
    folder = "qwen/seed0/mbpp/{}".format
    untrained = Evaluation(
        folder("untrained"),
        "docker",
        1,
        "1000 1000 1000",
        "1100 1100 1100",
        "--=~ --==",
        0.5,
        0,
        30.0,
        minutes=12.4,
    )
    boost = Evaluation(
        folder("boost"), "docker", 1, "1000 1010 1011", "1100 1110 1111", "--x~ ---x", 0.0, 0, 40.0
    )
    # 4 samples of a problem: right 4, 1, 0, 0; passing the visible test 4, 2, 1, 0
    sampled = Evaluation(folder("boost-sampled"), "docker", 4, "4100", "4210", "", float("nan"), 0, 20.0)
    second_seed = boost._replace(folder="qwen/seed1/mbpp/boost", right="1000 1000 1010")
    docstring = Evaluation(
        folder("untrained-docstring"), "docker", 1, "1100", "1100", "", float("nan"), 0, 50.0
    )
    turns = Evaluation(
        folder("boost-turns"), "docker", 4, "4100 4200 4300", "4210 4310 4410", "", 0.0, 0, 40.0, 20.0
    )
    made = qwen_tables.tables(Rows(evaluations=[untrained, boost, sampled, second_seed, docstring, turns]))
    numbers = [[cell.split(" ")[0] for cell in cells(made["qwen correction"], row)] for row in (0, 1, 2)]
    assert numbers[0][2:10] == ["0", "4", "25.0", "25.0", "25.0", "0.0", "0.0", "0.0"]
    assert numbers[1][2:10] == ["0", "4", "25.0", "50.0", "75.0", "50.0", "50.0", "0.0"]
    # Every seed is compared with the untrained model, which has no seed; one gain has p = 2 * 1 / 2.
    assert numbers[2][2:10] == ["1", "4", "25.0", "25.0", "50.0", "25.0", "25.0", "0.0"]
    assert numbers[2][12] == "1"
    # two programs after wrong ones: repeated and nearly so; Boost gains two problems: p = 2 * 1 / 2^2
    assert [row[10:] for row in numbers[:2]] == [
        ["50.0", "100.0", "", "", "30", "12"],
        ["0.0", "50.0", "0.5", "", "40", ""],
    ]
    # k = 40 / 20: best@2 = (1 + (1 - 1/6) * 1/2 + 0 + 0) / 4; pass@1 (1 + 1/4) / 4, pass@4 2 / 4
    choice = cells(made["qwen choice"], 0)
    assert choice[:7] == ["MBPP test", "Boost", "0", "40", "20", "2.00", "75.0"]
    assert choice[7:] == ["35.4", "37.5", "31.2", "50.0"]  # best@3: 1 + 1/2
    # The same samples as first turns of three; k = 40 / 20. acc@3 (1 + 3/4) / 4, and 3/4 - 5/12 ahead at a problem
    assert cells(made["qwen sampled"], 0) == [
        *("MBPP test, 4 x 4", "boost", "0", "40", "20", "2.00", "31.2", "43.8", "35.4", "37.5"),
        "8.3 (no interval)",
    ]
    # The untrained model's protocols; one of a single turn has no later accuracy and no change.
    protocols = [cells(made["qwen protocols"], row) for row in (0, 1)]
    assert [row[1:3] for row in protocols] == [
        ["muCODE's, three examples", "4"],
        [qwen_tables.PROTOCOLS["-docstring"], "4"],
    ]
    assert [cell.split(" ")[0] for cell in protocols[1][3:]] == ["50.0", "", "", "", "", "", "", "", "50", ""]


def test_a_recipe_is_compared_with_the_boost_that_it_started_from():
    def evaluation(model: str, last: str) -> Evaluation:
        right = f"000000 {last} {last}"
        return Evaluation(f"qwen/seed0/mbpp/{model}", "docker", 1, right, right, "x" * 6, 0.0, 0, 30.0)

    def p_values(*evaluations: Evaluation) -> dict[str, list[str]]:
        made = qwen_tables.tables(Rows(evaluations=list(evaluations)))["qwen correction"]
        rows = [cells(made, row) for row in range(len(evaluations))]
        return {row[1]: row[-4:-2] for row in rows}

    untrained, boost = evaluation("untrained", "000000"), evaluation("boost-own", "100000")
    recipe, other = evaluation("rloo9-5", "111111"), evaluation("cocos", "111111")
    again = qwen_tables.MODELS["rloo9-5"]
    # Six gains: p = 2 / 2^6; five: 2 / 2^5. With two recipes on the set, both are doubled (Bonferroni).
    assert p_values(untrained, boost, recipe)[again] == ["0.031", "0.062"]
    made = p_values(untrained, boost, recipe, other)
    assert made[again] == ["0.062", "0.12"]
    assert made[qwen_tables.MODELS["boost-own"]] == ["1", ""]
    assert made[qwen_tables.MODELS["cocos"]] == ["0.062", ""]  # its own Boost was not played
    # What is told nothing is compared with its Boost, told nothing, and not with the untrained model, told its error.
    told_nothing = evaluation("boost-own-untold", "100000"), evaluation("untold-own", "111111")
    made = p_values(untrained, boost, *told_nothing)
    assert made[qwen_tables.MODELS["untold-own"]] == ["", "0.062"]
    assert made[qwen_tables.MODELS["boost-own-untold"]] == ["", ""]


def test_rows_of_other_runs_stay_in_the_csv_files(outputs, tmp_path):
    path = tmp_path / "curves.csv"
    single_turn = Point("toy/seed0/models/single-turn", 5, 7, 0.5, float("nan"))
    update_csv(path, Point, [single_turn, Point("toy/seed0/models/cocos", 1, 1, 0.0, 0.0)])
    new = collect(outputs).curves
    first, second = update_csv(path, Point, new)
    assert [first] == new and second[:4] == single_turn[:4] and isnan(second.acc_2)
    assert (
        smollm2_tables.tables(Rows(curves=[first, second]))["toy curve"]
        .splitlines()[-1]
        .endswith("| 50.0 |  |")
    )


def test_a_problem_without_a_verdict_is_an_error(tmp_path):
    play(tmp_path / "base/mbpp-chat", "11-", "11-")
    with pytest.raises(ValueError, match="problems without a verdict; run test"):
        collect(tmp_path)


def test_results_of_a_few_problems_go_to_their_own_pages(outputs, capsys):
    committed = [path.read_bytes() for path in sorted((real_tables.ROOT / "docs/real").glob("*.csv"))]
    docs = outputs / "docs"
    real_tables.write_results(outputs, docs)
    first = {path: path.read_bytes() for path in docs.rglob("*.*")}
    real_tables.write_results(outputs, docs)  # which have CSV files of their own by now, beside the runs
    assert {path: path.read_bytes() for path in docs.rglob("*.*")} == first and len(first) > 3
    assert cells((docs / "smollm2.md").read_text().split("<!-- toy -->\n")[1], 1)[3:5] == [
        "50.0 [15.0, 85.0]",
        "100.0 [51.0, 100.0]",
    ]
    assert "`TRACK=qwen make real`" in (docs / "real.md").read_text()
    assert {path.name for path in (docs / "real").iterdir()} == {"evaluations.csv", "curves.csv", "times.csv"}
    assert [path.read_bytes() for path in sorted((real_tables.ROOT / "docs/real").glob("*.csv"))] == committed


def test_updates_of_one_turn_are_rows(tmp_path):
    model = tmp_path / "qwen/seed0/models/single-turn"
    model.mkdir(parents=True)
    metrics = {
        "acc_t1": 0.25,
        "reward_t1": 0.5,
        "entropy_t1": 0.3,
        "completion_length_t1": 40.0,
        "step_time": 90.0,
    }
    (model / "log.jsonl").write_text(json.dumps({"step": 1, "time": 1.0, "metrics": metrics}) + "\n")
    made = qwen_tables.tables(collect(tmp_path))["qwen updates"]
    assert cells(made, 0) == ["single-turn", "0", "1 to 1", "25.0", "25.0", "", "0.30", "40", "1.5"]


@pytest.mark.parametrize("page", real_tables.PAGES)
def test_the_pages_show_the_committed_numbers(page):
    docs = real_tables.ROOT / "docs"
    files = {name: docs / "real" / f"{name}.csv" for name in KINDS}
    rows = Rows(
        *(load_csv(files[name], kind) if files[name].exists() else [] for name, kind in KINDS.items())
    )
    text = (docs / page).read_text(encoding="utf-8")
    assert fill(text, real_tables.PAGES[page](rows)) == text
