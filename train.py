"""Stage 2, multi-turn RLOO with rewards from executed unit tests; the same as
`cocos train`. The steps are in cocos/commands/train.py.

    deepspeed --num_gpus 4 train.py --deepspeed configs/deepspeed/zero2.json --config configs/cocos.yaml ...
"""

from cocos.cli import run

if __name__ == "__main__":
    run("train")
