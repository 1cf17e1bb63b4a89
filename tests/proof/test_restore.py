"""Postgres is restored to a copy from several leaders ago, while the last of them hangs and believes that it leads."""

import random
import time
from pathlib import Path

import pytest

from lab.hosts import STANDING, Host
from lab.installation import POOLS, Installation, installation
from lab.programs import sees
from proof.conftest import Proof

pytestmark = pytest.mark.proof

POOL, OTHER = POOLS
AT_BACKUP, SINCE, OTHERS = 3, 5, 2  # workers
OBEYS_WITHIN_S = 60.0


def test_restore(proof: Proof, tmp_path: Path) -> None:
    """Hosts take orders of the next leader only, which are those of the copy; no worker is started for it."""
    for seed in proof.seeds():
        rng, logs = random.Random(seed), tmp_path / str(seed)
        logs.mkdir()
        with installation(logs, hosts=2, rng=rng) as lab:
            lab.scale(POOL, AT_BACKUP)
            lab.scale(OTHER, OTHERS)  # it has jobs, too
            lab.settle()
            lab.database.stop()
            lab.database.back_up()
            lab.database.start()
            lab.traffic.start()
            lab.scale(POOL, SINCE)
            leaders = rng.randint(2, 4)
            for _ in range(leaders):
                _next_leader(lab)
            lab.settle()
            before = _standing(lab)
            obeyed_s, settled_s = _restored(lab)
            assert _standing(lab) <= before, "a worker was started for it"
            assert not lab.decided_late()
            lab.finish_jobs()
            counts = lab.traffic.counts()
            assert not counts.cut_short
            assert counts.doubled == 0
        proof.record(seed, leaders_since=leaders, obeyed_s=obeyed_s, settled_s=settled_s, jobs_done=counts.done)


def _restored(lab: Installation) -> tuple[float, float]:
    """Seconds until hosts take orders again, and until all is as the copy has it.

    The last leader hangs until the hosts that call another have obeyed: an agent calls one control plane, so that those
    of the one that hangs receive nothing before it runs on.
    """
    epochs = {host.name: host.epoch for host in lab.hosts}
    hung = lab.leader()
    assert hung is not None
    hung.program.pause()
    lab.database.stop()
    lab.database.restore()
    lab.database.start()
    lab.wanted[POOL] = AT_BACKUP
    began_s = time.monotonic()
    _await_obeyed([host for host in lab.hosts if lab.control_of(host) is not hung], epochs)
    obeyed_s = time.monotonic() - began_s
    hung.program.resume()
    _await_obeyed(lab.hosts, epochs)
    lab.settle()
    return round(obeyed_s, 1), round(time.monotonic() - began_s, 1)


def _await_obeyed(hosts: list[Host], epochs: dict[str, int]) -> None:
    """Return once each of ``hosts`` obeys a later leader than that of ``epochs``."""
    have_obeyed = sees(lambda: all(host.epoch > epochs[host.name] for host in hosts), within_s=OBEYS_WITHIN_S)
    assert have_obeyed, f"{epochs} became {[host.epoch for host in hosts]}"


def _next_leader(lab: Installation) -> None:
    leader, was = lab.leader(), lab.lead()
    assert leader is not None
    assert was is not None
    leader.program.kill()
    assert sees(lambda: (lead := lab.lead()) is not None and lead.epoch > was.epoch, within_s=OBEYS_WITHIN_S)
    leader.program.start()
    leader.program.await_ready()


def _standing(lab: Installation) -> set[int]:
    """The pids of the workers of the pool that were not asked to leave."""
    recorded = (each for host in lab.hosts for each in host.recorded())
    return {each.pid for each in recorded if each.pool == POOL and each.state in STANDING}
