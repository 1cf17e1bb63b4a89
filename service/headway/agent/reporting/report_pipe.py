"""One worker's pipe, read by the agent: never waited for, and never more than so much of it at once."""

import os
import stat

from headway.agent.reporting.report_lines import LINE_BYTES_MAX, Malformed, understood
from headway.agent.reporting.worker_report import WorkerReport

READ_BYTES_MAX = 64 * 1024  # at once: what a pipe holds where nobody made it larger
LINES_PER_READ_MAX = 1_000  # no reporter's lines are so short that more than these fit
OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW

Kind = tuple[str, str]
"""The pool and the template of a worker."""


class ReportPipe:
    """The read end of one worker's pipe, and what came through it."""

    def __init__(self, fd: int, *, kind: Kind) -> None:
        self.fd = fd
        self.kind = kind
        self.report = WorkerReport()
        self.is_hung_up = False
        """Nobody has it open for writing: polls would return at once, and there is nothing to read."""
        self.refusal: str | None = None
        """Why the first line was refused that was; ``None``: none was."""
        self._tail = b""
        self._skips_line = False
        """Whether the line that is coming is longer than any: the rest of it is left out."""

    def read(self, *, now_s: float, unix_s: float, events_max: int) -> int:
        """Take what is there, at most ``READ_BYTES_MAX``. Returns how many bytes that was.

        Args:
            now_s: the host's clock since boot.
            unix_s: the same moment in Unix seconds. Lines may have waited for an agent: they are as old as they say.
            events_max: how many reports of jobs are held for who takes them.
        """
        try:
            text = os.read(self.fd, READ_BYTES_MAX)
        except BlockingIOError:
            self.is_hung_up = False
            return 0
        self.is_hung_up = not text
        *lines, self._tail = (self._tail + text).split(b"\n")
        if len(lines) > LINES_PER_READ_MAX:
            self._refuse(f"{len(lines)} lines at once", lines=len(lines) - LINES_PER_READ_MAX)
            del lines[LINES_PER_READ_MAX:]
        for line in lines:
            self._take(line, now_s=now_s, unix_s=unix_s, events_max=events_max)
        if len(self._tail) >= LINE_BYTES_MAX:
            self._refuse_long()
            self._tail, self._skips_line = b"", True
        return len(text)

    def _take(self, line: bytes, *, now_s: float, unix_s: float, events_max: int) -> None:
        if len(line) >= LINE_BYTES_MAX or self._skips_line:
            self._refuse_long()
            self._skips_line = False
            return
        try:
            said = understood(line)
        except Malformed as error:
            self._refuse(f"{error}: {line[:80]!r}")
            return
        if said is not None:
            self.report.take(said, at_s=now_s - max(0.0, unix_s - said.at_s), events_max=events_max)

    def _refuse_long(self) -> None:
        if not self._skips_line:  # else that line is counted already
            self._refuse(f"a line of more than {LINE_BYTES_MAX} bytes")

    def _refuse(self, why: str, *, lines: int = 1) -> None:
        self.report.miss(lines)
        self.refusal = self.refusal or why

    def close(self) -> None:
        """Let go of it. What a worker that lives writes stays in it for the next agent."""
        os.close(self.fd)


def make_pipe(name: str, *, folder: int, kind: Kind, uid: int) -> ReportPipe:
    """A new pipe in the open ``folder``, which only the user ``uid`` can write to. Raises ``OSError``."""
    os.mkfifo(name, 0o600, dir_fd=folder)
    # Open first: an agent of root may be kept from opening what is another user's.
    pipe = open_pipe(name, folder=folder, kind=kind)
    try:
        os.fchmod(pipe.fd, 0o600)  # whatever the umask
        if uid != os.geteuid():
            os.fchown(pipe.fd, uid, -1)
    except OSError:
        pipe.close()
        os.unlink(name, dir_fd=folder)
        raise
    return pipe


def open_pipe(name: str, *, folder: int, kind: Kind) -> ReportPipe:
    """The pipe of that name in the open ``folder``. Raises ``OSError``, also where it is no pipe."""
    fd = os.open(name, OPEN_FLAGS, dir_fd=folder)
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(0, "it is no pipe")
    return ReportPipe(fd, kind=kind)
