"""The outbox: everything is delivered once, whatever ends in between."""

import json
import random
import stat
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from emit.service import Service, serving
from headway.emit import outbox as module
from headway.emit.client import TelemetryClient
from headway.emit.outbox import RESERVED_AT_ONCE, Outbox
from headway.emit.outbox_folder import json_pieces, state_folder, write_json
from headway.errors import Invalid, Misconfigured, Unavailable
from headway.scaling.model import (
    DueJobs,
    EventKind,
    JobEvent,
    QueueSample,
    Receipt,
    Suspension,
    TelemetryBatch,
    WorkerActivity,
)
from support.flushed import Disk

SAMPLE = QueueSample(queue="redis/mail", at_s=1.0, waiting_jobs=1)
WHOLE_SAMPLE = replace(
    SAMPLE, delayed_jobs=3, due=(DueJobs(within_s=5.0, jobs=2),), suspension=Suspension.LIBRARY, oldest_age_s=4.0
)
ACTIVITY = WorkerActivity(host="a", pid=7, is_busy=True)


def event(number: int) -> JobEvent:
    return JobEvent(queue="redis/mail", job_id=str(number), kind=EventKind.ENQUEUED, at_s=float(number))


class Control:
    """What a control plane keeps, and the errors to answer with instead."""

    def __init__(self) -> None:
        self.batches: list[TelemetryBatch] = []
        self.answers: Iterator[Exception | None] = iter(())

    def send(self, batch: TelemetryBatch) -> None:
        answer = next(self.answers, None)
        if not isinstance(answer, Unavailable):
            self.batches.append(batch)
        if answer is not None:
            raise answer


@pytest.fixture
def control() -> Control:
    return Control()


@pytest.fixture
def opened(tmp_path: Path, control: Control):
    """Opens the outbox, as each new process does."""
    return lambda: Outbox(
        tmp_path / "state.json", name="test", send=control.send, clock=lambda: 5.0, chance=lambda: 1.0
    )


def test_what_is_offered_arrives_once_and_numbers_grow(opened, control: Control) -> None:
    outbox = opened()
    for number in range(3):
        outbox.offer(events=[event(number)], samples=[SAMPLE], activities=[ACTIVITY], cursor={"at": number})
        assert outbox.push()
        assert outbox.is_empty
    assert [batch.sequence for batch in control.batches] == [0, 1, 2]
    assert {batch.producer for batch in control.batches} == {control.batches[0].producer}
    assert control.batches[2].events == (event(2),)
    assert control.batches[2].samples == (SAMPLE,)
    assert control.batches[2].activities == (ACTIVITY,)
    assert control.batches[2].sent_at_s == 5.0


@pytest.mark.parametrize("sample", [SAMPLE, WHOLE_SAMPLE])
@pytest.mark.parametrize("cursor", [{"at": 1}, None])
def test_a_batch_that_was_not_answered_goes_out_again_from_the_next_process(
    opened, control: Control, cursor: dict | None, sample: QueueSample
) -> None:
    control.answers = iter([Unavailable("away")])
    first = opened()
    first.offer(events=[event(0)], cursor={"at": 0})
    first.push()
    first.push()
    control.batches.clear()
    control.answers = iter([Unavailable("away")])
    first.offer(events=[event(1)], samples=[sample], activities=[ACTIVITY], cursor=cursor)
    assert not first.push()
    second = opened()
    assert second.cursor == (cursor or {"at": 0})
    assert not second.is_empty
    assert second.push()
    (batch,) = control.batches
    assert (batch.sequence, batch.events, batch.samples) == (1, (event(1),), (sample,))
    assert batch.activities == (ACTIVITY,)


def test_a_batch_is_in_the_file_with_its_cursor_before_it_is_sent(tmp_path: Path, control: Control) -> None:
    seen = []
    file = tmp_path / "state.json"
    outbox = Outbox(file, name="test", send=lambda batch: seen.append(json.loads(file.read_text())), clock=lambda: 5.0)
    outbox.offer(events=[event(1)], cursor={"at": 1})
    outbox.push()
    (held,) = seen
    assert held["cursor"] == {"at": 1}
    assert held["pending"]["events"] == [{"queue": "redis/mail", "job_id": "1", "kind": "enqueued", "at_s": 1.0}]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_readings_are_not_worth_a_file_and_the_next_one_replaces_them(opened, control: Control, tmp_path: Path) -> None:
    outbox = opened()
    outbox.offer(samples=[SAMPLE])
    outbox.push()
    written = (tmp_path / "state.json").read_text()
    control.answers = iter([Unavailable("away")])
    for _ in range(3):
        outbox.offer(samples=[SAMPLE])
        outbox.push()
        assert outbox.is_empty
    assert (tmp_path / "state.json").read_text() == written


