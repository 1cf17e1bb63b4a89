"""Whether this process was asked to end, for every role that takes signals but the agent, which reloads as well."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ended_by(signal_number: int | None) -> int:
    """What a shell expects of a process that a signal ended: 128 and the signal's number; 0 if none came."""
    return 0 if signal_number is None else 128 + signal_number


def service_status(signal_number: int | None) -> int:
    """The same for what runs until it is asked to stop: SIGTERM is a service manager's request, and no failure."""
    return 0 if signal_number == signal.SIGTERM else ended_by(signal_number)


class Stopped(Exception):
    """This process was asked to end."""


class Stopping:
    """Set by the first signal that asks this process to end, or by ``stop``.

    A pipe instead of a ``threading.Event``: a signal handler that sets an event deadlocks where the interrupted main
    thread holds the event's own lock.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None
        """The first signal that came."""
        self.is_asked = False
        self.signals_received = 0
        """By a second one a person says not to wait any longer."""
        self._repeated: Callable[[], None] = lambda: None
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    @contextmanager
    def listening(self, *, repeated: Callable[[], None] = lambda: None) -> Iterator["Stopping"]:
        """Take this process's signals for the block; ``repeated`` is called for every signal after the first."""
        self._repeated = repeated
        # Under nohup a hang-up is ignored, and stays so.
        taken = [number for number in SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, self._handle) for number in taken}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.signals_received += 1
        if self.signal_number is not None:
            self._repeated()
            return
        self.signal_number = number
        self.stop()

    def stop(self) -> None:
        """Ask this process to end, from any thread."""
        self.is_asked = True
        with suppress(BlockingIOError):  # full: whoever waits is awake
            os.write(self._writer, b"!")

    def fileno(self) -> int:
        """What is readable once asked, and stays so."""
        return self._reader

    def wait(self, seconds: float) -> bool:
        """Wait for ``seconds``, or until asked to end. Returns whether it was."""
        # The byte is never read: once asked, every wait of every thread returns at once.
        readable, _, _ = select.select([self._reader], [], [], max(seconds, 0.0))
        return bool(readable)

    def check(self) -> None:
        """Raise ``Stopped`` if this process was asked to end."""
        if self.is_asked:
            raise Stopped


ENDED_BY_CTRL_C = 130
