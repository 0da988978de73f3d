"""Repair agents: LangGraph graphs over generator and executor. They are oracles: they see test results."""
