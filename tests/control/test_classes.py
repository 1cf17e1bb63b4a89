"""The names of job classes are bounded, a queue and hour."""

from headway.control.ingest.batch_validation import rows_of
from headway.control.ingest.job_classes import CLASSES_MAX, OTHER_CLASS, JobClasses
from headway.scaling.model import EventKind, JobEvent, TelemetryBatch

NOW_S = 1_800_000_000.0


def names(classes: JobClasses, given: list[str], *, queue: str = "q", at_s: float = NOW_S) -> list[str | None]:
    return [classes.name(each, queue=queue, received_at_s=at_s) for each in given]


def test_classes_beyond_the_bound_share_a_name_and_those_known_keep_theirs() -> None:
    classes, many = JobClasses(), [f"Job{number}" for number in range(CLASSES_MAX)]
    assert names(classes, many) == many
    assert names(classes, ["New", "Job7", "Newer"]) == [OTHER_CLASS, "Job7", OTHER_CLASS]
    assert names(classes, ["New"], queue="another") == ["New"]


def test_the_next_hour_begins_anew() -> None:
    classes = JobClasses()
    names(classes, [f"Job{number}" for number in range(CLASSES_MAX)])
    assert names(classes, ["New"], at_s=NOW_S + 3600) == ["New"]


def test_a_clock_that_was_ahead_for_a_while_holds_no_later_hour() -> None:
    classes = JobClasses()
    names(classes, [f"Job{number}" for number in range(CLASSES_MAX)], at_s=NOW_S + 86_400)
    assert names(classes, ["New"]) == ["New"]


def test_a_job_without_a_class_stays_without_one() -> None:
    assert JobClasses().name(None, queue="q", received_at_s=NOW_S) is None
    assert JobClasses().name("", queue="q", received_at_s=NOW_S) is None


def test_ingest_writes_the_bounded_name() -> None:
    events = tuple(
        JobEvent(queue="q", job_id="1", kind=EventKind.RETRIED, at_s=NOW_S, job_class=f"Job{number}")
        for number in range(CLASSES_MAX + 1)
    )
    batch = TelemetryBatch(producer="p", sequence=1, sent_at_s=NOW_S, events=events)
    rows = rows_of(batch, received_at_s=NOW_S, offset_s=0.0, classes=JobClasses()).rows
    assert [row.job_class for row in rows[-2:]] == [f"Job{CLASSES_MAX - 1}", OTHER_CLASS]
