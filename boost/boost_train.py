"""Stage 1, supervised fine-tuning that teaches a base model the two-turn format; the same as
`cocos boost`. The steps are in cocos/commands/boost.py.

    deepspeed --num_gpus 4 boost/boost_train.py --deepspeed configs/deepspeed/zero2.json ...
"""

from cocos.cli import run

if __name__ == "__main__":
    run("boost")
