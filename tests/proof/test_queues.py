"""Twenty stories a queue library, each of 300 moves: each life is reported once, and samples are its own answers."""

import shutil
import tempfile
import time
from pathlib import Path

import pytest

from headway.store.embedded import Server
from proof.conftest import Proof
from support.queues.lives import CLOSE_S
from support.queues.rows import ROWS, played
from support.queues.scene import WIDTH_S

pytestmark = pytest.mark.proof

SEEDS = 20
MOVES = 300
CLOSE_PART = 0.9  # on a machine that has much else to do; the ledger has the figure


@pytest.mark.parametrize("row", ROWS)
def test_queues(proof: Proof, valkey_server: Server, row: str) -> None:
    for seed in proof.seeds():
        if seed > SEEDS:
            return
        began_s = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix=f"headway-queues-{row}-{seed}-"))  # kept where the round fails
        with played(row, valkey_server.url, folder, seed, moves=MOVES) as scene:
            verdict = scene.verdict()
            assert verdict.differences == [], folder
            assert scene.own.differences == [], folder
            figures = {**verdict.figures(), **scene.own.figures()}
            assert figures["within_50_ms"] >= CLOSE_PART, CLOSE_S
            assert figures["age_width_s"]["p50"] <= WIDTH_S
            took_s = round(time.monotonic() - began_s, 1)
            proof.record(seed, moves=MOVES, runs=len(scene.runs()), made=dict(scene.made), **figures, took_s=took_s)
        shutil.rmtree(folder)
