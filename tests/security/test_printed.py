"""Every command on an installation whose names were chosen to forge lines and to move the cursor."""

import json
import time
from pathlib import Path

import httpx
import pytest
import yaml

from headway.__main__ import main
from headway.cli.operator.describe import Kind
from headway.cli.operator.get import What
from headway.scaling.profile import Profile
from support.seed import Seed
from support.served import TOKEN, Served

HOSTILE = [
    "x\n2026-01-01T00:00:00Z INFO all is well\x1b[2J\x1b]0;owned\x07",  # in ASCII
    "x\x9b31m\x7f\u202egnp\u2066\u2028",  # beyond it
]
POOL = "mail"


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest, served: Served, seed: Seed) -> str:
    name: str = request.param
    now_s = time.time()
    seed.profile(Profile(pool=POOL, queues=("redis/mail",), template="rq"))
    seed.sample("redis/mail", at_s=now_s, waiting_jobs=3)
    seed.sample(name, at_s=now_s, waiting_jobs=3)
    seed.bucket(name, at_s=now_s - 20, arrived_jobs=3)
    seed.host(name)
    template = {"name": name, "content_hash": name, "slots": 1, "cpu_cores": 0.25, "memory_bytes": 64 << 20}
    templates = json.dumps([template, {**template, "name": "rq"}])
    printed = {"labels": json.dumps({name: name}), "templates": templates, "cordon_reason": name, "cordoned_by": name}
    seed.host_is(name, state="cordoned", agent_version=name, failing=json.dumps({name: now_s}), **printed)
    seed.worker(name, POOL, 1)
    seed.worker(name, name, 2)
    seed.leader()
    seed.pipeline()
    for table, column in (("pipeline_health", "pipeline"), ("leader_epoch", "leader")):
        seed.execute_with(f"update {table} set {column} = %s", name)
    seed.execute_with(
        "insert into rollup_minutes (queue, job_class, bucket_s, arrived_jobs) values (%s, %s, %s, 1)",
        name,
        name,
        now_s // 60 * 60 - 60,
    )
    return name


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main(list(words))
    said = capsys.readouterr()
    for line in (said.out + said.err).split("\n"):
        assert line.isprintable(), (words, line)
        assert not line.startswith("2026-01-01"), (words, line)
    return said.out + said.err


def test_no_command_prints_what_a_name_chose(
    hostile: str, capsys: pytest.CaptureFixture[str], seed: Seed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    odd = {"queues": ["redis/mail", f"redis/{hostile}"], "template": hostile, "placement": {"labels": {"a": hostile}}}
    file = tmp_path / "profiles.yaml"
    file.write_text(yaml.safe_dump({"pools": {POOL: odd, hostile: {**odd, "queues": [f"redis/x{hostile}"]}}}))
    for what in What:
        for more in ([], ["--json"], ["--pool", POOL], ["--pool", hostile]):
            checked(capsys, "get", what.value, *more)
    for kind in Kind:
        for name in (POOL, "redis/mail", hostile):
            for more in ([], ["--json"]):
                checked(capsys, "describe", kind.value, name, *more)
    for words in (
        *(["top", "--once"], ["explain", POOL], ["explain", hostile], ["restart", hostile, "--reason", hostile]),
        *(["pause", hostile, "--reason", hostile], ["resume", hostile], ["scale", hostile, "3"], ["delete", hostile]),
        *(["host", each, hostile, "--reason", hostile] for each in ("cordon", "drain", "forget")),
        *(["host", each, hostile] for each in ("uncordon", "rotate", "revoke")),
        *(["token", "create", "--role", "viewer", "--name", hostile], ["token", "list"], ["token", "revoke", hostile]),
        *(["audit"], ["audit", "--json"], ["audit", "--subject", hostile]),
        *([each, hostile] for each in ("apply", "diff", "validate", "export")),
        *(["diff", str(file)], ["validate", str(file)], ["apply", "--dry-run", str(file)], ["apply", str(file)]),
        *(["export"], ["diff", str(file)], ["apply", "--prune", str(file)]),
        *(["doctor", "--profiles", str(file)], ["doctor", "-o", "json"], ["doctor", "--profiles", hostile]),
        *(["queue", "forget", hostile], ["queue", "forget", "--prefix", hostile]),
    ):
        checked(capsys, *words)


def test_scrapes_and_refusals_hold_no_control_character(hostile: str, served: Served) -> None:
    shown = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=served.url, headers=shown, timeout=30.0, trust_env=False) as client:
        text = client.get("/metrics").text
        assert all(map(str.isprintable, text.split("\n")))
        assert "all is well" in text or "\\x" in text or "\\u" in text
        for answer in (
            client.post("/v1/queues/forget", json={"queues": [hostile, "y" + hostile]}),
            client.post("/v1/queues/forget", json={hostile: 1}),
            client.request("DELETE", "/v1/profiles/" + "".join(f"%{byte:02x}" for byte in hostile.encode())),
            client.put("/v1/profiles/a", json={"queues": [hostile], "template": hostile}),
            client.put("/v1/profiles/a", json={hostile: hostile}),
            client.get("/v1/decisions", params={"before": hostile}),
        ):
            assert 400 <= answer.status_code < 500
            problem = answer.json()
            assert all(map(str.isprintable, [problem["detail"], *problem["breaches"]])), problem
