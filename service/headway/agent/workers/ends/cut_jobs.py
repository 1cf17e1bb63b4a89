"""The jobs that the ends of workers have cut, or may have: kept in the state folder until the control plane knows them.

A worker that was known to be idle has lost nothing. Of one that nobody knew anything about, nobody knows it.
"""

import hashlib
import logging
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace

from headway.agent.model import Activity
from headway.agent.state.rows_file import read_row
from headway.agent.state.state_dir import StateFolder
from headway.agent.workers.worker_record import OrphanRecord, Record
from headway.errors import Invalid
from headway.local import procfs
from headway.scaling.model import CutCause, CutJob, RunningJob

FILE = "cuts.json"
CUTS_KEPT_MAX = 1_000  # unsent ones; the newest stay
SAME_START_S = 1.0  # of one start, as two reports of it have it

log = logging.getLogger(__name__)


def cuts_of(
    worker: Record | OrphanRecord, activity: Activity, *, cause: CutCause, at_s: float | None
) -> tuple[CutJob, ...]:
    """The jobs that the end of a worker has cut, by the last that was known of it; none if it was idle.

    ``at_s`` is when it ended, in seconds of the host's clock since boot; ``None``: not known.
    """
    if activity.is_busy is False:
        return ()
    jobs: tuple[RunningJob | None, ...] = activity.running or (None,)
    is_certain = activity.is_busy is True
    kind = (worker.pool, worker.template)
    return tuple(cut_of(worker.worker_id, *kind, job, cause=cause, at_s=at_s, is_certain=is_certain) for job in jobs)


def cut_of(
    worker_id: str,
    pool: str,
    template: str,
    job: RunningJob | None,
    *,
    cause: CutCause,
    at_s: float | None,
    is_certain: bool = True,
) -> CutJob:
    """One job that was cut, or may have been; ``job`` is ``None`` where nobody knows which."""
    of_job = "" if job is None else f"-{hashlib.sha256(job.job_id.encode()).hexdigest()[:16]}"
    return CutJob(
        cut_id=f"{worker_id}{of_job}",
        worker_id=worker_id,
        pool=pool,
        template=template,
        cause=cause,
        is_certain=is_certain,
        cut_at_s=at_s,
        job=job,
    )


class CutLog:
    """The cuts that no answered report has contained yet."""

    def __init__(self, folder: StateFolder, *, boot_id: str) -> None:
        self._folder = folder
        self._boot_id = boot_id
        self._lock = threading.Lock()
        self._unsent: dict[str, CutJob] = {each.cut_id: each for each in self._kept()}
        self._noted: dict[str, CutJob] = dict(self._unsent)

    @property
    def unsent(self) -> tuple[CutJob, ...]:
        """Those to be reported. From any thread."""
        with self._lock:
            return tuple(self._unsent.values())

    def note(self, cuts: Iterable[CutJob]) -> None:
        """Keep what an end has cut, also if the power goes once this returns."""
        new = [each for each in map(self._named, cuts) if each.cut_id not in self._noted]
        if not new:
            return
        for each in new:
            log.warning(
                "%s pool=%s worker=%s cause=%s%s",
                "cut a job" if each.is_certain else "perhaps cut a job",
                each.pool,
                each.worker_id,
                each.cause,
                f" job={each.job.job_id} class={each.job.job_class or 'unknown'}" if each.job else "",
            )
        with self._lock:
            self._noted |= {each.cut_id: each for each in new}
            self._noted = dict(list(self._noted.items())[-CUTS_KEPT_MAX:])
            self._unsent |= {each.cut_id: each for each in new}
            self._unsent = dict(list(self._unsent.items())[-CUTS_KEPT_MAX:])
        self._write(is_durable=True)

    def _named(self, cut: CutJob) -> CutJob:
        """``cut`` with an id of its own where its worker lost the same job before, in another of its processes."""
        known = self._noted.get(cut.cut_id)
        if known is None or known.job is None or cut.job is None:
            return cut
        is_later = cut.job.started_at_s > known.job.started_at_s + SAME_START_S
        return replace(cut, cut_id=f"{cut.cut_id}-{cut.job.started_at_s:.0f}") if is_later else cut

    def forget(self, cut_ids: Collection[str]) -> None:
        """Take note that the control plane knows these. From any thread."""
        with self._lock:
            left = {key: each for key, each in self._unsent.items() if key not in cut_ids}
            if left == self._unsent:
                return
            self._unsent = left
        self._write(is_durable=False)

    def _write(self, *, is_durable: bool) -> None:
        with self._lock:
            body = {"boot_id": self._boot_id, "cuts": [asdict(each) for each in self._unsent.values()]}
        with suppress(OSError):  # a disk that takes nothing: they are reported by this agent, if not by the next
            self._folder.write(FILE, body, is_durable=is_durable)

    def _kept(self) -> Iterator[CutJob]:
        body = self._folder.read(FILE) or {}
        moved_s = procfs.moved_s(str(body.get("boot_id")), self._boot_id)
        rows = body.get("cuts")
        for row in rows if isinstance(rows, list) else ():
            with suppress(Invalid):
                cut = read_row(CutJob, row)
                # Of an earlier boot nobody knows any more how long ago that was.
                at_s = None if moved_s is None or cut.cut_at_s is None else cut.cut_at_s + moved_s
                yield replace(cut, cut_at_s=at_s)
