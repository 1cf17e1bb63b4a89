"""Every role on one machine: what ``up`` and ``demo`` start, in which order, and how each shows that it is ready."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from headway.agent.state.state_dir import AWAITED, WORKERS, StateFolder
from headway.cli.api_client import Api
from headway.cli.local.data_dir import DataDir
from headway.cli.local.live_view import Terminal
from headway.cli.local.supervisor import PRESSED_END_S, Child, Supervisor
from headway.cli.process import heartbeat
from headway.cli.process.shutdown import Stopping
from headway.connection_tables import as_toml
from headway.connections import Connection
from headway.environment import HTTP_ADDRESS, ClientTls
from headway.errors import HeadwayError
from headway.local import procfs
from headway.settings import Address
from headway.store.embedded import ensure_postgres, ensure_valkey

ASK_TIMEOUT_S = 2.0
FILED = frozenset({"HEADWAY_DATABASE_URL_FILE", "HEADWAY_BROKERS_FILE"})  # read by this process, passed to its children
NEEDED_BY: Mapping[str, frozenset[str]] = {
    "HEADWAY_DATABASE_URL": frozenset({"migrate", "control", "pipeline"}),
    "HEADWAY_BROKERS": frozenset({"collect"}),
    "HEADWAY_TOKEN": frozenset({"control", "collect", "agent"}),
    "HEADWAY_JOIN_TOKEN": frozenset({"agent"}),
}
"""Credential -> the roles that are given it."""
KILLING = "asked a second time: killing the workers that have not finished, which cuts their jobs"
STACK_JAVA_WITHIN_S = 420.0  # 15 s of two cores, of which others may leave a tenth; a cold disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run and where."""

    layout: DataDir
    http: Address
    grpc: Address
    token: str | None
    database_url: str | None
    """None: an embedded Postgres."""
    host_file: str | None
    """None: no agent runs, and the control plane only recommends."""
    stops_workers: bool
    """Whether the workers end with the agent."""
    agent_stop_within_s: float
    ended_report: Path | None = None
    """What viewers are shown last, where this file is there when the control plane is asked to stop."""
    is_encrypted: bool = False
    """Whether both servers speak TLS."""
    tls: ClientTls | None = None
    """Whom those on this machine trust then."""

    @property
    def url(self) -> str:
        """Where this machine reaches the HTTP server."""
        return f"http{'s' if self.is_encrypted else ''}://{reachable(self.http)}"


def address_lines(plan: Plan) -> tuple[str, ...]:
    """The dashboard's address, and the setting that other commands need where it is not their default."""
    lines = (f"dashboard: {plan.url}",)
    if plan.url == f"http://{HTTP_ADDRESS}":
        return lines
    return (*lines, f"for `headway get`, `top` and the others, in their shell: export HEADWAY_URL={plan.url}")


def left_workers(layout: DataDir) -> list[dict[str, Any]]:
    """The records of the workers that an agent of this machine has left running, and of what workers have left.

    ``pool``, ``pid`` and more, as the agent itself has written them.
    """
    ledger = StateFolder(layout.state("agent")).read(WORKERS) or {}
    rows = [*ledger.get("workers", ()), *ledger.get("remains", ())]
    return [row for row in rows if row["pid"] and procfs.is_there(row["pid"], row["started_ticks"])]


def reachable(address: Address) -> Address:
    """Where this machine itself reaches a server that is bound to ``address``."""
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
    return replace(address, host=everywhere.get(address.host, address.host))


