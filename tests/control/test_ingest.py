"""Ingest on a real Postgres and a real disk: exactly once, whatever dies, and answered only when durable."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from control.telemetry import NOW_S, batch, files, hot_jobs, ingesting, sample
from headway.control.ingest import backpressure as unread_module
from headway.control.ingest import ingest as module
from headway.control.ingest.backpressure import Backpressure, UnreadBound
from headway.control.ingest.ingest import Ingest
from headway.errors import Invalid, Overloaded, Unavailable
from headway.scaling.model import Receipt, TelemetryBatch, WorkerActivity
from headway.scaling.model.event_row import EventRow
from headway.store.engine import create_engine
from headway.store.events.event_log import EventLog

BOUND_S = 60.0
TAKEN = Receipt(is_duplicate=False, accepted_events=1)
DUPLICATE = Receipt(is_duplicate=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "events"


def rows(url: str, query: str) -> list[tuple]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


class GatedLog(EventLog):
    """An event log on a disk that writes only when it is let."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.is_writing = threading.Event()
        self.may_write = threading.Event()

    def write_tmp(self, name: str, rows: list[EventRow]) -> int:
        self.is_writing.set()
        assert self.may_write.wait(BOUND_S)
        return super().write_tmp(name, rows)


async def until_writing(log: GatedLog) -> None:
    assert await asyncio.to_thread(log.is_writing.wait, BOUND_S)


async def test_a_batch_is_answered_when_its_rows_are_in_sight_and_recorded(migrated_url: str, root: Path) -> None:
    async with ingesting(migrated_url, root) as ingest:
        sent = batch(7, events=2, samples=(sample("redis/mail", 3), sample("redis/news", 0)))
        assert await ingest.accept(sent) == Receipt(is_duplicate=False, accepted_events=2, accepted_samples=2)
        assert hot_jobs(root) == ["app-7-0", "app-7-1", "redis/mail", "redis/news"]
        (name,) = files(root, "hot")
        size_bytes = (root / "hot" / name).stat().st_size
    assert files(root, "tmp") == []
    assert rows(migrated_url, "select file, rows, bytes from event_files") == [(name, 4, size_bytes)]
    assert rows(migrated_url, "select producer, sequence, file from event_batches") == [("app", 7, name)]
    assert rows(migrated_url, "select queue, sampled_at_s, waiting_jobs from queue_samples order by 1") == [
        ("redis/mail", NOW_S, 3),
        ("redis/news", NOW_S, 0),
    ]


async def test_a_retry_counts_once_also_out_of_order_and_after_a_restart(migrated_url: str, root: Path) -> None:
    async with ingesting(migrated_url, root) as ingest:
        assert [await ingest.accept(batch(number)) for number in (5, 5, 4, 4)] == [TAKEN, DUPLICATE, TAKEN, DUPLICATE]
    async with ingesting(migrated_url, root) as ingest:
        assert [await ingest.accept(batch(number)) for number in (4, 3)] == [DUPLICATE, TAKEN]
        assert await ingest.accept(batch(4, producer="web")) == TAKEN
    assert sorted(hot_jobs(root)) == ["app-3-0", "app-4-0", "app-5-0", "web-4-0"]


async def test_a_duplicates_readings_do_not_count_either(migrated_url: str, root: Path) -> None:
    async with ingesting(migrated_url, root) as ingest:
        await ingest.accept(batch(1, events=0, samples=(sample("redis/mail", 3),)))
        again = batch(1, events=0, samples=(sample("redis/mail", 99),))
        assert await ingest.accept(again) == DUPLICATE
    assert rows(migrated_url, "select waiting_jobs from queue_samples") == [(3,)]


async def test_batches_that_come_while_a_group_is_written_make_one_file(migrated_url: str, root: Path) -> None:
    log = GatedLog(root)
    async with ingesting(migrated_url, root, event_log=log) as ingest:
        first = asyncio.create_task(ingest.accept(batch(1)))
        await until_writing(log)
        others = [asyncio.create_task(ingest.accept(batch(number))) for number in range(2, 30)]
        log.may_write.set()
        assert await asyncio.gather(first, *others) == [TAKEN] * 29
        assert len(files(root, "hot")) == 2
        assert (ingest.counts.groups, ingest.counts.batches, ingest.counts.events) == (2, 29, 29)
    assert sorted(hot_jobs(root)) == sorted(f"app-{number}-0" for number in range(1, 30))


