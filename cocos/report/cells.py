"""Numbers and names as the text of a table's cell."""

from cocos.statistics import MIN_PROBLEMS, Estimate

NO_INTERVAL = "(no interval)"
NO_INTERVAL_NOTE = (
    f"{NO_INTERVAL}: a difference or a mean has no interval if there are fewer than {MIN_PROBLEMS} problems, "
    "or if it is the same for all of them, for example 0."
)


def format_estimate(estimate: Estimate) -> str:
    """Return a share and its interval in percent, as in `50.0 [23.7, 76.3]` or `50.0 (no interval)`."""
    value, low, high = estimate
    if low is None or high is None:
        return f"{100 * value:.1f} {NO_INTERVAL}"
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def format_share(share: float | None) -> str:
    """Return a share in percent; `-` for None."""
    return "-" if share is None else f"{100 * share:.1f}"


def format_p_value(p: float | None) -> str:
    """Return a p-value with two digits; `several samples` for None, as the test needs one per problem."""
    if p is None:
        return "several samples"
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def printable_error_type(error_type: str) -> str:
    """Return an exception's name on one line of at most 30 characters.

    The program under test defines the exception, so its name can be any text.
    """
    printable = "".join(character if character.isprintable() else "?" for character in error_type)
    return printable if len(printable) <= 30 else printable[:29] + "…"


def format_mean(mean: float | None) -> str:
    """Return a mean with about three digits; `-` for None."""
    if mean is None:
        return "-"
    return f"{mean:.1f}" if mean >= 10 else f"{mean:.3g}"
