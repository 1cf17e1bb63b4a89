"""A few calls of each operation, as the API's description allows and forbids them, with a token of each role.

`make proof` makes some 20,000: tests/proof/test_http_fuzz.py.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headway.store.access.credentials import Role
from security.hosts import Host
from security.planes import Plane
from security.schema_calls import ROLES, actor_of, acts_of, assert_kept, inhabited, installed, secret_of, tried

pytestmark = pytest.mark.e2e

FEW = ("--phases", "fuzzing", "--mode", "positive")
# Each role where it may something and others may not; the one that changes most, everywhere.
ASKS = {
    Role.VIEWER: ("profiles", "decisions"),
    Role.OPERATOR: (),
    Role.ADMIN: ("tokens",),
    Role.INGEST: ("telemetry", "account"),
    Role.AUDITOR: ("audit",),
    Role.HOST: ("hosts",),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("schemathesis"))


@pytest.fixture(scope="module")
def place(_database, _migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Plane, Host]]:
    with _database(_migrated_template) as url, inhabited(url, tmp_path_factory.mktemp("plane")) as place:
        yield place


def tried_as(role: Role, program: Path, place: tuple[Plane, Host], folder: Path) -> int:
    """How many calls were answered, each as it has to be."""
    plane, host = place
    folder.mkdir()
    secret, actor = secret_of(role, plane, host), actor_of(role)
    before = acts_of(plane, actor)
    found, calls = tried(
        program,
        plane,
        secret,
        folder,
        seed=1,
        examples=1,
        options=(*FEW, *(f"--include-tag={tag}" for tag in ASKS[role])),
    )
    assert not found, found
    assert_kept(role, calls, acts_of(plane, actor) - before)
    return len(calls)


def test_each_role_asks() -> None:
    assert ASKS.keys() == set(ROLES)


def test_nothing_fails_and_nothing_is_allowed_beyond_a_role(
    place: tuple[Plane, Host], program: Path, tmp_path: Path
) -> None:
    # At once: whoever is refused is held back, and most of the time is waited for.
    with ThreadPoolExecutor(len(ASKS)) as pool:
        calls = [pool.submit(tried_as, role, program, place, tmp_path / role.value) for role in ASKS]
        assert all(each.result() for each in calls)
    assert not [line for line in place[0].said if "Traceback" in line]
