"""Workers on other machines: a server over HTTP (server.py), and an `Executor` that uses several (client.py).

docs/executor-remote.md says how to run them.
"""
