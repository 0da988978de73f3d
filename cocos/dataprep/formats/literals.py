"""Plain values as Python source. The function runs in the sandbox too, so it uses nothing outside itself."""


def literal(value: object) -> str:
    """Return the source of an expression that has this value.

    Subclasses are written as their base class, which they equal: a Counter as a dict. Sets are sorted by the
    source of their items, and infinity is `1e999`.

    Raises:
        ValueError: The value, or a part of it, is not a plain value, or is NaN, which equals nothing.

    """
    if value is None or isinstance(value, bool) or type(value) in (int, str, bytes):
        return repr(value)
    if isinstance(value, float):
        if value != value:
            raise ValueError("NaN equals no value")
        return repr(float(value)).replace("inf", "1e999")
    if isinstance(value, complex):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' * (len(value) == 1)})"
    if isinstance(value, set):
        return f"{{{', '.join(sorted(map(literal, value)))}}}" if value else "set()"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
    raise ValueError(f"{type(value).__name__} is not a plain value")
