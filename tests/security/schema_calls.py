"""Requests that Schemathesis draws from the API's own description, and what came of them.

Schemathesis is a plugin of pytest as well, so that it lives in an environment of its own: ``installed`` makes it.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from headway.control.http.permissions import RIGHTS, allows
from headway.store.access.credentials import Role
from headway.wire.v1.agent_pb2_grpc import AgentServiceStub
from security.hosts import Host
from security.planes import ENDS_IN_S, TOKEN, Plane, serving
from support.tree import ROOT

UV = Path(sys.executable).with_name("uv")
INSTALLED_WITHIN_S, TRIED_WITHIN_S = 600.0, 3_600.0
ROLES = [role for role in Role if role is not Role.JOIN]  # which the HTTP port does not know
SIGN_IN = ("POST", "/v1/session")  # with a token that is drawn, too
MAY_CHANGE = {Role.OPERATOR, Role.ADMIN}
ADMINS_ALONE = ("token ", "credential ")  # how acts begin that only an administrator may do
WITHOUT_TOKEN = {"/v1/health", "/v1/health/live"}
SETTINGS = ROOT / "tests/security/schemathesis.toml"


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was answered."""

    method: str
    path: str
    """As it was sent, with what its escapes stand for."""
    status: int

    def is_beyond(self, role: Role) -> bool:
        """Whether it was answered though no operation that the path may mean is one of ``role``."""
        if self.status >= 400 or self.path in WITHOUT_TOKEN:
            return False
        rights = [needed for (method, path), needed in RIGHTS.items() if self._may_mean(method, path)]
        return not any(allows(role, needed) for needed in rights)

    def _may_mean(self, method: str, path: str) -> bool:
        # A queue's name may have slashes and line breaks.
        pattern = re.sub(r"\{\w+\}", "[^/]*", path.replace("{queue}", "(?s:.*)"))
        return method == self.method and re.fullmatch(pattern, self.path) is not None


def installed(folder: Path) -> Path:
    """The program as ``uv.lock`` pins it, in an environment that is made in ``folder``."""
    words = ["sync", "--frozen", "--compile-bytecode", "--only-group", "fuzz", "--no-install-project"]
    environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(folder)}
    words += ["--python", sys.executable]  # compiled once: six begin at the same time, and each would compile it all
    subprocess.run([UV, "--quiet", *words], cwd=ROOT, env=environment, check=True, timeout=INSTALLED_WITHIN_S)
    return folder / "bin/schemathesis"


def tried(
    program: Path, plane: Plane, token: str, folder: Path, *, seed: int, examples: int, options: tuple[str, ...] = ()
) -> tuple[str, list[Call]]:
    """What was found that the description does not have, empty where nothing was, and every call that was answered."""
    report = folder / "calls.ndjson"
    words = [
        *(str(program), "--config-file", str(SETTINGS), "run", str(ROOT / "docs/reference/openapi.json")),
        *("--url", plane.http, "--header", f"Authorization: Bearer {token}", "--seed", str(seed), "--no-color"),
        *("--max-examples", str(examples), "--continue-on-failure", "--suppress-health-check", "all"),
        *("--generation-database", "none", "--warnings", "off"),
        *options,
        *("--report", "ndjson", "--report-ndjson-path", str(report)),
    ]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=TRIED_WITHIN_S)
    found = "" if done.returncode == 0 else done.stdout[-20_000:] + done.stderr
    return found, list(_calls(report))


@contextlib.contextmanager
def inhabited(url: str, folder: Path, *, ends_in_s: float = ENDS_IN_S) -> Iterator[tuple[Plane, Host]]:
    """A control plane with a pool, a queue and a host, so that requests find something."""
    with serving(url, folder, ends_in_s=ends_in_s) as plane, plane.channel() as channel, plane.client() as client:
        host = Host(AgentServiceStub(channel), "alpha")
        profile = {"queues": ["rq/mail"], "template": "rq"}
        assert client.put("/v1/profiles/mail", json=profile).status_code == 201
        yield plane, host


def secret_of(role: Role, plane: Plane, host: Host) -> str:
    """What a caller of ``role`` shows."""
    if role is Role.ADMIN:
        return TOKEN  # an administrator may revoke its own token; the setting's stays
    return host.known.credential if role is Role.HOST else plane.token(role, f"fuzz-{role.value}")


def actor_of(role: Role) -> str:
    """What the audit log calls that caller."""
    return "host alpha" if role is Role.HOST else f"token fuzz-{role.value}"


def acts_of(plane: Plane, actor: str) -> set[str]:
    """What the audit log has of ``actor`` beside refusals."""
    with plane.client() as client:
        answer = client.get("/v1/audit", params={"actor": actor, "limit": 1_000}).json()
    return {act["action"] for act in answer["acts"]} - {"call refused"}


def assert_kept(role: Role, calls: list[Call], acts: set[str]) -> None:
    """Nothing failed for a defect, and nothing was allowed to ``role`` that the table of rights forbids."""
    assert not [call for call in calls if call.status >= 500]
    shown = [call for call in calls if (call.method, call.path) != SIGN_IN]
    assert 401 not in {call.status for call in shown}, "the token is no longer valid"
    assert not [call for call in calls if call.is_beyond(role)]
    assert not acts or role in MAY_CHANGE, acts
    assert role is Role.ADMIN or not [act for act in acts if act.startswith(ADMINS_ALONE)], acts


def statuses(calls: list[Call]) -> dict[str, int]:
    """How often each status was answered."""
    return {str(status): count for status, count in sorted(Counter(call.status for call in calls).items())}


def _calls(report: Path) -> Iterator[Call]:
    with report.open() as lines:
        for line in lines:
            recorder: dict[str, Any] = json.loads(line).get("ScenarioFinished", {}).get("recorder", {})
            for each in recorder.get("interactions", {}).values():
                if each.get("response") is None:
                    continue
                path = unquote(urlsplit(each["request"]["uri"]).path)
                yield Call(method=each["request"]["method"], path=path, status=each["response"]["status_code"])
