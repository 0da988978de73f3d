"""Names of the operations on an object that one process may request of the other."""

# Special methods that a proxy has if its original has them. Their result is a value, which the caller judges.
DATA_OPERATIONS = frozenset(
    (
        *("__call__", "__getitem__", "__setitem__", "__delitem__", "__missing__", "__iter__", "__next__"),
        *("__reversed__", "__len__", "__length_hint__", "__enter__", "__exit__", "__str__", "__repr__"),
        *("__format__", "__bytes__", "__fspath__"),
    )
)
COMPARISONS = frozenset(("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__"))
_BINARY = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
ARITHMETIC = frozenset(f"__{kind}{name}__" for name in _BINARY.split() for kind in ("", "r", "i"))
CONVERSIONS = frozenset(
    (
        *("__bool__", "__hash__", "__int__", "__float__", "__complex__", "__index__", "__neg__", "__pos__"),
        *("__abs__", "__invert__", "__round__", "__trunc__", "__floor__", "__ceil__"),
    )
)
# Special methods that decide, or compute, what the caller compares.
DECIDING_OPERATIONS = COMPARISONS | ARITHMETIC | CONVERSIONS
ITERATION = frozenset(("__next__", "send", "throw"))  # only these may end an iteration of the caller
GENERATOR_METHODS = frozenset(("send", "throw", "close"))
FORWARDED = DATA_OPERATIONS | DECIDING_OPERATIONS
