"""`headway pipeline`: Spark computes metrics from the event log into Postgres."""

import argparse
import fcntl
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headway.cli import parent
from headway.cli.logs import log_to_stderr
from headway.errors import Misconfigured
from headway.settings import PipelineSettings
from headway.store.sink import MetricsSink
from headway_spark.pipeline import Stream
from headway_spark.session import close, open_session
from headway_spark.warm_up import warm_up

log = logging.getLogger(__name__)


def main(words: list[str]) -> int:
    """Run the pipeline until it is told to stop. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="headway pipeline", description=__doc__)
    parser.add_argument("--database-url", dest="HEADWAY_DATABASE_URL", help="where Postgres is, postgresql://…")
    parser.add_argument("--event-log", dest="HEADWAY_EVENT_LOG", help="folder of the event log")
    parser.add_argument("--checkpoint", dest="HEADWAY_CHECKPOINT", help="folder of the stream's checkpoint")
    parser.add_argument("--state-dir", dest="HEADWAY_STATE_DIR", help="folder for Spark's own files")
    flags = {name: value for name, value in vars(parser.parse_args(words[1:])).items() if value is not None}
    settings = PipelineSettings.from_env({**os.environ, **flags})
    log_to_stderr()
    # As a signal, so that it ends a start that is still under way as well.
    parent.watch(lambda: os.kill(os.getpid(), signal.SIGTERM))
    with _alone_in(settings.work_dir):
        _run(settings)
    return 0


def _run(settings: PipelineSettings) -> None:
    began_s = time.monotonic()
    sink = MetricsSink(settings.database_url)
    sink.starting()
    log.info("starting Java and Spark")
    session = open_session(os.environ, work_dir=settings.work_dir)
    # After the session, whose own handler of Ctrl-C would raise amid a batch. Until here a signal just ends this
    # process, and with it the JVM.
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    stream = Stream(session, log_dir=settings.event_log, checkpoint=settings.checkpoint, sink=sink)
    try:
        log.info("warming up after=%.1fs", time.monotonic() - began_s)
        warm_up(session, work_dir=settings.work_dir, is_stopping=stopping.is_set)
        if not stopping.is_set():
            stream.start()
            sink.ready()
            log.info("ready after=%.1fs", time.monotonic() - began_s)
            stream.run(is_stopping=stopping.is_set)
        log.info("stopping")
    finally:
        stream.stop()
        sink.close()
        close(session)


@contextmanager
def _alone_in(work_dir: Path) -> Iterator[None]:
    """Hold ``work_dir``, made if need be, against a second pipeline: two would spoil one checkpoint."""
    try:
        work_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (work_dir / "lock").open("w")
    except OSError as error:
        raise Misconfigured(f"HEADWAY_STATE_DIR={work_dir} cannot be written to: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Misconfigured(f"another pipeline runs in {work_dir}: stop it, or set HEADWAY_STATE_DIR") from error
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv))
