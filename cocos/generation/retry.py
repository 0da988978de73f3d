"""Retry policy for requests to an endpoint: the failures that are retried, and the delays."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

RETRYABLE_STATUS = {408, 409, 429}  # request timeout, conflict, too many requests; besides every 5xx
_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with jitter, replaced by the delay that the endpoint requests, if any.

    Attributes:
        max_retries: Number of retries after the first attempt.
        base_delay_s: Delay before the first retry. It doubles with every retry and is multiplied by a random
            factor in [0.5, 1.5], so that concurrent requests do not return all at once.
        max_delay_s: Upper bound of every delay, including those that the endpoint requests.

    """

    max_retries: int = 6
    base_delay_s: float = 1.0
    max_delay_s: float = 300.0

    def delay_s(self, attempt: int, headers: Mapping[str, str]) -> float:
        """Return the delay before the next attempt, in seconds.

        Args:
            attempt: Index of the attempt that failed, from 0.
            headers: Headers of the failed response; empty if there was none.

        """
        delay_s = requested_delay_s(headers)
        if delay_s is None:
            delay_s = self.base_delay_s * 2**attempt * random.uniform(0.5, 1.5)
        return min(delay_s, self.max_delay_s)

    def cool_down_s(self, headers: Mapping[str, str]) -> float:
        """Return the cool-down of a key after a success, in seconds; 0 if no rate limit is exhausted."""
        return min(seconds_until_reset(headers), self.max_delay_s)


def is_retryable(status: int | None) -> bool:
    """Return whether a failed request may succeed when it is repeated unchanged.

    Args:
        status: HTTP status. None if there was no usable response: no connection, a timeout, an invalid body.

    """
    return status is None or status >= 500 or status in RETRYABLE_STATUS


def requested_delay_s(headers: Mapping[str, str]) -> float | None:
    """Return the delay that the response headers request, in seconds, or None if they request none.

    `retry-after-ms` takes precedence over `retry-after` (RFC 9110, section 10.2.3: seconds or an HTTP date),
    and this over the reset time of an exhausted rate limit.
    """
    if (milliseconds := _parse_number(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if (seconds := _parse_number(value)) is not None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
    except ValueError:  # missing or malformed
        return seconds_until_reset(headers) or None
    return max(0.0, (date.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def seconds_until_reset(headers: Mapping[str, str]) -> float:
    """Return the seconds until every exhausted rate limit is reset; 0 if none is exhausted.

    The headers are those of OpenAI and Groq: `x-ratelimit-remaining-requests: 0` with
    `x-ratelimit-reset-requests: 1m30s`, and the same for `tokens`.
    """
    resets = [
        _parse_duration(headers.get(f"x-ratelimit-reset-{unit}", ""))
        for unit in ("requests", "tokens")
        if _parse_number(headers.get(f"x-ratelimit-remaining-{unit}", "")) == 0
    ]
    return max(resets, default=0.0)


def _parse_number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text.strip()) else None


def _parse_duration(text: str) -> float:
    """Return the seconds of "2m59.56s", "7.66s", "20ms" or "3"; 0 if the text is none of these."""
    if (seconds := _parse_number(text)) is not None:
        return seconds
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|h|m|s)", text)
    return sum(float(value) * _UNITS_S[unit] for value, unit in parts)
