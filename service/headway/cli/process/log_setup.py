"""How a role logs: one line an event on standard error, with its time in UTC."""

import logging
import sys
import threading
import time
from types import TracebackType

from headway.errors import printable

log = logging.getLogger(__name__)


class OneLine(logging.Formatter):
    """Lines whose names cannot forge another line, nor move a terminal's cursor."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class's name
        """The line of a record."""
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(  # noqa: N802 - as above
        self,
        error: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        """The trace of an exception, each line further in than any that begins an event."""
        return "\n".join(f"  {printable(line)}" for line in super().formatException(error).split("\n"))


def log_to_stderr() -> None:
    """Send this process's log to standard error."""
    formatter = OneLine("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # Python itself would write the message of an error that nobody caught as it is.
    sys.excepthook = _uncaught
    threading.excepthook = lambda thread: _uncaught(thread.exc_type, thread.exc_value, thread.exc_traceback)
    # Libraries that log each run of each job would bury what changed.
    for chatty in ("alembic", "apscheduler", "grpc", "py4j"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    if error is not None and not isinstance(error, SystemExit):
        log.critical("ended by an error that nobody caught", exc_info=(kind, error, trace))
