"""Arrivals by minute, read from the rollups for the same minutes of later days, on a real Postgres."""

from sqlalchemy import text

from headway.store.engine import Engine, transaction
from headway.store.metrics.arrival_history import MinuteCounts, read_minutes

MINUTE = 28_000_000


async def test_minutes_are_read_for_the_queues_and_minutes_asked_for(engine: Engine) -> None:
    """Those of job classes are not added to their queue's, and a minute of which only depths are known has no jobs.

    Nor has one in which jobs only came back for another attempt.
    """
    rows = [
        ("a", "", 0, 2, 0), ("a", "", 1, 7, 4), ("a", "Mail", 1, 3, 0), ("a", "", 2, 2, 0), ("a", "", 7, 2, 2),
        ("b", "", 0, 2, 0), ("b", "", 1, 0, 0), ("b", "", 7, 1, 3),
    ]  # fmt: skip
    columns = "queue, job_class, bucket_s, arrived_jobs, retried_jobs"
    insert = text(f"insert into rollup_minutes ({columns}) values (:q, :c, :s, :n, :r)")
    async with transaction(engine) as connection:
        for queue, job_class, minute, arrived_jobs, retried_jobs in rows:
            at_s = (MINUTE + minute) * 60.0
            await connection.execute(
                insert, {"q": queue, "c": job_class, "s": at_s, "n": arrived_jobs, "r": retried_jobs}
            )
        found = await read_minutes(connection, queues=["a", "b", "unknown"], minutes=[MINUTE + 1, MINUTE + 7])
    assert found == {
        "a": MinuteCounts(since=MINUTE, jobs={MINUTE + 1: 3}),
        "b": MinuteCounts(since=MINUTE, jobs={}),
    }
