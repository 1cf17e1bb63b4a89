"""Which readings of queues and workers are worth sending. Pure but for its memory of what was sent."""

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter

from headway.scaling.model import QueueSample, WorkerActivity

HEARTBEAT_S = 4.0  # with a poll, one metric bucket: whatever is quiet is still known to be
UNCHANGED_AGEING_S = 1.0  # while jobs wait, their age is a change although nothing moves
UNCHANGED_LATELY_S = 2.0  # that a busy queue has become quiet is what lets its workers go: it is repeated sooner
LATELY_S = 60.0

_DEPTHS = ("waiting_jobs", "in_flight_jobs", "delayed_jobs", "waiting_min_jobs", "in_flight_min_jobs")
_depths = attrgetter(*_DEPTHS)
_facts = attrgetter(*_DEPTHS, "listed_workers", "suspension", "useful_workers")


class ChangeFilter:
    """What the control plane knows, so that only differences are sent."""

    def __init__(self) -> None:
        self._samples: dict[str, QueueSample] = {}
        self._changed_at_s: dict[str, float] = {}
        """Of queues whose depths changed lately."""
        self._activities: dict[tuple[str, int], WorkerActivity] = {}
        self._heartbeat_at_s = float("-inf")

    def is_heartbeat_due(self, *, at_s: float) -> bool:
        """Whether everything is to be sent: it never was, or long ago, or the clock was set back."""
        return not 0 <= at_s - self._heartbeat_at_s < HEARTBEAT_S

    def due(
        self, samples: Iterable[QueueSample], activities: Iterable[WorkerActivity], *, at_s: float
    ) -> tuple[list[QueueSample], list[WorkerActivity]]:
        """What to send now. Every ``HEARTBEAT_S`` that is everything.

        What a broker said of a worker and does not say any more is withdrawn: unknown is not idle.
        """
        known = {(each.host, each.pid): each for each in activities}
        withdrawn = [
            replace(each, is_busy=True, is_withdrawn=True)
            for process, each in self._activities.items()
            if process not in known
        ]
        if self.is_heartbeat_due(at_s=at_s):
            return list(samples), [*known.values(), *withdrawn]
        return (
            [sample for sample in samples if self._is_news(sample)],
            [*(each for process, each in known.items() if self._activities.get(process) != each), *withdrawn],
        )

    def sent(self, samples: list[QueueSample], activities: list[WorkerActivity], *, at_s: float) -> None:
        """Note that the control plane has these now."""
        for sample in samples:
            known = self._samples.get(sample.queue)
            if known is not None and _depths(known) != _depths(sample):
                self._changed_at_s[sample.queue] = sample.at_s
        if self.is_heartbeat_due(at_s=at_s):
            self._heartbeat_at_s = at_s
            self._samples, self._activities = {}, {}
            lately = {queue: since_s for queue, since_s in self._changed_at_s.items() if 0 <= at_s - since_s < LATELY_S}
            self._changed_at_s = lately
        self._samples |= {sample.queue: sample for sample in samples}
        self._activities |= {(each.host, each.pid): each for each in activities if not each.is_withdrawn}
        for each in activities:
            if each.is_withdrawn:
                self._activities.pop((each.host, each.pid), None)

    def _is_news(self, sample: QueueSample) -> bool:
        known = self._samples.get(sample.queue)
        if known is None or _facts(known) != _facts(sample):
            return True
        passed_s = sample.at_s - known.at_s
        if sample.waiting_jobs is None or sample.waiting_jobs > 0:
            return passed_s >= UNCHANGED_AGEING_S
        return passed_s >= UNCHANGED_LATELY_S and sample.queue in self._changed_at_s
