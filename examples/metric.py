"""A metric of your own from samples.jsonl, which `cocos eval` writes: how much longer the repairs are.

    python examples/metric.py outputs/eval/samples.jsonl

A row is a trajectory; its `turns` have `code`, `is_right`, `error_type` and the rest (docs/evaluation.md).
"""

import json
import sys
from itertools import pairwise
from statistics import mean

lengths = []
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        for before, after in pairwise(json.loads(line)["turns"]):
            if not before["is_right"] and after["is_right"]:
                lengths.append(len(after["code"].splitlines()) - len(before["code"].splitlines()))
print(f"{len(lengths)} repairs, {mean(lengths) if lengths else 0:+.1f} lines each")
