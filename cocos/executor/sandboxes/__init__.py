"""Isolation levels of the executor: one module per level, and what they share.

`levels.py` lists the levels and chooses one.
"""
