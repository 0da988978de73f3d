"""Checks of problems: references in the sandbox, duplicates, and the findings of both."""
