"""How a role logs: one line an event on standard error, with its time in UTC."""

import logging
import sys
import time


def log_to_stderr(level: int = logging.INFO) -> None:
    """Send this process's log to standard error."""
    formatter = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler])
    # Libraries that tell each run of each job would bury what changed.
    for chatty in ("alembic", "apscheduler", "grpc", "py4j"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
