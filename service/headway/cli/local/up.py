"""`headway up`: everything on this machine, for your own broker, from profiles.yaml and host.toml."""

import argparse
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from headway.agent.config import host_file
from headway.cli.argparse_base import Arguments
from headway.cli.local import process_orphans
from headway.cli.local.data_dir import DataDir
from headway.cli.local.live_view import Terminal
from headway.cli.local.ports import Endpoint, free_address, require_free
from headway.cli.local.stack import KILLING, Plan, Stack, address_lines, left_workers
from headway.cli.operator.apply import apply_profiles
from headway.cli.process.process_privacy import keep_private
from headway.cli.process.role_options import add_data_dir, add_machine_flags, control_settings
from headway.cli.process.shutdown import Stopped, Stopping, service_status
from headway.cli.profiles_file import ProfilesFile, excluded, load_profiles_file
from headway.collect.discovery import discover
from headway.collect.libraries import Libraries
from headway.connections import Connection
from headway.environment import ClientSettings, ClientTls
from headway.errors import HeadwayError, Invalid, Misconfigured
from headway.scaling.mapping import near
from headway.scaling.model import Mode
from headway.scaling.planning.doubtful_percentiles import doubtful_percentiles
from headway.scaling.profile_keys.queue_patterns import is_match, is_pattern
from headway.settings import CollectSettings, ControlSettings, database_url_of
from headway_spark.java import java_home

POLL_S = 0.5
UNSERVED_NAMED = 5
UP_AGENT_STOP_S = 5.0  # what the agent takes beyond its workers


def main(words: list[str]) -> int:
    """Run everything until asked to stop. Returns the exit status."""
    options = _options(words)
    if options.recommend_only and options.stop_workers:
        raise Misconfigured("--recommend-only stops no worker: leave --stop-workers out")
    for path in (options.profiles, *(() if options.recommend_only else (options.host_file,))):
        if not path.exists():  # in the wrong folder nothing is left behind
            raise Misconfigured(
                f"{path} is not there: run `headway init` first, which writes profiles.yaml and host.toml"
            )
    layout, stopping = DataDir(options.data_dir.absolute()), Stopping()
    with Terminal(is_plain=options.plain) as terminal:
        again = KILLING if options.stop_workers else "stopping already; no need to ask twice"
        with stopping.listening(repeated=lambda: terminal.say(again)):
            layout.create()
            with process_orphans.only_parent(layout), suppress(Stopped):
                _require_whole(layout)
                process_orphans.clear(layout.children, stopping=stopping, say=terminal.say)
                _run(options, layout, stopping=stopping, terminal=terminal)
    return service_status(stopping.signal_number)


def _require_whole(layout: DataDir) -> None:
    """Refuse to begin with half a backup, and with an empty database in place of the other half."""
    if layout.restoring.exists():
        raise Misconfigured(
            f"a `headway restore` into {layout.root} was broken off: run it again with --replace; "
            f"what was there before it is in {layout.root}/before-…"
        )


def _run(options: argparse.Namespace, layout: DataDir, *, stopping: Stopping, terminal: Terminal) -> None:
    libraries = Libraries()
    file, host = _files(options, libraries)
    brokers = _brokers(file, os.environ, libraries)
    plan = _plan(options, layout, host)
    for line in _warnings(file, host, options.host_file):
        terminal.say(line)
    with terminal.stage("brokers and Java found"):
        found = _check_outside(brokers, libraries, layout)
    for line in _unserved(found, file):
        terminal.say(line)
    machine = Stack(plan, stopping=stopping, terminal=terminal)
    keep_private(terminal.say)
    try:
        apply = partial(apply_profiles, groups=file.groups, exclude=file.exclude, warn=terminal.say, tls=plan.tls)
        machine.start(brokers=brokers, apply_profiles=lambda: apply(plan.url, plan.token, file.profiles))
        for line in address_lines(plan):
            terminal.say(line)
        if host is None:
            terminal.say("recommends only: starts and stops no worker; `headway get pools` shows what it would do")
        ends = (
            "Headway and its workers, once their jobs are done"
            if options.stop_workers
            else "Headway, and workers go on"
        )
        terminal.say(f"logs: {layout.log('*')}; Ctrl-C ends {ends}")
        while not stopping.wait(POLL_S):
            machine.supervisor.tend()
    finally:
        with terminal.stage("stopping"):
            machine.stop_children()
            machine.supervisor.stop_servers()
        _print_workers(layout, terminal)


def _files(options: argparse.Namespace, libraries: Libraries) -> tuple[ProfilesFile, host_file.HostFile | None]:
    """What the two files say; without a second one all pools are only recommended for.

    Raises:
        Misconfigured: a file cannot be read.
        Invalid: with every mistake in both.
    """
    breaches: list[str] = []
    host = file = None
    try:
        file = load_profiles_file(options.profiles, check=libraries.breaches)
    except Invalid as error:
        breaches += error.breaches
    try:
        host = None if options.recommend_only else host_file.load(options.host_file)
    except Invalid as error:
        breaches += error.breaches
    if file is None or breaches:
        raise Invalid(*breaches)
    if host is None:
        file = replace(file, profiles=tuple(profile.recommended() for profile in file.profiles))
    return file, host


