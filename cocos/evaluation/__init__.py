"""Evaluation runs: play problems, store their rows, resume interrupted runs."""
