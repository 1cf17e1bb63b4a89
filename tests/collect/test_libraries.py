"""Libraries are found by their entry points, and the how-to's example is one: a table of an SQL database."""

import json
import re
import sqlite3
import sys
import time
import tomllib
from collections import Counter
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from headway.__main__ import main
from headway.collect.collector_loop import Collector
from headway.collect.libraries import BUILT_IN, GROUP, Libraries, Uninstalled
from headway.collect.rq.rq_source import RQ
from headway.collect.source import EVENTS_MAX, Figure, Reading, Source
from headway.connections import Connection
from headway.emit.outbox import Outbox
from headway.errors import Invalid, Misconfigured, Unavailable
from headway.scaling.model import EventKind, JobEvent, QueueSample, TelemetryBatch
from support.tree import ROOT

HOW_TO = (ROOT / "docs" / "how-to" / "write-a-collector.md").read_text()


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The how-to's package, installed: its module and its metadata."""
    (module,) = re.findall(r"```python\n(.*?)```", HOW_TO, flags=re.DOTALL)
    (points,) = re.findall(r"```ini\n\[project\.entry-points\.\"(.*?)\"\]\n(.*?)```", HOW_TO, flags=re.DOTALL)
    (tmp_path / "acme_headway.py").write_text(module)
    info = tmp_path / "acme_headway-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-headway\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[{points[0]}]\n{points[1]}".replace('"', ""))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme_headway", raising=False)
    return tmp_path


class Table:
    """Acme's queue, as its application and workers write it."""

    def __init__(self, path: Path) -> None:
        self.connection = Connection(name="shop", url=f"acme://localhost{path}")
        self._rows = sqlite3.connect(path, isolation_level=None)
        self._rows.execute("pragma synchronous = off")
        self._rows.execute("create table jobs (id, queue, due_at, started_at, ended_at, has_failed)")

    def put(self, *ids: str, due_s: float, queue: str = "mail") -> None:
        self._rows.executemany(
            "insert into jobs values (?, ?, ?, null, null, 0)", [(each, queue, due_s) for each in ids]
        )

    def start(self, job_id: str, at_s: float) -> None:
        self._rows.execute("update jobs set started_at = ? where id = ?", (at_s, job_id))

    def end(self, job_id: str, at_s: float, *, has_failed: bool = False) -> None:
        self._rows.execute("update jobs set ended_at = ?, has_failed = ? where id = ?", (at_s, has_failed, job_id))


@pytest.fixture
def table(acme: Path) -> Table:
    return Table(acme / "jobs.db")


def opened(table: Table, source: Source | None = None) -> Source:
    """A source of the table; where ``source`` is given, one that goes on from it in another process."""
    cursor = None if source is None else json.loads(json.dumps(source.cursor()))
    return Libraries().of(table.connection).open(table.connection, cursor)


def test_what_comes_with_headway_is_an_entry_point() -> None:
    announced = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
    assert announced == {entry.name: entry.value for entry in BUILT_IN}
    assert Libraries([]).of(Connection(name="redis", url="redis://h", library="rq")) is RQ


def test_a_library_of_a_package_is_chosen_by_the_scheme_or_by_name(table: Table) -> None:
    libraries = Libraries()
    assert libraries.of(table.connection).title == "Acme's queue"
    assert libraries.of(Connection(name="a", url="acme://h/x", library="acme")).name == "acme"
    assert libraries.of(Connection(name="a", url="redis://h")) is RQ
    with pytest.raises(Misconfigured, match=r"broker URL 'redis://h': expected acme:// for Acme's queue$"):
        libraries.of(Connection(name="a", url="redis://h", library="acme"))
    with pytest.raises(Misconfigured, match=r"library 'acne' is not known; did you mean 'acme'\?"):
        libraries.of(Connection(name="a", url="acme://h/x", library="acne"))


def test_depths_ages_and_lives_of_the_examples_table_are_read(table: Table) -> None:
    table.put("a", due_s=100.0)
    table.put("later", due_s=900.0)
    source = opened(table)
    reading = source.poll(103.0)
    sample = QueueSample(
        queue="shop/mail", at_s=103.0, waiting_jobs=1, in_flight_jobs=0, delayed_jobs=1, oldest_age_s=3.0
    )
    assert reading.samples == (sample,)
    assert reading.events == (JobEvent(queue="shop/mail", job_id="a", kind=EventKind.ENQUEUED, at_s=100.0),)
    table.start("a", 103.5)
    table.put("b", due_s=103.6)
    table.start("b", 103.7)
    table.end("b", 103.8, has_failed=True)
    reading = source.poll(104.0)
    assert (reading.samples[0].waiting_jobs, reading.samples[0].in_flight_jobs) == (0, 1)
    assert Counter((event.job_id, event.kind) for event in reading.events) == Counter(
        [("a", EventKind.STARTED), ("b", EventKind.ENQUEUED), ("b", EventKind.STARTED), ("b", EventKind.FAILED)]
    )
    assert source.poll(104.5).events == ()


def test_what_is_delayed_enters_when_it_is_due(table: Table) -> None:
    source = opened(table)
    table.put("later", due_s=105.0)
    assert source.poll(104.9).events == ()
    (event,) = source.poll(105.4).events
    assert (event.kind, event.at_s) == (EventKind.ENQUEUED, 105.0)
    assert source.poll(106.0).samples[0].oldest_age_s == 1.0


