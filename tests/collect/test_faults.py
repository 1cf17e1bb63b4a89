"""Sources × faults of their brokers: ``pytest tests/collect -k faults`` prints the table; make proof-queues all of it.

Each cell is a server of its own behind a port that can be slow or silent, an application that puts real jobs into it,
and the collectors of two connections: the one at fault, and one that must not notice.
"""

import os
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from collect.collecting import Collected, collecting
from collect.fault_sources import APPS, App
from collect.rq_jobs import Rq, work
from headway.collect import redis_client
from headway.collect.rabbitmq import management_api, passive_declare
from headway.connections import Connection
from headway.control.auth.pki import make_ca, make_server, write_pair
from headway.scaling.decide import decide
from headway.scaling.measure import BucketRow, queue_metrics
from headway.scaling.model import EventKind, Memory, Objective, QueueSample
from support.faulty_proxy import FaultyProxy
from support.pools import profile, view
from support.valkeys import HOST, closing
from support.waiting import eventually

JOBS = 3
WORKERS = 20
SLOW = "cannot be reached (Timeout reading from socket)"
PAGE = os.environ.get("HEADWAY_FAULTS_PAGE")
"""Where the whole table goes, which is made with the collector's own timeouts."""
BACK_WITHIN_S, LATE_WITHIN_S = (30.0, 30.0) if PAGE is None else (5.0, 5.0)  # others may keep the machine busy
"""Until a broker that is back is read, and between two samples of the connection beside it, which come each second."""
HEAD = """# Faults of brokers

Each source of jobs against each fault of its broker: a server of its own behind a port that can be slow or silent, real
jobs, and collectors as `headway collect` runs them. A cell passes where

- no sample is 0, but of a queue that was flushed or deleted, and no target falls without one;
- the collector of another broker polls on time;
- each change of state is one line of the log;
- polls go on within 5 s, and no job counts twice.

The figure is how long after the end of the fault a new sample came. The failover is one of Sentinel, or of the node
that leads a quorum queue of three behind a load balancer; one of a Redis cluster is in
`tests/collect/test_redis_servers.py`. Foreign keys are 100,000 of a Redis, or 1,000 queues of RabbitMQ that go with
their connection. RabbitMQ is 3.10. Written by `make proof-queues`: {machine}.
"""
IN_CI = ("down later", "answers late", "wrong password")
IN_CI_OF = ("rq", "celery")  # RabbitMQ: test_rabbitmq_faults.py, on one server
RUNS_AFTER = ("down later", "answers late", "wrong password", "byte by byte", "right missing")
"""Then the jobs that were put run, each once."""


@dataclass
class Bench:
    """One cell at work."""

    app: App
    proxies: list[FaultyProxy]
    """One before each port that the collector uses."""
    folder: Path
    late_s: float
    """By how much a late answer is late: longer than the collector waits."""
    collected: Collected = field(default_factory=Collected)
    facts: list[tuple[float, float]] = field(default_factory=list)
    """Spans of the monotonic clock in which the queue may be seen empty, because it is."""
    changes: int = 0
    """How often the broker was lost."""
    unreadable: int = 0
    """How often a queue became unreadable."""

    @property
    def queue(self) -> str:
        return f"{self.app.library}/mail"

    def waits(self, jobs: int) -> QueueSample:
        return self.collected.comes_to(self.queue, jobs)

    def waits_anew(self, jobs: int) -> float:
        """How long it takes from now until a new sample says that ``jobs`` wait."""
        since_s = time.monotonic()
        eventually(lambda: self._last_since(since_s) == jobs)
        return time.monotonic() - since_s

    def _last_since(self, since_s: float) -> int | None:
        sample, at_s = self.collected.samples[self.queue][-1]
        return sample.waiting_jobs if at_s > since_s else None

    def passes(self, seconds: float) -> None:
        """Let it last."""
        time.sleep(seconds)

    def hang_up(self) -> None:
        """End the collector's connections."""
        for proxy in self.proxies:
            proxy.hang_up()

    def is_lost(self, logged: Callable[[str], int]) -> None:
        """Wait until the collector has noticed."""
        self.changes += 1
        eventually(lambda: logged("broker lost") >= self.changes)


Fault = Callable[[Bench, Callable[[str], int]], float | None]
"""Breaks something, waits until it is noticed, and mends it. Returns how long it took to be read again."""


