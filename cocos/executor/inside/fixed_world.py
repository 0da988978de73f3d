"""The same clock and random bytes in every execution of a program.

The clock starts at 2025-01-01 00:00:00 UTC when a program first reads it, and then advances like the
monotonic clock. So a program that reads it once, as in `random.seed(time.time())`, always gets the same
instant. `os.urandom` and everything that draws from it return one fixed stream of bytes.
The time zone is set by `sandboxes/interpreter.py`.

Not replaced: time.monotonic, time.perf_counter, the clocks of processor time, the times of files, uuid.uuid1,
and C libraries that ask the kernel themselves, as numpy.datetime64("now") does. A program that wants the real
clock can still get it: this module serves repeatability, not security.
"""

import _random
import ctypes
import functools
import gc
import importlib
import os
import sys
import time
from datetime import UTC, datetime
from time import struct_time
from typing import Any

START_NS = 1_735_689_600 * 10**9  # 2025-01-01 00:00:00 UTC
SEED = 0
REAL_TIME_CLOCKS = (time.CLOCK_REALTIME, time.CLOCK_TAI)
# The functions of `time` that World replaces.
CLOCK_FUNCTIONS = (
    *("time", "time_ns", "clock_gettime", "clock_gettime_ns"),
    *("localtime", "gmtime", "ctime", "asctime", "strftime"),
)


class World:
    """Clock and random bytes, and the functions that replace those of `time` and `os`.

    The replacements are bound methods. Plain functions would differ from the C functions that they replace:
    as an attribute of a class, they would receive the instance as an argument.
    """

    def __init__(self) -> None:
        self._started_ns: int | None = None  # on the monotonic clock; None until the clock is first read
        self._random_bits = _random.Random(SEED)
        self._monotonic_ns = time.monotonic_ns
        self._real = {name: getattr(time, name) for name in CLOCK_FUNCTIONS}

    def restart_clock(self, started_ns: int | None = None) -> None:
        """Put the clock back to its start, where it waits until it is read.

        Args:
            started_ns: Time on the monotonic clock at which it has started instead.

        """
        self._started_ns = started_ns

    def restart_random_bytes(self) -> None:
        self._random_bits.seed(SEED)

    def time_ns(self) -> int:
        now_ns = self._monotonic_ns()
        if self._started_ns is None:
            self._started_ns = now_ns
        return START_NS + now_ns - self._started_ns

    def time(self) -> float:
        return self.time_ns() / 10**9

    def clock_gettime(self, clock: int, /) -> float:
        return self.time() if clock in REAL_TIME_CLOCKS else self._real["clock_gettime"](clock)

    def clock_gettime_ns(self, clock: int, /) -> int:
        return self.time_ns() if clock in REAL_TIME_CLOCKS else self._real["clock_gettime_ns"](clock)

    def localtime(self, seconds: float | None = None, /) -> struct_time:
        return self._real["localtime"](self.time() if seconds is None else seconds)

    def gmtime(self, seconds: float | None = None, /) -> struct_time:
        return self._real["gmtime"](self.time() if seconds is None else seconds)

    def ctime(self, seconds: float | None = None, /) -> str:
        return self._real["ctime"](self.time() if seconds is None else seconds)

    def asctime(self, *moment: struct_time) -> str:
        return self._real["asctime"](*(moment or (self.localtime(),)))

    def strftime(self, format: str, /, *moment: struct_time) -> str:
        return self._real["strftime"](format, *(moment or (self.localtime(),)))

    def urandom(self, size: int, /) -> bytes:
        if size < 0:
            raise ValueError("negative argument not allowed")
        return self._random_bits.getrandbits(8 * size).to_bytes(size, "little")

    def getrandom(self, size: int, flags: int = 0) -> bytes:
        if size < 0:
            raise OSError(22, "Invalid argument")
        return self.urandom(size)


WORLD = World()


def install() -> Any:
    """Replace the sources of time and chance in this process; return `random`, imported after that."""
    assert "random" not in sys.modules, "random would keep the real os.urandom"
    for name in CLOCK_FUNCTIONS:
        setattr(time, name, getattr(WORLD, name))
    os.urandom, os.getrandom = WORLD.urandom, WORLD.getrandom
    _replace_clock_of_datetime()
    # When `random` is imported and `os.fork` exists, it registers a hook that reseeds it in every forked
    # child. Hide `os.fork`, so that every child starts from the same seed.
    fork = os.fork
    del os.fork
    module = importlib.import_module("random")
    os.fork = fork
    _replace_seeds_of_random(module)
    return module


def restart() -> None:
    """Start clock and random numbers anew, whatever the imports in this process have drawn."""
    WORLD.restart_clock()
    WORLD.restart_random_bytes()
    random.seed(SEED)


def _replace_clock_of_datetime() -> None:
    """Let `datetime.now` and `utcnow` read the fixed clock; `today` does so because it calls `time.time`.

    Changes the dictionary of the C type, which Python code cannot do by assignment. A subclass in its place
    would change type(), pickle, repr, and the results of arithmetic and of C code.
    """

    def now(cls: type[datetime], tz=None) -> datetime:
        return cls.fromtimestamp(WORLD.time(), tz)

    def utcnow(cls: type[datetime]) -> datetime:
        return cls.fromtimestamp(WORLD.time(), UTC).replace(tzinfo=None)

    [attributes] = gc.get_referents(datetime.__dict__)  # the dictionary behind the read-only proxy
    attributes.update(now=classmethod(now), utcnow=classmethod(utcnow))
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime))  # attributes of a type are cached
    assert datetime.now().year == 2025


def _replace_seeds_of_random(random) -> None:
    """Seed unseeded generators from `os.urandom`. The C code asks the kernel instead."""
    seed_with = random.Random.seed

    @functools.wraps(seed_with)
    def seed(self, a=None, version=2):
        seed_with(self, int.from_bytes(os.urandom(32), "little") if a is None else a, version)

    random.Random.seed = seed
    random.seed = random._inst.seed


random = install()
