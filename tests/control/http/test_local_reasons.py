"""What a control plane has met by itself is in its health: upkeep, its certificate, ended credentials, wrong clocks."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from control.http.conftest import NOW_S
from control.http.values import BATCH
from headway.control.auth.authenticator import Authenticator
from headway.control.auth.certificates import Certificates
from headway.control.auth.pki import make_ca, make_server, write_pair
from headway.control.http.overview.health_reasons import process_facts
from headway.control.ingest.ingest import Ingest
from headway.control.scheduler.maintenance import Maintenance
from headway.scaling.conditions.causes import ailing_installation
from headway.scaling.conditions.installation_facts import ENDED_SHOWN_S, HealthRow, InstallationFacts, PipelineRow
from headway.store.engine import Engine
from support.seed import Seed

PIPELINE = PipelineRow(pipeline="metrics", is_ready=True, written_age_s=1.0, batch_s=0.4, lag_s=0.0)
LED = HealthRow(leader="here:1", epoch=3, leader_age_s=1.0, pipelines=(PIPELINE,))
TOKEN = "a-shared-token-of-32-characters!"


@pytest.fixture
def reasons(ingest: Ingest) -> Callable[..., list[tuple[str, str]]]:
    def made(**values: Any) -> list[tuple[str, str]]:
        given = {"callers": Authenticator(token=None), "upkeep": None, "certificates": None, **values}
        callers = given.pop("callers")
        facts = InstallationFacts(known=LED, process=process_facts(ingest, callers, now_s=NOW_S, **given))
        return [(each.kind, each.text) for each in ailing_installation(facts)]

    return made


async def test_upkeep_that_fails_is_reported_with_its_reason(reasons, engine) -> None:
    async def failing(_engine: Engine) -> None:
        raise PermissionError("must be owner of table decisions")

    async def working(_engine: Engine) -> None:
        return None

    upkeep = Maintenance()
    assert reasons(upkeep=upkeep) == []
    await upkeep.do("partitions", failing, engine)
    assert reasons(upkeep=upkeep) == [
        ("upkeep", "upkeep of partitions fails: must be owner of table decisions; see the control plane's log")
    ]
    await upkeep.do("partitions", working, engine)
    assert reasons(upkeep=upkeep) == []


@pytest.mark.parametrize(("days", "says"), [(-1, "expired 24 h ago: no client takes it"), (2, None)])
def test_a_certificate_that_has_ended_is_reported(reasons, tmp_path: Path, days: int, says: str | None) -> None:
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    write_pair(make_server(make_ca("x"), ["x"], days=days), certificate=certificate, key=key, is_replacing=False)
    found = reasons(certificates=Certificates(certificate, key))
    assert [kind for kind, _ in found] == ([] if says is None else ["certificate"])
    assert all(says in text for _, text in found)


async def test_calls_with_what_was_revoked_are_reported_and_guesses_are_not(api, engine, seed: Seed) -> None:
    """Who guesses could else turn health red at will."""
    ahead_s = 0.0
    callers = Authenticator(token=TOKEN, engine=engine, clock=lambda: time.monotonic() + ahead_s)
    app = api(token=TOKEN, callers=callers)
    seed.leader()
    seed.pipeline()
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        admin = {"Authorization": f"Bearer {TOKEN}"}
        made = await client.post("/v1/tokens", json={"role": "viewer", "name": "v"}, headers=admin)
        shown = {"Authorization": f"Bearer {made.json()['secret']}"}
        guess = {"Authorization": "Bearer hwt_nobody-has-ever-had-this"}
        assert (await client.get("/v1/hosts", headers=guess)).status_code == 401
        assert (await client.get("/v1/health")).json()["kinds"] == []
        assert (await client.delete("/v1/tokens/v", headers=admin)).status_code == 204
        assert (await client.get("/v1/hosts", headers=shown)).status_code == 401
        health = (await client.get("/v1/health")).json()
        assert health["kinds"] == ["credentials"]
        assert health["reasons"][0].startswith("1 call used a token or credential that was revoked or has expired in")
        metrics = await client.get("/metrics", headers=admin)
        assert 'headway_health_reason{reason="credentials"} 1.0' in metrics.text
        ahead_s = ENDED_SHOWN_S
        assert (await client.get("/v1/health")).json()["kinds"] == []


@pytest.mark.parametrize(
    ("sent_at_s", "event_at_s", "says"),
    [
        (NOW_S, NOW_S, None),
        (
            NOW_S - 300.0,
            NOW_S - 300.0,
            "the clock of 1 sender of telemetry is wrong, 5 min behind this control plane's",
        ),
        (NOW_S + 300.0, NOW_S + 300.0, "the clock of 1 sender of telemetry is wrong, 5 min ahead of this control"),
        (NOW_S, NOW_S + 3600.0, "2 times of jobs in the last 60 s lay in the future and had to be corrected"),
        (NOW_S, NOW_S - 3600.0, None),  # late, as after an outage: no clock need be wrong
    ],
)
async def test_a_wrong_clock_is_reported(
    client: httpx.AsyncClient, reasons, sent_at_s: float, event_at_s: float, says: str | None
) -> None:
    events = [
        {**event, **{name: event_at_s for name in ("at_s", "enqueued_at_s") if name in event}}
        for event in BATCH["events"]
    ]
    answer = await client.post("/v1/telemetry", json=BATCH | {"sent_at_s": sent_at_s, "events": events})
    assert answer.status_code == 200
    found = reasons()
    assert [kind for kind, _ in found] == ([] if says is None else ["clock"])
    assert all(text.startswith(says) for _, text in found)


async def test_this_machines_clock_is_compared_with_that_of_postgres(
    client: httpx.AsyncClient, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed.leader()
    seed.pipeline()
    assert (await client.get("/v1/health")).json()["status"] == "ok"
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600.0)
    health = (await client.get("/v1/health")).json()
    assert health["kinds"] == ["clock"]
    assert "60 min behind that of Postgres" in health["reasons"][0]


@pytest.mark.parametrize(("behind_s", "is_shown"), [(300.0, True), (6.0, True), (4.0, False), (0.0, False)])
async def test_the_clock_of_a_host_that_is_behind_shows_in_the_jobs_it_starts(
    client: httpx.AsyncClient, reasons, behind_s: float, is_shown: bool
) -> None:
    """A collector, whose own clock is right, reports what the host's workers wrote down."""
    started = {
        "queue": "redis/mail",
        "job_id": "1",
        "kind": "started",
        "at_s": NOW_S - behind_s,
        "enqueued_at_s": NOW_S,
    }
    answer = await client.post("/v1/telemetry", json=BATCH | {"sent_at_s": NOW_S, "events": [started]})
    assert answer.status_code == 200
    says = (
        "1 job of the last 60 s began before being enqueued, by the clocks of both: the clock of a host that runs jobs "
        "is behind, and pickup times are too short by as much"
    )
    assert reasons() == ([("clock", says)] if is_shown else [])
