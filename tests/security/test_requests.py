"""The HTTP port against whatever a caller of each role may send: every answer is one that the API describes."""

import json
import random
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from security.planes import Plane
from support.tree import ROOT

pytestmark = pytest.mark.e2e

DESCRIBED = json.loads((ROOT / "docs/reference/openapi.json").read_text())
OPERATIONS = [
    (method, path, operation)
    for path, methods in DESCRIBED["paths"].items()
    for method, operation in methods.items()
    if path != "/v1/events"  # answered for as long as somebody listens
]
ROLES = ["viewer", "operator", "admin", "ingest", "auditor"]
CASES = 12  # of each operation; the proof tries far more
ODD = [
    None,
    True,
    -1,
    0,
    2**63,
    1e308,
    "",
    "\0",
    "\n",
    "\x1b[2J",
    "..",
    "x/y",
    "\u202e",
    "x" * 1_001,
    [],
    [[]],
    {},
    {"": None},
]
TEXTS = ["mail", "redis/mail", "rq", "1", "viewer", "x" * 100, "\U0001f642"]
NUMBERS = {"integer": [0, 1, 7, 2**31], "number": [0.0, 1.0, 1.8e9, 1e-9]}


@pytest.fixture
def plane(shared_plane: Plane) -> Plane:
    return shared_plane


def value(rng: random.Random, schema: dict[str, Any]) -> Any:
    """What ``schema`` describes, but here and there something odd."""
    while "$ref" in schema:
        schema = DESCRIBED["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if rng.random() < 0.1:
        return rng.choice(ODD)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return value(rng, rng.choice(schema[several]))
    if "enum" in schema or "const" in schema:
        return rng.choice(schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "object":
        return mapping(rng, schema)
    if schema.get("type") == "array":
        return [value(rng, schema.get("items", {})) for _ in range(rng.choice([0, 1, 1, 3]))]
    plain = {"boolean": [True, False], "null": [None], **NUMBERS}.get(schema.get("type", ""), TEXTS)
    return rng.choice([schema[bound] for bound in ("minimum", "maximum") if bound in schema] + plain)


def mapping(rng: random.Random, schema: dict[str, Any]) -> dict[str, Any]:
    given, more = schema.get("properties", {}), schema.get("additionalProperties")
    needed = [name for name in given if name in schema.get("required", ()) or rng.random() < 0.5]
    extra = {"mail": value(rng, more)} if isinstance(more, dict) and more else {}
    return {name: value(rng, given[name]) for name in needed} | extra


def request(
    rng: random.Random, client: httpx.Client, method: str, path: str, operation: dict[str, Any]
) -> httpx.Request:
    query, headers = {}, {}
    for given in operation.get("parameters", ()):
        said = value(rng, given["schema"])
        text = said if isinstance(said, str) else json.dumps(said)
        if given["in"] == "path":
            path = path.replace(f"{{{given['name']}}}", quote(text, safe="") or "x")
        elif given["in"] == "query" and rng.random() < 0.6:
            query[given["name"]] = text
        elif given["in"] == "header" and rng.random() < 0.6:
            headers[given["name"]] = text.encode("ascii", "ignore").decode().translate(dict.fromkeys(range(32)))
    body = b""
    if "requestBody" in operation:
        body = json.dumps(value(rng, operation["requestBody"]["content"]["application/json"]["schema"])).encode()
        body = rng.choice([body, body, body, body, body[: len(body) // 2], b"", b"\xff"])
    return client.build_request(method, path, params=query, headers=headers, content=body)


@pytest.mark.parametrize("role", ROLES)
def test_whatever_a_role_asks_the_answer_is_described_and_no_defect_of_ours(plane: Plane, role: str) -> None:
    rng, before = random.Random(role), len(plane.said)
    with plane.client(plane.token(role, f"fuzz-{role}")) as client:
        for method, path, operation in OPERATIONS:
            for _ in range(CASES):
                asked = request(rng, client, method, path, operation)
                answer = client.send(asked)
                said = (asked.method, str(asked.url), asked.content, answer.status_code, answer.text[:500])
                # A name may lead to another path, or to none.
                described = {*operation["responses"], *(("404", "405") if "{" in path else ())}
                assert str(answer.status_code) in described, said
                assert answer.status_code < 500, said
    assert not [line for line in plane.said[before:] if "Traceback" in line]
