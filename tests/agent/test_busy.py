import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from headway.agent.config.worker_programs import is_rq_worker
from headway.agent.model import NOT_KNOWN, Activity, ReceivedHint
from headway.agent.monitoring.activity import (
    ACTIVITY_HINT_FRESH_S,
    SAMPLE_FRESH_S,
    ActivityTracker,
    ProcessWatch,
    Sample,
    by_hint,
    of_family,
    weighed,
)
from headway.agent.workers.main_process import main_processes
from headway.agent.workers.worker_record import Record
from headway.local import procfs
from headway.scaling.model import ActivitySource
from support.waiting import eventually
from support.workers import record as a_record

NOW_S = 1_000.0
BY_REPORTER, BY_BROKER, BY_CPU, BY_CHILD = ActivitySource


def said(source: ActivitySource, is_busy: bool | None, known_at_s: float) -> Activity:
    return Activity(is_busy=is_busy, source=source, known_at_s=known_at_s)


def hint(pid: int = 7, **values: float | bool | None) -> ReceivedHint:
    return ReceivedHint(
        pid=pid, **{"is_busy": True, "since_age_s": 3.0, "age_s": 1.0, "received_at_s": NOW_S, **values}
    )


BUSY_SINCE = Activity(is_busy=True, busy_since_s=NOW_S - 3.0, source=BY_BROKER, known_at_s=NOW_S - 1.0)


@pytest.mark.parametrize(
    ("given", "now_s", "started_at_s", "activity"),
    [
        (hint(), NOW_S, 0.0, BUSY_SINCE),
        (hint(since_age_s=None), NOW_S, 0.0, said(BY_BROKER, True, NOW_S - 1.0)),
        (hint(is_busy=False), NOW_S, 0.0, said(BY_BROKER, False, NOW_S - 1.0)),
        (hint(), NOW_S + ACTIVITY_HINT_FRESH_S, 0.0, NOT_KNOWN),  # 6 s old by now
        (hint(), NOW_S + ACTIVITY_HINT_FRESH_S - 1.0, 0.0, BUSY_SINCE),
        (hint(), NOW_S, NOW_S - 0.5, NOT_KNOWN),  # from before the worker: its pid was another process's
        (None, NOW_S, 0.0, NOT_KNOWN),
    ],
)
def test_the_brokers_word_counts_while_it_is_fresh_and_about_this_worker(
    given: ReceivedHint | None, now_s: float, started_at_s: float, activity: Activity
) -> None:
    assert by_hint(given, started_at_s=started_at_s, now_s=now_s) == activity


@pytest.mark.parametrize(
    ("claims", "believed"),
    [
        ([], None),
        ([said(BY_REPORTER, False, 9.0), said(BY_BROKER, False, 9.5)], (False, BY_REPORTER)),
        ([NOT_KNOWN, said(BY_BROKER, False, 9.0)], (False, BY_BROKER)),
        ([said(BY_REPORTER, True, 5.0), said(BY_BROKER, False, 9.0)], (True, BY_REPORTER)),  # by precedence
        ([said(BY_REPORTER, False, 5.0), said(BY_BROKER, True, 4.0)], (False, BY_REPORTER)),  # ended since
        ([said(BY_REPORTER, False, 5.0), said(BY_CPU, True, 8.0)], (False, BY_REPORTER)),  # by no job: it would say so
        ([said(BY_REPORTER, False, 5.0), said(BY_BROKER, True, 8.0)], (False, BY_REPORTER)),  # a job that Celery forgot
        ([said(BY_BROKER, False, 5.0), said(BY_CHILD, True, 5.0)], (True, BY_CHILD)),  # at that very moment
        ([said(BY_BROKER, False, 5.0), said(BY_CPU, True, 8.0)], (True, BY_CPU)),
        ([said(BY_BROKER, False, 9.0), said(BY_CHILD, True, 8.0)], (False, BY_BROKER)),
        ([NOT_KNOWN, NOT_KNOWN, said(BY_CHILD, True, 8.0)], (True, BY_CHILD)),
        # A reporter that is silent, or lost lines: nobody else may say idle.
        ([said(BY_REPORTER, None, 5.0), said(BY_BROKER, False, 9.0)], (None, BY_REPORTER)),
        ([said(BY_REPORTER, None, 5.0), said(BY_BROKER, True, 4.0)], (True, BY_BROKER)),
        ([said(BY_REPORTER, None, 5.0), NOT_KNOWN, said(BY_CPU, True, 4.0)], (True, BY_CPU)),
    ],
)
def test_a_proof_of_work_counts_more_than_an_older_word_that_there_is_none(
    claims: list[Activity], believed: tuple[bool | None, ActivitySource] | None
) -> None:
    found = weighed(*claims)
    assert (found.is_busy, found.source) == (believed or (None, None))


