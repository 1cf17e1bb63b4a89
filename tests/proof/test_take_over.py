"""How long nobody leads when the leader is killed, hangs or is cut off, with work to decide meanwhile."""

import random
import time
from pathlib import Path

import pytest

from lab.faults import KILLED, Fault, central_faults
from lab.installation import Installation, installation
from lab.programs import sees
from lab.soak import KILLED_S, SILENT_S
from proof.conftest import Proof

pytestmark = pytest.mark.proof

POOL = "letters"


def test_take_over(proof: Proof, tmp_path: Path) -> None:
    """Another control plane leads within a second of a kill and 15 s of silence; its first tick follows at once."""
    for seed in proof.seeds():
        rng, logs = random.Random(seed), tmp_path / str(seed)
        logs.mkdir()
        with installation(logs, hosts=1, rng=rng) as lab:
            lab.scale(POOL, 1)
            lab.settle()
            leader = lab.leader()
            assert leader is not None
            kinds = [fault.kind for fault in central_faults(lab, leader, rng) if fault.ends_lead]
            figures = {kind: _taken_over(lab, kind, workers=2 + number, rng=rng) for number, kind in enumerate(kinds)}
            refused = sum(control.program.said("stepping down: ") for control in lab.controls)
        led_s = {kind: led for kind, (led, _) in figures.items()}
        decided_s = {kind: decided for kind, (_, decided) in figures.items()}
        proof.record(seed, led_s=led_s, decided_s=decided_s, stale_writes_refused=refused)


def _taken_over(lab: Installation, kind: str, *, workers: int, rng: random.Random) -> tuple[float, float]:
    """Seconds from the begin of the fault until another leads, and until it has decided."""
    leader, was = lab.leader(), lab.lead()
    assert leader is not None
    assert was is not None
    fault: Fault = next(each for each in central_faults(lab, leader, rng) if each.kind == kind)
    lab.scale(POOL, workers)  # news to whoever leads next
    began_at_s = time.time()
    fault.begin()
    try:
        assert sees(lambda: (lead := lab.lead()) is not None and lead.epoch > was.epoch, within_s=SILENT_S)
        lead = lab.lead()
        assert lead is not None
        led_s = lead.taken_at_s - began_at_s
        assert led_s <= (KILLED_S if kind == KILLED else SILENT_S)
        assert sees(lambda: lab.decided_at_s(epoch=lead.epoch) is not None, within_s=SILENT_S)
        decided_at_s = lab.decided_at_s(epoch=lead.epoch)
        assert decided_at_s is not None
    finally:
        fault.end()
    lab.settle()
    return round(led_s, 2), round(decided_at_s - began_at_s, 2)
