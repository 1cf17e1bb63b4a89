"""A decision in sentences. They are read off the decided value: they say nothing that it does not hold."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from headway.scaling.arithmetic import HOUR_S
from headway.scaling.model import (
    Decision,
    Demand,
    MemberPickup,
    Mode,
    NoteKind,
    QueueMetrics,
    Step,
    is_suspended,
    order_text,
)
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.reading.sample_age import UNREAD_S, is_seen

Sentences = tuple[str, ...]

LEAST_SHARE = 0.005  # less would read as none


def explained(decision: Decision, *, previous_workers: int | None = None) -> Sentences:
    """Why ``decision`` is what it is, for a reader who wants to sleep: the outcome first, then what led to it.

    In order: the number, what was seen, every demand, each limit that moved the count, the day's budget, the
    prediction, the notes.
    """
    return (
        *_outcome(decision, previous_workers),
        *_suspension(decision),
        *_seen(decision),
        *_recalled(decision),
        *_demands(decision),
        *_limits(decision),
        *_day_budget(decision),
        *_prediction(decision),
        *(_sentence(note) for note in decision.notes),
    )


def _outcome(decision: Decision, previous_workers: int | None) -> Sentences:
    target = counted(decision.target_workers, "worker")
    sentences = [f"Pool {decision.pool} should have {target}{_before(decision, previous_workers)}."]
    if decision.burst_workers:
        sentences.append(f"{decision.burst_workers} of them are burst workers: they exit when the queue is empty.")
    sentences.append(_there(decision) if decision.is_running_known else "How many run is not known.")
    if decision.unknown_workers:
        sentences.append(
            f"{counted(decision.unknown_workers, 'more worker')} may still run on unreachable hosts: "
            "they count against the bounds, but not as capacity."
        )
    if decision.mode is Mode.RECOMMEND:
        sentences.append("The pool's mode is recommend: Headway starts and stops no worker for it.")
    return tuple(sentences)


def _suspension(decision: Decision) -> Sentences:
    if decision.suspension is None or not is_suspended(decision.suspension):
        if decision.stoppage is None or decision.stoppage.until_s is None:
            return ()
        ago = duration(float(round(max(0.0, decision.at_s - decision.stoppage.until_s))))
        return (f"Its workers resumed {ago} ago: Headway learns nothing from the jobs that piled up before.",)
    return (_sentence(f"suspended: {decision.suspension.text}"),)


def _before(decision: Decision, previous_workers: int | None) -> str:
    if previous_workers is None:
        return ""
    if previous_workers == decision.target_workers:
        return ", as before"
    return f"; the previous target was {previous_workers}"


def _there(decision: Decision) -> str:
    running, starting = decision.running_workers, decision.starting_workers
    there = f"{running or 'None'} {'runs' if running == 1 else 'run'}"
    if starting:
        there += f" and {starting} {'is' if starting == 1 else 'are'} starting"
    missing = decision.target_workers - running - starting
    if missing > 0:
        return f"{there}, so {missing} more {_are(missing)} needed."
    if missing < 0:
        return f"{there}, so {-missing} {_are(-missing)} to stop, idle ones first."
    return f"{there}: no change."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _seen(decision: Decision) -> Sentences:
    """What was known of the queues, together first and then one by one where there are several."""
    known = [queue for queue in decision.metrics if is_seen(queue)]
    if not known:
        return ("Its queues have no metrics yet.",)
    freshness = () if decision.is_fresh else (f"These metrics are stale{_age(decision.metrics_age_s)}.",)
    together = (_queue(pooled(decision.metrics), "In its queues together" if len(known) > 1 else "In its queue"),)
    apart = tuple(_queue(queue, f"In {queue.queue}") for queue in known) if len(known) > 1 else ()
    return (*together, *apart, *freshness)


def _age(age_s: float | None) -> str:
    return "" if age_s is None else f": the oldest are from {duration(float(round(age_s)))} before the decision"


def _recalled(decision: Decision) -> Sentences:
    """What the past predicts for this time: weeks also none, as it may be why no worker is pre-warmed; days if any."""
    jobs, weeks = decision.recalled_jobs, decision.recalled_weeks
    if jobs is None or (weeks is None and round(jobs) == 0):
        return ()
    sentences = "no more jobs than arrive now" if round(jobs) == 0 else f"{counted(round(jobs), 'job')} more"
    if weeks is None:
        return (f"The same minute of earlier days predicts {sentences}.",)
    return (f"This hour of the week, known from {counted(weeks, 'earlier week')}, predicts {sentences}.",)


def depths(queue: QueueMetrics) -> str:
    """How it stands in ``queue``, without what is a rate: what waits, and for how long, what runs and is reserved."""
    return _joined([_waiting(queue), *_taken(queue)])


def _queue(queue: QueueMetrics, where: str) -> str:
    sentences = [f"{where} {_waiting(queue)}", *_taken(queue)]
    if queue.arrival_rate_per_s is not None:
        is_timed = queue.service_time_s is not None and queue.arrival_rate_per_s > 0
        each = f", each with a service time of {duration(queue.service_time_s or 0.0)}" if is_timed else ""
        sentences.append(f"{_rate(queue.arrival_rate_per_s)}{_again(queue)}{each}")
    elif queue.has_unknown_rates:
        sentences.append("how many arrive is unknown")
    return f"{_joined(sentences)}."


def _joined(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def _taken(queue: QueueMetrics) -> Sentences:
    """What of those in flight runs, and what is reserved."""
    sentences = []
    if queue.running_jobs is not None:
        sentences.append(f"{counted(queue.running_jobs, 'job')} {_are(queue.running_jobs)} running")
    elif queue.in_flight_min_jobs:
        sentences.append(f"workers have at least {counted(queue.in_flight_min_jobs, 'job')}")
    elif queue.in_flight_min_jobs is not None:
        sentences.append("the number of running jobs is unknown")
    if queue.in_flight_min_jobs and not queue.is_wait_known:
        sentences.append("how many of them have not begun is unknown")
    if queue.reserved_jobs:
        oldest = "" if queue.waiting_jobs else _oldest(queue)
        sentences.append(
            f"{counted(queue.reserved_jobs, 'job')} {_are(queue.reserved_jobs)} reserved and not begun{oldest}"
        )
    return tuple(sentences)


def _again(queue: QueueMetrics) -> str:
    """How many of those that arrive came back for another attempt, where any did."""
    share = (queue.retry_rate_per_s or 0.0) / (queue.arrival_rate_per_s or 1.0)
    return f", {100 * share:.0f} % of them retries" if share >= LEAST_SHARE else ""


def _waiting(queue: QueueMetrics) -> str:
    if queue.waiting_jobs is None and queue.waiting_min_jobs:
        are_waiting = "waits" if queue.waiting_min_jobs == 1 else "wait"
        return f"at least {counted(queue.waiting_min_jobs, 'job')} {are_waiting}{_oldest(queue)}"
    if queue.waiting_jobs is None:
        return "the number of waiting jobs is unknown"
    if not queue.waiting_jobs:
        return "no job waits" if queue.is_wait_known else "no job waits to be taken"
    return f"{counted(queue.waiting_jobs, 'job')} {'waits' if queue.waiting_jobs == 1 else 'wait'}{_oldest(queue)}"


def _oldest(queue: QueueMetrics) -> str:
    if queue.oldest_age_s is None:
        return ""
    least, most = duration(queue.oldest_age_s), duration(queue.oldest_age_max_s or queue.oldest_age_s)
    if least != most:
        return f" (the oldest for {least} to {most})"
    is_least = queue.has_unknown_rates and queue.oldest_age_max_s is None
    return f" (the oldest for at least {least})" if is_least else f" (the oldest for {least})"


def _rate(rate_per_s: float) -> str:
    if rate_per_s <= 0:
        return "none arrives"
    if rate_per_s < 1:
        return f"one arrives every {duration(1 / rate_per_s)}"
    return f"{_number(rate_per_s)} a second arrive"


DEMANDS: Mapping[str, str] = MappingProxyType(
    {
        "steady_state": "arriving jobs keep {slots} busy",
        "trend": "arrivals rise, and when a new worker is ready they will keep {slots} busy",
        "forecast": "jobs forecast to arrive before a new worker is ready will keep {slots} busy",
        "backlog_drain": "starting every waiting job in time takes {slots}",
        "work_in_progress": "running jobs and starting workers take {slots}",
        "wake": "jobs wait and no worker runs: a first start takes {slots}",
        "due_work": "jobs are due soon, and starting them in time takes {slots}",
        "standing": "workers start too slowly to react in time, so {slots} must be pre-warmed",
        "rhythm": "bursts repeat with short pauses, and keeping {slots} costs less than following them",
        "saturation": "every worker is busy, and the strategy then adds one: {slots}",
        "smoother": "while throughput is steady, the strategy scales down one by one, now to {slots}",
        "first_worker": "jobs wait and no worker runs: {slots} for a first worker",
        "jobs_per_worker": "the strategy's workers for this many waiting jobs have {slots}",
        "balance": "the strategy's balance of the queues is at {slots}",
        "fixed": "the profile's floor is {slots}",
        "time_of_day": "the workers for this hour have {slots}",
    }
)
"""A demand's name and what it says, with its slots to be filled in; one that is not here is shown by its name."""


