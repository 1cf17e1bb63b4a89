"""A short seed of the soak of ``tests/proof/test_faults.py``: hosts, real workers, and what may go wrong with them."""

import random
from pathlib import Path

import pytest

from lab.installation import installation
from lab.soak import Soak

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

SEED, FAULTS = 1, 6


def test_workers_and_jobs_survive_a_handful_of_faults(tmp_path: Path) -> None:
    """Where this machine has no namespaces or cgroups, hosts are addresses, and what cannot be made is not drawn."""
    rng = random.Random(SEED)
    with installation(tmp_path, rng=rng) as lab:
        soak = Soak(lab, rng)
        soak.begin()
        while soak.faults < FAULTS:
            soak.round()
        told = soak.end()
    assert told["jobs_done"] == told["jobs_in"] > 0
    assert told["busy_killed"] == 0
