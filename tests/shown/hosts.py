"""What the hosts of a site run: templates of RQ workers, and of workers that fail."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from lab.hosts import TESTS

JOBS = """
import time
def work(seconds, fails):
    time.sleep(seconds)
    if fails:
        raise RuntimeError("as it was told to")
"""
# RQ asks the C library for the time, where a program's clock cannot be set from outside.
WORKERS = """
import sys, time
from datetime import datetime, timezone
import rq.utils
from headway.workers.rq import DrainingWorker

real = rq.utils.now

def now():
    return datetime.fromtimestamp(time.time(), timezone.utc)

for name, module in list(sys.modules.items()):
    if name.split(".")[0] == "rq" and getattr(module, "now", None) is real:
        module.now = now
"""
QUEUES = {"mail": "redis", "errands": "redis", "reports": "redis", "news": "second"}
"""Queue -> its broker."""
SITE = "site"
"""The label by which a profile names one host."""
WORKER = """
[templates.{queue}]
argv = ["{rq}", "worker", "--worker-class", "workers.DrainingWorker", "--url", "{url}", "{queue}"]
working_directory = "{folder}"
ready_pattern = "Listening on"
drain_timeout_s = 3
[templates.{queue}.resources]
cpu_cores = 0.02
memory_bytes = "16MB"
"""
OTHERS = """
[templates.brittle]
argv = ["{python}", "-c", "raise SystemExit(3)"]
[templates.brittle.resources]
cpu_cores = 0.02
memory_bytes = "16MB"

[templates.poison]
argv = ["{python}", "{tests}/lab/poisoned.py", "poison"]
reporter = "celery"
[templates.poison.resources]
cpu_cores = 0.02
memory_bytes = "16MB"

[templates.large]
argv = ["{python}", "-c", "import time; time.sleep(9999)"]
drain_timeout_s = 1
[templates.large.resources]
cpu_cores = {large_cores}
memory_bytes = "16MB"
"""


def host_file(host: str, *, urls: Mapping[str, str], folder: Path) -> str:
    """The text of a host's file; ``urls`` are the brokers', and the modules of jobs and workers are in ``folder``."""
    rq, cores = Path(sys.executable).with_name("rq"), len(os.sched_getaffinity(0))
    text = f'[host]\nname = "{host}"\nlabels = {{{SITE} = "{host}"}}\n'
    for queue, broker in QUEUES.items():
        text += WORKER.format(queue=queue, rq=rq, url=urls[broker], folder=folder)
    return text + OTHERS.format(python=sys.executable, tests=TESTS, large_cores=round(0.6 * cores, 2))
