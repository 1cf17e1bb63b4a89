"""The import contracts of pyproject.toml report what they were written against.

A contract that has never been seen to fail may be one that cannot: a copy of the tree is broken on purpose, in every
way at once, and each breach has to appear in the one report. Whether the tree itself keeps them is `make contracts`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.tree import ON_PYTHONPATH, ROOT, SERVICE, SPARK

# File of the copy -> what is added to it, and what the report must then say.
BREACHES = [
    ("headway/scaling/demands/deadlines.py", "import time", "headway.scaling.demands.deadlines -> time"),
    ("headway/errors.py", "import logging", "headway.errors -> logging"),  # scaling would log by way of errors
    (
        "headway/agent/controlplane/client.py",
        "import headway.control.ingest.ingest",
        "headway.agent.controlplane.client -> headway.control.ingest.ingest",
    ),
    (
        "headway/agent/controlplane/client.py",
        "import headway.store.tables",
        "headway.agent is not allowed to import sqlalchemy",
    ),
    ("headway/settings.py", "import pydantic", "headway.settings -> pydantic"),  # reaches the agent's command
    ("headway/agent/__init__.py", "import headway.settings", "headway.agent -> headway.settings"),
    ("headway/control/scheduler/ticker.py", "import sqlalchemy", "headway.control.scheduler.ticker -> sqlalchemy"),
    (
        "headway/control/scheduler/ticker.py",
        "import headway.control.http.overview.broadcaster",
        "headway.control.scheduler.ticker -> headway.control.http",
    ),
    (
        "headway/control/scheduler/bucket_cache.py",
        "import headway.wire.v1.agent_pb2",
        "headway.control.scheduler.bucket_cache -> headway.wire.v1.agent_pb2",
    ),
    ("headway/store/engine.py", "import fastapi", "headway.store.engine -> fastapi"),
    ("headway/store/engine.py", "import pyspark", "headway.store.engine -> pyspark"),
    ("headway/cli/process/log_setup.py", "import pyspark", "headway.cli.process.log_setup -> pyspark"),
    (
        "headway/simulate/studies/fixed_pool.py",
        "import headway.wire.codec",
        "headway.simulate.studies.fixed_pool -> headway.wire.codec",
    ),
    ("headway_spark/__init__.py", "import headway.store.tables", "headway_spark -> headway.store.tables"),
    # A cycle; which of its imports should go is a guess of the linter, and moves with the others.
    ("headway/scaling/model/decision.py", "import headway.scaling.decide", "No cycles are allowed in headway.scaling."),
    (
        "headway/control/scheduler/bucket_cache.py",
        "import headway.control.scheduler.ticker",
        "headway.control.scheduler.bucket_cache -> headway.control.scheduler.ticker",
    ),
    (
        "headway/control/ingest/clock_skew.py",
        "import headway.control.ingest.ingest",
        "headway.control.ingest.clock_skew -> headway.control.ingest.ingest",
    ),
    (
        "headway/control/agents/batcher.py",
        "import headway.control.agents.agent_service",
        "headway.control.agents.batcher -> headway.control.agents.agent_service",
    ),
    (
        "headway/agent/workers/ends/exit_log.py",
        "import headway.agent.workers.reaper",
        "headway.agent.workers.ends.exit_log -> headway.agent.workers.reaper",
    ),
    (
        "headway/control/auth/failed_sign_ins.py",
        "import headway.control.auth.authenticator",
        "headway.control.auth.failed_sign_ins -> headway.control.auth.authenticator",
    ),
    (
        "headway/control/http/schemas/requests.py",
        "import headway.control.http.app",
        "headway.control.http.schemas.requests -> headway.control.http.app",
    ),
    (
        "headway/agent/system/capacity.py",
        "import headway.agent.loop",
        "headway.agent.system.capacity -> headway.agent.loop",
    ),
    (
        "headway/scaling/policy/limits.py",
        "import headway.peers.horizon",
        "headway.scaling.policy.limits -> headway.peers.horizon",
    ),
    ("headway/peers/horizon.py", "import headway.settings", "headway.peers.horizon -> headway.settings"),
    (
        "headway/control/scheduler/ticker.py",
        "import headway.simulate.controller",
        "headway.control.scheduler.ticker -> headway.simulate.controller",
    ),
    (
        "headway/cli/operator/apply.py",
        "import headway.cli.rehearse.rehearsal",
        "headway.cli.operator.apply -> headway.cli.rehearse.rehearsal",
    ),
    (
        "headway/simulate/engine/results.py",
        "import headway.simulate.studies.tuning",
        "headway.simulate.engine.results -> headway.simulate.studies.tuning",
    ),
    (
        "headway/store/tables.py",
        "import headway.store.pools.profiles",
        "headway.store.tables -> headway.store.pools.profiles",
    ),
    (
        "headway/cli/terminal/screen.py",
        "import headway.cli.demo.demo",
        "headway.cli.terminal.screen -> headway.cli.demo.demo",
    ),
    (
        "headway_spark/event_log/schema.py",
        "import headway_spark.stream.pipeline",
        "headway_spark.event_log.schema -> headway_spark.stream.pipeline",
    ),
    (
        "headway/collect/rq/rq_record.py",
        "import headway.collect.collector_loop",
        "headway.collect.rq.rq_record -> headway.collect.collector_loop",
    ),
    (
        "headway/collect/collector_loop.py",
        "import headway.collect.rq.rq_source",
        "headway.collect.collector_loop -> headway.collect.rq.rq_source",
    ),
    (
        "headway/control/notifications/receivers.py",
        "import headway.control.notifications.sender",
        "headway.control.notifications.receivers -> headway.control.notifications.sender",
    ),
    ("headway/novelty/__init__.py", "", "headway.novelty"),  # a new package without a place in the layers
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What import-linter says of a copy with every breach in it."""
    copy = tmp_path_factory.mktemp("breaches")
    for package in (SERVICE, SPARK):
        shutil.copytree(package, copy / package.name, ignore=shutil.ignore_patterns("__pycache__", "*.gz"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for file, line, _ in BREACHES:
        path = copy / file
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as text:
            text.write(f"\n{line}\n")
    return _lint(copy)


def _lint(folder: Path) -> str:
    linted = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "400"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert linted.returncode == 1, linted.stdout + linted.stderr
    return linted.stdout


@pytest.mark.parametrize(("file", "line", "says"), BREACHES, ids=[f"{file}: {line}" for file, line, _ in BREACHES])
def test_a_deliberate_breach_is_reported(report: str, file: str, line: str, says: str) -> None:
    broken = report.split("Broken contracts", 1)[1]
    assert says in broken


def test_every_contract_has_been_seen_to_break(report: str) -> None:
    kept = [line for line in report.splitlines() if line.endswith(" KEPT")]
    assert kept == []


@pytest.mark.parametrize("root", [SERVICE, SPARK], ids=["headway", "headway_spark"])
def test_every_folder_of_modules_is_a_package(root: Path) -> None:
    """A folder without ``__init__.py`` can be imported, but import-linter does not read it."""
    folders = {path.parent for path in root.rglob("*.py")} - set(ON_PYTHONPATH)
    assert sorted(folder for folder in folders if not (folder / "__init__.py").exists()) == []
