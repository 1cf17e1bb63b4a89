"""What was wrong in a recording, a sentence per fault. Pure functions over what the witnesses saw."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from field.recording import Kind, Recording

NEWS_S = 3.0  # a start or an end so long ago may not be known yet
IDLE_FOR_S = 5.0  # a worker without a job for so long should be known to be idle
FALL_S = 30.0  # from the last end to the floor, where workers report
FALL_PER_WORKER_S = 15.0  # the same for each worker, where they do not
TOGETHER_S = 1.0  # two workers that are asked in one pass may note it in the other order
GAP_S_MAX = 20.0  # between two answers of the API: a leader and an agent are replaced meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What may be expected of a case."""

    floor: int
    """The fewest workers of the pool."""
    slots: int
    """Jobs that one worker runs at once."""
    has_reporter: bool
    is_idle_known: bool
    """Whether somebody says of an idle worker that it is idle; else only Headway's own word counts."""
    is_busy_known: bool
    """Whether somebody says how many jobs a busy worker runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a job, by the application's log."""

    job_id: str
    worker_id: str
    start_s: float
    end_s: float | None
    gone_s: float | None = None
    """When its worker was first seen to be gone; ``None``: its worker stayed, or the job ended."""

    @property
    def over_s(self) -> float | None:
        """When it ended, or was cut; ``None``: neither was seen."""
        return self.gone_s if self.end_s is None else self.end_s

    def is_open(self, at_s: float) -> bool:
        """Whether it had begun, and neither it nor its worker had ended."""
        return self.start_s <= at_s and (self.over_s is None or at_s < self.over_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A worker was asked to stop."""

    worker_id: str
    at_s: float


@dataclass(slots=True)
class Verdict:
    """Faults of a recording, and its figures."""

    faults: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


def verdict(recording: Recording, rules: Rules) -> Verdict:
    """Every rule, applied to the recording."""
    runs, requests = runs_of(recording), requests_of(recording)
    checks: Mapping[str, Sequence[str]] = {
        "never_begun": list(never_begun(recording, runs)),
        "cut": list(cut(runs)),
        "begun_twice": list(begun_twice(runs)),
        "busy_asked": list(busy_asked(recording, rules, runs, requests)),
        "too_many_asked": list(too_many_asked(recording, rules, runs, requests)),
        "shown_idle": list(shown_idle(recording, runs)),
        "slow_falls": list(slow_falls(recording, rules, runs)),
        "blind_spots": list(blind_spots(recording, runs)),
    }
    found = Verdict(faults=[fault for faults in checks.values() for fault in faults])
    found.figures = {"jobs": len(recording.sent), "workers": len(_ready_at_s(recording))}
    found.figures |= {name: len(faults) for name, faults in checks.items()}
    # Where nobody knows which worker is idle, a busy one may be asked first: it finishes its jobs.
    found.figures["asked_with_a_job"] = sum(bool(_open_runs(runs, each.worker_id, each.at_s)) for each in requests)
    found.figures["fell_in_s"] = fall_s(recording, rules, runs)
    return found


def runs_of(recording: Recording) -> list[Run]:
    """Every execution. An end belongs to the last start of its job on the same worker."""
    runs: dict[tuple[str, str], list[Run]] = {}
    for event in recording.events:
        of_job = runs.setdefault((event.job_id, event.worker_id), [])
        if event.kind is Kind.START:
            run = Run(job_id=event.job_id, worker_id=event.worker_id, start_s=event.at_s, end_s=None)
            of_job.append(run)
        elif event.kind is Kind.END and of_job:
            of_job.append(replace(of_job.pop(), end_s=event.at_s))
    every = (run for of_job in runs.values() for run in of_job)
    return sorted((_with_worker_end(run, recording) for run in every), key=lambda run: run.start_s)


def _with_worker_end(run: Run, recording: Recording) -> Run:
    if run.end_s is not None:
        return run
    after = (each for each in recording.processes if each.at_s >= run.start_s)
    return replace(run, gone_s=next((each.at_s for each in after if run.worker_id not in each.worker_ids), None))


def requests_of(recording: Recording) -> list[Request]:
    """When each worker was first asked to stop: by its own log, else by the first answer that shows it draining."""
    found = {event.worker_id: event.at_s for event in reversed(recording.events) if event.kind is Kind.ASKED}
    for answer in recording.answers:
        for worker in answer.workers:
            if worker.state == "draining":
                found.setdefault(worker.worker_id, answer.at_s)
    return [Request(worker_id=worker_id, at_s=at_s) for worker_id, at_s in sorted(found.items(), key=lambda it: it[1])]


def never_begun(recording: Recording, runs: Sequence[Run]) -> Iterator[str]:
    """Jobs that were sent, and that no worker began."""
    begun = {run.job_id for run in runs}
    yield from (f"{job_id} was never begun" for job_id in recording.sent if job_id not in begun)


def cut(runs: Sequence[Run]) -> Iterator[str]:
    """Executions that did not come to their end."""
    yield from (f"{run.job_id} was cut on {run.worker_id}" for run in runs if run.end_s is None)


def begun_twice(runs: Sequence[Run]) -> Iterator[str]:
    """Jobs that began more than once."""
    counts = Counter(run.job_id for run in runs)
    yield from (f"{job_id} began {times} times" for job_id, times in counts.items() if times > 1)


def busy_asked(recording: Recording, rules: Rules, runs: Sequence[Run], requests: Sequence[Request]) -> Iterator[str]:
    """Busy workers that were asked to stop while another was idle, and could be known to be."""
    for request in requests:
        at_s = request.at_s
        held = [run for run in _known_runs(runs, at_s) if run.worker_id == request.worker_id]
        idle = [
            worker_id
            for worker_id in _staying(recording, requests, at_s=at_s, ready_by_s=at_s - IDLE_FOR_S)
            if _is_idle(runs, worker_id, since_s=at_s - IDLE_FOR_S, until_s=at_s + NEWS_S)
            and (rules.is_idle_known or _is_shown_idle(recording, worker_id, at_s))
        ]
        if held and idle:
            jobs = ", ".join(run.job_id for run in held)
            yield f"{request.worker_id} was asked to stop with {jobs} while {', '.join(idle)} was idle"


def too_many_asked(
    recording: Recording, rules: Rules, runs: Sequence[Run], requests: Sequence[Request]
) -> Iterator[str]:
    """Busy workers that were asked to stop although those that stay have fewer slots than the jobs that run."""
    if not rules.is_busy_known:
        return
    for request in requests:
        running = _known_runs(runs, request.at_s)
        staying = _staying(recording, requests, at_s=request.at_s, ready_by_s=request.at_s)
        if len(running) > rules.slots * len(staying) and request.worker_id in {run.worker_id for run in running}:
            yield f"{request.worker_id} was asked to stop: {len(running)} jobs run, and {len(staying)} workers stay"


def shown_idle(recording: Recording, runs: Sequence[Run]) -> Iterator[str]:
    """Workers that an answer showed as idle while they had a job."""
    seen: set[tuple[str, str]] = set()
    for answer in recording.answers:
        for worker in answer.workers:
            if worker.is_busy is not False:
                continue
            for run in _open_runs(runs, worker.worker_id, answer.at_s):
                if run.start_s <= answer.at_s - NEWS_S and (worker.worker_id, run.job_id) not in seen:
                    seen.add((worker.worker_id, run.job_id))
                    yield f"{worker.worker_id} was shown idle {answer.at_s - run.start_s:.0f} s into {run.job_id}"


def slow_falls(recording: Recording, rules: Rules, runs: Sequence[Run]) -> Iterator[str]:
    """Whether the pool came down to its floor too late after its last job."""
    last_end_s = _last_end_s(runs)
    if last_end_s is None or not recording.processes:
        return
    workers = len(_living(recording, last_end_s))
    within_s = FALL_S if rules.has_reporter else FALL_PER_WORKER_S * max(1, workers - rules.floor)
    took_s = fall_s(recording, rules, runs)
    if took_s is None or took_s > within_s:
        when = "never" if took_s is None else f"{took_s:.0f} s after its last job"
        yield f"{workers} workers came down to {rules.floor} {when}, not within {within_s:.0f} s"


def fall_s(recording: Recording, rules: Rules, runs: Sequence[Run]) -> float | None:
    """Seconds from the last end until no more workers lived than the floor; ``None``: they never came down."""
    last_end_s = _last_end_s(runs)
    if last_end_s is None:
        return None
    down = (
        each.at_s for each in recording.processes if each.at_s >= last_end_s and len(each.worker_ids) <= rules.floor
    )
    at_s = next(down, None)
    return None if at_s is None else round(at_s - last_end_s, 1)


def blind_spots(recording: Recording, runs: Sequence[Run]) -> Iterator[str]:
    """Times of jobs without an answer of the API or a list of processes: nothing can be said of them."""
    if not runs:
        yield "no job was seen"
        return
    begin_s, end_s = runs[0].start_s, max(run.over_s or run.start_s for run in runs)
    for name, times in (("answer", recording.answers), ("list of processes", recording.processes)):
        moments = [begin_s, *(each.at_s for each in times if begin_s <= each.at_s <= end_s), end_s]
        gap_s = max(after - before for before, after in pairwise(moments))
        if gap_s > GAP_S_MAX:
            yield f"no {name} for {gap_s:.0f} s while jobs ran"


def _open_runs(runs: Sequence[Run], worker_id: str, at_s: float) -> list[Run]:
    return [run for run in runs if run.worker_id == worker_id and run.is_open(at_s)]


def _known_runs(runs: Sequence[Run], at_s: float) -> list[Run]:
    """The executions that had begun long enough ago to be known, and not ended."""
    return [run for run in runs if run.is_open(at_s) and run.start_s <= at_s - NEWS_S]


def _staying(recording: Recording, requests: Sequence[Request], *, at_s: float, ready_by_s: float) -> list[str]:
    """The workers that lived, were ready by then, and were not asked to stop."""
    asked = {each.worker_id for each in requests if each.at_s <= at_s + TOGETHER_S}
    ready = {worker_id for worker_id, since_s in _ready_at_s(recording).items() if since_s <= ready_by_s}
    return sorted((ready & _living(recording, at_s)) - asked)


def _is_idle(runs: Sequence[Run], worker_id: str, *, since_s: float, until_s: float) -> bool:
    """Whether the worker had no job in all that time."""
    of_worker = (run for run in runs if run.worker_id == worker_id and run.start_s <= until_s)
    return all(run.end_s is not None and run.end_s < since_s for run in of_worker)


def _is_shown_idle(recording: Recording, worker_id: str, at_s: float) -> bool:
    """Whether the last answer before that moment showed the worker as idle."""
    before = [answer for answer in recording.answers if answer.at_s <= at_s]
    return bool(before) and any(each.worker_id == worker_id and each.is_busy is False for each in before[-1].workers)


def _ready_at_s(recording: Recording) -> dict[str, float]:
    """Worker -> when it was ready: by its own log, else by the first answer that shows it running."""
    found = {event.worker_id: event.at_s for event in reversed(recording.events) if event.kind is Kind.READY}
    for answer in recording.answers:
        for worker in answer.workers:
            if worker.state == "running":
                found.setdefault(worker.worker_id, answer.at_s)
    return found


def _living(recording: Recording, at_s: float) -> frozenset[str]:
    """The workers that lived, by the first list of processes from that moment on."""
    after = (each.worker_ids for each in recording.processes if each.at_s >= at_s)
    return next(after, frozenset())


def _last_end_s(runs: Sequence[Run]) -> float | None:
    return max((run.over_s for run in runs if run.over_s is not None), default=None)
