"""Removal of what a program left in the scratch folder."""

import os
import time

CLEANING_S = 1.0  # a folder that takes longer is left to whoever replaces this sandbox


def empty(folder: str, longest_s: float = CLEANING_S) -> bool:
    """Remove all entries of a folder. Return False if that fails or takes too long."""
    if not (names := os.listdir(folder)):
        return True
    deadline = time.monotonic() + longest_s
    taken = set(names)
    number = 0
    try:
        while names:
            name = names.pop()
            path = f"{folder}/{name}"
            if time.monotonic() > deadline:
                return False
            if _unlink(path):
                continue
            # Move the folders inside of this one up before removing it. So no path becomes too long and
            # nothing recurses, however deep a program has nested its folders.
            for inner in os.listdir(path):
                if not _unlink(f"{path}/{inner}"):
                    while str(number) in taken:
                        number += 1
                    names.append(str(number))
                    taken.add(str(number))
                    os.rename(f"{path}/{inner}", f"{folder}/{number}")
                if time.monotonic() > deadline:
                    return False
            os.rmdir(path)
    except OSError:
        return False
    return True


def _unlink(path: str) -> bool:
    """Remove a file; return False if it is a folder."""
    try:
        os.unlink(path)
    except IsADirectoryError:
        return False
    return True
