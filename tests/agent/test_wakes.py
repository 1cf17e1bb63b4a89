import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Collection

import pytest

from headway.agent.reporting.reading_wait import READS_GAP_S, wait_reading
from headway.agent.system.wake_pipe import WakePipe

HANG_UP = """
import fcntl, os, signal, sys, termios
from headway.agent.system.wake_pipe import WakePipe
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs this test may ignore it
if sys.argv[1] == "terminal":
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
wakes = WakePipe()
with wakes.listening():
    os.kill(os.getpid(), signal.SIGHUP)
    wakes.wait(10.0)
print(wakes.stops_asked, wakes.take_reload(), wakes.take_reload())
"""


@pytest.mark.parametrize(("has", "said"), [("terminal", "1 False False"), ("none", "0 True False")])
def test_a_hang_up_ends_an_agent_in_a_terminal_and_is_how_a_service_is_asked_to_read_again(has: str, said: str) -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", HANG_UP, has],
            stdin=theirs if has == "terminal" else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
            timeout=60,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert (done.stdout.strip(), done.stderr) == (said, "")


class Chatter:
    """A pipe that always has something, and how often it was read."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        os.write(self._writer, b"x")
        self.reads = 0

    def watchable(self) -> frozenset[int]:
        return frozenset({self.reader})

    def read(self, fds: Collection[int]) -> bool:
        assert fds == {self.reader}
        self.reads += 1
        return True

    def close(self) -> None:
        os.close(self.reader)
        os.close(self._writer)


def test_workers_that_report_all_the_time_end_no_wait_and_are_read_a_bounded_number_of_times() -> None:
    chatter = Chatter()
    began_s = time.monotonic()
    wait_reading(WakePipe(), chatter, 5.5 * READS_GAP_S)
    assert time.monotonic() - began_s >= 5.5 * READS_GAP_S
    assert 1 <= chatter.reads <= 6
    chatter.close()


def test_what_else_happens_ends_a_wait_in_which_workers_report() -> None:
    chatter, wakes = Chatter(), WakePipe()
    threading.Timer(0.05, wakes.wake).start()
    wait_reading(wakes, chatter, 60.0)
    ended, writer = os.pipe()
    os.write(writer, b"x")  # as the descriptor of a process that has ended
    wait_reading(wakes, chatter, 60.0, fds=lambda: frozenset({ended}))
    chatter.close()
