"""Collectors at work: what they send and when, and what they do when broker, control plane or disk are away."""

import json
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from collect.rq_jobs import Rq, while_running, work
from headway.collect import collector_loop as module
from headway.collect.celery.celery_source import CELERY
from headway.collect.collector_loop import Collector, Collectors
from headway.collect.libraries import Libraries
from headway.collect.rq.rq_source import RQ
from headway.collect.source import Library, Reading
from headway.connections import Connection
from headway.emit.outbox import Outbox
from headway.emit.outbox_folder import state_folder
from headway.errors import Misconfigured, Unavailable
from headway.local.backoff import DoublingPause
from headway.scaling.model import BrokerPoll, EventKind, JobEvent, QueueSample, TelemetryBatch
from headway.store.embedded import ensure_valkey
from support.waiting import eventually


class Control:
    """What a control plane took; each batch counts once."""

    def __init__(self) -> None:
        self.batches: dict[int, TelemetryBatch] = {}
        self.is_away = False
        self.loses_answers = False

    def send(self, batch: TelemetryBatch) -> None:
        if self.is_away:
            raise Unavailable("away")
        self.batches.setdefault(batch.sequence, batch)
        if self.loses_answers:
            raise Unavailable("no answer")

    @property
    def events(self) -> list[JobEvent]:
        return [event for batch in self.batches.values() for event in batch.events]

    @property
    def samples(self) -> list[QueueSample]:
        return [sample for batch in self.batches.values() for sample in batch.samples]


@pytest.fixture
def control() -> Control:
    return Control()


@pytest.fixture
def started(tmp_path: Path, control: Control, valkey_url: str):
    """Makes collectors of the same connection and state, each as a new process would."""

    def start(url: str = valkey_url) -> Collector:
        outbox = Outbox(tmp_path / "redis.json", name="collect-redis", send=control.send, clock=time.time)
        return Collector(Connection(name="redis", url=url), RQ, outbox)

    return start


def test_a_change_is_sent_at_once_and_quiet_is_not(rq: Rq, started, control: Control) -> None:
    collector = started()
    collector.turn()
    collector.turn()
    (empty,) = control.batches.values()
    assert [(poll.connection, poll.queues) for poll in empty.polls] == [("redis", ())], "it was read, and has no queue"
    assert (empty.events, empty.samples, empty.activities) == ((), (), ())
    rq.queue().enqueue(work)
    collector.turn()
    _, batch = control.batches.values()
    assert batch.polls == ()
    assert [event.kind for event in batch.events] == [EventKind.ENQUEUED]
    assert [sample.waiting_jobs for sample in batch.samples] == [1]
    rq.run()
    for _ in range(3):
        assert 0.0 <= collector.turn() <= 0.5  # less what the look took
    assert len(control.batches) == 3
    assert [sample.waiting_jobs for sample in control.samples] == [1, 0]


def test_while_the_control_plane_is_away_nothing_is_lost_and_old_readings_are_not_kept(
    rq: Rq, started, control: Control
) -> None:
    collector = started()
    collector.turn()
    control.is_away = True
    rq.queue().enqueue(work)
    for _ in range(3):
        assert collector.turn() > 0.0
    rq.run()
    rq.queue().enqueue(work)
    rq.queue().enqueue(work)
    collector.turn()
    control.is_away = False
    collector.turn()
    assert Counter(event.kind for event in control.events) == {
        EventKind.ENQUEUED: 3,
        EventKind.STARTED: 1,
        EventKind.FINISHED: 1,
    }
    assert control.samples[-1].waiting_jobs == 2


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "ended"])
def test_a_collector_that_ends_with_a_batch_on_its_way_neither_repeats_nor_misses(
    rq: Rq, started, control: Control, *, is_killed: bool
) -> None:
    """It ends after each step of jobs' lives, its last batch taken without an answer, or not taken at all."""
    started().turn()
    for step in range(12):
        collector = started()
        rq.queue().enqueue(work)
        control.loses_answers, control.is_away = step % 3 == 0, step % 3 == 1
        while_running[:] = [collector.turn] if step % 2 else []
        collector.turn()
        rq.run()
        collector.turn()
        if not is_killed:
            collector.close()
    control.loses_answers = control.is_away = False
    collector = started()
    for _ in range(3):
        collector.turn()
    assert Counter(event.kind for event in control.events) == {
        EventKind.ENQUEUED: 12,
        EventKind.STARTED: 12,
        EventKind.FINISHED: 12,
    }


def test_of_many_queues_the_log_names_those_that_are_new_and_not_all(
    rq: Rq, started, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="headway")
    collector = started()
    rq.redis.sadd("rq:queues", *(f"rq:queue:q{number:03}" for number in range(100)))
    collector.turn()
    rq.redis.sadd("rq:queues", "rq:queue:late")
    collector.turn()
    first, second = [each.message for each in caplog.records if each.message.startswith("watching")]
    assert " queues=100 new=redis/q000,redis/q001," in first
    assert first.endswith(",redis/q019,… and 80 more gone=none")
    assert second.endswith(" queues=101 new=redis/late gone=none")