@pytest.mark.parametrize(
    ("hinted", "believed"),
    [
        ([], NOT_KNOWN),
        ([said(BY_BROKER, False, 9.0), NOT_KNOWN], NOT_KNOWN),  # of one of them nobody has said anything lately
        ([said(BY_BROKER, True, 9.0), NOT_KNOWN], said(BY_BROKER, True, 9.0)),
        ([said(BY_BROKER, False, 9.0), said(BY_BROKER, False, 7.0)], said(BY_BROKER, False, 7.0)),
    ],
)
def test_several_workers_behind_one_wrapper_are_idle_together_or_not_at_all(
    hinted: list[Activity], believed: Activity
) -> None:
    assert of_family(hinted) == believed


def seen(*samples: tuple[float, bool]) -> tuple[bool | None, ActivitySource | None]:
    watch = ProcessWatch()
    for number, (cpu_s, has_job_process) in enumerate(samples):
        watch.see(Sample(at_s=5.0 * number, cpu_s=cpu_s, starts_s={}, has_job_process=has_job_process))
    return watch.activity.is_busy, watch.activity.source


@pytest.mark.parametrize(
    ("samples", "believed"),
    [
        ([(1.0, False)], (None, None)),  # one look says nothing
        ([(1.0, False), (1.05, False)], (None, None)),  # 1 % of a core: it asks its broker, or its job waits
        ([(1.0, False), (2.0, False)], (True, BY_CPU)),  # 20 %
        ([(1.0, True)], (True, BY_CHILD)),
        ([(1.0, False), (1.0, True)], (True, BY_CHILD)),
        ([(1.0, True), (1.1, False)], (None, None)),
    ],
)
def test_processes_prove_a_worker_busy_and_never_idle(
    samples: list, believed: tuple[bool | None, ActivitySource | None]
) -> None:
    assert seen(*samples) == believed


SPINS, SLEEPS = "while True: pass", "time.sleep(600)"


@contextmanager
def process(*argv: str, code: str = SLEEPS) -> Iterator[Record]:
    """A worker whose process is ``argv`` with this Python behind it, which has begun."""
    text = f"import os, subprocess, sys, time; print(os.getpid(), flush=True)\n{code}"
    with Popen([*argv, sys.executable, "-c", text], stdout=PIPE, start_new_session=True) as started:
        started.stdout.readline()
        known = procfs.stat(started.pid)
        try:
            yield a_record("w", pid=started.pid, started_ticks=known.started_ticks, pool="mail")
        finally:
            os.killpg(started.pid, 9)


@pytest.mark.parametrize("wrapper", [(), ("sh", "-c", '"$@"; exit 0', "sh")])
def test_a_process_that_spins_is_seen_to_be_busy_and_one_that_sleeps_is_not_known(wrapper: tuple[str, ...]) -> None:
    def believed(code: str, *, takes_cpu_s: float) -> tuple[bool | None, ActivitySource | None]:
        with process(*wrapper, code=code) as record:
            before_s = procfs.family_cpu_s(record.pid)
            tracker, now_s = ActivityTracker(), procfs.since_boot_s()
            tracker.scan([record], now_s=now_s)
            eventually(lambda: procfs.family_cpu_s(record.pid) >= before_s + takes_cpu_s)
            tracker.scan([record], now_s=now_s + 2.0)  # however long this machine took for it
            found = tracker.activity(record, now_s=now_s + 2.0)
            assert tracker.activity(record, now_s=now_s + 2.0 + SAMPLE_FRESH_S + 0.1) == NOT_KNOWN
        return found.is_busy, found.source

    assert believed(SPINS, takes_cpu_s=0.3) == (True, BY_CPU)
    assert believed(SLEEPS, takes_cpu_s=0.0) == (None, None)


def test_a_worker_that_reports_no_job_is_idle_however_much_processor_time_it_takes() -> None:
    """A thread that profiles, a greenlet that polls: else such a pool never comes down."""
    with process(code=SPINS) as record:
        before_s = procfs.family_cpu_s(record.pid)
        tracker, now_s = ActivityTracker(), procfs.since_boot_s()
        tracker.scan([record], now_s=now_s)
        eventually(lambda: procfs.family_cpu_s(record.pid) >= before_s + 0.3)
        tracker.scan([record], now_s=now_s + 2.0)

        def believed(is_busy: bool | None) -> bool | None:
            return tracker.activity(record, now_s=now_s + 2.0, reported=said(BY_REPORTER, is_busy, now_s + 1.0)).is_busy

        assert believed(False) is False
        assert believed(None) is True  # where its reporter is silent, the processes still prove work


def test_the_broker_knows_the_process_behind_a_shell() -> None:
    with process("sh", "-c", '"$@"; exit 0', "sh") as record:
        now_s = procfs.since_boot_s()
        (child,) = procfs.children(record.pid)
        tracker = ActivityTracker()
        word = hint(pid=child.pid, is_busy=False, since_age_s=None, age_s=0.0, received_at_s=now_s)
        tracker.receive((word,))
        assert tracker.activity(record, now_s=now_s) == NOT_KNOWN
        tracker.scan([record], now_s=now_s)
        assert tracker.activity(record, now_s=now_s) == said(BY_BROKER, False, now_s)


