"""CoCoS: teach a small code model to keep what is right and repair what is wrong (arXiv 2505.23060).

The way through the package, in the order in which data take it:

    problems    MBPP-format rows -> Problem
    prompts     Problem -> the words the model sees; completion -> code
    generation  prompt token ids -> completion token ids (transformers, scripted)
    executor    untrusted code + tests -> one verdict per test
    rollout     the one turn loop: problems + generator + executor -> trajectories
    rewards     verdicts -> r_t -> returns -> leave-one-out advantages (the paper's equations)
    metrics     trajectories -> acc@t, delta, i->c, c->i, pass@k, intervals
    records     a trajectory as a row of samples.jsonl, a run as run.json
    report      trajectories + metrics -> terminal table, plots, report.html
    config      the options of boost_train.py, train.py and test.py; cli reads them, console shows progress
    planning    what a run would do and need, on paper: memory, updates, seconds, processors
    trainer     CoCoSTrainer: TRL's RLOOTrainer with multi-turn rollouts and per-turn credit

Everything above `config` but the torch generators imports nothing outside the standard library.
"""

__version__ = "0.1.0"
