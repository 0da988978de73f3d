"""Wire format between the executor and the zygote in each of its sandboxes.

The trusted process imports this module as `cocos.executor.inside.wire_format`, and the program inside a
sandbox as `wire_format`. It needs the standard library only, because a sandbox has nothing else.

    stdin of the zygote    JobHeader, sizes of the batches, the driver's part (JSON, or nothing), the
                           candidate's part (marshal), the batches of tests after the first (marshal)
    stdout of the zygote   READY; then per job AnswerHeader, the commits, the candidate's evidence, the
                           driver's evidence

Evidence is JSON lines; `candidate.py` and `driver.py` describe them. Numbers are in network byte order.
"""

import struct
from typing import NamedTuple

READY = b"ready\n"
MARSHAL_VERSION = 2  # a sandbox's Python may be another version than ours, and all of them read this format
MESSAGE_CHARS = 300  # an exception's message in the evidence is truncated to this length

# How a job ended, one byte each.
EXITED = b"E"  # the candidate's process, and the driver's, ended before the wall limit
TIMED_OUT = b"T"  # the wall limit was reached
FLOODED = b"F"  # there was more evidence than `output_kb` allows; none is sent
NEVER_STARTED = b"N"  # a child could not be confined; it ran no untrusted code
# In place of the answer to the next job: the sandbox could not be cleaned after the last one, and the zygote
# has ended. It did not read the job, which must be sent to another worker.
SPENT = b"S"

# File descriptors in every child. 0 to 2 are /dev/null. No open file of a child is shared with the zygote or
# with a later child: flags, locks and attributes that a program sets on one end with the program.
EVIDENCE_FD = 3  # the memory file that takes this child's evidence
PEER_FD = 4  # a socket between the candidate's process and the driver's; /dev/null without a driver
ASK_FD = 5  # a socket by which the candidate asks for the next batch; /dev/null if there is one
TESTS_FD = 6  # the memory file that takes the batches; /dev/null if there is one
FIRST_OWN_FD = 7  # this and all higher descriptors belong to the zygote; children close them

JOB_HEADER = struct.Struct("!IIIdIIIIII")  # the fields of JobHeader
SIZE = struct.Struct("!I")  # of a batch
COMMIT = struct.Struct("!II")  # bytes of the candidate's evidence, and of the driver's
ANSWER_HEADER = struct.Struct("!ciddddIII")  # the fields of AnswerHeader

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
        num_sizes: Number of batches of tests after the first.
        driver_size: Bytes of the driver's part; 0 means that the job needs no driver.
        candidate_size: Bytes of the candidate's part.
        wall_s: Seconds until the zygote kills candidate and driver.
        limits: Limits of each of these two processes.

    """

    num_sizes: int
    driver_size: int
    candidate_size: int
    wall_s: float
    limits: ChildLimits

    def pack(self) -> bytes:
        """Encode the header."""
        return JOB_HEADER.pack(
            self.num_sizes, self.driver_size, self.candidate_size, self.wall_s, *self.limits
        )


class AnswerHeader(NamedTuple):
    """The zygote's report on a job, sent before the evidence.

    Attributes:
        end: How the job ended: EXITED, TIMED_OUT, FLOODED or NEVER_STARTED; or SPENT, then with zeros.
        wait_status: Wait status of the candidate's process, as `os.wait4` returns it.
        wall_s: Seconds from the arrival of the job to the end of its last process.
        cpu_s: Processor seconds of the candidate's process and the children it waited for.
        waited_s: At a timeout, seconds that candidate and driver were ready to run but had no processor,
            while other processes had it. 0 in all other cases, and where the kernel does not say.
        peak_mb: Largest resident size of the candidate's process, MiB.
        num_commits: Number of commits: bytes of evidence that there were when the candidate got each further
            batch. Nothing changes them after that.
        candidate_size: Bytes of evidence from the candidate.
        driver_size: Bytes of evidence from the driver.

    """

    end: bytes
    wait_status: int
    wall_s: float
    cpu_s: float
    waited_s: float
    peak_mb: float
    num_commits: int
    candidate_size: int
    driver_size: int

    @classmethod
    def unpack(cls, data: bytes) -> "AnswerHeader":
        """Decode a header of ANSWER_HEADER.size bytes."""
        return cls(*ANSWER_HEADER.unpack(data))
