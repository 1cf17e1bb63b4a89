"""What a worker's own report proves, line by line, through a real pipe. Seconds are of one clock here."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.agent.model import NOT_KNOWN, Activity
from headway.agent.reporting.forgotten_jobs import FILE, forgotten_jobs
from headway.agent.reporting.report_lines import (
    LINE_BYTES_MAX,
    REPORT_NAME_CHARS_MAX,
    Malformed,
    ReportKind,
    understood,
)
from headway.agent.reporting.report_pipe import LINES_PER_READ_MAX, READ_BYTES_MAX, ReportPipe, make_pipe, open_pipe
from headway.agent.reporting.worker_report import (
    BEAT_FRESH_S,
    ENDS_KEPT_MAX,
    FORGOTTEN_AFTER_S,
    LOOP_STILL_S,
    RUNNING_JOBS_MAX,
    ReportedEnd,
    WorkerReport,
)
from headway.agent.state.state_dir import StateFolder
from headway.scaling.model import RUNNING_JOBS_NAMED_MAX, ActivitySource
from support.report_lines import beat, job, line, running

REPORTER = ActivitySource.REPORTER


class Wire:
    """A worker's end of its pipe, and the agent's."""

    def __init__(self, folder: Path) -> None:
        self.folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self.path = folder / "w"
        self.pipe = make_pipe("w", folder=self.folder, kind=("mail", "py"), uid=os.geteuid())
        self.writer = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)

    def say(self, *lines: bytes, at_s: float, held_s: float = 0.0, events_max: int = 1_000) -> Activity:
        """Write lines, read them ``held_s`` after they were written, and what they prove then."""
        for each in lines:
            os.write(self.writer, each)
        now_s = at_s + held_s
        self.pipe.read(now_s=now_s, unix_s=now_s, events_max=events_max)
        return self.activity(now_s)

    def activity(self, now_s: float) -> Activity:
        return self.pipe.report.activity(now_s=now_s, unix_ahead_s=0.0)

    def is_busy(self, now_s: float) -> bool | None:
        return self.activity(now_s).is_busy


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    wire = Wire(tmp_path)
    yield wire
    wire.pipe.close()
    os.close(wire.writer)
    os.close(wire.folder)


@pytest.fixture
def idle(wire: Wire) -> Wire:
    """One of which two beats have said that it does nothing, the last at 10 s."""
    wire.say(beat(at_s=8.0), beat(at_s=10.0), at_s=10.0)
    assert wire.activity(10.0) == Activity(
        is_busy=False, source=REPORTER, known_at_s=10.0, running_jobs=0, ended_jobs=0
    )
    return wire


def test_who_has_said_nothing_is_not_known(wire: Wire) -> None:
    assert wire.activity(10.0) == NOT_KNOWN


def test_a_worker_is_idle_by_a_fresh_beat_whose_loop_turns(wire: Wire) -> None:
    assert wire.say(beat(at_s=2.0), at_s=2.0).is_busy is None  # does its loop turn?
    assert wire.say(beat(at_s=4.0), at_s=4.0).is_busy is False
    assert wire.is_busy(4.0 + BEAT_FRESH_S) is False
    assert wire.is_busy(4.1 + BEAT_FRESH_S) is None


def test_a_worker_is_busy_by_the_jobs_of_its_beat(idle: Wire) -> None:
    found = idle.say(beat("a", "b", at_s=12.0), at_s=12.0)
    assert (found.is_busy, found.running_jobs, [each.job_id for each in found.running]) == (True, 2, ["a", "b"])
    assert idle.say(beat(at_s=14.0), at_s=14.0).is_busy is False


def test_a_start_proves_a_worker_busy_at_once_until_its_end(idle: Wire) -> None:
    found = idle.say(job("begun", "a", at_s=10.5), at_s=10.5)
    assert (found.is_busy, found.known_at_s, found.busy_since_s) == (True, 10.5, 10.5)
    (named,) = found.running
    assert (named.job_id, named.queue, named.job_class, named.attempt) == ("a", "mail", "shop.send", 1)
    assert idle.is_busy(1_000.0) is True  # however long nothing more is heard
    assert idle.say(job("ended", "a", at_s=10.7), at_s=10.7).is_busy is False


def test_a_start_that_a_beat_may_have_missed_is_not_ended_by_that_beat(idle: Wire) -> None:
    """The process of the job writes its start; the main process may not know of it yet."""
    assert idle.say(job("begun", "a", at_s=11.9), beat(at_s=12.0), at_s=12.0).is_busy is True
    assert idle.say(beat(at_s=14.0), at_s=14.0).is_busy is False  # its end was lost


def test_a_start_that_beats_have_listed_ends_with_the_first_that_does_not(idle: Wire) -> None:
    idle.say(job("begun", "a", at_s=11.9), beat("a", at_s=12.0), at_s=12.0)
    assert idle.say(beat(at_s=14.0), at_s=14.0).is_busy is False


def test_a_beat_does_not_revive_a_job_whose_end_was_reported(idle: Wire) -> None:
    """Celery 5.5, whose broker was away while the job ended, lists it for ever."""
    idle.say(job("begun", "a", at_s=11.0), beat(at_s=12.0, running=[running("a", started_at_s=10.9)]), at_s=12.0)
    assert idle.say(job("ended", "a", at_s=12.5, started_at_s=11.0), at_s=12.5).is_busy is False
    for at_s in (14.0, 16.0, 18.0):
        lists_it = beat(at_s=at_s, running=[running("a", started_at_s=10.9)])
        assert idle.say(lists_it, at_s=at_s).is_busy is False
    assert idle.pipe.report.running == ()


def test_a_beat_from_before_an_end_does_not_let_a_later_beat_revive_the_job(idle: Wire) -> None:
    """The processes of a pool write their own lines: the end came before a beat that is older and lists no job yet."""
    begun, ended = job("begun", "a", at_s=11.9), job("ended", "a", at_s=12.5, started_at_s=11.9)
    assert idle.say(begun, ended, beat(at_s=12.0), at_s=12.5).is_busy is False
    assert idle.say(beat(at_s=14.0, running=[running("a", started_at_s=11.9)]), at_s=14.0).is_busy is False


def test_a_job_that_the_end_of_its_process_has_cut_is_none_that_the_worker_has_done(idle: Wire) -> None:
    found = idle.say(job("ended", "a", at_s=11.0), job("ended", "b", at_s=11.5, cut=True), at_s=11.5)
    assert found.ended_jobs == 1


def test_a_job_that_began_again_after_its_end_runs_by_the_beat_that_lists_it(idle: Wire) -> None:
    """Its message was delivered again, and the line of its second start was lost."""
    idle.say(job("begun", "a", at_s=11.0), job("ended", "a", at_s=11.5, started_at_s=11.0), at_s=11.5)
    found = idle.say(beat(at_s=12.0, running=[running("a", started_at_s=11.8)]), at_s=12.0)
    assert (found.is_busy, found.running_jobs) == (True, 1)


def test_ends_are_kept_while_a_beat_may_list_them(idle: Wire) -> None:
    report = idle.pipe.report
    for number in range(ENDS_KEPT_MAX + 5):
        idle.say(job("ended", f"j{number}", at_s=11.0), at_s=11.0, events_max=0)
    assert len(report._ends) == ENDS_KEPT_MAX
    idle.say(beat(f"j{ENDS_KEPT_MAX}", at_s=12.0), at_s=12.0)
    assert list(report._ends) == [(f"j{ENDS_KEPT_MAX}", 1)]
    idle.say(beat(at_s=14.0), at_s=14.0)
    assert not report._ends


def test_what_a_worker_lists_for_ever_is_known_to_have_ended_over_a_restart(idle: Wire, tmp_path: Path) -> None:
    """Up to Celery 5.5, after the loss of its broker; it was busy for the next agent until somebody replaced it."""
    idle.say(job("begun", "a", at_s=11.0), job("ended", "a", at_s=13.0, started_at_s=11.0), at_s=13.0)
    idle.say(job("begun", "b", at_s=13.5), job("ended", "b", at_s=13.9, started_at_s=13.5), at_s=13.9)
    idle.say(beat("a", "b", at_s=14.0), at_s=14.0)
    assert idle.pipe.report.forgotten == {}, "the main process learns of an end a moment later"
    last_s = 13.0 + FORGOTTEN_AFTER_S
    assert idle.say(beat("a", at_s=last_s), at_s=last_s).is_busy is False
    assert idle.pipe.report.forgotten == {("a", 1): ReportedEnd(started_at_s=11.0, at_s=13.0)}

    state = StateFolder(tmp_path / "state")
    with state.only_agent():
        forgotten_jobs(state).keep({"w": idle.pipe.report.forgotten})
        state_kept = forgotten_jobs(state).read()
    assert state_kept == {"w": idle.pipe.report.forgotten}
    next_report = WorkerReport()
    next_report.take_over(state_kept["w"])
    assert next_report.forgotten == state_kept["w"]
    for number in range(3):
        at_s = last_s + 2.0 * (number + 1)
        next_report.take(understood(beat("a", at_s=at_s)), at_s=at_s, events_max=100)
        assert not next_report.running_jobs
    assert next_report.activity(now_s=at_s, unix_ahead_s=0.0).is_busy is False
    assert next_report.forgotten == state_kept["w"]
    again = job("begun", "a", at_s=at_s)
    next_report.take(understood(again), at_s=at_s, events_max=100)
    assert next_report.activity(now_s=at_s, unix_ahead_s=0.0).is_busy, "its message was delivered again"


@pytest.mark.parametrize("text", ['{"w": [["a", 1, 2.0]]}', '{"w": 3}', '{"w": [["a", "x", 1, 2]]}', "[", "[]"])
def test_what_no_agent_has_written_of_forgotten_jobs_is_nothing(text: str, tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    with state.only_agent():
        state.replace(FILE, text)
        assert forgotten_jobs(state).read() == {}


def test_the_next_attempt_of_a_job_may_begin_before_the_end_of_the_first_is_reported(idle: Wire) -> None:
    """In another process of the pool, as with a retry without a pause."""
    idle.say(job("begun", "a", at_s=10.1), job("begun", "a", at_s=10.3, attempt=2), at_s=10.3)
    found = idle.say(job("ended", "a", at_s=10.4, outcome="retried"), at_s=10.4)
    assert (found.is_busy, [each.attempt for each in found.running]) == (True, [2])
    assert idle.say(job("ended", "a", at_s=10.5, attempt=2), at_s=10.5).is_busy is False


def test_a_message_that_was_delivered_again_may_run_beside_itself(idle: Wire) -> None:
    found = idle.say(job("begun", "a", at_s=10.1), job("begun", "a", at_s=10.3), at_s=10.3)
    assert found.running_jobs == 2
    assert idle.say(job("ended", "a", at_s=10.4), at_s=10.4).running_jobs == 1
    assert idle.say(beat("a", at_s=12.0), at_s=12.0).running_jobs == 1
    assert idle.say(job("ended", "a", at_s=12.5), at_s=12.5).is_busy is False


def test_what_was_received_and_not_begun_proves_nothing(idle: Wire) -> None:
    assert idle.say(job("received", "a", at_s=10.5), at_s=10.5).is_busy is False


@pytest.mark.parametrize(
    ("lines", "is_busy"),
    [
        ([beat(at_s=12.0, lost=1)], None),  # a start may be among what was lost
        ([beat(at_s=12.0, lost=1), beat(at_s=14.0, lost=1)], False),  # all is said again
        ([beat(at_s=12.0, lost=1), beat(at_s=14.0, lost=2)], None),
        ([b"{}\n"], None),
        ([b"{}\n", beat(at_s=12.0)], False),
        ([line("later", at_s=11.0)], False),  # of a later version
        ([beat(at_s=12.0, slots=None, begun=None, ended=None)], False),
    ],
)
def test_what_was_lost_makes_a_worker_unknown_until_all_is_said_again(
    idle: Wire, lines: list[bytes], is_busy: bool | None
) -> None:
    assert idle.say(*lines, at_s=14.0).is_busy is is_busy


def test_a_worker_whose_loop_stands_still_is_not_idle(idle: Wire) -> None:
    idle.say(beat(at_s=12.0, loop=500), at_s=12.0)
    assert idle.say(beat(at_s=11.0 + LOOP_STILL_S, loop=500), at_s=16.0).is_busy is False  # it turns every 4 s
    assert idle.say(beat(at_s=12.0 + LOOP_STILL_S, loop=500), at_s=17.0).is_busy is None
    assert idle.say(beat(at_s=18.0, loop=501), at_s=18.0).is_busy is False


def test_lines_that_waited_for_an_agent_are_as_old_as_they_say(wire: Wire) -> None:
    found = wire.say(beat(at_s=8.0), beat(at_s=10.0), at_s=10.0, held_s=600.0)
    assert (found.is_busy, found.known_at_s) == (None, 10.0)
    assert wire.say(beat(at_s=612.0, lost=300), at_s=612.0).is_busy is None
    assert wire.say(beat(at_s=614.0, lost=300), at_s=614.0).is_busy is False


def test_a_beat_of_several_parts_counts_when_all_have_come(idle: Wire) -> None:
    def part(number: int, *jobs: str) -> bytes:
        return beat(*jobs, at_s=12.0, n=7, part=number, parts=3)

    assert idle.say(part(0, "a"), part(1, "b"), at_s=12.0).running_jobs == 2
    assert idle.pipe.report.beat.received_at_s == 10.0
    assert idle.say(part(2, "c"), at_s=12.0).running_jobs == 3
    assert idle.pipe.report.beat.received_at_s == 12.0
    assert idle.say(part(0), part(2), at_s=12.0).running_jobs == 3  # one is missing: it says nothing
    assert idle.say(beat(at_s=14.0), at_s=14.0).is_busy is False


def test_of_many_running_jobs_the_first_are_named_and_all_are_counted(idle: Wire) -> None:
    many = RUNNING_JOBS_NAMED_MAX + 50
    found = idle.say(*(job("begun", f"j{number}", at_s=11.0) for number in range(many)), at_s=11.0)
    assert (found.running_jobs, len(found.running)) == (many, RUNNING_JOBS_NAMED_MAX)
    found = idle.say(*(job("ended", f"j{number}", at_s=11.5) for number in range(many - 1)), at_s=11.5)
    assert (found.is_busy, found.running_jobs) == (True, 1)
    idle.say(job("ended", "the last", at_s=11.6), at_s=11.6)
    assert idle.activity(11.6).running_jobs == 0


def test_a_beat_counts_anew_what_is_not_named(idle: Wire) -> None:
    parts = 30
    jobs = [[f"j{part}-{number}" for number in range(10)] for part in range(parts)]
    found = idle.say(
        *(beat(*some, at_s=12.0, n=9, part=part, parts=parts) for part, some in enumerate(jobs)), at_s=12.0
    )
    assert (found.running_jobs, len(found.running)) == (300, RUNNING_JOBS_NAMED_MAX)
    assert idle.say(beat("j0-0", at_s=14.0), at_s=14.0).running_jobs == 1


def test_a_worker_is_busy_by_what_its_pool_runs_and_cannot_name(idle: Wire) -> None:
    """A batch of celery-batches."""
    found = idle.say(beat("a", at_s=12.0, unnamed=2), at_s=12.0)
    assert (found.is_busy, found.running_jobs, [each.job_id for each in found.running]) == (True, 3, ["a"])
    assert idle.say(beat(at_s=14.0, unnamed=1), at_s=14.0).is_busy is True
    revoked = job("ended", "b", at_s=15.0, outcome="revoked")  # a job that never began
    assert idle.say(revoked, at_s=15.0).is_busy is True
    assert idle.say(beat(at_s=16.0, unnamed=0), at_s=16.0).is_busy is False


def test_what_was_reported_of_jobs_is_handed_on_once_and_up_to_a_bound(idle: Wire) -> None:
    lines = [
        job("received", "a", at_s=11.0, entered_at_s=9.0, eta_s=None, redelivered=True),
        job("begun", "a", at_s=11.1),
        job("ended", "a", at_s=11.2, outcome="rejected", started_at_s=11.1, requeued=True),
        job("ended", "b", at_s=11.2),
    ]
    idle.say(*lines, at_s=12.0, events_max=3)
    received, begun, ended = idle.pipe.report.take_events()
    assert (received.kind, received.entered_at_s, received.is_redelivered) == (ReportKind.RECEIVED, 9.0, True)
    assert (begun.kind, begun.entered_at_s) == (ReportKind.BEGUN, None)
    assert (ended.outcome, ended.started_at_s, ended.is_requeued) == ("rejected", 11.1, True)
    assert (idle.pipe.report.take_events(), idle.pipe.report.lost_reports) == ([], 1)


# --- lines ---


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no JSON",
        b"\xff\xfe{\x00",
        b"[" * 4_000,
        b'{"v":1,"t":"begun","id":1' + b"0" * 4_000 + b"}",
        b'{"v":2,"t":"begun","id":"a","queue":"q","at_s":1}',
        b'{"v":1,"t":"begun","id":"","queue":"q","at_s":1}',
        b'{"v":1,"t":"begun","id":["a"],"queue":"q","at_s":1}',
        b'{"v":1,"t":"begun","id":"a","queue":"q","at_s":NaN}',
        b'{"v":1,"t":"begun","id":"a","queue":"q","at_s":1e400}',
        b'{"v":1,"t":"begun","id":"a","queue":"q","at_s":-1}',
        b'{"v":1,"t":"begun","id":"a","queue":"q","at_s":true}',
        b'{"v":1,"t":"begun","id":"a","queue":"q","at_s":1,"attempt":0}',
        b'{"v":1,"t":"ended","id":"a","queue":"q","at_s":1}',
        b'{"v":1,"t":"ended","id":"a","queue":"q","at_s":1,"outcome":[]}',
        beat(at_s=1.0, parts=10**9),
        beat(at_s=1.0, part=1),
        beat(at_s=1.0, running=None),
        beat(at_s=1.0, running=[["a"]]),
        beat(at_s=1.0, lost=-1),
        beat(at_s=1.0, slots=10**9),
        beat(at_s=1.0, loop=2**60),
    ],
)
def test_what_is_no_line_of_the_protocol_is_refused(text: bytes) -> None:
    with pytest.raises(Malformed):
        understood(text)


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.text() | st.integers() | st.floats(), st.lists, max_leaves=12).map(
        lambda value: json.dumps({"v": 1, "t": "beat", "running": value, "queues": value, "id": value}).encode()
    )
)
@settings(max_examples=500)
def test_whatever_a_line_holds_it_is_understood_or_refused(text: bytes) -> None:
    try:
        understood(text)
    except Malformed:
        return


@given(st.text(min_size=1))
def test_a_name_is_one_that_the_control_plane_takes(name: str) -> None:
    said = understood(job("begun", name + "x" * 600, at_s=1.0))
    assert 0 < len(said.job_id) <= REPORT_NAME_CHARS_MAX
    said.job_id.encode()
    assert "\0" not in said.job_id


def test_two_long_names_that_begin_alike_stay_two() -> None:
    one, other = (understood(job("begun", "x" * 2_000 + end, at_s=1.0)) for end in "ab")
    assert one.job_id != other.job_id


# --- bounds ---


def test_a_line_without_an_end_is_counted_once_and_the_next_one_read(wire: Wire) -> None:
    for _ in range(4):
        wire.say(b"x" * LINE_BYTES_MAX, at_s=1.0)
    assert wire.pipe.report.unread_lines == 1
    found = wire.say(b"x\n", job("begun", "a", at_s=2.0), at_s=2.0)
    assert (found.running_jobs, wire.pipe.report.unread_lines) == (1, 1)


def test_a_line_that_comes_in_pieces_is_one(wire: Wire) -> None:
    text = job("begun", "a", at_s=1.0)
    wire.say(text[:20], at_s=1.0)
    assert wire.say(text[20:], at_s=1.0).running_jobs == 1


def test_of_one_reading_only_so_many_lines_count_and_the_worker_is_not_known(idle: Wire) -> None:
    os.write(idle.writer, b"\n" * (LINES_PER_READ_MAX + 500))
    idle.pipe.read(now_s=11.0, unix_s=11.0, events_max=10)
    assert idle.pipe.report.unread_lines == LINES_PER_READ_MAX + 500
    assert idle.is_busy(11.0) is None


def test_one_reading_takes_so_many_bytes_and_no_more(wire: Wire) -> None:
    with suppress(BlockingIOError):
        while True:
            os.write(wire.writer, b"x" * 4_095 + b"\n")
    taken = [wire.pipe.read(now_s=1.0, unix_s=1.0, events_max=10) for _ in range(3)]
    assert taken[0] == READ_BYTES_MAX
    assert taken[-1] < READ_BYTES_MAX


def test_ten_thousand_running_jobs_are_a_number(wire: Wire) -> None:
    for number in range(3 * RUNNING_JOBS_MAX // 20):
        wire.say(*(job("begun", f"{number}-{each}", at_s=1.0) for each in range(20)), at_s=1.0, events_max=0)
    found = wire.activity(1.0)
    assert (found.running_jobs, len(found.running)) == (RUNNING_JOBS_MAX, RUNNING_JOBS_NAMED_MAX)


# --- the pipe ---


def test_a_pipe_is_its_users_alone(wire: Wire) -> None:
    assert oct(wire.path.stat().st_mode & 0o777) == oct(0o600)


def test_what_is_no_pipe_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("/dev/zero")
    folder = os.open(tmp_path, os.O_RDONLY)
    for name, why in (("file", "no pipe"), ("link", "symbolic links"), ("none", "No such file")):
        with pytest.raises(OSError, match=why):
            open_pipe(name, folder=folder, kind=("mail", "py"))
    os.close(folder)


def test_a_pipe_that_nobody_writes_to_any_more_is_watched_no_longer(wire: Wire) -> None:
    wire.say(beat(at_s=1.0), at_s=1.0)
    assert not wire.pipe.is_hung_up
    writer, wire.writer = wire.writer, os.open("/dev/null", os.O_RDONLY)
    os.close(writer)
    wire.pipe.read(now_s=1.0, unix_s=1.0, events_max=1)
    assert wire.pipe.is_hung_up


def test_a_next_agent_reads_what_was_written_without_one(wire: Wire) -> None:
    wire.pipe.close()
    os.write(wire.writer, job("begun", "a", at_s=1.0))
    wire.pipe = open_pipe("w", folder=wire.folder, kind=("mail", "py"))
    assert isinstance(wire.pipe, ReportPipe)
    assert wire.say(at_s=2.0).running_jobs == 1


def test_a_running_job_without_a_class_or_an_attempt_is_a_running_job(wire: Wire) -> None:
    rows = [[*running("a")[:2], None, None, 1.0]]
    found = wire.say(beat(at_s=2.0, running=rows), at_s=2.0)
    assert [(each.job_id, each.job_class, each.attempt) for each in found.running] == [("a", None, None)]