async def test_a_batch_that_comes_twice_in_one_group_counts_once(migrated_url: str, root: Path) -> None:
    log = GatedLog(root)
    async with ingesting(migrated_url, root, event_log=log) as ingest:
        log.may_write.set()
        await ingest.accept(batch(1))
        log.may_write.clear()
        log.is_writing.clear()
        busy = asyncio.create_task(ingest.accept(batch(2)))
        await until_writing(log)
        waiting = [asyncio.create_task(ingest.accept(batch(number))) for number in (3, 3, 1, 4)]
        log.may_write.set()
        assert await busy == TAKEN
        assert await asyncio.gather(*waiting) == [TAKEN, DUPLICATE, DUPLICATE, TAKEN]
    assert hot_jobs(root) == ["app-1-0", "app-2-0", "app-3-0", "app-4-0"]


async def test_a_group_of_nothing_but_duplicates_or_activities_makes_no_file(migrated_url: str, root: Path) -> None:
    activity = WorkerActivity(host="a", pid=7, is_busy=True)
    async with ingesting(migrated_url, root) as ingest:
        sent = batch(1, events=0, activities=(activity,))
        assert await ingest.accept(sent) == Receipt(is_duplicate=False)
        assert await ingest.accept(sent) == DUPLICATE
        assert await ingest.accept(batch(2, events=0)) == Receipt(is_duplicate=False)
    assert files(root, "hot") == []
    assert rows(migrated_url, "select host_name, pid, is_busy from worker_activities") == [("a", 7, True)]
    assert rows(migrated_url, "select count(*) from event_files") == [(0,)]


async def test_of_two_ingests_with_the_same_batches_exactly_one_takes_each(migrated_url: str, root: Path) -> None:
    numbers = list(range(40))
    async with ingesting(migrated_url, root) as one, ingesting(migrated_url, root) as two:
        receipts = await asyncio.gather(
            *(one.accept(batch(number)) for number in numbers),
            *(two.accept(batch(number)) for number in reversed(numbers)),
        )
    assert sorted(receipt.is_duplicate for receipt in receipts) == [False] * 40 + [True] * 40
    assert sorted(hot_jobs(root)) == sorted(f"app-{number}-0" for number in numbers)


async def test_two_ingests_that_hold_the_same_batch_at_once_wait_for_each_other(migrated_url: str, root: Path) -> None:
    slow, quick = GatedLog(root), EventLog(root)
    async with (
        ingesting(migrated_url, root, event_log=slow) as one,
        ingesting(migrated_url, root, event_log=quick) as two,
    ):
        first = asyncio.create_task(one.accept(batch(1)))
        await until_writing(slow)  # claimed, not yet committed
        second = asyncio.create_task(two.accept(batch(1)))
        async with asyncio.timeout(BOUND_S):
            while not rows(migrated_url, "select 1 from pg_locks where not granted"):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert not second.done()  # a duplicate of what may yet come to nothing is not answered
        slow.may_write.set()
        assert await asyncio.gather(first, second) == [TAKEN, DUPLICATE]
    assert hot_jobs(root) == ["app-1-0"]


async def test_a_caller_who_gives_up_breaks_nothing_for_the_others(migrated_url: str, root: Path) -> None:
    log = GatedLog(root)
    async with ingesting(migrated_url, root, event_log=log) as ingest:
        writing = asyncio.create_task(ingest.accept(batch(1)))
        await until_writing(log)
        queued = [asyncio.create_task(ingest.accept(batch(number))) for number in (2, 3)]
        await asyncio.sleep(0)
        for gone in (writing, queued[0]):
            gone.cancel()
        log.may_write.set()
        assert await queued[1] == TAKEN
        assert await ingest.accept(batch(1)) == DUPLICATE  # it was written all the same
    assert hot_jobs(root) == ["app-1-0", "app-2-0", "app-3-0"]


CRASHING = """
import asyncio, os, signal, sys
from pathlib import Path
from control.telemetry import batch, ingesting
from headway.store.events.event_log import EventLog

class Dying(EventLog):
    def publish(self, name):
        os.kill(os.getpid(), signal.SIGKILL)

class DyingEarly(EventLog):
    def write_tmp(self, name, rows):
        super().write_tmp(name, rows)
        os.kill(os.getpid(), signal.SIGKILL)

async def main(url, root, kind):
    async with ingesting(url, root, event_log={"publish": Dying, "record": DyingEarly}[kind](root)) as ingest:
        await ingest.accept(batch(1))

asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
"""