def down_later(bench: Bench, logged: Callable[[str], int]) -> float:
    bench.app.server.kill()
    bench.is_lost(logged)
    bench.passes(2 * bench.late_s)
    bench.app.server.start()
    bench.app.log_in()
    return bench.waits_anew(JOBS)


def answers_late(bench: Bench, logged: Callable[[str], int]) -> float:
    for proxy in bench.proxies:
        proxy.late_s = bench.late_s
    bench.is_lost(logged)
    bench.passes(bench.late_s)
    for proxy in bench.proxies:
        proxy.late_s = 0.0
    bench.hang_up()
    return bench.waits_anew(JOBS)


def never_answers(bench: Bench, logged: Callable[[str], int]) -> float:
    for proxy in bench.proxies:
        proxy.is_silent = True
    bench.is_lost(logged)
    for proxy in bench.proxies:
        proxy.is_silent = False
    return bench.waits_anew(JOBS)


def byte_by_byte(bench: Bench, logged: Callable[[str], int]) -> float:
    for proxy in bench.proxies:
        proxy.byte_s = 0.002
    bench.passes(3.0)
    for proxy in bench.proxies:
        proxy.byte_s = None
    bench.changes = logged("broker lost")  # a poll may take longer than the collector waits, or not
    return bench.waits_anew(JOBS)


def wrong_password(bench: Bench, logged: Callable[[str], int]) -> float:
    bench.app.change_password("another")
    bench.hang_up()  # a connection that is there stays
    bench.is_lost(logged)
    (bench.folder / "password").write_text("another")
    return bench.waits_anew(JOBS)


def right_missing(bench: Bench, logged: Callable[[str], int]) -> float:
    bench.app.take_right()
    bench.hang_up()
    bench.is_lost(logged)
    bench.passes(1.0)
    bench.app.log_in()
    return bench.waits_anew(JOBS)


def flushed(bench: Bench, logged: Callable[[str], int]) -> float:
    began_s = time.monotonic()
    bench.app.flush()
    took_s = bench.waits_anew(0)
    bench.app.put(JOBS)
    bench.waits(JOBS)
    bench.facts.append((began_s, time.monotonic()))
    return took_s


def queue_deleted(bench: Bench, logged: Callable[[str], int]) -> float:
    began_s = time.monotonic()
    bench.app.delete_queue()
    took_s = bench.waits_anew(0)
    bench.facts.append((began_s, float("inf")))
    return took_s


def made_again(bench: Bench, logged: Callable[[str], int]) -> float:
    began_s = time.monotonic()
    bench.app.delete_queue()
    bench.waits(0)
    bench.app.put(JOBS)
    took_s = bench.waits_anew(JOBS)
    bench.facts.append((began_s, time.monotonic()))
    return took_s


def key_of_another_type(bench: Bench, logged: Callable[[str], int]) -> float:
    key, client = bench.app.list_key, bench.app.server.redis
    with client.pipeline() as pipe:  # at once: between the two there would be no list, which is a fact
        pipe.rename(key, "aside").set(key, "no list").execute()
    bench.unreadable = 1
    eventually(lambda: logged("queue unreadable"))
    bench.passes(1.0)
    with client.pipeline() as pipe:
        pipe.delete(key).rename("aside", key).execute()
    return bench.waits_anew(JOBS)


def malformed_body(bench: Bench, logged: Callable[[str], int]) -> float:
    bench.app.put_malformed()
    bench.waits(JOBS + 2)
    bench.app.put(1)
    return bench.waits_anew(JOBS + 3)


def foreign_keys(bench: Bench, logged: Callable[[str], int]) -> float:
    bench.app.put_foreign()
    bench.app.put(1)
    return bench.waits_anew(JOBS + 1)


def name_that_is_no_text(bench: Bench, logged: Callable[[str], int]) -> float:
    bench.app.put_odd_name()
    eventually(lambda: any("�" in queue or "?" in queue for queue in bench.collected.samples))
    return bench.waits_anew(JOBS)


def clock_ahead(bench: Bench, logged: Callable[[str], int]) -> float:
    bench.app.put_by_clock(60.0)
    return bench.waits_anew(JOBS + 1)


