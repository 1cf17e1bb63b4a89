"""``docker-compose.yml`` comes up as it is: the image is built, every service gets healthy, and jobs are served.

The engine is podman, in a network namespace without a way out; ``containers.py`` says what stands in for what.
"""

import json
import os
import secrets
import time

import pytest

from proof.conftest import Proof
from proof.containers import Podman, Project, build_images, namespace

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]

BURST = 8  # jobs that demo-load sends at once
SERVED_WITHIN_S = 300.0
REFUSED_WITHIN_S = 120.0
COUNT = """
import redis, rq
queue = rq.Queue("demo", connection=redis.Redis(host="valkey"))
print(queue.finished_job_registry.count, queue.failed_job_registry.count)
"""
SPARK = """
import sys
from pyspark.sql import SparkSession
session = SparkSession.builder.master("spark://spark-master:7077").config("spark.driver.host", "pipeline")
session = session.config("spark.ui.enabled", "false")
for line in open(sys.argv[1]):
    session = session.config(*line.split())
print("registered as", session.getOrCreate().sparkContext.applicationId)
"""


def test_compose(proof: Proof, engine: Podman) -> None:
    seed = next(proof.seeds())
    secret = {name: secrets.token_hex(32) for name in ("HEADWAY_TOKEN", "HEADWAY_DATABASE_PASSWORD")}
    with namespace(f"headway-{os.getpid()}") as path:
        project = Project(engine, namespace=path, environment=secret)
        began_s = time.monotonic()
        stand_ins = build_images(engine, project.services)
        built_s, began_s = time.monotonic() - began_s, time.monotonic()
        project.up()
        up_s, began_s = time.monotonic() - began_s, time.monotonic()
        finished = _served(project)
        served_s = time.monotonic() - began_s
        _has_what_it_needs_and_no_more(project, secret)
        _spark_refuses_strangers(project)
    proof.record(
        seed,
        stand_ins=stand_ins,
        built_s=round(built_s, 1),
        up_s=round(up_s, 1),
        served_s=round(served_s, 1),
        jobs=finished,
    )


def _served(project: Project) -> int:
    """The jobs that are done once Spark has counted as many as one burst has. None may have failed."""
    until_s = time.monotonic() + SERVED_WITHIN_S
    path = "/v1/queues/redis%2Fdemo/metrics"
    while True:
        finished, failed = map(int, project.execute("demo-load", "python", "-c", COUNT).stdout.split())
        assert failed == 0
        windows = json.loads(_asked(project, path) or "{}").get("windows", [])
        if finished >= BURST and max((each["finished_jobs"] for each in windows), default=0) >= BURST:
            return finished
        assert time.monotonic() < until_s, project.words(set(project.services))
        time.sleep(1)


def _asked(project: Project, path: str) -> str:
    """What the API answers to the administrator, in the control plane's own container."""
    script = f"""
import urllib.request as r
token = open("/var/lib/headway/admin-token/token").read()
asked = r.Request("http://127.0.0.1:8460{path}", headers={{"Authorization": "Bearer " + token}})
print(r.urlopen(asked, timeout=10).read().decode())
"""
    return project.execute("control", "python", "-c", script).stdout


def _has_what_it_needs_and_no_more(project: Project, secret: dict[str, str]) -> None:
    """No container but those that need it can read a secret, in files, environment or arguments; nobody is root."""
    may = {
        "HEADWAY_TOKEN": {"files", "control", "tokens"},
        "HEADWAY_DATABASE_PASSWORD": {"files", "control", "pipeline", "postgres"},
    }
    for name, service in project.services.items():
        if service["restart"] == "on-failure":
            continue
        files = "find / -xdev -type f -size -8k -newer /etc/hostname -exec cat {} +"
        words = f"{{ cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; {files}; cat /var/lib/headway/*/*; }} 2>/dev/null"
        found = project.engine.tried("exec", project.container(name), "sh", "-c", f"{words} | tr -d '\\0'").stdout
        for variable, value in secret.items():
            assert value not in found or name in may[variable], f"{name} can read {variable}"
        assert project.execute(name, "id", "-u").stdout.strip() != "0"
        assert project.execute(name, "touch", "/usr/written").returncode != 0
    limits = project.execute("control", "sh", "-c", "ulimit -n").stdout
    assert int(limits) >= 20_000


def _spark_refuses_strangers(project: Project) -> None:
    """Whoever is on Spark's own network may run a program with its secret, and none without it."""
    words = ("timeout", f"{REFUSED_WITHIN_S:.0f}", "env", "-u", "HEADWAY_STATE_DIR", "python", "-c", SPARK)
    known = project.beside("pipeline", *words, "/var/lib/headway/spark/spark.conf")
    assert "registered as app-" in known.stdout, known.stderr[-2000:]
    stranger = project.beside("pipeline", *words, "/dev/null")
    assert "registered as app-" not in stranger.stdout
    assert stranger.returncode != 0
