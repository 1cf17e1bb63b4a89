"""Faults on a machine that was booted a moment ago leave workers and jobs intact, boot clocks that jump among them."""

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from headway.local import procfs
from lab.clocks import ahead, can_skew_boot
from lab.faults import BOOT_SKEWED
from proof.conftest import Proof

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not can_skew_boot(), reason="this machine has no time namespaces"),
]

FAULTS = 6  # as in tests/e2e/test_faults.py; then each round has one of boot clocks alone
BOOTED_S_AGO = (20.0, 600.0)
ROUND_S_MAX = 1_200.0


def test_boot_clocks(proof: Proof, tmp_path: Path) -> None:
    """The lab is a program in a time namespace whose boot is drawn from the seed, near ones as often as far ones."""
    for seed in proof.seeds():
        booted_s_ago = math.exp(random.Random(seed).uniform(*map(math.log, BOOTED_S_AGO)))
        logs = tmp_path / str(seed)
        logs.mkdir()
        under = ahead(booted_s_ago - procfs.since_boot_s())
        done = subprocess.run(
            [*under, sys.executable, "-m", "lab.near_boot", str(seed), str(FAULTS), str(logs)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=ROUND_S_MAX,
            check=False,
        )
        assert done.returncode == 0, f"seed {seed}, booted {booted_s_ago:.0f} s ago: {done.stderr}"
        found = json.loads(done.stdout.splitlines()[-1])
        assert found["by_kind"][BOOT_SKEWED] > 0
        proof.record(seed, **found)