def _demands(decision: Decision) -> Sentences:
    ranked = sorted(decision.demands, key=lambda demand: -demand.slots)
    asking = [demand for demand in ranked if demand.slots > 0]
    if not asking:
        return ("No demand asks for a worker.",) if decision.demands else ()
    wanted = decision.steps[0].workers if decision.steps else None
    winner = f"The greatest demand decides: {_demand(asking[0])}"
    if wanted is not None:
        winner += f"; that is {counted(wanted, 'worker')}"
    sentences = [f"{winner}."]
    if len(asking) > 1:
        sentences.append(f"Lower demands: {'; '.join(_demand(demand) for demand in asking[1:])}.")
    silent = [_words(demand.name) for demand in ranked if demand.slots <= 0]
    if silent:
        sentences.append(f"No workers are asked for by {_joined(silent)}.")
    return tuple(sentences)


def _demand(demand: Demand) -> str:
    slots = f"{_number(demand.slots)} {'slot' if demand.slots == 1 else 'slots'}"
    return DEMANDS.get(demand.name, f"{_words(demand.name)} wants {{slots}}").format(slots=slots)


Wording = Callable[[Step, Step, Decision], str]


def _limits(decision: Decision) -> Sentences:
    """One sentence for each limit that moved the count, in their order."""
    moved = [(before, after) for before, after in pairwise(decision.steps) if before.workers != after.workers]
    if not moved:
        return ("No limit changes the count.",) if decision.steps else ()
    return tuple(_limit(before, after, decision) for before, after in moved)


