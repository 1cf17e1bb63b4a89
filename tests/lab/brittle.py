"""A worker without jobs that dies as soon as the file it is given is there, and again whenever it is started then."""

import signal
import sys
import time
from pathlib import Path

POLL_S = 0.1

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    flaw = Path(sys.argv[1])
    if not flaw.exists():
        sys.stdout.write("Listening on nothing\n")
        sys.stdout.flush()
    while not flaw.exists():
        time.sleep(POLL_S)
    sys.exit("brittle")
