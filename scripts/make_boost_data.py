"""Boost rows from a model's own attempts; the same as
`cocos boost-data`. The steps are in cocos/commands/boost_data.py.

    python scripts/make_boost_data.py --model_name_or_path MODEL --train_data train.jsonl --output rows.jsonl
"""

from cocos.cli import run

if __name__ == "__main__":
    run("boost-data")
