"""Events from inside other people's programs: none fails, waits or ends for want of a control plane."""

import logging
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.emit import emitter as emitter_module
from headway.emit import kept_events, relay
from headway.emit.emitter import PIPE_BYTES, Emitter
from headway.emit.frames import LINE_BYTES_MAX, TEXT_CHARS_MAX
from support.http_control import HttpControl, serving
from support.ports import free_port

QUEUE = "mine/mail"


@pytest.fixture
def control() -> Iterator[HttpControl]:
    with serving(HttpControl()) as control:
        yield control


@pytest.fixture
def emitter(control: HttpControl) -> Iterator[Emitter]:
    emitter = Emitter.from_environment({"HEADWAY_URL": control.url})
    yield emitter
    control.goes_on.set()
    emitter.close(within_s=30.0)


def forked(*acts: object) -> int:
    """A child process that runs ``acts`` one after another and leaves by itself, without the end of Python's own."""
    pid = os.fork()
    if pid == 0:
        try:
            for act in acts:
                act()
        finally:
            os._exit(0)
    return pid


def test_what_is_reported_arrives_as_it_was_reported(control: HttpControl, emitter: Emitter) -> None:
    before_s = time.time()
    emitter.report("enqueued", QUEUE, "1", at_s=1_000.5, attempt=2, job_class="mail.send")
    emitter.report("started", QUEUE, "1", enqueued_at_s=1_000.5)
    emitter.report("failed", QUEUE, "1", started_at_s=1_001.0)
    emitter.report("retried", QUEUE, "1")
    emitter.report("finished", QUEUE, "1", started_at_s=None)
    first, *others = control.until(5)
    about = {"queue": QUEUE, "job_id": "1"}
    assert first == {**about, "kind": "enqueued", "at_s": 1_000.5, "attempt": 2, "job_class": "mail.send"}
    assert all(before_s <= event.pop("at_s") <= time.time() for event in others)
    assert others == [
        {**about, "kind": "started", "enqueued_at_s": 1_000.5},
        {**about, "kind": "failed", "started_at_s": 1_001.0},
        {**about, "kind": "retried"},
        {**about, "kind": "finished"},
    ]


class Name(str):
    """What a library makes of a name."""

    __slots__ = ()


def test_texts_and_numbers_of_other_kinds_are_taken_for_what_they_are(control: HttpControl, emitter: Emitter) -> None:
    emitter.report(Name("enqueued"), Name(QUEUE), Name("1"), at_s=5)
    assert control.until(1) == [{"kind": "enqueued", "queue": QUEUE, "job_id": "1", "at_s": 5}]


def test_what_forked_processes_report_arrives_even_of_one_that_was_killed(
    control: HttpControl, emitter: Emitter
) -> None:
    children = [
        forked(*[lambda n=n, c=c: emitter.report("started", QUEUE, f"{c}.{n}") for n in range(200)]) for c in range(3)
    ]
    killed = forked(lambda: emitter.report("started", QUEUE, "last"), lambda: os.kill(os.getpid(), signal.SIGKILL))
    for child in [*children, killed]:
        os.waitpid(child, 0)
    events = control.until(601)
    assert sorted(event["job_id"] for event in events) == sorted(
        [*(f"{c}.{n}" for c in range(3) for n in range(200)), "last"]
    )
    assert len({batch["producer"] for batch in control.batches}) == 1


@pytest.mark.parametrize(
    "line",
    [
        b"\x05\x00hello\n",
        b"\xff" * 5_000 + b"\n",
        b"[" * 4_000 + b"\n",
        b"[" + b"9" * 4_500 + b"]\n",
        b"{}\n7\n[]\n",
        b'["x","started","a/b","1",1.0,null,null,null,null]\n',
        b'[1e999,"started","a/b","1",1.0,null,null,null,null]\n',
        b'[%d,"started","a/b","1",1.0,null,null,null,null]\n' % 2**70,
        b"(" + b"\xff\xff\xff\x7f" + b"\n",  # for marshal a tuple of 16 GB
    ],
    ids=range(9),
)
def test_what_a_forked_process_writes_beside_events_ends_nothing(
    control: HttpControl, emitter: Emitter, line: bytes
) -> None:
    """It may be another user since: it took the thread's life, or the memory of the process that forked it."""
    child = forked(
        lambda: setattr(emitter_module, "packed", lambda _event: line),
        lambda: emitter.report("started", QUEUE, "none"),
    )
    os.waitpid(child, 0)
    emitter.report("started", QUEUE, "1")
    assert [event["job_id"] for event in control.until(1)] == ["1"]
    assert 0 < emitter.dropped_events < 10


