"""Evaluation of a model over N turns; the same as
`cocos eval`. The steps are in cocos/commands/evaluate.py.

    python test.py --model_name_or_path MODEL --test_data problems.jsonl --num_turns 2 --output_dir OUT
"""

from cocos.cli import run

if __name__ == "__main__":
    run("eval")
