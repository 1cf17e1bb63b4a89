"""One run of the pipeline: Spark, the stream, and the event log's files beside it."""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from headway.cli.process import heartbeat, parent_watch
from headway.cli.process.shutdown import Stopping
from headway.errors import Misconfigured
from headway.local.locks import only_process
from headway.settings import PipelineSettings
from headway.store.metrics.metrics_sink import MetricsSink
from headway.store.metrics.pipeline_heartbeat import CRASHED, STOPPED, PipelineHeartbeat
from headway.zones import zone_of
from headway_spark.event_log.archive import Archive, Retention
from headway_spark.session import Session, ask, close, open_session
from headway_spark.stream import checkpoint_storage, kafka
from headway_spark.stream.checkpoint import order
from headway_spark.stream.keeper import Keeper
from headway_spark.stream.pipeline import Stream, Unfit, unfit
from headway_spark.stream.rebuild import Rebuild, Stopped, is_due
from headway_spark.stream.warm_up import warm_up

PIPELINE_KEEPER_END_S = 5.0  # it checks for a stop between two files

log = logging.getLogger(__name__)


def run(settings: PipelineSettings, *, is_rebuild: bool) -> int | None:
    """Run until asked to stop, or until all is rebuilt. Returns the signal that asked, ``None`` where none came.

    Raises:
        Misconfigured: something outside is not as it has to be, or another pipeline runs there.
        Unfit: the checkpoint cannot be gone on from.
    """
    # As a signal, so that it ends a start that is still under way as well.
    parent_watch.watch(lambda: os.kill(os.getpid(), signal.SIGTERM))
    if is_rebuild and settings.source != "files":
        raise Misconfigured(
            "`headway pipeline rebuild` reads the event log, and HEADWAY_SOURCE=kafka does not: delete the checkpoint "
            f"{settings.checkpoint} and start the pipeline again; it then reads the last two hours of the topic"
        )
    with ExitStack() as signals, _alone_in(settings.work_dir), ExitStack() as stack:
        log_side = None
        if settings.source == "files":
            log_side = _LogSide(settings)
            stack.enter_context(log_side.archive.kept())
        heart = stack.enter_context(_beating(settings))
        try:
            return _run(settings, log_side, heart, signals, is_rebuild=is_rebuild)
        except Unfit as error:
            if settings.is_rebuilt_unasked and log_side is not None:
                log_side.order_rebuild(error)
            raise


@contextmanager
def _beating(settings: PipelineSettings) -> Iterator[heartbeat.Heartbeat]:
    """Show that this run answers, and how it ended."""
    beat = PipelineHeartbeat(settings.database_url)
    heart = heartbeat.Heartbeat(settings.work_dir / heartbeat.FILE, write_row=beat.write)
    heart.start()
    stage = CRASHED
    try:
        yield heart
        stage = STOPPED
    finally:
        heart.end()
        beat.ended(stage)
        beat.close()


def _run(
    settings: PipelineSettings,
    log_side: "_LogSide | None",
    heart: heartbeat.Heartbeat,
    signals: ExitStack,
    *,
    is_rebuild: bool,
) -> int | None:
    began_s = time.monotonic()
    sink = MetricsSink(settings.database_url, zone=zone_of(settings.time_zone, of="HEADWAY_TIME_ZONE"))
    sink.starting()
    log.info("starting Java and Spark")
    session = open_session(os.environ, work_dir=settings.work_dir, more=_spark_settings(settings))
    # After the session, whose own handler of Ctrl-C would raise amid a batch. Until here a signal just ends this
    # process, and with it the JVM.
    stopping = signals.enter_context(Stopping().listening())
    is_stopping = partial(stopping.wait, 0.0)
    heart.asks(lambda: ask(session))
    source = None
    if settings.source == "kafka":
        source = kafka.source(session, servers=settings.kafka_servers, topic=settings.kafka_topic)
    stream = Stream(session, log_dir=settings.event_log, checkpoint=settings.checkpoint, sink=sink, source=source)
    try:
        _require_connectors(settings, session)
        if log_side is not None:
            log_side.prepare(session, sink, stopping, is_rebuild=is_rebuild)
        if is_rebuild:
            return None
        sink.at("warming_up")
        log.info("warming up after=%.1fs", time.monotonic() - began_s)
        warm_up(session, work_dir=settings.work_dir, is_stopping=is_stopping)
        if not stopping.is_asked:
            if log_side is not None:
                log_side.restore()
            stream.start()
            if log_side is not None:
                log_side.keep(stopping)
            sink.ready()
            heart.asks(lambda: _ask(session, stream))
            log.info("ready after=%.1fs", time.monotonic() - began_s)
            stream.run(is_stopping=is_stopping)
        log.info("stopping")
    except Stopped:
        log.info("stopping; the rebuild goes on with the next start")
    finally:
        stopping.stop()
        heart.asks(lambda: None)  # from here on the JVM may go
        stream.stop()
        if log_side is not None:
            log_side.end()
        sink.close()
        close(session)
    return stopping.signal_number


