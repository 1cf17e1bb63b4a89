"""How the installation is: `ok`, or `degraded` with a reason for each thing that is not as it should be.

A reason has a kind, which alerts and dashboards of one's own can distinguish, and a sentence for people. Both come from
the table of conditions.
"""

import time
from collections.abc import Sequence

from headway.control.auth.authenticator import Authenticator
from headway.control.auth.certificates import Certificates
from headway.control.http.schemas.responses import HealthOut, PipelineOut, TelemetryHealth
from headway.control.ingest.ingest import Ingest
from headway.control.scheduler.maintenance import Maintenance
from headway.scaling.conditions.causes import Cause, ailing_installation
from headway.scaling.conditions.installation_facts import InstallationFacts, ProcessFacts


def health_of(facts: InstallationFacts) -> HealthOut:
    """The installation's condition, without that of pools and hosts."""
    known = facts.known
    return with_reasons(
        HealthOut(
            status="ok",
            reasons=[],
            kinds=[],
            event_log="ok" if facts.process.has_event_log else "missing",
            leader=known.leader,
            leader_epoch=known.epoch,
            leader_age_s=known.leader_age_s,
            pipelines=[PipelineOut.model_validate(each) for each in known.pipelines],
            telemetry=TelemetryHealth.taken_from(facts.process),
        ),
        ailing_installation(facts),
    )


def with_reasons(health: HealthOut, reasons: Sequence[Cause]) -> HealthOut:
    """``health`` with more ``reasons`` why it is not as it should be."""
    if not reasons:
        return health
    return health.model_copy(
        update={
            "status": "degraded",
            "reasons": [*health.reasons, *(each.text for each in reasons)],
            "kinds": [*health.kinds, *(each.kind for each in reasons)],
        }
    )


def process_facts(
    ingest: Ingest,
    callers: Authenticator,
    *,
    upkeep: Maintenance | None,
    certificates: Certificates | None,
    now_s: float,
) -> ProcessFacts:
    """What this control plane knows by itself at ``now_s``, the time by which files of telemetry wait."""
    waiting = ingest.unread.waiting
    return ProcessFacts(
        has_event_log=ingest.has_event_log,
        refused=ingest.problem or ingest.unread.problem,
        flush_s=ingest.flush_s,
        unread_files=waiting.files,
        unread_bytes=waiting.size_bytes,
        oldest_unread_s=None if waiting.oldest_s is None else max(0.0, now_s - waiting.oldest_s),
        failing_upkeep={} if upkeep is None else upkeep.failing,
        certificate_left_s=None if certificates is None else certificates.ends_at_s - time.time(),
        ended_calls=callers.ended.count,
        wrong_clocks_s=ingest.wrong_clocks_s(),
        future_times=ingest.future_times.count,
        backward_waits=ingest.backward_waits.count,
    )
