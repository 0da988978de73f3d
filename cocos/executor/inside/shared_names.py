"""Functions and classes of the standard library that the judge takes by name from the candidate's process.

An explicit list, because a rule has exceptions: with `operator.attrgetter` or `type`, a candidate could read
and run anything in the judge. Nothing is imported, and no attribute is looked up, on the candidate's word.
"""

import array
import builtins
import cmath
import collections
import datetime
import decimal
import fractions
import math
import operator
import pathlib
import sys
import types
from typing import Any

_BUILTIN_TYPES = """
bool bytearray bytes complex dict enumerate filter float frozenset int list map memoryview object range
reversed set slice str tuple type zip
"""
_BUILTIN_FUNCTIONS = """
abs all any ascii bin callable chr divmod format hash hex isinstance issubclass iter len max min next oct ord
pow repr round sorted sum
"""
_OPERATORS = """
abs add and_ concat contains countOf eq floordiv ge getitem gt iadd iand iconcat ifloordiv ilshift imatmul
imod imul index indexOf inv invert ior ipow irshift is_ is_not isub itruediv ixor le lshift lt matmul mod mul
ne neg not_ or_ pos pow rshift sub truediv truth xor
"""
# Exceptions that are no builtins: module, names, and the builtin in their place if the module is not loaded.
_EXCEPTIONS = """
_csv Error Exception
_pickle PicklingError UnpicklingError Exception
_queue Empty Exception
argparse ArgumentError ArgumentTypeError Exception
asyncio.exceptions CancelledError BaseException
asyncio.exceptions InvalidStateError Exception
binascii Error ValueError
binascii Incomplete Exception
calendar IllegalMonthError IllegalWeekdayError ValueError
configparser Error NoSectionError NoOptionError DuplicateSectionError DuplicateOptionError Exception
configparser ParsingError MissingSectionHeaderError InterpolationError Exception
copy Error Exception
dataclasses FrozenInstanceError AttributeError
decimal DecimalException Clamped Inexact Overflow Rounded Subnormal Underflow ArithmeticError
decimal ConversionSyntax DivisionImpossible InvalidContext InvalidOperation ArithmeticError
decimal DivisionByZero DivisionUndefined ZeroDivisionError
decimal FloatOperation TypeError
getopt GetoptError Exception
graphlib CycleError ValueError
gzip BadGzipFile OSError
io UnsupportedOperation OSError
ipaddress AddressValueError NetmaskValueError ValueError
json.decoder JSONDecodeError ValueError
queue Full Exception
re error Exception
shutil Error SameFileError OSError
sqlite3 Warning Error InterfaceError DatabaseError DataError OperationalError IntegrityError Exception
sqlite3 InternalError ProgrammingError NotSupportedError Exception
statistics StatisticsError ValueError
struct error Exception
tarfile ReadError TarError Exception
threading BrokenBarrierError RuntimeError
tokenize TokenError Exception
tomllib TOMLDecodeError ValueError
unittest.case SkipTest Exception
urllib.error HTTPError URLError OSError
xml.etree.ElementTree ParseError SyntaxError
xml.parsers.expat ExpatError Exception
zipfile BadZipFile Exception
zlib error Exception
zoneinfo._common ZoneInfoNotFoundError KeyError
numpy.exceptions AxisError ValueError
numpy.linalg LinAlgError ValueError
"""
_VALUE_CLASSES = (
    *(collections.ChainMap, collections.Counter, collections.OrderedDict, collections.UserDict),
    *(collections.UserList, collections.UserString, collections.defaultdict, collections.deque),
    *(
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        datetime.timezone,
        datetime.tzinfo,
    ),
    *(
        decimal.Decimal,
        fractions.Fraction,
        array.array,
        types.SimpleNamespace,
        pathlib.PurePath,
        pathlib.Path,
    ),
    *(pathlib.PurePosixPath, pathlib.PosixPath, pathlib.PureWindowsPath),
)
_FUNCTION = type(len)

# By module and name.
_OBJECTS: dict[tuple[str, str], Any] = {
    **{
        ("builtins", name): getattr(builtins, name)
        for name in f"{_BUILTIN_TYPES} {_BUILTIN_FUNCTIONS}".split()
    },
    **{
        ("builtins", name): value
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException) and value.__name__ == name
    },
    **{(cls.__module__, cls.__name__): cls for cls in _VALUE_CLASSES},
    **{("_operator", name): getattr(operator, name) for name in _OPERATORS.split()},
    **{
        (module.__name__, name): value
        for module in (math, cmath)
        for name, value in vars(module).items()
        if type(value) is _FUNCTION
    },
}
_BASES: dict[tuple[str, str], type] = {
    (module, name): getattr(builtins, base)
    for module, *names, base in map(str.split, _EXCEPTIONS.strip().splitlines())
    for name in names
}
NAMES = frozenset({*_OBJECTS, *_BASES, ("uuid", "UUID")})


def find(module: str, name: str) -> Any:
    """Return the listed function or class, or None.

    In place of an exception whose module is not loaded, return its builtin base.
    """
    if (value := _OBJECTS.get((module, name))) is not None or (module, name) not in NAMES:
        return value
    loaded = vars(sys.modules[module]).get(name) if module in sys.modules else None
    return loaded if isinstance(loaded, type) else _BASES.get((module, name))
