"""What wakes the agent's main thread: signals, ends of workers, and whatever another thread calls ``wake`` for."""

import os
import select
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class WakePipe:
    """A pipe that ends the main thread's wait, and what signals have asked of this process."""

    def __init__(self) -> None:
        self.stops_asked = 0
        self.signal_number: int | None = None
        """The first signal that asked to stop."""
        self._is_reload_asked = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def wake(self) -> None:
        """End the wait, from any thread."""
        with suppress(BlockingIOError):  # full: it will wake anyway
            os.write(self._writer, b"!")

    def stop(self) -> None:
        """Ask this process to stop, from any thread. Unlike a signal it presses nobody when it comes second."""
        self.stops_asked = self.stops_asked or 1
        self.wake()

    def take_reload(self) -> bool:
        """Whether this process was asked to read its files again since the last call."""
        asked, self._is_reload_asked = self._is_reload_asked, False
        return asked

    def wait(self, seconds: float, fds: Iterable[int] = ()) -> frozenset[int]:
        """Return when something has happened, or after ``seconds``: the descriptors that are readable.

        Beside those of ``fds`` there is one where ``wake`` was called, or a signal came.
        """
        poll = select.poll()
        for fd in (self._reader, *fds):
            poll.register(fd, select.POLLIN)
        readable = frozenset(fd for fd, _ in poll.poll(max(0.0, seconds) * 1000))
        with suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                pass
        return readable

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take this process's signals for the block. Call it from the main thread."""
        # Under nohup a hang-up is ignored, and stays so.
        numbers = [each for each in STOP_SIGNALS if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN]
        before = {number: signal.signal(number, self._asked) for number in numbers}
        # A handler of any kind lets the end of a child write to the pipe.
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        written = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(written)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP and not _has_terminal():
            self._is_reload_asked = True
        else:
            self.stops_asked += 1
            self.signal_number = self.signal_number or number


def _has_terminal() -> bool:
    """Whether a hang-up is that of a terminal, and not how a service is asked to read its files again."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
