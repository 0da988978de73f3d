"""The steps of each command, as a function `main`; cocos/cli.py and the scripts at the root call it.

    train.py       cocos train       train.py                    stage 2, multi-turn RLOO
    boost.py       cocos boost       boost/boost_train.py        stage 1, supervised fine-tuning
    boost_data.py  cocos boost-data  scripts/make_boost_data.py  rows for stage 1
    evaluate.py    cocos eval        test.py                     evaluation over N turns
    prepare.py     cocos prepare     scripts/prepare_data.py     checked problems in MBPP format
    export.py      cocos export                                  a trained model for other programs
    demo.py        cocos demo        make demo                   a laboratory from base model to report
    report.py      cocos report                                  comparison of evaluations
    page.py        cocos page        make page                   web page: try a model, read reports
    doctor.py      cocos doctor                                  what is installed, and what the sandbox keeps

`prepare_summary.py` prints what cocos prepare has done. A module imports its runner at its top, and all else
in `main`: --help and mistakes are then quick, and Ctrl-C is one line from the start.
"""

import sys
from typing import NamedTuple

if sys.version_info < (3, 11):  # noqa: UP036  before anything is imported that an older one cannot read
    sys.exit(f"error: Python >= 3.11 is required, and {sys.executable} is {sys.version.split()[0]}")


class Command(NamedTuple):
    """A subcommand: the module with its `main`, and what it does."""

    module: str
    summary: str


COMMANDS = {
    "demo": Command("cocos.commands.demo", "train a model of 1 M parameters to correct itself, in minutes"),
    "prepare": Command("cocos.commands.prepare", "convert and check problems: public sets and own files"),
    "boost-data": Command("cocos.commands.boost_data", "make rows for stage 1 from a model's own attempts"),
    "boost": Command("cocos.commands.boost", "stage 1: teach a base model the form of two turns"),
    "train": Command("cocos.commands.train", "stage 2: multi-turn RLOO with rewards from executed tests"),
    "eval": Command("cocos.commands.evaluate", "evaluate a model or an endpoint over several turns"),
    "report": Command("cocos.commands.report", "compare evaluations problem by problem"),
    "page": Command("cocos.commands.page", "serve a web page: try a model, read the reports on runs"),
    "export": Command("cocos.commands.export", "write a trained model for transformers, vLLM and Ollama"),
    "doctor": Command("cocos.commands.doctor", "show what is installed, and what the sandbox promises here"),
}
