"""Rows as ingest, Spark, agents and the leader leave them, for tests of what people are shown."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any

import psycopg

from headway.scaling.measure import merged, sketch_index
from headway.scaling.metrics.behaviour import behaviour_to_mapping
from headway.scaling.model import Decision
from headway.scaling.profile import Profile, profile_to_mapping
from headway.store.pools.behaviours import Learned
from headway.store.pools.decisions import decision_to_json

TEMPLATE = {"name": "rq", "content_hash": "1", "slots": 1, "cpu_cores": 0.25, "memory_bytes": 64 << 20}


class Seed:
    """Writes rows into one migrated database."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._revision = 0

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a query of the test's own returns."""
        return self._connection.execute(sql).fetchall()

    def execute(self, sql: str) -> None:
        """Do what only a test does."""
        self._connection.execute(sql)

    def execute_with(self, sql: str, *values: object) -> None:
        """The same, with values that come from outside."""
        self._connection.execute(sql, values)  # type: ignore[arg-type]

    def close(self) -> None:
        self._connection.close()

    def profile(self, profile: Profile) -> None:
        self._insert("profiles", pool=profile.pool, body=json.dumps(profile_to_mapping(profile)))
        for rank, queue in enumerate(profile.queues):
            self._insert("profile_queues", queue=queue, pool=profile.pool, rank=rank)

    def sample(self, queue: str, *, at_s: float, waiting_jobs: int = 0, **values: Any) -> None:
        self._connection.execute("delete from queue_samples where queue = %s", [queue])
        self._insert("queue_samples", queue=queue, sampled_at_s=at_s, waiting_jobs=waiting_jobs, **values)

    def event_source(
        self, queue: str, *, source: str = "", starts_ago_s: float | None = None, arrivals_ago_s: float | None = None
    ) -> None:
        """A source, unless named the emitters, that has reported starts, or arrivals, of the queue's jobs."""
        self.execute_with(
            "insert into event_sources (queue, source, starts_at, arrivals_at) values "
            "(%s, %s, now() - %s * interval '1 s', now() - %s * interval '1 s')",
            queue,
            source,
            starts_ago_s,
            arrivals_ago_s,
        )

    def bucket(self, queue: str, *, at_s: float, pickups_s: Iterable[float] = (), **values: Any) -> None:
        """The bucket that holds ``at_s``; jobs that started in it waited ``pickups_s``."""
        pickups_s = list(pickups_s)
        self._revision += 1
        self._insert(
            "queue_buckets",
            **{
                "queue": queue,
                "bucket_s": at_s // 5 * 5,
                "started_jobs": len(pickups_s),
                "pickup_sketch": json.dumps(merged({sketch_index(pickup_s): 1} for pickup_s in pickups_s)),
                "pickup_max_s": max(pickups_s, default=None),
                "sampled_at_s": at_s,
                "waiting_jobs": 0,
                "revision": self._revision,
                **values,
            },
        )

    def host(
        self,
        name: str,
        *,
        lease_s: float = 3600.0,
        reported_ago_s: float = 3.0,
        cpu_cores: float = 4.0,
        memory_bytes: int = 8 << 30,
    ) -> None:
        self._connection.execute(
            """
            insert into hosts
                (host_id, name, agent_version, cpu_cores, memory_bytes, templates, reported_at, lease_ends_at)
            values (%s, %s, '0.1.0', %s, %s, %s,
                now() - make_interval(secs => %s), now() + make_interval(secs => %s))
            """,
            [f"id-{name}", name, cpu_cores, memory_bytes, json.dumps([TEMPLATE]), reported_ago_s, lease_s],
        )

    def host_is(self, name: str, **values: object) -> None:
        """Set columns of a host."""
        columns = ", ".join(f"{column} = %s" for column in values)
        self._connection.execute(
            f"update hosts set {columns}, cordoned_at = now() where name = %s",  # type: ignore[arg-type]
            [*values.values(), name],
        )

    def epoch_seen(self, host: str, epoch: int) -> None:
        """The host reports an assignment of this epoch."""
        self._connection.execute("update hosts set epoch_seen = %s where name = %s", [epoch, host])

    def renewed(self, host: str, *, generation: int) -> None:
        """Every worker of a host is of a restart generation."""
        self._connection.execute(
            "update workers set restart_generation = %s where host_id = %s", [generation, f"id-{host}"]
        )

    def ended(self, host: str, pool: str) -> None:
        """The host has none of the pool's workers any more."""
        self._connection.execute("delete from workers where host_id = %s and pool = %s", [f"id-{host}", pool])

    def exclusive(self, host: str, pool: str, base_workers: int) -> None:
        """The host is to run workers of a pool of which no more may ever exist."""
        self._insert(
            "assignments",
            pool=pool,
            host_id=f"id-{host}",
            template="rq",
            base_workers=base_workers,
            epoch=1,
            revision=1,
            is_exclusive=True,
        )

    def learned(self, pool: str, learned: Learned) -> None:
        """What the leader has learned of a pool."""
        summary = {
            "behaviour": behaviour_to_mapping(learned.behaviour),
            "prediction": None if learned.prediction is None else asdict(learned.prediction),
        }
        self._insert("pool_behaviours", pool=pool, body=json.dumps(dict(learned.body)), summary=json.dumps(summary))

    def start_up(self, host: str, template: str, start_up_s: float) -> None:
        self._insert(
            "template_start_ups",
            host_id=f"id-{host}",
            template=template,
            start_up_s=start_up_s,
            starts=1,
            recent_s=[start_up_s],
        )

    def worker(self, host: str, pool: str, number: int, *, state: str = "running", is_busy: bool | None = True) -> None:
        self._connection.execute(
            """
            insert into workers (worker_id, host_id, pool, template, pid, state, is_busy, started_at)
            values (%s, %s, %s, 'rq', %s, %s, %s, now() - interval '1 minute')
            """,
            [f"{host}-{pool}-{number}", f"id-{host}", pool, 1000 + number, state, is_busy],
        )

    def decision(self, decision: Decision, *, previous_workers: int | None = None, ago_s: float = 0.0) -> None:
        self._partition(ago_s=ago_s)
        self._connection.execute(
            """
            insert into decisions (decided_at, pool, epoch, target_workers, previous_workers, binding, body)
            values (now() - make_interval(secs => %s), %s, 3, %s, %s, %s, %s)
            """,
            [
                ago_s,
                decision.pool,
                decision.target_workers,
                previous_workers,
                decision.binding,
                json.dumps(decision_to_json(decision)),
            ],
        )
        self._connection.execute(
            """
            insert into pool_states (pool, target_workers, memory, epoch) values (%s, %s, '{}', 3)
            on conflict (pool) do update set target_workers = excluded.target_workers
            """,
            [decision.pool, decision.target_workers],
        )

    def _partition(self, *, ago_s: float) -> None:
        """A fresh database keeps decisions from today on: soon after midnight some time ago was yesterday."""
        found = self._connection.execute(
            "select ((now() - make_interval(secs => %s)) at time zone 'utc')::date", [ago_s]
        ).fetchone()
        assert found is not None
        day: date = found[0]
        self._connection.execute(
            f"create table if not exists decisions_{day:%Y%m%d} partition of decisions "
            f"for values from ('{day} 00:00:00+00') to ('{day + timedelta(days=1)} 00:00:00+00')"
        )

    def leader(self, *, age_s: float = 1.0) -> None:
        self._connection.execute("update leader_epoch set epoch = 3, leader = 'here:1'")
        self._connection.execute(
            "update leader_heartbeat set epoch = 3, renewed_at = now() - make_interval(secs => %s)", [age_s]
        )

    def pipeline(self, *, age_s: float = 1.0, is_ready: bool = True) -> None:
        self._connection.execute(
            """
            insert into pipeline_health (pipeline, batch_id, rows, batch_s, is_ready, written_at)
            values ('metrics', 7, 100, 0.4, %s, now() - make_interval(secs => %s))
            """,
            [is_ready, age_s],
        )

    def notify(self, channel: str) -> None:
        self._connection.execute("select pg_notify(%s, '')", [channel])

    def _insert(self, table: str, **values: Any) -> None:
        columns, marks = ", ".join(values), ", ".join(["%s"] * len(values))
        self._connection.execute(f"insert into {table} ({columns}) values ({marks})", list(values.values()))
