"""Which workers have served for long enough, by their age, their jobs or their memory. Whether and when one is replaced
is for ``reconcile``: one by one, and every job is finished.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from headway.agent.config.templates import Recycle, Template
from headway.agent.model import Activity
from headway.agent.workers.worker_record import Record
from headway.scaling.model import WorkerState

RECYCLING_JITTER = 0.2  # of the age: workers that were started together are not replaced together
RECYCLING_TRIAL_S = 60.0  # a worker that takes too much memory from the start is not replaced again and again at once
RECYCLING_FRESH_S = 180.0  # each is weighed once a minute, and grows while it loads
RECYCLING_FRESH_UNKNOWN_S = 60.0  # one of which nobody knows what it does may have had a job since

log = logging.getLogger(__name__)


class Recycling:
    """The workers that are due to be replaced. Each is logged once, with the reason.

    A template whose workers take as much memory before their first job as they may take at all replaces none for its
    memory: the next one would take as much. That holds until the template is another.
    """

    def __init__(self) -> None:
        self._logged: dict[str, str] = {}
        self._have_worked: set[str] = set()
        """Ids of workers that were seen at a job, or have ended one."""
        self._oversized: dict[str, Template] = {}
        """Templates whose fresh workers take more than the limit, by name."""

    def worn(
        self, seen: Iterable[tuple[Record, Activity]], templates: Mapping[str, Template], *, now_s: float
    ) -> frozenset[str]:
        """The ids of the running workers that have served for long enough."""
        workers = tuple(seen)
        self._have_worked &= {record.worker_id for record, _ in workers}
        found: dict[str, str] = {}
        for record, activity in workers:
            template = templates.get(record.template)
            if template is None or record.life.state is not WorkerState.RUNNING:
                continue
            self._note_fresh(record, activity, template, now_s=now_s)
            recycle = template.recycle
            if self._oversized.get(template.name) == template:
                recycle = replace(recycle, memory_bytes=None)
            why = worn_by(recycle, record, activity, now_s=now_s)
            if why is not None:
                found[record.worker_id] = why
                if record.worker_id not in self._logged:
                    log.info("to be recycled pool=%s template=%s pid=%d: %s", *record.kind, record.pid, why)
        self._logged = found
        return frozenset(found)

    def _note_fresh(self, record: Record, activity: Activity, template: Template, *, now_s: float) -> None:
        """Take note of a worker that takes too much memory and has had no job."""
        if activity.is_busy or activity.ended_jobs:
            self._have_worked.add(record.worker_id)
        fresh_s = RECYCLING_FRESH_S if activity.is_busy is False else RECYCLING_FRESH_UNKNOWN_S
        is_fresh = record.worker_id not in self._have_worked and now_s - record.life.started_at_s <= fresh_s
        limit_bytes, memory_bytes = template.recycle.memory_bytes, activity.memory_bytes
        if not is_fresh or limit_bytes is None or memory_bytes is None or memory_bytes < limit_bytes:
            return
        if self._oversized.get(template.name) != template:
            self._oversized[template.name] = template
            log.warning(
                "not recycled by memory template=%s: a worker takes %.0f MB before its first job, and its recycle has "
                "memory_bytes = %.0f MB; raise it, or leave it out",
                template.name,
                memory_bytes / 1e6,
                limit_bytes / 1e6,
            )


def worn_by(recycle: Recycle, record: Record, activity: Activity, *, now_s: float) -> str | None:
    """Why the worker has served for long enough, ``None`` if it has not."""
    age_s = now_s - record.life.started_at_s
    if recycle.after_s is not None and age_s >= recycle.after_s * (1.0 - RECYCLING_JITTER * _lot(record.worker_id)):
        return f"it has run for {age_s:.0f} s"
    ended_jobs = activity.ended_jobs
    if recycle.jobs is not None and ended_jobs is not None and ended_jobs >= recycle.jobs:
        return f"it has ended {ended_jobs} jobs"
    memory_bytes = activity.memory_bytes
    is_tried = age_s >= RECYCLING_TRIAL_S
    if (
        recycle.memory_bytes is not None
        and memory_bytes is not None
        and memory_bytes >= recycle.memory_bytes
        and is_tried
    ):
        return f"it takes {memory_bytes / 1e6:.0f} MB"
    return None


def _lot(worker_id: str) -> float:
    """A number from 0 to 1 that stays the worker's own, also under the next agent: ids are random."""
    return int(worker_id[:8], 16) / 0xFFFFFFFF
