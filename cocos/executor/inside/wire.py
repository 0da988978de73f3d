"""Wire format between the executor and the zygote in each of its sandboxes.

Both sides import this module: the trusted side as `cocos.executor.inside.wire`, the programs inside a sandbox
as `wire`. It imports the standard library only, because a sandbox has nothing else.

    stdin of the zygote    JobHeader, the judge's part (JSON, or nothing), the candidate's part (marshal)
    stdout of the zygote   READY; then per job AnswerHeader, the candidate's evidence, the judge's evidence

Evidence is JSON lines; `candidate.py` and `judge.py` describe them. Numbers are in network byte order.
"""

import struct
from typing import NamedTuple

READY = b"ready\n"
MARSHAL_VERSION = 2  # every Python reads and writes the types of a job alike in this version
MESSAGE_CHARS = 300  # of an exception's message, as evidence

# How a job ended, one byte each.
EXITED = b"E"  # the candidate's process ended before the wall limit
TIMED_OUT = b"T"  # the wall limit was reached
FLOODED = b"F"  # there was more evidence than `output_kb` allows; none is sent
NEVER_STARTED = b"N"  # a child could not be confined, so that no foreign code ran in it

# File descriptors in every child. 0 to 2 are /dev/null.
EVIDENCE_FD = 3  # the memory file that takes this child's evidence
PEER_FD = 4  # a socket between the candidate's process and the judge's; /dev/null where there is no judge
STARTED_FD = 5  # a pipe; each child writes one byte once it is confined
FIRST_OWN_FD = 6  # this and all higher descriptors belong to the zygote; children close them

_JOB_HEADER = struct.Struct("!IIdIIIIII")
_ANSWER_HEADER = struct.Struct("!c?idddII")


class ChildLimits(NamedTuple):
    """Limits of each child of the zygote, with the units of `executor.limits.Limits`."""

    cpu_s: int
    memory_mb: int
    output_kb: int
    file_mb: int
    processes: int
    open_files: int


class JobHeader(NamedTuple):
    """What the zygote itself reads of a job. The sizes are in bytes; a judge_size of 0 means no judge."""

    judge_size: int
    candidate_size: int
    wall_s: float
    limits: ChildLimits

    def pack(self) -> bytes:
        """Encode the header."""
        return _JOB_HEADER.pack(self.judge_size, self.candidate_size, self.wall_s, *self.limits)

    @classmethod
    def unpack(cls, data: bytes) -> "JobHeader":
        """Decode a header of JOB_HEADER_SIZE bytes."""
        judge_size, candidate_size, wall_s, *limits = _JOB_HEADER.unpack(data)
        return cls(judge_size, candidate_size, wall_s, ChildLimits(*limits))


class AnswerHeader(NamedTuple):
    """What the zygote reports of a job, ahead of the evidence.

    Attributes:
        end: How the job ended: EXITED, TIMED_OUT, FLOODED or NEVER_STARTED.
        is_spent: The sandbox could not be cleaned and must not run another program.
        wait_status: Of the candidate's process, as `os.wait4` returns it.
        wall_s: Seconds from the arrival of the job to the end of its last process.
        cpu_s: Processor seconds of the candidate's process and its descendants.
        peak_mb: Largest resident size of the candidate's process, MiB.
        candidate_size: Bytes of evidence from the candidate.
        judge_size: Bytes of evidence from the judge.

    """

    end: bytes
    is_spent: bool
    wait_status: int
    wall_s: float
    cpu_s: float
    peak_mb: float
    candidate_size: int
    judge_size: int

    def pack(self) -> bytes:
        """Encode the header."""
        return _ANSWER_HEADER.pack(*self)

    @classmethod
    def unpack(cls, data: bytes) -> "AnswerHeader":
        """Decode a header of ANSWER_HEADER_SIZE bytes."""
        return cls(*_ANSWER_HEADER.unpack(data))


JOB_HEADER_SIZE = _JOB_HEADER.size
ANSWER_HEADER_SIZE = _ANSWER_HEADER.size