def test_no_number_is_used_twice_whatever_ends_when(opened, control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESERVED_AT_ONCE", 3)
    chance = random.Random(1)
    outbox, offered, delivered = opened(), 0, []
    for _ in range(300):
        match chance.choice(["events", "samples", "samples", "end"]):
            case "end":  # at once: nothing is closed
                outbox = opened()
            case what:
                control.answers = iter([chance.choice([None, None, Unavailable("away")])])
                if outbox.is_empty and what == "events":
                    outbox.offer(events=[event(offered)], cursor={"at": offered})
                    offered += 1
                elif outbox.is_empty:
                    outbox.offer(samples=[SAMPLE])
                outbox.push()
    control.answers = iter(())
    outbox.push()
    delivered = {}
    for batch in control.batches:
        # The same number again is the same batch: ingest counts it once.
        assert delivered.setdefault(batch.sequence, batch) == batch
    assert [each.job_id for batch in delivered.values() for each in batch.events] == [str(n) for n in range(offered)]


def test_numbers_are_reserved_many_at_a_time(opened, control: Control) -> None:
    opened_first = opened()
    opened_first.offer(samples=[SAMPLE])
    opened_first.push()
    second = opened()
    second.offer(samples=[SAMPLE])
    second.push()
    assert [batch.sequence for batch in control.batches] == [0, RESERVED_AT_ONCE]


def test_pauses_grow_to_a_bound_and_end_with_an_answer(opened, control: Control) -> None:
    control.answers = iter([Unavailable("away")] * 8)
    outbox = opened()
    outbox.offer(events=[event(1)], cursor={})
    pauses_s = []
    while not outbox.push():
        pauses_s.append(outbox.pause_s)
    assert pauses_s == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert outbox.pause_s == 0.0


def test_what_the_control_plane_will_never_take_is_dropped_and_logged(
    opened, control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    control.answers = iter([Invalid("queue is empty")])
    outbox = opened()
    outbox.offer(events=[event(1)], cursor={})
    assert outbox.push()
    assert "telemetry dropped" in caplog.text
    assert "queue is empty" in caplog.text


def test_being_cut_off_is_logged_once_and_its_end_once(
    opened, control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    control.answers = iter([Unavailable("away")] * 5)
    outbox = opened()
    for _ in range(7):
        if outbox.is_empty:
            outbox.offer(samples=[SAMPLE])
        outbox.push()
    assert [record.message.split(" producer")[0] for record in caplog.records] == [
        "telemetry held",
        "telemetry flows again",
    ]


def test_after_a_good_end_nothing_is_sent_again(opened, control: Control) -> None:
    outbox = opened()
    outbox.offer(events=[event(1)], cursor={"at": 1})
    outbox.push()
    outbox.close()
    again = opened()
    assert again.is_empty
    assert again.cursor == {"at": 1}


class Cursor(dict[str, object]):
    """One that shows whether it is still held."""


def test_a_cursor_is_held_as_text_and_not_as_objects(opened, control: Control) -> None:
    outbox = opened()
    cursor = Cursor(queues={"mail": {"waiting": {"1": 5.0}}})
    held = weakref.ref(cursor)
    outbox.offer(events=[event(1)], cursor=cursor)
    del cursor
    assert held() is None
    assert outbox.push()
    assert outbox.cursor == opened().cursor == {"queues": {"mail": {"waiting": {"1": 5.0}}}}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": {}},
        {"a": None, "b": [1, {"c": 2.5}], "d": {"e": {"f": "g"}, "h": []}},
        {"é\n": {"\udcff": 1}},
        {1: {2: 3}},
    ],
)
def test_json_in_pieces_is_the_same_json(value: dict) -> None:
    assert b"".join(json_pieces(value)).decode() == json.dumps(value, separators=(",", ":"))


def test_a_disk_that_is_full_holds_the_batch_back(
    opened, control: Control, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_args: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    outbox = opened()
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_json", full)
        outbox.offer(events=[event(1)], cursor={"at": 1})
        assert not outbox.push()
        assert "cannot be written: No space left on device" in caplog.text
        assert control.batches == []
    assert outbox.push()
    assert [batch.events for batch in control.batches] == [(event(1),)]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 99}', '{"version": 1, "producer": "x"}'])
def test_a_file_that_is_damaged_is_refused_with_what_to_do(tmp_path: Path, opened, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(Misconfigured, match=r"state\.json .*delete it to begin anew"):
        opened()


def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    taken = pytest.raises(Misconfigured, match=r"in use by process \d+: end that one, or .*HEADWAY_STATE_DIR")
    with state_folder(tmp_path / "state"), taken, state_folder(tmp_path / "state"):
        pass
    with state_folder(tmp_path / "state"):
        pass


def test_answers_that_got_lost_on_a_real_wire_change_nothing(tmp_path: Path) -> None:
    with serving(Service()) as service:
        hasty, patient = (TelemetryClient(service.address, token=None, deadline_s=each_s) for each_s in (1.0, 60.0))
        clients = iter([hasty, patient, patient])
        outbox = Outbox(
            tmp_path / "state.json", name="test", send=lambda batch: next(clients).send(batch), clock=lambda: 5.0
        )
        service.forgets_to_answer.set()
        outbox.offer(events=[event(1)], cursor={"at": 1})
        assert not outbox.push()
        service.forgets_to_answer.clear()
        service.fails_with = grpc.StatusCode.CANCELLED
        assert not outbox.push()
        service.fails_with = None
        assert outbox.push()
        assert len(service.calls) == 3
        assert service.events == [event(1)]
        hasty.close()
        patient.close()


def test_what_a_control_plane_leaves_out_is_logged_when_it_begins_and_when_it_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refused = iter(("10 queues are known", "10 queues are known", ""))
    outbox = Outbox(
        tmp_path / "state.json",
        name="test",
        send=lambda _: Receipt(is_duplicate=False, refused=next(refused)),
        clock=lambda: 5.0,
    )
    with caplog.at_level("INFO"):
        for _ in range(3):
            outbox.offer(samples=[SAMPLE])
            assert outbox.push()
    assert [record.getMessage().split(" producer=")[0] for record in caplog.records] == [
        "telemetry refused in part",
        "telemetry taken whole again",
    ]


def test_a_file_is_on_the_disk_before_it_has_its_name_and_its_name_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a loss of power leaves an empty file, or the one before, and what was sent is sent again."""
    disk = Disk(monkeypatch)
    write_json(tmp_path / "redis.json", {"a": 1})
    assert disk.take() == ["flush redis.json.new", "name redis.json", f"flush {tmp_path.name}"]
