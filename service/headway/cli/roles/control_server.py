"""One control plane, made of its parts, from its start to its end."""

import asyncio
import inspect
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import uvloop
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from headway.cli.process import parent_watch
from headway.cli.process.file_descriptors import within_descriptors
from headway.cli.process.shutdown import Stopping
from headway.control.agents.agent_service import AgentService
from headway.control.agents.host_authorization import HostAuthorization
from headway.control.auth.authenticator import Authenticator
from headway.control.auth.certificates import Certificates
from headway.control.bounds import Bounds
from headway.control.gc_tuning import collect_rarely, give_back
from headway.control.http.app import create_app
from headway.control.http.connections import Connections
from headway.control.http.http_server import HttpServer
from headway.control.http.overview.alerting import Alerting
from headway.control.http.overview.broadcaster import Feed
from headway.control.ingest.backpressure import UnreadBound
from headway.control.ingest.ingest import Ingest
from headway.control.ingest.name_claims import NameClaims
from headway.control.notifications.receivers import Receiver, read_receivers, receivers_of, subscribers_of
from headway.control.rpc.agent_servicer import AgentServicer
from headway.control.rpc.grpc_server import serve
from headway.control.rpc.telemetry_servicer import TelemetryServicer
from headway.control.scheduler.leader import Leadership
from headway.control.scheduler.maintenance import Maintenance, attain, maintain, prepare
from headway.control.scheduler.ticker import Ticker
from headway.scaling.strategy import Strategy
from headway.scaling.view import TICK_S
from headway.settings import ControlSettings
from headway.store import migrate
from headway.store.claimed_names import CLAIMED_NAMES_CHANGED as FORGOTTEN_QUEUES
from headway.store.engine import CONTROL_IDLE_TRANSACTION_TIMEOUT_S, Engine, create_engine, listen
from headway.store.events.event_log import EventLog
from headway.store.events.telemetry import SUSPENSIONS
from headway.store.metrics.metrics_sink import wakes
from headway.store.outbox.pool_events import Subscribers, no_subscribers
from headway.strategies import load_strategies

GIVE_BACK_S = 30.0  # a few milliseconds of a thread, in which who needs memory waits
ATTAINMENT_S = 60.0  # as often as the pipeline rolls up
MAINTENANCE_S = 600.0  # partitions are made days ahead and claims kept for days: minutes are often enough
STOP_GRACE_S = 3.0
# The loop lets go of the interpreter with each statement that it sends to Postgres, and has it back when the thread
# that reads a large body lets go: by Python's default 5 ms later, and a report sends ten statements.
SWITCH_S = 0.0005

log = logging.getLogger(__name__)


def run(settings: ControlSettings, *, ended_report: Path | None = None) -> int | None:
    """Serve until asked to stop. Returns the signal that asked, ``None`` where it was the parent's end.

    What ``ended_report`` then holds, if it is there, is what viewers get last.
    """
    strategies = load_strategies()
    migrate.upgrade(settings.database_url)
    collect_rarely()
    sys.setswitchinterval(SWITCH_S)
    return uvloop.run(_serve(settings, strategies, ended_report))


async def _serve(
    settings: ControlSettings, strategies: Mapping[str, Strategy], ended_report: Path | None
) -> int | None:
    receivers = read_receivers(settings.notifications)
    async with AsyncExitStack() as stack:
        stopping = stack.enter_context(Stopping().listening())
        parent_watch.watch(stopping.stop)
        engine = create_engine(settings.database_url, idle_transaction_s=CONTROL_IDLE_TRANSACTION_TIMEOUT_S)
        stack.push_async_callback(engine.dispose)
        await prepare(engine)
        unread = UnreadBound(files_max=settings.unread_files_max, bytes_max=round(settings.unread_gb_max * 1e9))
        bounds = within_descriptors(Bounds(**settings.bounds))
        ingest = Ingest(
            engine=engine, event_log=EventLog(settings.event_log), clock=time.time, unread=unread, bounds=bounds
        )
        await ingest.start()
        stack.push_async_callback(ingest.stop)

        leadership = Leadership(
            database_url=settings.database_url, name=f"{socket.gethostname()}:{os.getpid()}", clock=time.monotonic
        )
        has_subscriber = any(each.events for each in receivers)
        subscribers: Subscribers = partial(subscribers_of, receivers) if has_subscriber else no_subscribers
        ticker = Ticker(
            engine=engine,
            leadership=leadership,
            clock=time.time,
            strategies=strategies,
            recommends_only=settings.recommends_only,
            subscribers_of=subscribers,
        )
        reports = AgentService(engine=engine, bounds=bounds, refused=ingest.names.refused)
        feed = Feed(bounds=bounds, ended_report=partial(_read, ended_report))
        tls, upkeep = settings.tls, Maintenance()
        certificates = None if tls is None else Certificates(tls.certificate, tls.key, client_ca=tls.client_ca)
        callers = Authenticator(token=settings.token, engine=engine, on_cut_off=reports.host_changed)
        admission = HostAuthorization(engine=engine, callers=callers)
        # Who recommends only serves no agent: whatever the database holds, none can be asked to start a worker.
        agents = [] if settings.recommends_only else [AgentServicer(reports, admission, bounds)]
        rpc = await serve(
            [*agents, TelemetryServicer(ingest)],
            address=settings.grpc,
            token=settings.token,
            callers=callers,
            certificates=certificates,
            bounds=bounds,
        )
        stack.push_async_callback(rpc.stop, STOP_GRACE_S)
        connections = Connections(bounds.http_connections_max)
        app = create_app(
            engine=engine,
            ingest=ingest,
            feed=feed,
            token=settings.token,
            address=settings.http,
            strategies=strategies,
            callers=callers,
            bounds=bounds,
            upkeep=upkeep,
            certificates=certificates,
            connections=connections,
            ended_strangers=lambda: rpc.strangers.ended,
            recommends_only=settings.recommends_only,
        )
        alerting = Alerting(
            engine=engine,
            overviews=app.overviews,
            epoch=lambda: leadership.epoch,
            receivers_of=partial(receivers_of, receivers),
            subscribers_of=subscribers,
        )
        http = HttpServer(
            app,
            address=settings.http,
            tls=certificates.context if certificates else None,
            connections=connections,
        )
        await http.start()
        stack.push_async_callback(http.stop)
        scheduler = _scheduler(ticker, engine, upkeep)
        scheduler.start()
        stack.callback(scheduler.shutdown, wait=False)

        log.info("serving http=%s:%d grpc=%s:%d", settings.http.host, http.port, settings.grpc.host, rpc.port)
        await _until(
            stopping,
            leadership.run(ticker.all_due),
            ticker.run(),
            alerting.run(),
            *((_notifying(engine, receivers, leadership),) if receivers else ()),
            _listen(settings.database_url, ticker, reports, feed, ingest.names),
            callers.watch(),
            reports.hang_ups.watch(),
            *((certificates.watch(),) if certificates else ()),
        )
        log.info("stopping")
    return stopping.signal_number


