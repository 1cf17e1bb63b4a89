"""`headway agent`: the agent of one host. It starts and stops real workers, as this host's `host.toml` says.

Workers outlive it: started again, it takes them over. `headway agent stop-workers` ends what one has left behind.
"""

import argparse
import logging
import os
from collections.abc import Iterable

from headway.agent.folder import StateFolder
from headway.agent.loop import Agent, AgentSetup, stop_left
from headway.agent.records import Record
from headway.agent.templates import load
from headway.agent.wakes import Wakes
from headway.cli import parent
from headway.cli.logs import log_to_stderr
from headway.settings import AgentSettings

log = logging.getLogger(__name__)


def main(words: list[str]) -> int:
    """Run the agent until it is told to stop. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="headway agent", description=__doc__)
    parser.add_argument("action", nargs="?", choices=["run", "stop-workers"], default="run")
    parser.add_argument("--control", dest="HEADWAY_CONTROL", metavar="HOST:PORT", help="the control plane's gRPC door")
    parser.add_argument("--host-file", dest="HEADWAY_HOST_FILE", metavar="PATH", help="what this host can run")
    parser.add_argument("--state-dir", dest="HEADWAY_STATE_DIR", metavar="PATH", help="where the agent remembers")
    parser.add_argument("--host-name", dest="HEADWAY_HOST_NAME", metavar="NAME", help="what this host is called")
    parser.add_argument("--stop-workers", action="store_true", help="end the workers with the agent")
    given = vars(parser.parse_args(words[1:]))
    action, stops_workers = given.pop("action"), given.pop("stop_workers")
    env = {**os.environ, **{name: value for name, value in given.items() if value is not None}}
    settings = AgentSettings.from_env(env)
    log_to_stderr()
    wakes = Wakes()
    folder = StateFolder(settings.state_dir)
    if action == "stop-workers":
        left = stop_left(folder, wakes=wakes)
        log.info("workers still running: %d", left) if left else log.info("no worker runs any more")
        return 1 if left else 0
    host_file = load(settings.host_file)
    setup = AgentSetup(
        folder=folder,
        host_file=host_file,
        # What the environment or a flag says counts more than the file, and the file more than the system.
        host_name=settings.host_name if env.get("HEADWAY_HOST_NAME") else host_file.name or settings.host_name,
        control=str(settings.control),
        token=settings.token,
        environment=os.environ,
        stops_workers=stops_workers,
    )
    parent.watch(wakes.stop)
    log.info("agent of host=%s control=%s templates=%s", setup.host_name, setup.control, ",".join(host_file.templates))
    left_running = Agent(setup, wakes=wakes).run()
    log.info("agent ended; %s", _told(left_running))
    return 0


def _told(left: Iterable[Record]) -> str:
    by_pool: dict[str, list[str]] = {}
    for record in left:
        by_pool.setdefault(record.pool, []).append(str(record.pid))
    if not by_pool:
        return "no worker runs any more"
    named = "; ".join(f"pool {pool}: {', '.join(pids)}" for pool, pids in sorted(by_pool.items()))
    return f"its workers run on and the next agent takes them over ({named})"
