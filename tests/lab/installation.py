"""A whole installation into which a test can inject faults: control planes, a Postgres, a broker, and hosts with real
workers.

with installation(folder) as lab:
    lab.scale("letters", 4)
    lab.settle()
"""

import contextlib
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import psycopg

from lab import disks
from lab.controls import TOKEN, Control
from lab.hosts import BRITTLE, STANDING, Host, end_leftovers, gave_up, workers_of
from lab.jobs import Traffic
from lab.network import PREFIX, network
from lab.programs import sees
from lab.servers import Broker, Database
from lab.unsettled import astray, miscounted, not_known

POOLS = ("letters", "figures")
EXCLUSIVE = "ledger"
"""The pool of which one worker runs, and never a second one, be it for a moment."""
EXCLUSIVE_SHARE = 0.2  # of what each other pool gets: its one worker keeps up
WORKERS_MAX = 40
SETTLES_WITHIN_S = 180.0
NEXT_DONE_WITHIN_S = 180.0  # ten of the longest jobs: as long as others are done, a backlog is only long
HELD_FOR_S = 3600
JOBS_PER_S = 4.0
TAKES_OVER_S = 0.2  # from the begin of the statement that takes over to its lock on the epoch
ANSWERS_WITHIN_S = 20  # Postgres, where it runs: on a starved machine
MEMORY_BYTES_MIN = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """Who leads, by Postgres."""

    epoch: int
    leader: str
    taken_at_s: float


