"""Worker processes: started, found again, signalled, ended.

Each has a session of its own, so that no terminal's Ctrl-C reaches it and its whole group can be ended at once. Nothing
ties its life to the agent's: an agent may die and its successor finds the workers again.
"""

import logging
import os
import select
import signal
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from headway.agent.config.commands.queue_arguments import with_queues
from headway.agent.config.commands.references import filled
from headway.agent.config.environment_file import variables_of
from headway.agent.config.templates import REFERENCES, Template
from headway.agent.reporting.loading import Loading
from headway.agent.system.users import account
from headway.agent.workers.main_process import unreached
from headway.errors import Unavailable
from headway.local import procfs
from headway.local.files import closing

log = logging.getLogger(__name__)

OWN_VARIABLES = "HEADWAY_"
"""Variables that begin so are the agent's, its token among them: no worker inherits them."""


class NoOutput(Unavailable):
    """There is no file for what the worker prints, which says nothing of its template."""

    def __init__(self, why: OSError) -> None:
        super().__init__(f"its log cannot be made: {why.strerror or why}")
        self.why = why


class Process:
    """One worker process: a child of this agent, or one that an earlier agent has left."""

    def __init__(
        self,
        pid: int,
        *,
        started_ticks: int,
        child: subprocess.Popen[bytes] | None,
        pidfd: int | None,
        uid: int | None = None,
    ) -> None:
        self.pid = pid
        self.uid = uid
        """Who it was started as; ``None`` where only its record knows."""
        self.started_ticks = started_ticks
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
        """Send the signal to the process itself, which signals its own children. Nothing happens if it has ended."""
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

    def ask_to_end(self, number: int) -> frozenset[int]:
        """Send the signal to the process itself, and to descendants that it does not reach. Returns the ids of all.

        A shell that has started the worker dies of the signal, and the worker, which has received nothing, works on.
        """
        if self.has_ended():
            return frozenset()
        others = unreached(self.pid, number)
        self.send(number)
        send_to_each(others, number)
        return frozenset({self.pid, *(each.pid for each in others)})

    def send_to_all(self, number: int) -> None:
        """Send the signal to the process, its group and every descendant: some of them lead groups of their own."""
        if self.has_ended():
            return
        family = procfs.descendants(self.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        self.send(number)
        send_to_each(family, number)

    def close(self) -> None:
        """Let go of it; it runs on if it runs."""
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None
        if self._child is not None and self._child.returncode is None:
            self._child.returncode = 0  # it outlives us on purpose: the standard library shall not warn of that


def send_to_each(processes: Iterable[procfs.Stat], number: int) -> None:
    """Send the signal to those of the processes that are still there."""
    for each in processes:
        if procfs.is_there(each.pid, each.started_ticks):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(each.pid, number)


def spawn(
    template: Template,
    *,
    marks: Mapping[str, str],
    environment: Mapping[str, str],
    log: Callable[[], int],
    is_burst: bool,
    loading: Loading | None = None,
    queues: Sequence[str] = (),
) -> Process:
    """A new process of ``template``, its output in what ``log`` opens; with ``loading`` it reports what it does.

    ``queues`` are the names that the template allows, where it has a place for them.

    Raises:
        NoOutput: ``log`` cannot open it.
        UnusableEnvironmentFile: its file of variables cannot be used.
        Unavailable: it cannot be started.
    """
    values = {name: value for name, value in marks.items() if name in REFERENCES}
    words = [*template.argv, *(template.burst_arguments if is_burst else ())]
    words = list(loading.argv(words)) if loading else words
    # Names of queues last: what a name holds is no place for anything else.
    argv = with_queues([filled(word, values) for word in words], queues)
    own = variables_of(template) | {name: filled(value, values) for name, value in template.environment.items()}
    inherited = {name: value for name, value in environment.items() if not name.startswith(OWN_VARIABLES)}
    try:
        login, who = _login(template.user)
        variables = {**inherited, **login, **own, **marks}
        with closing(_output(log)) as output:
            # No preexec_fn: slow, and unsafe beside threads. No death signal: it would come when a thread of ours ends.
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=template.working_directory,
                env=loading.environment(variables) if loading else variables,
                start_new_session=True,
                umask=-1 if template.umask is None else template.umask,
                **who,
            )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        who_runs = f" as {template.user}" if template.user else ""
        raise Unavailable(f"template {template.name!r}: {argv[0]!r} cannot be started{who_runs}: {reason}") from error
    if template.niceness:
        with suppress(OSError):
            os.setpriority(os.PRIO_PGRP, child.pid, template.niceness)
    # Not reaped yet, so it is there, if only as a zombie.
    known = procfs.stat(child.pid)
    return Process(
        child.pid,
        started_ticks=known.started_ticks if known else 0,
        child=child,
        pidfd=None,
        uid=who.get("user", os.geteuid()),
    )


def _output(log: Callable[[], int]) -> int:
    try:
        return log()
    except OSError as error:
        raise NoOutput(error) from error


def _login(user: str | None) -> tuple[Mapping[str, str], dict[str, Any]]:
    """What ``user`` has in its environment, and the options of the standard library that run a program as that user."""
    found = account(user) if user else None
    if found is None:
        return {}, {}
    return found.environment, {"user": found.uid, "group": found.gid, "extra_groups": found.groups}


def adopt(pid: int, started_ticks: int) -> Process | None:
    """The process that was started then, ``None`` if it is there no more."""
    pidfd = None
    with suppress(OSError):  # gone; or a kernel, or a sandbox, without it
        pidfd = os.pidfd_open(pid)
    # Checked after it was opened: if it is the same now, then what is open is it.
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
