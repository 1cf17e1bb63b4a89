"""A pipeline whose JVM hangs under `headway up`: it is named, killed and replaced, and measures again."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from headway.store.embedded import ensure_valkey
from lab.programs import sees
from proof.conftest import Proof
from support.ports import free_port
from support.processes import javas_below

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1500)]

READY_WITHIN_S, STOPS_WITHIN_S, NAMED_WITHIN_S, REPLACED_WITHIN_S = 400.0, 120.0, 15.0, 300.0
PROFILES = """
brokers: {{redis: '{url}'}}
pools:
  mail: {{queues: [redis/mail], template: rq, workers_min: 1, workers_max: 2}}
"""
HOST = """
[templates.rq]
argv = ["{rq}", "worker", "--worker-class", "headway.workers.rq.DrainingWorker", "--url", "{url}", "mail"]
ready_pattern = "Listening on"
drain_timeout_s = 5
"""


def test_hung_pipeline_is_replaced(proof: Proof, tmp_path: Path) -> None:
    seed = next(proof.seeds())
    rq = Path(sys.executable).with_name("rq")
    with ensure_valkey(tmp_path / "broker") as broker:
        (tmp_path / "profiles.yaml").write_text(PROFILES.format(url=broker.url))
        (tmp_path / "host.toml").write_text(HOST.format(url=broker.url, rq=rq))
        url = f"http://127.0.0.1:{free_port()}"
        addresses = ["--http-address", url.removeprefix("http://"), "--grpc-address", f"127.0.0.1:{free_port()}"]
        argv = [sys.executable, "-m", "headway", "up", "--plain", "--stop-workers", *addresses]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}
        log = tmp_path / "up.log"
        with log.open("wb") as output:
            up = subprocess.Popen(argv, cwd=tmp_path, env=clean, stdout=output, stderr=output, start_new_session=True)
        try:
            _until(lambda: _health(url).get("status") == "ok", log, within_s=READY_WITHIN_S)
            hung, began_s = _jvm(tmp_path), time.monotonic()
            os.kill(hung, signal.SIGSTOP)
            _until(lambda: "not responding" in str(_health(url).get("reasons")), log, within_s=NAMED_WITHIN_S)
            named_s = time.monotonic() - began_s
            _until(lambda: _health(url).get("status") == "ok", log, within_s=REPLACED_WITHIN_S)
            replaced_s = time.monotonic() - began_s
            assert _jvm(tmp_path) != hung
        finally:
            up.terminate()
            try:
                up.wait(STOPS_WITHIN_S)
            except subprocess.TimeoutExpired:
                os.killpg(up.pid, signal.SIGKILL)
    proof.record(seed, named_s=round(named_s, 1), replaced_s=round(replaced_s, 1))


def _health(url: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = httpx.get(f"{url}/v1/health", timeout=10.0, trust_env=False).json()
    except (httpx.HTTPError, ValueError):
        return {}
    return answer


def _jvm(folder: Path) -> int:
    rows = json.loads((folder / ".headway" / "children.json").read_text())
    (java,) = javas_below(next(int(row["pid"]) for row in rows if row["name"] == "pipeline"))
    return java.pid


def _until(holds: Callable[[], bool], log: Path, *, within_s: float) -> None:
    def polled() -> bool:
        time.sleep(0.2)
        return holds()

    assert sees(polled, within_s=within_s), log.read_text()[-4000:]
