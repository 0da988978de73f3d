"""CoCoS: train small code models to keep right programs and repair wrong ones (arXiv 2505.23060).

The method, in reading order; standard library only:

    problems.py       Problem, and MBPP-format rows in and out
    prompts.py        every word that the model sees, feedback included
    carry.py          what a later prompt has of earlier turns
    extraction.py     completion -> program
    code_blocks.py    text -> the blocks and lines in it that parse
    program_slice.py  program -> the statements that its tests need
    trajectories.py   Turn, Trajectory, and the rules between turns
    rollout.py        the turn loop: problems + generator + executor -> trajectories
    rewards.py        verdicts -> rewards -> returns -> advantages: the paper's equations
    metrics.py        trajectories -> acc@t, delta, i->c, c->i, pass@k, fix rates
    intervals.py      confidence intervals and paired tests

What the method calls:

    executor/         untrusted programs and tests -> one verdict per test; plans, sandboxes
    generation/       prompt ids -> completions: transformers, vLLM, TRL's engines, endpoints, scripted

What uses the method:

    cli.py            the command `cocos`
    __main__.py       the same as `python -m cocos`
    commands/         the steps of each command: train, boost, evaluate, prepare, ...
    assembly/         options -> executor, protocol, rules, objective, problems and given answers
    boost/            the stage before CoCoS: rows, BoostTrainer
    training/         CoCoSTrainer (a subclass of TRL's RLOOTrainer), checkpoints, model cards, what is logged
    agents/           repair agents as LangGraph graphs: reflect, react, tools
    evaluation/       a run of test.py: samples.jsonl and its schema, resuming, given answers
    report/           tables, charts, report.html, comparison of runs
    planning/         first prompts, updates and estimated memory of a run, before it starts
    dataprep/         public sets and own files -> checked MBPP-format problems
    config/           the options of every command
    page/             the web page: try a model, read reports

What all of them share:

    literals.py       choices that options and the method share, by name
    files/            JSON lines, durable writes, run.json, Markdown tables; bundled files, extras, the parser

import-linter checks which of these may import which; the contracts are in `pyproject.toml`.
"""

__version__ = "1.2.0"
