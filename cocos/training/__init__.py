"""The trainer, its checkpoints and what it reports."""
