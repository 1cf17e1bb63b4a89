"""What the environment and the output of processes show of the workers they belong to.

Hints, and nothing else: whoever runs a process chooses its environment. So a mark leads to no file and no signal. What
it names counts where the agent's own records know of it, and elsewhere suggests that there may be a worker.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from headway.agent.config.host_file_values import is_name
from headway.agent.config.templates import AGENT_ID, GPUS, POOL, STARTED_AS, VISIBLE_GPUS, WORKER_ID, WORKER_NUMBER
from headway.agent.system import gpus
from headway.agent.workers import worker_numbers
from headway.agent.workers.worker_logs import WorkerLogs
from headway.agent.workers.worker_record import Record, Unrecorded, is_worker_id
from headway.local import procfs

STARTED_AS_CHARS_MAX = 4096


def marks_of(record: Record, *, agent_id: str) -> dict[str, str]:
    """What the environment of a worker passes to the next agent: whose it is, and as what it was started."""
    started_as = {"template": record.template, "is_burst": record.life.is_burst}
    marks = {
        WORKER_ID: record.worker_id,
        POOL: record.pool,
        AGENT_ID: agent_id,
        STARTED_AS: json.dumps(started_as, separators=(",", ":")),
    }
    if record.number is not None:
        marks[WORKER_NUMBER] = str(record.number)
    if record.gpus:
        marks[GPUS] = marks[VISIBLE_GPUS] = gpus.text(record.gpus)
    return marks


def find_marked(agent_id: str, output: WorkerLogs) -> dict[str, list[Unrecorded]]:
    """The processes whose marks name a worker of this agent, by the id that they bear, of each the eldest first.

    A worker leads a session, and its children bear its marks: they are among these where they made one of their own.
    What leads none belongs to a worker, or is what one that has ended left. Pool and template are empty where a process
    does not name them plausibly.

    A process may overwrite its environment, as those do that set their title; then its output still leads to its log.
    """
    found: dict[str, list[tuple[procfs.Stat, Mapping[str, str]]]] = {}
    for pid in procfs.pids():
        worker_id, environment = marked(pid, agent_id, output)
        known = procfs.stat(pid) if worker_id else None
        if known is not None and not known.is_over and known.session == known.pid:
            found.setdefault(worker_id, []).append((known, environment))
    return {
        worker_id: [
            _mark(worker_id, leader, environment)
            for leader, environment in sorted(leaders, key=lambda each: (each[0].started_ticks, each[0].pid))
        ]
        for worker_id, leaders in found.items()
    }


def marked(pid: int, agent_id: str, output: WorkerLogs) -> tuple[str, Mapping[str, str]]:
    """The id of this agent's worker that the marks of the process name, and its environment; both empty if none.

    Where the environment does not name it, the process prints to the worker's own file, which is known by more than its
    name. Of such a process the environment is empty.
    """
    environment = procfs.environment(pid, having=agent_id)
    if environment.get(AGENT_ID) == agent_id and is_worker_id(environment.get(WORKER_ID)):
        return environment[WORKER_ID], environment
    for path in procfs.output_files(pid).values():
        worker_id = path.rpartition("/")[2].removesuffix(".log")
        if path.endswith(".log") and is_worker_id(worker_id) and prints_to(pid, worker_id, output):
            return worker_id, {}
    return "", {}


def prints_to(pid: int, worker_id: str, output: WorkerLogs) -> bool:
    """Whether the process prints to the worker's own file, which it was given open by whoever started it."""
    for number in procfs.output_files(pid):
        with suppress(OSError):
            if output.is_open_as(worker_id, os.stat(f"/proc/{pid}/fd/{number}")):  # noqa: PTH116 - a link of the kernel's
                return True
    return False


def _mark(worker_id: str, main: procfs.Stat, environment: Mapping[str, str]) -> Unrecorded:
    pool, started_as = environment.get(POOL, ""), _started_as(environment.get(STARTED_AS, ""))
    template = started_as.get("template")
    return Unrecorded(
        worker_id=worker_id,
        pid=main.pid,
        started_ticks=main.started_ticks,
        pool=pool if _is_plain(pool) else "",
        template=str(template) if _is_plain(template) else "",
        is_burst=started_as.get("is_burst") is True,
        gpus=gpus.numbers(environment.get(GPUS, "")),
        number=worker_numbers.number_in(environment.get(WORKER_NUMBER, "")),
        may_have_any_number=not environment,
    )


def _started_as(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text) if len(text) <= STARTED_AS_CHARS_MAX else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_plain(value: Any) -> bool:
    """Whether it can be shown and reported: nothing in it moves a cursor or begins a line."""
    return is_name(value) and value.isprintable()