def test_a_broker_that_goes_away_is_logged_once_and_nothing_is_sent_of_it(
    data_folder: Path, started, control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="headway")
    server = ensure_valkey(data_folder / "valkey-that-goes", is_persistent=True)
    Rq(server.url).queue().enqueue(work)
    collector = started(server.url)
    collector.turn()
    assert len(control.samples) == 1
    server.release()
    assert server.wait_stopped()
    pauses_s = [collector.turn() for _ in range(8)]
    assert pauses_s[0] <= 0.5
    assert 2.0 <= pauses_s[-1] <= 4.0
    assert len(control.samples) == 1
    again = ensure_valkey(data_folder / "valkey-that-goes", is_persistent=True)
    assert again.url == server.url
    eventually(lambda: collector.turn() == 0.0 or len(control.samples) > 1)
    assert [event.kind for event in control.events] == [EventKind.ENQUEUED]
    reported = [record.message.split(" connection")[0] for record in caplog.records]
    assert reported == ["watching", "broker lost", "broker back"]
    again.release()
    assert again.wait_stopped()


def test_a_bug_is_logged_and_what_was_not_sent_is_read_again(
    rq: Rq, started, control: Control, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    collector = started()
    collector.turn()
    rq.queue().enqueue(work)
    stop = threading.Event()
    monkeypatch.setattr(module, "PAUSE", DoublingPause(0.0, 0.0))
    with monkeypatch.context() as patch:
        patch.setattr(collector._source, "cursor", lambda: stop.set() or 1 / 0)  # events were taken in by then
        collector.run(stop)
    assert "collector failed connection=redis" in caplog.text
    assert control.events == []
    collector.turn()
    assert [event.kind for event in control.events] == [EventKind.ENQUEUED]


def test_a_bug_while_a_password_is_replaced_does_not_end_the_polls(
    rq: Rq, started, control: Control, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing caught what opening the source anew refused: the thread ended, and the queue had no samples any more."""
    collector = started()
    rq.queue().enqueue(work)
    stop = threading.Event()
    monkeypatch.setattr(module, "PAUSE", DoublingPause(0.0, 0.0))

    def refused(*_: object) -> None:
        stop.set()
        raise Misconfigured("password_file cannot be read")

    with monkeypatch.context() as patch:
        patch.setattr(collector._source, "poll", lambda _: 1 / 0)
        patch.setattr(collector, "_opened", refused)
        collector.run(stop)
    assert "broker lost connection=redis: password_file cannot be read" in caplog.text
    collector.turn()
    assert control.samples[-1].waiting_jobs == 1


def test_more_than_one_batch_holds_goes_in_several(
    rq: Rq, started, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_ITEMS_MAX", 4)
    for number in range(5):
        rq.queue(f"queue-{number}").enqueue(work)
    started().turn()
    sizes = [(len(batch.events), len(batch.samples)) for batch in control.batches.values()]
    assert sizes == [(5, 0), (0, 4), (0, 1)]


def test_collectors_stop_amid_any_pause_and_one_broken_broker_stops_no_other(
    rq: Rq, tmp_path: Path, control: Control, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE", DoublingPause(600.0, 600.0))
    rq.queue().enqueue(work)
    brokers = {"a/b": valkey_url, "gone": "redis://127.0.0.1:1/0"}
    connections = [Connection(name=name, url=url, every_s=600.0) for name, url in brokers.items()]
    with state_folder(tmp_path / "state") as folder:
        collectors = Collectors(connections, libraries=Libraries(), folder=folder, send=control.send)
        collectors.start()
        eventually(lambda: control.samples)
        collectors.ask_to_stop()
        collectors.wait_stopped(60.0)
        assert [thread for thread in threading.enumerate() if thread.name in brokers] == []
    held = json.loads((tmp_path / "state" / "a%2Fb.json").read_text())
    assert held["pending"] is None
    assert held["cursor"]["queues"].keys() == {"mail"}


def test_a_cursor_of_another_make_is_refused_with_what_to_do(tmp_path: Path, control: Control, started) -> None:
    started().turn()
    file = tmp_path / "redis.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "cursor": {"at": 1}}))
    with pytest.raises(Misconfigured, match=r"state of connection 'redis' .*delete it to begin anew"):
        started()


def test_a_cursor_of_before_libraries_were_named_is_gone_on_from(
    tmp_path: Path, rq: Rq, control: Control, started
) -> None:
    collector = started()
    collector.turn()
    rq.queue().enqueue(work)
    collector.turn()
    collector.close()
    file = tmp_path / "redis.json"
    held = json.loads(file.read_text())
    assert held["cursor"].pop("library") == "rq"
    file.write_text(json.dumps(held))
    rq.run()
    started().turn()
    assert Counter(event.kind for event in control.events) == {
        EventKind.ENQUEUED: 1,
        EventKind.STARTED: 1,
        EventKind.FINISHED: 1,
    }


def test_the_cursor_of_another_library_is_not_read(
    tmp_path: Path, rq: Rq, control: Control, started, caplog: pytest.LogCaptureFixture
) -> None:
    started().turn()
    file = tmp_path / "redis.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "cursor": {"library": "other", "marks": []}}))
    rq.queue().enqueue(work)
    started().turn()
    assert "library changed connection=redis from=other to=rq" in caplog.text
    assert [event.kind for event in control.events] == [EventKind.ENQUEUED]
    assert json.loads(file.read_text())["cursor"]["library"] == "rq"


def test_a_source_that_names_queues_of_another_connection_is_refused(
    rq: Rq, started, control: Control, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    collector, stop = started(), threading.Event()
    foreign = QueueSample(queue="other/mail", at_s=1.0, waiting_jobs=0)
    monkeypatch.setattr(module, "PAUSE", DoublingPause(0.0, 0.0))
    monkeypatch.setattr(collector._source, "poll", lambda at_s: stop.set() or Reading(at_s=at_s, samples=(foreign,)))
    collector.run(stop)
    assert "library 'rq' names queue 'other/mail', which is none of redis/" in caplog.text
    assert control.batches == {}


def test_a_url_that_cannot_be_one_is_refused_before_anything_starts(tmp_path: Path, control: Control) -> None:
    unknown = Connection(name="jobs", url="sqs://u:secret@h")
    with state_folder(tmp_path) as folder, pytest.raises(Misconfigured, match=r"broker URL 'sqs://u:\*\*\*@h'"):
        Collectors([unknown], libraries=Libraries(), folder=folder, send=control.send)


@pytest.mark.parametrize("library", [RQ, CELERY], ids=["rq", "celery"])
def test_a_broker_without_queues_is_reported_as_read_while_it_is(
    library: Library, tmp_path: Path, control: Control, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else distinguishes a new application from a broker that nobody reads."""
    now_s = time.time()
    moments = iter([now_s + passed_s for passed_s in (0.0, 5.0, 10.0, 15.0)])
    outbox = Outbox(tmp_path / "redis.json", name="collect-redis", send=control.send, clock=time.time)
    collector = Collector(Connection(name="redis", url=valkey_url), library, outbox, clock=lambda: next(moments))
    for _ in range(3):
        collector.turn()
    polls = [poll for batch in control.batches.values() for poll in batch.polls]
    assert [(poll.connection, poll.at_s - now_s, poll.queues) for poll in polls] == [
        ("redis", passed_s, ()) for passed_s in (0.0, 5.0, 10.0)
    ]
    monkeypatch.setattr(collector._source, "poll", _away)
    collector.turn()
    assert len(control.batches) == 3


def _away(_: float) -> Reading:
    raise Unavailable("away")


class _Polls:
    """A source in which nothing changes, and which says that it was polled."""

    def poll(self, at_s: float) -> Reading:
        samples = tuple(QueueSample(queue=f"redis/q{number}", at_s=at_s, waiting_jobs=0) for number in range(3))
        return Reading(at_s=at_s, samples=samples, poll=BrokerPoll(connection="redis", at_s=at_s, until_s=at_s))

    def cursor(self) -> dict[str, object]:
        return {}

    def close(self) -> None:
        pass


def test_each_poll_that_bounds_entries_is_sent_once_also_where_nothing_changes(
    tmp_path: Path, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_ITEMS_MAX", 2)
    moments = iter([10.0, 10.5, 11.0])
    outbox = Outbox(tmp_path / "redis.json", name="collect-redis", send=control.send, clock=time.time)
    library = replace(RQ, open=lambda *_: _Polls())
    connection = Connection(name="redis", url="redis://127.0.0.1")
    collector = Collector(connection, library, outbox, clock=lambda: next(moments))
    for _ in range(3):
        collector.turn()
    sent = [([poll.at_s for poll in each.polls], len(each.samples)) for each in control.batches.values()]
    assert sent == [([10.0], 2), ([], 1), ([10.5], 0), ([11.0], 0)]


class _Learns(_Polls):
    """One that learns with each poll, and has no events."""

    learned = 0

    def poll(self, at_s: float) -> Reading:
        self.learned += 1
        return super().poll(at_s)

    def cursor(self) -> dict[str, object]:
        return {"learned": self.learned}


def test_what_a_source_without_events_learns_is_stored_each_minute(tmp_path: Path, control: Control) -> None:
    """It was when the collector began and when other queues came: what was learned was learned anew after a restart."""
    moments = iter([10.0, 40.0, 69.0, 70.5, 71.0])
    file = tmp_path / "redis.json"
    outbox = Outbox(file, name="collect-redis", send=control.send, clock=time.time)
    library = replace(RQ, open=lambda *_: _Learns())
    connection = Connection(name="redis", url="redis://127.0.0.1")
    collector = Collector(connection, library, outbox, clock=lambda: next(moments))
    stored = []
    for _ in range(5):
        collector.turn()
        stored.append(json.loads(file.read_text())["cursor"]["learned"])
    assert stored == [1, 1, 1, 4, 4]
