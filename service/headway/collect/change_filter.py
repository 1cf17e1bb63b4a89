"""Which readings of queues and workers are worth sending. Pure but for its memory of what was sent."""

from collections.abc import Iterable

from headway.scaling.model import QueueSample, WorkerActivity

HEARTBEAT_S = 4.0  # with a poll, one metric bucket: whatever is quiet is still known to be
UNCHANGED_AGEING_S = 1.0  # while jobs wait, their age is a change although nothing moves


class ChangeFilter:
    """What the control plane knows, so that only differences are sent."""

    def __init__(self) -> None:
        self._samples: dict[str, QueueSample] = {}
        self._activities: dict[tuple[str, int], WorkerActivity] = {}
        self._heartbeat_at_s = float("-inf")

    def due(
        self, samples: Iterable[QueueSample], activities: Iterable[WorkerActivity], *, at_s: float
    ) -> tuple[list[QueueSample], list[WorkerActivity]]:
        """What to send now. Every ``HEARTBEAT_S`` that is everything."""
        if not 0 <= at_s - self._heartbeat_at_s < HEARTBEAT_S:  # never sent, long ago, or the clock was set back
            return list(samples), list(activities)
        return (
            [sample for sample in samples if self._is_news(sample)],
            [each for each in activities if self._activities.get((each.host, each.pid)) != each],
        )

    def sent(self, samples: list[QueueSample], activities: list[WorkerActivity], *, at_s: float) -> None:
        """Note that the control plane has these now."""
        if not 0 <= at_s - self._heartbeat_at_s < HEARTBEAT_S:
            self._heartbeat_at_s = at_s
            self._samples, self._activities = {}, {}
        self._samples |= {sample.queue: sample for sample in samples}
        self._activities |= {(each.host, each.pid): each for each in activities}

    def _is_news(self, sample: QueueSample) -> bool:
        known = self._samples.get(sample.queue)
        return (
            known is None
            or (known.waiting_jobs, known.in_flight_jobs, known.delayed_jobs)
            != (sample.waiting_jobs, sample.in_flight_jobs, sample.delayed_jobs)
            or (sample.waiting_jobs > 0 and sample.at_s - known.at_s >= UNCHANGED_AGEING_S)
        )
