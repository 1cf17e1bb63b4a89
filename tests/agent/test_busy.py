import sys
from subprocess import PIPE, Popen

import pytest

from headway.agent.model import NOT_KNOWN, Activity, ReceivedHint
from headway.agent.monitoring.activity import ACTIVITY_HINT_FRESH_S, ActivityTracker, ProcessWatch, Sample, by_hint
from headway.local import procfs
from support.waiting import eventually
from support.workers import record as a_record

NOW_S = 1_000.0
CREW = frozenset({(11, 1), (12, 1)})
HORSE = (20, 9)


def hint(pid: int = 7, **values: float | bool | None) -> ReceivedHint:
    return ReceivedHint(
        pid=pid, **{"is_busy": True, "since_age_s": 3.0, "age_s": 1.0, "received_at_s": NOW_S, **values}
    )


@pytest.mark.parametrize(
    ("said", "now_s", "started_at_s", "activity"),
    [
        (hint(), NOW_S, 0.0, Activity(is_busy=True, busy_since_s=NOW_S - 3.0)),
        (hint(since_age_s=None), NOW_S, 0.0, Activity(is_busy=True)),
        (hint(is_busy=False), NOW_S, 0.0, Activity(is_busy=False)),
        (hint(), NOW_S + ACTIVITY_HINT_FRESH_S, 0.0, NOT_KNOWN),  # 6 s old by now
        (hint(), NOW_S + ACTIVITY_HINT_FRESH_S - 1.0, 0.0, Activity(is_busy=True, busy_since_s=NOW_S - 3.0)),
        (hint(), NOW_S, NOW_S - 0.5, NOT_KNOWN),  # from before the worker: its pid was another process's
        (None, NOW_S, 0.0, NOT_KNOWN),
    ],
)
def test_the_brokers_word_counts_while_it_is_fresh_and_about_this_worker(
    said: ReceivedHint | None, now_s: float, started_at_s: float, activity: Activity
) -> None:
    assert by_hint(said, started_at_s=started_at_s, now_s=now_s) == activity


def seen(*samples: tuple[float, frozenset[tuple[int, int]]]) -> bool | None:
    watch = ProcessWatch()
    for number, (cpu_s, children) in enumerate(samples):
        watch.see(Sample(at_s=5.0 * number, cpu_s=cpu_s, children=children))
    return watch.activity.is_busy


@pytest.mark.parametrize(
    ("samples", "is_busy"),
    [
        ([(1.0, CREW)], None),  # one look says nothing
        ([(1.0, CREW), (1.05, CREW)], False),  # 1 % of a core, asking its broker
        ([(1.0, CREW), (2.0, CREW)], True),  # 20 %
        ([(1.0, CREW), (1.0, CREW | {HORSE})], True),  # a work horse came
        ([(1.0, CREW), (1.0, CREW | {HORSE}), (1.1, CREW)], False),  # and went
        ([(1.0, CREW | {HORSE}), (1.0, CREW), (1.0, CREW | {(21, 9)})], True),  # the first look met one
        ([(1.0, frozenset()), (1.9, frozenset())], True),
    ],
)
def test_a_worker_is_busy_that_takes_cpu_or_has_a_child_beside_its_crew(samples: list, is_busy: bool | None) -> None:
    assert seen(*samples) is is_busy


def test_a_process_that_spins_is_seen_to_be_busy_and_one_that_sleeps_is_not() -> None:
    def is_busy(code: str, *, takes_cpu_s: float) -> bool | None:
        with Popen([sys.executable, "-c", f"import time; print(flush=True)\n{code}"], stdout=PIPE) as process:
            process.stdout.readline()  # it has taken what it takes to begin
            known = procfs.stat(process.pid)
            record = a_record("w", pid=process.pid, started_ticks=known.started_ticks, pool="mail")
            tracker, now_s = ActivityTracker(), procfs.since_boot_s()
            tracker.scan([record], now_s=now_s)
            eventually(lambda: procfs.stat(process.pid).cpu_s >= known.cpu_s + takes_cpu_s)
            tracker.scan([record], now_s=now_s + 2.0)  # however long this machine took for it
            process.kill()
        return tracker.activity(record, now_s=now_s + 2.0).is_busy

    assert is_busy("while True: pass", takes_cpu_s=0.3) is True
    assert is_busy("time.sleep(60)", takes_cpu_s=0.0) is False


def test_the_brokers_word_counts_more_than_what_the_processes_show() -> None:
    tracker = ActivityTracker()
    record = a_record("w", pid=1, started_ticks=0, pool="mail")
    tracker.scan([record], now_s=0.0)
    tracker.scan([record], now_s=500.0)
    assert tracker.activity(record, now_s=NOW_S).is_busy is not None
    tracker.receive((hint(pid=1, is_busy=True),))
    assert tracker.activity(record, now_s=NOW_S) == Activity(is_busy=True, busy_since_s=NOW_S - 3.0)


def test_who_is_gone_is_forgotten() -> None:
    tracker = ActivityTracker()
    record = a_record("w", pid=1, started_ticks=0, pool="mail")
    tracker.scan([record], now_s=0.0)
    tracker.scan([], now_s=5.0)
    assert tracker._watches == {}
