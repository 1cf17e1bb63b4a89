"""What the control plane answers, and whether it can be asked at all."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headway import __version__
from headway.cli.api_client import Api, LateAnswer, NoAnswer, UntrustedControlPlane
from headway.cli.doctor.finding import Finding, fault, faults, fine, skipped, warning
from headway.cli.operator.queue import queues_of
from headway.environment import ClientSettings
from headway.errors import Forbidden, HeadwayError, Misconfigured, Overloaded, Unauthenticated, Unavailable
from headway.scaling.conditions.condition import Condition, Subject
from headway.scaling.conditions.condition_table import CONDITIONS
from headway.scaling.conditions.installation_facts import CLOCK_OFF_S, HEARTBEAT_MISSED_S, PIPELINE_SILENT_S

DOCTOR_ANSWER_S = 5.0
NAMED_MAX = 5
WARM_UP_STAGES = frozenset({"starting", "warming_up"})
OF_UNKNOWN_KIND = "see docs/reference/conditions.md of the control plane's version, which is a later one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What the control plane knows, read once."""

    health: Mapping[str, Any]
    version: str
    pools: list[dict[str, Any]]
    queues: list[dict[str, Any]]
    hosts: list[dict[str, Any]]
    profiles: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Answers:
    """What came of asking the control plane."""

    findings: list[Finding]
    installation: Installation | None = None
    is_answering: bool = False
    """Whether a control plane answers at all, also one that does not take the token."""


def ask(env: Mapping[str, str]) -> Answers:
    """The findings of asking, and what the control plane knows where it says so."""
    try:
        settings = ClientSettings.from_env(env)
        api = Api(settings.url, settings.token, timeout_s=DOCTOR_ANSWER_S, tls=settings.tls)
    except HeadwayError as error:
        cure = "correct the setting that the sentence names: docs/reference/settings.md"
        return Answers(faults("settings", error, cure=cure))
    with api:
        asked = Answers([])
        try:
            health = api.get("/v1/health")
            asked.is_answering = True
            asked.findings.append(fine("control plane", f"{api.url} answers"))
            asked.installation, off_s = _read(api, health)
        except HeadwayError as error:
            asked.is_answering |= isinstance(error, Unauthenticated | Forbidden)
            asked.findings.append(_unasked(error))
            return asked
    if abs(off_s) <= CLOCK_OFF_S:
        asked.findings.append(fine("clock", "this machine's clock and the control plane's agree"))
    else:
        way = "behind" if off_s > 0 else "ahead of"
        text = f"this machine's clock is {abs(off_s):.0f} s {way} the control plane's"
        asked.findings.append(fault("clock", text, cure=CONDITIONS["clock"].cure))
    return asked


def _unasked(error: HeadwayError) -> Finding:
    text = str(error)
    if isinstance(error, Unauthenticated | Forbidden):
        cure = "make one with `headway token create --role viewer --name NAME` and name its file in HEADWAY_TOKEN_FILE"
        return fault("token", text, cure=cure)
    if isinstance(error, UntrustedControlPlane):
        cure = CONDITIONS["certificate"].cure + "; or let HEADWAY_TLS_CA name who signed it"
        return fault("certificate", text, cure=cure)
    if isinstance(error, Misconfigured):
        return fault("settings", text, cure="correct HEADWAY_URL: it is the address of the HTTP server")
    if isinstance(error, LateAnswer):
        cure = "wait and repeat; if it stays so, free processors of its machine, or restart it"
        return fault("control plane", text, cure=cure)
    if isinstance(error, Unavailable) and not isinstance(error, NoAnswer | Overloaded):
        # It answers, and cannot say more: what it reads, Postgres gives it.
        cure = "start Postgres, or correct HEADWAY_DATABASE_URL of the control plane"
        return fault("database", text, cure=cure)
    cure = "start it with `headway up` or `headway control`, or name in HEADWAY_URL where it is"
    return fault("control plane", text, cure=cure)


def _read(api: Api, health: Mapping[str, Any]) -> tuple[Installation, float]:
    """What the control plane knows, and how far its clock is ahead of this machine's, at least."""
    began_s = time.time()
    pools = api.get("/v1/pools")
    ended_s = time.time()
    at_s = pools["at_s"]
    off_s = at_s - min(max(at_s, began_s), ended_s)
    found = Installation(
        health=health,
        version=str(api.get("/v1/openapi.json")["info"]["version"]),
        pools=pools["pools"],
        queues=queues_of(api)["queues"],
        hosts=api.get("/v1/hosts")["hosts"],
        profiles=api.get("/v1/profiles")["profiles"],
    )
    return found, off_s


def health_findings(found: Installation) -> Iterator[Finding]:
    """What the control plane itself says is wrong, with the pools and hosts that it is about."""
    health = found.health
    if not health["reasons"]:
        yield fine("health", "the control plane finds nothing wrong")
    for kind, text in zip(health["kinds"], health["reasons"], strict=True):
        if kind == "pipeline" and is_warming_up(health):
            yield skipped("pipeline", f"{text}; ask again in a minute")
            continue
        condition = CONDITIONS.get(kind)
        named = "" if condition is None else _named(found, condition)
        yield fault(kind.replace("_", " "), text + named, cure=OF_UNKNOWN_KIND if condition is None else condition.cure)


def is_warming_up(health: Mapping[str, Any]) -> bool:
    """Whether every pipeline is in its warm-up, as after a start of `headway up`."""
    pipelines = health.get("pipelines", ())
    return bool(pipelines) and all(
        row["stage"] in WARM_UP_STAGES
        and row["written_age_s"] <= PIPELINE_SILENT_S
        and (row["beat_age_s"] is None or row["beat_age_s"] <= HEARTBEAT_MISSED_S)
        for row in pipelines
    )


def _named(found: Installation, condition: Condition) -> str:
    """The pools or hosts of which ``condition`` is true, in brackets."""
    about = []
    if condition.subject is Subject.POOL:
        about = [f"{row['pool']}: {text}" for row in found.pools if (text := _cause(row, condition.name))]
    elif condition.subject is Subject.HOST:
        about = [row["name"] for row in found.hosts if not row["is_known"] or row["hung_up_s"] is not None]
        about += [f"{row['name']}: {'; '.join(row['problems'])}" for row in found.hosts if row["problems"]]
    return f" ({'; '.join(about[:NAMED_MAX])})" if about else ""


def _cause(row: Mapping[str, Any], kind: str) -> str | None:
    """What is said of a pool for ``kind``; of a control plane that names no kinds, what is worst."""
    kinds = row.get("kinds", [kind] * len(row["causes"]))
    return next((text for each, text in zip(kinds, row["causes"], strict=True) if each == kind), None)


def version_findings(found: Installation) -> Iterator[Finding]:
    """Parts of different versions."""
    if found.version != __version__:
        text = f"this command is version {__version__}, the control plane {found.version}"
        yield warning("version", text, cure="install the control plane's version here")
    others: dict[str, list[str]] = {}
    for row in found.hosts:
        if row["is_known"] and row["agent_version"] != found.version:
            others.setdefault(row["agent_version"], []).append(row["name"])
    for version, names in sorted(others.items()):
        text = f"agents are version {version}, the control plane {found.version}: {listed(names)}"
        yield warning("version", text, cure="upgrade the older ones; agents go last and adopt their workers")
    if found.version == __version__ and not others:
        yield fine("version", f"every part that reports is version {__version__}")


def listed(names: list[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
