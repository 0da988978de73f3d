"""Program that runs inside a sandbox.

Its main process, the zygote, forks one process for the candidate of each job, and a driver, which runs the
tests of many jobs. The folder is run as `python inside/`, so its files import each other as top-level modules
(`import wire_format`). The trusted process imports `data_types` and `wire_format`, which both sides share,
and `landlock`, which knows the kernel's version of it. These three must import the standard library only.
"""
