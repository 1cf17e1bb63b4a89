"""A control plane as it is started, on a real Postgres."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from headway.cli.roles import control_server

pytestmark = pytest.mark.e2e

STARTS_IN_S = 110.0


@contextmanager
def control_plane(url: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """`headway control` once it serves, until the end of the block."""
    settings = {
        "HEADWAY_DATABASE_URL": url,
        "HEADWAY_EVENT_LOG": str(folder / "events"),
        "HEADWAY_STATE_DIR": str(folder),
        "HEADWAY_HTTP_ADDRESS": "127.0.0.1:0",
        "HEADWAY_GRPC_ADDRESS": "127.0.0.1:0",
    }
    process = subprocess.Popen(
        ["timeout", str(STARTS_IN_S), sys.executable, "-m", "headway", "control"],
        env={**os.environ, **settings},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    with process, process.stderr:
        said = []
        for line in process.stderr:
            said.append(line)
            if "serving http=" in line:
                break
        else:
            raise AssertionError("".join(said))
        try:
            yield process
        finally:
            process.terminate()


def test_who_was_away_for_longer_than_partitions_reach_can_store_decisions_at_once(
    migrated_url: str, tmp_path: Path
) -> None:
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        rows = connection.execute(
            "select inhrelid::regclass::text from pg_inherits where inhparent = 'decisions'::regclass"
        )
        for (partition,) in rows.fetchall():
            connection.execute(f"drop table {partition}")
        with control_plane(migrated_url, tmp_path):
            connection.execute(
                "insert into decisions (pool, epoch, target_workers, binding, body) values ('mail', 1, 1, 'x', '{}')"
            )


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_it_ends_well_when_a_service_manager_says_so_and_as_interrupted_for_a_person(
    migrated_url: str, tmp_path: Path, number: int, status: int
) -> None:
    with control_plane(migrated_url, tmp_path) as process:
        process.send_signal(number)
        assert process.wait(STARTS_IN_S) == status
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


async def test_upkeep_that_is_under_way_at_the_end_is_no_failure() -> None:
    """As Ctrl-C right after the start finds it: the scheduler would log what is cancelled with its traceback."""
    begun = asyncio.Event()

    async def upkeep() -> None:
        begun.set()
        await asyncio.Event().wait()

    job = asyncio.create_task(control_server._until_the_end(upkeep))
    await begun.wait()
    job.cancel()
    assert await job is None
