"""The programs of docs/how-to/use-in-ci.md, as they are printed, with a real control plane."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from security.planes import Plane, serving
from support.seed import Seed
from support.tree import ROOT
from support.waiting import eventually

pytestmark = pytest.mark.e2e

PAGE = (ROOT / "docs/how-to/use-in-ci.md").read_text()
GATE, SALE = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
# What is planted stays fresh.
MAIL = {"queues": ["rq/mail"], "template": "rq", "mode": "recommend", "stale_after_s": 86_400}


class Runner:
    """Runs the programs as a CI does: with a URL and a token file, and no more than that."""

    def __init__(self, plane: Plane, seed: Seed, folder: Path) -> None:
        self.plane, self.seed, self._folder = plane, seed, folder
        for name, program in (("no_breach", GATE), ("sale", SALE)):
            (folder / f"{name}.py").write_text(program)
        for role in ("viewer", "operator"):
            (folder / role).write_text(plane.token(role, role))
            (folder / role).chmod(0o600)

    def begun(self, role: str, program: str, *words: str, url: str | None = None) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            ["timeout", "60", sys.executable, f"{program}.py", *words], cwd=self._folder,
            env={**os.environ, "HEADWAY_URL": url or self.plane.http, "HEADWAY_TOKEN_FILE": str(self._folder / role)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def ran(self, role: str, program: str, *words: str, url: str | None = None) -> tuple[int, str]:
        process = self.begun(role, program, *words, url=url)
        said, _ = process.communicate()
        return process.returncode, said

    def asked(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        with self.plane.client() as client:
            answer = client.request(method, path, **options)
            body: dict[str, Any] = answer.raise_for_status().json()
            return body

    def targets(self, pool: str) -> list[int]:
        """What was decided, newest first."""
        found = self.asked("GET", "/v1/decisions", params={"pool": pool})["decisions"]
        return [each["decision"]["target_workers"] for each in found]


@pytest.fixture(scope="module")
def ci(_database, _migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with _database(_migrated_template) as url, serving(url, tmp_path_factory.mktemp("plane")) as plane:
        seed = Seed(url)
        seed.host("a")
        yield Runner(plane, seed, tmp_path_factory.mktemp("ci"))
        seed.close()


def test_a_deploy_goes_on_where_objectives_are_kept_and_ends_at_the_first_breach(ci: Runner) -> None:
    ci.asked("PUT", "/v1/profiles/mail", json=MAIL)
    unseen = ci.ran("viewer", "no_breach", "mail", "--for-s", "0.5", "--every-s", "0.1")
    assert unseen == (2, unseen[1])
    assert "mail is not known to be on time: no collector or producer" in unseen[1]

    now_s = time.time()
    ci.seed.sample("rq/mail", at_s=now_s)
    ci.seed.bucket("rq/mail", at_s=now_s, pickups_s=[1.0, 2.0])
    eventually(lambda: ci.asked("GET", "/v1/pools")["pools"][0]["state"] in {"on_time", "idle"})
    kept = ci.ran("viewer", "no_breach", "mail", "--for-s", "0.5", "--every-s", "0.1")
    assert kept == (0, "no_breach: mail kept their objectives for 0.5 s\n")

    watching = ci.begun("viewer", "no_breach", "mail", "--for-s", "600", "--every-s", "0.1")
    ci.seed.sample("rq/mail", at_s=time.time(), waiting_jobs=3, oldest_age_s=60.0)
    said, _ = watching.communicate()
    assert watching.returncode == 1, said
    assert said.startswith("no_breach: mail is breaching: the oldest job had waited ")


@pytest.mark.parametrize(
    ("pool", "url", "says"),
    [("none", None, "there is no such pool"), ("mail", "http://127.0.0.1:1", "no answer: ")],
)
def test_what_is_not_known_passes_no_gate(ci: Runner, pool: str, url: str | None, says: str) -> None:
    status, said = ci.ran("viewer", "no_breach", pool, "--unknown-s", "0.2", "--every-s", "0.1", url=url)
    assert (status, says in said) == (2, True), said


def test_bounds_are_raised_for_a_sale_and_brought_back(ci: Runner) -> None:
    ci.asked("PUT", "/v1/profiles/shop", json={**MAIL, "queues": ["rq/shop"], "workers_max": 3})
    raised = ("raise", "shop", "--workers-min", "6", "--workers-max", "9")
    assert ci.ran("viewer", "sale", *raised)[0] == 1  # an operator's
    for _ in range(2):  # again is no second one
        status, said = ci.ran("operator", "sale", *raised, "--for-s", "3600")
        assert status == 0, said
    (sale,) = ci.asked("GET", "/v1/profiles/shop")["profile"]["schedules"]
    assert (sale["name"], sale["workers_min"], sale["workers_max"]) == ("sale", 6, 9)

    assert ci.ran("operator", "sale", "lower", "shop")[0] == 0
    profile = ci.asked("GET", "/v1/profiles/shop")["profile"]
    assert (profile["schedules"], profile["workers_max"]) == ([], 3)


def test_bounds_come_back_though_nobody_lowers_them(ci: Runner) -> None:
    ci.asked("PUT", "/v1/profiles/brief", json={**MAIL, "queues": ["rq/brief"], "workers_max": 3})
    bounds = ("--workers-min", "6", "--workers-max", "9")
    for for_s in ("6", "30"):  # the longer one for a machine on which no evaluation came in time
        status, said = ci.ran("operator", "sale", "raise", "brief", *bounds, "--for-s", for_s)
        assert status == 0, said
        (sale,) = ci.asked("GET", "/v1/profiles/brief")["profile"]["schedules"]
        ends_s = datetime.fromisoformat(sale["ends"]).timestamp()
        eventually(lambda ends_s=ends_s: time.time() > ends_s and max(ci.targets("brief")[:1], default=9) <= 3)
        if 6 in ci.targets("brief"):
            return
    pytest.fail("the bounds were never raised")
