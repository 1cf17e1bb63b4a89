"""A stop signal that had no effect is repeated where the worker is known to have no job, and the drain deadline holds.

To many libraries a second signal means to drop the job: a worker that may have one gets none.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from headway.agent.config.templates import Reporter, Stop, Template
from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.workers.ends.drain_watch import IDLE_STOP_REPEATED_AFTER_S, STOP_REPEATED_AFTER_S
from headway.agent.workers.manager import WorkerManager
from headway.agent.workers.worker_record import Record
from headway.scaling.model import ActivitySource, CutCause, WorkerState
from support.processes import runs
from support.waiting import eventually
from support.workers import PRINTS_READY, Stage, printed, reconcile_until, start, states, template

# Its first stop signals have no effect, as of a worker that hangs at that moment.
IGNORES_FIRST = """
import signal, sys, time
asked = []
def note(*_):
    asked.append(1)
    print('asked', len(asked), flush=True)
signal.signal(signal.SIGTERM, note)
print('ready', flush=True)
while len(asked) < {signals}:
    time.sleep(0.01)
"""
IDLE = Activity(is_busy=False, source=ActivitySource.BROKER)


def unresponsive(signals: int = 2, **stop: float) -> Template:
    return template(IGNORES_FIRST.format(signals=signals), ready=PRINTS_READY, stop=Stop(**stop))


def known(stage: Stage, activity: Activity, *, age_s: float = 0.0) -> Callable[[Record], Activity]:
    """What a broker that is asked all the time says of each worker."""
    return lambda _: replace(activity, known_at_s=stage.clock() - age_s)


def asked_once(stage: Stage, fleet: WorkerManager) -> int:
    """The pid of a worker whose stop signal had no effect."""
    fleet.act([start()])
    reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
    fleet.drain_all()
    (worker,) = fleet.workers()
    eventually(lambda: "asked 1" in printed(stage, worker.worker_id))
    return worker.pid


def test_a_worker_that_drains_and_is_known_to_have_no_job_is_asked_again(stage: Stage) -> None:
    with stage.fleet(unresponsive()) as fleet:
        fleet.cuts.activity = known(stage, IDLE)
        pid = asked_once(stage, fleet)
        stage.clock.ahead_s += IDLE_STOP_REPEATED_AFTER_S - 5.0
        assert not fleet.scan()
        assert runs(pid), "it may still send what it has logged"
        stage.clock.ahead_s += 6.0
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert not fleet.ends.take()[0].worker.is_forced


def test_so_it_is_by_the_next_agent(stage: Stage) -> None:
    with stage.fleet(unresponsive()) as fleet:
        pid = asked_once(stage, fleet)
    with stage.fleet(unresponsive()) as fleet:
        fleet.cuts.activity = known(stage, IDLE)
        assert not fleet.scan()
        assert runs(pid)
        stage.clock.ahead_s += IDLE_STOP_REPEATED_AFTER_S + 1.0
        fleet.scan()
        reconcile_until(fleet, lambda: fleet.workers() == ())


@pytest.mark.parametrize("activity", [NOT_KNOWN, replace(IDLE, is_busy=True)])
def test_a_worker_that_may_have_a_job_gets_no_second_signal(stage: Stage, activity: Activity) -> None:
    with stage.fleet(unresponsive()) as fleet:
        fleet.cuts.activity = known(stage, activity)
        pid = asked_once(stage, fleet)
        stage.clock.ahead_s += 7 * 86_400.0
        assert not fleet.scan()
        assert runs(pid)


def test_nor_does_one_that_had_no_job_before_it_was_asked(stage: Stage) -> None:
    """It may have begun one since."""
    with stage.fleet(unresponsive()) as fleet:
        fleet.cuts.activity = known(stage, IDLE, age_s=IDLE_STOP_REPEATED_AFTER_S + 10.0)
        pid = asked_once(stage, fleet)
        stage.clock.ahead_s += IDLE_STOP_REPEATED_AFTER_S + 5.0
        assert not fleet.scan()
        assert runs(pid)


def test_a_worker_that_was_perhaps_never_signalled_is_asked_as_soon_as_it_is_known_to_have_no_job(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where an agent is killed between its note and the signal. Without a deadline nothing else would end it."""

    class Killed(Exception):
        """The agent ends here."""

    def killed(*_: object) -> None:
        raise Killed

    with stage.fleet(unresponsive(1)) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        (worker,) = fleet.workers()
        with monkeypatch.context() as patch:
            patch.setattr("headway.agent.workers.worker_process.Process.ask_to_end", killed)
            with pytest.raises(Killed):
                fleet.drain_all()
    with stage.fleet(unresponsive(1)) as fleet:
        stage.clock.ahead_s += 7 * 86_400.0
        assert not fleet.scan(), "whether it has a job is not known"
        assert runs(worker.pid)
    with stage.fleet(unresponsive(1)) as fleet:
        fleet.cuts.activity = known(stage, IDLE)
        stage.clock.ahead_s += STOP_REPEATED_AFTER_S + 1.0
        fleet.scan()
        reconcile_until(fleet, lambda: fleet.workers() == ())
    assert printed(stage, worker.worker_id) == "ready\nasked 1\n"


