"""Worker processes: started, found again, signalled, ended.

Each has a session of its own, so that no terminal's Ctrl-C reaches it and its whole group can be ended at once. Nothing
ties its life to the agent's: an agent may die and its successor finds the workers again.
"""

import logging
import os
import select
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.agent import gpus, procfs
from headway.agent.accounts import account
from headway.agent.templates import AGENT_ID, GPUS, POOL, STARTED_AS, VISIBLE_GPUS, WORKER_ID, Template
from headway.errors import Unavailable

log = logging.getLogger(__name__)

OWN_VARIABLES = "HEADWAY_"
"""Variables that begin so are the agent's, its token among them: no worker inherits them."""


class Process:
    """One worker process: a child of this agent, or one that an earlier agent has left."""

    def __init__(
        self, pid: int, *, started_ticks: int, child: subprocess.Popen[bytes] | None, pidfd: int | None
    ) -> None:
        self.pid = pid
        self.started_ticks = started_ticks
        self.is_child = child is not None
        self.pidfd = pidfd
        """Readable once the process has ended; only of one that is no child, and where the kernel has it."""
        self.exit_code: int | None = None
        """Below 0: minus the signal that ended it. ``None`` while it runs, and where nobody could see it."""
        self._child = child
        self._is_out_of_reach = False
        self._poll = select.poll()
        if pidfd is not None:
            self._poll.register(pidfd, select.POLLIN)

    def has_ended(self) -> bool:
        """Whether it runs no more. Takes note of its exit code, if it can be seen."""
        if self._child is not None:
            self.exit_code = self._child.poll()
            return self.exit_code is not None
        if self.pidfd is not None:
            return bool(self._poll.poll(0))
        return not procfs.is_there(self.pid, self.started_ticks)

    def send(self, number: int) -> None:
        """Send the signal to the process itself, which tells its own children. Nothing happens if it has ended."""
        try:
            if self._child is not None:
                self._child.send_signal(number)
            elif self.pidfd is not None:
                signal.pidfd_send_signal(self.pidfd, number)
            elif procfs.is_there(self.pid, self.started_ticks):
                os.kill(self.pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            # As that of a program which became another user's, like sudo: let the template name the user instead.
            if not self._is_out_of_reach:
                self._is_out_of_reach = True
                log.error("pid=%d cannot be signalled: it runs as another user than this agent", self.pid)  # noqa: TRY400

    def ask_to_end(self, number: int) -> None:
        """Send the signal to the process itself, and in its name to children that it will not tell.

        A shell that has started the worker dies of the signal, and the worker, which has heard nothing, works on.
        """
        if self.has_ended():
            return
        untold = _untold(self.pid, number)
        self.send(number)
        for each in untold:
            if procfs.is_there(each.pid, each.started_ticks):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(each.pid, number)

    def send_to_all(self, number: int) -> None:
        """Send the signal to the process, its group and every descendant: some of them lead groups of their own."""
        if self.has_ended():
            return
        family = procfs.descendants(self.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        self.send(number)
        for each in family:
            if procfs.is_there(each.pid, each.started_ticks):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(each.pid, number)

    def close(self) -> None:
        """Let go of it; it runs on if it runs."""
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None
        if self._child is not None and self._child.returncode is None:
            self._child.returncode = 0  # it outlives us on purpose: the standard library shall not warn of that


def _untold(pid: int, number: int) -> list[procfs.Stat]:
    """Children of a process that dies of the signal, theirs where they do, and so on."""
    if not procfs.would_die_of(pid, number):
        return []
    children = procfs.children(pid)
    return [*children, *(each for child in children for each in _untold(child.pid, number))]


def spawn(
    template: Template, *, marks: Mapping[str, str], environment: Mapping[str, str], log: Path, is_burst: bool
) -> Process:
    """A new process of ``template``, its output in ``log``.

    Raises:
        Unavailable: it cannot be started.
    """
    argv = [*template.argv, *(template.burst_arguments if is_burst else ())]
    inherited = {name: value for name, value in environment.items() if not name.startswith(OWN_VARIABLES)}
    try:
        login, who = _login(template.user)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            # No preexec_fn: slow, and unsafe beside threads. No death signal: it would come when a thread of ours ends.
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=template.working_directory,
                env={**inherited, **login, **template.environment, **marks},
                start_new_session=True,
                **who,
            )
        finally:
            os.close(output)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        who_runs = f" as {template.user}" if template.user else ""
        raise Unavailable(f"template {template.name!r}: {argv[0]!r} cannot be started{who_runs}: {said}") from error
    if template.niceness:
        with suppress(OSError):
            os.setpriority(os.PRIO_PGRP, child.pid, template.niceness)
    # Not reaped yet, so it is there, if only as a zombie.
    known = procfs.stat(child.pid)
    return Process(child.pid, started_ticks=known.started_ticks if known else 0, child=child, pidfd=None)


def _login(user: str | None) -> tuple[Mapping[str, str], dict[str, Any]]:
    """What ``user`` has in its environment, and how the standard library is told to run a program as that user."""
    found = account(user) if user else None
    if found is None:
        return {}, {}
    return found.environment, {"user": found.uid, "group": found.gid, "extra_groups": found.groups}


def marks_of(
    *, worker_id: str, pool: str, agent_id: str, started_as: str = "", own_gpus: Sequence[int] = ()
) -> dict[str, str]:
    """What a worker's environment says of it, so that it is found also where no file tells of it."""
    marks = {WORKER_ID: worker_id, POOL: pool, AGENT_ID: agent_id, STARTED_AS: started_as}
    if own_gpus:
        marks[GPUS] = marks[VISIBLE_GPUS] = gpus.text(own_gpus)
    return marks


def adopt(pid: int, started_ticks: int) -> Process | None:
    """The process that was started then, ``None`` if it is there no more."""
    pidfd = None
    with suppress(OSError):  # gone; or a kernel, or a sandbox, without it
        pidfd = os.pidfd_open(pid)
    # Looked at after it was opened: if it is the same now, then what is open is it.
    if procfs.is_there(pid, started_ticks):
        return Process(pid, started_ticks=started_ticks, child=None, pidfd=pidfd)
    if pidfd is not None:
        os.close(pidfd)
    return None


def reap_orphans(ours: Collection[int]) -> None:
    """Take note of the ends of processes that are children of this one and none of ``ours``.

    The kernel hands those to a container's first process whose parent has ended. Nobody else would ever take note.
    """
    with suppress(ChildProcessError):
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and ended.si_pid not in ours:
            os.waitpid(ended.si_pid, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A worker that was found by its marks. Its pool, and as what it was started, are empty where they are not told."""

    worker_id: str
    pid: int
    started_ticks: int
    pool: str
    started_as: str
    gpus: tuple[int, ...]


def find_marked(agent_id: str, logs: Path) -> dict[str, Marked]:
    """Every worker of this agent that ``/proc`` shows, by its id.

    A process may overwrite its environment, as those do that set their title; then its output still leads to its log.
    """
    found: dict[str, list[tuple[procfs.Stat, Mapping[str, str]]]] = {}
    for pid in procfs.pids():
        worker_id, marks = marked(pid, agent_id, logs)
        known = procfs.stat(pid) if worker_id else None
        if known is not None and not known.is_over:
            found.setdefault(worker_id, []).append((known, marks))
    workers = {}
    for worker_id, family in found.items():
        # Its children bear its marks. It leads a session; they do only if they made one of their own, and later. Where
        # nobody does, the worker has ended, and these are what it has left.
        leaders = [each for each in family if each[0].session == each[0].pid]
        if not leaders:
            continue
        main, marks = min(leaders, key=lambda each: (each[0].started_ticks, each[0].pid))
        workers[worker_id] = Marked(
            worker_id=worker_id,
            pid=main.pid,
            started_ticks=main.started_ticks,
            pool=marks.get(POOL, ""),
            started_as=marks.get(STARTED_AS, ""),
            gpus=gpus.numbers(marks.get(GPUS, "")),
        )
    return workers


def marked(pid: int, agent_id: str, logs: Path) -> tuple[str, Mapping[str, str]]:
    """The id of the worker of this agent that the process belongs to, and its other marks; both empty if to none."""
    environment = procfs.environment(pid)
    if environment.get(AGENT_ID) == agent_id and WORKER_ID in environment:
        return environment[WORKER_ID], environment
    for output in procfs.output_files(pid):
        folder, _, name = output.rpartition("/")
        if folder == str(logs) and name.endswith(".log"):
            return name.removesuffix(".log"), {}
    return "", {}
