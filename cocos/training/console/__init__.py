"""Output of a run in the terminal: start, progress, examples and end; silenced messages of libraries."""
