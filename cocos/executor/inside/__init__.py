"""Package that runs inside a sandbox, with the standard library only.

Its main process, the zygote, forks one process for the candidate of each job, and a driver, which runs the
tests of many jobs. Nothing else of cocos is visible in a sandbox: there the package is called `inside`, and
`python -m inside` starts it. So its modules import each other relatively, and nothing from outside.
"""
