"""Which process of a worker takes its jobs: the main process of its library, which a wrapper may have started.

npm run worker            handles the stop signal, and passes it on to its child alone
  └ sh -c 'celery … '     dies of it
      └ celery … worker   the main process: it finishes its jobs and ends
          └ celery … worker, a copy, with a job: the signal would kill it
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from headway.agent.config.worker_programs import starts_worker
from headway.local import procfs
from headway.local.procfs import Stat
from headway.scaling.keys import Range

Pid = Annotated[int, Range(0, 2**31)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MainProcess:
    """A main process as it was seen in the family of a worker."""

    pid: Pid
    started_ticks: int
    is_asked: bool = False
    """Whether the agent itself has sent it the stop signal."""


def main_processes(pid: int) -> tuple[MainProcess, ...]:
    """The main processes in the family of the process, itself included; none if no library is recognized."""
    return tuple(MainProcess(pid=each.pid, started_ticks=each.started_ticks) for each in _mains(procfs.stat(pid)))


def _mains(process: Stat | None) -> Iterator[Stat]:
    if process is None or process.is_over:
        return
    if starts_worker(procfs.command_line(process.pid)):
        yield process
        return
    for child in procfs.children(process.pid):
        yield from _mains(child)


def unreached(pid: int, number: int) -> list[Stat]:
    """The descendants that a signal to the process does not reach, and that are to be signalled beside it.

    A process that dies of the signal passes it on to nobody: these are its children, and theirs if they die, too. Below
    a process that handles the signal they are main processes of libraries alone: what else runs there may be a job's.
    """
    process = procfs.stat(pid)
    return [] if process is None else list(_unreached(process, number, group=process.group, is_handled_above=False))


def _unreached(process: Stat, number: int, *, group: int, is_handled_above: bool) -> Iterator[Stat]:
    dies = procfs.would_die_of(process.pid, number)
    if not dies and starts_worker(procfs.command_line(process.pid)):
        return  # it tells its own
    for child in procfs.children(process.pid):
        if dies and not is_handled_above:
            yield child
        elif starts_worker(procfs.command_line(child.pid)):
            # A wrapper that makes a group of processes signals the group.
            if dies and child.group == group:
                yield child
            continue
        yield from _unreached(child, number, group=group, is_handled_above=is_handled_above or not dies)
