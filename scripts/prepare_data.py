"""Checked problems in MBPP format from a public set or your own file; the same as
`cocos prepare`. The steps are in cocos/commands/prepare.py.

    python scripts/prepare_data.py csv --input mine.csv --output_dir data/mine
"""

from cocos.cli import run

if __name__ == "__main__":
    run("prepare")
