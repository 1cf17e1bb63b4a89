"""A newcomer with the README only: an empty clone, an app of their own, and a job of it that is served."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from pages.blocks import Block, blocks_of
from support.environments import python_with
from support.ports import free_port
from support.rabbitmq import RabbitServer
from support.tree import ROOT
from support.waiting import eventually

pytestmark = [pytest.mark.proof, pytest.mark.e2e, pytest.mark.timeout(1200)]

WITHIN_S = 600.0  # ten minutes, from the clone to the job
CELERY = ("celery[redis]==5.7.0",)
REPLACED = ("redis://127.0.0.1:6379/0", "amqp://guest:guest@127.0.0.1:5672//", "headway init")
TEST = "tests/e2e/test_newcomer.py"


def printed() -> list[Block]:
    """The README's blocks that are run here: the app, the commands, and the job."""
    return [each for each in blocks_of((ROOT / "README.md").read_text(), "README.md") if each.test == TEST]


@pytest.fixture(params=["Redis", "RabbitMQ"])
def replaced(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """What the README says, and what stands there for a broker whose ports are not the usual ones."""
    redis_url, rabbitmq_url, init = REPLACED
    if request.param == "Redis":
        yield {redis_url: request.getfixturevalue("broker")}
        return
    server = RabbitServer(tmp_path / "rabbitmq")
    try:
        server.start()
        # What the page has for RabbitMQ takes the place of the Redis.
        yield {
            redis_url: rabbitmq_url,
            rabbitmq_url: server.url,
            init: f"{init} --management-url {server.management_url}",
        }
    finally:
        server.close()


def test_a_celery_job_of_an_own_app_is_served_within_ten_minutes(
    tmp_path: Path, replaced: Mapping[str, str], record_property: Callable[[str, object], None]
) -> None:
    text = (ROOT / "README.md").read_text()
    app, commands, job = printed()
    (tmp_path / "shop").mkdir()
    app_text, commands_text = app.text, commands.text
    for old, new in replaced.items():
        assert old in text
        app_text, commands_text = app_text.replace(old, new), commands_text.replace(old, new)
    (tmp_path / "shop/tasks.py").write_text(app_text)
    (tmp_path / "shop/.venv").symlink_to(python_with(*CELERY).parents[1])
    kept = ("PATH", "HOME", "LANG", "UV_CACHE_DIR", "PIP_CACHE_DIR", "PIP_INDEX_URL", "UV_INDEX_URL", "SSL_CERT_FILE")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    env |= {name: f"127.0.0.1:{free_port()}" for name in ("HEADWAY_HTTP_ADDRESS", "HEADWAY_GRPC_ADDRESS")}
    began_s = time.monotonic()
    subprocess.run(["git", "clone", "-q", ROOT, tmp_path / "headway"], check=True, env=env, timeout=60)
    with (tmp_path / "up.log").open("w") as log:
        up = subprocess.Popen(
            ["bash", "-euc", _staying(commands_text)],
            cwd=tmp_path / "headway",
            env=env,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        eventually(
            lambda: up.poll() is not None or "dashboard: " in (tmp_path / "up.log").read_text(), within_s=WITHIN_S
        )
        assert up.poll() is None, (tmp_path / "up.log").read_text()
        subprocess.run(["bash", "-euc", job.text], cwd=tmp_path / "headway", env=env, check=True, timeout=60)
        eventually(lambda: _greeted(tmp_path / "shop"), within_s=120)
        took_s = time.monotonic() - began_s
    finally:
        up.send_signal(signal.SIGTERM)
        up.wait(120)
    record_property("clone_to_job_s", round(took_s))
    assert took_s < WITHIN_S
    assert {path.name for path in (tmp_path / "shop").iterdir()} == {
        *(".venv", "__pycache__", "tasks.py", "profiles.yaml", "host.toml", ".headway"),
    }


def _staying(commands: str) -> str:
    """The commands, the last in the place of the shell, so that what ends the one ends the other; and its workers."""
    *before, last = commands.splitlines()
    return "\n".join([*before, f"exec {last} --stop-workers"])


def _greeted(shop: Path) -> bool:
    return any(re.search("hello, Ada", path.read_text(errors="replace")) for path in shop.glob(".headway/**/*.log"))