@pytest.mark.parametrize(("dies_before", "retry"), [("publish", DUPLICATE), ("record", TAKEN)])
async def test_a_killed_ingests_batch_counts_once_whenever_it_died(
    migrated_url: str, root: Path, dies_before: str, retry: Receipt
) -> None:
    tests = str(Path(__file__).parents[1])
    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", CRASHING, migrated_url, root, dies_before],
        env={"PYTHONPATH": tests},
        check=False,
    )
    assert killed.returncode == -9
    assert (len(files(root, "tmp")), files(root, "hot")) == (1, [])
    async with ingesting(migrated_url, root) as ingest:
        assert hot_jobs(root) == (["app-1-0"] if dies_before == "publish" else [])
        assert files(root, "tmp") == []
        assert await ingest.accept(batch(1)) == retry
    assert hot_jobs(root) == ["app-1-0"]


async def test_a_live_ingest_finishes_what_another_left_without_a_restart(
    migrated_url: str, root: Path, monkeypatch
) -> None:
    monkeypatch.setattr(module, "INGEST_SWEEP_S", 0.02)

    class Unpublishing(EventLog):
        def publish(self, name: str) -> None:
            raise Unavailable("the disk went away")

    async with ingesting(migrated_url, root):
        async with ingesting(migrated_url, root, event_log=Unpublishing(root)) as dying:
            with pytest.raises(Unavailable, match="the disk went away"):
                await dying.accept(batch(1))
        async with asyncio.timeout(BOUND_S):
            while hot_jobs(root) != ["app-1-0"]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_a_sweep_that_fails_does_not_end_ingest(migrated_url: str, root: Path, monkeypatch, caplog) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "INGEST_SWEEP_S", 0.01)
    async with ingesting(migrated_url, root) as ingest:
        monkeypatch.setattr(module, "recover", broken)
        async with asyncio.timeout(BOUND_S):
            while "sweep failed" not in caplog.text:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert await ingest.accept(batch(1)) == TAKEN


@asynccontextmanager
async def postgres_down(url: str) -> AsyncIterator[None]:
    """No connection to the database of ``url`` survives, and none can be made."""
    name = conninfo_to_dict(url)["dbname"]
    admin_url = url.replace(f"/{name}?", "/headway?")
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(f"alter database {name} with allow_connections false")
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
        try:
            yield
        finally:
            admin.execute(f"alter database {name} with allow_connections true")


async def test_without_postgres_nothing_is_accepted_and_nothing_comes_into_sight(migrated_url: str, root: Path) -> None:
    async with ingesting(migrated_url, root) as ingest:
        await ingest.accept(batch(1))
        async with postgres_down(migrated_url):
            with pytest.raises(Unavailable, match="Postgres"):
                await ingest.accept(batch(2))
            assert "Postgres" in (ingest.problem or "")
            assert hot_jobs(root) == ["app-1-0"]
        assert await ingest.accept(batch(2)) == TAKEN
        assert (ingest.problem, ingest.has_event_log) == (None, True)
    assert hot_jobs(root) == ["app-1-0", "app-2-0"]
    assert files(root, "tmp") == []


async def test_postgres_going_away_in_the_middle_of_a_group_leaves_nothing_behind(
    migrated_url: str, root: Path
) -> None:
    log = GatedLog(root)
    async with ingesting(migrated_url, root, event_log=log) as ingest:
        writing = asyncio.create_task(ingest.accept(batch(1)))
        await until_writing(log)
        async with postgres_down(migrated_url):
            log.may_write.set()
            with pytest.raises(Unavailable):
                await writing
        assert await ingest.accept(batch(1)) == TAKEN
    assert hot_jobs(root) == ["app-1-0"]
    assert files(root, "tmp") == []


@asynccontextmanager
async def losing_the_answer_to_commit(url: str, folder: Path) -> AsyncIterator[str]:
    """A way to Postgres that lets a COMMIT through and cuts the line before its answer, once a file is recorded."""
    given = conninfo_to_dict(url)
    real = f"{given['host']}/.s.PGSQL.{given.get('port', 5432)}"
    has_cut = False

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal has_cut
        server_reader, server_writer = await asyncio.open_unix_connection(real)
        is_cutting = is_recording = False

        async def answers() -> None:
            while data := await server_reader.read(65536):
                if is_cutting:
                    return
                writer.write(data)

        task = asyncio.create_task(answers())
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                is_recording = is_recording or b"insert into event_files" in data
                if b"COMMIT" in data and is_recording and not has_cut:
                    has_cut = is_cutting = True
                server_writer.write(data)
                if is_cutting:
                    break
        await task
        writer.close()
        server_writer.close()

    proxy = await asyncio.start_unix_server(carry, folder / ".s.PGSQL.5432")
    async with proxy:
        yield f"postgresql://{given['user']}@/{given['dbname']}?host={quote(str(folder))}"