def test_a_worker_that_is_asked_again_has_its_drain_time_again_once(stage: Stage) -> None:
    """It may have begun a job because the first signal had no effect; a worker that ignores each is killed."""
    with stage.fleet(unresponsive(1_000_000, drain_timeout_s=100.0)) as fleet:
        fleet.cuts.activity = known(stage, IDLE)
        pid = asked_once(stage, fleet)
        for _ in range(3):  # asked again after 40, 80 and 120 s
            stage.clock.ahead_s += 40.0
            fleet.scan()
        assert runs(pid)
        stage.clock.ahead_s += 25.0  # 105 s after the first repetition
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert fleet.ends.take()[0].worker.is_forced


WORKS_ON = """
import json, os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pipe = os.open(os.environ['HEADWAY_REPORTER_PIPE'], os.O_RDWR | os.O_NONBLOCK)
print('ready', flush=True)
n = 0
while True:
    n += 1
    os.write(pipe, json.dumps({'v': 1, 't': 'beat', 'n': n, 'part': 0, 'parts': 1, 'running': [], 'queues': ['mail'],
        'begun': 0, 'ended': 0, 'slots': 1, 'stopping': False, 'loop': n, 'lost': 0, 'at_s': time.time()}).encode()
        + b'\\n')
    time.sleep(0.05)
"""


def test_a_worker_that_reports_for_ever_that_it_does_not_stop_is_killed_at_its_drain_deadline(stage: Stage) -> None:
    """As where its application ignores the signal: each repetition moved the deadline."""
    ignores = template(WORKS_ON, ready=PRINTS_READY, reporter=Reporter.CELERY, stop=Stop(drain_timeout_s=40.0))
    with stage.fleet(ignores) as fleet:
        fleet.act([start()])
        reconcile_until(fleet, lambda: states(fleet) == [WorkerState.RUNNING])
        (worker,) = fleet.workers()
        fleet.drain_all()
        began_s = stage.clock()
        while fleet.running() and stage.clock() - began_s < 400.0:
            stage.clock.ahead_s += 10.0
            since_s = stage.clock()

            def has_beat(since_s: float = since_s) -> bool:
                fleet.reporters.read()
                beat = fleet.reporters.beat(worker.worker_id)
                return beat is not None and beat.received_at_s > since_s

            eventually(has_beat)
            fleet.scan()
            if fleet.workers() and fleet.workers()[0].is_forced:
                break
        assert 40.0 <= stage.clock() - began_s < 100.0
        reconcile_until(fleet, lambda: fleet.workers() == ())
        assert [each.cause for each in fleet.cuts.log.unsent] == [CutCause.DRAIN_DEADLINE]
