"""The generated client with a real control plane: what an operator does in a day, and each way to be refused."""

import re
import time
from pathlib import Path

import httpx
import pytest
from attrs import evolve

from headway.client import ApiProblem, answered, connected
from headway.client.v1.api.audit import export_audit, list_audit
from headway.client.v1.api.decisions import list_decisions
from headway.client.v1.api.health import get_health
from headway.client.v1.api.profiles import (
    delete_profile,
    end_override,
    get_profile,
    list_profiles,
    pause_pool,
    put_profile,
    resume_pool,
    set_override,
)
from headway.client.v1.api.queues import forget_queue, list_pools, list_queues
from headway.client.v1.api.telemetry import send_telemetry
from headway.client.v1.client import AuthenticatedClient, Client
from headway.client.v1.models.pause_body import PauseBody
from headway.client.v1.models.profile_body import ProfileBody
from headway.client.v1.models.sample_body import SampleBody
from headway.client.v1.models.set_override_body import SetOverrideBody
from headway.client.v1.models.telemetry_body import TelemetryBody
from headway.errors import Invalid, Misconfigured
from security.planes import Plane
from support.tree import ROOT
from support.waiting import eventually

PAGE = ROOT / "docs/reference/python-api.md"
MAIL = ProfileBody(queues=["rq/mail"], template="rq", workers_max=8)
Caller = AuthenticatedClient | Client


def caller(plane: Plane, folder: Path, role: str) -> Caller:
    """A client as a program of an application makes it: by the environment, with a token in a file."""
    file = folder / role
    file.write_text(plane.token(role, f"{role}-{time.monotonic_ns()}"))
    file.chmod(0o600)
    return connected({"HEADWAY_URL": plane.http, "HEADWAY_TOKEN_FILE": str(file)})


def test_a_day_of_an_operator(plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # loopback is not reached through it
    with caller(plane, tmp_path, "operator") as operator, caller(plane, tmp_path, "admin") as admin:
        assert answered(get_health.sync_detailed(client=operator)).status in {"ok", "degraded"}

        tried = answered(put_profile.sync_detailed("mail", client=operator, body=MAIL, dry_run=True))
        assert (tried.version, answered(list_profiles.sync_detailed(client=operator)).profiles) == (1, [])
        made = put_profile.sync_detailed("mail", client=operator, body=MAIL, if_none_match="*")
        assert (made.status_code, answered(made).profile.workers_max) == (201, 8)

        sample = SampleBody(queue="rq/mail", at_s=time.time(), waiting_jobs=3, oldest_age_s=1.0)
        batch = TelemetryBody(producer="shop", sequence=1, sent_at_s=time.time(), samples=[sample])
        assert answered(send_telemetry.sync_detailed(client=caller(plane, tmp_path, "ingest"), body=batch))
        seen = eventually(lambda: answered(list_queues.sync_detailed(client=operator)).queues)
        assert [queue.queue for queue in seen] == ["rq/mail"]
        assert [pool.pool for pool in answered(list_pools.sync_detailed(client=operator)).pools] == ["mail"]

        override = SetOverrideBody(workers=5, for_s=600, reason="sale")
        answered(set_override.sync_detailed("mail", client=operator, body=override))
        pause = PauseBody(mode="pause", reason="deploy", for_s=600)
        assert answered(pause_pool.sync_detailed("mail", client=operator, body=pause))
        assert answered(resume_pool.sync_detailed("mail", client=operator))
        assert answered(end_override.sync_detailed("mail", client=operator))
        decision = eventually(lambda: answered(list_decisions.sync_detailed(client=operator, pool="mail")).decisions)[0]
        assert decision.decision.pool == "mail"

        now = get_profile.sync_detailed("mail", client=operator)
        gone = delete_profile.sync_detailed("mail", client=operator, if_match=now.headers["etag"])
        assert (gone.status_code, answered(gone)) == (204, None)

        acts = answered(list_audit.sync_detailed(client=admin, subject="*mail*")).acts
        assert len(acts) >= 5
        exported = answered(export_audit.sync_detailed(client=admin))
        assert isinstance(exported, str)
        assert len(exported.splitlines()) >= len(acts)


def test_the_example_of_the_page_runs(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    with caller(plane, tmp_path, "operator") as operator:
        answered(put_profile.sync_detailed("shop", client=operator, body=evolve(MAIL, queues=["rq/shop"])))
    monkeypatch.setenv("HEADWAY_URL", plane.http)
    monkeypatch.setenv("HEADWAY_TOKEN_FILE", str(tmp_path / "operator"))
    for pool, said in (("shop", "shop unseen "), ("none", "404 ")):
        exec(example.replace('"mail"', f'"{pool}"'), {})
        assert any(line.startswith(said) for line in capsys.readouterr().out.splitlines())


async def test_the_same_without_waiting_for_each_answer(plane: Plane, tmp_path: Path) -> None:
    async with caller(plane, tmp_path, "viewer") as viewer:
        assert answered(await list_pools.asyncio_detailed(client=viewer)).pools is not None


def test_each_refusal_is_a_problem_with_its_reasons(plane: Plane, tmp_path: Path) -> None:
    stranger = AuthenticatedClient(base_url=plane.http, token="no")
    with caller(plane, tmp_path, "viewer") as viewer, caller(plane, tmp_path, "operator") as operator, stranger:
        wrong = ProfileBody(queues=["rq/mail"], template="rq", workers_min=5, workers_max=3)
        refused = (
            (lambda: get_profile.sync_detailed("none", client=viewer), 404),
            (lambda: get_profile.sync_detailed("a b?c=%2e", client=viewer), 404),  # a name, whatever is in it
            (lambda: put_profile.sync_detailed("mail", client=viewer, body=MAIL), 403),
            (lambda: put_profile.sync_detailed("mail", client=operator, body=wrong), 422),
            (lambda: forget_queue.sync_detailed("rq/none", client=operator), 404),
            (
                lambda: get_profile.sync_detailed("mail", client=stranger),
                401,
            ),
        )
        for call, status in refused:
            with pytest.raises(ApiProblem) as raised:
                answered(call())
            assert raised.value.problem.status == status
            assert str(raised.value) == raised.value.problem.detail
            if status == 422:
                assert "workers_min" in str(raised.value.problem.breaches)


def test_without_a_token_health_alone_answers(plane: Plane) -> None:
    with connected({"HEADWAY_URL": plane.http}) as stranger:
        assert answered(get_health.sync_detailed(client=stranger)).status
        with pytest.raises(ApiProblem, match="token"):
            answered(list_pools.sync_detailed(client=stranger))


def test_a_control_plane_that_is_not_there_is_an_error_of_httpx() -> None:
    with connected({"HEADWAY_URL": "http://127.0.0.1:1"}) as client, pytest.raises(httpx.ConnectError):
        get_health.sync_detailed(client=client)


def test_a_wrong_setting_is_named() -> None:
    with pytest.raises((Invalid, Misconfigured), match="HEADWAY_TOKEN_FILE"):
        connected({"HEADWAY_URL": "http://127.0.0.1:1", "HEADWAY_TOKEN_FILE": "/nowhere"})
    with pytest.raises((Invalid, Misconfigured), match="HEADWAY_TLS_CA"):
        connected({"HEADWAY_URL": "https://127.0.0.1:1", "HEADWAY_TLS_CA": "/nowhere"})
