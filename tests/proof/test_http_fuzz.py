"""The HTTP port against what Schemathesis draws from the API's description, with a token of each role."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from headway.store.access.credentials import Role
from proof.conftest import Proof
from security.schema_calls import (
    ROLES,
    actor_of,
    acts_of,
    assert_kept,
    inhabited,
    installed,
    secret_of,
    statuses,
    tried,
)

pytestmark = pytest.mark.proof

CASES_MIN = 1_000
EXAMPLES = 34  # of each of 37 operations at most: some have no more than a few
SERVES_S = 3_600.0


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("schemathesis"))


@pytest.fixture
def database(_database) -> Callable[[str], AbstractContextManager[str]]:
    """Makes a database, for a block."""
    return _database


@pytest.mark.parametrize("role", ROLES)
def test_http_fuzz(proof: Proof, database, program: Path, tmp_path: Path, role: Role) -> None:
    for seed in proof.seeds():
        folder = tmp_path / str(seed)
        folder.mkdir()
        with database("template0") as url, inhabited(url, folder, ends_in_s=SERVES_S) as (plane, host):
            token = secret_of(role, plane, host)
            actor = actor_of(role)
            before = acts_of(plane, actor)
            found, calls = tried(program, plane, token, folder, seed=seed, examples=EXAMPLES)
            assert not found, found
            assert len(calls) >= CASES_MIN, len(calls)
            assert_kept(role, calls, acts_of(plane, actor) - before)
            assert not [line for line in plane.said if "Traceback" in line]
        proof.record(seed, calls=len(calls), statuses=statuses(calls))
