"""What a call of the command line takes of a processor, `headway get queues` and others, from its start to its end.

A control plane with an embedded Postgres is started, and some queues are reported to it. Figures are user and system
time of the process and its threads, in milliseconds: the least, the median and the greatest of the runs.

    python benchmarks/command.py --queues 50 --runs 20
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

import httpx
from bench import database, machine
from options import positive_count

GOAL_MS = 300.0
CALLS: Sequence[Sequence[str]] = (
    ("get", "queues"),
    ("get", "queues", "-o", "json"),
    ("get", "health"),
    ("get", "pools"),
    ("--version",),
)


def cpu_ms(words: Sequence[str], env: dict[str, str]) -> float:
    """User and system time of one call, which must succeed."""
    process = subprocess.Popen([sys.executable, "-m", "headway", *words], env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return 1000 * (used.ru_utime + used.ru_stime)


def report_queues(url: str, count: int) -> None:
    """Let the control plane know so many queues."""
    samples = [
        {"queue": f"redis/queue-{number}", "at_s": time.time(), "waiting_jobs": number} for number in range(count)
    ]
    body = {"producer": "benchmark", "sequence": 1, "sent_at_s": time.time(), "samples": samples}
    for _ in range(60):
        answer = httpx.post(f"{url}/v1/telemetry", json=body, trust_env=False, timeout=60)
        if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
            break
        time.sleep(0.5)
    answer.raise_for_status()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queues", type=positive_count, default=50)
    parser.add_argument("--runs", type=positive_count, default=20)
    given = parser.parse_args()
    print(machine())
    with database(is_durable=False) as (database_url, folder):
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")},
            "HEADWAY_DATABASE_URL": database_url,
            "HEADWAY_EVENT_LOG": f"{folder}/events",
            "HEADWAY_HTTP_ADDRESS": "127.0.0.1:0",
            "HEADWAY_GRPC_ADDRESS": "127.0.0.1:0",
        }
        words = [sys.executable, "-m", "headway", "control"]
        with subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True) as control:
            try:
                assert control.stderr is not None
                url = next(f"http://{found[1]}" for line in control.stderr if (found := re.search(r"http=(\S+)", line)))
                report_queues(url, given.queues)
                for call in CALLS:
                    cpu_ms(call, {**env, "HEADWAY_URL": url})  # compiles what has not been
                    runs = sorted(cpu_ms(call, {**env, "HEADWAY_URL": url}) for _ in range(given.runs))
                    figures = f"{runs[0]:4.0f} {statistics.median(runs):4.0f} {runs[-1]:4.0f} ms"
                    print(f"headway {' '.join(call):24} {figures}; load {os.getloadavg()[0]:.1f}", flush=True)
            finally:
                control.terminate()
    print(f"goal of `headway get queues`: {GOAL_MS:.0f} ms")


if __name__ == "__main__":
    main()
