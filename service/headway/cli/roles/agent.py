"""`headway agent`: the agent of one host. It starts and stops real workers, as this host's `host.toml` says.

Workers outlive it: started again, it takes them over.
"""

import argparse
import logging
import os
from collections.abc import Iterable, Mapping
from functools import partial

from headway.agent.config.host_file_watcher import WatchedFile
from headway.agent.loop import Agent, AgentSetup, stop_left
from headway.agent.state.state_dir import StateFolder
from headway.agent.system.wake_pipe import WakePipe
from headway.agent.workers.worker_record import Record
from headway.cli.argparse_base import Arguments
from headway.cli.process import parent_watch
from headway.cli.process.log_setup import log_to_stderr
from headway.cli.process.process_privacy import keep_private
from headway.cli.process.role_options import add_control, laid_over
from headway.cli.process.shutdown import ended_by, service_status
from headway.cli.roles import agent_setup
from headway.cli.roles.grpc_tls import grpc_tls
from headway.errors import Misconfigured
from headway.settings import AgentSettings

log = logging.getLogger(__name__)


def main(words: list[str]) -> int:
    """Run the agent until it is asked to stop, or do what the second word names. Returns the exit status."""
    given = _options(words[1:])
    action, env = given.action, laid_over(os.environ, given)
    if action == "init":
        return agent_setup.init(given)
    settings = AgentSettings.from_env(env)
    if action == "check":
        return agent_setup.check(settings, is_offline=given.offline)
    if action == "unit":
        return agent_setup.unit(settings, user=given.user, environment_file=given.environment_file)
    log_to_stderr()
    if action == "stop-workers":
        return _stop_workers(settings, is_forced=given.kill)
    keep_private()
    return _run(settings, env, given)


def _options(words: list[str]) -> argparse.Namespace:
    parser = Arguments(prog="headway agent", description=__doc__)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    run = actions.add_parser("run", help="run the agent (the default)")
    run.add_argument("--stop-workers", action="store_true", help="stop the workers when the agent ends")
    run.add_argument(
        "--take-over", action="store_true", help="kill a hung agent of this state folder and adopt its workers"
    )
    agent_setup.add_init(actions.add_parser("init", help="write host.toml for the libraries that you name"))
    check = actions.add_parser("check", help="show what the agent would run here, and what prevents it")
    check.add_argument("--offline", action="store_true", help="do not ask whether the control plane answers")
    unit = actions.add_parser("unit", help="print a systemd unit")
    agent_setup.add_unit(unit)
    stop = actions.add_parser("stop-workers", help="stop the remaining workers of an agent")
    stop.add_argument("--kill", action="store_true", help="do not wait for their jobs: the jobs are cut")
    for each, is_whole in ((run, True), (check, True), (unit, True), (stop, False)):
        _add_settings(each, is_whole=is_whole)
    if not words or (words[0].startswith("-") and words[0] not in {"-h", "--help"}):
        words = ["run", *words]
    return parser.parse_args(words)


def _add_settings(parser: argparse.ArgumentParser, *, is_whole: bool) -> None:
    """The flags that are laid over the environment, all of them or those of the state folder."""
    parser.add_argument("--state-dir", dest="HEADWAY_STATE_DIR", metavar="PATH", help="folder of the agent's state")
    if is_whole:
        add_control(parser)
        parser.add_argument("--host-file", dest="HEADWAY_HOST_FILE", metavar="PATH", help="what this host can run")
        parser.add_argument("--host-name", dest="HEADWAY_HOST_NAME", metavar="NAME", help="the name of this host")


def _stop_workers(settings: AgentSettings, *, is_forced: bool) -> int:
    wakes = WakePipe()
    left = stop_left(StateFolder(settings.state_dir), wakes=wakes, is_forced=is_forced)
    log.info("workers still running: %d", left) if left else log.info("no worker runs any more")
    return (ended_by(wakes.signal_number) or 1) if left else 0


def _join_token(settings: AgentSettings) -> str | None:
    """The join token. Its file may be gone: it serves once, and this may be a later start."""
    if settings.join_token or settings.join_token_file is None:
        return settings.join_token
    try:
        return settings.join_token_file.read_text().strip() or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Misconfigured(
            f"HEADWAY_JOIN_TOKEN_FILE={settings.join_token_file} cannot be read: {error.strerror}"
        ) from error


def _run(settings: AgentSettings, env: Mapping[str, str], given: argparse.Namespace) -> int:
    wakes = WakePipe()
    host_file = WatchedFile(settings.host_file)
    setup = AgentSetup(
        folder=StateFolder(settings.state_dir),
        host_file=host_file,
        # What the environment or a flag says counts more than the file, and the file more than the system.
        host_name=settings.host_name if env.get("HEADWAY_HOST_NAME") else host_file.now.name or settings.host_name,
        control=settings.control,
        token=settings.token,
        environment=os.environ,
        stops_workers=given.stop_workers,
        takes_over=given.take_over,
        join_token=_join_token(settings),
        tls=partial(grpc_tls, settings.tls),
    )
    parent_watch.watch(wakes.stop)
    log.info(
        "agent of host=%s control=%s templates=%s",
        *(setup.host_name, ",".join(settings.control), ",".join(host_file.now.templates)),
    )
    for sentence in agent_setup.warnings(settings, host_file.now):
        log.warning("%s", sentence)
    left_running = Agent(setup, wakes=wakes).run()
    log.info("agent ended; %s", _left_text(left_running))
    return service_status(wakes.signal_number)


def _left_text(left: Iterable[Record]) -> str:
    by_pool: dict[str, list[str]] = {}
    for record in left:
        by_pool.setdefault(record.pool, []).append(str(record.pid))
    if not by_pool:
        return "no worker runs any more"
    named = "; ".join(f"pool {pool}: {', '.join(pids)}" for pool, pids in sorted(by_pool.items()))
    return f"its workers run on and the next agent takes them over ({named})"
