"""A decision in sentences. They are read off the decided value: they say nothing that it does not hold."""

from collections.abc import Mapping

from headway.scaling.arithmetic import HOUR_S
from headway.scaling.explanations.explanation import NO_STRATEGIES, Explanation, Worded, explanation_of, wording_of
from headway.scaling.explanations.phrases import are, counted, duration, joined, number_text, sentence_of, words
from headway.scaling.explanations.queue_phrases import queue_sentence
from headway.scaling.explanations.shared_phrases import shared_sentences
from headway.scaling.explanations.wording import Wording
from headway.scaling.model import Decision, MemberPickup, Mode, is_suspended, order_text
from headway.scaling.reading.pooled_queue import pooled
from headway.scaling.reading.sample_age import is_seen

Sentences = tuple[str, ...]


def explained(
    decision: Decision, *, previous_workers: int | None = None, strategies: Mapping[str, Worded] = NO_STRATEGIES
) -> Sentences:
    """Why ``decision`` is what it is, for a reader who wants to sleep: the outcome first, then what led to it.

    In order: the number, what was seen, every demand, each limit that moved the count, the day's budget, the
    prediction, the notes. Demands and limits of a strategy outside of ``strategies`` are shown by their names.
    """
    reasons = explanation_of(decision, previous_workers=previous_workers, strategies=strategies)
    return (
        *_outcome(decision, previous_workers),
        *_suspension(decision),
        *_seen(decision),
        *shared_sentences(decision),
        *_recalled(decision),
        *_demands(decision, wording_of(decision, strategies)),
        *_limits(reasons),
        *_day_budget(decision),
        *_prediction(decision),
        *reasons.notes,
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
    return (sentence_of(f"suspended: {decision.suspension.text}"),)


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
        return f"{there}, so {missing} more {are(missing)} needed."
    if missing < 0:
        return f"{there}, so {-missing} {are(-missing)} to stop, idle ones first."
    return f"{there}: no change."


def _seen(decision: Decision) -> Sentences:
    """What was known of the queues, together first and then one by one where there are several."""
    known = [queue for queue in decision.metrics if is_seen(queue)]
    if not known:
        return ("Its queues have no metrics yet.",)
    freshness = () if decision.is_fresh else (f"These metrics are stale{_age(decision.metrics_age_s)}.",)
    together = (
        queue_sentence(pooled(decision.metrics), "In its queues together" if len(known) > 1 else "In its queue"),
    )
    apart = tuple(queue_sentence(queue, f"In {queue.queue}") for queue in known) if len(known) > 1 else ()
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


def _demands(decision: Decision, wording: Wording) -> Sentences:
    asking = [wording.clause(demand) for demand in decision.ranked_demands if demand.slots > 0]
    if not asking:
        return ("No demand asks for a worker.",) if decision.demands else ()
    winner = f"The greatest demand decides: {asking[0]}"
    if decision.steps:
        winner += f"; that is {counted(decision.steps[0].workers, 'worker')}"
    sentences = [f"{winner}."]
    if len(asking) > 1:
        sentences.append(f"Lower demands: {'; '.join(asking[1:])}.")
    silent = [words(demand.name) for demand in decision.ranked_demands if demand.slots <= 0]
    if silent:
        sentences.append(f"No workers are asked for by {joined(silent)}.")
    return tuple(sentences)


def _limits(reasons: Explanation) -> Sentences:
    """One sentence for each limit that moved the count, in their order."""
    sentences = tuple(step.sentence for step in reasons.steps if step.sentence is not None)
    return sentences or (("No limit changes the count.",) if reasons.steps else ())


def _day_budget(decision: Decision) -> Sentences:
    """What is paid of it; a note reports that it is passed."""
    spent = decision.day_budget
    if spent is None:
        return ()
    paid_h, budget_h = spent.paid_worker_s / HOUR_S, spent.budget_worker_s / HOUR_S
    return (
        f"Of the {number_text(budget_h)} worker-hours that the budget of {spent.day} pays for, {paid_h:.2f} are paid.",
    )


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
        return (order, *map(member_prediction, decision.member_pickups))
    when = _when(seconds)
    if decision.objective is None:
        return (f"A job that arrives now should start {when}.",)
    target_s, percentile = decision.objective.target_s, decision.objective.percentile
    verdict = "in time" if seconds <= target_s else "too late"
    objective = f"{percentile:g} % are to start within {duration(target_s)}"
    return (f"A job that arrives now should start {when}, {verdict}: {objective}.",)


def member_prediction(member: MemberPickup) -> str:
    """When a job of the queue that arrives now should start, and whether that is in time."""
    target_s, percentile = member.objective.target_s, member.objective.percentile
    verdict = "in time" if member.predicted_pickup_s <= target_s else "too late"
    objective = f"{percentile:g} % are to start within {duration(target_s)}"
    return (
        f"A job of {member.queue} that arrives now should start {_when(member.predicted_pickup_s)}, {verdict}: "
        f"{objective}."
    )


def _when(seconds: float) -> str:
    return "immediately" if seconds < 0.05 else f"after about {duration(seconds)}"