def _read(ended_report: Path | None) -> str | None:
    """A report as one line of JSON; ``None`` where there is none, as long as nothing has ended for good."""
    if ended_report is None:
        return None
    with suppress(OSError, ValueError):
        return json.dumps(json.loads(ended_report.read_bytes()))
    return None


def _notifying(engine: Engine, receivers: Collection[Receiver], leadership: Leadership) -> Coroutine[Any, Any, None]:
    # With an HTTP client, a tenth of a second of each start: only for who has somebody to notify.
    from headway.control.notifications.sender import NotificationSender

    return NotificationSender(engine=engine, receivers=receivers, epoch=lambda: leadership.epoch).run()


def _scheduler(ticker: Ticker, engine: Engine, upkeep: Maintenance) -> AsyncIOScheduler:
    """The clock of the control plane. It only says that work is due; overlapping and missed runs become one."""
    scheduler = AsyncIOScheduler(timezone="UTC")
    once = {"max_instances": 1, "coalesce": True, "misfire_grace_time": None}

    def repeat(job: Callable[..., Any], *arguments: Any, every_s: float, **more: Any) -> None:
        scheduler.add_job(
            _until_the_end, "interval", args=[job, *arguments], name=job.__name__, seconds=every_s, **once, **more
        )

    repeat(ticker.all_due, every_s=TICK_S)
    repeat(asyncio.to_thread, give_back, every_s=GIVE_BACK_S)
    repeat(attain, engine, upkeep, every_s=ATTAINMENT_S, next_run_time=datetime.now(UTC))
    # At once, too: who never runs for ten minutes on end would forget nothing.
    repeat(maintain, engine, upkeep, every_s=MAINTENANCE_S, next_run_time=datetime.now(UTC))
    return scheduler


async def _until_the_end(job: Callable[..., Any], *arguments: Any) -> None:
    """Await ``job``. One that is under way when all ends is cancelled, which the scheduler would log as its failure."""
    done = job(*arguments)
    with suppress(asyncio.CancelledError):
        if inspect.isawaitable(done):
            await done


async def _listen(database_url: str, ticker: Ticker, reports: AgentService, feed: Feed, names: NameClaims) -> None:
    """Pass on Postgres's notifications, for ever."""
    channels = ("headway_metrics", "headway_assignments", "headway_decisions", FORGOTTEN_QUEUES, SUSPENSIONS)
    async for channel, payload in listen(database_url, channels):
        if channel == FORGOTTEN_QUEUES:
            names.forget()
            continue
        if channel == SUSPENSIONS:
            ticker.suspension_turned()
        if channel == "headway_metrics" and wakes(payload):
            ticker.metrics_written()
        if channel == "headway_assignments":
            reports.host_changed(payload)
        else:
            feed.publish()


async def _until(stopping: Stopping, *work: Coroutine[Any, Any, None]) -> None:
    """Do ``work`` until this process is asked to end. An error in any of it ends all and is raised."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_reader(stopping, asked.set)
    tasks = [asyncio.ensure_future(each) for each in (asked.wait(), *work)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        asyncio.get_running_loop().remove_reader(stopping)
        for task in tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
