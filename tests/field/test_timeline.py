"""A recording as text has what each witness saw and what was decided, in the order of time."""

from field.recording import Answer, Decided, Event, Kind, Processes, Recording, Shown
from field.timeline import timeline


def test_a_timeline_counts_from_the_first_start_and_shows_changes_once() -> None:
    shown = (Shown(worker_id="w1234567", state="running", is_busy=True),)
    recording = Recording(
        sent={"long-0": 9.0},
        events=(
            Event(at_s=10.0, kind=Kind.START, worker_id="w1234567", job_id="long-0"),
            Event(at_s=20.0, kind=Kind.END, worker_id="w1234567", job_id="long-0"),
        ),
        answers=(Answer(at_s=11.0, workers=shown), Answer(at_s=12.0, workers=shown)),
        processes=(Processes(at_s=11.5, worker_ids=frozenset({"w1234567"})),),
        decisions=(Decided(at_s=15.0, text="1 by work_in_progress"),),
    )
    assert [line.strip() for line in timeline(recording)] == [
        "0.0 log start w12345 long-0",
        "1.0 w12345 running busy",
        "1.5 w12345 lives",
        "5.0 decided 1 by work_in_progress",
        "10.0 log end w12345 long-0",
    ]
