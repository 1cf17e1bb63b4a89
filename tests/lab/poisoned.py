"""A worker that reports, as Celery's do, that it has begun one job, and dies of it: the same one each time."""

import json
import os
import signal
import sys
import time

if __name__ == "__main__":
    job = {"id": "the-poison", "queue": sys.argv[1], "class": "shop.poison", "attempt": 1}
    line = json.dumps({"v": 1, "t": "begun", "at_s": time.time(), **job})
    os.write(os.open(os.environ["HEADWAY_REPORTER_PIPE"], os.O_WRONLY | os.O_NONBLOCK), f"{line}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)