def _limit(before: Step, after: Step, decision: Decision) -> str:
    wording = LIMITS.get(after.name)
    if wording is None:
        way = "raises" if after.workers > before.workers else "lowers"
        return f"The limit “{_words(after.name)}” {way} the count from {before.workers} to {after.workers}."
    return wording(before, after, decision)


def _capacity(before: Step, after: Step, decision: Decision) -> str:
    if decision.note_of(NoteKind.NO_HOST) is not None:
        return f"No known host can run them: the count stays at {after.workers}."
    short = before.workers - after.workers
    return f"The hosts have capacity for {after.workers} only: {counted(short, 'worker')} short."


def _unread(decision: Decision) -> str:
    """Why nothing goes down by these metrics."""
    if not decision.is_fresh:
        return "The metrics are stale"
    if any(queue.waiting_jobs is None and queue.waiting_min_jobs is not None for queue in decision.metrics):
        return "How many jobs wait is known only as a lower bound"
    return f"A queue has not been read for more than {UNREAD_S:g} s"


def _workers_max(before: Step, after: Step, decision: Decision) -> str:
    others = []
    if decision.unknown_workers:
        others.append(f"{counted(decision.unknown_workers, 'worker')} may still run on unreachable hosts")
    if decision.leaving_workers:
        others.append(f"{counted(decision.leaving_workers, 'worker')} asked to stop have not ended yet")
    if others:
        why = " and ".join(others)
        return f"The profile's ceiling leaves {after.workers} of {before.workers}, because {why}."
    return f"The profile allows at most {after.workers}, so {before.workers} become {after.workers}."


