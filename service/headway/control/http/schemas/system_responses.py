"""The installation's own parts, as the HTTP API gives them: each with its age."""

from typing import Literal

from headway.control.http.schemas.responses import PipelineOut, ReasonKind, TelemetryHealth
from headway.control.http.schemas.schema_base import Given
from headway.scaling.model import HostState

StageName = Literal["brokers", "event_log", "pipeline", "minutes", "scheduler", "agents"]


class StageOut(Given):
    """One stage of the way from a broker to a worker, in that order."""

    stage: StageName
    lag_s: float | None
    """How old its newest result is, or for how long something has been waiting for it; null: not known."""
    lag_max_s: float
    """The most that is in order."""
    is_late: bool


class LeaderOut(Given):
    """The control plane that decides."""

    name: str
    epoch: int
    age_s: float | None
    """Since it last showed itself; null while nobody ever led."""


class CollectorOut(Given):
    """A collector, and a broker that it reads."""

    connection: str
    producer: str
    seen_age_s: float
    began_age_s: float
    """Since it began to read, without a silence."""
    is_silent: bool
    """It has ended, was replaced, or cannot reach its broker or this control plane."""


class AgentOut(Given):
    """The agent of a host."""

    host: str
    version: str
    state: HostState
    is_known: bool
    """False: its lease has ended."""
    report_age_s: float | None
    """Null: it has never reported."""
    hung_up_s: float | None
    certificate_left_s: float | None
    problems: list[str]


class SystemOut(Given):
    """The installation's own parts at one moment."""

    at_s: float
    version: str
    """Of the control plane that answers."""
    status: Literal["ok", "degraded"]
    reasons: list[str]
    kinds: list[ReasonKind]
    leader: LeaderOut
    stages: list[StageOut]
    pipelines: list[PipelineOut]
    telemetry: TelemetryHealth | None
    collectors: list[CollectorOut]
    """Those of the last day, by broker and then by name."""
    agents: list[AgentOut]
    """By host."""
