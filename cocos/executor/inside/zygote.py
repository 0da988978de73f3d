"""The zygote, which runs jobs one at a time. It forks a process for each program, and a driver for the tests.

It reads only the header of a job. The program's process reads its own part, and the kernel copies the
driver's part and its evidence, so that the zygote's memory, which every later child inherits, never contains
a test or an expected value. The zygote parses nothing that a program wrote.
"""

import _signal  # not `signal`, which converts masks to sets of enum members
import _socket  # not `socket`, which imports much that each fork would have to copy
import fcntl
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from . import fixed_world, scratch
from . import wire_format as wire
from .confinement import Confinement
from .processes import ABANDONED, Program, Watch, await_end, kill_all_but

CHILD_FAILED = 99
ALL_FDS = 1 << 16
RunProgram = Callable[[bytes, int, Callable[[int], None] | None], None]
RunDriver = Callable[[int], None]


class Zygote:
    """The server of one sandbox. It replaces descriptors of its process, so a process can have only one."""

    def __init__(self, confinement: Confinement) -> None:
        self.confinement = confinement
        self.jobs, self.answers, self.errors = (_move_up(os.dup(fd)) for fd in (0, 1, 2))
        self.started, self.started_w = map(_move_up, os.pipe())
        os.set_blocking(self.started, False)
        self.watch = Watch(self.jobs, *map(_move_up, os.pipe()))
        self.driver = self.next_program = 0  # process ids of the children that wait for a job
        self.control: _socket.socket  # to the driver
        self.driver_end: _socket.socket  # the driver's end of the next program's socket
        self.limits: list[int] = []  # of these two
        # Python has a handler for SIGINT, and a signal with a handler reaches even PID 1. Children unblock
        # it.
        _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT])
        # nohup and shells start commands that ignore some signals. Programs find what Python starts with.
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        for number in (_signal.SIGHUP, _signal.SIGQUIT):
            _signal.signal(number, _signal.SIG_DFL)
        # Occupy every low number, so that no descriptor of ours gets one.
        devnull = _move_up(os.open(os.devnull, os.O_RDWR))
        for fd in (0, 1, 2, wire.PEER_FD, wire.CONTROL_FD):
            os.dup2(devnull, fd)

    def serve(self, run_program: RunProgram, run_driver: RunDriver) -> None:
        """Send READY, then run jobs until the job pipe is closed or the scratch folder cannot be emptied.

        Args:
            run_program: Function that runs the program's part of a job in a child. Its arguments are that
                part, the number of bytes of a message that it may send, and of a script a function that
                completes the confinement of a process that it forks. It must end the process.
            run_driver: Function that serves as the driver, in a child. It must end the process.

        """
        folder = self.confinement.scratch
        try:
            wire.write_all(self.answers, wire.READY + wire.VERSION.pack(sys.hexversion))
            while self.run_job(run_program, run_driver):
                if not scratch.empty(folder):
                    wire.write_all(
                        self.answers, wire.ANSWER_HEADER.pack(wire.SPENT, 0, 0.0, 0.0, 0.0, 0.0, 0)
                    )
                    return
                # While the trusted process prepares the next job, which will have the same limits.
                self.start_children(run_program, run_driver)
        except BrokenPipeError:  # the trusted process has ended while a program ran
            pass
        except BaseException:
            os.dup2(self.errors, 2)  # the interpreter now prints the traceback
            raise
        # The trusted process has ended, perhaps without the time to remove this folder.
        scratch.empty(folder, longest_s=float("inf"))
        with suppress(OSError):  # it is the root of a file system
            os.rmdir(folder)

    def run_job(self, run_program: RunProgram, run_driver: RunDriver) -> bool:
        """Run one job and send the answer. Return False if the job pipe is closed."""
        header = wire.read_exactly(self.jobs, wire.JOB_HEADER.size)
        if len(header) < wire.JOB_HEADER.size:
            return False
        job = wire.JOB_HEADER.unpack(header)
        driver_size, program_size, wall_limit_s, shares_clock, is_script, *limits = job
        start = time.monotonic()
        clock_ns = time.monotonic_ns() if shares_clock else 0
        # At some levels a program can send signals to the driver, and may have stopped or killed it.
        if self.driver and (limits != self.limits or has_ended(self.driver)):
            self.end_driver()
        if self.next_program and (limits != self.limits or has_ended(self.next_program)):
            self.end_program()
        self.limits = limits
        self.start_children(run_program, run_driver)
        program, self.next_program = Program(self.next_program), 0
        control = self.control.fileno()
        rights = self.driver_end.fileno().to_bytes(4, sys.byteorder)
        self.control.sendmsg(
            [wire.DRIVER_HEADER.pack(driver_size, clock_ns)],
            [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)],
        )
        move(self.jobs, control, driver_size)
        with suppress(BrokenPipeError):  # it could not be confined
            self.driver_end.send(wire.PROGRAM_HEADER.pack(program_size, clock_ns, is_script))
        self.driver_end.close()
        goes_on, deadline = True, start + wall_limit_s
        while goes_on:
            event, is_late = await_end(program, self.driver, control, deadline, self.watch)
            if event == ABANDONED:
                program.kill(self.driver)  # it would go on writing while its files are removed
                return False
            header = wire.read_exactly(control, wire.EVIDENCE_HEADER.size) if event else b""
            if len(header) < wire.EVIDENCE_HEADER.size:
                if not is_late:
                    raise RuntimeError("the driver has ended")  # a program has killed it
                header = wire.EVIDENCE_HEADER.pack(0, False, True, False)
            size, may_go_on, may_have_ended, goes_on = wire.EVIDENCE_HEADER.unpack(header)
            if goes_on:
                kill_all_but(self.driver, program.pid)
                may_run = not is_late and scratch.empty(self.confinement.scratch)
                self.control.send(wire.GO_ON if may_run else b"-")
                deadline = time.monotonic() + wall_limit_s
        program.stop(may_have_ended)
        # A child that was reading a large job at the deadline has met the limit.
        has_started = self.count_started() > 0 or is_late
        end = (wire.TIMED_OUT if is_late else wire.EXITED) if has_started else wire.NEVER_STARTED
        wall_s = time.monotonic() - start
        usage = program.cpu_s, program.waited_s, program.peak_mb
        wire.write_all(self.answers, wire.ANSWER_HEADER.pack(end, program.status, wall_s, *usage, size))
        move(control, self.answers, size)
        program.kill(self.driver)
        if not may_go_on:
            self.end_driver()
        return True

    def start_children(self, run_program: RunProgram, run_driver: RunDriver) -> None:
        """Fork a driver, and the process of a program, if there is none that waits for a job."""
        if not self.driver:
            self.control, theirs = _socket.socketpair()
            self.driver = self.fork(theirs, run_driver, is_driver=True)
            self.watch.poll.register(self.control, 1)  # POLLIN
        if not self.next_program:
            self.driver_end, theirs = _socket.socketpair()
            self.next_program = self.fork(theirs, run_program)

    def end_driver(self) -> None:
        """Kill the driver and reap it."""
        os.kill(self.driver, _signal.SIGKILL)
        os.waitpid(self.driver, 0)
        self.watch.poll.unregister(self.control)
        self.control.close()
        self.driver = 0

    def end_program(self) -> None:
        """Kill this process and reap it."""
        os.kill(self.next_program, _signal.SIGKILL)
        os.waitpid(self.next_program, 0)
        self.driver_end.close()
        self.count_started()
        self.next_program = 0

    def fork(self, socket: _socket.socket, run: Callable[..., None], is_driver: bool = False) -> int:
        """Fork a child that confines itself, reads its part of a job and runs it.

        Args:
            socket: Its end of its socket.
            run: The function that runs the job and ends the process.
            is_driver: The child is the driver.

        """
        self.confinement.prepare(self.limits)
        self.confinement.before_fork()
        child = os.fork()
        if child:
            self.confinement.after_fork()
            socket.close()
            return child
        job: tuple = ()
        try:
            os.setsid()  # a signal to the process group must not reach the zygote
            os.dup2(socket.fileno(), wire.CONTROL_FD if is_driver else wire.PEER_FD)
            devnull = os.open(os.devnull, os.O_RDWR)  # not the zygote's, whose flags a child could change
            for fd in (0, 1, 2, wire.PEER_FD if is_driver else wire.CONTROL_FD):
                os.dup2(devnull, fd)
            self.confinement.enter(is_driver)
            _signal.set_wakeup_fd(-1)
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
            _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
            if is_driver:
                self.confinement.seal()
                job = (self.limits[wire.OUTPUT_KB] << 10,)
            else:
                header = wire.read_exactly(wire.PEER_FD, wire.PROGRAM_HEADER.size)
                size, clock_ns, is_script = wire.PROGRAM_HEADER.unpack(header)
                if not is_script:
                    self.confinement.seal()
                os.write(self.started_w, b".")
                fixed_world.WORLD.restart_clock(clock_ns or None)
                job = (
                    wire.read_exactly(self.jobs, size),
                    self.limits[wire.OUTPUT_KB] << 10,
                    self.confinement.seal if is_script else None,
                )
            # Among others the job pipe and the answer pipe. Not earlier, because `enter` needs the descriptor
            # of the Landlock ruleset.
            os.closerange(wire.FIRST_OWN_FD, ALL_FDS)
        except BaseException:
            os.dup2(self.errors, 2)
            sys.excepthook(*sys.exc_info())
            os._exit(CHILD_FAILED)
        try:
            run(*job)
        finally:
            os._exit(CHILD_FAILED)  # whatever happened, a child never returns to the zygote's loop

    def count_started(self) -> int:
        """Return how many programs have confined themselves since the last call."""
        try:
            return len(os.read(self.started, 2))
        except BlockingIOError:
            return 0


def has_ended(child: int) -> bool:
    """Return whether a child has ended or was stopped. It is not reaped, so no other gets its process id."""
    events = os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, child, events) is not None


def move(source: int, target: int, size: int) -> None:
    """Copy bytes from one descriptor to another in the kernel, so that they never enter this memory."""
    while size:
        if not (moved := os.splice(source, target, size)):
            raise BrokenPipeError("the trusted process, or the driver, has ended while it sent a job")
        size -= moved


def _move_up(fd: int) -> int:
    """Move a descriptor above the numbers that children use, so that no `dup2` overwrites it."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, wire.FIRST_OWN_FD + 16)
    os.close(fd)
    return moved