def _brokers(file: ProfilesFile, env: Mapping[str, str], libraries: Libraries) -> tuple[Connection, ...]:
    if env.get("HEADWAY_BROKERS") or env.get("HEADWAY_BROKERS_FILE"):
        return CollectSettings.from_env(env, check=libraries.breaches).connections
    if not file.brokers:
        raise Misconfigured(
            "no broker is named: write `brokers: {NAME: URL}` into profiles.yaml, or set HEADWAY_BROKERS"
        )
    return file.brokers


def _plan(options: argparse.Namespace, layout: DataDir, host: host_file.HostFile | None) -> Plan:
    settings = control_settings(options, os.environ, database_url="postgresql://embedded")
    require_free(
        Endpoint(settings.http, "--http-address", "HEADWAY_HTTP_ADDRESS"),
        Endpoint(settings.grpc, "--grpc-address", "HEADWAY_GRPC_ADDRESS"),
    )
    # How long a worker may take to finish its jobs: endless where a template sets no deadline.
    deadlines_s = [] if host is None else [each.stop.drain_timeout_s for each in host.templates.values()]
    drain_s = max((math.inf if each is None else each for each in deadlines_s), default=0.0)
    return Plan(
        layout=layout,
        http=free_address(settings.http),  # itself, but for port 0
        grpc=free_address(settings.grpc),
        token=settings.token,
        database_url=database_url_of(os.environ),
        host_file=None if host is None else str(options.host_file.absolute()),
        stops_workers=options.stop_workers,
        agent_stop_within_s=UP_AGENT_STOP_S + (drain_s if options.stop_workers else 0.0),
        is_encrypted=settings.tls is not None,
        tls=_trusted(settings),
    )


def _trusted(settings: ControlSettings) -> ClientTls | None:
    """Whom the roles of this machine trust, which call the control plane by a number of its own."""
    tls = ClientSettings.from_env(os.environ).tls
    if settings.tls is None:
        return None
    if tls is None or settings.tls.client_ca is not None:
        raise Misconfigured(
            "with HEADWAY_TLS_CERT, `headway up` needs HEADWAY_TLS_CA, too, and cannot do with HEADWAY_TLS_CLIENT_CA: "
            "where each role has a certificate of its own, run the roles apart"
        )
    return tls


def _check_outside(brokers: Iterable[Connection], libraries: Libraries, layout: DataDir) -> list[str]:
    """The queues in the brokers. What could not work is refused, with every mistake: unreachable brokers, no Java."""
    breaches = []
    found: list[str] = []
    for connection in brokers:
        try:
            found += [connection.queue(each.name) for each in discover(connection, libraries).queues]
        except HeadwayError as error:
            breaches.append(f"{connection.name}: {error}")
    try:
        java_home(os.environ, shim_dir=layout.state("pipeline") / "java")
    except HeadwayError as error:
        breaches.append(str(error))
    if breaches:
        raise Invalid(*breaches)
    return found


def _warnings(file: ProfilesFile, host: host_file.HostFile | None, host_path: Path) -> Iterator[str]:
    """A line for each thing in the two files that is allowed and probably not meant."""
    for profile in file.profiles:
        # No mistake for sure: a host that joins may have the template.
        if host is not None and profile.mode is not Mode.RECOMMEND and profile.template not in host.templates:
            pool, name = profile.pool, profile.template
            text = f"no worker of pool {pool!r} can start here: template {name!r} is not in {host_path}"
            yield f"warning: {text};{near(name, host.templates)}".rstrip(";")
        yield from (f"warning: {sentence}" for sentence in doubtful_percentiles(profile))


def _unserved(found: Iterable[str], file: ProfilesFile) -> Iterator[str]:
    """A line where queues are in no pool and nobody said that they shall not be."""
    served = {queue for profile in file.profiles for queue in profile.queues}
    patterns = [queue for queue in served if is_pattern(queue)]
    left = [
        each
        for each in found
        if each not in served
        and not any(is_match(pattern, each) for pattern in patterns)
        and not excluded("", [each], file.exclude)
    ]
    if left:
        more = f" and {len(left) - UNSERVED_NAMED} more" if len(left) > UNSERVED_NAMED else ""
        named = f"{', '.join(left[:UNSERVED_NAMED])}{more}"
        yield f"unserved, because no pool has them: {named}; add them to pools, or to exclude"


def _print_workers(layout: DataDir, terminal: Terminal) -> None:
    """Say which workers go on without Headway, and how to end them."""
    folder, left = layout.state("agent"), left_workers(layout)
    if left:
        listed = ", ".join(f"{row['pool']} (process {row['pid']})" for row in left)
        terminal.say(f"these workers go on: {listed}")
        terminal.say(f"`headway up` takes them over again; `headway agent stop-workers --state-dir {folder}` ends them")


def _options(words: list[str]) -> argparse.Namespace:
    parser = Arguments(prog="headway up", description=__doc__)
    parser.add_argument(
        "--profiles", metavar="FILE", type=Path, default=Path("profiles.yaml"), help="what is wanted (profiles.yaml)"
    )
    parser.add_argument(
        "--host-file", metavar="FILE", type=Path, default=Path("host.toml"), help="what this host can run (host.toml)"
    )
    add_data_dir(parser)
    parser.add_argument(
        "--recommend-only",
        action="store_true",
        help="decide and show, and start and stop no worker; needs no host.toml",
    )
    parser.add_argument("--stop-workers", action="store_true", help="when this ends, end the workers, too")
    add_machine_flags(parser)
    return parser.parse_args(words[1:])