@pytest.mark.parametrize("restarts", [False, True], ids=["one process", "a restart before each poll"])
def test_each_job_of_many_is_reported_once(table: Table, *, restarts: bool) -> None:
    source, seen, ids = opened(table), Counter(), [f"{number}" for number in range(5_000)]
    table.put(*ids, due_s=100.0)
    for at_s in (101.0, 101.1, 101.2):  # more than one poll takes
        seen.update((event.job_id, event.kind) for event in source.poll(at_s).events)
    assert seen == Counter((job_id, EventKind.ENQUEUED) for job_id in ids)
    for poll in range(12):
        at_s = 102.0 + poll
        for job_id in ids[poll * 100 : poll * 100 + 100]:
            table.start(job_id, at_s - 0.5)
            table.end(job_id, at_s - 0.2)
        if restarts:
            source = opened(table, source)
        seen.update((event.job_id, event.kind) for event in source.poll(at_s).events)
    ended = ids[: 12 * 100]
    assert seen.total() == len(set(seen)), "something was reported twice"
    assert {job_id for job_id, kind in seen if kind is EventKind.FINISHED} == set(ended)


def test_the_loop_runs_the_example_and_one_that_cannot_be_read_is_unavailable(table: Table, tmp_path: Path) -> None:
    batches: list[TelemetryBatch] = []
    outbox = Outbox(tmp_path / "shop.json", name="collect-shop", send=batches.append, clock=time.time)
    collector = Collector(table.connection, Libraries().of(table.connection), outbox)
    collector.turn()
    table.put("a", due_s=time.time())
    collector.turn()
    assert [event.job_id for batch in batches for event in batch.events] == ["a"]
    assert json.loads((tmp_path / "shop.json").read_text())["cursor"]["library"] == "acme"
    gone = Connection(name="gone", url=f"acme://localhost{tmp_path}/none.db")
    with pytest.raises(Unavailable, match=r"none\.db cannot be read"):
        Libraries().of(gone).open(gone, None).poll(1.0)


def test_check_prints_the_queues_and_how_good_each_figure_is(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    table.put("a", "b", due_s=100.0)
    assert main(["collect", "--check", "--broker", f"shop={table.connection.url}"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"queues of Acme's queue in {table.connection.url}: 1",
        "  shop/mail  waiting jobs: 2  workers: not shown by the broker",
        "  exact: waiting, in flight, delayed, oldest age, entries, starts, ends",
        "  not shown by the broker: busy workers; write each worker's host and process id into a table",
    ]


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("import acme_client\n", r"^library 'acme' needs the package 'acme_client': pip install 'acme-headway'$"),
        ("import headway.nothing\n", r"'acme' of package acme-headway 1\.2 cannot be loaded: ModuleNotFoundError"),
        ("1 / 0\n", r"'acme' of package acme-headway 1\.2 cannot be loaded: ZeroDivisionError"),
        ("ACME = None\n", r"'acme' of package .*: expected a headway\.collect\.source\.Library, got None"),
        ("from headway.collect.rq.rq_source import RQ as ACME\n", r"it calls itself 'rq'; the two names must agree"),
    ],
)
def test_what_cannot_be_loaded_is_named_with_its_package(acme: Path, module: str, says: str) -> None:
    (acme / "acme_headway.py").write_text(module)
    with pytest.raises(Misconfigured, match=says):
        Libraries().of(Connection(name="shop", url="acme://h/x", library="acme"))


def test_a_client_that_is_not_installed_matters_to_its_own_connections_only(acme: Path) -> None:
    (acme / "acme_headway.py").write_text("import acme_client\n")
    assert Libraries().of(Connection(name="redis", url="redis://h")) is RQ
    with pytest.raises(Uninstalled):
        Libraries().of(Connection(name="shop", url="acme://h/x", library="acme"))
    with pytest.raises(Misconfigured, match=r"^library 'acme' needs the package 'acme_client'"):
        Libraries().of(Connection(name="shop", url="acme://h/x"))


def test_a_taken_name_is_refused_and_the_same_library_twice_is_one() -> None:
    (rq,) = (entry for entry in BUILT_IN if entry.name == "rq")
    assert Libraries([rq, rq]).names == tuple(sorted({entry.name.partition(".")[0] for entry in BUILT_IN}))
    with pytest.raises(Misconfigured, match=r"'rq' of package .*: the name is taken"):
        Libraries([rq, EntryPoint(name="rq", value="other:RQ", group=GROUP)])


def test_every_figure_of_rq_has_an_accuracy() -> None:
    assert RQ.accuracy.keys() == set(Figure)


def test_a_reading_with_more_events_than_a_batch_takes_is_refused() -> None:
    event = JobEvent(queue="a/b", job_id="a", kind=EventKind.ENQUEUED, at_s=1.0)
    Reading(at_s=1.0, events=(event,) * EVENTS_MAX)
    with pytest.raises(Invalid, match="keep the rest for the next poll"):
        Reading(at_s=1.0, events=(event,) * (EVENTS_MAX + 1))
