"""The program that runs inside a sandbox: a zygote that forks a candidate's process and a judge's per job.

Spawned as `python inside/`, so that its files import each other as top-level modules (`import wire`). The
trusted side never runs it, but imports `codec` and `wire`, which both sides share, and `confinement` to ask
for the kernel's Landlock version. These three import the standard library only.
"""
