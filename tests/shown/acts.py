"""How to make things go wrong in a site, and well again."""

import contextlib
import itertools
import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import psycopg
import redis
from rq.suspension import resume, suspend

from headway.scaling.metrics.newest_sample import LISTED_GAP_S, LISTED_WITHIN_S
from lab.programs import sees
from shown.hosts import SITE
from shown.site import HOSTS, Site, end, until
from shown.views import GREEN

Act = Callable[[Site], object]


def nothing(_: Site) -> None:
    """There is nothing to do."""


def signalled(role: str, number: signal.Signals) -> Act:
    return lambda site: end(site.programs[role].pid, number)


def killed(role: str) -> Act:
    return lambda site: site.programs[role].kill()


def started(role: str) -> Act:
    def start(site: Site) -> None:
        site.programs[role].start()
        site.programs[role].await_ready()

    return start


def to_all(pids: Callable[[Site], list[int]], number: signal.Signals) -> Act:
    def act(site: Site) -> None:
        for pid in pids(site):
            end(pid, number)

    return act


def replaced(role: str) -> Act:
    """Start a program that was killed, once nothing of it runs."""

    def act(site: Site) -> None:
        program = site.programs[role]
        assert sees(lambda: not program.is_running, within_s=60), program.last_words()
        started(role)(site)

    return act


def together(*acts: Act) -> Act:
    def act(site: Site) -> None:
        for each in acts:
            each(site)

    return act


# --- Postgres and brokers ---------------------------------------------------------------------------------------------


def end_postgres(site: Site) -> None:
    end(site.postgres.pid, signal.SIGQUIT)


def start_postgres(site: Site) -> None:
    site.start_postgres()
    for name, program in site.programs.items():
        if not program.is_running:  # as whoever looks after services does
            started(name)(site)


def end_broker(name: str) -> Act:
    return lambda site: end(site.brokers[name].pid, signal.SIGKILL)


def start_broker(name: str) -> Act:
    return lambda site: site.start_broker(name)


def flush(site: Site) -> None:
    with redis.Redis.from_url(site.brokers["redis"].url) as client:
        client.flushall()


def fill_clients(site: Site) -> None:
    """Let the broker accept no connection beside those that it has, and ask for a worker that needs one."""
    site.held_client = redis.Redis.from_url(site.brokers["second"].url)
    site.held_client.config_set("maxclients", site.held_client.info("clients")["connected_clients"])
    site.serve("news", workers_min=2, workers_max=2, objective={"target_s": 10})


def free_clients(site: Site) -> None:
    site.held_client.config_set("maxclients", 10_000)
    site.held_client.close()
    site.serve("news", workers_min=1, objective={"target_s": 10})


class Reported:
    """Reports a queue of a pool with a worker, as the collector of a RabbitMQ does; a backlog since ``begin``."""

    def __init__(self, *, workers_max: int, **shown: object) -> None:
        """``shown``: what the broker then shows of its consumers."""
        self._workers_max = workers_max
        self._shown = shown
        self._begun_s: float | None = None
        self._over = threading.Event()
        self._sender: threading.Thread | None = None

    def serve(self, site: Site) -> None:
        bounds = {"workers_min": 1, "workers_max": self._workers_max}
        site.serve("reports", queues=["rabbit/reports"], objective={"target_s": 10}, **bounds)
        self._begun_s = None
        self._over.clear()
        self._sender = threading.Thread(target=self._send, args=(site,), daemon=True)
        self._sender.start()

    def begin(self, site: Site) -> None:
        self._begun_s = time.time()

    def end(self, site: Site) -> None:
        self._over.set()
        assert self._sender is not None, "serve() comes first"
        self._sender.join()
        site.drop("reports")

    def _send(self, site: Site) -> None:
        producer = f"rabbit-{time.time()}"
        for number in itertools.count(1):
            now_s = time.time()
            sample = {"queue": "rabbit/reports", "at_s": now_s, **self._shown_at(now_s)}
            batch = {"producer": producer, "sequence": number, "sent_at_s": now_s, "samples": [sample]}
            with contextlib.suppress(httpx.HTTPError):
                site.ask("POST", "/v1/telemetry", batch)
            if self._over.wait(1.0):
                return

    def _shown_at(self, now_s: float) -> Mapping[str, object]:
        if self._begun_s is None:
            return {"waiting_jobs": 0, "in_flight_jobs": 0, "listed_workers": 1}
        return {"waiting_jobs": 50, "in_flight_jobs": 1, "oldest_age_s": now_s - self._begun_s, **self._shown}


