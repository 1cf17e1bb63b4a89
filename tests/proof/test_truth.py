"""The comparison that the proofs rest on finds what is missing, doubled or half there."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from headway.scaling.measure import BucketRow
from headway.store.metrics.metrics_sink import MetricsSink
from headway_spark.stream.pipeline import Progress
from proof.producers import Ledger, Producer
from proof.truth import Truth, differences, stored, truth


def reported(count: int) -> Ledger:
    """What a producer would have sent: every fifth batch given up where it has a queue of its own."""
    producer = Producer("p", [], seed="1", events_per_s=1.0)
    batches = [producer._batch() for _ in range(count)]
    alone = [batch for batch in batches if batch.events[0].queue.startswith("proof/alone")]
    return Ledger(answered=[batch for batch in batches if batch not in alone], abandoned=alone)


def written(url: str, rows: Iterable[BucketRow]) -> list[BucketRow]:
    sink = MetricsSink(url)
    sink.write(list(rows), Progress(batch_id=1, batch_s=0.0, newest_received_at_s=None))
    sink.close()
    return stored(url)


@pytest.fixture(scope="module")
def expected() -> Truth:
    found = truth([reported(200)])
    assert len(found.maybe) >= 2
    return found


@pytest.fixture
def rows(expected: Truth) -> list[BucketRow]:
    """What Postgres should hold, but for the events that ingest moves."""
    return list(expected.surely.values())


def test_what_was_answered_and_written_does_not_differ(
    expected: Truth, rows: list[BucketRow], migrated_url: str
) -> None:
    found = written(migrated_url, rows)
    assert any(row.job_class for row in found)
    assert differences(replace(expected, overdue=_nothing()), found) == []


def test_a_batch_that_was_given_up_may_be_there_but_not_by_half(expected: Truth, rows: list[BucketRow]) -> None:
    calm = replace(expected, overdue=_nothing())
    alone = next(list(each.values()) for each in expected.maybe.values() if len(each) > 1)
    assert differences(calm, rows) == []
    assert differences(calm, [*rows, *alone]) == []
    assert "missing" in differences(calm, [*rows, *alone[:-1]])[1]


def test_each_event_missing_or_doubled_is_found(expected: Truth, rows: list[BucketRow]) -> None:
    calm = replace(expected, overdue=_nothing())
    busy = next(row for row in rows if row.arrived_jobs)
    others = [row for row in rows if row is not busy]
    assert "missing" in differences(calm, others)[1]
    doubled = replace(busy, arrived_jobs=2 * busy.arrived_jobs)
    assert differences(calm, [*others, doubled])[1].endswith(
        f"arrived_jobs is {doubled.arrived_jobs}, not {busy.arrived_jobs}"
    )


def _nothing() -> dict[str, int]:
    return dict.fromkeys(truth([]).overdue, 0)
