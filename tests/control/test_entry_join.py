"""Starts without an entry get the one that polls and receptions show, before they are written."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from control.telemetry import NOW_S, ingesting
from headway.connections import AGENT
from headway.control.ingest.batch_validation import BATCH_ITEMS_MAX
from headway.control.ingest.entry_join import EntryJoin
from headway.control.ingest.ingest import JOINED_IN_LOOP_MAX, Ingest
from headway.errors import Invalid
from headway.scaling.model import (
    BrokerPoll,
    EnteredJob,
    EventKind,
    JobEvent,
    PolledQueue,
    QueueReceptions,
    QueueSample,
    TelemetryBatch,
)

QUEUE, COLLECTOR, HOST = "shop/mail", "collect-shop", f"{AGENT}h1"
SEQUENCES = count(1)


@pytest.fixture
async def ingest(migrated_url: str, tmp_path: Path) -> AsyncIterator[Ingest]:
    async with ingesting(migrated_url, tmp_path) as ingest:
        yield ingest


def batch(producer: str, **parts: Any) -> TelemetryBatch:
    return TelemetryBatch(producer=producer, sequence=next(SEQUENCES), sent_at_s=NOW_S, **parts)


def poll(at_s: float, *rows: PolledQueue, after_s: float | None = None) -> BrokerPoll:
    return BrokerPoll(connection="shop", at_s=at_s, until_s=at_s, after_s=after_s, queues=rows)


def read(*polls: BrokerPoll) -> TelemetryBatch:
    """What a collector sends that reads the queue."""
    samples = (QueueSample(queue=QUEUE, at_s=polls[0].at_s, waiting_jobs=0),)
    return batch(COLLECTOR, polls=polls, samples=samples)


def job(name: str, *, at_s: float = NOW_S, received_at_s: float | None = NOW_S, **more: Any) -> tuple[JobEvent, ...]:
    """What an agent sends when a job has begun."""
    about = {"queue": QUEUE, "job_id": name, "at_s": at_s, "attempt": 1}
    return (
        JobEvent(kind=EventKind.ENQUEUED, **about),
        JobEvent(kind=EventKind.STARTED, **about, received_at_s=received_at_s, **more),
    )


def written(root: Path) -> dict[tuple[str, str], tuple[float, float | None]]:
    """Job and kind -> its time and its entry."""
    rows = [row for path in sorted((root / "hot").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    return {
        (row["job_id"], row["kind"]): (row["at_s"], row["enqueued_at_s"]) for row in rows if row["job_id"] is not None
    }


async def test_a_job_that_no_poll_saw_entered_when_it_was_received(ingest: Ingest, tmp_path: Path) -> None:
    await ingest.accept(read(poll(NOW_S - 1.0)))
    await ingest.accept(batch(HOST, events=job("a", received_at_s=NOW_S - 0.5)))
    assert written(tmp_path) == {
        ("a", "enqueued"): (NOW_S - 0.5, None),
        ("a", "started"): (NOW_S, NOW_S - 0.5),
    }


async def test_a_job_that_a_poll_named_entered_before_it(ingest: Ingest, tmp_path: Path) -> None:
    row = PolledQueue(queue=QUEUE, waiting_jobs=1, entered=(EnteredJob(job_id="a", attempt=1),), is_complete=True)
    await ingest.accept(read(poll(NOW_S - 9.0), poll(NOW_S - 8.0, row, after_s=NOW_S - 9.0)))
    await ingest.accept(batch(HOST, events=job("a")))
    assert written(tmp_path)["a", "started"] == (NOW_S, NOW_S - 8.5)


async def test_in_an_ordered_queue_the_third_of_two_entered_after_the_poll(ingest: Ingest, tmp_path: Path) -> None:
    """Two jobs waited at NOW - 5, three at NOW - 4.5: the third entered between both."""

    def row(waiting_jobs: int) -> PolledQueue:
        return PolledQueue(queue=QUEUE, waiting_jobs=waiting_jobs, held_jobs=0, consumers=0, is_ordered=True)

    polls = (
        poll(NOW_S - 6.0),
        poll(NOW_S - 5.0, row(2), after_s=NOW_S - 6.0),
        poll(NOW_S - 4.5, row(3), after_s=NOW_S - 5.0),
    )
    await ingest.accept(read(*polls))
    received = tuple(NOW_S - 1.0 + number / 10 for number in range(3))
    receptions = QueueReceptions(
        queue=QUEUE,
        since_s=NOW_S - 10.0,
        until_s=NOW_S,
        received_at_s=received,
        workers=1,
        is_prompt=True,
        is_whole=True,
    )
    begun = [job(str(number), received_at_s=at_s) for number, at_s in enumerate(received)]
    await ingest.accept(batch(HOST, events=sum(begun, ()), receptions=(receptions,)))
    found = written(tmp_path)
    assert [found[name, "started"][1] for name in "012"] == [NOW_S - 5.5, NOW_S - 5.5, NOW_S - 4.75]


async def test_a_large_batch_is_joined_as_a_small_one(ingest: Ingest, tmp_path: Path) -> None:
    await ingest.accept(read(poll(NOW_S - 1.0)))
    begun = [job(str(number), received_at_s=NOW_S - 0.5) for number in range(JOINED_IN_LOOP_MAX)]
    await ingest.accept(batch(HOST, events=sum(begun, ())))
    assert {entry for (_, kind), (_, entry) in written(tmp_path).items() if kind == "started"} == {NOW_S - 0.5}


async def test_without_a_poll_an_entry_is_unknown(ingest: Ingest, tmp_path: Path) -> None:
    await ingest.accept(batch(HOST, events=job("a")))
    assert written(tmp_path) == {("a", "enqueued"): (NOW_S, None), ("a", "started"): (NOW_S, None)}


async def test_a_time_of_its_own_stays(ingest: Ingest, tmp_path: Path) -> None:
    await ingest.accept(read(poll(NOW_S - 1.0)))
    await ingest.accept(batch(HOST, events=job("a", enqueued_at_s=NOW_S - 3.0)))
    assert written(tmp_path)["a", "started"] == (NOW_S, NOW_S - 3.0)


async def test_a_start_that_a_program_reports_as_well_counts_once(ingest: Ingest, tmp_path: Path) -> None:
    """The first report counts, with the entry that it had."""
    await ingest.accept(read(poll(NOW_S - 1.0)))
    of_program = replace(job("a")[1], enqueued_at_s=NOW_S - 0.4, received_at_s=None)
    await ingest.accept(batch("app", events=(of_program,)))
    await ingest.accept(batch(HOST, events=job("a")))
    assert written(tmp_path)["a", "started"] == (NOW_S, NOW_S - 0.4)
    assert ingest.counts.repeated_events == 1


async def test_a_start_of_a_program_without_an_entry_gets_that_of_a_named_job(ingest: Ingest, tmp_path: Path) -> None:
    """It may come before the agent's, and then it is the one that counts. When it was received, no program says."""
    row = PolledQueue(queue=QUEUE, waiting_jobs=1, entered=(EnteredJob(job_id="a", attempt=1),), is_complete=True)
    await ingest.accept(read(poll(NOW_S - 9.0), poll(NOW_S - 8.0, row, after_s=NOW_S - 9.0)))
    begun = (job("a", received_at_s=None)[1], job("b", received_at_s=None)[1])
    await ingest.accept(batch("app", events=begun))
    found = written(tmp_path)
    assert (found["a", "started"], found["b", "started"]) == ((NOW_S, NOW_S - 8.5), (NOW_S, None))


