"""The API's description breaks no caller of the recorded version, but where that was meant."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from api_breaks import Comparison
from support.tree import ROOT

BASELINE = json.loads(Path(__file__).with_name("api_baseline.json").read_text())
"""That of the version at which the oldest of ``tests/upgrade/states`` began, without its words."""
ON_PURPOSE = {
    # A source that reports no events of a kind: what was 0 is unknown.
    "GET /v1/pools/{pool}/history: 200.buckets[].": "may now be null",
    "GET /v1/queues/{queue}/metrics: 200.windows[].": "may now be null",
    # A pool in mode `recommend` whose broker lists no workers.
    "GET /v1/pools: 200.pools[].running_workers: ": "may now be null",
    # Hosts wanted are missing ones: none are called spare.
    "GET /v1/hosts/wanted: 200.wanted[].": "is gone",
    # Bounds on what one caller can send at once.
    "PUT /v1/profiles/{pool}: body.schedules: ": "maxItems is now 100",
    # Bounds that the core has always held, and refused with 422: the description has them now.
    **{
        f"PUT /v1/profiles/{{pool}}: body.{key}: ": f"is now {bound}"
        for key, bound in {
            "objective.target_s": "86400.0",
            "rate_limit_per_s": "1000000000.0",
            "priority": "1000000.0",
            "strategy_options[]": "1000000000.0",
            "step_up_workers": "10000.0",
            "step_up_fraction": "10000.0",
            "step_down_workers": "10000.0",
            "step_down_fraction": "10000.0",
            "fallback_workers": "10000.0",
            "cost_per_worker_hour": "1000000000.0",
            "budget_per_hour": "1000000000.0",
            "budget_per_day": "1000000000.0",
        }.items()
    },
    "PUT /v1/profiles/{pool}: body.priority: minimum ": "is now 0.0",
    "PUT /v1/profiles/{pool}: body.strategy_options[]: minimum ": "is now -1000000000.0",
    "POST /v1/telemetry: body.": "maxItems is now 10000",
}


def is_meant(found: str) -> bool:
    return any(found.startswith(where) and found.endswith(what) for where, what in ON_PURPOSE.items())


def test_nothing_breaks_that_was_not_meant_to() -> None:
    now = json.loads((ROOT / "docs/reference/openapi.json").read_text())
    assert [found for found in Comparison(BASELINE, now).breaks() if not is_meant(found)] == []


def test_what_was_meant_still_breaks_and_else_would_hide_something() -> None:
    found = list(Comparison(BASELINE, json.loads((ROOT / "docs/reference/openapi.json").read_text())).breaks())
    for where, what in ON_PURPOSE.items():
        assert any(each.startswith(where) and each.endswith(what) for each in found), where


def described() -> dict[str, Any]:
    """One operation that takes and answers what holds itself."""
    node = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 9, "enum": ["a", "b"]},
            "size": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "below": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        },
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}
    put = {
        "operationId": "put_node",
        "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 50}}],
        "requestBody": {"required": True, "content": content},
        "responses": {"200": {"content": content}, "404": {}},
    }
    return {"paths": {"/n": {"put": put}}, "components": {"schemas": {"Node": node}}}


def keys(description: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = description["components"]["schemas"]["Node"]["properties"]
    return found


def put(description: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = description["paths"]["/n"]["put"]
    return found


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda new: new["paths"].clear(), {"is gone"}),
        (lambda new: put(new).update(operationId="set_node"), {"is called 'set_node' and was 'put_node'"}),
        (lambda new: put(new)["parameters"].clear(), {"no longer takes 'limit' in query"}),
        (lambda new: put(new)["parameters"][0].update(required=True), {"'limit' must now be given"}),
        (lambda new: put(new)["parameters"][0]["schema"].update(maximum=20), {"limit: maximum is now 20"}),
        (lambda new: put(new)["responses"].pop("200"), {"no longer answers 200"}),
        (lambda new: keys(new).pop("name"), {"body.name: is gone", "200.name: is gone"}),
        (lambda new: keys(new)["name"].pop("enum"), set()),
        (lambda new: keys(new)["name"]["enum"].remove("b"), {"body.name: no longer takes b"}),
        (lambda new: keys(new)["name"].update(maxLength=5), {"body.name: maxLength is now 5"}),
        (lambda new: keys(new)["name"].update(pattern="a+"), {"body.name: pattern is now a+"}),
        (lambda new: keys(new)["size"]["anyOf"].pop(), {"body.size: may no longer be null"}),
        (lambda new: keys(new)["size"]["anyOf"].append({"type": "string"}), {"200.size: may now be string"}),
        (lambda new: keys(new).update(size={"type": "integer"}),
         {"body.size: may no longer be number", "body.size: may no longer be null"}),
        (lambda new: new["components"]["schemas"]["Node"]["required"].append("size"), {"body.size: must now be given"}),
        (lambda new: new["components"]["schemas"]["Node"]["required"].clear(), {"200.name: may now be absent"}),
    ],
)  # fmt: skip
def test_each_way_to_break_a_caller_is_found(change: Change, says: set[str]) -> None:
    new = deepcopy(described())
    change(new)
    assert set(Comparison(described(), new).breaks()) == {f"PUT /n: {each}" for each in says}


@pytest.mark.parametrize(
    "change",
    [
        lambda new: new["paths"].update({"/more": {}}),
        lambda new: keys(new).update(more={"type": "string"}),
        lambda new: put(new)["parameters"].append({"name": "more", "in": "query", "schema": {}}),
        lambda new: put(new)["parameters"][0]["schema"].pop("maximum"),
        lambda new: put(new)["responses"].update({"202": {}}),
    ],
)
def test_what_adds_breaks_nobody(change: Change) -> None:
    new = deepcopy(described())
    change(new)
    assert list(Comparison(described(), new).breaks()) == []
