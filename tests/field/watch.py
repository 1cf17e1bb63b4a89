"""Two of the witnesses: Headway's API and the list of processes, read once a second while a block lasts."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from e2e.running_up import RunningUp
from field.recording import Answer, Decided, Processes, Recording, Shown, events_of
from field.worker_files import Place
from headway.agent.config.templates import WORKER_ID
from headway.local import procfs

WATCHED_EACH_S = 1.0
DECISIONS_MAX = 200  # the newest of a pool; one is stored where something changes


class Watch:
    """What the API showed and which processes lived, of all pools of a run."""

    def __init__(self, up: RunningUp, places: Sequence[Place]) -> None:
        self._up = up
        self._places = places
        self._answers: dict[str, list[Answer]] = {place.case.name: [] for place in places}
        self._processes: dict[str, list[Processes]] = {place.case.name: [] for place in places}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch until the block ends, each witness from a thread of its own."""
        is_over = threading.Event()
        threads = [threading.Thread(target=_repeat, args=(is_over, once)) for once in (self._ask, self._list)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            is_over.set()
            for thread in threads:
                thread.join()

    def recording(self, place: Place, sent: dict[str, float]) -> Recording:
        """What all three witnesses saw of one pool so far."""
        name = place.case.name
        return Recording(
            sent=sent,
            events=events_of(place.log.read_text().splitlines()),
            answers=tuple(self._answers[name]),
            processes=tuple(self._processes[name]),
            decisions=self._decisions(name),
        )

    def _decisions(self, pool: str) -> tuple[Decided, ...]:
        """The newest of a pool; none where nobody answers: they are no part of the verdict."""
        try:
            rows = self._up.ask("/v1/decisions", pool=pool, limit=DECISIONS_MAX)["decisions"]
        except httpx.HTTPError:
            return ()
        return tuple(_decided(row["decision"]) for row in rows)

    def living(self, place: Place) -> int:
        """Workers of one pool of which a process lived a moment ago."""
        seen = self._processes[place.case.name]
        return len(seen[-1].worker_ids) if seen else 0

    def running(self, place: Place) -> int:
        """Workers of one pool that the last answer showed as running."""
        seen = self._answers[place.case.name]
        return sum(worker.state == "running" for worker in seen[-1].workers) if seen else 0

    def _ask(self) -> None:
        at_s = time.time()
        try:
            hosts = self._up.ask("/v1/hosts")["hosts"]
        except httpx.HTTPError:  # the control plane was killed; the judge sees how long nobody answered
            return
        for name, answers in self._answers.items():
            workers = tuple(_shown(each) for host in hosts for each in host["workers"] if each["pool"] == name)
            answers.append(Answer(at_s=at_s, workers=workers))

    def _list(self) -> None:
        at_s, found = time.time(), worker_processes(self._places)
        for name, processes in self._processes.items():
            ids = frozenset(worker_id for case, worker_id, _ in found if case == name)
            processes.append(Processes(at_s=at_s, worker_ids=ids))


def worker_processes(places: Sequence[Place]) -> list[tuple[str, str, int]]:
    """The case, worker id and pid of each process that belongs to a worker of these places."""
    logs = {str(place.log): place.case.name for place in places}
    environments = ((pid, procfs.environment(pid, having="JOB_LOG=")) for pid in procfs.pids())
    return [
        (logs[environment["JOB_LOG"]], environment[WORKER_ID], pid)
        for pid, environment in environments
        if environment.get("JOB_LOG") in logs and WORKER_ID in environment
    ]


def end_workers(places: Sequence[Place]) -> None:
    """Kill whatever of these places still runs."""
    for _, _, pid in worker_processes(places):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _decided(decision: dict[str, Any]) -> Decided:
    words = [f"{decision['target_workers']} by {decision['binding']}", f"running {decision['running_workers']}"]
    words += [f"{each['name']} {each['slots']:g}" for each in decision["demands"] if each["slots"]]
    for queue in decision["metrics"]:
        depths = (f"{name} {queue[f'{name}_jobs']}" for name in ("waiting", "in_flight", "in_flight_min", "reserved"))
        words.append(f"{queue['queue']}: {', '.join(depths)} at {queue['sampled_at_s'] or 0.0:.1f}")
    return Decided(at_s=decision["at_s"], text="; ".join(words))


def _shown(worker: dict[str, Any]) -> Shown:
    return Shown(worker_id=worker["worker_id"], state=worker["state"], is_busy=worker["is_busy"])


def _repeat(is_over: threading.Event, once: Callable[[], None]) -> None:
    while not is_over.wait(WATCHED_EACH_S):
        once()
