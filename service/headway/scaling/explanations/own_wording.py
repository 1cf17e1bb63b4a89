"""Headway's own demands and limits in words."""

from headway.scaling.explanations.phrases import counted
from headway.scaling.explanations.wording import DemandWording, Grounds, LimitWording, Wording
from headway.scaling.model import Decision, GroupUse, NoteKind, Step
from headway.scaling.reading.sample_age import UNREAD_S


def _capacity(before: Step, after: Step, decision: Decision) -> str:
    if decision.note_of(NoteKind.NO_HOST) is not None:
        return f"No known host can run them: the count stays at {after.workers}."
    short = before.workers - after.workers
    return f"The hosts have capacity for {after.workers} only: {counted(short, 'worker')} short."


def _hold_stale(before: Step, after: Step, decision: Decision) -> str:
    why = f"A queue has not been read for more than {UNREAD_S:g} s"
    if not decision.is_fresh:
        why = "The metrics are stale"
    elif any(queue.waiting_jobs is None and queue.waiting_min_jobs is not None for queue in decision.metrics):
        why = "How many jobs wait is known only as a lower bound"
    return f"{why}, so the count does not fall: {after.workers} stay, where {before.workers} would be enough."


def _workers_max(before: Step, after: Step, decision: Decision) -> str:
    if why := _also_counted(decision):
        return f"The profile's ceiling leaves {after.workers} of {before.workers}, because {why}."
    return f"The profile allows at most {after.workers}, so {before.workers} become {after.workers}."


def _also_counted(decision: Decision) -> str:
    """The workers that count against a ceiling beside the target; empty if there are none."""
    others = []
    if decision.unknown_workers:
        others.append(f"{counted(decision.unknown_workers, 'worker')} may still run on unreachable hosts")
    if decision.leaving_workers:
        others.append(f"{counted(decision.leaving_workers, 'worker')} asked to stop have not ended yet")
    return " and ".join(others)


def _group(before: Step, after: Step, decision: Decision) -> str:
    why = _also_counted(decision)
    reason = f" because {why}" if why else ""
    return f"{_capping(decision)} for its pools together, so {before.workers} become {after.workers}{reason}."


def _group_share(before: Step, after: Step, decision: Decision) -> str:
    taken = next((each for each in decision.groups if each.is_binding and each.taken_by_others is not None), None)
    others = ""
    if taken is not None:
        others = f", and its other pools take {counted(taken.taken_by_others or 0, _unit(taken))}"
    return (
        f"{_capping(decision)}{others}: the pool's share is {after.workers} of the {before.workers} that it asks for."
    )


def _capping(decision: Decision) -> str:
    """Which groups allow how much, as the beginning of a sentence."""
    caps = [
        f"{'group' if index else 'Group'} {each.name} allows {counted(each.cap, _unit(each))}"
        for index, each in enumerate(each for each in decision.groups if each.is_binding)
    ]
    return " and ".join(caps) or "A group of pools has a cap"


def _unit(group: GroupUse) -> str:
    return "slot" if group.is_in_slots else "worker"


def _plateau(before: Step, after: Step, decision: Decision) -> str:
    known = decision.plateau
    gained = ", and what one step more brings is being measured"
    if known is not None and known.again_s is not None:
        gained = f", and {counted(known.workers, 'worker')} started no more jobs than fewer did"
    return (
        f"Jobs wait beside idle workers{gained}: {after.workers} for now, where {before.workers} were asked for. Lift "
        "what holds jobs back (Celery's rate_limit is per worker), or state what is allowed as rate_limit_per_s in the "
        "profile."
    )


def _suspended(before: Step, after: Step, _: Decision) -> str:
    stay = "stays" if after.workers == 1 else "stay"
    return (
        f"Its workers are kept from taking jobs: none is started, and {after.workers} {stay} where {before.workers} "
        "would be right."
    )


def _useful_workers(before: Step, after: Step, _: Decision) -> str:
    return (
        f"Its brokers give the jobs of its queues to {counted(after.workers, 'worker')} at a time: of "
        f"{before.workers}, the others would only wait."
    )


def _may_be_busy(before: Step, after: Step, _: Decision) -> str:
    kept = counted(after.workers - before.workers, "worker")
    return f"{kept} may be busy: kept. Such workers leave one at a time."


