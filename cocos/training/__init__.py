"""The trainer, its checkpoints and what it reports.

trainer.py            CoCoSTrainer: TRL's methods that it overrides, from a batch to its loss
rollouts.py           which trajectories a batch has, and what they earn, on all ranks
dynamic_sampling.py   further draws in place of groups with equal returns
row_logps.py          log-probabilities of rows; tree_logps.py those of rows that share prefixes
prefix_tree.py        packing of rows into trees; tree_attention.py attention along them
trl_patches.py        what TRL computes otherwise on a CPU
start.py              the first steps of both stages; preflight.py what precedes the import of torch
resumable_trainer.py  a Trainer whose runs continue bit by bit: random states, ties, best checkpoint
checkpoints.py        which checkpoints are whole, which is the best, what a record says
signals.py            what Ctrl-C, SIGTERM and SIGHUP do to a run
callbacks.py          first and last updates, checkpoints by time, counters of a checkpoint
collapse.py           the warning that a training has collapsed
monitor.py            metrics of a batch, warnings about rewards; update_timer.py seconds of an update's parts
console.py            printed lines; run_log.py log.jsonl and wandb; model_card.py README.md of the model
"""