def test_a_program_whose_first_process_ends_as_it_forks_reports_all_the_same(control: HttpControl) -> None:
    program = """
import os, time
from headway.emit.emitter import Emitter
emitter = Emitter.from_environment()
first = os.getpid()
if os.fork():
    os._exit(0)  # as a program does that goes into the background
while os.path.exists(f"/proc/{first}"):
    time.sleep(0.01)
emitter.report("enqueued", "mine/mail", "of a daemon")
"""
    subprocess.run([sys.executable, "-c", program], env={"HEADWAY_URL": control.url}, check=True, timeout=30)
    assert [event["job_id"] for event in control.until(1)] == ["of a daemon"]


def test_a_program_that_ends_sends_what_is_left(control: HttpControl) -> None:
    program = 'from headway.emit.emitter import Emitter; Emitter.from_environment().report("enqueued", "a/b", "1")'
    subprocess.run([sys.executable, "-c", program], env={"HEADWAY_URL": control.url}, check=True, timeout=30)
    assert len(control.until(1)) == 1


def test_an_answer_that_no_control_plane_gives_ends_nothing(control: HttpControl, emitter: Emitter) -> None:
    control.status, control.detail = 500, b"[" * 60_000
    emitter.report("enqueued", QUEUE, "1")
    control.tried(2)
    control.status = 202
    control.until(1)


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_what_is_not_taken_now_is_sent_again_as_the_same_batch(
    control: HttpControl, emitter: Emitter, status: int
) -> None:
    control.status = status
    emitter.report("enqueued", QUEUE, "1")
    control.tried(2)
    control.status = 202
    control.until(1)
    assert [batch["sequence"] for batch in control.batches] == [1]
    assert emitter.dropped_events == 0


def test_a_control_plane_that_is_away_gets_what_is_kept_when_it_comes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="headway.emit")
    port = free_port()
    emitter = Emitter.from_environment({"HEADWAY_URL": f"http://127.0.0.1:{port}"})
    for n in range(10):
        emitter.report("enqueued", QUEUE, str(n))
        time.sleep(0.05)
    with serving(HttpControl(), port) as control:
        assert [event["job_id"] for event in control.until(10)] == [str(n) for n in range(10)]
        emitter.close(within_s=30.0)
    held, flows = [record.getMessage() for record in caplog.records]
    assert held.startswith(f"telemetry of jobs: held back: control plane at http://127.0.0.1:{port}: ")
    assert flows == "telemetry of jobs flows again; 0 events were dropped"


def test_a_batch_that_is_never_taken_is_dropped_and_counted_and_the_next_is_not(
    control: HttpControl, emitter: Emitter
) -> None:
    control.status = 422
    emitter.report("enqueued", QUEUE, "1")
    control.tried(1)
    control.status = 202
    emitter.report("enqueued", QUEUE, "2")
    control.until(1)
    assert [(batch["sequence"], batch["dropped_events"]) for batch in control.batches] in ([(2, 1)], [(1, 0), (2, 0)])
    assert emitter.dropped_events == 1


def test_while_nobody_takes_them_the_newest_are_kept_and_the_others_counted(
    control: HttpControl, emitter: Emitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_events, "KEPT_EVENTS_MAX", 100)
    control.status = 503
    emitter.report("enqueued", QUEUE, "first")
    control.tried(1)
    for n in range(150):
        emitter.report("enqueued", QUEUE, str(n))
    tries = control.tries
    control.tried(tries + 2)
    control.status = 202
    events = control.until(101)
    assert [event["job_id"] for event in events] == ["first", *(str(n) for n in range(50, 150))]
    assert [batch["dropped_events"] for batch in control.batches] == [0, 50]
    assert emitter.dropped_events == 50