def _ask(session: Session, stream: Stream) -> None:
    """Return once the JVM has answered, unless it hangs in a batch all the same."""
    ask(session)
    stream.require_progress()


def _spark_settings(settings: PipelineSettings) -> dict[str, str]:
    """What this run asks of its own Spark, beside what every stream wants."""
    more = {"spark.driver.memory": f"{settings.heap_mb}m"}
    if settings.packages:
        more["spark.jars.packages"] = settings.packages
    if checkpoint_storage.is_remote(settings.checkpoint):
        more["spark.sql.streaming.checkpointFileManagerClass"] = checkpoint_storage.CHECKPOINTS
    return more


def _require_connectors(settings: PipelineSettings, session: Session) -> None:
    """Raise ``Misconfigured`` for what is not there, before a warm-up that would be in vain."""
    if settings.source == "kafka":
        kafka.messages(session, servers=settings.kafka_servers, topic=settings.kafka_topic)
    if isinstance(settings.checkpoint, str):
        checkpoint_storage.require(session, settings.checkpoint)


class _LogSide:
    """What a run does with the event log's files beside reading them."""

    def __init__(self, settings: PipelineSettings) -> None:
        assert isinstance(settings.checkpoint, Path), "refused by the settings"
        retention = Retention(kept_s=settings.archive_days * 86_400.0, bytes_max=round(settings.archive_gb * 1e9))
        self.archive = Archive(settings.event_log, retention=retention)
        self._settings = settings
        self._checkpoint = settings.checkpoint
        self._keeper = Keeper(self.archive, log_dir=settings.event_log, checkpoint=settings.checkpoint)
        self._keeping: threading.Thread | None = None

    def prepare(self, session: Session, sink: MetricsSink, stopping: Stopping, *, is_rebuild: bool) -> None:
        """Mend what a killed run left, and rebuild where that is asked for or due."""
        self.archive.recover()
        if not is_rebuild and not is_due(self._checkpoint, self._settings.event_log):
            return
        sink.at("rebuilding")
        log.info("rebuilding the checkpoint %s from the event log %s", self._checkpoint, self._settings.event_log)
        rebuilt = Rebuild(
            session=session,
            log_dir=self._settings.event_log,
            checkpoint=self._checkpoint,
            work_dir=self._settings.work_dir,
            sink=sink,
            is_stopping=partial(stopping.wait, 0.0),
        ).run()
        since = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(rebuilt.from_s))
        log.info("rebuilt since=%s files=%d rows=%d took=%.1fs", since, rebuilt.files, rebuilt.rows, rebuilt.took_s)

    def order_rebuild(self, why: Unfit) -> None:
        """Let the next start rebuild, as HEADWAY_REBUILD=auto asks for."""
        log.warning("the next start rebuilds: %s", why)
        order(self._checkpoint)

    def restore(self) -> None:
        """Put back what the stream will ask for again."""
        try:
            self._keeper.restore()
        except (OSError, ValueError) as error:
            raise unfit(self._checkpoint, f"it is damaged ({error})") from error

    def keep(self, stopping: Stopping) -> None:
        """Keep the log in a thread of its own until ``stopping``."""
        self._keeping = threading.Thread(target=self._keeper.run, args=[stopping.wait], name="keeper", daemon=True)
        self._keeping.start()

    def end(self) -> None:
        """Wait for the thread, which has been asked to stop."""
        if self._keeping is not None:
            self._keeping.join(PIPELINE_KEEPER_END_S)


@contextmanager
def _alone_in(work_dir: Path) -> Iterator[None]:
    """Hold ``work_dir``, made if need be, against a second pipeline: two would spoil one checkpoint."""
    with only_process(
        work_dir / "lock",
        held_by=lambda _: Misconfigured(f"another pipeline runs in {work_dir}: stop it, or set HEADWAY_STATE_DIR"),
        unusable=lambda why: Misconfigured(f"HEADWAY_STATE_DIR={work_dir} cannot be written to: {why}"),
    ):
        yield
