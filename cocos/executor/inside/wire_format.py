"""Wire format between the executor and the zygote in each of its sandboxes.

    stdin of the zygote    JobHeader, the driver's part, the program's part (both marshal)
    stdout of the zygote   READY and VERSION; then per job AnswerHeader and the driver's evidence (JSON)

`driver.py` and `program.py` describe the parts. Numbers are in network byte order.
"""

import struct
from os import read, write  # a program cannot replace these
from typing import NamedTuple

READY = b"ready\n"  # then the version of its Python, as `VERSION` packs it
VERSION = struct.Struct("!I")
MARSHAL_VERSION = 2  # a sandbox's Python may be another version than ours, and all of them read this format
MESSAGE_CHARS = 300  # an exception's message in the evidence is truncated to this length

# How a job ended, one byte each.
EXITED = b"E"  # the program's process ended, or its tests did, before the wall limit
TIMED_OUT = b"T"  # the wall limit was reached
NEVER_STARTED = b"N"  # a child could not be confined; it ran no untrusted code
# In place of the answer to the next job: the sandbox could not be cleaned after the last one, and the zygote
# has ended. It did not read the job, which must be sent to another worker.
SPENT = b"S"

# File descriptors in children. 0 to 2 are /dev/null. No open file of a program is shared with the zygote or
# with a later child: flags, locks and attributes that a program sets on one end with the program.
PEER_FD = 3  # the socket between a program and the driver
CONTROL_FD = 4  # the driver's socket to the zygote
FIRST_OWN_FD = 5  # this and all higher descriptors belong to the zygote; children close them

JOB_HEADER = struct.Struct("!IId??IIIIII")  # the fields of JobHeader
DRIVER_HEADER = struct.Struct("!IQ")  # size of the driver's part; when its clock starts, or 0
PROGRAM_HEADER = struct.Struct("!IQ?")  # the same of the program's part, and whether it is a script
# Size of the driver's evidence, whether it may run another job, whether the program may have ended, and
# whether the job goes on: the zygote removes what the last run of a script has left, and answers.
EVIDENCE_HEADER = struct.Struct("!I???")
GO_ON = b"+"  # otherwise no further run
ANSWER_HEADER = struct.Struct("!ciddddI")  # the fields of AnswerHeader


def read_exactly(fd: int, size: int) -> bytes:
    """Read `size` bytes; fewer only if the stream ends."""
    data = read(fd, size)
    if len(data) < size:  # a large job; parts that are added to bytes would take quadratic time
        parts = bytearray(data)
        while len(parts) < size and (part := read(fd, min(size - len(parts), 1 << 20))):
            parts += part
        data = bytes(parts)
    return data


def write_all(fd: int, data: bytes) -> None:
    """Write every byte."""
    if (written := write(fd, data)) < len(data):
        view = memoryview(data)[written:]
        while view:
            view = view[write(fd, view) :]


# Only the trusted process uses the named tuples below. The zygote uses positions: named tuples touch more of
# the pages that it shares with its children, and cost 6 % more page faults per program.


class ChildLimits(NamedTuple):
    """Limits of each child of the zygote; `executor.limits.Limits` describes the fields."""

    cpu_s: int
    memory_mb: int
    output_kb: int
    file_mb: int
    processes: int
    open_files: int


OUTPUT_KB = ChildLimits._fields.index("output_kb")


class JobHeader(NamedTuple):
    """The part of a job that the zygote itself reads.

    Attributes:
        driver_size: Bytes of the driver's part.
        program_size: Bytes of the program's part.
        wall_s: Seconds until the zygote kills the program; of a script, each run has so many.
        shares_clock: The clocks of program and driver start at the same time, not when they are first read.
        is_script: The program runs anew for each test.
        limits: Limits of the program's process.

    """

    driver_size: int
    program_size: int
    wall_s: float
    shares_clock: bool
    is_script: bool
    limits: ChildLimits

    def pack(self) -> bytes:
        """Encode the header."""
        return JOB_HEADER.pack(*self[:-1], *self.limits)


class AnswerHeader(NamedTuple):
    """The zygote's report on a job, sent before the evidence.

    Attributes:
        end: How the job ended: EXITED, TIMED_OUT or NEVER_STARTED; or SPENT, then with zeros.
        wait_status: Wait status of the program's process, as `os.wait4` returns it.
        wall_s: Seconds from the arrival of the job to the evidence.
        cpu_s: Processor seconds of the program's process.
        waited_s: At a timeout, seconds that the program was ready to run but had no processor, while other
            processes had it. 0 in all other cases, and where the kernel does not say.
        peak_mb: Largest resident size of the program's process, MiB; 0 if the process outlived its tests.
        evidence_size: Bytes of evidence.

    """

    end: bytes
    wait_status: int
    wall_s: float
    cpu_s: float
    waited_s: float
    peak_mb: float
    evidence_size: int

    @classmethod
    def unpack(cls, data: bytes) -> "AnswerHeader":
        """Decode a header of ANSWER_HEADER.size bytes."""
        return cls(*ANSWER_HEADER.unpack(data))
