"""The queue of jobs: order, second attempts, overdue jobs and closing. The tests set the clock."""

import threading
from types import SimpleNamespace

import pytest

from cocos.executor import ExecutorError, Program, job_queue
from cocos.executor.job_queue import MAX_WAIT_FOR_QUIET_S, JobQueue

PROGRAMS = [Program(f"n = {n}", ("assert n == n",)) for n in range(4)]


class MustWait(Exception):
    """No job may start now."""


class ImpatientCondition(threading.Condition):
    def wait(self, timeout=None):
        raise MustWait


@pytest.fixture
def queue(monkeypatch):
    """A queue that raises MustWait where it would block."""
    monkeypatch.setattr(job_queue, "threading", SimpleNamespace(Condition=ImpatientCondition))
    return JobQueue()


@pytest.fixture
def clock(monkeypatch):
    """The queue's clock; a test sets `now`."""
    clock = SimpleNamespace(now=1000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(job_queue, "time", clock)
    return clock


def test_jobs_start_in_the_order_of_submission(queue):
    for program in PROGRAMS:
        queue.put(program)
    assert [queue.take().program for _ in PROGRAMS] == PROGRAMS
    with pytest.raises(MustWait):
        queue.take()


def test_a_cancelled_job_never_starts(queue):
    futures = [queue.put(program) for program in PROGRAMS]
    assert futures[0].cancel()
    assert queue.take().program is PROGRAMS[1] and not futures[1].cancel()  # too late once it runs


def test_a_second_attempt_waits_until_nothing_runs_and_then_runs_alone(queue):
    for program in PROGRAMS[:3]:
        queue.put(program)
    starved, other = queue.take(), queue.take()
    assert queue.finish(starved, retry=True)
    third = queue.take()  # other first attempts may still start
    assert third.program is PROGRAMS[2]
    queue.finish(other)
    with pytest.raises(MustWait):
        queue.take()  # the third still runs
    queue.finish(third)
    again = queue.take()
    assert again.program is PROGRAMS[0] and again.future is starved.future
    queue.put(PROGRAMS[3])
    with pytest.raises(MustWait):
        queue.take()  # the second attempt still runs
    queue.finish(again)
    assert queue.take().program is PROGRAMS[3]


def test_two_second_attempts_run_one_after_the_other(queue):
    for program in PROGRAMS[:2]:
        queue.put(program)
    for job in [queue.take(), queue.take()]:
        assert queue.finish(job, retry=True)
    first = queue.take()
    with pytest.raises(MustWait):
        queue.take()
    queue.finish(first)
    assert [first.program, queue.take().program] == PROGRAMS[:2]


def test_there_is_no_third_attempt(queue):
    queue.put(PROGRAMS[0])
    assert queue.finish(queue.take(), retry=True)
    assert not queue.finish(queue.take(), retry=True)
    with pytest.raises(MustWait):
        queue.take()


def test_a_second_attempt_that_has_waited_long_lets_no_other_job_start(queue, clock):
    for program in PROGRAMS:
        queue.put(program)
    starved, other = queue.take(), queue.take()
    queue.finish(starved, retry=True)
    clock.now += MAX_WAIT_FOR_QUIET_S
    third = queue.take()
    assert third.program is PROGRAMS[2]
    clock.now += 1
    with pytest.raises(MustWait):
        queue.take()
    queue.finish(other)
    queue.finish(third)
    assert queue.take().program is PROGRAMS[0]


def test_a_job_is_overdue_after_max_wait_s(clock):
    queue, patient = JobQueue(max_wait_s=3.0), JobQueue()
    queue.put(PROGRAMS[0])
    patient.put(PROGRAMS[0])
    job = queue.take()
    clock.now += 3.0
    assert not job.is_overdue
    clock.now += 0.1
    assert job.is_overdue and not patient.take().is_overdue


def test_a_closed_queue_fails_what_waits_and_lets_finish_what_runs(queue):
    futures = [queue.put(program) for program in PROGRAMS[:3]]
    starved, running = queue.take(), queue.take()
    queue.finish(starved, retry=True)
    queue.close("the first reason")
    queue.close("another reason")
    assert queue.take() is None
    for future in (futures[0], futures[2]):
        with pytest.raises(ExecutorError, match="the first reason"):
            future.result(timeout=0)
    assert not futures[1].done() and not queue.finish(running, retry=True)
    with pytest.raises(ExecutorError, match="the first reason"):
        queue.put(PROGRAMS[3])


def test_waiting_threads_wake_up_for_every_job_and_at_the_end():
    queue, executed = JobQueue(), []

    def serve():
        while job := queue.take():
            is_first_attempt = job.requeued_s is None
            if not queue.finish(job, retry=is_first_attempt):
                executed.append(job.program)
                job.future.set_result(None)

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    futures = [queue.put(program) for program in PROGRAMS * 50]
    for future in futures:
        future.result(timeout=180)
    queue.close("done")
    for thread in threads:
        thread.join(timeout=180)
        assert not thread.is_alive()
    assert len(executed) == len(futures)
