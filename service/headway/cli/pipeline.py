"""`headway pipeline`: Spark computes metrics from the event log into Postgres.

`headway pipeline rebuild` makes the stream's checkpoint and the newest metrics anew from the log, and ends.
"""

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

from pyspark.sql import SparkSession

from headway.cli import parent
from headway.cli.logs import log_to_stderr
from headway.errors import Misconfigured
from headway.settings import PipelineSettings
from headway.store.sink import MetricsSink
from headway_spark.archive import Archive, Retention
from headway_spark.keeper import Keeper
from headway_spark.pipeline import Stream, unfit
from headway_spark.rebuild import Rebuild, Stopped, is_due
from headway_spark.session import close, open_session
from headway_spark.warm_up import warm_up

KEEPER_END_S = 5.0  # it looks for a stop between two files

log = logging.getLogger(__name__)


def main(words: list[str]) -> int:
    """Run the pipeline until it is told to stop. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="headway pipeline", description=__doc__)
    parser.add_argument(
        "action", nargs="?", choices=("run", "rebuild"), default="run", help="run (the default), or rebuild and end"
    )
    parser.add_argument("--database-url", dest="HEADWAY_DATABASE_URL", help="where Postgres is, postgresql://…")
    parser.add_argument("--event-log", dest="HEADWAY_EVENT_LOG", help="folder of the event log")
    parser.add_argument("--checkpoint", dest="HEADWAY_CHECKPOINT", help="folder of the stream's checkpoint")
    parser.add_argument("--state-dir", dest="HEADWAY_STATE_DIR", help="folder for Spark's own files")
    flags = {name: value for name, value in vars(parser.parse_args(words[1:])).items() if value is not None}
    is_rebuild = flags.pop("action") == "rebuild"
    settings = PipelineSettings.from_env({**os.environ, **flags})
    log_to_stderr()
    # As a signal, so that it ends a start that is still under way as well.
    parent.watch(lambda: os.kill(os.getpid(), signal.SIGTERM))
    retention = Retention(kept_s=settings.archive_days * 86_400.0, bytes_max=round(settings.archive_gb * 1e9))
    archive = Archive(settings.event_log, retention=retention)
    with _alone_in(settings.work_dir), archive.kept():
        _run(settings, archive, is_rebuild=is_rebuild)
    return 0


def _run(settings: PipelineSettings, archive: Archive, *, is_rebuild: bool) -> None:
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
    keeper = Keeper(archive, log_dir=settings.event_log, checkpoint=settings.checkpoint)
    keeping = threading.Thread(target=keeper.run, args=[stopping], name="keeper", daemon=True)
    try:
        archive.recover()
        if is_rebuild or is_due(settings.checkpoint, settings.event_log):
            _rebuild(settings, session, sink, stopping)
        if is_rebuild:
            return
        sink.at("warming_up")
        log.info("warming up after=%.1fs", time.monotonic() - began_s)
        warm_up(session, work_dir=settings.work_dir, is_stopping=stopping.is_set)
        if not stopping.is_set():
            _restore(keeper, settings.checkpoint)
            stream.start()
            keeping.start()
            sink.ready()
            log.info("ready after=%.1fs", time.monotonic() - began_s)
            stream.run(is_stopping=stopping.is_set)
        log.info("stopping")
    except Stopped:
        log.info("stopping; the rebuild goes on with the next start")
    finally:
        stopping.set()
        stream.stop()
        if keeping.is_alive():
            keeping.join(KEEPER_END_S)
        sink.close()
        close(session)


def _rebuild(settings: PipelineSettings, session: SparkSession, sink: MetricsSink, stopping: threading.Event) -> None:
    sink.at("rebuilding")
    log.info("rebuilding the checkpoint %s from the event log %s", settings.checkpoint, settings.event_log)
    rebuilt = Rebuild(
        session=session,
        log_dir=settings.event_log,
        checkpoint=settings.checkpoint,
        work_dir=settings.work_dir,
        sink=sink,
        is_stopping=stopping.is_set,
    ).run()
    since = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(rebuilt.from_s))
    log.info("rebuilt since=%s files=%d rows=%d took=%.1fs", since, rebuilt.files, rebuilt.rows, rebuilt.took_s)


def _restore(keeper: Keeper, checkpoint: Path) -> None:
    try:
        keeper.restore()
    except (OSError, ValueError) as error:
        raise unfit(checkpoint, f"it is damaged ({error})") from error


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