def test_events_with_long_names_are_bounded_by_what_they_take(
    control: HttpControl, emitter: Emitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_events, "KEPT_BYTES_MAX", 20_000)
    control.status = 503
    emitter.report("enqueued", QUEUE, "first")
    control.tried(1)
    for n in range(100):
        emitter.report("enqueued", QUEUE, f"{n:0490}")
    tries = control.tries
    control.tried(tries + 2)
    dropped = emitter.dropped_events
    assert 50 < dropped < 80
    control.status = 202
    events = control.until(101 - dropped)
    assert [event["job_id"] for event in events] == ["first", *(f"{n:0490}" for n in range(dropped, 100))]


def test_a_control_plane_that_hangs_delays_nobody_and_what_found_no_room_is_counted(
    control: HttpControl, emitter: Emitter
) -> None:
    control.goes_on.clear()
    emitter.report("enqueued", QUEUE, "first")
    control.tried(1)
    line_bytes = 1_050
    events = 2 * PIPE_BYTES // line_bytes  # the thread waits for the answer, and the pipe is full by half of them
    took_s = []
    for n in range(events):
        began_s = time.perf_counter()
        emitter.report("enqueued", QUEUE, f"{n:0490}", job_class="c" * 500)
        took_s.append(time.perf_counter() - began_s)
    assert sum(took_s) < relay.PAUSE.longest_s  # a write that waits would do so until the answer
    lost = emitter.dropped_events
    assert lost > 0
    control.goes_on.set()
    control.until(1 + events - lost)
    emitter.report("enqueued", QUEUE, "last")
    control.until(2 + events - lost)
    assert sum(batch["dropped_events"] for batch in control.batches) == lost == emitter.dropped_events


@pytest.mark.parametrize(
    "event",
    [
        ("enqueued", QUEUE, ""),
        ("enqueued", "", "1"),
        ("enqueued", QUEUE, "nul \0"),
        ("enqueued", QUEUE, "half a pair \ud800"),
        ("enqueued", QUEUE, "x" * (TEXT_CHARS_MAX + 1)),
        ("enqueued", QUEUE, "y" * LINE_BYTES_MAX),
        ("enqueued", QUEUE, object()),
    ],
)
def test_what_can_be_no_event_is_dropped_and_counted_and_keeps_no_other_back(
    control: HttpControl, emitter: Emitter, event: tuple[str, str, str]
) -> None:
    emitter.report(*event)
    emitter.report("enqueued", QUEUE, "1", at_s=math.nan)
    emitter.report("enqueued", QUEUE, "good")
    assert [event["job_id"] for event in control.until(1)] == ["good"]
    assert control.batches[0]["dropped_events"] == emitter.dropped_events == 2


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"HEADWAY_URL": "127.0.0.1:8460"}, "HEADWAY_URL=127.0.0.1:8460 is no address"),
        ({"HEADWAY_URL": "http://127.0.0.1:none"}, "HEADWAY_URL=http://127.0.0.1:none is no address"),
        ({"HEADWAY_TOKEN_FILE": "/nowhere"}, "HEADWAY_TOKEN_FILE=/nowhere"),
        ({"HEADWAY_URL": "https://127.0.0.1:1", "HEADWAY_TLS_CA": "/nowhere"}, "HEADWAY_TLS_CA=/nowhere"),
    ],
)
def test_a_mistake_in_its_settings_is_logged_and_fails_nobody(
    environment: dict[str, str], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    emitter = Emitter.from_environment(environment)
    emitter.report("enqueued", QUEUE, "1")
    emitter.close(within_s=30.0)
    assert [record.getMessage() for record in caplog.records if said in record.getMessage()]


def test_the_token_is_shown(control: HttpControl, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("hwt_secret\n")
    file.chmod(0o600)
    emitter = Emitter.from_environment({"HEADWAY_URL": control.url, "HEADWAY_TOKEN_FILE": str(file)})
    emitter.report("enqueued", QUEUE, "1")
    control.until(1)
    emitter.close()
    assert control.tokens == {"Bearer hwt_secret"}


def test_an_end_does_not_wait_for_a_control_plane_that_hangs(control: HttpControl, emitter: Emitter) -> None:
    control.goes_on.clear()
    emitter.report("enqueued", QUEUE, "1")
    control.tried(1)
    emitter.close(within_s=0.1)  # returns, or the test runs into its limit
    emitter.report("enqueued", QUEUE, "2")
