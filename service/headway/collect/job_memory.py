"""What is remembered of the jobs of one queue, within bounds.

Of waiting jobs the newest are remembered one by one, the others by the moment up to which entries were reported. Of
ended jobs the last half minute is remembered one by one, the others by the moment up to which ends were reported. A job
that turns up later is new only if it is younger than that.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headway.collect.job_lifecycle import JobRecord, JobState, ReportedLife, Stage

WAITING_KEPT = 2_000
RUNNING_KEPT = 10_000
ENDED_KEPT = 20_000
ASIDE_KEPT = 5_000  # of more, their records show that they came back, and not how often
ENDED_KEPT_S = 30.0  # well above the slack by which the spans of two polls overlap
ANCHORS_KEPT = 16  # some of them may be cancelled


@dataclass(frozen=True, slots=True)
class _Running:
    reported: ReportedLife
    member: str | None


@dataclass(frozen=True, slots=True)
class _Ended:
    noticed_at_s: float
    score: float | None
    reported: ReportedLife


class JobMemory:
    """The jobs of one queue as far as they were reported."""

    def __init__(self, *, begins_at_s: float) -> None:
        self.waiting: dict[str, float | ReportedLife] = {}
        """When each entered; of those of which more was reported, all of it. Of most there is no more, and they are
        many."""
        self._running: dict[str, _Running] = {}
        self._ended: dict[str, _Ended] = {}
        self._aside: dict[str, ReportedLife] = {}
        """Jobs that have failed and wait elsewhere until their retry is due, which may be long."""
        self.anchors: deque[str] = deque(maxlen=ANCHORS_KEPT)
        """The last jobs at the end of the list that were reported: what stands behind them is new."""
        self.entries_reported_until_s = 0.0
        self.ends_reported_until_s = begins_at_s

    def reported(self, job_id: str) -> ReportedLife | None:
        """What was reported of a job; None where it is not remembered."""
        if job_id in self.waiting:
            return _waiting_life(self.waiting[job_id])
        if job_id in self._running:
            return self._running[job_id].reported
        if job_id in self._aside:
            return self._aside[job_id]
        ended = self._ended.get(job_id)
        return ended.reported if ended else None

    @property
    def has_unended(self) -> bool:
        """Whether a job was reported that waits or runs."""
        return bool(self.waiting or self._running)

    def running(self) -> Iterator[str]:
        """The jobs that were reported as running."""
        yield from self._running

    def is_running(self, job_id: str, *, member: str | None = None) -> bool:
        """Whether a job was reported as running, in the execution that ``member`` names if one is given."""
        running = self._running.get(job_id)
        return running is not None and (member is None or running.member == member)

    def waiting_since_s(self, job_id: str) -> float | None:
        """When a waiting job entered, None of any other."""
        waiting = self.waiting.get(job_id)
        return None if waiting is None else _since_s(waiting)

    def started_at_s(self, job_id: str) -> float | None:
        """When a running job started, None of any other."""
        running = self._running.get(job_id)
        return running.reported.started_at_s if running else None

    def has_ended(self, job_id: str, *, score: float) -> bool:
        """Whether the end that stands at ``score`` of a registry was reported."""
        ended = self._ended.get(job_id)
        return ended is not None and ended.score == score

    def is_entry_reported(self, record: JobRecord) -> bool:
        """Whether a job that is not remembered one by one was reported when it entered."""
        return record.enqueued_at_s <= self.entries_reported_until_s

    def is_old(self, record: JobRecord, *, is_new: bool, failed_at_s: float | None = None) -> bool:
        """Whether a job that is not remembered is not new: it was reported before, and forgotten.

        ``is_new``: its place in the broker shows that it entered after everything reported. ``failed_at_s``: when it
        failed by the registry of failed jobs.
        """
        if record.is_ended or record.is_set_aside:
            # RQ writes no end into the record of a job that its clean-up gives up before it began.
            shown_s = failed_at_s if record.ended_at_s is None else record.ended_at_s
            # Of a job that was stopped, the end may be one of a life before its start.
            ended_at_s = max(shown_s or 0.0, record.started_at_s or record.enqueued_at_s)
            return ended_at_s <= self.ends_reported_until_s
        return not is_new and record.state is JobState.WAITING and self.is_entry_reported(record)

    def put(
        self,
        job_id: str,
        reported: ReportedLife,
        *,
        at_s: float,
        ended_at_s: float | None = None,
        member: str | None = None,
        score: float | None = None,
    ) -> None:
        """Remember what was reported of a job, when it ended, which execution runs, and where its end stands."""
        self.forget(job_id)
        if reported.stage is Stage.ENQUEUED:
            self.waiting[job_id] = _as_kept(reported)
        elif reported.stage is Stage.STARTED:
            self._running[job_id] = _Running(reported, member)
        elif reported.is_aside:
            self._aside[job_id] = reported
        else:
            # The worker's clock may be ahead: whoever is forgotten must be old by the time that its record has, too.
            noticed_at_s = max(at_s, ended_at_s or at_s)
            self._ended[job_id] = _Ended(noticed_at_s, score, reported)

    def forget(self, job_id: str) -> None:
        """Remember nothing of a job."""
        for jobs in (self.waiting, self._running, self._ended, self._aside):
            jobs.pop(job_id, None)

    def trim(self, *, ends_read_until_s: float) -> None:
        """Forget what is beyond the bounds; of ended jobs also what ended long before ``ends_read_until_s``."""
        while len(self.waiting) > WAITING_KEPT:
            waiting = self.waiting.pop(next(iter(self.waiting)))
            self.entries_reported_until_s = max(self.entries_reported_until_s, _since_s(waiting))
        while len(self._running) > RUNNING_KEPT:
            del self._running[next(iter(self._running))]
        while len(self._aside) > ASIDE_KEPT:
            # Its record shows a life that may not be old yet: like any that ended, for as long.
            job_id = next(iter(self._aside))
            self._ended[job_id] = _Ended(ends_read_until_s, None, self._aside.pop(job_id))
        until_s = max(self.ends_reported_until_s, ends_read_until_s - ENDED_KEPT_S)
        while self._ended:
            job_id, oldest = next(iter(self._ended.items()))
            if oldest.noticed_at_s > until_s and len(self._ended) <= ENDED_KEPT:
                break
            until_s = max(until_s, oldest.noticed_at_s)
            del self._ended[job_id]
        self.ends_reported_until_s = until_s

    def to_state(self) -> dict[str, Any]:
        """What ``from_state`` makes an equal of this from; JSON can carry it."""
        return {
            "waiting": {
                job: [each.enqueued_at_s, each.ended_before_at_s] if isinstance(each, ReportedLife) else each
                for job, each in self.waiting.items()
            },
            "running": {
                job: [
                    each.reported.enqueued_at_s,
                    each.reported.started_at_s,
                    each.reported.ended_before_at_s,
                    each.member,
                ]
                for job, each in self._running.items()
            },
            "ended": {
                job: [
                    each.reported.enqueued_at_s,
                    each.noticed_at_s,
                    each.score,
                    each.reported.ended_at_s,
                    each.reported.is_canceled,
                ]
                for job, each in self._ended.items()
            },
            "aside": {job: reported.enqueued_at_s for job, reported in self._aside.items()},
            "attempts": {
                job: [reported.attempt, reported.retries_left, reported.has_failed]
                for job, reported in self._reported_lives()
                if reported.has_failed or (reported.attempt, reported.retries_left) != (None, None)
            },
            "anchors": list(self.anchors),
            "entries_told_until_s": self.entries_reported_until_s,
            "ends_told_until_s": self.ends_reported_until_s,
        }

    @classmethod
    def from_state(cls, state: Any) -> "JobMemory":
        """The jobs as they were remembered."""
        self = cls(begins_at_s=state["ends_told_until_s"])
        self.entries_reported_until_s = state["entries_told_until_s"]
        self.anchors.extend(state["anchors"])
        names = ("attempt", "retries_left", "has_failed")
        attempts = {job: dict(zip(names, each, strict=True)) for job, each in state.get("attempts", {}).items()}

        def life(job: str, stage: Stage, enqueued_at_s: float, **known: Any) -> ReportedLife:
            return ReportedLife(stage=stage, enqueued_at_s=enqueued_at_s, **known, **attempts.get(job, {}))

        for job, since in state["waiting"].items():
            # An older version wrote both times of every job.
            at_s, before_at_s = since if isinstance(since, list) else (since, None)
            self.waiting[job] = _as_kept(life(job, Stage.ENQUEUED, at_s, ended_before_at_s=before_at_s))
        for job, (at_s, started_at_s, before_at_s, member) in state["running"].items():
            known = {"started_at_s": started_at_s, "ended_before_at_s": before_at_s}
            self._running[job] = _Running(life(job, Stage.STARTED, at_s, **known), member)
        for job, (at_s, noticed_at_s, score, *more) in state["ended"].items():
            # A state of before these were stored has none.
            known = {"ended_at_s": more[0] if more else None, "is_canceled": len(more) > 1 and more[1]}
            self._ended[job] = _Ended(noticed_at_s, score, life(job, Stage.ENDED, at_s, **known))
        for job, at_s in state.get("aside", {}).items():
            self._aside[job] = life(job, Stage.ENDED, at_s, is_aside=True)
        return self

    def _reported_lives(self) -> Iterator[tuple[str, ReportedLife]]:
        yield from ((job, each) for job, each in self.waiting.items() if isinstance(each, ReportedLife))
        yield from ((job, each.reported) for job, each in self._running.items())
        yield from ((job, each.reported) for job, each in self._ended.items())
        yield from self._aside.items()


def _as_kept(reported: ReportedLife) -> float | ReportedLife:
    """What to keep of a waiting job: a number takes a fifth of the memory."""
    return reported.enqueued_at_s if reported == _waiting_life(reported.enqueued_at_s) else reported


def _waiting_life(kept: float | ReportedLife) -> ReportedLife:
    return kept if isinstance(kept, ReportedLife) else ReportedLife(stage=Stage.ENQUEUED, enqueued_at_s=kept)


def _since_s(kept: float | ReportedLife) -> float:
    return kept.enqueued_at_s if isinstance(kept, ReportedLife) else kept
