"""Converters from the formats of public data sets to MBPP-format problems."""
