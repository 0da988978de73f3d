"""How long an endpoint asks to be left alone, read from the headers of its answer."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def pause_asked_for(headers: Mapping[str, str]) -> float | None:
    """Seconds of `retry-after-ms` or `retry-after` (RFC 9110: seconds or a date); of a used-up limit the
    time to its reset; None where nothing is said.
    """
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return pause_until_reset(headers) or None
    return max(0.0, (at.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def pause_until_reset(headers: Mapping[str, str]) -> float:
    """Seconds until a rate limit of which nothing is left is reset; 0 where something is, or nothing is said.

    The headers are OpenAI's, and Groq's: `x-ratelimit-remaining-requests: 0`, `x-ratelimit-reset-requests:
    1m30s`, and the same of tokens.
    """
    resets = [
        _duration(headers.get(f"x-ratelimit-reset-{kind}", ""))
        for kind in ("requests", "tokens")
        if _number(headers.get(f"x-ratelimit-remaining-{kind}", "")) == 0
    ]
    return max(resets, default=0.0)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text.strip()) else None


def _duration(text: str) -> float:
    """Seconds of "2m59.56s", "7.66s", "20ms" or "3"; 0 for anything else."""
    if (seconds := _number(text)) is not None:
        return seconds
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s)", text)
    return sum(float(value) * _UNITS_S[unit] for value, unit in parts)
