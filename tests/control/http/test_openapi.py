"""The API's description is committed, fresh, and promises names that clients may build on."""

import json
from dataclasses import fields
from pathlib import Path

from headway.control.http.openapi import description
from headway.control.http.schemas.profile_bodies import (
    ObjectiveBody,
    OverrideBody,
    OwnPauseBody,
    ProfileBody,
    ScheduleBody,
)
from headway.scaling.model import Objective
from headway.scaling.profile import Override, Pause, Profile, profile_to_mapping
from headway.scaling.profile_keys.presets import PRESETS
from headway.scaling.profile_keys.schedule import Schedule

COMMITTED = Path(__file__).parents[3] / "docs/reference/openapi.json"


def test_the_committed_description_is_fresh() -> None:
    assert description() == COMMITTED.read_text(), (
        "run: .venv/bin/python -m headway.control.http.openapi docs/reference/openapi.json"
    )


def test_operations_keep_their_names_and_declare_their_problems() -> None:
    described = json.loads(description())
    operations = [operation for methods in described["paths"].values() for method, operation in methods.items()]
    assert sorted(operation["operationId"] for operation in operations) == [
        "cordon_host",
        "create_session",
        "create_token",
        "delete_group",
        "delete_profile",
        "delete_session",
        "drain_host",
        "end_override",
        "end_silence",
        "explain_pool",
        "export_audit",
        "export_slo",
        "forget_host",
        "forget_queue",
        "forget_queues",
        "get_account",
        "get_behaviour",
        "get_group",
        "get_health",
        "get_history",
        "get_live",
        "get_pool_metrics",
        "get_pool_series",
        "get_profile",
        "get_prometheus_metrics",
        "get_queue_metrics",
        "get_queue_series",
        "get_restart",
        "get_silences",
        "get_slo",
        "get_system",
        "hosts_wanted",
        "kill_worker",
        "latest_decisions",
        "list_alerts",
        "list_audit",
        "list_cuts",
        "list_decisions",
        "list_groups",
        "list_hosts",
        "list_pools",
        "list_profiles",
        "list_queues",
        "list_tokens",
        "list_workers",
        "pause_pool",
        "put_group",
        "put_profile",
        "restart_pool",
        "resume_pool",
        "revoke_host_credential",
        "revoke_token",
        "rotate_host_credential",
        "send_telemetry",
        "set_override",
        "set_silence",
        "uncordon_host",
        "watch_events",
    ]
    assert described["openapi"].startswith("3.1")
    for operation in operations:
        refusals = {status: answer for status, answer in operation["responses"].items() if int(status) >= 400}
        assert {"401", "403", "500", "503"} <= refusals.keys()
        for answer in refusals.values():
            assert list(answer["content"]) == ["application/problem+json"]
    assert set(_references(described)) <= {
        f"#/components/schemas/{name}" for name in described["components"]["schemas"]
    }


def _references(value: object) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for inner in value.values() for found in _references(inner)]
    return [found for inner in value for found in _references(inner)] if isinstance(value, list) else []


def test_the_described_profile_is_the_cores() -> None:
    assert set(ProfileBody.model_fields) == {field.name for field in fields(Profile)} - {"pool"}
    assert set(ObjectiveBody.model_fields) == {field.name for field in fields(Objective)}
    smallest = {"queues": ["redis/mail"], "template": "rq"}
    described = ProfileBody.model_validate(smallest).model_dump(mode="json")
    assert described == profile_to_mapping(Profile(pool="mail", queues=("redis/mail",), template="rq"))


def test_what_a_profile_is_made_of_is_described_as_the_core_has_it() -> None:
    described = {OverrideBody: Override, OwnPauseBody: Pause, ScheduleBody: Schedule}
    for body, kind in described.items():
        assert set(body.model_fields) == {field.name for field in fields(kind)}
    preset = json.loads(description())["components"]["schemas"]["ProfileBody"]["properties"]["preset"]
    assert preset["anyOf"][0]["enum"] == list(PRESETS)