SINGLE_CONSUMER = Reported(workers_max=4, listed_workers=1, useful_workers=1)
NO_CONSUMERS = Reported(workers_max=1, in_flight_jobs=0, listed_workers=0, suspension="no_consumers")


# --- workers ----------------------------------------------------------------------------------------------------------


def _a_worker(site: Site) -> int:
    """The process of a worker that always has jobs."""
    workers = (each for host in site.ask("GET", "/v1/hosts")["hosts"] for each in host["workers"])
    return int(next(each["pid"] for each in workers if each["pool"] == "mail" and each["state"] == "running"))


def long_up(pool: str) -> Act:
    """Wait until a worker of the pool has run for so long that its broker must list it."""

    def is_up(site: Site) -> bool:
        workers = site.ask("GET", f"/v1/workers?pool={pool}")["workers"]
        return any(time.time() - each["started_s"] > LONG_UP_S for each in workers)

    return lambda site: until(site, lambda: is_up(site))


LONG_UP_S = LISTED_GAP_S + LISTED_WITHIN_S + 10.0  # and its start


def stop_worker(site: Site) -> None:
    site.stopped_pid = _a_worker(site)
    end(site.stopped_pid, signal.SIGSTOP)


def resume_worker(site: Site) -> None:
    end(site.stopped_pid, signal.SIGCONT)


def suspend_rq(site: Site) -> None:
    with redis.Redis.from_url(site.brokers["redis"].url) as client:
        suspend(client)


def resume_rq(site: Site) -> None:
    with redis.Redis.from_url(site.brokers["redis"].url) as client:
        resume(client)


# --- pools that a cause has for itself --------------------------------------------------------------------------------


def with_errands(site: Site) -> None:
    """A pool whose jobs go well, so far."""
    site.fails = False
    site.sends.add("errands")
    site.serve("errands", workers_min=1)
    until(site, lambda: site.state("errands") == "on_time")


def fail(site: Site) -> None:
    site.fails = True


def without_errands(site: Site) -> None:
    site.sends.discard("errands")
    site.drop("errands")


def with_reports(site: Site) -> None:
    """A pool with a backlog that nobody minds: its objective is of an hour."""
    site.serve("reports", workers_min=1, objective={"target_s": 3600, "window_s": 600})
    site.enqueue("reports", 30.0, times=40)
    until(site, lambda: _waiting(site, "reports") >= 35 and site.state("reports") in GREEN | {"unmeasured"})
    until(site, lambda: site.state("reports") in GREEN)
    time.sleep(6)  # a bucket of the pipeline has the sample


def _waiting(site: Site, pool: str) -> int:
    (found,) = site.ask("GET", f"/v1/pools?pool={pool}")["pools"]
    return int(found["metrics"]["waiting_jobs"] or 0)


def dropped(pool: str) -> Act:
    return lambda site: site.drop(pool)


def served(pool: str, **profile: object) -> Act:
    return lambda site: site.serve(pool, **profile)


# --- hosts ------------------------------------------------------------------------------------------------------------


def each_host(what: str) -> Act:
    def act(site: Site) -> None:
        for host in HOSTS:
            site.ask("POST", f"/v1/hosts/{host}/{what}", {"reason": "a proof"} if what != "uncordon" else {})

    return act


