"""Hosts are drained, restarted, lost and forgotten while jobs run: none is lost, and no pool falls below its target."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from headway.scaling.model import WorkerState
from lab.hosts import HOST, MARK, STANDING, Host
from lab.installation import EXCLUSIVE, TOKEN, Installation, installation
from lab.programs import sees
from lab.watch import Watch
from proof.conftest import Proof

pytestmark = pytest.mark.proof

WANTED = {"letters": 5, "figures": 4}
WITHIN_S = 120.0  # a lease of 45 s among it
POLL_S = 0.1


def test_host_care(proof: Proof, tmp_path: Path) -> None:
    """What an operator does to hosts and pools costs no job, and no worker leaves before its replacement runs."""
    for seed in proof.seeds():
        rng, logs = random.Random(seed), tmp_path / str(seed)
        logs.mkdir()
        with installation(logs, hosts=3, controls=1, rng=rng) as lab:
            for pool, workers in WANTED.items():
                lab.scale(pool, workers)
            lab.settle()
            lab.traffic.start()
            watch = Watch(lab.hosts, exclusive=EXCLUSIVE)
            with watched(lab) as fewest, watch.polling():
                drained_s = drain(lab, rng.choice(lab.hosts))
                restarted_s = restart(lab, rng.choice(sorted(WANTED)))
                restart(lab, EXCLUSIVE)
            lab.finish_jobs()
            answered = lab.traffic.counts()
            # Idle: a job that loses its host is the broker's matter.
            replaced_s = lose(lab, next(host for host in lab.hosts if EXCLUSIVE in running([host])))
        assert not watch.breaches, watch.breaches
        assert dict(fewest) == WANTED, f"fewest that ran at once: {dict(fewest)}"
        assert not answered.cut_short
        assert answered.doubled == 0
        proof.record(
            seed,
            jobs=len(lab.traffic.sent),
            jobs_done=answered.done,
            doubled=answered.doubled,
            cut_short=len(answered.cut_short),
            drained_s=drained_s,
            restarted_s=restarted_s,
            replaced_s=replaced_s,
        )


def drain(lab: Installation, host: Host) -> float:
    """Seconds until a host is empty and all run elsewhere. It serves again then."""
    began_s = time.monotonic()
    asked(lab, "POST", f"/v1/hosts/{host.name}/drain", {"reason": "the proof"})
    assert sees(lambda: not host.recorded(), within_s=WITHIN_S), f"{host.name} has {host.recorded()}"
    took_s = time.monotonic() - began_s
    lab.settle()
    asked(lab, "POST", f"/v1/hosts/{host.name}/uncordon", None)
    return round(took_s, 1)


def restart(lab: Installation, pool: str) -> float:
    """Seconds until every worker of a pool is another."""
    began_s = time.monotonic()
    before = standing(lab, pool)
    asked(lab, "POST", f"/v1/pools/{pool}/restart", {"reason": "the proof"})

    def is_through() -> bool:
        answered = asked(lab, "GET", f"/v1/pools/{pool}/restart", None)
        return answered["outdated_workers"] == 0 and answered["renewed_workers"] == lab.wanted[pool]

    assert sees(is_through, within_s=WITHIN_S), asked(lab, "GET", f"/v1/pools/{pool}/restart", None)
    took_s = time.monotonic() - began_s
    lab.settle()
    assert not before & standing(lab, pool)
    return round(took_s, 1)


def lose(lab: Installation, host: Host) -> float:
    """Seconds until what a host ran that lost its power is replaced, but for what may run only once.

    It is forgotten then, nothing waits for it, and what it may have run until then is replaced as well.
    """
    began_s = time.monotonic()
    host.agent.kill()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            marks = process.environ()
            if (marks.get(MARK), marks.get(HOST)) == (lab.run, host.name):
                process.kill()
    others = [each for each in lab.hosts if each is not host]

    def is_replaced() -> bool:
        there = running(others)
        return all(there[pool] == workers for pool, workers in WANTED.items())

    assert sees(is_replaced, within_s=WITHIN_S), running(others)
    assert not [each for host in others for each in host.recorded() if each.pool == EXCLUSIVE], "it may run twice"
    took_s = time.monotonic() - began_s
    answered = asked(lab, "GET", "/v1/hosts", None)["hosts"]
    assert next(each["is_known"] for each in answered if each["name"] == host.name) is False
    asked(lab, "POST", f"/v1/hosts/{host.name}/forget", {"reason": "the proof"})
    assert host.name not in {each["name"] for each in asked(lab, "GET", "/v1/hosts", None)["hosts"]}
    assert sees(lambda: running(others)[EXCLUSIVE] == 1, within_s=WITHIN_S), f"pool {EXCLUSIVE} never came back"
    return round(took_s, 1)


def standing(lab: Installation, pool: str) -> set[str]:
    """The workers of a pool, but for those that finish their last job."""
    recorded = (worker for host in lab.hosts for worker in host.recorded())
    return {worker.worker_id for worker in recorded if worker.pool == pool and worker.state in STANDING}


def running(hosts: list[Host]) -> Counter[str]:
    return Counter(each.pool for host in hosts for each in host.recorded() if each.state is WorkerState.RUNNING)


@contextmanager
def watched(lab: Installation) -> Iterator[Counter[str]]:
    """The fewest workers of each pool that ran at once meanwhile, never above what is wanted."""
    fewest: Counter[str] = Counter(WANTED)
    is_over = threading.Event()

    def poll() -> None:
        while not is_over.wait(POLL_S):
            now = running(lab.hosts)
            for pool in WANTED:
                fewest[pool] = min(fewest[pool], now[pool])

    thread = threading.Thread(target=poll, name="watch")
    thread.start()
    try:
        yield fewest
    finally:
        is_over.set()
        thread.join()


def asked(lab: Installation, method: str, path: str, body: object) -> Any:
    """The answer of the only control plane."""
    (control,) = lab.controls
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = httpx.request(
        method, f"http://{control.http}{path}", json=body, headers=headers, timeout=10.0, trust_env=False
    )
    assert answer.status_code < 400, answer.text
    return answer.json() if answer.content else None
