"""Rows and test files of public sets as MBPP-format problems."""