class Installation:
    """See above. ``wanted`` is what the operator asked for last, by pool."""

    def __init__(self, folder: Path, *, hosts: int, controls: int, rng: random.Random) -> None:
        self.folder = folder
        self.run = f"{os.getpid()}-{folder.name}"
        self.network = network()
        self.database = Database(folder, self.network)
        self.broker = Broker(folder, self.network)
        self.controls = [
            Control(f"control{number}", folder, self.network, database_url=self.database.url, run=self.run)
            for number in range(1, controls + 1)
        ]
        self.hosts = [
            Host(
                f"host{number}",
                folder,
                self.network,
                control=self.controls[number % controls].grpc,
                broker_url=self.broker.url,
                pools=(*POOLS, EXCLUSIVE, BRITTLE),
                token=TOKEN,
                run=self.run,
            )
            for number in range(1, hosts + 1)
        ]
        self.settles_within_s = SETTLES_WITHIN_S
        self.wanted: dict[str, int] = {}
        self.wanted_at_backup: dict[str, int] = {}
        self.was_host_lost = False
        """Whether a host was cut off for so long that RQ's own guarantee ends: what it was just given is lost."""
        self.waited_for: list[str] = []
        """What was the last to settle."""
        self._rng = rng
        self._traffic: Traffic | None = None

    @property
    def traffic(self) -> Traffic:
        assert self._traffic is not None
        return self._traffic

    def start(self) -> None:
        self.database.start()
        self.broker.start()
        for control in self.controls:
            control.program.start()
            control.program.await_ready()  # one after the other: the first migrates
        for host in self.hosts:
            host.agent.start()
        for host in self.hosts:
            host.agent.await_ready()
        for pool in (*POOLS, BRITTLE):
            self._serve(pool, workers_max=WORKERS_MAX, hold_down_s=0)
        self._serve(EXCLUSIVE, preset="exclusive")
        self.wanted[EXCLUSIVE] = 1
        self._traffic = Traffic(
            self.broker.near_url,
            {**dict.fromkeys(POOLS, 1.0), EXCLUSIVE: EXCLUSIVE_SHARE},
            self.folder / "jobs.txt",
            per_s=JOBS_PER_S,
            rng=random.Random(self._rng.random()),
        )

    def start_again(self) -> None:
        """Start the control planes that ended for want of Postgres, as a supervisor of services does."""
        for control in self.controls:
            if control.misses_postgres:
                control.program.start()
                control.program.await_ready()

    # --- what an operator does ---------------------------------------------------------------------------------------

    def scale(self, pool: str, workers: int) -> None:
        """``headway scale``: without the pipeline nothing is measured here, so counts are set by hand."""
        body = {"workers": workers, "for_s": HELD_FOR_S, "reason": "the lab"}
        self._ask("PUT", f"/v1/pools/{pool}/override", body)
        self.wanted[pool] = workers

    def _serve(self, pool: str, **profile: object) -> None:
        self._ask("PUT", f"/v1/profiles/{pool}", {"queues": [f"redis/{pool}"], "template": pool, **profile})

    def _ask(self, method: str, path: str, body: object) -> None:
        """Ask whichever control plane answers, until one has done it."""

        def is_done() -> bool:
            for control in self.controls:
                with contextlib.suppress(httpx.TransportError):
                    answer = httpx.request(
                        method,
                        f"http://{control.http}{path}",
                        json=body,
                        headers={"Authorization": f"Bearer {TOKEN}"},
                        timeout=5.0,
                        trust_env=False,
                    )
                    assert answer.status_code < 400 or answer.status_code == 503, answer.text
                    if answer.status_code < 400:
                        return True
            return False

        assert sees(is_done, within_s=SETTLES_WITHIN_S), f"no control plane did {method} {path}"

    # --- what is true ------------------------------------------------------------------------------------------------

    def lead(self) -> Lead | None:
        """Who leads; ``None`` while Postgres does not answer."""
        try:
            with psycopg.connect(self.database.near_url, connect_timeout=ANSWERS_WITHIN_S) as connection:
                row = connection.execute(
                    "select epoch, leader, extract(epoch from taken_at)::float from leader_epoch"
                ).fetchone()
        except (psycopg.OperationalError, AssertionError):
            return None
        return None if row is None else Lead(epoch=row[0], leader=row[1], taken_at_s=row[2])

    def decided_at_s(self, *, epoch: int) -> float | None:
        """When a leader of ``epoch`` first stored a decision, which each does at its first tick."""
        with psycopg.connect(self.database.near_url, connect_timeout=ANSWERS_WITHIN_S) as connection:
            row = connection.execute(
                "select extract(epoch from min(decided_at))::float from decisions where epoch = %s", [epoch]
            ).fetchone()
        return None if row is None else row[0]

    def decided_late(self) -> list[str]:
        """Decisions that a leader stored after another had taken over; a fence keeps them out."""
        with psycopg.connect(self.database.near_url, connect_timeout=ANSWERS_WITHIN_S) as connection:
            rows = connection.execute(
                "select pool, decisions.epoch from decisions, leader_epoch "
                "where decisions.epoch < leader_epoch.epoch and decided_at > taken_at + make_interval(secs => %s)",
                [TAKES_OVER_S],
            ).fetchall()
        return [f"pool {pool} under epoch {epoch}" for pool, epoch in rows]

    def started(self) -> Counter[str]:
        """Pool -> workers that agents have started since the begin, but for those that gave up at once."""
        pools, in_vain = (*POOLS, EXCLUSIVE, BRITTLE), self.gave_up()
        starts = {pool: sum(host.agent.said(f"started pool={pool} ") for host in self.hosts) for pool in pools}
        return Counter({pool: count - in_vain[pool] for pool, count in starts.items()})

    def gave_up(self) -> Counter[str]:
        """Pool -> workers that RQ ended as they began, for want of the broker."""
        return sum((gave_up(host.agent.all_words(), broker=self.broker.address) for host in self.hosts), Counter())

    def control_of(self, host: Host) -> Control:
        """Whom its agent calls."""
        return next(each for each in self.controls if each.grpc == host.control)

    def leader(self) -> Control | None:
        """The control plane that leads, by Postgres."""
        lead = self.lead()
        known = (each for each in self.controls if each.program.is_running)
        return next((each for each in known if lead and each.leads_as == lead.leader), None)

    def unsettled(self) -> list[str]:
        """What is not yet as it should be; empty once every pool has its workers, each once, and everyone knows."""
        programs = [*(host.agent for host in self.hosts), *(control.program for control in self.controls)]
        ended = [f"{each.log.stem} has ended" for each in programs if not each.is_running]
        recorded = {each.worker_id: (host.name, each) for host in self.hosts for each in host.recorded()}
        standing = {key: each for key, (_, each) in recorded.items() if each.state in STANDING}
        wrong = [
            *ended,
            *astray(workers_of(self.run), recorded, standing=standing.keys()),
            *miscounted(standing.values(), wanted=self.wanted),
        ]
        return wrong or not_known(self.database.near_url, standing.keys(), wanted=self.wanted)

    def settle(self) -> float:
        """Wait until nothing is unsettled. Returns the seconds it took."""
        began_s, self.waited_for = time.monotonic(), []

        def is_settled() -> bool:
            left = self.unsettled()
            self.waited_for = left or self.waited_for
            return not left

        if not sees(is_settled, within_s=self.settles_within_s):
            raise AssertionError(f"not settled within {self.settles_within_s:.0f} s: {'; '.join(self.unsettled())}")
        return time.monotonic() - began_s

    def finish_jobs(self) -> None:
        """Send no more jobs, and wait until those that were sent are done."""
        self.traffic.end()

        def excused() -> set[str]:
            return self.traffic.stuck() if self.was_host_lost else set()

        def failures() -> list[str]:
            return [failure for failure in self.traffic.failures() if failure.partition(":")[0] not in excused()]

        def is_over() -> bool:
            self.traffic.requeue()
            return set(self.traffic.left()) <= excused() or bool(failures())

        def goes_on() -> bool:
            done = self.traffic.counts().done
            return sees(lambda: is_over() or self.traffic.counts().done > done, within_s=NEXT_DONE_WITHIN_S)

        while not is_over() and goes_on():
            pass
        left, failed = set(self.traffic.left()) - excused(), failures()
        assert not left, f"not done: {sorted(left)}; {failed}"
        assert not failed, f"failed: {failed}"

    def remove(self) -> None:
        """Nothing of it is left, whatever has happened."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.network.remove)
            stack.callback(self.database.stop)
            stack.callback(self.broker.stop)
            for control in self.controls:
                stack.callback(control.program.stop)
            for host in self.hosts:
                stack.callback(host.remove)
            for worker in workers_of(self.run):
                stack.callback(_end, worker.pid)
            for host in self.hosts:
                stack.callback(host.cgroup.thaw)
                stack.callback(host.agent.stop)
            if self._traffic is not None:
                self._traffic.end()


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 9)


@contextmanager
def installation(
    logs: Path, *, hosts: int = 4, controls: int = 2, rng: random.Random | None = None
) -> Iterator[Installation]:
    """An installation that runs, in memory where there is some. Of it nothing is left but ``logs``."""
    end_leftovers()
    memory = Path("/dev/shm")
    has_room = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > MEMORY_BYTES_MIN
    base = memory if has_room else Path(tempfile.gettempdir())
    for left in base.glob(f"{PREFIX}[0-9]*-*"):  # by killed tests
        if not psutil.pid_exists(int(left.name.removeprefix(PREFIX).partition("-")[0])):
            disks.remove_leftovers(left)
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", dir=base) as folder:
        made = Installation(Path(folder), hosts=hosts, controls=controls, rng=rng or random.Random(0))
        try:
            made.start()
            yield made
        finally:
            made.remove()
            for log in (
                *Path(folder).glob("*.log"),
                *Path(folder).glob("jobs.txt"),
                *Path(folder).glob("*/server.log"),
            ):
                shutil.copy(log, logs / log.relative_to(folder).as_posix().replace("/", "-"))