async def test_a_commit_whose_answer_was_lost_is_asked_for_before_its_file_is_deleted(
    migrated_url: str, root: Path, data_folder: Path
) -> None:
    """The caller receives "try again" and does: its batch must be there once, neither lost nor twice."""
    folder = data_folder / "lossy"  # a short path, as a socket needs
    folder.mkdir()
    async with losing_the_answer_to_commit(migrated_url, folder) as url, ingesting(url, root) as ingest:
        with pytest.raises(Unavailable):
            await ingest.accept(batch(1))
        assert await ingest.accept(batch(1)) == DUPLICATE
        assert hot_jobs(root) == ["app-1-0"]
        assert files(root, "tmp") == []


async def test_a_control_plane_without_its_event_log_starts_says_so_and_recovers(
    migrated_url: str, root: Path, tmp_path: Path
) -> None:
    async with ingesting(migrated_url, root) as ingest:
        await ingest.accept(batch(1))
    root.rename(tmp_path / "unmounted")  # noqa: ASYNC240 - at once
    async with ingesting(migrated_url, root) as ingest:
        assert not ingest.has_event_log
        with pytest.raises(Unavailable, match=r"has no marker.* telemetry is refused until then"):
            await ingest.accept(batch(2))
        assert files(root, "hot") == []
        (tmp_path / "unmounted").rename(root)
        assert await ingest.accept(batch(2)) == TAKEN
        assert ingest.has_event_log


async def test_a_full_disk_is_an_overload_and_leaves_nothing_behind(migrated_url: str, root: Path) -> None:
    async with ingesting(migrated_url, root, event_log=EventLog(root, free_bytes_min=1 << 60)) as ingest:
        with pytest.raises(Overloaded, match="make room"):
            await ingest.accept(batch(1))
    assert rows(migrated_url, "select count(*) from event_batches") == [(0,)]
    assert files(root, "hot") == files(root, "tmp") == []


async def test_too_much_waiting_is_refused_at_once_and_what_waits_is_kept(
    migrated_url: str, root: Path, monkeypatch
) -> None:
    monkeypatch.setattr(module, "WAITING_ITEMS_MAX", 5)
    log = GatedLog(root)
    async with ingesting(migrated_url, root, event_log=log) as ingest:
        writing = asyncio.create_task(ingest.accept(batch(1)))
        await until_writing(log)
        waiting = asyncio.create_task(ingest.accept(batch(2, events=4)))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="1 batches with 4 items wait to be written: send again after a pause"):
            await ingest.accept(batch(3, events=2))
        log.may_write.set()
        assert (await writing, (await waiting).accepted_events) == (TAKEN, 4)
        assert await ingest.accept(batch(3)) == TAKEN


async def test_a_batch_with_impossible_values_is_refused_before_it_can_hurt_a_group(
    migrated_url: str, root: Path
) -> None:
    async with ingesting(migrated_url, root) as ingest:
        with pytest.raises(Invalid, match="is no name"):
            await ingest.accept(batch(1, producer="a\0"))


async def test_one_batch_that_cannot_be_written_does_not_take_its_group_along(
    migrated_url: str, root: Path, monkeypatch, caplog
) -> None:
    """A defect in what ingest checks: whoever brings it out is the only one who suffers."""
    monkeypatch.setattr(module, "check", lambda batch: None)
    log = GatedLog(root)
    async with ingesting(migrated_url, root, event_log=log) as ingest:
        writing = asyncio.create_task(ingest.accept(batch(1)))
        await until_writing(log)
        group = [
            asyncio.create_task(ingest.accept(sent))
            for sent in (batch(2), batch(3, samples=(sample("redis/mail", 2**70),)), batch(4))
        ]
        log.may_write.set()
        assert await writing == TAKEN
        good, bad, other = await asyncio.gather(*group, return_exceptions=True)
        assert (good, other) == (TAKEN, TAKEN)
        assert isinstance(bad, Exception)
        assert await ingest.accept(batch(5)) == TAKEN
    assert hot_jobs(root) == [f"app-{number}-0" for number in (1, 2, 4, 5)]
    assert files(root, "tmp") == []
    assert "telemetry failed producer=app sequence=3" in caplog.text


