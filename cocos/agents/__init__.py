"""Repair agents: LangGraph graphs over the generator and the executor of the turn loop.

An agent sees the results of the visible tests, so it is an oracle: rows record it, and reports separate it.
`play` has one trajectory and the model that several share, `graphs` the agents reflect, react and tools.
"""
