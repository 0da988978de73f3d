"""Isolation levels: how a worker process is confined."""
