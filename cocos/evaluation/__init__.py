"""Evaluation runs: play problems, keep their rows, resume."""
