"""Repair agents: LangGraph graphs over the generator and the executor of the turn loop.

An agent sees the results of the visible tests, so it is an oracle: rows record it, and reports separate it.
`reflect`, `react` and `tools` are the graphs, `concurrent_play` plays a batch of trajectories with one.
"""
