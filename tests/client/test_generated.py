"""The client that was built is that of the description: every operation, and no default of the server's own."""

import ast
import hashlib
import importlib
import json
import tomllib
from importlib.util import find_spec
from typing import Any

import pytest

from headway.client.v1.models.objective_body import ObjectiveBody
from headway.client.v1.models.profile_body import ProfileBody
from support.tree import ROOT, SERVICE

DESCRIPTION = ROOT / "docs/reference/openapi.json"
BUILT = SERVICE / "client/v1"
OPERATIONS: dict[str, dict[str, Any]] = {
    operation["operationId"]: operation
    for methods in json.loads(DESCRIPTION.read_text())["paths"].values()
    for operation in methods.values()
}


def test_it_was_made_of_the_description_that_is_committed() -> None:
    """`make install` builds it anew."""
    generator = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    (pinned,) = generator["hooks"]["custom"]["dependencies"]
    hook = (ROOT / "tools/build_client.py").read_bytes()
    parts = (DESCRIPTION.read_bytes(), hook, pinned.removeprefix("openapi-python-client==").encode())
    assert (BUILT / "made_from.txt").read_text() == hashlib.sha256(b"\0".join(parts)).hexdigest(), "run `make install`"


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_a_module_that_reads_what_it_may_answer(name: str) -> None:
    """What the generator cannot read it leaves out with a warning."""
    operation = OPERATIONS[name]
    module = importlib.import_module(f"headway.client.v1.api.{operation['tags'][0]}.{name}")
    assert {"sync_detailed", "asyncio_detailed"} <= set(dir(module))
    spec = find_spec(module.__name__)
    assert spec is not None
    assert spec.origin is not None
    with open(spec.origin) as file:  # noqa: PTH123 — a path of the import system
        stored = {
            node.id
            for node in ast.walk(ast.parse(file.read()))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
    assert {f"response_{status}" for status in operation["responses"]} <= stored


def test_a_body_has_the_keys_that_were_given_and_no_more() -> None:
    """A key that is sent takes the place of the preset's."""
    body = ProfileBody(queues=["rq/mail"], template="rq", preset="bursty", objective=ObjectiveBody(target_s=5))
    assert body.to_dict() == {
        "queues": ["rq/mail"], "template": "rq", "preset": "bursty", "objective": {"target_s": 5}
    }  # fmt: skip
