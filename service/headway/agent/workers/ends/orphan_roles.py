"""What a process that a worker has left is: a main process, one in the background, part of a pool, or a job's own."""

from collections.abc import Sequence

from headway.agent.config.commands.worker_commands import runs_jobs_in_own_groups
from headway.agent.config.worker_programs import bears_second_stop, is_rq_worker, starts_worker
from headway.agent.workers.crash_backoff import CRASH_WITHIN_S
from headway.agent.workers.ends.worker_end import WorkerEnd
from headway.agent.workers.worker_record import Record
from headway.local import procfs
from headway.local.procfs import Stat


def is_of_a_job(process: Stat, end: WorkerEnd) -> bool:
    """Whether a job of a worker that ended well has sent the process to the background.

    What began with its worker may be what a wrapper has started to take jobs, or part of the pool of a worker whose end
    nobody saw. A copy of a library's process may have a job.
    """
    has_begun_early, was_seen = has_begun_with(process, end.record), end.exit_code is not None
    if starts_worker(procfs.command_line(process.pid)) and (has_begun_early or not was_seen):
        return False
    return end.is_good and (not has_begun_early or (starts_worker(end.argv) and was_seen))


def may_run_job(process: Stat) -> bool:
    """Whether the process is one that a worker has forked of itself, which may run a job after its worker has ended.

    RQ's scheduler, which stays in the process group of its worker, runs none.
    """
    argv = procfs.command_line(process.pid)
    if is_rq_worker(argv):
        return process.group == process.pid
    return starts_worker(argv) or (bool(argv) and argv[0].startswith("[celeryd: "))


def is_scheduler(process: Stat, end: WorkerEnd, *, is_main: bool) -> bool:
    """Whether the process is the scheduler of an RQ worker: it takes no job, and runs on for ever without its worker.

    Of what has the process group of the worker itself, nothing else is a copy of the worker.
    """
    is_copy = not is_main and process.group == end.record.pid and is_rq_worker(procfs.command_line(process.pid))
    return is_copy and is_rq_worker(end.argv) and runs_jobs_in_own_groups(end.argv)


def may_be_in_background(end: WorkerEnd, *, now_s: float) -> bool:
    """Whether the worker ended well as soon as it was started, and nothing else explains that."""
    is_explained = end.was_asked or end.had_jobs or end.ends_by_itself
    return end.exit_code == 0 and end.record.life.is_on_trial(now_s=now_s) and not is_explained


def keeps_place(end: WorkerEnd, *, is_main: bool) -> bool:
    """Whether the process takes jobs in its worker's place, as far as is known."""
    if end.was_asked:
        # It has left its place, and the control plane knows: another may be there already.
        return end.record.life.has_failed
    return is_main or not end.is_good or not (end.had_jobs or end.ends_by_itself)


def main_pids(family: Sequence[Stat], end: WorkerEnd) -> frozenset[int]:
    """The ids of the main processes of libraries among those that the worker has left."""
    known = {(each.pid, each.started_ticks) for each in end.record.mains}
    found = {each.pid for each in family if (each.pid, each.started_ticks) in known}
    if found or end.exit_code != 0:
        return frozenset(found)
    # A main process that ends well has no copies left: what is there is another one, and its copies are its children.
    pids = {each.pid for each in family}
    eldest = [each for each in family if each.parent_pid not in pids and starts_worker(procfs.command_line(each.pid))]
    return frozenset(each.pid for each in eldest) if len(eldest) == 1 else frozenset()


def is_to_be_asked(process: Stat, end: WorkerEnd) -> bool:
    """Whether nobody has asked the main process to stop, or a second signal cuts none of its jobs.

    Of one below a wrapper that handles the signal nobody knows whether the wrapper has passed it on.
    """
    main = next((each for each in end.record.mains if each.pid == process.pid), None)
    if main is not None and main.is_asked:
        return False
    return not end.was_asked or bears_second_stop(procfs.command_line(process.pid), end.record.stop.stop_signal)


def has_begun_with(process: Stat, record: Record) -> bool:
    """Whether the process began as its worker did: what begins later is a job's."""
    return (process.started_ticks - record.started_ticks) / procfs.TICKS_PER_S < CRASH_WITHIN_S
