"""Waiting for what another process does."""

import time


def wait_until(is_so, timeout_s=180):
    """Return the first true value of a function that is called again and again; fail after `timeout_s`."""
    end_s = time.monotonic() + timeout_s
    while not (value := is_so()):
        assert time.monotonic() < end_s, f"not so within {timeout_s} s"
        time.sleep(0.05)
    return value