async def test_stopping_writes_what_waits_and_refuses_what_comes(migrated_url: str, root: Path) -> None:
    log = GatedLog(root)
    async with ingesting(migrated_url, root, event_log=log) as ingest:
        taken = [asyncio.create_task(ingest.accept(batch(1)))]
        await until_writing(log)
        taken.append(asyncio.create_task(ingest.accept(batch(2))))
        await asyncio.sleep(0)
        stopping = asyncio.create_task(ingest.stop())
        await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="starting or stopping"):
            await ingest.accept(batch(3))
        log.may_write.set()
        await stopping
        assert await asyncio.gather(*taken) == [TAKEN, TAKEN]
    assert hot_jobs(root) == ["app-1-0", "app-2-0"]
    assert list((root / "tmp").iterdir()) == []


async def test_stopping_does_not_wait_for_ever_for_a_disk_that_hangs(
    migrated_url: str, root: Path, monkeypatch
) -> None:
    monkeypatch.setattr(module, "INGEST_STOP_S", 0.05)
    log = GatedLog(root)
    async with ingesting(migrated_url, root, event_log=log) as ingest:
        taken = [asyncio.create_task(ingest.accept(batch(number))) for number in (1, 2)]
        await until_writing(log)
        await ingest.stop()
        for error in await asyncio.gather(*taken, return_exceptions=True):
            assert isinstance(error, Unavailable)
    log.may_write.set()


async def test_before_it_has_started_nothing_is_accepted(root: Path) -> None:
    engine = create_engine("postgresql://headway@127.0.0.1:1/headway")
    with pytest.raises(Unavailable, match="starting or stopping"):
        await Ingest(engine=engine, event_log=EventLog(root), clock=lambda: NOW_S).accept(batch(1))


async def test_a_producer_with_a_wrong_clock_is_corrected_and_receives_the_count(migrated_url: str, root: Path) -> None:
    async with ingesting(migrated_url, root) as ingest:
        sent = batch(1, events=2, samples=(sample("redis/mail", 1, at_s=NOW_S - 3600.0),))
        wrong = TelemetryBatch(
            producer="app", sequence=1, sent_at_s=NOW_S - 3600.0, events=sent.events, samples=sent.samples
        )
        assert (await ingest.accept(wrong)).corrected_times == 1  # the events' times happen to be right
        assert ingest.counts.corrected_times == 1
    assert rows(migrated_url, "select sampled_at_s from queue_samples") == [(NOW_S,)]


# --- back-pressure ---------------------------------------------------------------------------------------------------


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND_S):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_telemetry_is_refused_while_too_much_waits_for_the_pipeline(
    migrated_url: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in hot/ has not been read; what was answered before stays there, and a retry of it is a duplicate."""
    monkeypatch.setattr(unread_module, "POLL_S", 0.01)
    monkeypatch.setattr(module, "POLL_S", 0.01)
    async with ingesting(migrated_url, root, unread=UnreadBound(files_max=3)) as ingest:
        for number in range(3):
            assert await ingest.accept(batch(number)) == TAKEN
        await until(lambda: ingest.unread.problem is not None)
        with pytest.raises(Overloaded, match=r"^3 files with 0 MiB wait in the event log for the pipeline, and 3 with"):
            await ingest.accept(batch(9))
        assert len(files(root, "hot")) == 3
        assert ingest.has_event_log  # the log itself is well
        for name in files(root, "hot")[:2]:
            (root / "hot" / name).unlink()  # as the pipeline moves what it has read
        await until(lambda: ingest.unread.problem is None)
        assert [await ingest.accept(batch(number)) for number in (9, 2)] == [TAKEN, DUPLICATE]


async def test_a_log_that_is_behind_already_takes_nothing_at_a_start(migrated_url: str, root: Path) -> None:
    async with ingesting(migrated_url, root) as ingest:
        await ingest.accept(batch(1))
    size_bytes = sum(path.stat().st_size for path in (root / "hot").iterdir())
    async with ingesting(migrated_url, root, unread=UnreadBound(bytes_max=size_bytes)) as ingest:
        with pytest.raises(Overloaded, match="telemetry is refused until it has caught up"):
            await ingest.accept(batch(2))
    async with ingesting(migrated_url, root, unread=UnreadBound(bytes_max=2 * size_bytes)) as ingest:
        assert await ingest.accept(batch(2)) == TAKEN


async def test_it_is_refused_until_a_tenth_of_the_bound_is_free(migrated_url: str, root: Path) -> None:
    log = EventLog(root)
    unread = Backpressure(log, UnreadBound(files_max=10))
    (root / "hot").mkdir(parents=True)
    sent = []
    for count in (9, 10, 9, 8):
        for path in (root / "hot").iterdir():
            path.unlink()
        for number in range(count):
            (root / "hot" / f"{number}.parquet").touch()
        unread._due_at_s = 0.0
        await unread.poll()
        sent.append(unread.problem is not None)
    assert sent == [False, True, True, False]
