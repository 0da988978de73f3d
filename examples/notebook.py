# ---
# jupyter:
#   jupytext:
#     formats: py:percent,ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From a CSV file to a trained model and its report
#
# This notebook trains the laboratory's model of 1 M parameters for a few updates, without GPU and network.
# With a file and a model of your own, the same five commands are a real training. It needs the extras
# `train` and `charts`.
#
# `jupytext --to notebook examples/notebook.py` makes an .ipynb file of it; Jupyter with jupytext opens it
# as it is, and `python examples/notebook.py` runs it as a script.

# %%
import csv
import json
import subprocess
import sys
from pathlib import Path

from cocos.files.bundled import locate
from cocos.problems import load_problems

folder = Path("outputs/notebook")  # everything is written here
folder.mkdir(parents=True, exist_ok=True)
base = locate("data/toy/base")


def cocos(*words: object) -> None:
    """Run a command of `cocos` in this environment; the notebook stops if it fails."""
    subprocess.run([sys.executable, "-m", "cocos", *map(str, words)], check=True)


# %% [markdown]
# ## 1. A CSV file
#
# A row has a task, its asserts, one per line, and a solution, which is optional. Here the rows come from
# the laboratory.

# %%
with open(folder / "mine.csv", "w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerow(["question", "asserts", "solution"])
    for problem in load_problems(locate("data/toy/boost.jsonl"))[:120]:
        writer.writerow([problem.text, "\n".join(problem.test_list), problem.code])

# %% [markdown]
# ## 2. Problems
#
# `cocos prepare` converts the rows, executes the solutions in the sandbox, and looks for duplicates.
# `report.html` in the folder shows what it found.

# %%
cocos(
    *("prepare", "csv", "--input", folder / "mine.csv", "--tests", "lines", "--output_dir", folder / "data"),
    *("--columns", "text=question", "test_list=asserts", "code=solution", "--splits", 0.7, 0.1, 0.2),
)

# %% [markdown]
# ## 3. Training
#
# Two turns, with a reward from the tests. 5 updates show that it runs; the laboratory's own file has 30,
# after a stage before it.

# %%
cocos(
    *("train", "--config", "configs/toy/cocos.yaml", "--model_name_or_path", base, "--max_steps", 5),
    *("--train_data", folder / "data/train.jsonl", "--dev_data", folder / "data/validation.jsonl"),
    *("--output_dir", folder / "model"),
)

# %% [markdown]
# ## 4. Evaluation
#
# Both models, on the problems that neither has seen.

# %%
for name, model in (("base", base), ("trained", folder / "model")):
    cocos(
        *("eval", "--config", "configs/toy/eval.yaml", "--model_name_or_path", model),
        *("--test_data", folder / "data/test.jsonl", "--output_dir", folder / name),
    )
    metrics = json.loads((folder / name / "metrics.json").read_text())["metrics"]
    print(name, {turn: metrics[turn] for turn in ("acc_t1", "acc_t2")})

# %% [markdown]
# ## 5. The report
#
# Tables with intervals, charts, and every trajectory, in one file: `outputs/notebook/report/report.html`.

# %%
cocos("report", folder / "base", folder / "trained", "--output_dir", folder / "report")
