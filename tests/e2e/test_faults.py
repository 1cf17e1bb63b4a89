"""A short seed of the soak of ``tests/proof/test_faults.py``, and a restore: hosts, and what may go wrong with them."""

import random
from pathlib import Path

import pytest

from lab.hosts import STANDING
from lab.installation import POOLS, Installation, installation
from lab.programs import sees
from lab.soak import Soak

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

SEED, FAULTS = 3, 6
OBEYS_WITHIN_S = 150.0


def test_workers_and_jobs_survive_a_handful_of_faults(tmp_path: Path) -> None:
    """Where this machine has no namespaces or cgroups, hosts are addresses, and what cannot be made is not drawn."""
    rng = random.Random(SEED)
    with installation(tmp_path, rng=rng) as lab:
        soak = Soak(lab, rng)
        soak.begin()
        while soak.faults < FAULTS:
            soak.round()
        reported = soak.end()
    assert reported["jobs_done"] == reported["jobs_in"] > 0
    assert reported["busy_killed"] == 0


def test_hosts_obey_a_restored_database_and_end_no_worker_for_it(tmp_path: Path) -> None:
    """Their orders are of an epoch and a revision that the backup does not know, and no assignment changes."""
    with installation(tmp_path, hosts=2) as lab:
        database, (pool, other) = lab.database, POOLS
        lab.scale(pool, 4)
        lab.settle()
        database.stop()
        database.back_up()
        database.start()
        # Told under the next epoch, of which the backup knows as little as of these counts. They are another pool's:
        # which worker of the first one left would depend on what else runs beside it.
        lab.scale(other, 2)
        lab.settle()
        lab.scale(other, 0)
        lab.settle()
        before, epochs = _standing(lab), {host.name: host.epoch for host in lab.hosts}

        database.stop()
        database.restore()
        database.start()
        assert sees(lambda: any(host.epoch > epochs[host.name] for host in lab.hosts), within_s=OBEYS_WITHIN_S)
        lab.settle()
        assert _standing(lab) == before
        lab.scale(pool, 6)
        lab.settle()


def _standing(lab: Installation) -> set[int]:
    """The pids of the workers that were not asked to leave."""
    return {each.pid for host in lab.hosts for each in host.recorded() if each.state in STANDING}
