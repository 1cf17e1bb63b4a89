"""Faults of hosts, leaders and Postgres, one beside the other, leave workers and jobs intact."""

import random
from pathlib import Path

import pytest

from lab.installation import installation
from lab.soak import Soak
from proof.conftest import Proof

pytestmark = pytest.mark.proof

FAULTS = 34  # of a round: six rounds are 200


def test_faults(proof: Proof, tmp_path: Path) -> None:
    """Workers converge after each, none doubled, none orphaned, none killed while busy; no job is lost.

    Targets are set by hand: with the pipeline each fault would cost minutes of two cores.
    """
    for seed in proof.seeds():
        rng, logs = random.Random(seed), tmp_path / str(seed)
        logs.mkdir()
        with installation(logs, rng=rng) as lab:
            soak = Soak(lab, rng)
            soak.begin()
            while soak.faults < FAULTS:
                soak.round()
            proof.record(seed, **soak.end())