class Stack:
    """The roles on this machine, as children of this process."""

    def __init__(self, plan: Plan, *, stopping: Stopping, terminal: Terminal) -> None:
        self.plan = plan
        self._api = Api(plan.url, plan.token, timeout_s=ASK_TIMEOUT_S, tls=plan.tls)
        self.supervisor = Supervisor(plan.layout, stopping=stopping, say=terminal.say)
        self._stopping = stopping
        self._terminal = terminal
        self._env = {name: value for name, value in os.environ.items() if name not in FILED}
        self._env |= {"HEADWAY_CONTROL": str(reachable(plan.grpc))}
        self._env |= {"HEADWAY_HTTP_ADDRESS": str(plan.http), "HEADWAY_GRPC_ADDRESS": str(plan.grpc)}
        self._env |= {"HEADWAY_EVENT_LOG": str(plan.layout.events), "HEADWAY_CHECKPOINT": str(plan.layout.checkpoint)}
        if plan.host_file is None:
            self._env["HEADWAY_RECOMMEND_ONLY"] = "yes"
        else:
            self._env |= {"HEADWAY_HOST_FILE": plan.host_file, "HEADWAY_RECOMMEND_ONLY": "no"}
        # Who starts everything at once has no settings of the pipeline's at hand to rebuild with.
        self._env.setdefault("HEADWAY_REBUILD", "auto")

    def start_valkey(self) -> str:
        """Start an embedded Valkey that keeps its jobs when it is killed. Returns its URL."""
        with self._stage("Valkey"):
            ensure = partial(ensure_valkey, self.plan.layout.valkey, is_persistent=True)
            return self.supervisor.keep("Valkey", ensure).url

    def start(self, *, brokers: Iterable[Connection], apply_profiles: Callable[[], object]) -> None:
        """Start every role and return once all are ready; ``apply_profiles`` is called once the control plane is."""
        self._env["HEADWAY_BROKERS"] = as_toml(brokers)
        if (url := self.plan.database_url) is None:
            with self._stage("Postgres"):
                ensure = partial(ensure_postgres, self.plan.layout.postgres, on_progress=self._terminal.say)
                url = self.supervisor.keep("Postgres", ensure).url
        self._env["HEADWAY_DATABASE_URL"] = url
        with self._stage("database tables"):
            self.supervisor.complete(self._role("migrate"))
        with self._stage("control plane"):
            # Spark takes longest, so it begins first; it waits for nobody but the database.
            beats = self.plan.layout.state("pipeline") / heartbeat.FILE
            self.supervisor.start(
                self._role("pipeline", is_ready=self.has_pipeline, ready_within_s=STACK_JAVA_WITHIN_S, heartbeat=beats)
            )
            self.supervisor.start(self._control())
            self.supervisor.wait_ready("control")
        apply_profiles()
        has_agent = self.plan.host_file is not None
        with self._stage("collectors and agent" if has_agent else "collectors"):
            self.supervisor.start(self._role("collect", ready_after_s=1.0, needs=("control",)))
            if has_agent:
                self.supervisor.start(self._agent())
            self.supervisor.wait_ready("collect", *(("agent",) if has_agent else ()))
        with self._stage("Java and Spark warm-up"):
            self.supervisor.wait_ready("pipeline")

    def stop_children(self, *, but: str | None = None) -> None:
        """End every role, or all ``but`` one; where workers end with the agent, also those that it has left."""
        self.supervisor.stop_children(but=but)
        if not self.plan.stops_workers:
            return
        if self._stopping.signals_received < 2 and left_workers(self.plan.layout):
            self.supervisor.finish(self._stop_workers(stop_within_s=self.plan.agent_stop_within_s))
        if self._stopping.signals_received > 1 and left_workers(self.plan.layout):
            self.supervisor.finish(self._stop_workers("--kill", stop_within_s=PRESSED_END_S))

    def ask(self, path: str, **query: str | int) -> dict[str, Any]:
        """What the control plane answers; nothing where it does not, as between two lives."""
        with suppress(HeadwayError):
            return self._api.get(path, **query)
        return {}

    def has_pipeline(self, ran_s: float) -> bool:
        """Whether a pipeline that is ready has written within the last ``ran_s``."""
        pipelines = self.ask("/v1/health").get("pipelines", [])
        return any(each["is_ready"] and each["written_age_s"] < ran_s for each in pipelines)

    def has_agent(self, ran_s: float) -> bool:
        """Whether a host has reported within the last ``ran_s``."""
        since_s = time.time() - ran_s
        hosts = self.ask("/v1/hosts").get("hosts", [])
        return any(host["is_known"] and (host["reported_at_s"] or 0) >= since_s for host in hosts)

    def _control(self) -> Child:
        words = []
        if (report := self.plan.ended_report) is not None:
            report.unlink(missing_ok=True)  # of the run before
            words = ["--ended-report", str(report)]
        return self._role("control", *words, is_ready=lambda _: bool(self.ask("/v1/health")))

    def _agent(self) -> Child:
        return self._role(
            "agent",
            *(("--stop-workers",) if self.plan.stops_workers else ()),
            is_ready=self.has_agent,
            stop_within_s=self.plan.agent_stop_within_s,
            awaited=self._awaited if self.plan.stops_workers else None,
            needs=("control",),
        )

    def _stop_workers(self, *words: str, stop_within_s: float) -> Child:
        return self._role("agent", "stop-workers", *words, stop_within_s=stop_within_s, awaited=self._awaited)

    def _awaited(self) -> str:
        """For which workers the agent waits, as it has written it."""
        with suppress(OSError, ValueError):
            return StateFolder(self.plan.layout.state("agent")).text(AWAITED)
        return ""

    def _role(self, name: str, *words: str, **more: Any) -> Child:
        return Child(
            name=name,
            argv=(sys.executable, "-m", "headway", name, *words),
            env={
                **{key: value for key, value in self._env.items() if name in NEEDED_BY.get(key, {name})},
                "HEADWAY_STATE_DIR": str(self.plan.layout.state(name)),
            },
            **more,
        )

    def _stage(self, name: str) -> Any:
        self._stopping.check()
        return self._terminal.stage(name)