def test_of_several_workers_behind_a_shell_one_idle_makes_not_all_idle(tmp_path: Path) -> None:
    script = tmp_path / "celery"  # the name is what a worker is known by
    script.write_text("import time; print('began', flush=True); time.sleep(600)")
    one = f"{sys.executable} {script} worker"
    with Popen(["sh", "-c", f"{one} & {one} & wait"], stdout=PIPE, start_new_session=True) as started:
        try:
            for _ in range(2):
                started.stdout.readline()
            ticks = procfs.stat(started.pid).started_ticks
            mains = main_processes(started.pid)
            record = replace(a_record("w", pid=started.pid, started_ticks=ticks, pool="mail"), mains=mains)
            tracker, now_s = ActivityTracker(), procfs.since_boot_s()
            tracker.scan([record], now_s=now_s)
            idle = [hint(pid=each.pid, is_busy=False, age_s=0.0, received_at_s=now_s) for each in mains]

            def believed(*hints: ReceivedHint, reported: Activity = NOT_KNOWN) -> bool | None:
                tracker.receive(hints)
                return tracker.activity(record, now_s=now_s, reported=reported).is_busy

            answers = [
                believed(*idle),
                believed(idle[0]),
                believed(idle[0], replace(idle[1], is_busy=True)),
                believed(idle[0], reported=said(BY_REPORTER, False, now_s)),
                believed(*idle, reported=said(BY_REPORTER, True, now_s)),
            ]
        finally:
            os.killpg(started.pid, 9)
    assert answers == [False, None, True, None, True]


@pytest.mark.parametrize(
    ("child", "is_busy"),
    [
        ("os.setpgrp()", True),
        ("pass", None),  # as RQ's scheduler, or a worker of RQ's pool
        ("os.setpgrp(); os.execlp('sleep', 'sleep', '600')", None),  # a program that a job left running
    ],
)
def test_a_work_horse_of_rq_proves_it_busy_and_another_child_does_not(
    child: str, is_busy: bool | None, tmp_path: Path
) -> None:
    script = tmp_path / "rq"  # the name is what an RQ worker is known by
    script.write_text(
        "import os, time\nif not os.fork():\n    "
        + child.replace("; ", "\n    ")
        + "\n    time.sleep(600)\nprint('forked', flush=True)\ntime.sleep(600)\n"
    )
    with Popen([sys.executable, str(script), "worker", "mail"], stdout=PIPE, start_new_session=True) as started:
        started.stdout.readline()
        known = procfs.stat(started.pid)
        record = a_record("w", pid=started.pid, started_ticks=known.started_ticks, pool="mail")
        tracker = ActivityTracker()
        (forked,) = procfs.children(started.pid)
        is_settled = {
            "pass": lambda: True,
            "os.setpgrp()": lambda: procfs.stat(forked.pid).group == forked.pid,
        }.get(child, lambda: procfs.command_line(forked.pid)[:1] == ("sleep",))
        eventually(is_settled)
        now_s = procfs.since_boot_s()
        tracker.scan([record], now_s=now_s)
        assert tracker.activity(record, now_s=now_s).is_busy is is_busy
        assert tracker.activity(record, now_s=now_s).moves_due_jobs is (child == "pass")
        os.kill(forked.pid, 9)
        os.killpg(started.pid, 9)


@pytest.mark.parametrize(
    ("command", "is_rq"),
    [
        ("/v/bin/rq worker mail", True),
        ("/v/bin/python /v/bin/rq --url redis://h worker mail", True),
        ("python3.12 -m rq.cli worker mail", True),
        ("python manage.py rqworker mail", True),
        ("rqworker mail", True),
        ("rq worker-pool -n 4", True),
        ("python manage.py runserver", False),
        ("rq info", False),
        ("celery -A rq worker", False),
        ("sh -c exec", False),
        ("", False),
    ],
)
def test_a_worker_of_rq_is_known_by_its_command_line(command: str, is_rq: bool) -> None:
    assert is_rq_worker(command.split()) is is_rq


def test_a_worker_of_rq_is_known_by_its_title() -> None:
    assert is_rq_worker(["rq:worker:ab12: Listening on mail"])


def test_what_the_broker_counts_of_every_process_of_a_worker_adds() -> None:
    with process("sh", "-c", '"$@"; exit 0', "sh") as record:
        now_s = procfs.since_boot_s()
        (child,) = procfs.children(record.pid)
        tracker = ActivityTracker()
        tracker.scan([record], now_s=now_s)
        ages = {"age_s": 0.0, "received_at_s": now_s}
        tracker.receive((hint(pid=record.pid, ended_jobs=None, **ages), hint(pid=child.pid, ended_jobs=3, **ages)))
        assert tracker.ended_jobs(record) == 3


def test_who_is_gone_is_forgotten() -> None:
    tracker = ActivityTracker()
    record = a_record("w", pid=1, started_ticks=0, pool="mail")
    tracker.scan([record], now_s=0.0)
    tracker.scan([], now_s=5.0)
    assert tracker._watches == {}
