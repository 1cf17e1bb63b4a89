"""Whether classes of jobs are better off in queues of their own: what theory says, tried on the day that was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headway.errors import Invalid
from headway.scaling.explanations.phrases import duration
from headway.scaling.profile import Profile
from headway.simulate.engine.results import RESULT_ROUNDING_S, percentile
from headway.simulate.studies.class_split import ClassLoad, Split, best_split, class_load
from headway.simulate.studies.single_pool import Setting, rehearse
from headway.simulate.workloads.jobs import Jobs

CLASS_JOBS_MIN = 50  # of a class; fewer are put with the class whose service time is nearest, for they prove nothing
CLASS_LATE_FEWER_MIN = 0.25  # of the late jobs
CLASS_SAVING_MIN = 0.05  # of the worker-hours
COST_MORE_MAX = 0.25  # for what is less late


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one group of classes came to."""

    classes: tuple[str, ...]
    jobs: int
    target_s: float
    in_time_percent: float
    pickup_p95_s: float | None
    pickup_p99_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """One queue whose classes were tried together and apart."""

    queue: str
    percentile: float
    split: Split
    together: tuple[Trial, Trial]
    """The quick and the slow classes, in one queue."""
    apart: tuple[Trial, Trial]
    """The same, each in its own."""
    together_hours: float
    apart_hours: float
    """Worker-hours of both."""

    @property
    def is_cure(self) -> bool:
        """Whether the two queues are clearly better than the one."""
        late = [sum(_late_jobs(each) for each in trials) for trials in (self.together, self.apart)]
        allowed = sum(each.jobs for each in self.together) * (1 - self.percentile / 100)
        hours = self.apart_hours / self.together_hours if self.together_hours else 1.0
        breaks = any(
            _is_kept(before, self.percentile) and not _is_kept(after, self.percentile)
            for before, after in zip(self.together, self.apart, strict=True)
        )
        is_missed = not all(_is_kept(each, self.percentile) for each in self.together)
        is_less_late = is_missed and late[1] <= (1 - CLASS_LATE_FEWER_MIN) * late[0] and hours <= 1 + COST_MORE_MAX
        return not breaks and (is_less_late or (hours <= 1 - CLASS_SAVING_MIN and late[1] <= max(late[0], allowed)))


def _late_jobs(trial: Trial) -> float:
    return trial.jobs * (1 - trial.in_time_percent / 100)


def _is_kept(trial: Trial, percentile_: float) -> bool:
    return trial.in_time_percent >= percentile_


def tried(
    jobs: Jobs,
    classes: Sequence[str],
    profile: Profile,
    setting: Setting,
    *,
    targets_s: Mapping[str, float],
    begins_at_s: float = 0.0,
) -> Topology | None:
    """The best division of a queue in two, rehearsed; ``None`` where it has fewer than two classes worth the name.

    Args:
        jobs: In order of arrival.
        classes: Of each job.
        profile: Of the queue; the objective of a class is its own where ``targets_s`` says so.
        setting: How workers behave.
        targets_s: The objective of a class, in seconds.
        begins_at_s: Unix time.
    """
    groups = _worth_the_name(jobs, classes)
    if len(set(groups)) < 2:
        return None
    length_s = max(1.0, jobs.at_s[-1])
    promised = {name: targets_s.get(name, profile.objective.target_s) for name in set(groups)}
    try:
        loads = [
            class_load(
                name,
                [service_s for each, service_s in zip(groups, jobs.service_s, strict=True) if each == name],
                length_s=length_s,
                target_s=promised[name],
            )
            for name in sorted(promised)
        ]
    except Invalid:
        return None  # a class whose jobs take no time keeps nobody waiting
    split = best_split(loads, percentile=profile.objective.percentile)
    assert split is not None
    parts = (split.quick.names, split.slow.names)
    waits: list[Sequence[float]] = []
    strictest = _promising(profile, min(promised.values()))
    together = rehearse(jobs, strictest, setting, begins_at_s=begins_at_s, on_waits=waits.append)
    indexes = [[index for index, name in enumerate(groups) if name in part] for part in parts]
    results = [
        rehearse(
            Jobs(at_s=[jobs.at_s[each] for each in mine], service_s=[jobs.service_s[each] for each in mine]),
            _promising(profile, min(promised[name] for name in part)),
            setting,
            begins_at_s=begins_at_s,
            on_waits=waits.append,
        )
        for part, mine in zip(parts, indexes, strict=True)
    ]
    both = [
        _trial(part, [waits[0][index] for index in mine], mine, groups, promised)
        for part, mine in zip(parts, indexes, strict=True)
    ]
    alone = [
        _trial(part, waits_s, mine, groups, promised)
        for part, mine, waits_s in zip(parts, indexes, waits[1:], strict=True)
    ]
    return Topology(
        queue=profile.pool,
        percentile=profile.objective.percentile,
        split=split,
        together=(both[0], both[1]),
        apart=(alone[0], alone[1]),
        together_hours=together.worker_hours,
        apart_hours=sum(result.worker_hours for result in results),
    )


