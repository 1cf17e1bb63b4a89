"""What is not yet as it should be in a lab: between hosts and the kernel, what is wanted, and what Postgres knows."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import psycopg

from headway.scaling.model import WorkerState
from lab.hosts import Recorded, Seen

LEADER_SILENT_S = 4.0  # two renewals
HOST_SILENT_S = 20.0  # a report, and a retry
LOST_WITHIN_S = 8.0  # from the end of a host's lease to the evaluation that takes note of it


def astray(
    seen: Sequence[Seen], recorded: Mapping[str, tuple[str, Recorded]], *, standing: Collection[str]
) -> list[str]:
    """Workers that run more than once, that no agent knows of, or that an agent believes to run.

    Args:
        seen: what the kernel knows.
        recorded: worker -> its host, and what its agent has written down.
        standing: the workers of these that were not asked to leave.
    """
    counts = Counter(each.worker_id for each in seen)
    return [
        *(f"worker {key} runs {count} times" for key, count in counts.items() if count > 1),
        *(
            f"{each.host}: pid {each.pid} of pool {each.pool} is in no agent's hands"
            for each in seen
            if recorded.get(each.worker_id, ("", None))[0] != each.host
        ),
        *(f"worker {key} is recorded and does not run" for key in sorted(set(standing) - counts.keys())),
    ]


def miscounted(standing: Collection[Recorded], *, wanted: Mapping[str, int]) -> list[str]:
    """Pools that have not as many workers as are wanted, and workers that are not ready yet."""
    counts = Counter(each.pool for each in standing)
    return [
        *(
            f"pool {pool}: {counts[pool]} workers, {count} wanted"
            for pool, count in wanted.items()
            if counts[pool] != count
        ),
        *(f"worker {each.worker_id} is still starting" for each in standing if each.state is WorkerState.STARTING),
    ]


def not_known(database_url: str, standing: Iterable[str], *, wanted: Mapping[str, int]) -> list[str]:
    """Where Postgres knows of something else than what runs and what is wanted."""
    try:
        with psycopg.connect(database_url, connect_timeout=20) as connection:
            known = connection.execute("select worker_id from workers where state <> 'draining'").fetchall()
            rows = connection.execute(
                "select pool, sum(base_workers + burst_workers)::int from assignments group by pool"
            ).fetchall()
            pending = connection.execute(
                "select name from hosts where reported_at < clock_timestamp() - make_interval(secs => %s) "
                "and lease_ends_at > clock_timestamp() - make_interval(secs => %s) order by name",
                [HOST_SILENT_S, LOST_WITHIN_S],
            ).fetchall()
            silent_s = connection.execute(
                "select extract(epoch from clock_timestamp() - renewed_at) from leader_heartbeat"
            ).fetchone()
    except psycopg.OperationalError as error:
        return [f"Postgres does not answer: {error}"]
    assert silent_s is not None
    assigned, differing = dict(rows), {worker_id for (worker_id,) in known} ^ set(standing)
    return [
        *([] if silent_s[0] < LEADER_SILENT_S else [f"nobody has led for {silent_s[0]:.0f} s"]),
        *(f"host {name} is silent, and not yet lost" for (name,) in pending),
        *(
            f"pool {pool}: {assigned.get(pool, 0)} assigned, {count} wanted"
            for pool, count in wanted.items()
            if assigned.get(pool, 0) != count
        ),
        *(f"worker {key} is known on one side only" for key in sorted(differing)),
    ]
