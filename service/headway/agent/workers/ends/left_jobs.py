"""Jobs that run on although their worker has ended: they are cut only if their process dies before they end.

RQ forks a process per job, and the processes of Celery's pool finish what they have begun. No process sees how these
end that is not their parent, so the broker's count of ended jobs decides. It is waited for after the process is gone:

the broker counts one more       the job has ended, and is no cut
the broker still shows the job   the process died of something, and the job is cut
the broker shows neither         the job is perhaps cut
gone as soon as the worker       both died of the same, as where a whole control group is killed
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from headway.agent.model import Activity
from headway.agent.state.rows_file import RowsFile, read_row
from headway.agent.state.state_dir import StateFolder
from headway.agent.workers import worker_record
from headway.agent.workers.ends.orphan_roles import may_run_job
from headway.agent.workers.worker_record import Record
from headway.local import procfs
from headway.local.procfs import Stat
from headway.scaling.model import ActivitySource, CutCause, CutJob

FILE = "left_jobs.json"
TOGETHER_S = 2.0  # the signal reaches one process after the other, and the agent may be late
BROKER_WAIT_S = 15.0  # a change arrives at once and everything every 5 s: two rounds and losses on the way
COUNTED_BEFORE_END_S = 5.0  # a process ends within moments of its job, though the count may come first


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftJobs:
    """The jobs of one worker that has ended, which processes of the worker may still run."""

    record: Record
    cuts: tuple[CutJob, ...]
    """What was cut if the processes do not end these jobs; empty once it is noted."""
    left_at_s: float
    processes: tuple[tuple[int, int], ...] = ()
    """Pid and start, in ticks, of each."""
    ended_jobs: int | None = None
    """Jobs that the broker counts of the worker; ``None``: not known."""
    counted_at_s: float | None = None
    """When that was last seen to grow; ``None``: it has not since the worker ended."""
    gone_at_s: float | None = None
    """When the last process was seen to be gone; ``None``: one runs."""

    @property
    def pid(self) -> int:
        """The first of the processes to start."""
        return self.processes[0][0]

    def seen(self, known: Activity, *, now_s: float) -> "LeftJobs":
        """With what the broker shows of the worker now, and whether a process is there."""
        is_running = any(procfs.is_there(*each) for each in self.processes)
        count, before = known.ended_jobs, self.ended_jobs
        has_grown = count is not None and before is not None and count > before
        return replace(
            self,
            ended_jobs=before if count is None else count,
            counted_at_s=now_s if has_grown else self.counted_at_s,
            gone_at_s=None if is_running else now_s if self.gone_at_s is None else self.gone_at_s,
        )

    @property
    def has_ended_job(self) -> bool:
        """Whether the broker has counted the job. An earlier job of the worker may be counted late, while it runs."""
        if self.gone_at_s is None or self.counted_at_s is None:
            return False
        return self.counted_at_s >= self.gone_at_s - COUNTED_BEFORE_END_S

    def cuts_by(self, known: Activity, *, now_s: float) -> tuple[CutJob, ...] | None:
        """What was cut, now that no process is left; ``None`` while that is not known yet."""
        if self.gone_at_s is None:
            return None
        if self.has_ended_job:
            return ()
        if self.ended_jobs is not None and now_s - self.gone_at_s < BROKER_WAIT_S:
            return None
        is_fresh = known.known_at_s is not None and known.known_at_s > self.gone_at_s
        is_shown = known.is_busy is True and known.source is ActivitySource.BROKER and is_fresh
        has_died = is_shown or self.gone_at_s - self.left_at_s <= TOGETHER_S
        return tuple(replace(each, is_certain=each.is_certain and has_died) for each in self.cuts)


def find_job_processes(records: Sequence[Record]) -> dict[str, tuple[tuple[int, int], ...]]:
    """Worker id -> pid and start of each process that may still run a job of it, of these workers, which have ended.

    A worker leads a session, which the processes that it forks for jobs do not leave.
    """
    workers = {}
    for each in records:
        process = procfs.stat(each.pid)
        # Another process may have the pid of a worker that has ended: the kernel keeps those that name a session.
        if process is None or process.is_over:
            workers[each.pid] = each.worker_id
    found: dict[str, list[Stat]] = {}
    for pid in procfs.pids() if workers else ():
        process = procfs.stat(pid)
        if process is None or process.is_over or process.session not in workers:
            continue
        if may_run_job(process):
            found.setdefault(workers[process.session], []).append(process)
    return {
        worker_id: tuple(sorted(((each.pid, each.started_ticks) for each in family), key=lambda each: each[1]))
        for worker_id, family in found.items()
    }


def left_jobs_file(folder: StateFolder, *, boot_id: str) -> RowsFile[LeftJobs]:
    """The file of these jobs by worker id, for the next agent, which may be one of another boot."""

    def to_json(left: LeftJobs) -> Mapping[str, Any]:
        return {"boot_id": boot_id, "left": asdict(left)}

    def from_json(row: Mapping[str, Any]) -> LeftJobs:
        left = replace(read_row(LeftJobs, row["left"]), counted_at_s=None, gone_at_s=None)
        moved_s = procfs.moved_s(row["boot_id"], boot_id)
        if moved_s is None:  # the processes are gone, and no clock says for how long
            cuts = tuple(replace(each, cause=CutCause.REBOOT, cut_at_s=None) for each in left.cuts)
            return replace(left, cuts=cuts, processes=(), left_at_s=float("-inf"), ended_jobs=None)
        moved_ticks = round(moved_s * procfs.TICKS_PER_S)
        return replace(
            left,
            record=worker_record.moved(left.record, moved_s),
            processes=tuple((pid, ticks + moved_ticks) for pid, ticks in left.processes),
            left_at_s=left.left_at_s + moved_s,
        )

    return RowsFile(folder, FILE, to_json=to_json, from_json=from_json, is_durable=True)
