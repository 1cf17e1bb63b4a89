"""One event source a job: what several sources report of one connection counts once, and what only one saw counts."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.telemetry import NOW_S, ingesting, sample
from headway.control.ingest import event_sources as module
from headway.control.ingest.ingest import Ingest
from headway.control.ingest.reported_jobs import SOURCES_MAX, ReportedJobs, key_of, source_of
from headway.scaling.model import BrokerPoll, EventKind, JobEvent, PolledQueue, QueueCounts, QueueSample, TelemetryBatch
from headway.store.engine import create_engine, transaction
from headway.store.events.event_sources import read_collectors, read_sources

ENQUEUED, STARTED, FINISHED, FAILED = EventKind.ENQUEUED, EventKind.STARTED, EventKind.FINISHED, EventKind.FAILED
COLLECTOR, SECOND, EMITTER, WEB = "collect-redis-a", "collect-redis-b", "emit-worker-1", "shop-web"


def event(job: int | str, kind: EventKind = STARTED, *, at_s: float = NOW_S, queue: str = "redis/mail") -> JobEvent:
    return JobEvent(queue=queue, job_id=str(job), kind=kind, at_s=at_s)


class Reports:
    """Sends batches, each with the next number of its producer."""

    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()

    async def __call__(
        self,
        ingest: Ingest,
        producer: str,
        *events: JobEvent,
        samples: Iterable[QueueSample] = (),
        counts: Iterable[QueueCounts] = (),
        polls: Iterable[BrokerPoll] = (),
    ) -> int:
        """How many items the receipt says were left out."""
        self._numbers[producer] += 1
        batch = TelemetryBatch(
            producer=producer,
            sequence=self._numbers[producer],
            sent_at_s=NOW_S,
            events=events,
            samples=tuple(samples),
            counts=tuple(counts),
            polls=tuple(polls),
        )
        return (await ingest.accept(batch)).refused_items


@pytest.fixture
def report() -> Reports:
    return Reports()


def recorded(root: Path) -> Counter[tuple[str, str]]:
    """How often each kind of event of each job is in the log."""
    rows = [row for path in (root / "hot").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    return Counter((row["job_id"], row["kind"]) for row in rows if row["job_id"])


def once(*jobs: int | str, kind: str = "started") -> Counter[tuple[str, str]]:
    return Counter({(str(job), kind): 1 for job in jobs})


@given(st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.sampled_from([b"1", b"2", b"3"]), max_size=3))))
def test_a_job_counts_as_often_as_the_source_that_reported_it_most_often(
    reports: list[tuple[str, list[bytes]]],
) -> None:
    jobs, counted, reported = ReportedJobs(), Counter[bytes](), Counter[tuple[str, bytes]]()
    for source, keys in reports:
        padded = [key * 8 for key in keys]
        counted.update(key for key, is_news in zip(keys, jobs.take(source, padded, at_s=0.0), strict=True) if is_news)
        reported.update((source, key) for key in keys)
        assert counted == Counter(
            {key: most for key in (b"1", b"2", b"3") if (most := max(reported[source, key] for source in "abc"))}
        )
    jobs.forget_before(1.0)
    assert jobs.reports == 0
    assert jobs.take("c", [b"1" * 8], at_s=2.0) == [True]


def test_what_is_forgotten_makes_room_for_sources_and_a_count_never_overflows() -> None:
    jobs = ReportedJobs()
    for number in range(3 * SOURCES_MAX):
        assert jobs.take(f"source {number}", [b"%08d" % number], at_s=float(number)) == [True]
        jobs.forget_before(number - SOURCES_MAX + 2.0)
    jobs.take("a", [b"x" * 8] * 70_000, at_s=100.0)
    assert jobs.take("b", [b"x" * 8] * 3, at_s=100.0) == [False] * 3
    jobs.forget_before(200.0)
    assert jobs.reports == 0


def test_an_end_is_one_however_it_ended_and_every_program_is_one_source() -> None:
    assert key_of(event(1, FINISHED)) == key_of(event(1, FAILED)) == key_of(event(1, FINISHED, at_s=NOW_S + 9))
    different = [event(1), event(2), event(1, ENQUEUED), event(1, FINISHED), event(1, queue="redis/mail2")]
    assert len({key_of(each) for each in different}) == len(different)
    assert source_of(EMITTER) == source_of(WEB) != source_of(COLLECTOR) != source_of(SECOND)


async def test_an_emitter_that_begins_beside_a_collector_counts_nothing_twice_and_loses_nothing(
    migrated_url: str, tmp_path: Path, report: Reports
) -> None:
    """Half of the workers report: the collector sees jobs 0 to 5, they report 1, 3, 5, and 6, which it does not see."""
    async with ingesting(migrated_url, tmp_path) as ingest:
        await report(ingest, COLLECTOR, event(0), event(1))  # job 1: seen by the collector before the emitter is known
        await report(ingest, EMITTER, event(1), event(3), event(6))
        await report(ingest, COLLECTOR, event(2), event(3))
        await report(ingest, COLLECTOR, event(4), event(5))
        await report(ingest, EMITTER, event(5))
        assert recorded(tmp_path) == once(*range(7))
        assert ingest.counts.repeated_events == 3
        # The web process reports entries, and no starts.
        await report(ingest, WEB, event(7, ENQUEUED))
        await report(ingest, COLLECTOR, event(7, ENQUEUED), event(7, STARTED), event(8, ENQUEUED))
        assert recorded(tmp_path) == once(*range(8)) + once(7, 8, kind="enqueued")


async def test_a_restart_and_a_second_control_plane_know_what_was_reported(
    migrated_url: str, tmp_path: Path, report: Reports
) -> None:
    async with ingesting(migrated_url, tmp_path) as one, ingesting(migrated_url, tmp_path) as other:
        await report(one, COLLECTOR, event(1))
        await report(other, EMITTER, event(1), event(2))
        await report(one, COLLECTOR, event(2), event(3))
        await report(other, EMITTER, event(3), event(4))
        assert recorded(tmp_path) == once(1, 2, 3, 4)
    async with ingesting(migrated_url, tmp_path) as after_a_restart:
        await report(after_a_restart, COLLECTOR, event(4), event(5))
        assert recorded(tmp_path) == once(1, 2, 3, 4, 5)


async def test_two_control_planes_that_take_the_same_jobs_at_once_count_each_once(
    migrated_url: str, tmp_path: Path, report: Reports
) -> None:
    async with ingesting(migrated_url, tmp_path) as one, ingesting(migrated_url, tmp_path) as other:
        for first in range(0, 200, 20):
            jobs = [event(number) for number in range(first, first + 20)]
            await asyncio.gather(report(one, COLLECTOR, *jobs), report(other, EMITTER, *jobs))
    assert recorded(tmp_path) == once(*range(200))


async def test_a_group_that_fails_forgets_what_it_took_for_reported(
    migrated_url: str, tmp_path: Path, report: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ingesting(migrated_url, tmp_path) as ingest:
        await report(ingest, EMITTER, event(0))
        await report(ingest, COLLECTOR, event(0))
        with monkeypatch.context() as broken:
            broken.setattr(ingest, "_write", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await report(ingest, COLLECTOR, event(1))
        await report(ingest, EMITTER, event(1))
        await report(ingest, COLLECTOR, event(1))
    assert recorded(tmp_path) == once(0, 1)


async def test_a_collector_whose_state_is_gone_reports_anew_and_nothing_counts_twice(
    migrated_url: str, tmp_path: Path, report: Reports
) -> None:
    async with ingesting(migrated_url, tmp_path) as ingest:
        await report(ingest, COLLECTOR, event(1, ENQUEUED), event(2, ENQUEUED), event(1))
        await report(ingest, SECOND, event(1, ENQUEUED), event(2, ENQUEUED), event(1), event(2))
    assert recorded(tmp_path) == once(1, 2) + once(1, 2, kind="enqueued")


async def test_a_job_that_returns_counts_again(migrated_url: str, tmp_path: Path, report: Reports) -> None:
    """Its second attempt runs on a worker that reports, the first did not."""
    async with ingesting(migrated_url, tmp_path) as ingest:
        await report(ingest, EMITTER, event("other"))
        await report(ingest, COLLECTOR, event("job"))
        await report(ingest, EMITTER, event("job"))
        await report(ingest, COLLECTOR, event("job"))
    assert recorded(tmp_path)["job", "started"] == 2


async def test_memory_is_bounded_and_what_is_forgotten_is_the_oldest(
    migrated_url: str, tmp_path: Path, report: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REPORTS_MAX", 10)
    async with ingesting(migrated_url, tmp_path) as ingest:
        await report(ingest, EMITTER, event("other"))
        for first in (0, 5, 10):
            await report(ingest, COLLECTOR, *(event(number) for number in range(first, first + 5)))
        await report(ingest, EMITTER, event(0), event(14))
    counts = recorded(tmp_path)
    assert (counts["0", "started"], counts["14", "started"]) == (2, 1)


async def test_of_two_collectors_the_samples_of_the_first_count_until_it_is_silent(
    migrated_url: str,
    tmp_path: Path,
    report: Reports,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(module, "COLLECTOR_TOUCHED_S", 0.0)
    async with ingesting(migrated_url, tmp_path) as ingest:
        assert await report(ingest, COLLECTOR, samples=[sample("redis/mail", 1)]) == 0
        assert await report(ingest, SECOND, samples=[sample("redis/mail", 2), sample("other/mail", 7)]) == 1
        assert "several collectors" not in caplog.text  # it may have been replaced a moment ago
        since(migrated_url, "began_at", 60)
        assert await report(ingest, SECOND, samples=[sample("redis/mail", 2)]) == 1
        assert f"several collectors connection=redis counts={COLLECTOR} stand_by={SECOND}" in caplog.text
        assert waiting(migrated_url) == {"redis/mail": 1, "other/mail": 7}
        assert ingest.counts.standby_samples == 2
        since(migrated_url, "seen_at", 60, COLLECTOR)
        assert await report(ingest, SECOND, samples=[sample("redis/mail", 3)]) == 0
        assert waiting(migrated_url)["redis/mail"] == 3
        assert await report(ingest, COLLECTOR, samples=[sample("redis/mail", 4)]) == 1  # it has come back
    async with ingesting(migrated_url, tmp_path) as after_a_restart:
        assert await report(after_a_restart, COLLECTOR, samples=[sample("redis/mail", 5)]) == 1


async def test_a_collector_that_finds_no_queue_is_known_to_poll_the_connection_of_a_profile(
    migrated_url: str, tmp_path: Path, report: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EMPTY_POLL_TOUCHED_S", 0.0)
    with psycopg.connect(migrated_url, autocommit=True) as db:
        db.execute("insert into profiles (pool, body) values ('mail', '{}')")
        db.execute("insert into profile_queues (queue, pool, rank) values ('redis/mail', 'mail', 0)")
    nothing = BrokerPoll(connection="redis", at_s=NOW_S, until_s=NOW_S)
    unreadable = replace(nothing, queues=(PolledQueue(queue="redis/set", waiting_jobs=0),))
    elsewhere = replace(nothing, connection="unnamed")
    async with ingesting(migrated_url, tmp_path) as ingest:
        await report(ingest, EMITTER, polls=[nothing])
        await report(ingest, COLLECTOR, polls=[elsewhere])
        await report(ingest, COLLECTOR, polls=[unreadable])
        assert await polling(migrated_url) == []
        await report(ingest, COLLECTOR, polls=[nothing])
        assert await polling(migrated_url) == [("redis", COLLECTOR)]
        since(migrated_url, "seen_at", 60, COLLECTOR)
        assert await polling(migrated_url) == []
        await report(ingest, COLLECTOR, polls=[nothing])
        assert await polling(migrated_url) == [("redis", COLLECTOR)]
        # Queues that come with it are those of the collector that counts.
        assert await report(ingest, SECOND, samples=[sample("redis/mail", 2)]) == 1


async def polling(url: str) -> list[tuple[str, str]]:
    """Who polls which connection."""
    engine = create_engine(url)
    async with transaction(engine) as connection:
        found = await read_collectors(connection)
    await engine.dispose()
    return [(each.connection, each.producer) for each in found]


async def test_who_reports_what_of_a_queue_is_written_down(migrated_url: str, tmp_path: Path, report: Reports) -> None:
    async with ingesting(migrated_url, tmp_path) as ingest:
        await report(ingest, COLLECTOR, event(1, ENQUEUED), event(1), samples=[sample("redis/mail", 1)])
        await report(ingest, EMITTER, event(1, FAILED))
    engine = create_engine(migrated_url)
    async with transaction(engine) as connection:
        sources = (await read_sources(connection))["redis/mail"]
    await engine.dispose()
    reported = {
        each.source: [age_s is not None for age_s in (each.arrivals_age_s, each.starts_age_s, each.ends_age_s)]
        for each in sources
    }
    assert reported == {"": [False, False, True], COLLECTOR: [True, True, False]}


async def test_a_sample_does_not_deny_the_events_that_another_program_reports(
    migrated_url: str, tmp_path: Path, report: Reports
) -> None:
    """A collector that reports no events says so. What a worker reports is known at once, and after a restart."""
    silent = [
        replace(sample(queue, 1, at_s=NOW_S + number), reports_arrivals=False, reports_starts=False, reports_ends=False)
        for number, queue in enumerate(["redis/mail", "redis/news"])
    ]
    async with ingesting(migrated_url, tmp_path) as ingest:
        await report(ingest, COLLECTOR, samples=silent)
        assert said(migrated_url) == {"redis/mail": (False,) * 3, "redis/news": (False,) * 3}
        await report(ingest, EMITTER, event(1, STARTED), event(1, FAILED))
        await report(ingest, COLLECTOR, samples=[replace(each, at_s=each.at_s + 5) for each in silent])
        assert said(migrated_url) == {"redis/mail": (False, None, None), "redis/news": (False,) * 3}
    async with ingesting(migrated_url, tmp_path) as after_a_restart:
        await report(after_a_restart, COLLECTOR, samples=[replace(each, at_s=each.at_s + 10) for each in silent])
        assert said(migrated_url)["redis/mail"] == (False, None, None)


async def test_a_kind_that_was_not_reported_for_a_week_is_unknown_again_and_counts_are_reports(
    migrated_url: str, tmp_path: Path, report: Reports
) -> None:
    silent = replace(sample("redis/mail", 1), reports_arrivals=False, reports_starts=False, reports_ends=False)
    async with ingesting(migrated_url, tmp_path) as ingest:
        await report(ingest, EMITTER, event(1, ENQUEUED), event(1, STARTED))
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        connection.execute("update event_sources set arrivals_at = now() - interval '9 days'")
    async with ingesting(migrated_url, tmp_path) as ingest:
        await report(ingest, COLLECTOR, samples=[silent])
        assert said(migrated_url) == {"redis/mail": (False, None, False)}
        counts = [QueueCounts(queue="redis/mail", at_s=NOW_S, epoch="1", finished_jobs=7)]
        await report(ingest, "sql", counts=counts)
        await report(ingest, COLLECTOR, samples=[replace(silent, at_s=NOW_S + 5)])
        assert said(migrated_url) == {"redis/mail": (False, None, None)}


async def test_a_program_that_reports_some_ends_only_says_so(
    migrated_url: str, tmp_path: Path, report: Reports
) -> None:
    async with ingesting(migrated_url, tmp_path) as ingest:
        await report(ingest, "sql", event(1, FAILED), samples=[replace(sample("redis/mail", 1), reports_ends=False)])
        assert said(migrated_url) == {"redis/mail": (None, None, False)}


def said(url: str) -> dict[str, tuple[bool | None, ...]]:
    """Queue -> what its newest sample says of arrivals, starts and ends."""
    query = "select queue, reports_arrivals, reports_starts, reports_ends from queue_samples"
    return {queue: tuple(each) for queue, *each in rows(url, query)}


def rows(url: str, query: str) -> list[tuple]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def waiting(url: str) -> dict[str, int]:
    return dict(rows(url, "select queue, waiting_jobs from queue_samples"))


def since(url: str, column: str, seconds: float, producer: str | None = None) -> None:
    """Let time pass: what happened to collectors happened so much earlier."""
    with psycopg.connect(url) as connection:
        connection.execute(
            f"update collectors set {column} = {column} - make_interval(secs => %s) "
            "where %s::text is null or producer = %s",
            (seconds, producer, producer),
        )
