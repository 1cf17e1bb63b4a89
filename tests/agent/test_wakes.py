import os
import pty
import subprocess
import sys

import pytest

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
