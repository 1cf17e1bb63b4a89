"""Completes starts that are reported without an entry by what collectors and agents have sent. In memory only."""

from dataclasses import replace
from typing import TypeVar

from headway.connections import AGENT, COLLECTOR
from headway.control.ingest.clock_skew import CLOCK_OFFSET_TRUSTED_S
from headway.scaling.entries.entry_times import EntryTimes
from headway.scaling.model import BrokerPoll, JobEvent, QueueReceptions, TelemetryBatch

_Timed = TypeVar("_Timed", BrokerPoll, JobEvent, QueueReceptions)


class EntryJoin:
    """What this control plane was sent of polls and receptions. See docs/decisions/0031."""

    def __init__(self) -> None:
        self._times = EntryTimes()

    @property
    def reported_queues(self) -> frozenset[str]:
        """Queues whose receptions are known here."""
        return self._times.reported_queues

    def joined(self, batch: TelemetryBatch, *, offset_s: float) -> TelemetryBatch:
        """``batch`` with the entries that are known, without its polls and receptions, which are kept here.

        ``offset_s`` is how far the sender's clock is behind ours; entries are given by the sender's.
        """
        is_collector, is_agent = batch.producer.startswith(COLLECTOR), batch.producer.startswith(AGENT)
        moved_s = offset_s if abs(offset_s) > CLOCK_OFFSET_TRUSTED_S else 0.0
        if is_collector:
            for poll in batch.polls:
                self._times.take_poll(_moved(poll, moved_s), batch.producer)
            for sample in batch.samples:
                self._times.note_read(sample.queue, sample.at_s + moved_s, batch.producer)
        if is_agent:
            for receptions in batch.receptions:
                self._times.take_receptions(_moved(receptions, moved_s), batch.producer)
        events = batch.events if is_collector else self._completed(batch.events, moved_s)
        return replace(batch, events=events, polls=(), receptions=())

    def _completed(self, events: tuple[JobEvent, ...], moved_s: float) -> tuple[JobEvent, ...]:
        by_our_clock = [_moved(each, moved_s) for each in events]
        completed = self._times.completed(by_our_clock)
        return tuple(
            event if after is before else _moved(after, -moved_s)
            for event, before, after in zip(events, by_our_clock, completed, strict=True)
        )


def _moved(value: _Timed, by_s: float) -> _Timed:
    """``value`` by another clock."""
    if not by_s:
        return value
    if isinstance(value, BrokerPoll):
        after_s = None if value.after_s is None else value.after_s + by_s
        return replace(value, at_s=value.at_s + by_s, until_s=value.until_s + by_s, after_s=after_s)
    if isinstance(value, QueueReceptions):
        received = tuple(at_s + by_s for at_s in value.received_at_s)
        return replace(value, since_s=value.since_s + by_s, until_s=value.until_s + by_s, received_at_s=received)
    times = {
        name: at_s + by_s
        for name in ("at_s", "enqueued_at_s", "started_at_s", "received_at_s")
        if (at_s := getattr(value, name)) is not None
    }
    return replace(value, **times)
