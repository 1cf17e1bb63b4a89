"""`headway collect`: read brokers and report their queues and the events of their jobs to the control plane."""

import argparse
import os
import signal
import threading
from collections.abc import Iterable
from functools import partial

from headway.cli.argparse_base import Arguments
from headway.cli.process import parent_watch
from headway.cli.process.log_setup import log_to_stderr
from headway.cli.process.process_privacy import keep_private
from headway.cli.process.role_options import add_control, laid_over
from headway.cli.process.shutdown import Stopping, service_status
from headway.cli.roles.grpc_tls import grpc_tls
from headway.cli.terminal.figure_accuracy import accuracy_lines
from headway.cli.terminal.printing import say
from headway.collect.collector_loop import Collectors
from headway.collect.discovery import discover
from headway.collect.libraries import Libraries
from headway.connections import Connection
from headway.emit.client import TelemetryClient
from headway.emit.outbox_folder import state_folder
from headway.errors import HeadwayError, Misconfigured
from headway.settings import CollectSettings

ANSWER_WITHIN_S = 0.5
STOP_WITHIN_S = 1.0
DISCOVERY_EVERY_S = 3600.0


def main(words: list[str]) -> int:
    """Collect until asked to stop, or with ``--check`` only check. Returns the exit status."""
    given = _options(words)
    libraries = Libraries()
    settings = CollectSettings.from_env(laid_over(os.environ, given), check=libraries.breaches)
    if given.check:
        return _check(settings.connections, libraries)
    log_to_stderr()
    keep_private()
    stopping = Stopping()
    with stopping.listening(), state_folder(settings.state_dir) as folder:
        main_thread = threading.get_ident()
        parent_watch.watch(lambda: signal.pthread_kill(main_thread, signal.SIGTERM))
        client = TelemetryClient(*settings.control, token=settings.token, tls=partial(grpc_tls, settings.tls))
        collectors = Collectors(settings.connections, libraries=libraries, folder=folder, send=client.send)
        collectors.start()
        while not stopping.wait(DISCOVERY_EVERY_S):
            pass
        collectors.ask_to_stop()
        collectors.wait_stopped(ANSWER_WITHIN_S)
        client.close()  # ends a call that still waits for its answer; its batch goes out again after the next start
        collectors.wait_stopped(STOP_WITHIN_S)
    return service_status(stopping.signal_number)


def _options(words: list[str]) -> argparse.Namespace:
    parser = Arguments(prog="headway collect", description=__doc__)
    parser.add_argument(
        "--broker",
        dest="HEADWAY_BROKERS",
        action="append",
        metavar="NAME=URL",
        help="a broker to read; may be repeated",
    )
    add_control(parser)
    parser.add_argument("--state-dir", dest="HEADWAY_STATE_DIR", help="folder for what must survive a restart")
    parser.add_argument("--check", action="store_true", help="poll each broker once, print its queues, and exit")
    given = parser.parse_args(words[1:])
    given.HEADWAY_BROKERS = ",".join(given.HEADWAY_BROKERS or []) or None
    return given


def _check(connections: Iterable[Connection], libraries: Libraries) -> int:
    problems: list[str] = []
    for connection in connections:
        try:
            found = discover(connection, libraries)
        except HeadwayError as error:
            problems.append(str(error))
            continue
        say(f"queues of {found.library.title} in {connection.shown_url}: {len(found.queues)}")
        for queue in found.queues:
            workers = "not shown by the broker" if queue.workers is None else queue.workers
            say(f"  {connection.name}/{queue.name}  waiting jobs: {queue.waiting_jobs}  workers: {workers}")
        for line in accuracy_lines(found.library):
            say(line)
    if problems:
        raise Misconfigured("; ".join(problems))
    return 0