def clock_behind(bench: Bench, logged: Callable[[str], int]) -> float:
    bench.app.put_by_clock(-60.0)
    return bench.waits_anew(JOBS + 1)


def down_at_start(bench: Bench, logged: Callable[[str], int]) -> float:
    bench.is_lost(logged)
    bench.app.server.start()
    bench.app.log_in()
    eventually(lambda: bench.collected.samples[bench.queue])
    return bench.waits_anew(JOBS)


def tls_untrusted(bench: Bench, logged: Callable[[str], int]) -> float:
    bench.is_lost(logged)
    for proxy in bench.proxies:
        proxy.tls = _tls(bench.folder, "trusted")
    eventually(lambda: bench.collected.samples[bench.queue])
    return bench.waits_anew(JOBS)


def failover(bench: Bench, logged: Callable[[str], int]) -> float:
    bench.app.server.kill()
    bench.is_lost(logged)
    bench.app.replace_server(bench.proxies)
    return bench.waits_anew(JOBS)


FAULTS: dict[str, Fault] = {
    "down at start": down_at_start,
    "down later": down_later,
    "answers late": answers_late,
    "never answers": never_answers,
    "byte by byte": byte_by_byte,
    "failover": failover,
    "flushed": flushed,
    "wrong password": wrong_password,
    "right missing": right_missing,
    "TLS untrusted": tls_untrusted,
    "queue deleted": queue_deleted,
    "made again": made_again,
    "key of another type": key_of_another_type,
    "malformed body": malformed_body,
    "foreign keys": foreign_keys,
    "clock 60 s ahead": clock_ahead,
    "clock 60 s behind": clock_behind,
    "name that is no text": name_that_is_no_text,
}
"""More on servers that take another's place is in test_redis_servers.py."""


def _tls(folder: Path, signer: str) -> ssl.SSLContext:
    """Of a server whose certificate that CA has signed, which is made at the first call."""
    ca, certificate = folder / f"{signer}.crt", folder / f"{signer}-server.crt"
    if not ca.exists():
        pair = make_ca(signer)
        write_pair(pair, certificate=ca, key=ca.with_suffix(".key"), is_replacing=False)
        of_server = make_server(pair, [HOST])
        write_pair(of_server, certificate=certificate, key=certificate.with_suffix(".key"), is_replacing=False)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    return context


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[dict[tuple[str, str], str]]:
    """What was found, cell by cell: printed at the end, and written to the page where the whole table is asked for."""
    cells = {(source, fault): why for source, app in APPS.items() for fault, why in app.unknown.items()}
    yield cells
    rows = [[fault, *(cells.get((source, fault), "") for source in APPS)] for fault in FAULTS]
    lines = [f"| {' | '.join(row)} |" for row in (["fault", *APPS], ["---"] * (1 + len(APPS)), *rows)]
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter.write_line("")
        for line in lines:
            reporter.write_line(line)
    if PAGE is not None and len(cells) == len(APPS) * len(FAULTS):
        machine = f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}"
        Path(PAGE).write_text("\n".join([HEAD.format(machine=machine), *lines, ""]))


