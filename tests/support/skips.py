"""Remedies for skipped tests: what to download or install so that they run."""

from collections import Counter
from collections.abc import Iterable

# A word in the reason of a skip, and what to do about it.
REMEDIES = {
    "public data set": "make data (downloads the public data sets; DATA=folder reads them from a folder)",
    "docker": "install docker.io and debootstrap, start the daemon, then scripts/sandbox_image.sh",
    "bubblewrap": "install bubblewrap",
    "chromium": "install chromium and chromium-driver",
    "g++": "install g++",
    "verifiers": "pip install -e . -e examples/verifiers_cocos inspect-ai in an environment of its own; COCOS_VERIFIERS_PYTHON is its interpreter",
    "unshare": "install util-linux",
}


def remedies(reasons: Iterable[str]) -> list[str]:
    """Return one line per remedy with the number of tests that it would run, the largest number first."""
    counts = Counter(
        next((remedy for word, remedy in REMEDIES.items() if word in reason), None) for reason in reasons
    )
    unknown = counts.pop(None, 0)
    lines = [f"{count:4d}  {remedy}" for remedy, count in counts.most_common()]
    return lines + ([f"{unknown:4d}  cannot run on this machine; the reasons are above"] if unknown else [])
