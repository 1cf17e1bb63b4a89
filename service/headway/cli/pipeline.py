"""`headway pipeline`: Spark computes metrics from the event log into Postgres."""

import argparse
import logging
import os
import signal
import sys
import threading
import time

from headway.cli import parent
from headway.cli.logs import log_to_stderr
from headway.settings import PipelineSettings
from headway.store import migrate
from headway.store.sink import MetricsSink
from headway_spark import pipeline
from headway_spark.session import open_session

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
    stopping = threading.Event()
    parent.watch(stopping.set)
    migrate.check(settings.database_url)
    sink = MetricsSink(settings.database_url)
    sink.starting()
    settings.work_dir.mkdir(parents=True, exist_ok=True, mode=0o700)

    began_s = time.monotonic()
    log.info("starting Spark")
    session = open_session(os.environ, work_dir=settings.work_dir)
    # After the session: Spark's own handler of Ctrl-C would raise amid a batch.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    log.info("warming up after %.1f s", time.monotonic() - began_s)
    pipeline.warm_up(session, work_dir=settings.work_dir)
    query = pipeline.start(session, log_dir=settings.event_log, checkpoint=settings.checkpoint, sink=sink.write)
    sink.ready()
    log.info("ready after %.1f s", time.monotonic() - began_s)
    pipeline.run(query, is_stopping=stopping.is_set)
    log.info("stopping")
    sink.close()
    session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