async def test_a_batch_that_is_sent_again_has_the_same_entries(ingest: Ingest, tmp_path: Path) -> None:
    await ingest.accept(read(poll(NOW_S - 1.0)))
    sent = batch(HOST, events=job("a", received_at_s=NOW_S - 0.5))
    assert not (await ingest.accept(sent)).is_duplicate
    assert (await ingest.accept(sent)).is_duplicate
    assert written(tmp_path)["a", "started"] == (NOW_S, NOW_S - 0.5)


async def test_polls_alone_are_answered_and_write_nothing(ingest: Ingest, tmp_path: Path) -> None:
    sent = batch(COLLECTOR, polls=(poll(NOW_S - 1.0),))
    receipt = await ingest.accept(sent)
    assert (receipt.is_duplicate, receipt.accepted_events) == (False, 0)
    assert written(tmp_path) == {}
    assert ingest.counts.groups == 0, "nor anything to Postgres"


@pytest.mark.parametrize("behind_s", [0.0, 300.0, -300.0])
def test_a_wrong_clock_of_a_host_changes_no_wait(behind_s: float) -> None:
    join = EntryJoin()
    join.joined(read(poll(NOW_S - 1.0)), offset_s=0.0)
    events = job("a", at_s=NOW_S - behind_s, received_at_s=NOW_S - 0.5 - behind_s)
    started = join.joined(batch(HOST, events=events), offset_s=behind_s).events[1]
    assert started.at_s == NOW_S - behind_s
    assert started.enqueued_at_s == pytest.approx(NOW_S - 0.5 - behind_s)


@pytest.mark.parametrize(
    "parts",
    [
        {"polls": (poll(float("nan")),)},
        {"polls": (replace(poll(NOW_S), until_s=NOW_S - 1.0),)},
        {"polls": (poll(NOW_S, PolledQueue(queue="other/mail", waiting_jobs=0)),)},
        {"polls": (poll(NOW_S, PolledQueue(queue=QUEUE, waiting_jobs=2**64)),)},
        {
            "polls": (
                poll(NOW_S, PolledQueue(queue=QUEUE, waiting_jobs=0, entered=(EnteredJob(job_id="", attempt=1),))),
            )
        },
        {"polls": tuple(poll(NOW_S + number) for number in range(BATCH_ITEMS_MAX + 1))},
        {"receptions": (QueueReceptions(queue="", since_s=NOW_S, until_s=NOW_S),)},
        {"receptions": (QueueReceptions(queue=QUEUE, since_s=NOW_S, until_s=NOW_S, received_at_s=(-1.0,)),)},
        {"events": job("a", received_at_s=float("inf"))},
    ],
)
async def test_values_that_can_be_none_are_refused(ingest: Ingest, parts: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        await ingest.accept(batch(HOST, **parts))


@pytest.mark.parametrize("sender", ["app", HOST])
async def test_polls_of_others_than_collectors_count_nothing(ingest: Ingest, tmp_path: Path, sender: str) -> None:
    await ingest.accept(replace(read(poll(NOW_S - 1.0)), producer=sender))
    await ingest.accept(batch(HOST, events=job("a")))
    assert written(tmp_path)["a", "started"] == (NOW_S, None)