def _worth_the_name(jobs: Jobs, classes: Sequence[str]) -> list[str]:
    """``classes`` with the rare ones under the name of the one whose service time is nearest."""
    sums: dict[str, tuple[int, float]] = {}
    for name, service_s in zip(classes, jobs.service_s, strict=True):
        count, total_s = sums.get(name, (0, 0.0))
        sums[name] = count + 1, total_s + service_s
    means = {name: total_s / count for name, (count, total_s) in sums.items()}
    kept = sorted(name for name, (count, _) in sums.items() if count >= CLASS_JOBS_MIN)
    if not kept:
        return [""] * len(classes)
    moved = {
        name: name if name in kept else min(kept, key=lambda each: abs(means[each] - means[name])) for name in sums
    }
    return [moved[name] for name in classes]


def _promising(profile: Profile, target_s: float) -> Profile:
    return replace(profile, objective=replace(profile.objective, target_s=target_s))


def _trial(
    part: tuple[str, ...],
    waits_s: Sequence[float],
    indexes: Sequence[int],
    groups: Sequence[str],
    promised: Mapping[str, float],
) -> Trial:
    in_time = sum(
        wait_s <= promised[groups[index]] + RESULT_ROUNDING_S for wait_s, index in zip(waits_s, indexes, strict=True)
    )
    served = sorted(wait_s for wait_s in waits_s if wait_s == wait_s)
    return Trial(
        classes=part,
        jobs=len(indexes),
        target_s=min(promised[name] for name in part),
        in_time_percent=100.0 * in_time / len(indexes),
        pickup_p95_s=percentile(served, 0.95),
        pickup_p99_s=percentile(served, 0.99),
    )


def finding_text(found: Topology) -> str:
    """The finding, in an operator's words."""
    quick, slow = found.together
    apart = found.apart
    long_s = _mean_s(found.split.slow.classes)
    short_s = _mean_s(found.split.quick.classes)
    why = (
        f"{_named(quick)} ({duration(short_s)} a job) and {_named(slow)} ({duration(long_s)} a job) share a queue. "
        f"At its mean rate a job of {_named(quick)} waits {_wait(found.split.together.wait_s)} there, "
        f"{_wait(found.split.head_of_line_s)} of it because the others stand before it."
    )
    tried_ = (
        f" Rehearsed in queues of their own, {_change(quick, apart[0])}; {_change(slow, apart[1])}; "
        f"worker-hours {found.together_hours:.2f} → {found.apart_hours:.2f}."
    )
    if found.is_cure:
        whose = "their" if len(slow.classes) > 1 else "its"
        return f"{why}{tried_} Give {_named(slow)} a queue and a pool of {whose} own."
    return f"{why}{tried_} That is no cure: leave them together."


def _change(together: Trial, apart: Trial) -> str:
    return (
        f"{_named(together)}: {together.in_time_percent:.1f} → {apart.in_time_percent:.1f} % "
        f"within {duration(together.target_s)}"
    )


def _named(trial: Trial) -> str:
    names = [f"`{name}`" for name in trial.classes]
    if len(names) > 3:
        return f"{', '.join(names[:2])} and {len(names) - 2} other classes"
    return " and ".join(names)


def _wait(value_s: float) -> str:
    return "without end" if value_s == float("inf") else duration(round(value_s, 2))


def _mean_s(classes: Sequence[ClassLoad]) -> float:
    return sum(each.offered_load for each in classes) / sum(each.rate_per_s for each in classes)