@pytest.fixture
def bench(
    request: pytest.FixtureRequest, source: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bench]:
    """The collector of ``source`` waits as long as ever where the whole table is asked for."""
    if PAGE is None:
        for module in (redis_client, management_api, passive_declare):
            monkeypatch.setattr(module, "ANSWER_TIMEOUT_S", 0.5)
    with ExitStack() as ended:
        app = ended.enter_context(closing(APPS[source](tmp_path, is_watched=fault == "failover")))
        app.put(JOBS)
        tls = _tls(tmp_path, "untrusted") if fault == "TLS untrusted" else None
        proxies = [ended.enter_context(closing(FaultyProxy(port, tls=tls))) for port in app.ports]
        yield Bench(app, proxies, tmp_path, late_s=1.0 if PAGE is None else 10.0)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        pytest.param(source, fault, marks=[] if fault in IN_CI and source in IN_CI_OF else [pytest.mark.proof])
        for source, app in APPS.items()
        for fault in FAULTS
        if fault not in app.unknown
    ],
)
def test_faults(
    bench: Bench,
    source: str,
    fault: str,
    table: dict[tuple[str, str], str],
    valkey_url: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="headway.collect")

    def logged(event: str) -> int:
        named = f"connection={source}" if event.startswith("broker") else f"queue={source}/"
        return sum(each.message.startswith(event) and named in each.message for each in list(caplog.records))

    ca_file = None
    if fault == "TLS untrusted":
        _tls(bench.folder, "trusted")
        ca_file = bench.folder / "trusted.crt"
    ours = bench.app.connection(tuple(each.port for each in bench.proxies), bench.folder, ca_file=ca_file)
    Rq(valkey_url).queue().enqueue(work)
    other = Connection(name="other", url=valkey_url, library="rq", every_s=0.2)
    is_down = fault == "down at start"
    if is_down:
        bench.app.server.kill()
    with collecting([ours, other], bench.folder / "state", bench.collected):
        if not is_down and fault != "TLS untrusted":
            bench.waits(JOBS)
        back_s = FAULTS[fault](bench, logged)
        eventually(lambda: len(bench.collected.samples["other/mail"]) > 1)
        if source == "rq" and fault in RUNS_AFTER:
            bench.app.run()
            eventually(lambda: _kinds(bench)[EventKind.FINISHED] == JOBS)
            bench.facts.append((time.monotonic() - 1.0, float("inf")))
    table[source, fault] = f"failed, {back_s:.1f} s"
    _no_zero_that_is_none(bench)
    _no_target_lowered(bench)
    _beside_it_on_time(bench)
    lost = logged("broker lost")
    # A poll that a machine with much else to do delays beyond the collector's bound is a loss as well.
    delayed = sum(SLOW in each.message and f"connection={source}" in each.message for each in caplog.records)
    assert lost - delayed <= bench.changes <= lost
    assert logged("broker back") == lost
    assert logged("queue unreadable") == bench.unreadable
    assert "collector failed" not in caplog.text
    assert back_s <= BACK_WITHIN_S
    if bench.app.has_events:
        kinds = _kinds(bench)
        assert kinds[EventKind.ENQUEUED] == bench.app.put_jobs
        assert kinds[EventKind.STARTED] == kinds[EventKind.FINISHED] in (0, JOBS)
    table[source, fault] = f"passed, {back_s:.1f} s"


def _kinds(bench: Bench) -> Counter[EventKind]:
    return Counter(each.kind for each in list(bench.collected.events) if each.queue == bench.queue)


def _no_zero_that_is_none(bench: Bench) -> None:
    seen = [(each, at_s) for each, at_s in bench.collected.samples[bench.queue]]
    zeros = [at_s for each, at_s in seen if each.waiting_jobs == 0]
    untrue = [at_s for at_s in zeros if not any(begin_s <= at_s <= end_s for begin_s, end_s in bench.facts)]
    assert untrue == []
    assert all(each.oldest_age_s is None or each.oldest_age_s >= 0.0 for each, _ in seen)


def _no_target_lowered(bench: Bench) -> None:
    """Evaluated each second by what had come by then, until the queue was empty in fact."""
    seen = bench.collected.samples[bench.queue]
    end_s = min([begin_s for begin_s, _ in bench.facts] + [seen[-1][1]])
    memory, greatest, at_s = Memory(target_workers=0), 0, seen[0][1]
    while at_s < end_s:
        sample = [each for each, received_s in seen if received_s <= at_s][-1]
        now_s = sample.at_s + at_s - next(received_s for each, received_s in seen if each is sample)
        row = BucketRow(
            queue=bench.queue,
            bucket_s=sample.at_s,
            sampled_at_s=sample.at_s,
            waiting_jobs=sample.waiting_jobs,
            in_flight_jobs=sample.in_flight_jobs,
            delayed_jobs=sample.delayed_jobs,
            oldest_age_s=sample.oldest_age_s,
        )
        metrics = queue_metrics([row], queue=bench.queue, now_s=now_s, objective=Objective())
        seen_so = view(metrics, profile=profile(queues=(bench.queue,)), assigned_workers=greatest)
        decision, memory = decide(seen_so, memory, now_s=now_s)
        assert decision.target_workers >= greatest
        greatest = decision.target_workers
        at_s += 1.0
    assert greatest > 0


def _beside_it_on_time(bench: Bench) -> None:
    times_s = [at_s for _, at_s in bench.collected.samples["other/mail"]]
    assert max(later - before for before, later in pairwise(times_s)) <= LATE_WITHIN_S
