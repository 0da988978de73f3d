"""Choices that options and the method share, by name. Imports the standard library only."""

from typing import Literal

Feedback = Literal["none", "verdict", "error"]  # on the previous program, in the next prompt
PlaceboKind = Literal["none", "notice", "other", "wrong"]  # instead of what failed tests say
OnRepeat = Literal["keep", "resample", "tell"]  # treatment of a program that equals the previous one
RewardKind = Literal["fraction", "binary", "mixed", "count", "random"]
RewardTests = Literal["all", "hidden"]
Credit = Literal["turn", "trajectory", "last"]  # which turns are trained, and with which return
Agent = Literal["none", "reflect", "react", "tools"]
Isolated = Literal["docker", "namespaces", "seccomp"]  # from the machine, the strongest first
IsolationLevel = Literal[Isolated, "rlimits"]  # of programs
