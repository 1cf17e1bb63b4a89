"""This version goes on with what an earlier one left, in the middle of its work, when its machine lost power.

Nothing is lost and nothing counted twice: what the event log, the collector's outbox and the broker held is counted
once, the living worker is taken over, and what people set up is as they left it. ``test_rows.py`` compares the tables.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from upgrade.recorded import Installation, State, contains, states

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

DAY_S = 86_400.0
DECISIONS_KEPT_S = 13 * DAY_S
METRICS_KEPT_S = 399 * DAY_S
MAY = {"viewer": 200, "operator": 200, "admin": 200, "auditor": 403, "ingest": 403, "gone": 401}
VOLATILE = {
    "used_at",
    "used_at_s",
    "first_used_at_s",
    "expires_in_s",
    "state",
    "age_s",
    "override",
}  # that one has ended


@pytest.fixture(params=states(), ids=lambda state: state.folder.name)
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    state: State = request.param
    found = Installation(state, tmp_path)
    try:
        yield found
    finally:
        found.stop()


def test_this_version_goes_on_where_an_earlier_one_ended(installation: Installation) -> None:
    query = _query(installation)
    pid = installation.start_worker()
    installation.start()

    _is_set_up_as_before(installation)
    assert _query(installation) == query, "the checkpoint was made anew"
    _is_taken_over(installation, pid)

    installation.send("mail", 3)
    installation.send("reports", 2)
    installation.until(lambda: installation.ended() == installation.jobs)
    expected = installation.expected()
    installation.until(lambda: _is_counted(installation.totals(), expected))
    if time.time() - installation.facts["recorded_at_s"] < METRICS_KEPT_S:
        assert installation.totals() == expected
    assert "mail" in installation.headway("explain", "mail")


def _is_taken_over(installation: Installation, pid: int) -> None:
    """The agent reports the worker as its own, or has asked it to end since, as others were enough."""
    reported = {worker["pid"] for worker in installation.workers()}
    assert pid in reported or f"draining pool=mail pid={pid}" in installation.printed("agent")


def _is_set_up_as_before(installation: Installation) -> None:
    said, age_s = installation.facts["said"], time.time() - installation.facts["recorded_at_s"]
    for name, path in {"profiles": "/v1/profiles", "audit": "/v1/audit?limit=500", "tokens": "/v1/tokens"}.items():
        found = installation.answer(path).raise_for_status().json()
        assert contains(found, _lasting(said[name])), f"{path} has changed: {json.dumps(found, indent=1)}"
    if age_s < DECISIONS_KEPT_S:
        found = installation.answer("/v1/decisions?limit=500").raise_for_status().json()
        assert contains(found["decisions"], said["decisions"]["decisions"])
    hosts = installation.answer("/v1/hosts").raise_for_status().json()["hosts"]
    assert [host["host_id"] for host in hosts] == [host["host_id"] for host in said["hosts"]["hosts"]], "enrolled anew"
    statuses = {token: installation.answer("/v1/pools", token=token).status_code for token in MAY}
    assert statuses == MAY


def _lasting(said: object) -> object:
    """Without what changes from one moment to the next."""
    if isinstance(said, dict):
        return {name: _lasting(value) for name, value in said.items() if name not in VOLATILE}
    return [_lasting(each) for each in said] if isinstance(said, list) else said


def _is_counted(totals: dict[str, tuple[int, ...]], expected: dict[str, tuple[int, ...]]) -> bool:
    """Whether nothing is missing; more than there is shows in the comparison."""
    return all(
        all(found >= wanted for found, wanted in zip(totals.get(queue, (0, 0, 0)), counts, strict=True))
        for queue, counts in expected.items()
    )


def _query(installation: Installation) -> str:
    """What Spark calls the query that the checkpoint is of."""
    return str(json.loads((installation.data / "checkpoint" / "metadata").read_text())["id"])