OWN = Wording(
    demands={
        "steady_state": DemandWording("arriving jobs keep {slots} busy", "keeping up with arrivals", Grounds.RATES),
        "trend": DemandWording(
            "arrivals rise, and when a new worker is ready they will keep {slots} busy",
            "rising arrivals",
            Grounds.RATES,
        ),
        "forecast": DemandWording(
            "jobs forecast to arrive before a new worker is ready will keep {slots} busy", "forecast arrivals"
        ),
        "backlog_drain": DemandWording(
            "starting every waiting job in time takes {slots}", "starting all waiting jobs in time", Grounds.DEPTHS
        ),
        "work_in_progress": DemandWording(
            "running jobs and starting workers take {slots}", "running jobs", Grounds.DEPTHS
        ),
        "wake": DemandWording("no worker runs, and a first start takes {slots}", "waking from zero", Grounds.DEPTHS),
        "due_work": DemandWording(
            "jobs are due soon, and starting them in time takes {slots}", "jobs that are due soon"
        ),
        "less_help": DemandWording(
            "all its jobs in flight, less those that other pools run, take {slots}", "jobs less help", Grounds.DEPTHS
        ),
        "standing": DemandWording(
            "workers start too slowly to react in time, so {slots} must be pre-warmed", "pre-warmed workers"
        ),
        "rhythm": DemandWording(
            "bursts repeat with short pauses, and keeping {slots} costs less than following them", "repeating bursts"
        ),
    },
    limits={
        "failed": LimitWording("A figure of the pool is no finite number, so the pool keeps {after}, not {before}."),
        "hold_stale": LimitWording(_hold_stale, "stale or inexact metrics"),
        "useful_workers": LimitWording(_useful_workers, "workers that get jobs"),
        "hold_overdue": LimitWording(
            "{fewer} would be enough, but a waiting job has no time left: {after} are kept.", "an overdue job"
        ),
        "hold_down": LimitWording(
            "{fewer} would be enough now, but not yet for long enough: {after} stay.", "delay before scaling down"
        ),
        "crash_loop": LimitWording("Its workers crash on every host: no more than {after} until one stays up."),
        "plateau": LimitWording(_plateau, "jobs waiting beside idle workers"),
        "activation": LimitWording(
            "Too few jobs wait to wake the pool from zero: none of {before} starts yet.", "too few jobs to wake for"
        ),
        "may_be_busy": LimitWording(_may_be_busy, "workers that may be busy"),
        "helping": LimitWording(
            "{fewer} would be enough, but workers that run jobs of other pools finish them first: {after} stay.",
            "jobs of other pools",
        ),
        "tolerance": LimitWording(
            "{fewer} would be right, which differs too little from {after} for a change.", "too small a change"
        ),
        "hold_up": LimitWording(
            "{before} are needed, but not yet for long enough: {after} for now.", "delay before scaling up"
        ),
        "step": LimitWording("{fewer} would be right; the profile's steps lead to {after} for now."),
        "fallback": LimitWording("Metrics have been missing for long: the fallback is {after}."),
        "pause": LimitWording("The pool is paused: {after} stay, where {before} would be right."),
        "suspended": LimitWording(_suspended),
        "override": LimitWording(
            "An operator has set an override of {after}, where {before} would be right.", "manual override"
        ),
        "schedule": LimitWording("A schedule changes {before} to {after}."),
        "workers_min": LimitWording("The profile keeps at least {after}.", "profile's minimum"),
        "workers_max": LimitWording(_workers_max, "profile's maximum"),
        "pinned": LimitWording("The pool is pinned to {after}."),
        "group": LimitWording(_group, "cap of a group"),
        "group_share": LimitWording(_group_share, "share of a group's cap"),
        "rate_limit": LimitWording(
            "The rate limit allows {after}; of {before}, the others would only wait for the service."
        ),
        "budget": LimitWording("The budget pays for {after}, not for {before}."),
        "share": LimitWording(
            "Capacity is scarce: the pool's share is {after} of the {before} that it asks for.",
            "share of scarce capacity",
        ),
        "capacity": LimitWording(_capacity, "capacity of the hosts"),
    },
)
