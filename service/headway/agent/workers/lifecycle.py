"""The life of one worker, as moves on values. Whoever calls them knows what happened; nothing is done here.

    (wanted)     -> starting       spawned
    (wanted)     -> backing_off    it cannot be spawned, or its kind is backing off
    starting     -> running        ready
    starting     -> draining       not ready in time: that counts as a failure
    starting     -> backing_off    ended before it was ready
    running      -> backing_off    ended, too soon to have been of use
    running      -> gone           ended later: its place is free at once
    starting     -> gone           ended when its end was due
    running      -> gone           ended when its end was due: by an option, or after a job
    starting     -> draining       asked to stop
    running      -> draining       asked to stop
    draining     -> draining       signalled
    draining     -> draining       its time is over: forced
    draining     -> draining       perhaps never signalled, and its time is over: asked again
    draining     -> draining       it reports that it does not stop: asked again
    draining     -> gone           ended
    draining     -> backing_off    ended, when it had failed to get ready
    backing_off  -> gone           its pause is over, nobody wants it any more, or it ended because of a suspension
    starting     -> gone           a burst worker that found nothing to do, and ended well
    running      -> gone           the same

Seconds are of the host's clock since boot, which never steps; below 0 before the boot of the agent's time namespace.
"""

from dataclasses import dataclass, replace
from typing import Annotated

from headway.agent.workers.crash_backoff import CRASH_WITHIN_S
from headway.scaling.keys import Range
from headway.scaling.model import WorkerState

BootSeconds = Annotated[float, Range(-1e12, 1e12)]
FORCE_AGAIN_S = 5.0  # a process that is stuck in the kernel ends when it comes out of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Where a worker is in its life, and since when."""

    state: WorkerState
    started_at_s: BootSeconds
    since_s: BootSeconds
    is_burst: bool = False
    is_being_told: bool = False  # a key of the state folder: an older agent reads it, too
    """Its signal to stop is about to be sent. Who takes over then cannot know whether it was, and sends no second one:
    to many workers a second means to drop what they are doing."""
    is_forced: bool = False
    has_failed: bool = False
    """It was never of use: its kind backs off when it ends."""
    exit_code: int | None = None
    is_spent: bool = False
    """A burst worker that ended by itself: its place stays empty."""

    @property
    def is_alive(self) -> bool:
        """Whether a process belongs to it."""
        return self.state in {WorkerState.STARTING, WorkerState.RUNNING, WorkerState.DRAINING}

    def is_on_trial(self, *, now_s: float) -> bool:
        """Whether it has yet to show that it stays: it starts, or has run for too short a time to have been of use."""
        return self.state is WorkerState.STARTING or (
            self.state is WorkerState.RUNNING and now_s - self.started_at_s < CRASH_WITHIN_S
        )

    def has_stayed(self, *, now_s: float) -> bool:
        """Whether it runs and is no longer on trial."""
        return self.state is WorkerState.RUNNING and now_s - self.started_at_s >= CRASH_WITHIN_S


def spawned(*, now_s: float, is_burst: bool) -> Life:
    """(wanted) -> starting."""
    return Life(state=WorkerState.STARTING, started_at_s=now_s, since_s=now_s, is_burst=is_burst)


def held_back(*, now_s: float, is_burst: bool) -> Life:
    """(wanted) -> backing_off."""
    return Life(state=WorkerState.BACKING_OFF, started_at_s=now_s, since_s=now_s, is_burst=is_burst)


def ready(life: Life, *, now_s: float) -> Life:
    """Starting -> running."""
    assert life.state is WorkerState.STARTING, life
    return replace(life, state=WorkerState.RUNNING, since_s=now_s)


def late(life: Life, *, now_s: float) -> Life:
    """Starting -> draining, because it was not ready in time."""
    assert life.state is WorkerState.STARTING, life
    return replace(life, state=WorkerState.DRAINING, since_s=now_s, is_being_told=True, has_failed=True)


def stop_requested(life: Life, *, now_s: float) -> Life:
    """Starting -> draining, running -> draining; backing_off -> gone, for there is no process to signal."""
    if life.state is WorkerState.BACKING_OFF:
        return over(life, now_s=now_s)
    assert life.state in {WorkerState.STARTING, WorkerState.RUNNING}, life
    return replace(life, state=WorkerState.DRAINING, since_s=now_s, is_being_told=True)


def signalled(life: Life) -> Life:
    """Draining -> draining, now surely signalled. Since when it drains stays as it is."""
    assert life.state is WorkerState.DRAINING, life
    return replace(life, is_being_told=False)


def stop_repeated(life: Life, *, now_s: float) -> Life:
    """Draining -> draining, with all its time again: perhaps, or by its own report, it was never signalled."""
    assert life.state is WorkerState.DRAINING, life
    return replace(life, since_s=now_s, is_being_told=True)


def forced(life: Life) -> Life:
    """Draining -> draining, now with the signal that leaves it no choice. Since when it drains stays as it is."""
    assert life.state is WorkerState.DRAINING, life
    return replace(life, is_forced=True)


def drain_ends_s(life: Life, *, drain_timeout_s: float | None, now_s: float) -> float:
    """The drain deadline: before it, no worker is forced to end. Of one that does not drain yet, it begins now.

    Endless where nobody has set one.
    """
    if drain_timeout_s is None:
        return float("inf")
    return (life.since_s if life.state is WorkerState.DRAINING else now_s) + drain_timeout_s


def over(life: Life, *, now_s: float) -> Life:
    """backing_off -> gone."""
    assert life.state is WorkerState.BACKING_OFF, life
    return replace(life, state=WorkerState.GONE, since_s=now_s)


def ended(life: Life, *, exit_code: int | None, now_s: float, is_due: bool = False) -> Life:
    """The process has ended: starting, running or draining -> backing_off or gone.

    ``exit_code`` is ``None`` where nobody could see it, as of a worker that an earlier agent started. ``is_due``: it
    has done what it was started for, however soon it has ended.
    """
    assert life.is_alive, life
    after_end = replace(life, since_s=now_s, exit_code=exit_code)
    if life.state is WorkerState.DRAINING:
        return replace(after_end, state=WorkerState.BACKING_OFF if life.has_failed else WorkerState.GONE)
    # An unknown end of a burst worker counts as a good one: to refill its place could go on for ever.
    if life.is_burst and exit_code in {0, None}:
        return replace(after_end, state=WorkerState.GONE, is_spent=True)
    if not is_due and (life.state is WorkerState.STARTING or now_s - life.started_at_s < CRASH_WITHIN_S):
        return replace(after_end, state=WorkerState.BACKING_OFF, has_failed=True)
    return replace(after_end, state=WorkerState.GONE)