def busy(host: str) -> Act:
    """Have a worker of the pool that always has jobs on this host."""

    def has_worker(site: Site) -> bool:
        (found,) = [each for each in site.ask("GET", "/v1/hosts")["hosts"] if each["name"] == host]
        return any(each["pool"] == "mail" and each["state"] == "running" for each in found["workers"])

    def act(site: Site) -> None:
        site.serve("mail", **only_on(host))
        until(site, lambda: has_worker(site) and site.state("mail") in GREEN)

    return act


def only_on(host: str) -> dict[str, Any]:
    """The profile of a pool whose workers are on this host: without a label, equal hosts are filled by their ids."""
    return {**FEW, "workers_min": 2, "placement": {"labels": {SITE: host}}}


def stop_and_answer(host: str) -> Act:
    """Stop an agent, and answer the poll that is held for it at once, as a change of its assignment would."""

    def act(site: Site) -> None:
        signalled(f"agent-{host}", signal.SIGSTOP)(site)
        with psycopg.connect(site.postgres.url, autocommit=True) as connection:
            connection.execute(
                "with changed as (update hosts set assignment_revision = assignment_revision + 1 where name = %s "
                "returning host_id) select pg_notify('headway_assignments', host_id) from changed",
                [host],
            )

    return act


def less_busy(site: Site) -> None:
    site.serve("mail", **FEW)


FEW: Mapping[str, Any] = {"workers_min": 1, "workers_max": 2, "objective": {"target_s": 10}}


# --- the rest ---------------------------------------------------------------------------------------------------------


def lock_buckets(site: Site) -> None:
    """Somebody's transaction keeps the pipeline from writing, and lets all read."""
    site.held = psycopg.connect(site.postgres.url)
    site.held.execute("lock table queue_buckets in exclusive mode")


def unlock_buckets(site: Site) -> None:
    if site.held is not None:
        site.held.close()
    if not site.programs["pipeline"].is_running:
        started("pipeline")(site)


def break_upkeep(site: Site) -> None:
    """Tomorrow's partition cannot be made: its name is taken."""
    with psycopg.connect(site.postgres.url, autocommit=True) as connection:
        name = _tomorrow(connection)
        connection.execute(f"drop table {name}")  # type: ignore[arg-type]
        connection.execute(f"create table {name} (taken int)")  # type: ignore[arg-type]
    site.programs["control"].stop()


def mend_upkeep(site: Site) -> None:
    with psycopg.connect(site.postgres.url, autocommit=True) as connection:
        connection.execute(f"drop table {_tomorrow(connection)}")  # type: ignore[arg-type]
    site.programs["control"].stop()
    started("control")(site)


def _tomorrow(connection: "psycopg.Connection[tuple[object, ...]]") -> str:
    found = connection.execute("select to_char((now() at time zone 'utc')::date + 1, 'YYYYMMDD')").fetchone()
    assert found is not None
    return f"decisions_{found[0]}"


def revoke_collector(site: Site) -> None:
    site.ask("DELETE", "/v1/tokens/collect")


def renew_collector(site: Site) -> None:
    site.collect_with(site.token("collect"))


def short_lived(site: Site) -> None:
    """The collectors' token ends in some seconds."""
    site.ask("DELETE", "/v1/tokens/collect")
    made = site.ask("POST", "/v1/tokens", {"role": "ingest", "name": "brief", "for_s": BRIEF_S})
    site.collect_with(str(made["secret"]))


BRIEF_S = 25
"""Long enough to collect with, so that the site is well once more before the token ends."""


def await_end_of_token(site: Site) -> None:
    def state() -> str:
        (found,) = [each for each in site.ask("GET", "/v1/tokens")["tokens"] if each["name"] == "brief"]
        return str(found["state"])

    until(site, lambda: state() == "expired")


def skew(role: str, seconds: float) -> Act:
    return lambda site: site.clocks[role].write_text(str(seconds))