LIMITS: Mapping[str, Wording] = MappingProxyType(
    {
        "failed": lambda before, after, _: (
            f"A figure of the pool is no finite number, so the pool keeps {after.workers}, not {before.workers}."
        ),
        "hold_stale": lambda before, after, decision: (
            f"{_unread(decision)}, so the count does not fall: {after.workers} stay, where {before.workers} "
            f"would be enough."
        ),
        "useful_workers": lambda before, after, _: (
            f"Its brokers give the jobs of its queues to {counted(after.workers, 'worker')} at a time: of "
            f"{before.workers}, the others would only wait."
        ),
        "hold_overdue": lambda before, after, _: (
            f"{_fewer(before)} would be enough, but a waiting job has no time left: {after.workers} are kept."
        ),
        "hold_down": lambda before, after, _: (
            f"{_fewer(before)} would be enough now, but not yet for long enough: {after.workers} stay."
        ),
        "crash_loop": lambda _, after, __: (
            f"Its workers crash on every host: no more than {after.workers} until one stays up."
        ),
        "plateau": lambda before, after, decision: (
            f"Jobs wait beside idle workers{_gained(decision)}: {after.workers} for now, where {before.workers} were "
            "asked for. Lift what holds jobs back (Celery's rate_limit is per worker), or state what is allowed as "
            "rate_limit_per_s in the profile."
        ),
        "activation": lambda before, _, __: (
            f"Too few jobs wait to wake the pool from zero: none of {before.workers} starts yet."
        ),
        "may_be_busy": lambda before, after, _: (
            f"{counted(after.workers - before.workers, 'worker')} may be busy: kept. Such workers leave one at a time."
        ),
        "cooldown": lambda before, after, _: (
            f"{before.workers} are needed, but the strategy's cooldown allows no change yet: {after.workers} stay."
        ),
        "anti_flapping": lambda before, after, _: (
            f"{before.workers} are needed; the strategy turns only after its cooldown and scales down by a share at a "
            f"time: {after.workers} for now."
        ),
        "tolerance": lambda before, after, _: (
            f"{_fewer(before)} would be right, which differs too little from {after.workers} for a change."
        ),
        "hold_up": lambda before, after, _: (
            f"{before.workers} are needed, but not yet for long enough: {after.workers} for now."
        ),
        "step": lambda before, after, _: (
            f"{_fewer(before)} would be right; the profile's steps lead to {after.workers} for now."
        ),
        "fallback": lambda _, after, __: f"Metrics have been missing for long: the fallback is {after.workers}.",
        "pause": lambda before, after, _: (
            f"The pool is paused: {after.workers} stay, where {before.workers} would be right."
        ),
        "suspended": lambda before, after, _: (
            f"Its workers are kept from taking jobs: none is started, and {after.workers} "
            f"{'stays' if after.workers == 1 else 'stay'} where {before.workers} would be right."
        ),
        "override": lambda before, after, _: (
            f"An operator has set an override of {after.workers}, where {before.workers} would be right."
        ),
        "schedule": lambda before, after, _: f"A schedule changes {before.workers} to {after.workers}.",
        "workers_min": lambda _, after, __: f"The profile keeps at least {after.workers}.",
        "workers_max": _workers_max,
        "pinned": lambda _, after, __: f"The pool is pinned to {after.workers}.",
        "rate_limit": lambda before, after, _: (
            f"The rate limit allows {after.workers}; of {before.workers}, the others would only wait for the service."
        ),
        "budget": lambda before, after, _: f"The budget pays for {after.workers}, not for {before.workers}.",
        "share": lambda before, after, _: (
            f"Capacity is scarce: the pool's share is {after.workers} of the {before.workers} that it asks for."
        ),
        "capacity": _capacity,
    }
)


