"""Polls that would take too much processor come less often, and what is read says how often it is."""

import time
from pathlib import Path
from typing import Any

import pytest

from headway.collect.collector_loop import Collector
from headway.collect.poll_pacing import LONGEST_S, PollPacing
from headway.collect.source import FoundQueue, Library, Reading
from headway.connections import Connection
from headway.emit.outbox import Outbox
from headway.scaling.model import QueueSample, TelemetryBatch


@pytest.mark.parametrize(
    ("turn_s", "interval_s"),
    [
        (0.010, 0.5),  # 0.010 / 0.15 = 0.07 s would do
        (0.075, 0.5),  # 0.075 / 0.15 = 0.5
        (0.100, 0.7),  # 0.100 / 0.15 = 0.67, in steps of 0.1
        (0.300, 2.0),
        (3.000, 5.0),  # 20 s would be needed
    ],
)
def test_polls_are_as_far_apart_as_their_processor_needs_up_to_a_bound(turn_s: float, interval_s: float) -> None:
    pacing = PollPacing(0.5, processor_share=0.15)
    assert pacing.interval_s == 0.5
    for _ in range(40):
        pacing.took(turn_s)
    assert pacing.interval_s == interval_s


def test_what_was_asked_for_is_never_undercut() -> None:
    pacing = PollPacing(LONGEST_S, processor_share=0.01)
    pacing.took(10.0)
    assert pacing.interval_s == LONGEST_S


def test_one_dear_poll_among_cheap_ones_changes_little_and_is_forgotten() -> None:
    pacing = PollPacing(0.5, processor_share=0.15)
    for turn_s in (*[0.01] * 10, 0.5):
        pacing.took(turn_s)
    assert 0.5 < pacing.interval_s < 1.0
    for _ in range(10):
        pacing.took(0.01)
    assert pacing.interval_s == 0.5


class Dear:
    """A source whose polls take ``processor_s`` of the processor."""

    def __init__(self, processor_s: float) -> None:
        self.processor_s = processor_s
        self._polls = 0

    def discover(self) -> tuple[FoundQueue, ...]:
        return ()

    def poll(self, at_s: float) -> Reading:
        until_s = time.thread_time() + self.processor_s
        while time.thread_time() < until_s:
            pass
        self._polls += 1
        return Reading(at_s=at_s, samples=(QueueSample(queue="a/mail", at_s=at_s, waiting_jobs=self._polls),))

    def cursor(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        pass


def test_samples_say_how_often_their_queue_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source, sent = Dear(0.2), list[TelemetryBatch]()
    library = Library(name="dear", title="Dear", schemes=("dear",), open=lambda *_: source, accuracy={})
    connection = Connection(name="a", url="dear://", processor_share=0.02)
    outbox = Outbox(tmp_path / "a.json", name="collect-a", send=sent.append, clock=time.time)
    collector = Collector(connection, library, outbox)
    caplog.set_level("INFO")
    pauses_s = [collector.turn() for _ in range(2)]
    # 0.2 / 0.02 = 10 s would be needed; at the first poll that is not known.
    assert [sample.poll_interval_s for batch in sent for sample in batch.samples] == [0.5, 5.0]
    assert all(pause_s <= 5.0 for pause_s in pauses_s)
    source.processor_s = 0.0
    for _ in range(40):
        collector.turn()
    assert sent[-1].samples[0].poll_interval_s == 0.5
    said = [record.getMessage() for record in caplog.records if "polls come" in record.getMessage()]
    assert [message.partition(" connection")[0] for message in said] == [
        "polls come less often",
        "polls come as often as asked",
    ]
