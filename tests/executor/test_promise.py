"""The table of cocos/executor/README.md: what a test may ask of an object, and what becomes of whatever else it asks."""

import pytest

from cocos.executor import Executor, Limits, Program
from tests.support.executor import level_or_skip

pytestmark = pytest.mark.processes

BOX = """class {name}:
    def __init__(self): self.size, self.items = 2, [1, 2]
    def __call__(self, n): return n
    def __iter__(self): return iter(self.items)
    def __len__(self): return 2
    def __getitem__(self, i): return self.items[i]
    def __setitem__(self, i, x): self.items[i] = x
    def __contains__(self, x): return x in self.items
    def __str__(self): return 'box'
    def __enter__(self): return 5
    def __exit__(self, *error): return False
    def __eq__(self, other): return True
    def __hash__(self): return 3
    def __lt__(self, other): return True
    def __add__(self, other): return self
    def __sub__(self, other): return 0
    def __float__(self): return 6.0
"""
CODE = (
    BOX.format(name="Box")
    + BOX.format(name="Hidden")
    + "def hidden(): return Hidden()\ndef numbers(): yield from (1, 2)\nclass Plain: pass\ndef plain(): return Plain()"
)
FOR_ALL = ("assert str(x) == f'{x}' == 'box'", "assert x", "with x as y: pass\nassert y == 5")
VERBS = (
    *("assert x(1) == 1", "assert x.size == 2", "x.size = 3\nassert x.size == 3", "assert [*x] == [1, 2]", "assert len(x) == 2"),
    *("assert x[1] == 2", "x[0] = 9\nassert x[0] == 9", "a, b = x\nassert (a, b) == (1, 2)", "assert max(x) == 2"),
)  # fmt: skip
OTHERS = (
    *("assert x == x", "assert x is x", "assert x < x", "assert (x + x).size == 2", "assert isinstance(x, object)"),
    *("assert not isinstance(x, int)", "import copy\nassert copy.copy(x).size == 2", "assert x.__dict__", "assert type(x).__name__"),
)  # fmt: skip
AS_DATA = (
    *("assert x == 6", "assert 6 == x", "assert [x] == [6]", "assert x - 6 == 0", "assert float(x) == 6", "assert x < 6"),
    *("assert 1 in x", "assert {x: 1}"),
)  # fmt: skip
# By what the test has of the program: for each question whether it passes, and whether it is marked.
DRIVEN, MARKED, REFUSED = (True, False), (True, True), (False, False)
TABLE = {
    "x = Box()": {**dict.fromkeys(FOR_ALL + VERBS, DRIVEN), **dict.fromkeys(OTHERS + AS_DATA, MARKED)},
    "x = hidden()": {**dict.fromkeys(FOR_ALL, DRIVEN), **dict.fromkeys(VERBS + OTHERS, MARKED), **dict.fromkeys(AS_DATA, REFUSED)},
    "x = plain()": {"assert x != 5 and x not in (5, None)": DRIVEN, "assert x == 5": REFUSED},
    "x = numbers()": dict.fromkeys(("assert [*x] == [1, 2]", "assert next(x) == 1", "assert 2 in x", "assert x and sum(x) == 3", "assert x != [1, 2]"), DRIVEN),
}  # fmt: skip


def test_the_table_of_the_page_holds():
    cases = [(have, asks, want) for have, row in TABLE.items() for asks, want in row.items()]
    with Executor(2, Limits(wall_s=20, cpu_s=9), level_or_skip("namespaces")) as executor:
        results = executor.run([Program(CODE, (f"{have}\n{asks}",)) for have, asks, _ in cases])
    rows = list(zip(cases, results, strict=True))
    found = [(have, asks, (r.verdicts[0].passed, r.verdicts[0].in_child)) for (have, asks, _), r in rows]
    assert [case for case in found if case not in cases] == []
    # Those are marked as the program's choice.
    as_data = [r.is_right for (have, asks, _), r in rows if have == "x = Box()" and asks in AS_DATA]
    assert as_data == [False] * len(AS_DATA)
