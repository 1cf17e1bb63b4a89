"""What was reported of jobs beside what they wrote themselves: each run once, at its time, and nothing else."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

GOOD = frozenset({"well", "ignore"})
CLOSE_S = 0.05
SAME_S = 5.0  # an event that is further away from a run is not of it


@dataclass(slots=True)
class Run:
    """One run of a job, as it wrote it."""

    job_id: str
    pid: int
    began_s: float
    attempt: int | None = None
    ended_s: float | None = None
    ending: str | None = None
    """``None``: whoever ran it was ended meanwhile."""
    parent: int | None = None
    """The process that had begun the one that ran it, as it began."""

    @property
    def end(self) -> str:
        """The kind of the event that is due at its end."""
        return "finished" if self.ending in GOOD else "failed"


@dataclass(frozen=True, slots=True)
class Event:
    """What was reported of a job."""

    job_id: str
    kind: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Due:
    """How often something may be reported."""

    least: int
    most: int


@dataclass(slots=True)
class Verdict:
    """How far what was reported is from what was."""

    differences: list[str] = field(default_factory=list)
    off_s: list[float] = field(default_factory=list)
    """Of each start and end that was reported, how far it is from what the job wrote."""
    far: list[str] = field(default_factory=list)
    """Which of them are further than ``CLOSE_S``."""
    excused: Counter[str] = field(default_factory=Counter)
    """What is missing, and may be, by why."""

    def note(self, moment: "Moment", off_s: float) -> None:
        """How far the report of a moment is from it."""
        self.off_s.append(off_s)
        if off_s > CLOSE_S:
            self.far.append(f"{moment.run.job_id}: the {moment.what} of {moment.run} is {off_s:.3f} s off")

    def figures(self) -> dict[str, Any]:
        """For a ledger of proofs."""
        return {
            "moments_reported": len(self.off_s),
            "moments_excused": dict(self.excused),
            "within_50_ms": round(sum(off_s <= CLOSE_S for off_s in self.off_s) / max(len(self.off_s), 1), 4),
            "off_s": {f"p{part * 100:g}": quantile(self.off_s, part) for part in (0.5, 0.95, 0.99, 1.0)},
        }


def quantile(values: Iterable[float], part: float) -> float:
    """The value that ``part`` of ``values`` do not exceed; 0 of none."""
    ordered = sorted(values) or [0.0]
    return round(ordered[min(int(part * len(ordered)), len(ordered) - 1)], 4)


def runs_from(lines: Iterable[Mapping[str, Any]]) -> list[Run]:
    """The runs that jobs have written, in their order."""
    runs: list[Run] = []
    for line in lines:
        if line["what"] == "start":
            runs.append(Run(line["id"], line["pid"], line["at_s"], line["attempt"], parent=line["parent"]))
        else:
            run = next(each for each in reversed(runs) if (each.job_id, each.pid) == (line["id"], line["pid"]))
            run.ended_s, run.ending = line["at_s"], line["what"]
    return runs


def judged(
    events: Sequence[Event],
    runs: Sequence[Run],
    *,
    entries: Mapping[str, Due],
    retries: Mapping[str, Due],
    may_miss: Callable[[Run, str], str | None],
    may_add: Callable[[Event], str | None],
    late_s: float = CLOSE_S,
) -> Verdict:
    """``events`` beside ``runs``.

    Args:
        events: All that was reported.
        runs: All that ran.
        entries: How often each job entered its queue.
        retries: How often each job was put back after a failure.
        may_miss: Why the start or the ``end`` of a run may be missing; ``None``: it may not.
        may_add: Why an event of a run that did not write itself may be there.
        late_s: An event of a run is not later than this after the run had ended and another of its job had begun.
    """
    verdict = Verdict()
    for name, due in (("enqueued", entries), ("retried", retries)):
        found = Counter(event.job_id for event in events if event.kind == name)
        for job_id in sorted(due.keys() | found.keys()):
            allowed = due.get(job_id, Due(0, 0))
            if not allowed.least <= found[job_id] <= allowed.most:
                verdict.differences.append(f"{job_id}: {found[job_id]} × {name}, not {allowed.least} to {allowed.most}")
    starts = [Moment(run, "start", run.began_s) for run in runs]
    over_s = _over_s(runs, late_s)
    _match(verdict, [event for event in events if event.kind == "started"], starts, may_miss, may_add)
    for kind in ("finished", "failed"):
        ends = [Moment(run, "end", run.ended_s, over_s[id(run)]) for run in runs if run.end == kind]
        _match(verdict, [event for event in events if event.kind == kind], ends, may_miss, may_add)
    return verdict


@dataclass(frozen=True, slots=True)
class Moment:
    """What was of a run: its start, or its end."""

    run: Run
    what: str
    at_s: float | None
    until_s: float = math.inf
    """What is reported of a later moment is of another run."""


def _over_s(runs: Sequence[Run], late_s: float) -> dict[int, float]:
    """Run -> since when another of its job had begun and it had ended."""
    of_jobs: dict[str, list[Run]] = {}
    for run in runs:
        of_jobs.setdefault(run.job_id, []).append(run)
    over_s = {id(run): math.inf for run in runs}
    for of_job in of_jobs.values():
        for run, following in pairwise(of_job):
            if run.ended_s is not None:
                over_s[id(run)] = max(following.began_s, run.ended_s) + late_s
    return over_s


def _match(
    verdict: Verdict,
    events: Sequence[Event],
    moments: Sequence[Moment],
    may_miss: Callable[[Run, str], str | None],
    may_add: Callable[[Event], str | None],
) -> None:
    """Each moment of ``moments`` with the event nearest to it; those that nobody wrote last."""
    matched, left = _nearest(events, moments)
    # Of runs that did not write their end, the last began last: an end is of the last that had begun.
    for number, moment in reversed(list(enumerate(moments))):
        run, what, at_s = moment.run, moment.what, moment.at_s
        if number in matched:
            verdict.note(moment, matched[number][0])
            continue
        later = [event for event in left.get(run.job_id, []) if at_s is None and event.at_s >= run.began_s - CLOSE_S]
        if later:
            left[run.job_id] = [each for each in left[run.job_id] if each is not later[-1]]
            continue
        why = may_miss(run, what)
        taken_by = _taken_by(number, moments, matched, may_miss) if why is None else None
        if taken_by is not None:
            del matched[taken_by]
            continue
        if why is None:
            verdict.differences.append(f"{run.job_id}: the {what} of {run} is missing")
        else:
            verdict.excused[why] += 1
    for event in (event for of_job in left.values() for event in of_job):
        why = may_add(event)
        if why is None:
            verdict.differences.append(f"{event.job_id}: nothing that was is {event}")
        else:
            verdict.excused[why] += 1


def _nearest(
    events: Sequence[Event], moments: Sequence[Moment]
) -> tuple[dict[int, tuple[float, Event]], dict[str, list[Event]]]:
    """Number of a moment -> how far its nearest event is, and which; and the events that are left, by job."""
    left: dict[str, list[Event]] = {}
    events = [replace(event) for event in events]  # each is one, though another may be equal
    for event in events:
        left.setdefault(event.job_id, []).append(event)
    pairs = (
        sorted(
            (abs(event.at_s - moment.at_s), number, event.at_s, event)
            for number, moment in enumerate(moments)
            if moment.at_s is not None
            for event in left.get(moment.run.job_id, [])
            if abs(event.at_s - moment.at_s) <= SAME_S and event.at_s <= moment.until_s
        )
        if events
        else []
    )
    matched: dict[int, tuple[float, Event]] = {}
    for off_s, number, _, event in sorted(pairs, key=lambda pair: pair[:3]):
        of_job = left[event.job_id]
        if number not in matched and any(each is event for each in of_job):
            matched[number] = off_s, event
            left[event.job_id] = [each for each in of_job if each is not event]
    return matched, left


def _taken_by(
    number: int,
    moments: Sequence[Moment],
    matched: Mapping[int, tuple[float, Event]],
    may_miss: Callable[[Run, str], str | None],
) -> int | None:
    """Which earlier run of the job has the only event that the run of ``number`` can have, and may be without."""
    of = moments[number]
    if of.at_s is not None:
        return None
    for other in range(number - 1, -1, -1):
        moment = moments[other]
        if moment.run.job_id == of.run.job_id and other in matched and matched[other][1].at_s >= of.run.began_s:
            return other if may_miss(moment.run, moment.what) is not None else None
    return None