def _gained(decision: Decision) -> str:
    """What the last step up has brought, as far as it is measured."""
    known = decision.plateau
    if known is None or known.again_s is None:
        return ", and what one step more brings is being measured"
    return f", and {counted(known.workers, 'worker')} started no more jobs than fewer did"


def _fewer(step: Step) -> str:
    return "None" if not step.workers else f"{step.workers}"


def _day_budget(decision: Decision) -> Sentences:
    """What is paid of it; a note reports that it is passed."""
    spent = decision.day_budget
    if spent is None:
        return ()
    paid_h, budget_h = spent.paid_worker_s / HOUR_S, spent.budget_worker_s / HOUR_S
    return (f"Of the {_number(budget_h)} worker-hours that the budget of {spent.day} pays for, {paid_h:.2f} are paid.",)


def _prediction(decision: Decision) -> Sentences:
    seconds = decision.predicted_pickup_s
    if decision.is_failing:
        return ("The wait of a new job is unknown: the workers of its template crash.",)
    if is_suspended(decision.suspension):
        return ("A job that arrives now waits until its workers take jobs again.",)
    if seconds is None and not decision.target_workers and not decision.running_workers:
        if decision.mode in {Mode.PAUSE, Mode.PAUSE_UP}:
            return (f"A job that arrives now waits until the pause ends: `headway resume {decision.pool}`.",)
        return ("A job that arrives now waits until a worker has started.",)
    if seconds is None:
        return ("The wait of a new job is unknown.",)
    if decision.member_pickups:
        order = f"Its workers take jobs {order_text(decision.queue_order)}."
        return (order, *map(_member_prediction, decision.member_pickups))
    when = _when(seconds)
    if decision.objective is None:
        return (f"A job that arrives now should start {when}.",)
    target_s, percentile = decision.objective.target_s, decision.objective.percentile
    verdict = "in time" if seconds <= target_s else "too late"
    objective = f"{percentile:g} % are to start within {duration(target_s)}"
    return (f"A job that arrives now should start {when}, {verdict}: {objective}.",)


def _member_prediction(member: MemberPickup) -> str:
    target_s, percentile = member.objective.target_s, member.objective.percentile
    verdict = "in time" if member.predicted_pickup_s <= target_s else "too late"
    objective = f"{percentile:g} % are to start within {duration(target_s)}"
    return (
        f"A job of {member.queue} that arrives now should start {_when(member.predicted_pickup_s)}, {verdict}: "
        f"{objective}."
    )


def _when(seconds: float) -> str:
    return "immediately" if seconds < 0.05 else f"after about {duration(seconds)}"


def _sentence(note: str) -> str:
    text = note[:1].upper() + note[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def counted(number: int, noun: str) -> str:
    """``number`` and ``noun``: ``1 worker``, ``2 workers``, ``no workers``."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """``seconds`` in the unit that a reader thinks in, in round numbers: two digits are enough."""
    if seconds < 0.9995:
        return f"{float(f'{seconds * 1000:.2g}'):.0f} ms"
    if seconds < 9.95:
        return f"{_number(seconds)} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    return f"{_number(seconds / 60)} min" if seconds < 7200 else f"{_number(seconds / 3600)} h"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}".removesuffix(".0")


def _words(name: str) -> str:
    return name.replace("_", " ")
