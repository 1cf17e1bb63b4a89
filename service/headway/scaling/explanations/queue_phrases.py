"""How a queue stands, in words."""

from headway.scaling.arithmetic import PERCENT
from headway.scaling.explanations.phrases import are, counted, duration, joined, number_text
from headway.scaling.model import QueueMetrics

LEAST_SHARE = 0.005  # less would read as none


def depths(queue: QueueMetrics) -> str:
    """How it stands in ``queue``, without what is a rate: what waits, and for how long, what runs and is reserved."""
    return joined([_waiting(queue), *_taken(queue)])


def queue_sentence(queue: QueueMetrics, where: str) -> str:
    """How ``queue`` stands and what arrives there, as a sentence that begins with ``where``."""
    sentences = [f"{where} {_waiting(queue)}", *_taken(queue)]
    if queue.arrival_rate_per_s is not None:
        sentences.append(_arrivals(queue, queue.arrival_rate_per_s))
    elif queue.has_unknown_rates:
        sentences.append("how many arrive is unknown")
    return f"{joined(sentences)}."


def _taken(queue: QueueMetrics) -> tuple[str, ...]:
    """What of those in flight runs, and what is reserved."""
    sentences = []
    if queue.running_jobs is not None:
        sentences.append(f"{counted(queue.running_jobs, 'job')} {are(queue.running_jobs)} running")
    elif queue.in_flight_min_jobs:
        sentences.append(f"workers have at least {counted(queue.in_flight_min_jobs, 'job')}")
    elif queue.in_flight_min_jobs is not None:
        sentences.append("the number of running jobs is unknown")
    if queue.in_flight_min_jobs and not queue.is_wait_known:
        sentences.append("how many of them have not begun is unknown")
    if queue.reserved_jobs:
        oldest = "" if queue.waiting_jobs else _oldest(queue)
        sentences.append(
            f"{counted(queue.reserved_jobs, 'job')} {are(queue.reserved_jobs)} reserved and not begun{oldest}"
        )
    return tuple(sentences)


def arrivals(queue: QueueMetrics) -> str | None:
    """How many jobs arrive in ``queue`` and what each of them takes; ``None``: not known."""
    rate_per_s = queue.arrival_rate_per_s
    return None if rate_per_s is None else f"of its jobs, {_arrivals(queue, rate_per_s)}"


def _arrivals(queue: QueueMetrics, rate_per_s: float) -> str:
    is_timed = queue.service_time_s is not None and rate_per_s > 0
    each = f", each with a service time of {duration(queue.service_time_s or 0.0)}" if is_timed else ""
    return f"{_rate(rate_per_s)}{_again(queue)}{each}"


def _again(queue: QueueMetrics) -> str:
    """How many of those that arrive came back for another attempt, where any did."""
    share = (queue.retry_rate_per_s or 0.0) / (queue.arrival_rate_per_s or 1.0)
    return f", {PERCENT * share:.0f} % of them retries" if share >= LEAST_SHARE else ""


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
    return f"{number_text(rate_per_s)} a second arrive"
