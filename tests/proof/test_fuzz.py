"""The gRPC port against whatever callers may send: no answer is a defect of ours."""

from pathlib import Path

import pytest

from proof.conftest import Proof
from security.fuzz import DEFECTS, fuzzed
from security.planes import serving

pytestmark = pytest.mark.proof

CALLS = 10_000
SERVES_S = 7_200.0


@pytest.fixture
def database(_database):
    """Makes a database, for a block."""
    return _database


def test_grpc_fuzz(proof: Proof, database, tmp_path: Path) -> None:
    for seed in proof.seeds():
        with database("template0") as url, serving(url, tmp_path, ends_in_s=SERVES_S) as plane:
            found = fuzzed(plane, calls=CALLS, seed=seed)
            assert not DEFECTS & found.keys(), found
            assert not [line for line in plane.said if "Traceback" in line]
            with plane.client() as client:
                assert client.get("/v1/health/live").status_code == 200
        proof.record(seed, calls=CALLS, statuses={status.name.lower(): count for status, count in found.items()})
